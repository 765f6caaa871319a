//! The authentication of the paper on AVES (USENIX 2001): MD5 over a message and a key that both ends share.
//! It stands here alone, as what ours is measured beside. Its key, and whether it stood in front or behind,
//! are not in the paper.

use super::by_size::{each_size, samples};
use crate::experiment::Row;
use crate::plan::LabPlan;
use crate::traffic::LabError;
use cpu_time::ThreadTime;
use std::hint::black_box;
use std::net::Ipv4Addr;

/// Bytes of the sum.
const SUM: usize = 16;
/// Bytes of a SETUP with its sum: initiator, gateway, host and serial number, and the sum.
const LENGTH: usize = 16 + SUM;
/// Messages of a time.
const MESSAGES: u32 = 256;
/// What the paper counted for the sum of one message, in cycles.
pub(super) const PAPER_SUM: f64 = 3_100.0;

/// Asks a waypoint to lead an initiator to a host behind a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PaperSetUp {
    initiator: Ipv4Addr,
    gateway: Ipv4Addr,
    host: Ipv4Addr,
    serial: u32,
}

/// The sum over bytes and the key behind them.
fn sum(bytes: &[u8], key: &[u8; SUM]) -> [u8; SUM] {
    let mut context = md5::Context::new();
    context.consume(bytes);
    context.consume(key);
    context.finalize().0
}

impl PaperSetUp {
    fn seal(&self, key: &[u8; SUM]) -> [u8; LENGTH] {
        let mut out = [0; LENGTH];
        let words = [self.initiator.to_bits(), self.gateway.to_bits(), self.host.to_bits(), self.serial];
        for (four, word) in out.chunks_exact_mut(4).zip(words) {
            four.copy_from_slice(&word.to_be_bytes());
        }
        let sum = sum(&out[..LENGTH - SUM], key);
        out[LENGTH - SUM..].copy_from_slice(&sum);
        out
    }

    /// The message; none where the sum is another, or the serial number is not above all before.
    fn open(bytes: &[u8; LENGTH], key: &[u8; SUM], latest: u32) -> Option<PaperSetUp> {
        let (message, told) = bytes.split_at(LENGTH - SUM);
        if sum(message, key) != told {
            return None;
        }
        let word = |at: usize| u32::from_be_bytes(message[4 * at..4 * at + 4].try_into().unwrap_or_default());
        let [initiator, gateway, host] = [0, 1, 2].map(|at| Ipv4Addr::from_bits(word(at)));
        let serial = word(3);
        (serial > latest).then_some(PaperSetUp { initiator, gateway, host, serial })
    }
}

/// Nanoseconds to seal a SETUP and to open it; none where one was refused.
pub(super) fn message(groups: u32) -> Option<[f64; 2]> {
    let key = [7; SUM];
    let mut spent = [0.0; 2];
    let mut latest = 0;
    for group in 0..=groups {
        let setup = |number: u32| PaperSetUp {
            initiator: Ipv4Addr::from_bits(0xcb00_7100 + number),
            gateway: Ipv4Addr::new(192, 0, 2, 50),
            host: Ipv4Addr::new(10, 0, 0, 80),
            serial: latest + 1 + number,
        };
        let begin = ThreadTime::now();
        let sealed: Vec<[u8; LENGTH]> = (0..MESSAGES).map(|number| setup(number).seal(&key)).collect();
        let sealing = begin.elapsed();
        let begin = ThreadTime::now();
        for bytes in &sealed {
            latest = PaperSetUp::open(bytes, &key, latest)?.serial;
        }
        // The first time warms up.
        if group > 0 {
            spent[0] += sealing.as_nanos() as f64;
            spent[1] += begin.elapsed().as_nanos() as f64;
        }
    }
    Some(spent.map(|spent| spent / f64::from(groups * MESSAGES)))
}

/// Nanoseconds for the sum over a packet of this size, which the paper made over each packet to a gateway.
fn packet(size: usize, turns: u32) -> f64 {
    let (packet, key) = (vec![0x45; size], [7; SUM]);
    let mut spent = 0.0;
    for turn in 0..=turns {
        let begin = ThreadTime::now();
        for _ in 0..MESSAGES {
            black_box(sum(black_box(&packet), &key));
        }
        if turn > 0 {
            spent += begin.elapsed().as_nanos() as f64;
        }
    }
    spent / f64::from(turns * MESSAGES)
}

/// What the sum takes over packets, by their size.
pub(super) fn rows(plan: &LabPlan, mhz: Option<f64>) -> Result<Vec<Row>, LabError> {
    let turns = if plan.quick { 4 } else { 64 };
    let samples = samples(plan.runs, |size| Ok(Some(packet(size, turns))))?;
    Ok(each_size("MD5 as in the paper", "over the whole packet", mhz, &samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written_and_no_other_is() {
        let key = [7; SUM];
        let [initiator, gateway, host] = [1, 2, 3].map(|last| Ipv4Addr::new(192, 0, 2, last));
        let setup = PaperSetUp { initiator, gateway, host, serial: 5 };
        let sealed = setup.seal(&key);
        assert_eq!(PaperSetUp::open(&sealed, &key, 4), Some(setup));
        assert_eq!(PaperSetUp::open(&sealed, &key, 5), None, "it came before");
        assert_eq!(PaperSetUp::open(&sealed, &[8; SUM], 4), None);
        for bit in 0..LENGTH * 8 {
            let mut changed = sealed;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(PaperSetUp::open(&changed, &key, 4), None, "bit {bit}");
        }
        // RFC 1321, A.5: the sum of "abc".
        let known =
            [0x90, 0x01, 0x50, 0x98, 0x3c, 0xd2, 0x4f, 0xb0, 0xd6, 0x96, 0x3f, 0x7d, 0x28, 0xe1, 0x7f, 0x72];
        assert_eq!(md5::compute(b"abc").0, known);
    }

    #[test]
    fn a_time_is_spent_for_messages_and_packets() {
        assert!(message(2).is_some_and(|both| both.iter().all(|time| *time > 0.0)));
        assert!(packet(36, 2) > 0.0);
    }
}
