//! Control messages of peers that wait for the control plane: so many together, fairly shared.
//!
//! Peers are served in turn. Without room the peer that has most waiting loses its last message, so who says
//! much does not keep others from being heard.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Control messages that wait; further ones are lost, and their senders repeat them.
const WAITING: usize = 256;

/// A control message, and the number of the peer that has sent it.
pub type PeerMessage = (u32, Vec<u8>);

/// Messages by peers. A peer that has some is in `turns` once.
#[derive(Default)]
struct Waiting {
    of: HashMap<u32, VecDeque<Vec<u8>>>,
    turns: VecDeque<u32>,
    count: usize,
}

impl Waiting {
    /// Puts a message in; false if one was lost for it, which may be this one.
    fn put(&mut self, peer: u32, message: &[u8]) -> bool {
        let own = self.of.get(&peer).map_or(0, VecDeque::len);
        let is_full = self.count >= WAITING;
        if is_full {
            let most = self.of.iter().max_by_key(|(number, waiting)| (waiting.len(), **number));
            let Some((most, _)) = most.filter(|(_, waiting)| waiting.len() > own + 1) else { return false };
            let most = *most;
            if let Some(waiting) = self.of.get_mut(&most) {
                waiting.pop_back();
                self.count -= 1;
            }
        }
        let waiting = self.of.entry(peer).or_default();
        if waiting.is_empty() {
            self.turns.push_back(peer);
        }
        waiting.push_back(message.to_vec());
        self.count += 1;
        !is_full
    }

    fn take(&mut self) -> Option<PeerMessage> {
        let peer = self.turns.pop_front()?;
        let waiting = self.of.get_mut(&peer)?;
        let message = waiting.pop_front()?;
        self.count -= 1;
        if waiting.is_empty() {
            self.of.remove(&peer);
        } else {
            self.turns.push_back(peer);
        }
        Some((peer, message))
    }
}

/// Where messages of peers come in.
#[derive(Default)]
pub(super) struct Mailbox {
    waiting: Mutex<Waiting>,
    came: Condvar,
    is_taken: AtomicBool,
    lost: AtomicU64,
}

impl Mailbox {
    /// Puts a message in, if somebody takes messages and there is room.
    pub(super) fn put(&self, peer: u32, message: &[u8]) {
        let all_wait = self.is_taken.load(Ordering::Acquire) && self.waiting().put(peer, message);
        self.lost.fetch_add(u64::from(!all_wait), Ordering::Relaxed);
        self.came.notify_one();
    }

    /// How many were lost.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// From now on messages wait; nothing if somebody takes them already.
    pub(super) fn open(self: &Arc<Mailbox>) -> Option<PeerMessages> {
        (!self.is_taken.swap(true, Ordering::AcqRel)).then(|| PeerMessages(self.clone()))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The control messages of peers of a tunnel, for who takes them.
pub struct PeerMessages(Arc<Mailbox>);

impl PeerMessages {
    /// The next one, if one comes within this time.
    pub fn next(&self, within: Duration) -> Option<PeerMessage> {
        let waiting = self.0.came.wait_timeout_while(self.0.waiting(), within, |all| all.count == 0);
        waiting.unwrap_or_else(PoisonError::into_inner).0.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_much_does_not_keep_others_from_being_heard() {
        let mailbox = Arc::<Mailbox>::default();
        mailbox.put(9, b"nobody listens");
        let messages = mailbox.open().expect("nobody takes them yet");
        assert!(mailbox.open().is_none());
        for number in 0..1_000_u16 {
            mailbox.put(1, &number.to_be_bytes());
        }
        for peer in 2..=4 {
            mailbox.put(peer, b"first");
            mailbox.put(peer, b"second");
        }
        assert_eq!(mailbox.lost(), 1 + (1_000 - 256) + 6);
        let taken: Vec<PeerMessage> = std::iter::from_fn(|| messages.next(Duration::ZERO)).collect();
        assert_eq!(taken.len(), 256, "no more than there may be");
        let peers: Vec<u32> = taken.iter().take(9).map(|(peer, _)| *peer).collect();
        assert_eq!(peers, [1, 2, 3, 4, 1, 2, 3, 4, 1], "in turn");
        let of = |peer: u32| taken.iter().filter(move |(from, _)| *from == peer).map(|(_, message)| message);
        assert!(of(3).eq([&b"first"[..], b"second"]), "each in its order");
        let first: Vec<Vec<u8>> = (0..250_u16).map(|number| number.to_be_bytes().to_vec()).collect();
        assert!(of(1).eq(&first), "of who has most the last ones are lost");
        assert_eq!(messages.next(Duration::ZERO), None);
    }

    #[test]
    fn many_who_say_much_have_equal_parts() {
        let mailbox = Arc::<Mailbox>::default();
        let messages = mailbox.open().expect("nobody takes them yet");
        for round in 0..100_u8 {
            (0..300).for_each(|peer| mailbox.put(peer, &[round]));
        }
        let mut counts = [0; 300];
        while let Some((peer, _)) = messages.next(Duration::ZERO) {
            counts[peer as usize] += 1;
        }
        assert_eq!(counts.iter().sum::<u32>(), 256);
        assert!(counts.iter().all(|count| *count <= 1), "{counts:?}");
    }
}
