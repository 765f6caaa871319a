//! Files of routes, rules and patterns as entries of a table of a program, and files of members for its groups.
//!
//! What a file holds is fitted to what the table declares: keys by the names of the columns, or by their order where they have none;
//! values by their type. A table that has no place for something that a line means refuses the line.

use crate::address::Family;
use crate::text::{parse_number, place, refuse_cut, utf8};
use crate::{ImportError, RuleSet, classbench, iptables, literals, mrt, nft, routes, snort};
use lang::diagnostic::Diagnostic;
use lang::ir::{BytePattern, Column, Entry, Group, GroupMember, Kind, Match, Table, TableKind};
use lang::lexer::LONGEST_TEXT;
use tables::lpm::Prefix;
use tables::rules::Field;

/// Reads a file for a table. `format` is empty for the language's own entries.
///
/// # Errors
/// The first line that cannot be kept, or that does not suit the table; nothing is kept then.
pub fn read(bytes: &[u8], format: &str, table: &Table) -> Result<Vec<Entry>, ImportError> {
    match format {
        "" => own(bytes, table),
        "routes" => routes_of(&routes::read(bytes)?, table),
        "mrt" => {
            let dump = mrt::read(bytes)?;
            routes_of(if address_width(table) == 32 { &dump.v4 } else { &dump.v6 }, table)
        }
        "classbench" => rules_of(&classbench::read(bytes, &classbench::Options::default())?, table),
        "iptables" => rules_of(&iptables::read(bytes, &iptables::Options::default())?, table),
        "nft" => rules_of(&nft::read(bytes, &nft::Options::default())?, table),
        "snort" => {
            let set = snort::read(bytes)?;
            let sid = |pattern: &tables::patterns::Pattern| {
                set.rules.get(pattern.value as usize).map_or(0, |rule| u128::from(rule.sid))
            };
            let lines = set
                .contents
                .iter()
                .map(|content| set.rules.get(content.rule as usize).map_or(0, |rule| rule.line));
            patterns_of(&set.patterns(), sid, lines, table)
        }
        "literals" => {
            let patterns = literals::read(bytes)?;
            let lines: Vec<u32> = (2..).take(patterns.len()).collect();
            patterns_of(&patterns, |pattern| u128::from(pattern.value), lines.into_iter(), table)
        }
        other => Err(unsuited(1, format!("there is no format `{other}`"))),
    }
}

/// Reads a file of members for a group, written as in the program.
///
/// # Errors
/// The first member that cannot be read, does not suit the group, or has no room in it; nothing is kept then.
pub fn read_members(bytes: &[u8], group: &Group) -> Result<Vec<GroupMember>, ImportError> {
    let advice = "let members beyond that join while the program runs";
    as_in_a_program(bytes, advice, |text| lang::entries::read_members(text, group))
}

fn unsuited(line: u32, what: impl Into<String>) -> ImportError {
    ImportError::new(line, 1, what, "compare the file with the declaration of the table")
}

fn own(bytes: &[u8], table: &Table) -> Result<Vec<Entry>, ImportError> {
    let advice =
        "take a format without that limit, such as `as routes`, or insert the rest while the program runs";
    as_in_a_program(bytes, advice, |text| lang::entries::read(text, table))
}

/// What `read` makes of a text of the language; `advice` says what to do where it is too long.
fn as_in_a_program<T>(
    bytes: &[u8],
    advice: &str,
    read: impl Fn(&str) -> Result<T, Vec<Diagnostic>>,
) -> Result<T, ImportError> {
    if bytes.len() > LONGEST_TEXT {
        let what = format!(
            "entries as in a program are read up to {LONGEST_TEXT} bytes, and these take {}",
            bytes.len()
        );
        return Err(ImportError::new(1, 1, what, advice));
    }
    refuse_cut(bytes)?;
    let text = utf8(bytes)?;
    read(text).map_err(|faults| {
        let Some(fault) = faults.first() else { return unsuited(1, "the entries are faulty") };
        let (line, column) = place(bytes, fault.primary.span.start as usize);
        let advice = fault.help.clone().unwrap_or_else(|| fault.primary.text.clone());
        // What the language says in whole sentences becomes a part of one here.
        ImportError::new(line, column, fault.headline.trim_end_matches('.'), advice.trim_end_matches('.'))
    })
}

