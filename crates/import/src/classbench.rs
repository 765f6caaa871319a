//! ClassBench filter sets and header traces (D. Taylor and J. Turner, INFOCOM 2005).
//!
//! ```text
//! filter   @src/len <tab> dst/len <tab> low : high <tab> low : high <tab> proto/mask [<tab> flags/mask]
//! header   src dst sport dport proto [anything …]            five numbers, or dotted addresses
//! ```
//!
//! A filter says which packets it means and nothing about what happens to them.

#[cfg(test)]
mod tests;

use crate::ImportError;
use crate::address::{self, AddressFamily, host_mask};
use crate::region::{Region, Set};
use crate::ruleset::{Decision, ImportedRules, Part};
use crate::text::{Line, Word, each_line, shown};

/// What of a filter is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassBenchOptions {
    /// Whether the last field, flags of the transport header, is a column. The literature and its traces know
    /// five fields, so usually it is not.
    pub flags: bool,
}

/// A header of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassBenchHeader {
    /// `src`, `dst`, `sport`, `dport`, `proto`.
    pub key: [u32; 5],
    /// The last number of the line, where there are more than five: in the traces that come with an answer it
    /// is the first filter that fits, from 0, or -1.
    pub last: Option<i64>,
}

/// Reads a filter set.
///
/// # Errors
/// The first line that is no filter, and a last line without an end, as the file may be cut there.
pub fn read(text: &[u8], options: &ClassBenchOptions) -> Result<ImportedRules, ImportError> {
    let decisions = each_line(text, |line| filter(line, options))?;
    Ok(ImportedRules::of(AddressFamily::V4, decisions, None))
}

/// Reads a trace. Lines that start with `#` are comments.
///
/// # Errors
/// As [`read`].
pub fn read_trace(text: &[u8]) -> Result<Vec<ClassBenchHeader>, ImportError> {
    each_line(text, header)
}

/// The rules as [`read`] takes them.
///
/// # Errors
/// The line of the first rule that is no filter: ClassBench has five fields, of which addresses are prefixes,
/// ports ranges and the protocol one or any, and flags.
pub fn write(rules: &ImportedRules) -> Result<String, ImportError> {
    let mut text = String::new();
    let flags = rules.column(Part::Flags.name());
    let suits =
        rules.family() == AddressFamily::V4 && rules.columns.len() == 5 + usize::from(flags.is_some());
    for rule in &rules.rules {
        let refuse = |what: &str| {
            let advice =
                "a filter has prefixes of IPv4 addresses, ranges of ports, a protocol or any, and flags";
            ImportError::new(rule.line, 1, what, advice)
        };
        if !suits {
            return Err(refuse("the rule has columns that a filter has not"));
        }
        let fields = &rule.rule.fields;
        let address = |index: usize| {
            let (value, mask) = mask_of(fields[index], 32)?;
            let length = mask.count_ones() as u8;
            let is_prefix = mask == host_mask(32, 0) & !host_mask(32, length);
            is_prefix.then(|| address::print_prefix(AddressFamily::V4, value, length))
        };
        let ports = |index: usize| range_of(fields[index], 16).map(|(low, high)| format!("{low} : {high}"));
        let hexadecimal = |index: usize, width: u8, digits: usize| {
            let (value, mask) = mask_of(fields[index], width)?;
            Some(format!("0x{value:0digits$X}/0x{mask:0digits$X}"))
        };
        let flags = flags.map_or(Some("0x0000/0x0000".to_owned()), |index| hexadecimal(index, 16, 4));
        let words = [address(0), address(1), ports(2), ports(3), hexadecimal(4, 8, 2), flags];
        let names = ["the source", "the destination", "sport", "dport", "proto", "flags"];
        text.push('@');
        for (word, name) in words.into_iter().zip(names) {
            text += &word.ok_or_else(|| refuse(&format!("{name} is nothing that a filter can say")))?;
            text.push('\t');
        }
        text.push('\n');
    }
    Ok(text)
}

fn mask_of(field: tables::rules::RuleField, width: u8) -> Option<(u128, u128)> {
    Set::of(field, width).as_mask(width)
}

fn range_of(field: tables::rules::RuleField, width: u8) -> Option<(u128, u128)> {
    match Set::of(field, width) {
        Set::Range { low, high } => Some((low, high)),
        Set::Masked { .. } => None,
    }
}

