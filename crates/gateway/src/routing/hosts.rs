//! The machine as a host at ports: gives each port its host interface, hands packets for the machine to it,
//! and sends what the machine sends by the port.
//!
//! ```text
//!  packet loop ──punted──► Router ──for_host──► host interface (TAP) ──► Linux: ping, ssh, DHCP, BGP …
//!  packet loop ◄── a few frames between two batches ── thread of the port ◄───┘
//! ```
//!
//! Frames of the machine leave as they are, unless the program asks for them by `from_host` and decides
//! about them. The machine has one turn between two batches,
//! of a bounded number of frames and bytes; whatever else it sends waits in the queue of its interface, and
//! is lost there when that is full. So it takes no more than a share of the worker's time and of a link.

use super::port::Link;
use super::prefix::InterfaceAddress;
use super::router::{Packet, Router, RoutingSettings};
use super::rtnetlink;
use crate::limits::{HOST_TURN_BYTES, HOST_TURN_FRAMES};
use crate::remarks::Remarks;
use engine::live::{Injected, Remote};
use packet::{PortNumber, VirtioHeader};
use ports::live::{AttachError, HostInterface, HostMemory, Netlink, Offloads, PortKind, WantedPort, sys};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a thread waits for the machine before it looks whether the gateway has ended.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long the kernel may take to give an interface an address.
const ADDRESSED: Duration = Duration::from_secs(2);

/// The error of the kernel where an interface has no such address (EADDRNOTAVAIL).
const NOT_THERE: i32 = 99;

/// The host interfaces of a gateway's ports.
#[derive(Clone, Default)]
pub struct Hosts(Arc<AllHosts>);

#[derive(Default)]
struct AllHosts {
    hosts: Mutex<BTreeMap<PortNumber, Arc<Host>>>,
    /// What their threads need, once they run.
    serving: OnceLock<Serving>,
}

struct Serving {
    remote: Remote,
    ended: Arc<AtomicBool>,
    remarks: Remarks,
    /// All ports together have one turn.
    turn: Arc<Mutex<()>>,
}

/// Host interfaces of ports that are opened anew, until they take their places.
pub(crate) struct NewHosts {
    /// For each port whether it is opened anew.
    pub(super) anew: Vec<bool>,
    hosts: BTreeMap<PortNumber, Arc<Host>>,
}

impl NewHosts {
    /// None, of a gateway with so many ports, none of which is opened anew.
    pub(crate) fn none(ports: usize) -> NewHosts {
        NewHosts { anew: vec![false; ports], hosts: BTreeMap::new() }
    }

    /// Makes those that the file wants, each with the addresses of its port.
    ///
    /// # Errors
    /// The first port that cannot have one; then none is left.
    pub(super) fn make(
        settings: &RoutingSettings,
        ports: &[WantedPort],
        anew: &[bool],
    ) -> Result<NewHosts, (PortNumber, HostError)> {
        let mut hosts = BTreeMap::new();
        for (((number, of_port), wanted), anew) in (1..).zip(&settings.ports).zip(ports).zip(anew) {
            if !anew {
                continue;
            }
            let Some(name) = &of_port.host_interface else { continue };
            let host = Host::make(name, wanted, &of_port.addresses).map_err(|error| (number, error))?;
            hosts.insert(number, Arc::new(host));
        }
        Ok(NewHosts { anew: anew.to_vec(), hosts })
    }
}

/// A host interface whose port has gone.
pub(super) struct EndedHost(Arc<Host>);

impl EndedHost {
    /// Returns when the interface is gone.
    pub(super) fn wait(self) {
        let thread = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // One that panicked has ended, too.
            let _ = thread.join();
        }
    }
}

/// The host interface of a port.
#[derive(Debug)]
struct Host {
    name: String,
    /// The port's interface, and whether it takes long segments.
    port: (String, bool),
    /// The program gets the packets that a segment stands for.
    cut: bool,
    /// The addresses of the file.
    addresses: Mutex<Vec<InterfaceAddress>>,
    interface: Mutex<Arc<HostInterface>>,
    /// Packets that were handed to the machine, and those that it did not take.
    handed: AtomicU64,
    refused: AtomicU64,
    /// Packets that the machine sent.
    sent: AtomicU64,
    /// Its port has gone.
    gone: AtomicBool,
    /// The thread that sends what the machine sends.
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The host interface of a port, and what went by it since it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostView {
    /// Its name.
    pub interface: String,
    /// Packets that were handed to the machine.
    pub handed: u64,
    /// Packets for the machine that it did not take.
    pub refused: u64,
    /// Packets that the machine sent by the port.
    pub sent: u64,
    /// Packets of the machine that found no room in the queue of the interface.
    pub unsent: u64,
}

/// Why a port has no host interface.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// the interface cannot be made
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// it cannot have an address
    #[error("{interface} cannot have the address {address}: {source}")]
    Address {
        /// The host interface.
        interface: String,
        /// The address.
        address: InterfaceAddress,
        /// What the kernel said.
        source: io::Error,
    },
}

