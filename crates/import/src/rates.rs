//! Rates of rules as token buckets.
//!
//! Linux keeps the time of a token as a whole number: nft of nanoseconds, iptables of ten-thousandths of a
//! second, rounded down. Behind that, iptables counts time in ticks of the clock of Linux, of 1 to 10
//! milliseconds, so what a bucket that fills in less time lets through depends on the machine.

use policy::RuleRate;
use std::sync::Arc;
use tables::meter::{MAX_PERIOD, MeterSpec};

/// Why what depends on earlier packets otherwise than by a rate is not asked by a program.
pub(crate) const ONE_PACKET: &str = "a row of a table compares one packet";

/// The parts of a second in which iptables keeps the time of a token (`XT_LIMIT_SCALE` of Linux).
const PARTS: u64 = 10_000;
/// The longest tick of the clock of Linux in these parts.
const TICK: u64 = 100;
/// The longest time of a bucket in these parts: beyond it the 32 bits overflow in which Linux counts parts of
/// its ticks, by the length of which the time differs. This one is that of 300 ticks a second, the shortest.
const LONGEST: u64 = 111_848 * PARTS;

/// The bucket of `limit rate TOKENS/SECONDS burst BURST packets` of nft: a token comes less than a nanosecond
/// later than in Linux.
///
/// # Errors
/// Why no meter has this rate.
pub(crate) fn as_written(tokens: u64, seconds: u64, burst: u32, over: bool) -> Result<RuleRate, Arc<str>> {
    let common = common_divisor(tokens, seconds);
    let parts = tokens.checked_div(common).zip(seconds.checked_div(common));
    let parts = parts.and_then(|(tokens, seconds)| {
        let seconds = u32::try_from(seconds).ok().filter(|seconds| *seconds <= MAX_PERIOD)?;
        Some((u32::try_from(tokens).ok().filter(|tokens| *tokens > 0)?, seconds))
    });
    let Some((tokens, seconds)) = parts else {
        return Err("no meter has a rate of this size, or tokens of more than a day".into());
    };
    match MeterSpec::largest_burst(seconds) {
        _ if burst == 0 => Err("its bucket has no room for a token".into()),
        most if u64::from(burst) > most => {
            Err(format!("a meter of this rate has a burst of {most} at most").into())
        }
        _ => Ok(RuleRate { tokens, seconds, burst, over }),
    }
}

/// The bucket of `-m limit --limit COUNT/TIME --limit-burst BURST` of iptables. A token comes when iptables
/// says it does; of a time of more than 8.64 seconds it comes less than a ten-thousandth of a second later.
///
/// # Errors
/// Why no meter has this rate.
pub(crate) fn of_iptables(count: u64, seconds: u64, burst: u32) -> Result<RuleRate, Arc<str>> {
    let parts = (PARTS * seconds).checked_div(count).unwrap_or_default();
    if burst > 0 && parts * u64::from(burst) < TICK {
        return Err("its bucket fills in less than a tick of the clock of Linux, of up to 10 ms".into());
    }
    if parts * u64::from(burst) > LONGEST {
        return Err("its bucket takes more than 31 hours to fill, and Linux miscounts that".into());
    }
    let common = common_divisor(PARTS, parts);
    if parts / common <= MAX_PERIOD.into() {
        as_written(PARTS, parts, burst, false)
    } else {
        as_written(count, seconds, burst, false)
    }
}

/// The greatest number that divides both, after Euclid; 0 for 0 and 0.
fn common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { common_divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_linux() {
        let rate = |tokens, seconds, burst| RuleRate { tokens, seconds, burst, over: false };
        for (count, time, burst, bucket) in [
            (3, 60, 5, rate(1, 20, 5)),
            (10, 1, 9, rate(10, 1, 9)),
            (3, 3_600, 5, rate(1, 1_200, 5)),
            (5, 86_400, 6, rate(1, 17_280, 6)),
        ] {
            assert_eq!(as_written(count, time, burst, false), Ok(bucket));
            assert_eq!(of_iptables(count, time, burst), Ok(bucket));
        }
        assert_eq!(as_written(3, 1, 5, true), Ok(RuleRate { over: true, ..rate(3, 1, 5) }));
        // A third of a second is 3,333 parts, and 1/3000 of one is 3.
        assert_eq!(of_iptables(3, 1, 5), Ok(rate(10_000, 3_333, 5)));
        assert_eq!(of_iptables(3_000, 1, 40), Ok(rate(10_000, 3, 40)));
        // 514.2857 seconds have no meter in parts, and are those of the words but for a part.
        assert_eq!(of_iptables(7, 3_600, 5), Ok(rate(7, 3_600, 5)));
    }

    #[test]
    fn what_no_meter_has_says_why() {
        let why = |rate: Result<RuleRate, Arc<str>>| rate.expect_err("it has no bucket").to_string();
        assert!(why(of_iptables(3_000, 1, 33)).contains("tick of the clock"));
        assert!(why(of_iptables(1, 3_600, 32)).contains("31 hours"));
        assert_eq!(of_iptables(1, 3_600, 31).map(|rate| rate.burst), Ok(31));
        assert_eq!(of_iptables(3_000, 1, 34).map(|rate| rate.burst), Ok(34));
        assert!(why(of_iptables(3, 60, 0)).contains("no room"));
        assert!(why(as_written(3, 60, 0, false)).contains("no room"));
        assert!(why(as_written(0, 60, 5, false)).contains("no meter"));
        assert!(why(as_written(1, 604_800, 5, false)).contains("more than a day"));
        assert!(why(as_written(u64::MAX, 1, 5, false)).contains("of this size"));
        assert!(why(as_written(1, 86_400, 213_504, false)).contains("213503"));
        assert_eq!(as_written(1, 86_400, 213_503, false).map(|rate| rate.burst), Ok(213_503));
    }
}
