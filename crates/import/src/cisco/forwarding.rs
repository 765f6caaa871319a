//! Forwarding tables as `show ip cef` prints them.
//!
//! ```text
//! Prefix               Next Hop             Interface
//! 10.3.0.0/16          172.20.4.129         Vlan2
//! 171.64.0.107/32      172.20.10.3          Vlan11
//!                      172.20.10.6          Vlan11        a second way to the prefix above
//! 10.0.0.0/8           attached             Null0
//! 0.0.0.0/8            drop
//! ```
//!
//! The next hop of a route is all that stands behind the prefix; several ways are joined by a comma.

use crate::ImportError;
use crate::address::{self, AddressFamily};
use crate::routes::{ImportedRoutes, refuse_duplicates};
use crate::text::{Line, Word, lines, refuse_cut, shown};
use std::collections::HashMap;
use tables::lpm::Prefix;

const SHAPE: &str = "a line is written `PREFIX NEXT-HOP [INTERFACE]`";

/// Reads a forwarding table.
///
/// # Errors
/// A first line that is not the heading; the first line that is no route, and a prefix that is there twice; a
/// last line without an end, as the file may be cut there.
pub fn forwarding_table(text: &[u8]) -> Result<ImportedRoutes, ImportError> {
    let mut lines = lines(text)?;
    let heading = lines.next().unwrap_or(Line { number: 1, text: "" });
    if !heading.words().map(|word| word.text).eq(["Prefix", "Next", "Hop", "Interface"]) {
        let advice = "a forwarding table starts with `Prefix  Next Hop  Interface`";
        return Err(ImportError::new(heading.number, 1, "the heading is missing", advice));
    }
    refuse_cut(text)?;
    let mut routes = ImportedRoutes { family: AddressFamily::V4, ..ImportedRoutes::default() };
    let mut ways: Vec<String> = Vec::new();
    for line in lines {
        let mut words: Vec<Word<'_>> = line.words().collect();
        if words.is_empty() {
            continue;
        }
        let another = line.text.starts_with(' ');
        let prefix = if another { None } else { Some(prefix(words.remove(0))?) };
        let way = match &words[..] {
            [] => return Err(line.error_at_end("the next hop is missing", SHAPE)),
            [hop] => hop.text.to_owned(),
            [hop, interface] => format!("{} {}", hop.text, interface.text),
            [_, _, more, ..] => return Err(more.too_many(SHAPE)),
        };
        match (prefix, ways.last_mut()) {
            (Some(prefix), _) => {
                routes.entries.push((prefix, 0));
                routes.lines.push(line.number);
                ways.push(way);
            }
            (None, Some(ways)) => {
                ways.push_str(", ");
                ways.push_str(&way);
            }
            (None, None) => {
                return Err(ImportError::new(line.number, 1, "there is no prefix above this way", SHAPE));
            }
        }
    }
    let mut numbers: HashMap<String, u32> = HashMap::new();
    for (entry, way) in routes.entries.iter_mut().zip(ways) {
        let next = routes.next_hops.len() as u32;
        entry.1 = *numbers.entry(way).or_insert_with_key(|way| {
            routes.next_hops.push(way.clone());
            next
        });
    }
    refuse_duplicates(&routes, "line")?;
    Ok(routes)
}

fn prefix(word: Word<'_>) -> Result<Prefix, ImportError> {
    match address::parse_prefix(word.text.as_bytes()) {
        Ok((AddressFamily::V4, bits, length)) => Ok(Prefix { bits, length }),
        Ok((AddressFamily::V6, ..)) => {
            Err(word.error("the prefix is IPv6", "such a table has IPv4 prefixes"))
        }
        Err(fault) => Err(word.error(format!("`{}` {fault}", shown(word.text)), SHAPE)),
    }
}
