//! What the lanes of an AF_PACKET port share: the watch over its interface, which brings new sockets when an interface of its name is there again.
//!
//! A socket whose interface was deleted stays without one for good, also when another of the same name is made. So a thread looks several times a
//! second whether the interface is there; when it has vanished and another has come, it opens new sockets for all lanes at once and hands them over. What
//! it does is off the path of packets, and the other ports do not notice. An interface that is switched off and on again keeps its sockets.

use super::keep::Kept;
use super::open::{self, Opened};
use crate::live::frame_ring::FrameRing;
use crate::live::presence::{Letterbox, Presence};
use crate::live::{Wanted, sys};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, SystemTime};

/// How often the thread looks.
const LOOK: Duration = Duration::from_millis(200);

/// The port.
pub(super) struct Port {
    pub(super) wanted: Wanted,
    pub(super) presence: Arc<Presence>,
    /// The interface's number in the kernel.
    index: AtomicU32,
    /// What keeps its packets from the kernel.
    kept: Mutex<Option<Kept>>,
    /// What the receiving halves are to go on with, lane by lane.
    pub(super) incoming: Vec<Letterbox<(OwnedFd, FrameRing)>>,
    /// The same for the sending halves.
    pub(super) outgoing: Vec<Letterbox<OwnedFd>>,
}

impl Port {
    /// A port that has been opened, and the watch over it, which ends when the lanes are gone.
    ///
    /// # Errors
    /// No further thread can be had.
    pub(super) fn watched(
        wanted: &Wanted,
        (index, kept): (u32, Option<Kept>),
        lanes: u16,
    ) -> io::Result<Arc<Port>> {
        let port = Arc::new(Port {
            wanted: wanted.clone(),
            presence: Arc::default(),
            index: AtomicU32::new(index),
            kept: Mutex::new(kept),
            incoming: (0..lanes).map(|_| Letterbox::new()).collect(),
            outgoing: (0..lanes).map(|_| Letterbox::new()).collect(),
        });
        let (watched, asker) = (Arc::downgrade(&port), sys::asker()?);
        let name = format!("port {}", wanted.interface);
        thread::Builder::new().name(name).spawn(move || watch(&watched, &asker))?;
        Ok(port)
    }

    /// Looks whether the interface is there, and goes on with another if there is one.
    fn look(&self, asker: &OwnedFd) {
        if self.presence.gone_since().is_none() {
            if sys::interface_exists(asker, self.index.load(Ordering::Relaxed)) {
                return;
            }
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            self.presence.gone(now.as_nanos() as u64);
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // It was at the interface that vanished.
        *kept = None;
        // Whatever is in the way now, it may be gone the next time.
        let Ok(Opened { index, lanes, kept: kept_now, .. }) =
            open::open(&self.wanted, self.incoming.len() as u16)
        else {
            return;
        };
        *kept = kept_now;
        for (lane, boxes) in lanes.into_iter().zip(self.incoming.iter().zip(&self.outgoing)) {
            boxes.1.put(lane.outgoing);
            boxes.0.put((lane.incoming, lane.ring));
        }
        self.index.store(index, Ordering::Relaxed);
        self.presence.back();
    }
}

fn watch(port: &Weak<Port>, asker: &OwnedFd) {
    while let Some(port) = port.upgrade() {
        port.look(asker);
        drop(port);
        thread::sleep(LOOK);
    }
}