impl Hosts {
    /// Makes the host interfaces that the file wants, each with the addresses of its port.
    ///
    /// # Errors
    /// The first port that cannot have one; then none is left.
    pub fn make(settings: &RoutingSettings, ports: &[WantedPort]) -> Result<Hosts, (PortNumber, HostError)> {
        let hosts = Hosts::default();
        hosts.add(NewHosts::make(settings, ports, &vec![true; ports.len()])?);
        Ok(hosts)
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<PortNumber, Arc<Host>>> {
        self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, port: PortNumber) -> Option<Arc<Host>> {
        self.all().get(&port).cloned()
    }

    /// Lets go of the host interfaces of ports that have gone or are opened anew.
    pub(super) fn let_go(&self, anew: &[bool]) -> Vec<EndedHost> {
        let mut all = self.all();
        let stays = |port: PortNumber| anew.get(usize::from(port).wrapping_sub(1)) == Some(&false);
        let gone: Vec<_> = all.keys().copied().filter(|port| !stays(*port)).collect();
        let gone: Vec<_> = gone.iter().filter_map(|port| all.remove(port)).collect();
        gone.iter().for_each(|host| host.gone.store(true, Ordering::Relaxed));
        gone.into_iter().map(EndedHost).collect()
    }

    /// Takes others in.
    pub(super) fn add(&self, new: NewHosts) {
        for (port, host) in new.hosts {
            self.serve(port, &host);
            self.all().insert(port, host);
        }
    }

    /// The host interface of a port.
    pub(crate) fn view(&self, port: PortNumber) -> Option<HostView> {
        let host = self.at(port)?;
        let [handed, refused, sent] =
            [&host.handed, &host.refused, &host.sent].map(|figure| figure.load(Ordering::Relaxed));
        let (interface, unsent) = (host.name.clone(), host.interface().unsent());
        Some(HostView { interface, handed, refused, sent, unsent })
    }

    /// Ports by the names of their host interfaces.
    pub(super) fn names(&self) -> HashMap<String, PortNumber> {
        self.all().iter().map(|(port, host)| (host.name.clone(), *port)).collect()
    }

    /// Gives the host interfaces the addresses that the file has anew, and takes away those that it has no
    /// more. Others, which somebody else gave them, stay. Says which could not be set.
    pub(super) fn readdress(&self, old: &Router, new: &Router) -> Vec<HostError> {
        let mut errors = Vec::new();
        for (number, host) in self.all().iter() {
            let of = |router: &Router| {
                router.port(*number).map(|port| port.settings.addresses.clone()).unwrap_or_default()
            };
            let (old, new) = (of(old), of(new));
            host.addresses.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&new);
            let gone = old.iter().filter(|address| !new.contains(address)).map(|address| (address, false));
            let come = new.iter().filter(|address| !old.contains(address)).map(|address| (address, true));
            for (address, there) in gone.chain(come) {
                match set_address(&host.name, *address, there) {
                    // Somebody else was faster.
                    Err(source) if there || source.raw_os_error() != Some(NOT_THERE) => {
                        let interface = host.name.clone();
                        errors.push(HostError::Address { interface, address: *address, source });
                    }
                    _ => {}
                }
            }
        }
        errors
    }

    /// Hands packets to the machine, each by the host interface of the port that it came in by.
    pub(super) fn hand_over(&self, packets: &[Packet]) {
        for packets in packets.chunk_by(|one, next| one.port == next.port) {
            let Some(host) = packets.first().and_then(|packet| self.at(packet.port)) else { continue };
            let frames = packets.iter().map(|packet| (&packet.bytes[..], packet.virtio));
            let (taken, refused) = host.interface().send(frames);
            host.handed.fetch_add(taken, Ordering::Relaxed);
            host.refused.fetch_add(refused, Ordering::Relaxed);
        }
    }

    /// Takes over what changed at a port's interface. A device that was deleted is made again with it.
    pub(super) fn follow(&self, port: PortNumber, link: Option<Link>) {
        let Some(host) = self.at(port) else { return };
        let interface = host.interface();
        let _ = match link {
            Some(Link { mac, mtu, up, .. }) => interface.follow(mac, mtu, up),
            None => interface.lose_carrier(),
        };
    }

    /// Sends what the machine sends by each port, from a thread of its own, until `ended` says that the
    /// gateway has ended.
    pub(super) fn start(&self, remote: &Remote, ended: &Arc<AtomicBool>, remarks: &Remarks) {
        let (remote, ended, remarks, turn) = (remote.clone(), ended.clone(), remarks.clone(), Arc::default());
        // It is started once.
        let _ = self.0.serving.set(Serving { remote, ended, remarks, turn });
        self.all().iter().for_each(|(port, host)| self.serve(*port, host));
    }

