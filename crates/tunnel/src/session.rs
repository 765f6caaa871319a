//! Sessions, and the numbers by which datagrams name them.

use crate::cipher::{CipherSuite, DataKey};
use crate::keys::PublicKey;
use crate::limits::{MOST_PEERS, REJECT_AFTER, REJECT_AFTER_MESSAGES, REKEY_AFTER, REKEY_AFTER_MESSAGES};
use crate::macs::MacBytes;
use crate::message::{DATA_HEADER, DATA_TAG, put, put_data_header};
use crate::window::ReplayWindow;

/// The keys of both directions, and what they have carried.
pub(crate) struct Session {
    /// The slot of the peer.
    pub(crate) peer: usize,
    /// The number that the peer knows it by.
    pub(crate) remote: u32,
    pub(crate) seal_key: DataKey,
    pub(crate) open_key: DataKey,
    pub(crate) suite: CipherSuite,
    pub(crate) sent: u64,
    pub(crate) window: ReplayWindow,
    /// This end wrote the initiation.
    pub(crate) is_ours: bool,
    pub(crate) born: u64,
    pub(crate) our_key: PublicKey,
    pub(crate) peer_key: PublicKey,
    /// That of our response, if the session began with one.
    pub(crate) mac1: MacBytes,
}

impl Session {
    pub(crate) fn is_expired(&self, now: u64) -> bool {
        now.saturating_sub(self.born) >= REJECT_AFTER
    }

    pub(crate) fn can_seal(&self, now: u64) -> bool {
        !self.is_expired(now) && self.sent < REJECT_AFTER_MESSAGES
    }

    /// Whether an end that sends should begin the next session. After time only the one does so that has
    /// begun this one, so that both do not do it at once.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.sent >= REKEY_AFTER_MESSAGES || self.is_ours && now.saturating_sub(self.born) >= REKEY_AFTER
    }

    /// Writes a data message and returns its length. The caller has seen that it can seal, and that `out` has
    /// room.
    pub(crate) fn seal(&mut self, before: &[u8], payload: &[u8], out: &mut [u8]) -> usize {
        let length = DATA_HEADER + before.len() + payload.len() + DATA_TAG;
        let datagram = &mut out[..length];
        put(datagram, DATA_HEADER, before);
        put(datagram, DATA_HEADER + before.len(), payload);
        self.seal_in_place(datagram)
    }

    /// The same for a payload that stands in its place already, between room for header and tag.
    pub(crate) fn seal_in_place(&mut self, datagram: &mut [u8]) -> usize {
        put_data_header(datagram, self.remote, self.sent);
        self.seal_key.seal(self.sent, datagram);
        self.sent += 1;
        datagram.len()
    }
}

/// What a session number stands for.
pub(crate) enum Holder {
    Free,
    /// An initiation of ours to the peer in this slot, which is not answered yet.
    Handshake(usize),
    Session(Box<Session>),
}

/// A peer has at most four: its current, previous and next session, and a handshake.
const MOST_NUMBERS: usize = 4 * MOST_PEERS;
const _: () = assert!(MOST_NUMBERS <= 1 << 16, "a place has 16 bits");

/// Places of sessions. A number is its place, and 16 random bits that tell it from those before it.
#[derive(Default)]
pub(crate) struct SessionNumbers {
    places: Vec<(u16, Holder)>,
    free: Vec<u16>,
}

impl SessionNumbers {
    pub(crate) fn claim(&mut self, random: u16, holder: Holder) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, Holder::Free));
            u16::try_from(self.places.len() - 1).expect("a peer holds four numbers at most")
        });
        self.places[usize::from(place)] = (random, holder);
        u32::from(random) << 16 | u32::from(place)
    }

    /// Frees a number and gives up what it stood for.
    pub(crate) fn release(&mut self, number: u32) {
        if let Some(place) = self.place(number) {
            self.places[place].1 = Holder::Free;
            self.free.push(number as u16);
        }
    }

    /// Lets a number stand for something else.
    pub(crate) fn replace(&mut self, number: u32, holder: Holder) {
        if let Some(place) = self.place(number) {
            self.places[place].1 = holder;
        }
    }

    pub(crate) fn holder(&self, number: u32) -> &Holder {
        self.place(number).map_or(&Holder::Free, |place| &self.places[place].1)
    }

    pub(crate) fn session(&self, number: u32) -> Option<&Session> {
        match self.holder(number) {
            Holder::Session(session) => Some(session),
            _ => None,
        }
    }

    pub(crate) fn session_mut(&mut self, number: u32) -> Option<&mut Session> {
        let place = self.place(number)?;
        match &mut self.places[place].1 {
            Holder::Session(session) => Some(session),
            _ => None,
        }
    }

    /// How many stand for something.
    pub(crate) fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }

    fn place(&self, number: u32) -> Option<usize> {
        let place = usize::from(number as u16);
        let (tag, holder) = self.places.get(place)?;
        (u32::from(*tag) == number >> 16 && !matches!(holder, Holder::Free)).then_some(place)
    }
}
