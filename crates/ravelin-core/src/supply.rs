//! What the core is given at its start: how it is to run, and its ports.

use crate::error::CoreError;
use crate::exchange::Speakers;
use crate::guarded::{Refused, guarded};
use guard::OwnAddresses;
use messages::launch::{Begin, Kept, LaunchMessage, SuppliedPort, Unfinished};
use messages::limits::{LONGEST_BUNDLE_MESSAGE, LONGEST_MESSAGE, MOST_ADDRESSES, MOST_PORTS, MOST_WORKERS};
use messages::{Channel, ChannelError};
use ports::live::handed_over::{Adopter, PortRenewal};
use ports::live::{Attached, HandedOver, Offloads};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The ports that were given.
pub(crate) struct Supply {
    pub(crate) ports: Vec<Attached>,
    /// Of each port.
    pub(crate) renewals: Vec<PortRenewal>,
    /// What was refused at the ports of containers.
    pub(crate) refused: Vec<(String, Arc<Refused>)>,
    /// In whose name `control` may send.
    pub(crate) speakers: Arc<Speakers>,
}

/// Receives the first message.
///
/// # Errors
/// Another message comes, or it says what cannot be.
pub(crate) fn begin(launch: &mut Channel) -> Result<Begin, CoreError> {
    let (LaunchMessage::Begin(begin), _) = next(launch)? else {
        return Err(CoreError::Order("it begins with another message than `Begin`"));
    };
    if begin.workers == 0 || begin.workers > MOST_WORKERS {
        return Err(CoreError::Order("there must be a worker, and no more than a gateway may have"));
    }
    Ok(begin)
}

/// Receives what was kept of policies.
///
/// # Errors
/// Another message comes.
pub(crate) fn kept(launch: &mut Channel) -> Result<Kept, CoreError> {
    match receive(launch, LONGEST_BUNDLE_MESSAGE)? {
        (LaunchMessage::Kept(kept), _) => Ok(kept),
        _ => Err(CoreError::Order("what was kept of policies comes behind `Begin`")),
    }
}

/// Receives the channel of the core that runs, and that of `compile` if another program is to run.
///
/// # Errors
/// Another message comes.
pub(crate) fn beside(launch: &mut Channel) -> Result<(Channel, Option<Channel>), CoreError> {
    let (LaunchMessage::Beside, descriptors) = next(launch)? else {
        return Err(CoreError::Order("the channel of the core that runs comes behind what was kept"));
    };
    let mut channels = descriptors.into_iter().map(Channel::of);
    let other = channels.next().ok_or(CoreError::Order("a channel is missing"))?;
    Ok((other, channels.next()))
}

/// Receives everything up to [`LaunchMessage::Start`].
///
/// # Errors
/// Messages come in another order, or ports cannot be adopted.
pub(crate) fn ports(launch: &mut Channel, begin: &Begin) -> Result<Supply, CoreError> {
    let (mut ports, mut renewals, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    let mut adopter = Adopter::new(begin.beside);
    let speakers = Arc::<Speakers>::default();
    loop {
        let (port, descriptors) = match next(launch)? {
            (LaunchMessage::Port(port), descriptors) => (port, descriptors),
            (LaunchMessage::Start, _) => break,
            _ => return Err(CoreError::Order("before `Start` come ports alone")),
        };
        if ports.len() >= MOST_PORTS {
            return Err(CoreError::Order("there are more ports than a core may have"));
        }
        let (name, router) = (port.interface.clone(), port.router.clone());
        let number = ports.len() as u16 + 1;
        speakers.set(number, checked(port.control.clone())?);
        let (attached, renewal) = adopter
            .adopt(&handed_over(port), number, descriptors)
            .map_err(|source| CoreError::Port { interface: name.clone(), source })?;
        if attached.lanes.len() != usize::from(begin.workers) {
            return Err(CoreError::Order("a port has not as many lanes as there are workers"));
        }
        let attached = match checked(router)? {
            Some(router) => {
                let (attached, counts) = guarded(attached, router);
                refused.push((name, counts));
                attached
            }
            None => attached,
        };
        ports.push(attached);
        renewals.push(renewal);
    }
    if ports.len() != usize::from(begin.ports) {
        return Err(CoreError::Order("there are not as many ports as were announced"));
    }
    Ok(Supply { ports, renewals, refused, speakers })
}

/// The addresses, if there are no more of a family than a guard looks for.
pub(crate) fn checked(own: Option<OwnAddresses>) -> Result<Option<OwnAddresses>, CoreError> {
    match own {
        Some(own) if own.ipv4.len() > MOST_ADDRESSES || own.ipv6.len() > MOST_ADDRESSES => {
            Err(CoreError::Order("somebody has more addresses at a port than there may be"))
        }
        own => Ok(own),
    }
}

fn next(launch: &mut Channel) -> Result<(LaunchMessage, Vec<OwnedFd>), CoreError> {
    receive(launch, LONGEST_MESSAGE)
}

fn receive(launch: &mut Channel, most: usize) -> Result<(LaunchMessage, Vec<OwnedFd>), CoreError> {
    launch
        .receive(most)?
        .ok_or_else(|| CoreError::Channel(ChannelError::System(std::io::ErrorKind::UnexpectedEof.into())))
}

/// The port as the crate `ports` describes it.
pub(crate) fn handed_over(port: SuppliedPort) -> HandedOver {
    let offloads = match port.unfinished {
        Unfinished::Cut => Offloads::Cut,
        Unfinished::Whole => Offloads::Whole,
        Unfinished::Off => Offloads::Off,
    };
    HandedOver {
        interface: port.interface,
        way: port.way,
        offloads,
        promiscuous: port.promiscuous,
        keeps_tags: port.router.is_some(),
        mode: port.mode,
    }
}
