//! Numbers with their units, and times, as people read them.

use engine::value::scaled;
pub(crate) use engine::value::seconds;
use std::time::{Duration, SystemTime};

/// A time in UTC, from nanoseconds since 1970-01-01: `2026-01-31T08:15:00.250Z`.
pub(crate) fn moment(nanoseconds: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds);
    humantime::format_rfc3339_millis(time).to_string()
}

/// A count with commas: `14,261`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the unit that fits, counted by thousands: `9.2 MB`.
pub(crate) fn bytes(number: u64) -> String {
    scaled(number as f64, 1000.0, &["bytes", "kB", "MB", "GB", "TB", "PB"])
}

/// A share of a whole in per cent: `71.8 %`; nothing of nothing is `–`.
pub(crate) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".into();
    }
    let share = 100.0 * part as f64 / whole as f64;
    if part > 0 && share < 0.05 { "< 0.1 %".into() } else { format!("{share:.1} %") }
}

/// A rate of packets, given in millions a second: `61.2 million packets/s`.
pub(crate) fn packet_rate(mpps: f64) -> String {
    if mpps >= 0.1 { format!("{mpps:.2} million packets/s") } else { format!("{:.0} packets/s", mpps * 1e6) }
}

/// A rate of bits, given in thousands of millions a second: `312.4 Gbit/s`.
pub(crate) fn bit_rate(gbps: f64) -> String {
    scaled(gbps * 1e9, 1000.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

/// A noun with its count: `1 packet`, `2 packets`.
pub(crate) fn of(number: u64, noun: &str) -> String {
    let plural = match noun.strip_suffix('y') {
        _ if number == 1 => noun.to_owned(),
        Some(stem) => format!("{stem}ies"),
        None => format!("{noun}s"),
    };
    format!("{} {plural}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(14_261), "14,261");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(bytes(999), "999 bytes");
        assert_eq!(bytes(9_212_606), "9.2 MB");
        assert_eq!(share(1, 4), "25.0 %");
        assert_eq!(share(1, 1_000_000), "< 0.1 %");
        assert_eq!(share(0, 0), "–");
        assert_eq!(moment(1_769_847_300_250_999_999), "2026-01-31T08:15:00.250Z");
        assert_eq!(moment(u64::MAX), "2554-07-21T23:34:33.709Z");
        assert_eq!(seconds(0.0041), "4.1 ms");
        assert_eq!(seconds(12.0), "12.0 s");
        assert_eq!(bit_rate(312.41), "312.4 Gbit/s");
        assert_eq!(of(1, "entry"), "1 entry");
        assert_eq!(of(2_000, "entry"), "2,000 entries");
        assert_eq!(of(0, "packet"), "0 packets");
    }
}