    /// Starts the thread of a host interface, if others run.
    fn serve(&self, port: PortNumber, host: &Arc<Host>) {
        let Some(Serving { remote, ended, remarks, turn }) = self.0.serving.get() else { return };
        let (remote, ended, remarks) = (remote.clone(), ended.clone(), remarks.clone());
        let (turn, served) = (turn.clone(), host.clone());
        let thread = thread::spawn(move || {
            while let Err(error) = served.serve(port, &remote, &turn, &ended) {
                let name = &served.name;
                remarks.say(format!(
                    "port {port}: its host interface {name} has gone ({error}) and is made again"
                ));
                served.renew(&ended);
            }
        });
        *host.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }
}

impl Host {
    fn make(name: &str, port: &WantedPort, addresses: &[InterfaceAddress]) -> Result<Host, HostError> {
        let segments = port.kind != PortKind::AfXdp && port.offloads != Offloads::Off;
        let cut = port.offloads == Offloads::Cut;
        let (name, port) = (name.to_owned(), (port.interface.clone(), segments));
        let interface = Arc::new(made(&name, &port, addresses)?).into();
        let [handed, refused, sent] = [(); 3].map(|()| AtomicU64::new(0));
        let (addresses, gone, thread) = (addresses.to_vec().into(), AtomicBool::new(false), Mutex::default());
        Ok(Host { name, port, cut, addresses, interface, handed, refused, sent, gone, thread })
    }

    /// Whether the gateway has ended or the port has gone.
    fn is_over(&self, ended: &AtomicBool) -> bool {
        ended.load(Ordering::Relaxed) || self.gone.load(Ordering::Relaxed)
    }

    /// The device of now.
    fn interface(&self) -> Arc<HostInterface> {
        self.interface.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes a device again that somebody has deleted, as soon as that is possible.
    fn renew(&self, ended: &AtomicBool) {
        while !self.is_over(ended) {
            let addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Ok(interface) = made(&self.name, &self.port, &addresses) {
                *self.interface.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(interface);
                return;
            }
            thread::sleep(PATIENCE);
        }
    }

    fn serve(
        &self,
        port: PortNumber,
        remote: &Remote,
        turn: &Mutex<()>,
        ended: &AtomicBool,
    ) -> io::Result<()> {
        let (interface, mut memory) = (self.interface(), HostMemory::default());
        while !self.is_over(ended) {
            interface.wait(PATIENCE.as_nanos() as u64);
            let frames = one_turn(port, || interface.receive(&mut memory))?;
            if frames.is_empty() {
                continue;
            }
            self.sent.fetch_add(frames.len() as u64, Ordering::Relaxed);
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            if !remote.send_from_host(frames, self.cut) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The frames of a turn, as many as there are and the turn may have.
fn one_turn(
    port: PortNumber,
    mut receive: impl FnMut() -> io::Result<Option<(Vec<u8>, VirtioHeader)>>,
) -> io::Result<Vec<Injected>> {
    let (mut frames, mut sum) = (Vec::new(), 0);
    while frames.len() < HOST_TURN_FRAMES && sum < HOST_TURN_BYTES {
        let Some((bytes, virtio)) = receive()? else { break };
        sum += bytes.len();
        frames.push(Injected { port, bytes, virtio });
    }
    Ok(frames)
}

/// Makes a device of this name for a port, with these addresses.
fn made(
    name: &str,
    (port, segments): &(String, bool),
    addresses: &[InterfaceAddress],
) -> Result<HostInterface, HostError> {
    let interface = HostInterface::make(name, port, *segments)?;
    for address in addresses {
        set_address(name, *address, true).map_err(|source| HostError::Address {
            interface: name.to_owned(),
            address: *address,
            source,
        })?;
    }
    Ok(interface)
}

/// Gives an interface an address, or takes it away.
fn set_address(interface: &str, address: InterfaceAddress, there: bool) -> io::Result<()> {
    let mut netlink = Netlink::open(&[])?;
    netlink.ask(&rtnetlink::set_address(sys::interface_index(interface)?, address, there))?;
    let end = Instant::now() + ADDRESSED;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let Some(bytes) = netlink.receive(left.as_nanos() as u64)? else {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the kernel does not answer"));
        };
        match rtnetlink::answer(bytes) {
            Some(0) => return Ok(()),
            Some(code) => return Err(io::Error::from_raw_os_error(code)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_bounded_in_frames_and_in_bytes() {
        let turn = |length: usize, mut there: usize| {
            let receive = || {
                let frame = (there > 0).then(|| (vec![0; length], VirtioHeader::NONE));
                there = there.saturating_sub(1);
                Ok(frame)
            };
            one_turn(7, receive).expect("nothing fails").len()
        };
        assert_eq!((turn(60, 0), turn(60, 3), turn(60, usize::MAX)), (0, 3, HOST_TURN_FRAMES));
        // The frame that goes beyond is the last.
        assert_eq!(turn(50_000, usize::MAX), HOST_TURN_BYTES / 50_000 + 1);
        assert!(one_turn(7, || Err(io::Error::other("gone"))).is_err());
    }
}
