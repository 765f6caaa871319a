//! Opens the ports of a gateway, each where its interface is.

use crate::arguments::Settings;
use crate::error::LaunchError;
use crate::said::say;
use container::{ContainerError, Holder};
use ports::live::handed_over::OpenedPort;
use ports::live::{AttachError, HandedOver, Netlink, VnicWishes, WantedPort};
use std::io;
use std::os::fd::OwnedFd;

/// A port of the gateway.
pub(crate) struct Port<'a> {
    pub(crate) wanted: &'a WantedPort,
    /// Nothing while its interface is away.
    pub(crate) opened: Option<OpenedPort>,
    /// The namespaces of the container whose link it is.
    pub(crate) container: Option<Holder>,
    /// Whether the core has the port as it is now.
    pub(crate) handed_over: bool,
}

impl<'a> Port<'a> {
    /// Opens it, that of a container with the container's namespaces.
    pub(crate) fn open(wanted: &'a WantedPort, settings: &Settings) -> Result<Port<'a>, LaunchError> {
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
        let opened = Some(open_port(wanted, container.as_ref(), settings.workers)?);
        Ok(Port { wanted, opened, container, handed_over: true })
    }

    /// New descriptors of it to hand over, with what has to be known of them.
    ///
    /// # Errors
    /// Its interface is away, or they cannot be opened.
    pub(crate) fn lanes(&self, workers: u16) -> Result<(HandedOver, Vec<OwnedFd>), LaunchError> {
        let away = || LaunchError::Away(self.wanted.interface.clone());
        let opened = self.opened.as_ref().ok_or_else(away)?;
        in_its_network(self.container.as_ref(), || opened.lanes(workers))
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

/// Opens a port, that of a container in its network.
pub(crate) fn open_port(
    wanted: &WantedPort,
    container: Option<&Holder>,
    workers: u16,
) -> Result<OpenedPort, LaunchError> {
    in_its_network(container, || OpenedPort::open(wanted, workers))
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
