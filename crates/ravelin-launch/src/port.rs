//! Opens the ports of a gateway, each where its interface is.

use crate::arguments::Settings;
use crate::error::LaunchError;
use crate::said::say;
use container::{ContainerError, Holder};
use messages::limits::MOST_DESCRIPTORS;
use ports::live::handed_over::OpenedPort;
use ports::live::{AttachError, FrameShare, HandedOver, Netlink, VnicWishes, WantedPort};
use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

/// How long a gateway that starts waits for interfaces that another process has, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(3);
const BETWEEN: Duration = Duration::from_millis(50);

/// A port of the gateway.
pub(crate) struct Port<'a> {
    pub(crate) wanted: &'a WantedPort,
    /// What it has of the frames that AF_XDP ports share.
    frames: Option<FrameShare>,
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
        frames: Option<FrameShare>,
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
        patiently(|| port.open_interface(settings.workers))?;
        Ok(port)
    }

    /// Opens the interface that has its name now.
    ///
    /// # Errors
    /// There is none, or it cannot be opened.
    pub(crate) fn open_interface(&mut self, workers: u16) -> Result<(), LaunchError> {
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
            return Err(LaunchError::Descriptors {
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

/// Tries what needs interfaces until nobody else has them any more, for a while: processes of a gateway that
/// was killed may still be ending. Nothing else goes on meanwhile.
///
/// # Errors
/// It fails, or they are still taken.
pub(crate) fn patiently<T>(mut make: impl FnMut() -> Result<T, LaunchError>) -> Result<T, LaunchError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match make() {
            Err(LaunchError::Port(error)) if error.is_taken() && Instant::now() < until => {
                thread::sleep(BETWEEN);
            }
            made => return made,
        }
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