/// The width of a table's last key column.
fn address_width(table: &Table) -> u8 {
    table.keys.last().map_or(0, |column| column.width)
}

fn routes_of(routes: &routes::Routes, table: &Table) -> Result<Vec<Entry>, ImportError> {
    let width = if routes.family == Family::V4 { 32 } else { 128 };
    if table.kind != TableKind::Lpm || table.keys.len() != 1 || address_width(table) != width {
        let what = format!("routes of {} do not suit `{}`", routes.family.name(), table.name);
        return Err(unsuited(1, format!("{what}, which is no table of `lpm` over such addresses")));
    }
    let [column] = table.values.as_slice() else {
        let (name, values) = (&table.name, table.values.len());
        return Err(ImportError::new(
            1,
            1,
            format!("a route has one next hop, and an entry of `{name}` has {values} values"),
            "write the entries as in a program, and leave out `as routes`",
        ));
    };
    let hops: Vec<NextHop> = routes.next_hops.iter().map(|text| NextHop::of(text)).collect();
    let mut entries = Vec::with_capacity(routes.entries.len());
    for ((prefix, hop), line) in routes.entries.iter().zip(&routes.lines) {
        let index = *hop as usize;
        let value = hops[index].value(index, hops[0], column).map_err(|fault| {
            let (text, name) = (&routes.next_hops[index], &table.name);
            ImportError::new(
                *line,
                1,
                format!("the next hop {text} is no value of `{name}`: {fault}"),
                ROUTES,
            )
        })?;
        entries.push(Entry { key: vec![prefix_match(*prefix, width)], value: vec![value], priority: 0 });
    }
    Ok(entries)
}

const ROUTES: &str = "a next hop is an address where the table's value is one, otherwise a number as it is, or an \
                      address, which counts by its place among the file's next hops, from 0";

/// A next hop, as a routing table writes it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextHop {
    Address(Family, u128),
    Number(u128),
    /// The name of an interface or the like.
    Name,
}

impl NextHop {
    fn of(text: &str) -> Self {
        match crate::address::parse(text.as_bytes()) {
            Some((family, address)) => Self::Address(family, address),
            None => parse_number(text).map_or(Self::Name, |number| Self::Number(number.into())),
        }
    }

    /// The next hop as a value of a column: an address or a number as it is, and where the column holds no address, an
    /// address or a name by its place among the next hops of the file. `first` is the next hop of the first route.
    fn value(self, place: usize, first: Self, column: &Column) -> Result<u128, String> {
        let value = match (&column.kind, self) {
            (Kind::Ip4, Self::Address(Family::V4, address))
            | (Kind::Ip6, Self::Address(Family::V6, address)) => address,
            (Kind::Ip4, _) => return Err("it is no IPv4 address".into()),
            (Kind::Ip6, _) => return Err("it is no IPv6 address".into()),
            (_, own) if matches!(own, Self::Number(_)) != matches!(first, Self::Number(_)) => {
                return Err("some next hops of the file are numbers, and others are not".into());
            }
            (_, Self::Number(number)) => number,
            (_, Self::Address(..) | Self::Name) => place as u128,
        };
        match &column.kind {
            Kind::Names(names) if !names.iter().any(|(number, _)| *number == value) => {
                Err(format!("no name has the number {value}"))
            }
            _ if column.width < 128 && value >> column.width != 0 => {
                Err(format!("{value} is more than its {} bits hold", column.width))
            }
            _ => Ok(value),
        }
    }
}

fn prefix_match(prefix: Prefix, width: u8) -> Match {
    match prefix.length {
        0 => Match::Any,
        length if length == width => Match::Exact(prefix.bits),
        length => Match::Prefix { value: prefix.bits, length },
    }
}

