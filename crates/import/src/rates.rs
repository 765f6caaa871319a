//! Rates of rules as token buckets.
//!
//! Linux keeps the time of a token as a whole number: nft of nanoseconds, iptables of ten-thousandths of a
//! second, rounded down. Of longer times, of a token or a full bucket, iptables keeps whole seconds; from
//! where on depends on the clock of Linux. It counts time in ticks of this clock, of 1 to 10 milliseconds, so
//! what a bucket that fills in less time lets through depends on the machine.

use policy::RuleRate;
use std::sync::Arc;
use tables::meter::{MAX_PERIOD, MeterSpec};

/// Why what depends on earlier packets otherwise than by a rate is not asked by a program.
pub(crate) const ONE_PACKET: &str = "a row of a table compares one packet";

/// The parts of a second in which iptables keeps the time of a token (the constant of this name in Linux).
const XT_LIMIT_SCALE: u64 = 10_000;
/// The longest tick of the clock of Linux in these parts.
const TICK: u64 = 100;
/// Linux keeps the time of a token in units of at most 1/25,600 s, whose length depends on its clock. Below
/// this many parts that rounding matters, but for multiples of `EXACT`, where there is none; from there on
/// the difference is less than a part in 256.
const ROUNDED_BELOW: u64 = 100;
const EXACT: u64 = 25;
/// The longest time of a bucket in these parts: beyond it the 32 bits overflow in which Linux counts parts of
/// its ticks, by the length of which the time differs. This one is that of 300 ticks a second, the shortest.
const LONGEST: u64 = 111_848 * XT_LIMIT_SCALE;
/// The times in parts from which on Linux divides before it multiplies, so that whole seconds remain: with
/// 300 ticks a second, and with 100.
const WHOLE_SECONDS_FROM: [u64; 2] = [111_848, 167_772];

/// The bucket of `limit rate TOKENS/SECONDS burst BURST packets` of nft: a token comes less than a nanosecond
/// later than in Linux.
///
/// # Errors
/// Why no meter has this rate.
pub(crate) fn of_nft(tokens: u64, seconds: u64, burst: u32, over: bool) -> Result<RuleRate, Arc<str>> {
    bucket(tokens, seconds, burst.into()).map(|rate| RuleRate { over, ..rate })
}

/// The bucket of `-m limit --limit COUNT/TIME --limit-burst BURST` of iptables. A token comes when iptables
/// says it does; of a time from 8.64 to 11.18 seconds it may come a ten-thousandth of a second later.
///
/// # Errors
/// Why no meter has this rate.
pub(crate) fn of_iptables(count: u64, seconds: u64, burst: u32) -> Result<RuleRate, Arc<str>> {
    let parts = (XT_LIMIT_SCALE * seconds).checked_div(count).unwrap_or_default();
    let full = parts * u64::from(burst);
    if burst > 0 && full < TICK {
        return Err("its bucket fills in less than a tick of the clock of Linux, of up to 10 ms".into());
    }
    if parts < ROUNDED_BELOW && !parts.is_multiple_of(EXACT) {
        return Err(
            "Linux keeps so short a time of a token in parts of a tick, and their length depends on its \
                    clock"
                .into(),
        );
    }
    if full > LONGEST {
        return Err("its bucket takes more than 31 hours to fill, and Linux miscounts that".into());
    }
    let (token, full) = (counted(parts)?, counted(full)?);
    let Some((burst, 0)) = full.checked_div(token).map(|burst| (burst, full % token)) else {
        return Err(
            "Linux counts whole seconds of longer times, and its bucket holds a part of a token then".into(),
        );
    };
    if token / common_divisor(XT_LIMIT_SCALE, token) <= MAX_PERIOD.into() {
        bucket(XT_LIMIT_SCALE, token, burst)
    } else {
        bucket(count, seconds, burst)
    }
}

/// What Linux makes of a time in parts for iptables (`user2credits`).
fn counted(parts: u64) -> Result<u64, Arc<str>> {
    let [first, last] = WHOLE_SECONDS_FROM;
    match parts % XT_LIMIT_SCALE {
        rest if rest == 0 || parts <= first => Ok(parts),
        _ if parts <= last => {
            Err("whether Linux counts its time of 11 to 17 seconds in whole ones depends on its clock".into())
        }
        rest => Ok(parts - rest),
    }
}

