//! The interface by which this machine itself is a host at a port: a TAP device with the Ethernet address and
//! the MTU of the port's interface.
//!
//! The device is made for the gateway alone and goes with it. Neither half waits: a packet that finds no
//! room is the loss of whoever sends it.

use super::{calls, opening_calls};
use crate::live::segments::Joiner;
use crate::live::{AttachError, TapError, sys};
use packet::VirtioHeader;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The longest packet that the machine hands over uncut, with its headers.
const LONGEST: usize = (64 << 10) + 64;
/// How many packets of the machine may wait for the gateway.
const WAITING: i32 = 1024;

/// A TAP device by which the machine is a host at a port.
#[derive(Debug)]
pub struct HostInterface {
    name: String,
    queue: OwnedFd,
}

impl HostInterface {
    /// Makes the device `name` with the Ethernet address and the MTU of the interface `port`, and switches it
    /// on. With `segments` the machine may hand over long segments and leave it to others to cut them.
    ///
    /// # Errors
    /// The name is taken, a right is missing, there are no TAP devices, or there is no interface `port`; then
    /// nothing has changed.
    pub fn make(name: &str, port: &str, segments: bool) -> Result<HostInterface, AttachError> {
        let system = |call| move |source| AttachError::System { interface: name.to_owned(), call, source };
        let asker = sys::asker().map_err(system("a socket"))?;
        let of_port = sys::interface_station(&asker, port)
            .and_then(|station| Ok((station, sys::interface_mtu(&asker, port)?)));
        let (station, mtu) = of_port.map_err(|error| match error.raw_os_error() {
            Some(libc::ENODEV | libc::ENXIO) => AttachError::NoInterface(port.to_owned()),
            _ => system("asking for the port's Ethernet address")(error),
        })?;
        let queue = opening_calls::make(name, false).map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => TapError::Rights(name.to_owned()).into(),
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => TapError::Missing(name.to_owned()).into(),
            Some(libc::EBUSY | libc::EEXIST | libc::EINVAL) => TapError::NameTaken(name.to_owned()).into(),
            _ => system("making the host interface")(error),
        })?;
        const CHECKSUMS: u32 = libc::TUN_F_CSUM;
        const TCP: u32 = CHECKSUMS | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        let offloads = if segments { TCP } else { CHECKSUMS };
        opening_calls::offloads(&queue, offloads).map_err(system("asking for unfinished packets"))?;
        opening_calls::dress(name, station, mtu).map_err(system("giving it the port's address and MTU"))?;
        // Otherwise Linux takes other addresses of a network away with the first one. Where this cannot be
        // set, that is so.
        let _ = fs::write(format!("/proc/sys/net/ipv4/conf/{name}/promote_secondaries"), "1");
        opening_calls::switch_on(name, WAITING).map_err(system("switching it on"))?;
        Ok(HostInterface { name: name.to_owned(), queue })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes over what changed at the port's interface: its Ethernet address, its MTU, and whether it has a
    /// carrier.
    ///
    /// # Errors
    /// The kernel refuses, as where the device was deleted.
    pub fn follow(&self, station: [u8; 6], mtu: u32, carrier: bool) -> io::Result<()> {
        opening_calls::dress(&self.name, station, mtu)?;
        opening_calls::carrier(&self.queue, carrier)
    }

    /// It has no carrier, since the port's interface has gone.
    ///
    /// # Errors
    /// The kernel refuses, as where the device was deleted.
    pub fn lose_carrier(&self) -> io::Result<()> {
        opening_calls::carrier(&self.queue, false)
    }

    /// Waits until the machine has sent a packet, at most for so many nanoseconds.
    pub fn wait(&self, nanoseconds: u64) {
        sys::wait_to_read(self.queue.as_raw_fd(), nanoseconds);
    }

    /// The next packet that the machine sent, with a right checksum, if there is one.
    ///
    /// # Errors
    /// The device was deleted.
    pub fn receive(&self, memory: &mut HostMemory) -> io::Result<Option<(Vec<u8>, VirtioHeader)>> {
        let mut header = [0; VirtioHeader::LEN];
        match calls::read(&self.queue, &mut header, &mut memory.0) {
            Ok(length) => {
                let packet = &mut memory.0[..length];
                let virtio = VirtioHeader::read(&header);
                virtio.complete(packet);
                Ok(Some((packet.to_vec(), virtio.without_checksum())))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands packets to the machine, consecutive ones of a stream of TCP as one segment: that costs Linux
    /// little more than one of them. Says how many it took, and how many it did not.
    pub fn send<'a>(&self, packets: impl IntoIterator<Item = (&'a [u8], VirtioHeader)>) -> (u64, u64) {
        let (mut taken, mut refused, mut joiner) = (0, 0, Joiner::default());
        let mut write = |frame: &[u8], virtio: VirtioHeader, count: usize| {
            let written = calls::write(&self.queue, &virtio.write(), frame).is_ok();
            *(if written { &mut taken } else { &mut refused }) += count as u64;
        };
        for (frame, virtio) in packets {
            joiner.add(frame, virtio, &mut write);
        }
        joiner.release(write);
        (taken, refused)
    }

    /// How many packets of the machine found no room since the device was made.
    pub fn unsent(&self) -> u64 {
        let all = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
        super::not_sent(&all, &self.name).unwrap_or(0)
    }
}

/// Room for a packet of the machine.
pub struct HostMemory(Box<[u8]>);

impl Default for HostMemory {
    fn default() -> HostMemory {
        HostMemory(vec![0; LONGEST].into())
    }
}
