//! Makes TAP devices, sets them up, and makes them again where somebody has deleted them.

#[cfg(feature = "attach")]
use super::{AGAIN, Attached, Place, attached};
use super::{Device, TapError, opening_calls as calls};
#[cfg(feature = "attach")]
use crate::live::sys;
use crate::live::{AttachError, WantedPort};
#[cfg(feature = "attach")]
use packet::PortNumber;
use std::io;
use std::os::fd::OwnedFd;
#[cfg(feature = "attach")]
use std::sync::Arc;
#[cfg(feature = "attach")]
use std::sync::atomic::Ordering;

/// How many packets may wait for the gateway.
pub(super) const WAITING: i32 = 4096;

/// Makes a TAP device a port.
#[cfg(feature = "attach")]
pub(in crate::live) fn attach(
    wanted: &WantedPort,
    port: PortNumber,
    lanes: u16,
) -> Result<Attached, AttachError> {
    let device = Device::of(&wanted.interface, lanes, wanted.offloads, true);
    let (mode, queues) = device.open_all()?;
    let queues = queues.into_iter().map(Arc::new).collect();
    Ok(attached(Arc::new(device), mode, port, queues))
}

/// Makes a TAP device for another process, and says what was obtained: it goes with the last of its queues.
pub(in crate::live) fn open_queues(
    wanted: &WantedPort,
    lanes: u16,
) -> Result<(String, Vec<OwnedFd>), AttachError> {
    Device::of(&wanted.interface, lanes, wanted.offloads, true).open_all()
}

/// Whether the device of a queue is there.
pub(in crate::live) fn is_there(queue: &OwnedFd) -> bool {
    calls::is_attached(queue)
}

/// Which packets are handed over unfinished.
pub(super) enum Offloads {
    /// All that can be.
    Segments,
    /// All but segments of UDP, which older kernels cannot.
    Checksums,
}

impl Device {
    /// Opens a queue for each lane, and says what was obtained.
    fn open_all(&self) -> Result<(String, Vec<OwnedFd>), AttachError> {
        let queues: Vec<_> = (0..self.lanes).map(|_| self.open()).collect::<Result<_, _>>()?;
        let offloads = queues.first().map(|queue| self.prepare(queue)).transpose()?.flatten();
        Ok((self.mode(offloads), queues))
    }

    pub(super) fn system(&self, call: &'static str) -> impl Fn(io::Error) -> AttachError {
        let interface = self.name.clone();
        move |source| AttachError::System { interface: interface.clone(), call, source }
    }

    /// Opens a queue of it. A device that was made before for one queue alone serves one lane.
    pub(super) fn open(&self) -> Result<OwnedFd, AttachError> {
        let single = |error: io::Error| match error.raw_os_error() {
            Some(libc::EINVAL) if self.lanes == 1 => calls::open(&self.name, false),
            _ => Err(error),
        };
        calls::open(&self.name, true).or_else(single).map_err(|source| {
            let name = self.name.clone();
            match source.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => TapError::Rights(name).into(),
                Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => TapError::Missing(name).into(),
                Some(libc::EBUSY) => TapError::Taken(name).into(),
                Some(libc::EINVAL) if self.lanes > 1 && calls::open(&self.name, false).is_ok() => {
                    TapError::OneQueue(name).into()
                }
                Some(libc::EINVAL) => TapError::Taken(name).into(),
                _ => self.system("opening the TAP device")(source),
            }
        })
    }

    /// Asks for unfinished packets if they are wanted, and switches the interface on.
    pub(super) fn prepare(&self, queue: &OwnedFd) -> Result<Option<Offloads>, AttachError> {
        const CHECKSUMS: u32 = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        const SEGMENTS: u32 = CHECKSUMS | libc::TUN_F_USO4 | libc::TUN_F_USO6;
        let offloads = if !self.offloads {
            calls::offloads(queue, 0).map_err(self.system("asking for finished packets"))?;
            None
        } else if calls::offloads(queue, SEGMENTS).is_ok() {
            Some(Offloads::Segments)
        } else {
            calls::offloads(queue, CHECKSUMS).map_err(self.system("asking for unfinished packets"))?;
            Some(Offloads::Checksums)
        };
        calls::switch_on(&self.name, WAITING).map_err(self.system("switching it on"))?;
        Ok(offloads)
    }

    /// What was obtained, for people.
    pub(super) fn mode(&self, offloads: Option<Offloads>) -> String {
        let offloads = match offloads {
            Some(Offloads::Segments) => "whole segments and unfinished checksums taken",
            Some(Offloads::Checksums) => "unfinished checksums taken, segments of UDP not",
            None => "offloads not used",
        };
        format!("tap, {} queue{}, {offloads}", self.lanes, if self.lanes == 1 { "" } else { "s" })
    }
}

#[cfg(feature = "attach")]
impl Device {
    /// Makes the device again for a lane that has missed its queue, unless another lane has. Says whether the
    /// lane has one again.
    pub(super) fn open_again(&self, queue: &OwnedFd, place: &mut Place, now: u64) -> bool {
        place.again = now + AGAIN;
        let deleted = self.deleted.load(Ordering::Acquire);
        // Whatever is in the way now, it may be gone the next time.
        let replaced = self.open().and_then(|new| {
            let offloads = self.prepare(&new)?;
            sys::replace(queue, &new).map_err(self.system("replacing its queue"))?;
            Ok(offloads)
        });
        match replaced {
            Ok(offloads) => self.found(place, deleted, offloads),
            Err(error) => {
                self.presence.refuse(&error);
                return false;
            }
        }
        true
    }

    /// A lane has a queue again, of a device that had been deleted so often. Lanes that miss the same
    /// deletion later tell nobody of the return.
    pub(super) fn found(&self, place: &mut Place, deleted: u64, offloads: Option<Offloads>) {
        *place = Place { deleted, ..Place::default() };
        if self.away.fetch_sub(1, Ordering::AcqRel) == 1 {
            let deleted = self.deleted.load(Ordering::Acquire);
            match self.told.swap(deleted, Ordering::AcqRel) == deleted {
                true => drop(self.presence.whole(self.mode(offloads))),
                false => self.presence.back(self.mode(offloads)),
            }
        }
    }
}