/// The bucket of this size to which so many tokens come in so many seconds.
fn bucket(tokens: u64, seconds: u64, burst: u64) -> Result<RuleRate, Arc<str>> {
    let common = common_divisor(tokens, seconds);
    let parts = tokens.checked_div(common).zip(seconds.checked_div(common));
    let parts = parts.and_then(|(tokens, seconds)| {
        let seconds = u32::try_from(seconds).ok().filter(|seconds| *seconds <= MAX_PERIOD)?;
        Some((u32::try_from(tokens).ok().filter(|tokens| *tokens > 0)?, seconds))
    });
    let Some((tokens, seconds)) = parts else {
        return Err("no meter has a rate of this size, or tokens of more than a day".into());
    };
    let most = MeterSpec::largest_burst(seconds);
    match u32::try_from(burst) {
        Ok(0) => Err("its bucket has no room for a token".into()),
        Ok(burst) if u64::from(burst) <= most => Ok(RuleRate { tokens, seconds, burst, over: false }),
        _ => Err(format!("a meter of this rate has a burst of {most} at most").into()),
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
            assert_eq!(of_nft(count, time, burst, false), Ok(bucket));
            assert_eq!(of_iptables(count, time, burst), Ok(bucket));
        }
        assert_eq!(of_nft(3, 1, 5, true), Ok(RuleRate { over: true, ..rate(3, 1, 5) }));
        // A third of a second is 3,333 parts.
        assert_eq!(of_iptables(3, 1, 5), Ok(rate(10_000, 3_333, 5)));
        assert_eq!(of_iptables(400, 1, 40), Ok(rate(400, 1, 40)));
        // 10.8761 seconds have no meter in parts, and are those of the words but for a part.
        assert_eq!(of_iptables(331, 3_600, 1), Ok(rate(331, 3_600, 1)));
        // 15 seconds are whole ones whatever the clock is.
        assert_eq!(of_iptables(20, 1, 300), Ok(rate(20, 1, 300)));
        // Of 18.9 and 18.6 seconds Linux keeps 18: the bucket holds a token less than is written.
        assert_eq!(of_iptables(4_000, 3_600, 21), Ok(rate(10, 9, 20)));
        assert_eq!(of_iptables(100, 60, 31), Ok(rate(5, 3, 30)));
        // Of 73.4693 seconds it keeps 73, so tokens come earlier than is written.
        assert_eq!(of_iptables(49, 3_600, 1), Ok(rate(1, 73, 1)));
    }

    #[test]
    fn what_no_meter_has_says_why() {
        let why = |rate: Result<RuleRate, Arc<str>>| rate.expect_err("it has no bucket").to_string();
        assert!(why(of_iptables(3_000, 1, 33)).contains("tick of the clock"));
        assert!(why(of_iptables(1, 3_600, 32)).contains("31 hours"));
        assert_eq!(of_iptables(1, 3_600, 31).map(|rate| rate.burst), Ok(31));
        assert!(why(of_iptables(400, 1, 3)).contains("tick of the clock"));
        assert_eq!(of_iptables(400, 1, 4).map(|rate| rate.burst), Ok(4));
        assert!(why(of_iptables(3_000, 1, 34)).contains("parts of a tick"));
        assert!(why(of_iptables(101, 1, 5)).contains("parts of a tick"));
        assert!(of_iptables(100, 1, 5).is_ok() && of_iptables(99, 1, 5).is_ok());
        // 42 of 42.8570 seconds, and 8.5714 a token.
        assert!(why(of_iptables(7, 60, 5)).contains("a part of a token"));
        assert!(why(of_iptables(3, 1, 100)).contains("a part of a token"));
        assert!(why(of_iptables(49, 3_600, 5)).contains("a part of a token"));
        // 11.1848 seconds are counted in parts everywhere, and 16.7772 nowhere but with 100 ticks a second.
        assert!(why(of_iptables(3, 1, 50)).contains("depends on its clock"));
        assert_eq!(counted(111_848), Ok(111_848));
        assert!(counted(111_849).is_err() && counted(167_772).is_err());
        assert_eq!(counted(167_773), Ok(160_000));
        assert!(why(of_iptables(3, 60, 0)).contains("no room"));
        assert!(why(of_nft(3, 60, 0, false)).contains("no room"));
        assert!(why(of_nft(0, 60, 5, false)).contains("no meter"));
        assert!(why(of_nft(1, 604_800, 5, false)).contains("more than a day"));
        assert!(why(of_nft(u64::MAX, 1, 5, false)).contains("of this size"));
        assert!(why(of_nft(1, 86_400, 213_504, false)).contains("213503"));
        assert_eq!(of_nft(1, 86_400, 213_503, false).map(|rate| rate.burst), Ok(213_503));
    }
}
