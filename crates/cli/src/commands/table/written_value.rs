//! Reads values of columns as people write them, of members of groups.

use client::{ColumnSchema, ColumnType};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The value of a column that people write: what [`client::text::value`] gives, and numbers also in
/// hexadecimal with `0x`.
///
/// # Errors
/// What is wanted instead.
pub(super) fn number(column: &ColumnSchema, text: &str) -> Result<u128, String> {
    let largest = u128::MAX >> (128 - u32::from(column.bits.clamp(1, 128)));
    let whole = || match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let read = match column.kind {
        ColumnType::Uint | ColumnType::Port => whole(),
        ColumnType::Bool => text.parse().ok().map(|truth: bool| u128::from(truth)),
        ColumnType::Ip4 => text.parse().ok().map(|address: Ipv4Addr| u128::from(u32::from(address))),
        ColumnType::Ip6 => text.parse().ok().map(|address: Ipv6Addr| u128::from(address)),
        ColumnType::Mac => mac(text),
        ColumnType::Time => lang::lexer::duration(text).map(u128::from),
        ColumnType::Names => {
            let named = column.names.iter().find(|(_, name)| name == text);
            named.and_then(|(number, _)| number.parse().ok()).or_else(whole)
        }
    };
    // A sign is no digit.
    read.filter(|number| *number <= largest && !text.contains('+')).ok_or_else(|| wanted(column, largest))
}

fn wanted(column: &ColumnSchema, largest: u128) -> String {
    match column.kind {
        ColumnType::Uint => format!("a number up to {largest}"),
        ColumnType::Port => "the number of a port".to_owned(),
        ColumnType::Bool => "`true` or `false`".to_owned(),
        ColumnType::Ip4 => "an IPv4 address".to_owned(),
        ColumnType::Ip6 => "an IPv6 address".to_owned(),
        ColumnType::Mac => "a MAC address, such as 02:00:00:00:00:01,".to_owned(),
        ColumnType::Time => "a time, such as 30s or 5ms,".to_owned(),
        ColumnType::Names => {
            let names: Vec<&str> = column.names.iter().map(|(_, name)| name.as_str()).collect();
            format!("one of {}", names.join(", "))
        }
    }
}

fn mac(text: &str) -> Option<u128> {
    let pairs: Vec<&str> = text.split(':').collect();
    let two = |pair: &&str| pair.len() == 2;
    if pairs.len() != 6 || !pairs.iter().all(two) {
        return None;
    }
    pairs
        .iter()
        .try_fold(0, |number, pair| Some(number << 8 | u128::from(u8::from_str_radix(pair, 16).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::number;
    use client::text::value;
    use client::{ColumnSchema, ColumnType};

    #[test]
    fn what_is_written_is_read_again_and_nothing_beyond_a_column_is() {
        let names = vec![("0".to_owned(), "deny".to_owned()), ("3".to_owned(), "permit".to_owned())];
        let column = |kind, bits| ColumnSchema { name: String::new(), kind, bits, names: names.clone() };
        let largest = |bits: u8| u128::MAX >> (128 - u32::from(bits));
        for (kind, bits) in [
            (ColumnType::Uint, 7),
            (ColumnType::Uint, 128),
            (ColumnType::Port, 16),
            (ColumnType::Bool, 1),
            (ColumnType::Ip4, 32),
            (ColumnType::Ip6, 128),
            (ColumnType::Mac, 48),
            (ColumnType::Time, 64),
            (ColumnType::Names, 2),
        ] {
            let column = column(kind, bits);
            for at in [0, 1, 3, 1_500_000_000, largest(bits) / 3, largest(bits)].map(|at| at & largest(bits))
            {
                assert_eq!(number(&column, &value(&column, at)), Ok(at), "{kind:?}");
            }
            for wrong in ["", "-1", "+1", "x", "0x", "1 ", "0x1ffffffffffffffffffffffffffffffff"] {
                assert!(number(&column, wrong).is_err(), "{kind:?}: {wrong}");
            }
        }
        for (kind, bits, wrong) in [
            (ColumnType::Uint, 7, "128"),
            (ColumnType::Mac, 48, "02:00:00:00:00:0001"),
            (ColumnType::Mac, 48, "02:00:00:00:00:+1"),
            (ColumnType::Time, 64, "5m"),
            (ColumnType::Time, 64, "99999999999999999999h"),
            (ColumnType::Names, 2, "allow"),
        ] {
            assert!(number(&column(kind, bits), wrong).is_err(), "{wrong}");
        }
        assert_eq!(number(&column(ColumnType::Uint, 8), "0xff"), Ok(255));
    }
}
