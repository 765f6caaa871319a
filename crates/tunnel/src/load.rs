//! How many handshake messages are worked on: each costs several multiplications on a curve, and its sender
//! may be anybody.

use crate::limits::{
    ADDRESS_COUNTERS, PROVED_A_SECOND, PROVED_OF_ADDRESS_A_SECOND, SECOND, UNPROVED_A_SECOND,
};
use ring::hmac;
use std::net::IpAddr;

/// What to do with a handshake message whose mac1 is right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effort {
    Spend,
    /// Let the sender show that it receives at its address.
    AskForCookie,
    Refuse,
}

/// A rate with room for a quarter of a second: the generic cell rate algorithm (ITU-T I.371).
#[derive(Clone, Copy, Default)]
struct Pace {
    /// When the next message would come if all came evenly.
    next: u64,
}

impl Pace {
    fn admits(&mut self, now: u64, a_second: u64) -> bool {
        if self.next > now.saturating_add(SECOND / 4) {
            return false;
        }
        self.next = self.next.max(now).saturating_add(SECOND / a_second);
        true
    }
}

pub(crate) struct Load {
    unproved: Pace,
    proved: Pace,
    of_address: Vec<Pace>,
    /// So that nobody knows which addresses share a counter.
    key: hmac::Key,
}

impl Load {
    pub(crate) fn new(key: [u8; 32]) -> Load {
        Load {
            unproved: Pace::default(),
            proved: Pace::default(),
            of_address: vec![Pace::default(); ADDRESS_COUNTERS],
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
        }
    }

    /// Counts a message. `proved`: it shows a cookie of its address.
    pub(crate) fn weigh(&mut self, now: u64, from: IpAddr, proved: bool) -> Effort {
        if self.unproved.admits(now, UNPROVED_A_SECOND) {
            return Effort::Spend;
        }
        if !proved {
            return Effort::AskForCookie;
        }
        let cell = self.cell(from);
        let admitted = self.of_address[cell].admits(now, PROVED_OF_ADDRESS_A_SECOND)
            && self.proved.admits(now, PROVED_A_SECOND);
        if admitted { Effort::Spend } else { Effort::Refuse }
    }

    fn cell(&self, address: IpAddr) -> usize {
        let network = match address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
        };
        let tag = hmac::sign(&self.key, &network.to_be_bytes());
        let tag = tag.as_ref();
        (usize::from(tag[0]) << 8 | usize::from(tag[1])) % ADDRESS_COUNTERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(load: &mut Load, from: impl Fn(u32) -> IpAddr, proved: bool, seconds: u64) -> u64 {
        let each = SECOND / 5_000;
        let count = |i: &u64| load.weigh(i * each, from(*i as u32), proved) == Effort::Spend;
        (0..seconds * 5_000).filter(count).count() as u64
    }

    #[test]
    fn a_flood_is_worked_on_at_the_rates_of_the_limits() {
        let one = |_: u32| IpAddr::from([192, 0, 2, 1]);
        let many = |i: u32| IpAddr::from((0x0a00_0000 | i).to_be_bytes());
        let unproved = spent(&mut Load::new([1; 32]), one, false, 10);
        assert!((10 * UNPROVED_A_SECOND..11 * UNPROVED_A_SECOND).contains(&unproved), "{unproved}");
        let of_one = spent(&mut Load::new([1; 32]), one, true, 10) - unproved;
        let most = 10 * PROVED_OF_ADDRESS_A_SECOND;
        assert!((most..most + most / 10).contains(&of_one), "{of_one}");
        let of_many = spent(&mut Load::new([1; 32]), many, true, 10) - unproved;
        assert!((10 * PROVED_A_SECOND..11 * PROVED_A_SECOND).contains(&of_many), "{of_many}");
    }
}