fn rules_of(rules: &RuleSet, table: &Table) -> Result<Vec<Entry>, ImportError> {
    if table.kind != (TableKind::Rules { by_priority: false }) {
        return Err(unsuited(1, format!("`{}` is no table of rules in order", table.name)));
    }
    // For every column of the table its place among those of the file.
    let mut places = Vec::with_capacity(table.keys.len());
    for (index, column) in table.keys.iter().enumerate() {
        let place = if column.name.is_empty() { Some(index) } else { rules.column(&column.name) };
        let place =
            place.filter(|&place| rules.columns.get(place).is_some_and(|held| held.width == column.width));
        let Some(place) = place else {
            let held: Vec<String> =
                rules.columns.iter().map(|held| format!("{} ({} bits)", held.name, held.width)).collect();
            let what =
                format!("the file has no column for part {} of the key of `{}`", index + 1, table.name);
            return Err(unsuited(1, format!("{what}; it has {}", held.join(", "))));
        };
        places.push(place);
    }
    let mut entries = Vec::with_capacity(rules.rules.len());
    for (number, imported) in rules.rules.iter().enumerate() {
        let left = imported.rule.fields.iter().enumerate();
        if let Some((place, _)) =
            left.filter(|(place, _)| !places.contains(place)).find(|(_, field)| **field != Field::Any)
        {
            let name = rules.columns.get(place).map_or("?", |column| column.name);
            let what = format!("the line asks for {name}, and `{}` has no column of this name", table.name);
            return Err(unsuited(imported.line, what));
        }
        let key = places.iter().map(|&place| field_match(&imported.rule.fields[place])).collect();
        let value = rule_value(number, imported.allow, imported.line, table)?;
        entries.push(Entry { key, value, priority: 0 });
    }
    Ok(entries)
}

fn field_match(field: &Field) -> Match {
    match field {
        Field::Any => Match::Any,
        Field::Exact(number) => Match::Exact(*number),
        Field::Prefix { value, length } => Match::Prefix { value: *value, length: *length },
        Field::Ternary { value, mask } => Match::Masked { value: *value, mask: *mask },
        Field::Range { low, high } => Match::Range { low: *low, high: *high },
    }
}

/// What an entry made of a rule holds: nothing, whether the packet may pass, a variant `permit` or `deny`, or the rule's number from 0.
fn rule_value(
    number: usize,
    allow: Option<bool>,
    line: u32,
    table: &Table,
) -> Result<Vec<u128>, ImportError> {
    let Some(first) = table.values.first() else { return Ok(Vec::new()) };
    let decided = || allow.ok_or_else(|| unsuited(line, "the line does not say whether a packet may pass"));
    let mut value = vec![0; table.values.len()];
    value[0] = match &first.kind {
        Kind::Bool => u128::from(decided()?),
        Kind::Names(names) if first.name == "variant" => {
            let wanted = if decided()? { "permit" } else { "deny" };
            let found = names.iter().find(|(_, name)| name == wanted);
            found.ok_or_else(|| unsuited(line, format!("`{}` has no variant `{wanted}`", table.name)))?.0
        }
        _ if table.values.len() == 1 => number as u128,
        _ => return Err(unsuited(line, format!("an entry of `{}` holds more than a rule says", table.name))),
    };
    if first.width < 128 && value[0] >> first.width != 0 {
        return Err(unsuited(line, format!("rule {number} has a number too large for `{}`", table.name)));
    }
    Ok(value)
}

