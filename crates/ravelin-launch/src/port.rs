//! Opens the ports of a gateway, each where its interface is.

use crate::arguments::Settings;
use crate::error::LaunchError;
use crate::said::say;
use container::{ContainerError, Holder};
use messages::limits::MOST_DESCRIPTORS;
use ports::live::handed_over::OpenedPort;
use ports::live::{AttachError, FramePlace, HandedOver, Netlink, VnicWishes, WantedPort};
use std::io;
use std::os::fd::OwnedFd;

/// A port of the gateway.
pub(crate) struct Port<'a> {
    pub(crate) wanted: &'a WantedPort,
    /// What it has of the frames that AF_XDP ports share.
    frames: Option<FramePlace>,
    /// Nothing while its interface is away.
    pub(crate) opened: Option<OpenedPort>,
    /// The namespaces of the container whose link it is.
    pub(crate) container: Option<Holder>,
    /// Whether the core has the port as it is now.
    pub(crate) handed_over: bool,
}

impl<'a> Port<'a> {
    /// Opens it, that of a container with the container's namespaces.
    pub(crate) fn open(
        wanted: &'a WantedPort,
        frames: Option<FramePlace>,
        settings: &Settings,
    ) -> Result<Port<'a>, LaunchError> {
        let vnic = wanted.vnic.as_ref();
        let says = |why: &ContainerError| {
            let name = &wanted.interface;
            say(&format!("ravelin-launch: the container of {name} is without a limit: {why}"));
        };
        let container = vnic
            .map(|vnic| {
                Holder::start(
                    &settings.containers,
                    &wanted.interface,
                    vnic.container,
                    vnic.guest.is_some(),
                    says,
                )
            })
            .transpose()?;
        let mut port = Port { wanted, frames, opened: None, container, handed_over: true };
        port.open_again(settings.workers)?;
        Ok(port)
    }

    /// Opens what is there of its interface's name.
    ///
    /// # Errors
    /// There is none, or it cannot be opened.
    pub(crate) fn open_again(&mut self, workers: u16) -> Result<(), LaunchError> {
        let Port { wanted, frames, container, .. } = self;
        let open = || OpenedPort::open(wanted, workers, frames.as_ref());
        self.opened = Some(in_its_network(container.as_ref(), open)?);
        Ok(())
    }

    /// New descriptors of it to hand over, with what has to be known of them.
    ///
    /// # Errors
    /// Its interface is away, or they cannot be opened.
    pub(crate) fn lanes(&self, workers: u16) -> Result<(HandedOver, Vec<OwnedFd>), LaunchError> {
        let away = || LaunchError::Away(self.wanted.interface.clone());
        let opened = self.opened.as_ref().ok_or_else(away)?;
        let (described, descriptors) = in_its_network(self.container.as_ref(), || opened.lanes(workers))?;
        if descriptors.len() > MOST_DESCRIPTORS {
            return Err(LaunchError::Queues {
                interface: self.wanted.interface.clone(),
                descriptors: descriptors.len(),
            });
        }
        Ok((described, descriptors))
    }

    /// A socket that is told of the routes of the container whose link it is.
    ///
    /// # Errors
    /// It is nobody's link, or Linux gives none.
    pub(crate) fn hears_routes(&self) -> Result<OwnedFd, LaunchError> {
        let none = || io::Error::new(io::ErrorKind::NotFound, "the port is of no container");
        let container = self.container.as_ref().ok_or_else(none)?;
        Ok(container.namespaces.inside(Netlink::of_routes)??)
    }

    /// What was wanted of it, if it is the link of a container.
    pub(crate) fn vnic(&self) -> Option<&VnicWishes> {
        self.wanted.vnic.as_ref()
    }
}

/// Does something with a port where its interface is: in the network of its container, or in that of this
/// process.
fn in_its_network<T: Send>(
    container: Option<&Holder>,
    work: impl FnOnce() -> Result<T, AttachError> + Send,
) -> Result<T, LaunchError> {
    Ok(match container {
        Some(container) => container.namespaces.inside(work)??,
        None => work()?,
    })
}