const SHAPE: &str = "a filter is written `@src/len dst/len low : high low : high proto/mask flags/mask`";

fn filter(line: Line<'_>, options: &ClassBenchOptions) -> Result<Decision, ImportError> {
    let mut words = line.words();
    let mut next =
        |what: &str| words.next().ok_or_else(|| line.error_at_end(format!("{what} is missing"), SHAPE));
    let first = next("the source")?;
    if !first.text.starts_with('@') {
        return Err(first.error(format!("`{}` does not start with `@`", shown(first.text)), SHAPE));
    }
    let source = prefix(first.from(1))?;
    let destination = prefix(next("the destination")?)?;
    let mut range = || {
        let (low, colon, high) = (next("a port")?, next("`:`")?, next("a port")?);
        let (first, last) = (low.number(0xffff, "port")?, high.number(0xffff, "port")?);
        if colon.text != ":" {
            return Err(colon.error(format!("`{}` is not `:`", shown(colon.text)), SHAPE));
        }
        if first > last {
            return Err(
                low.error(format!("the range {first} : {last} is empty"), "write the smaller port first")
            );
        }
        Ok(Set::Range { low: first.into(), high: last.into() })
    };
    let (source_ports, destination_ports) = (range()?, range()?);
    let protocol = masked(next("the protocol")?, 8)?;
    let flags = match next("the flags") {
        Ok(word) => Some(masked(word, 16)?),
        Err(_) => None,
    };
    if let Some(word) = words.next() {
        return Err(word.too_many(SHAPE));
    }
    let sets = [
        (Part::Source, Some(source)),
        (Part::Destination, Some(destination)),
        (Part::SourcePort, Some(source_ports)),
        (Part::DestinationPort, Some(destination_ports)),
        (Part::Protocol, Some(protocol)),
        (Part::Flags, flags.filter(|_| options.flags)),
    ];
    let mut region = Region::any(AddressFamily::V4);
    for (part, set) in sets {
        if let Some(set) = set {
            region = region.with(part, set);
        }
    }
    Ok(Decision { region, allow: None, log: false, line: line.number, text: line.text.trim().into() })
}

fn prefix(word: Word<'_>) -> Result<Set, ImportError> {
    match address::parse_prefix(word.text.as_bytes()) {
        Ok((AddressFamily::V4, bits, length)) => Ok(Set::prefix(32, bits, length)),
        Ok((AddressFamily::V6, ..)) => Err(word.error("a filter has IPv4 addresses", SHAPE)),
        Err(fault) => Err(word.error(format!("`{}` {fault}", shown(word.text)), SHAPE)),
    }
}

fn masked(word: Word<'_>, width: u8) -> Result<Set, ImportError> {
    let most = host_mask(width, 0) as u64;
    let Some((value, mask)) = word.split('/') else {
        return Err(word.error(format!("`{}` has no `/`", shown(word.text)), SHAPE));
    };
    let (value, mask) = (value.number(most, "value")?, mask.number(most, "mask")?);
    if value & !mask != 0 {
        let what = format!("`{}` has bits outside of its mask", shown(word.text));
        return Err(word.error(what, "clear them, or widen the mask"));
    }
    Ok(Set::masked(width, value.into(), mask.into()))
}

fn header(line: Line<'_>) -> Result<ClassBenchHeader, ImportError> {
    const SHAPE: &str = "a header is written `src dst sport dport proto`";
    let words: Vec<Word<'_>> = line.words().collect();
    let mut key = [0; 5];
    for (index, value) in key.iter_mut().enumerate() {
        let Some(word) = words.get(index) else {
            return Err(line.error_at_end(format!("there are {index} numbers and not five"), SHAPE));
        };
        let most = [u32::MAX, u32::MAX, 0xffff, 0xffff, 0xff][index];
        *value = match address::parse_v4(word.text.as_bytes()).filter(|_| index < 2) {
            Some(address) => address,
            // At most 32 bits wide, as `most` is.
            None => word.number(most.into(), "number of this column")? as u32,
        };
    }
    let last = match words[5..].last() {
        None => None,
        Some(word) => Some(
            word.text
                .parse()
                .map_err(|_| word.error(format!("`{}` is no number", shown(word.text)), SHAPE))?,
        ),
    };
    Ok(ClassBenchHeader { key, last })
}
