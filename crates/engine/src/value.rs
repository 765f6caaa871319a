//! Formats values of a program as people write them: addresses, times, names.

use ir::{Column, ColumnKind};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Numbers from here on are also shown in hexadecimal: the smallest EtherType.
const HEXADECIMAL: u128 = 0x600;

/// A value, formatted by its kind.
pub fn value(kind: &ColumnKind, value: u128) -> String {
    match kind {
        ColumnKind::Uint if value >= HEXADECIMAL => format!("{value} ({value:#x})"),
        ColumnKind::Uint => value.to_string(),
        ColumnKind::Bool => if value == 0 { "false" } else { "true" }.into(),
        ColumnKind::Ip4 => Ipv4Addr::from(value as u32).to_string(),
        ColumnKind::Ip6 => Ipv6Addr::from(value).to_string(),
        ColumnKind::Mac => mac(value),
        ColumnKind::Port => format!("port {value}"),
        ColumnKind::Time => seconds(value as f64 / 1e9),
        ColumnKind::Names(names) => match names.iter().find(|(number, _)| *number == value) {
            Some((_, name)) => name.clone(),
            None => value.to_string(),
        },
    }
}

/// Several values by their columns: `10.0.0.1, port 2`.
pub fn columns(columns: &[Column], values: &[u128]) -> String {
    let shown: Vec<String> = columns
        .iter()
        .zip(values)
        .map(|(column, &number)| match column.name.as_str() {
            "" => value(&column.kind, number),
            name => format!("{name} {}", value(&column.kind, number)),
        })
        .collect();
    shown.join(", ")
}

/// A duration in the unit that fits: `4.1 ms`.
pub fn seconds(seconds: f64) -> String {
    scaled(seconds * 1e9, 1000.0, &["ns", "µs", "ms", "s"])
}

/// A number in the unit that fits, each unit `step` times the one before.
pub fn scaled(mut number: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while number >= step && unit + 1 < units.len() {
        number /= step;
        unit += 1;
    }
    let name = units.get(unit).copied().unwrap_or_default();
    if unit == 0 { format!("{number:.0} {name}") } else { format!("{number:.1} {name}") }
}

fn mac(value: u128) -> String {
    let bytes = (value as u64).to_be_bytes();
    let pairs: Vec<String> = bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_reads_as_people_write_it() {
        assert_eq!(value(&ColumnKind::Uint, 80), "80");
        assert_eq!(value(&ColumnKind::Uint, 0x806), "2054 (0x806)");
        assert_eq!(value(&ColumnKind::Bool, 1), "true");
        assert_eq!(value(&ColumnKind::Ip4, 0x0a00_0001), "10.0.0.1");
        assert_eq!(value(&ColumnKind::Ip6, 1), "::1");
        assert_eq!(value(&ColumnKind::Mac, 0x0200_0000_0001), "02:00:00:00:00:01");
        assert_eq!(value(&ColumnKind::Port, 3), "port 3");
        assert_eq!(value(&ColumnKind::Time, 5_000_000_000), "5.0 s");
        let names = ColumnKind::Names(vec![(6, "tcp".into())]);
        assert_eq!(value(&names, 6), "tcp");
        assert_eq!(value(&names, 7), "7");
        let column = |name: &str, kind| Column { name: name.into(), kind, width: 32 };
        let pair = [column("host", ColumnKind::Ip4), column("", ColumnKind::Port)];
        assert_eq!(columns(&pair, &[0x0a00_0001, 2]), "host 10.0.0.1, port 2");
    }
}