fn patterns_of(
    patterns: &[tables::patterns::Pattern],
    number: impl Fn(&tables::patterns::Pattern) -> u128,
    lines: impl Iterator<Item = u32>,
    table: &Table,
) -> Result<Vec<Entry>, ImportError> {
    if !matches!(table.kind, TableKind::Patterns(_)) || table.values.len() > 1 {
        let what = format!("`{}` is no table of patterns with one value or none", table.name);
        return Err(unsuited(1, what));
    }
    let mut entries = Vec::with_capacity(patterns.len());
    for (pattern, line) in patterns.iter().zip(lines) {
        let mut value = Vec::new();
        if let Some(column) = table.values.first() {
            let number = number(pattern);
            if column.width < 128 && number >> column.width != 0 {
                return Err(unsuited(line, format!("the number {number} is too large for `{}`", table.name)));
            }
            value.push(number);
        }
        let (bytes, nocase) = (pattern.bytes.clone(), pattern.nocase);
        let pattern = BytePattern { bytes, nocase, offset: pattern.offset, depth: pattern.depth };
        entries.push(Entry { key: vec![Match::Bytes(Box::new(pattern))], value, priority: 0 });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        let text = format!("{text}\nstart stage all() {{ flood }}\n");
        let compiled =
            lang::pipeline::compile("t.rav", &text, &|_| None, &lang::pipeline::Options::default());
        compiled.program.expect("compiles").tables.remove(0)
    }

    #[test]
    fn routes_become_prefixes_with_next_hops_of_the_tables_type() {
        let text = b"0.0.0.0/0 10.255.0.1 1\n10.0.0.0/8 10.255.0.2 2\n10.1.2.3/32 10.255.0.1 3\n";
        let by_address = table("table r: lpm(ip4) -> ip4 { capacity 9 }");
        let entries = read(text, "routes", &by_address).expect("reads");
        assert_eq!(entries[1].key, [Match::Prefix { value: 10 << 24, length: 8 }]);
        assert_eq!(entries[1].value, [0x0aff_0002]);
        assert_eq!(
            (&entries[0].key[..], &entries[2].key[..]),
            (&[Match::Any][..], &[Match::Exact(0x0a01_0203)][..])
        );
        let by_number = table("table r: lpm(ip4) -> u1 { capacity 9 }");
        let values: Vec<u128> =
            read(text, "routes", &by_number).expect("reads").iter().map(|entry| entry.value[0]).collect();
        assert_eq!(values, [0, 1, 0]);
        let numbered = b"10.0.0.0/8 7\n11.0.0.0/8 0x0A\n";
        let by_port = table("table r: lpm(ip4) -> port { capacity 9 }");
        let values: Vec<u128> =
            read(numbered, "routes", &by_port).expect("reads").iter().map(|entry| entry.value[0]).collect();
        assert_eq!(values, [7, 10]);
        for (text, table, wanted) in [
            (&b"10.0.0.0/8 1\n11.0.0.0/8 2\n"[..], &by_number, "2 is more than its 1 bits hold"),
            (b"10.0.0.0/8 192.0.2.1\n11.0.0.0/8 2\n", &by_port, "some next hops of the file are numbers"),
            (b"10.0.0.0/8 192.0.2.1\n11.0.0.0/8 2\n", &by_address, "it is no IPv4 address"),
        ] {
            let fault = read(text, "routes", table).expect_err("no value");
            assert!(fault.line == 2 && fault.what.contains(wanted), "{fault}");
        }
        let six = table("table r: lpm(ip6) -> u8 { capacity 9 }");
        assert!(read(text, "routes", &six).is_err());
    }

    #[test]
    fn rules_find_their_columns_by_name_and_refuse_what_has_no_column() {
        let text = b"@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t80 : 80\t0x06/0xFF\n@0.0.0.0/0\t0.0.0.0/0\t5 : 9\t0 : 65535\t0x00/0x00\n";
        let whole =
            table("table a: rules(dport: u16, src: ip4, sport: u16, proto: u8) -> u16 { capacity 9 }");
        let entries = read(text, "classbench", &whole).expect("reads");
        assert_eq!(entries[0].key[0], Match::Exact(80));
        assert_eq!(entries[1].key[2], Match::Range { low: 5, high: 9 });
        assert_eq!((entries[0].value[0], entries[1].value[0]), (0, 1));
        let part = table("table a: rules(src: ip4, dport: u16, proto: u8) -> u16 { capacity 9 }");
        let fault = read(text, "classbench", &part).expect_err("sport is asked for");
        assert_eq!(fault.line, 2, "{fault}");
        let passes = table(
            "table a: rules(src: ip4, dst: ip4, sport: u16, dport: u16, proto: u8) -> bool { capacity 9 }",
        );
        assert!(read(text, "classbench", &passes).is_err(), "ClassBench does not say what passes");
    }

    #[test]
    fn entries_of_our_own_tell_the_place_of_a_fault() {
        let routes = table("table r: lpm(ip4) -> port { capacity 9 }");
        assert_eq!(read(b"10.0.0.0/8 => 7\n", "", &routes).expect("reads").len(), 1);
        let fault = read(b"10.0.0.0/8 => 7\n10.1.0.0/16 => x\n", "", &routes).expect_err("no port");
        assert_eq!((fault.line, fault.column), (2, 16), "{fault}");
        let fault = read(b"10.0.0.0/8 => 7\n10.1.0.0/16 => 1", "", &routes).expect_err("cut, perhaps");
        assert_eq!((fault.line, fault.column), (2, 17), "{fault}");
        let fault = read(b"10.0.0.0/8 => 7\n\xff\n", "", &routes).expect_err("no text");
        assert_eq!((fault.line, fault.column), (2, 1), "{fault}");
        let fault = read(&vec![b'\n'; LONGEST_TEXT + 1], "", &routes).expect_err("too long");
        assert!(fault.what.contains("16777216 bytes, and these take 16777217"), "{fault}");
    }
}
