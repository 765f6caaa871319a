//! How many replies a network gets: a server must not be a weapon against the address in a forged query.

use crate::limits::{RATE_BUCKETS, SECOND};
use siphasher::sip::SipHasher24;
use std::hash::{Hash, Hasher};

/// Of the replies that are too many, one in so many goes out, short and with TC, so that a true client behind
/// a forged address can come by TCP.
const SLIP: u32 = 2;

/// What kind of reply it is: a flood of one kind leaves the others alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ReplyKind {
    /// Something about a name that there is.
    Found,
    /// No such name or record, of the whole zone: made-up names have one budget together.
    Missing,
    /// An error.
    Error,
}

/// What becomes of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowance {
    Whole,
    Truncated,
    Nothing,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: u32,
    refused: u32,
    since: u64,
}

/// Token buckets in fixed memory. Networks that share one by chance share their budget; which ones do depends
/// on a secret.
#[derive(Debug)]
pub(crate) struct Rates {
    secret: [u8; 16],
    per_second: u32,
    buckets: Vec<Bucket>,
}

impl Rates {
    pub(crate) fn new(secret: [u8; 16], per_second: u32) -> Rates {
        let full = Bucket { tokens: per_second, refused: 0, since: 0 };
        Rates { secret, per_second, buckets: vec![full; RATE_BUCKETS] }
    }

    /// Whether a reply may go to this network, which is then counted.
    pub(crate) fn allow(&mut self, network: u128, kind: ReplyKind, name: &[u8], now: u64) -> Allowance {
        let mut hasher = SipHasher24::new_with_key(&self.secret);
        (network, kind).hash(&mut hasher);
        if kind == ReplyKind::Found {
            name.iter().for_each(|byte| hasher.write_u8(byte.to_ascii_lowercase()));
        }
        let place = hasher.finish() % self.buckets.len() as u64;
        self.buckets[place as usize].take(self.per_second, now)
    }
}

impl Bucket {
    fn take(&mut self, per_second: u32, now: u64) -> Allowance {
        if per_second == 0 {
            return Allowance::Whole;
        }
        let interval = (SECOND / u64::from(per_second)).max(1);
        let elapsed = now.saturating_sub(self.since);
        if elapsed >= SECOND {
            (self.tokens, self.since) = (per_second, now);
        } else {
            let earned = elapsed / interval;
            self.tokens = (self.tokens + earned as u32).min(per_second);
            self.since += earned * interval;
        }
        if self.tokens > 0 {
            self.tokens -= 1;
            return Allowance::Whole;
        }
        self.refused = self.refused.wrapping_add(1);
        if self.refused.is_multiple_of(SLIP) { Allowance::Truncated } else { Allowance::Nothing }
    }
}
