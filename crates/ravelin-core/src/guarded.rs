//! Puts the source guard before a port of a container: what it refuses, no program sees.
//!
//! ```text
//! TAP queue ─► checksums finished ─► segments cut ─► guard ─► program        here the guard has the last bytes
//! ```
//!
//! The half that receives is never told that checksums may stay open or segments whole, whatever the program
//! allows. Otherwise somebody further on would write into a frame that was judged, at a place that the
//! container named.

use guard::{Guard, OwnAddresses, SourceRefusal};
use packet::Batch;
use ports::live::clock::Now;
use ports::live::{Attached, Lane, ReceiveLosses, Receiver};
use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many frames of a port were refused, for each reason.
#[derive(Default)]
pub(crate) struct Refused([AtomicU64; SourceRefusal::ALL.len()]);

impl Refused {
    fn count(&self, refusal: SourceRefusal) {
        self.0[refusal as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// By the names of the reasons, without those of which there are none.
    pub(crate) fn by_name(&self) -> BTreeMap<String, u64> {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        let named = SourceRefusal::ALL.iter().map(|refusal| refusal.name().to_owned()).zip(counts);
        named.filter(|(_, count)| *count > 0).collect()
    }
}

/// Puts a guard before each lane of a port.
pub(crate) fn guarded(port: Attached, own: OwnAddresses) -> (Attached, Arc<Refused>) {
    let guard = Guard::new(own);
    let refused = Arc::new(Refused::default());
    let each = |lane: Lane| {
        let receive = Guarded { inner: lane.receive, guard: guard.clone(), refused: refused.clone() };
        Lane { receive: Box::new(receive), send: lane.send }
    };
    (Attached { lanes: port.lanes.into_iter().map(each).collect(), ..port }, refused)
}

/// A half that receives behind a guard. It leaves out `leave_checksums_open` and `leave_segments_whole`: what
/// is behind it is never told of either.
struct Guarded {
    inner: Box<dyn Receiver>,
    guard: Guard,
    refused: Arc<Refused>,
}

/// Judges a frame of a batch.
fn judge(guard: &Guard, memory: &[u8], batch: &Batch, index: usize) -> Result<(), SourceRefusal> {
    if !batch.virtio(index).is_none() || batch.captured[index] != batch.wire[index] {
        return Err(SourceRefusal::Unfinished);
    }
    guard.judge(batch.bytes(memory, index).ok_or(SourceRefusal::TooShort)?)
}

impl Receiver for Guarded {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        let Guarded { inner, guard, refused } = self;
        let memory = inner.receive(batch, now);
        let mut kept = 0;
        for index in 0..batch.len {
            match judge(guard, memory, batch, index) {
                Ok(()) => {
                    batch.keep(kept, index);
                    kept += 1;
                }
                Err(refusal) => refused.count(refusal),
            }
        }
        batch.len = kept;
        memory
    }

    fn descriptor(&self) -> RawFd {
        self.inner.descriptor()
    }

    fn due(&self) -> Option<u64> {
        self.inner.due()
    }

    fn has_more(&self) -> bool {
        self.inner.has_more()
    }

    fn is_guarded(&self) -> bool {
        true
    }

    fn checkpoint(&mut self) -> Vec<u32> {
        self.inner.checkpoint()
    }

    fn resume(&mut self, checkpoint: &[u32]) -> bool {
        self.inner.resume(checkpoint)
    }

    fn joins(&mut self) {
        self.inner.joins();
    }

    fn leaves(&mut self) {
        self.inner.leaves();
    }

    fn losses(&mut self) -> ReceiveLosses {
        self.inner.losses()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::VirtioHeader;
    use ports::live::clock::{Clock, MachineClock};

    /// Hands over the same three frames again and again: the first one has a checksum that is to be written.
    struct Given(Vec<u8>);

    const FRAME: usize = 64;

    impl Receiver for Given {
        fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
            batch.clear();
            let open = VirtioHeader::read(&[1, 0, 0, 0, 0, 0, 26, 0, 0, 0]);
            for (start, virtio) in [(0, open), (FRAME, VirtioHeader::NONE), (2 * FRAME, VirtioHeader::NONE)] {
                batch.push(start as u64, 42, 42, 3, now.program);
                batch.leave_unfinished(virtio);
            }
            &mut self.0
        }

        fn descriptor(&self) -> RawFd {
            0
        }

        fn losses(&mut self) -> ReceiveLosses {
            ReceiveLosses::default()
        }

        fn checkpoint(&mut self) -> Vec<u32> {
            vec![7]
        }

        fn resume(&mut self, place: &[u32]) -> bool {
            place == [7]
        }
    }

    #[test]
    fn what_is_left_unfinished_or_foreign_is_refused_and_counted_and_the_rest_stays() {
        let arp = |last: u8| {
            let mut frame = vec![0xff; 6];
            frame.extend([2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, last]);
            frame.resize(FRAME, 0);
            frame
        };
        let memory = [arp(1), arp(2), arp(1), vec![0; FRAME]].concat();
        let own = OwnAddresses {
            ethernet: [2, 0, 0, 0, 0, 1],
            ipv4: vec![[10, 0, 0, 1].into()],
            ipv6: Vec::new(),
            mtu: 1500,
            advertises: false,
            dhcp_client: false,
        };
        let refused = Arc::new(Refused::default());
        let inner = Box::new(Given(memory));
        let mut guarded = Guarded { inner, guard: Guard::new(own), refused: refused.clone() };
        let mut batch = Batch::new();
        guarded.receive(&mut batch, MachineClock.now());
        assert_eq!((batch.len, batch.frame[0]), (1, 2 * FRAME as u64));
        assert!(batch.virtio(0).is_none());
        let counts: Vec<_> = refused.by_name().into_iter().collect();
        assert_eq!(counts, [("arp_sender".to_owned(), 1), ("unfinished".to_owned(), 1)]);
        // Another core goes on where this one has ended, also behind a guard.
        assert_eq!(guarded.checkpoint(), [7]);
        assert!(guarded.resume(&[7]) && !guarded.resume(&[0]));
    }
}
