//! Files of routes, rules and patterns as entries of a table of a program, and files of members for its
//! groups.
//!
//! What a file holds is fitted to what the table declares: keys by the names of the columns, or by their
//! order where they have none; values by their type. A table that has no place for something that a line
//! means refuses the line.

use crate::address::AddressFamily;
use crate::conditions::WITH_PORTS;
use crate::region::Set;
use crate::ruleset::{ChainPolicy, Part};
use crate::text::{self, parse_number, place, refuse_cut, utf8};
use crate::{
    ImportError, ImportedRule, ImportedRules, Naming, chains, classbench, iptables, literals, mrt, nft,
    routes, snort,
};
use ir::{BytePattern, Column, ColumnKind, Entry, FileOptions, Group, GroupMember, Match, Table, TableKind};
use lang::diagnostic::Diagnostic;
use lang::limits::LONGEST_TEXT;
use tables::lpm::Prefix;
use tables::rules::RuleField;

/// What a file gives to a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Its entries.
    pub entries: Vec<Entry>,
    /// The line of each entry; empty where that is not known.
    pub lines: Vec<u32>,
    /// What a lookup finds that no entry fits, where the file says so.
    pub default: Option<Fallback>,
}

/// What a file says of packets that no line fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The value of the table.
    pub value: Vec<u128>,
    /// Where the file says so.
    pub policy: ChainPolicy,
}

/// Reads a file for a table. `format` is empty for the language's own entries; `options` say what to read of
/// a file of chains.
///
/// # Errors
/// The first line that cannot be kept, or that does not suit the table; nothing is kept then.
pub fn read(
    bytes: &[u8],
    format: &str,
    options: &FileOptions,
    table: &Table,
) -> Result<Contents, ImportError> {
    let options = chain_options(options, table)?;
    match format {
        "classbench" => rules_of(&classbench::read(bytes, &classbench::ClassBenchOptions::default())?, table),
        "iptables" => rules_of(&iptables::read(bytes, &options)?, table),
        "nft" => rules_of(&nft::read(bytes, &options)?, table),
        other => {
            let (entries, lines) = without_default(bytes, other, table)?;
            Ok(Contents { entries, lines, default: None })
        }
    }
}

/// What to read of a file of chains for a table of rules, whose addresses say the family if nothing else
/// does.
fn chain_options(options: &FileOptions, table: &Table) -> Result<chains::ChainOptions, ImportError> {
    let own = family(table);
    let wanted = match options.family {
        None => own.unwrap_or_default(),
        Some(4) => AddressFamily::V4,
        Some(6) => AddressFamily::V6,
        Some(other) => return Err(unsuited(1, format!("there is no family of IP with version {other}"))),
    };
    if let Some(own) = own.filter(|own| *own != wanted) {
        let (wanted, own) = (wanted.name(), own.name());
        let what = format!("packets of {wanted} are asked for, and `{}` has addresses of {own}", table.name);
        return Err(unsuited(1, what));
    }
    let default = chains::ChainOptions::default();
    Ok(chains::ChainOptions {
        table: options.table.clone().unwrap_or(default.table),
        chain: options.chain.clone(),
        family: wanted,
        interfaces: Naming::Ports(options.interfaces.clone()),
        first_packets: options.first_packets,
        lenient: false,
        limit: default.limit,
    })
}

/// The family of the packets that a table of rules is about: that of its addresses, if it has any.
fn family(table: &Table) -> Option<AddressFamily> {
    let addresses = table.keys.iter().filter(|column| matches!(column.name.as_str(), "src" | "dst"));
    let of_widths: Vec<_> = addresses.filter_map(|column| AddressFamily::of_width(column.width)).collect();
    let is_v6 = of_widths.contains(&AddressFamily::V6);
    (!of_widths.is_empty()).then_some(if is_v6 { AddressFamily::V6 } else { AddressFamily::V4 })
}

/// Entries and the line of each, where it is known.
type Lined = (Vec<Entry>, Vec<u32>);

fn without_default(bytes: &[u8], format: &str, table: &Table) -> Result<Lined, ImportError> {
    match format {
        "" => Ok((own(bytes, table)?, Vec::new())),
        "routes" => routes_of(&routes::read(bytes)?, table),
        "mrt" => {
            let dump = mrt::read(bytes)?;
            routes_of(if address_width(table) == 32 { &dump.v4 } else { &dump.v6 }, table)
        }
        "snort" => {
            let set = snort::read(bytes)?;
            let sid = |pattern: &tables::patterns::SearchPattern| {
                set.rules.get(pattern.value as usize).map_or(0, |rule| u128::from(rule.sid))
            };
            let line = |pattern: &tables::patterns::SearchPattern| {
                set.rules.get(pattern.value as usize).map_or(0, |rule| rule.line)
            };
            patterns_of(&set.patterns, sid, set.patterns.iter().map(line).collect(), table)
        }
        "literals" => {
            let patterns = literals::read(bytes)?;
            let lines = text::lines(bytes)?.filter(|line| !line.is_blank()).map(|line| line.number);
            patterns_of(&patterns, |pattern| u128::from(pattern.value), lines.collect(), table)
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

fn routes_of(routes: &routes::ImportedRoutes, table: &Table) -> Result<Lined, ImportError> {
    let width = if routes.family == AddressFamily::V4 { 32 } else { 128 };
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
    Ok((entries, routes.lines.clone()))
}

const ROUTES: &str = "a next hop is an address where the table's value is one, otherwise a number as it is, or an \
                      address, which counts by its place among the file's next hops, from 0";

/// A next hop, as a routing table writes it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextHop {
    Address(AddressFamily, u128),
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

    /// The next hop as a value of a column: an address or a number as it is, and where the column holds no
    /// address, an address or a name by its place among the next hops of the file. `first` is the next hop of
    /// the first route.
    fn value(self, place: usize, first: Self, column: &Column) -> Result<u128, String> {
        let value = match (&column.kind, self) {
            (ColumnKind::Ip4, Self::Address(AddressFamily::V4, address))
            | (ColumnKind::Ip6, Self::Address(AddressFamily::V6, address)) => address,
            (ColumnKind::Ip4, _) => return Err("it is no IPv4 address".into()),
            (ColumnKind::Ip6, _) => return Err("it is no IPv6 address".into()),
            (_, own) if matches!(own, Self::Number(_)) != matches!(first, Self::Number(_)) => {
                return Err("some next hops of the file are numbers, and others are not".into());
            }
            (_, Self::Number(number)) => number,
            (_, Self::Address(..) | Self::Name) => place as u128,
        };
        match &column.kind {
            ColumnKind::Names(names) if !names.iter().any(|(number, _)| *number == value) => {
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

fn rules_of(rules: &ImportedRules, table: &Table) -> Result<Contents, ImportError> {
    if table.kind != (TableKind::Rules { by_priority: false }) {
        return Err(unsuited(1, format!("`{}` is no table of rules in order", table.name)));
    }
    // For every column of the table its place among those of the file, unless no line of the file asks for
    // it.
    let family = rules.family();
    let mut places = Vec::with_capacity(table.keys.len());
    for (index, column) in table.keys.iter().enumerate() {
        let place = if column.name.is_empty() { Some(index) } else { rules.column(&column.name) };
        let known = crate::RuleColumn::named(&column.name, family);
        if place.is_none() && known.is_some_and(|known| known.width == column.width) {
            places.push(None);
            continue;
        }
        let place =
            place.filter(|&place| rules.columns.get(place).is_some_and(|held| held.width == column.width));
        let Some(place) = place else {
            let held: Vec<String> =
                rules.columns.iter().map(|held| format!("{} ({} bits)", held.name, held.width)).collect();
            let what =
                format!("the file has no column for part {} of the key of `{}`", index + 1, table.name);
            return Err(unsuited(1, format!("{what}; it has {}", held.join(", "))));
        };
        places.push(Some(place));
    }
    let mut contents = Contents::default();
    for (number, imported) in rules.rules.iter().enumerate() {
        let left = imported.rule.fields.iter().enumerate();
        let is_lost = |(place, field): &(usize, &RuleField)| {
            !places.contains(&Some(*place))
                && **field != RuleField::Any
                && rules.columns.get(*place).is_none_or(|column| column.name != Part::Fragment.name())
        };
        if let Some((place, _)) = left.clone().find(is_lost) {
            let name = rules.columns.get(place).map_or("?", |column| column.name);
            let what = format!("the line asks for {name}, and `{}` has no column of this name", table.name);
            return Err(unsuited(imported.line, what));
        }
        if !suits_later_fragments(rules, imported, &places, table)? {
            continue;
        }
        let key = places
            .iter()
            .map(|place| place.map_or(Match::Any, |place| field_match(&imported.rule.fields[place])))
            .collect();
        let value = rule_value(number, imported.allow, imported.line, table)?;
        contents.entries.push(Entry { key, value, priority: 0 });
        contents.lines.push(imported.line);
    }
    contents.default = match (rules.default, &rules.policy) {
        (Some(pass), Some(policy)) => {
            let value = rule_value(0, Some(pass), policy.line, table)?;
            Some(Fallback { value, policy: policy.clone() })
        }
        _ => None,
    };
    Ok(contents)
}

/// Whether a rule is to stand in a table. A table with a column `fragment` can be told which packets are
/// later fragments. Others are asked with ports, types and flags of 0 for them: there a rule is kept that
/// fits no such key, or means later fragments as well.
fn suits_later_fragments(
    rules: &ImportedRules,
    imported: &ImportedRule,
    places: &[Option<usize>],
    table: &Table,
) -> Result<bool, ImportError> {
    let refuse = |what: &str| {
        let what = format!("{what}, and `{}` has no column `fragment` that tells them apart", table.name);
        let advice = "add `fragment: bool` to the key of the table, and look up whether the packet is a piece behind the first";
        Err(ImportError::new(imported.line, 1, what, advice))
    };
    let asked = |part: Part| {
        let index = rules.column(part.name())?;
        let field = imported.rule.fields[index];
        (field != RuleField::Any).then(|| (index, Set::of(field, rules.columns[index].width)))
    };
    let with_ports = [Part::SourcePort, Part::DestinationPort].into_iter().any(|part| asked(part).is_some());
    if let (true, Some((_, protocol))) = (with_ports, asked(Part::Protocol))
        && let Some(other) = WITH_PORTS.iter().find(|own| protocol == Set::exact((**own).into()))
        && !nft::PORTS_OF_PROGRAMS.contains(other)
    {
        let what =
            format!("ports of protocol {other} are asked for, and programs look up those of TCP and UDP");
        return Err(ImportError::new(
            imported.line,
            1,
            what,
            "leave the line out of the file, or the ports out of the line",
        ));
    }
    let Some((index, fragment)) = asked(Part::Fragment) else { return Ok(true) };
    if places.contains(&Some(index)) {
        return Ok(true);
    }
    let without = Part::OF_TRANSPORT.into_iter().all(|part| asked(part).is_none_or(|(_, set)| set.holds(0)));
    match (without, fragment.holds(0)) {
        // The key of no later fragment fits.
        (false, kept) => Ok(kept),
        (true, true) => refuse("the line does not fit later fragments, which have no ports, types or flags"),
        (true, false) => refuse("the line is about later fragments"),
    }
}

fn field_match(field: &RuleField) -> Match {
    match field {
        RuleField::Any => Match::Any,
        RuleField::Exact(number) => Match::Exact(*number),
        RuleField::Prefix { value, length } => Match::Prefix { value: *value, length: *length },
        RuleField::Ternary { value, mask } => Match::Masked { value: *value, mask: *mask },
        RuleField::Range { low, high } => Match::Range { low: *low, high: *high },
    }
}

/// What an entry made of a rule holds: whether the packet may pass, or a variant `permit` or `deny`; of a
/// rule that does not say that, nothing, or its number from 0.
fn rule_value(
    number: usize,
    allow: Option<bool>,
    line: u32,
    table: &Table,
) -> Result<Vec<u128>, ImportError> {
    let mute = || {
        let what =
            format!("the line says whether packets pass, and an entry of `{}` cannot say that", table.name);
        unsuited(line, what)
    };
    let first = match (table.values.first(), allow) {
        (Some(first), _) => first,
        (None, None) => return Ok(Vec::new()),
        (None, Some(_)) => return Err(mute()),
    };
    let decided = || allow.ok_or_else(|| unsuited(line, "the line does not say whether a packet may pass"));
    let mut value = vec![0; table.values.len()];
    value[0] = match &first.kind {
        ColumnKind::Bool => u128::from(decided()?),
        ColumnKind::Names(names) if first.name == "variant" => {
            let wanted = if decided()? { "permit" } else { "deny" };
            let found = names.iter().find(|(_, name)| name == wanted);
            found.ok_or_else(|| unsuited(line, format!("`{}` has no variant `{wanted}`", table.name)))?.0
        }
        _ if allow.is_some() => return Err(mute()),
        _ if table.values.len() == 1 => number as u128,
        _ => return Err(unsuited(line, format!("an entry of `{}` holds more than a rule says", table.name))),
    };
    if first.width < 128 && value[0] >> first.width != 0 {
        return Err(unsuited(line, format!("rule {number} has a number too large for `{}`", table.name)));
    }
    Ok(value)
}

fn patterns_of(
    patterns: &[tables::patterns::SearchPattern],
    number: impl Fn(&tables::patterns::SearchPattern) -> u128,
    lines: Vec<u32>,
    table: &Table,
) -> Result<Lined, ImportError> {
    if !matches!(table.kind, TableKind::Patterns(_)) || table.values.len() > 1 {
        let what = format!("`{}` is no table of patterns with one value or none", table.name);
        return Err(unsuited(1, what));
    }
    let mut entries = Vec::with_capacity(patterns.len());
    for (pattern, &line) in patterns.iter().zip(&lines) {
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
    Ok((entries, lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(text: &str) -> Table {
        let text = format!("{text}\nstart stage all() {{ flood }}\n");
        let compiled =
            lang::pipeline::compile("t.rav", &text, &|_| None, &lang::pipeline::CompileOptions::default());
        compiled.program.expect("compiles").tables.remove(0)
    }

    #[test]
    fn routes_become_prefixes_with_next_hops_of_the_tables_type() {
        let text = b"0.0.0.0/0 10.255.0.1 1\n10.0.0.0/8 10.255.0.2 2\n10.1.2.3/32 10.255.0.1 3\n";
        let by_address = table("table r: lpm(ip4) -> ip4 { capacity 9 }");
        let entries = read(text, "routes", &FileOptions::default(), &by_address).expect("reads").entries;
        assert_eq!(entries[1].key, [Match::Prefix { value: 10 << 24, length: 8 }]);
        assert_eq!(entries[1].value, [0x0aff_0002]);
        assert_eq!(
            (&entries[0].key[..], &entries[2].key[..]),
            (&[Match::Any][..], &[Match::Exact(0x0a01_0203)][..])
        );
        let by_number = table("table r: lpm(ip4) -> u1 { capacity 9 }");
        let values: Vec<u128> = read(text, "routes", &FileOptions::default(), &by_number)
            .expect("reads")
            .entries
            .iter()
            .map(|entry| entry.value[0])
            .collect();
        assert_eq!(values, [0, 1, 0]);
        let numbered = b"10.0.0.0/8 7\n11.0.0.0/8 0x0A\n";
        let by_port = table("table r: lpm(ip4) -> port { capacity 9 }");
        let values: Vec<u128> = read(numbered, "routes", &FileOptions::default(), &by_port)
            .expect("reads")
            .entries
            .iter()
            .map(|entry| entry.value[0])
            .collect();
        assert_eq!(values, [7, 10]);
        for (text, table, wanted) in [
            (&b"10.0.0.0/8 1\n11.0.0.0/8 2\n"[..], &by_number, "2 is more than its 1 bits hold"),
            (b"10.0.0.0/8 192.0.2.1\n11.0.0.0/8 2\n", &by_port, "some next hops of the file are numbers"),
            (b"10.0.0.0/8 192.0.2.1\n11.0.0.0/8 2\n", &by_address, "it is no IPv4 address"),
        ] {
            let fault = read(text, "routes", &FileOptions::default(), table).expect_err("no value");
            assert!(fault.line == 2 && fault.what.contains(wanted), "{fault}");
        }
        let six = table("table r: lpm(ip6) -> u8 { capacity 9 }");
        assert!(read(text, "routes", &FileOptions::default(), &six).is_err());
    }

    #[test]
    fn rules_find_their_columns_by_name_and_refuse_what_has_no_column() {
        let text = b"@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t80 : 80\t0x06/0xFF\n@0.0.0.0/0\t0.0.0.0/0\t5 : 9\t0 : 65535\t0x00/0x00\n";
        let whole =
            table("table a: rules(dport: u16, src: ip4, sport: u16, proto: u8) -> u16 { capacity 9 }");
        let entries = read(text, "classbench", &FileOptions::default(), &whole).expect("reads").entries;
        assert_eq!(entries[0].key[0], Match::Exact(80));
        assert_eq!(entries[1].key[2], Match::Range { low: 5, high: 9 });
        assert_eq!((entries[0].value[0], entries[1].value[0]), (0, 1));
        let part = table("table a: rules(src: ip4, dport: u16, proto: u8) -> u16 { capacity 9 }");
        let fault = read(text, "classbench", &FileOptions::default(), &part).expect_err("sport is asked for");
        assert_eq!(fault.line, 2, "{fault}");
        let passes = table(
            "table a: rules(src: ip4, dst: ip4, sport: u16, dport: u16, proto: u8) -> bool { capacity 9 }",
        );
        assert!(
            read(text, "classbench", &FileOptions::default(), &passes).is_err(),
            "ClassBench does not say what passes"
        );
    }

    const ACL: &str = "table acl: rules(src: ip4, dst: ip4, sport: u16, dport: u16, proto: u8) -> { permit, deny } { capacity 99 }";

    fn dump(policy: &str, rules: &str) -> Vec<u8> {
        format!("*filter\n:FORWARD {policy} [0:0]\n{rules}\nCOMMIT\n").into_bytes()
    }

    #[test]
    fn the_policy_of_the_chain_is_the_default_of_the_table() {
        let acl = table(ACL);
        for (policy, value) in [("DROP", 1), ("ACCEPT", 0)] {
            let contents = read(
                &dump(policy, "-A FORWARD -s 10.0.0.0/8 -j ACCEPT"),
                "iptables",
                &FileOptions::default(),
                &acl,
            )
            .expect("reads");
            let default = contents.default.expect("the chain has a policy");
            assert_eq!((default.value, default.policy.line), (vec![value], 2));
            assert_eq!(default.policy.words, format!("the chain FORWARD has the policy {policy}"));
        }
        let passes = table("table a: rules(src: ip4) -> bool { capacity 9 }");
        let contents =
            read(&dump("ACCEPT", ""), "iptables", &FileOptions::default(), &passes).expect("reads");
        assert_eq!(contents.default.map(|default| default.value), Some(vec![1]));
        let json = br#"{"nftables": [{"chain": {"family": "ip", "table": "filter", "name": "forward", "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}}]}"#;
        let contents =
            read(&[&json[..], b"\n"].concat(), "nft", &FileOptions::default(), &acl).expect("reads");
        assert_eq!(contents.default.map(|default| default.value), Some(vec![1]));
        // What cannot say who passes takes no such file: a set would let all through that some line denies.
        for mute in
            ["table a: rules(src: ip4) -> u16 { capacity 9 }", "table a: rules(src: ip4) { capacity 9 }"]
        {
            let fault =
                read(&dump("DROP", "-A FORWARD -j DROP"), "iptables", &FileOptions::default(), &table(mute))
                    .expect_err("no way to say it");
            assert!(fault.line == 3 && fault.what.contains("cannot say that"), "{fault}");
        }
    }

    fn bound(names: &[(String, u16)]) -> FileOptions {
        FileOptions { interfaces: names.to_vec(), ..FileOptions::default() }
    }

    #[test]
    fn options_say_which_chain_is_read_and_for_which_packets() {
        let acl = table("table acl: rules(dport: u16, proto: u8, fragment: bool) -> bool { capacity 9 }");
        let text = b"*mangle\n:FORWARD ACCEPT [0:0]\n:own - [0:0]\n-A own -p tcp -m state --state NEW -m tcp --dport 22 -j ACCEPT\n-A own -m state --state ESTABLISHED -j DROP\nCOMMIT\n*filter\n:FORWARD DROP [0:0]\nCOMMIT\n";
        let own = FileOptions {
            family: Some(6),
            table: Some("mangle".to_owned()),
            chain: Some("own".to_owned()),
            first_packets: true,
            ..FileOptions::default()
        };
        let contents = read(text, "iptables", &own, &acl).expect("reads");
        assert_eq!((contents.entries.len(), contents.lines, contents.default), (1, vec![4], None));
        let whole = read(text, "iptables", &FileOptions::default(), &acl).expect("reads");
        assert_eq!(whole.default.map(|default| default.policy.line), Some(8));
        let any = FileOptions { first_packets: false, ..own.clone() };
        assert_eq!(read(text, "iptables", &any, &acl).expect_err("asks for a state").line, 4);
        let none = FileOptions { chain: Some("other".to_owned()), ..own.clone() };
        let fault = read(text, "iptables", &none, &acl).expect_err("no such chain");
        assert!(fault.what.contains("other"), "{fault}");
        let fault = read(text, "iptables", &own, &table(ACL)).expect_err("its addresses are of IPv4");
        assert!(fault.what.contains("packets of IPv6 are asked for"), "{fault}");
    }

    #[test]
    fn interfaces_are_ports_that_somebody_named() {
        let acl = table("table acl: rules(src: ip4, in_port: port, out_port: port) -> bool { capacity 9 }");
        let text = dump("DROP", "-A FORWARD -i eth1 -j ACCEPT\n-A FORWARD -i eth0 -j ACCEPT");
        let names = [("eth0".to_owned(), 1), ("eth1".to_owned(), 7)];
        let contents = read(&text, "iptables", &bound(&names), &acl).expect("reads");
        let ports: Vec<&Match> = contents.entries.iter().map(|entry| &entry.key[1]).collect();
        assert_eq!(ports, [&Match::Exact(7), &Match::Exact(1)]);
        assert_eq!(contents.lines, [3, 4]);
        for (names, line) in [(&names[..1], 3), (&names[1..], 4), (&[], 3)] {
            let fault = read(&text, "iptables", &bound(names), &acl).expect_err("one is not bound");
            assert!(fault.line == line && fault.what.contains("is bound to no port"), "{fault}");
        }
    }

    #[test]
    fn later_fragments_fit_no_rule_about_a_header() {
        let (five, six) = (table(ACL), table(&ACL.replace("proto: u8", "proto: u8, fragment: bool")));
        for (rule, kept) in [
            ("-p tcp -m tcp --dport 22", true),
            ("-p tcp -m tcp --sport 1024:65535 ! --dport 22", true),
            ("-p tcp", true),
            ("-p tcp -m tcp ! --dport 22", false),
            ("-p udp -m udp --dport 0:1023", false),
            ("-p tcp -m tcp", false),
            ("-p icmp -m icmp --icmp-type any", false),
            ("-f", false),
            ("! -f", false),
        ] {
            let text = dump("DROP", &format!("-A FORWARD {rule} -j ACCEPT"));
            let in_five = read(&text, "iptables", &FileOptions::default(), &five);
            match &in_five {
                Ok(contents) => assert!(kept && contents.entries.len() < 3, "{rule}"),
                Err(fault) => {
                    assert!(!kept && fault.line == 3 && fault.what.contains("fragment"), "{rule}: {fault}")
                }
            }
            let in_six = read(&text, "iptables", &FileOptions::default(), &six).expect(rule);
            let wanted = match rule {
                "-p tcp" => Match::Any,
                "-f" => Match::Exact(1),
                _ => Match::Exact(0),
            };
            assert!(in_six.entries.iter().all(|entry| entry.key[5] == wanted), "{rule}");
        }
        let fault = read(
            &dump("DROP", "-A FORWARD -p sctp --dport 22 -j ACCEPT"),
            "iptables",
            &FileOptions::default(),
            &six,
        )
        .expect_err("no such ports");
        assert!(fault.line == 3 && fault.what.contains("TCP and UDP"), "{fault}");
    }

    proptest! {
        #[test]
        fn broken_files_are_an_answer_for_every_format(at: prop::sample::Index, byte: u8, format in 0usize..8) {
            let dump = dump("DROP", "-A FORWARD -f -i eth0 -j ACCEPT\n-A FORWARD -p tcp -m tcp --dport 22 -j DROP");
            let json = br#"{"nftables": [{"chain": {"family": "ip", "table": "filter", "name": "forward", "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}}]}"#;
            let (name, text) = [
                ("", &b"(10.0.0.0/8, _, _, 80, 6) => permit\n"[..]),
                ("iptables", &dump),
                ("nft", json),
                ("classbench", b"@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t80 : 80\t0x06/0xFF\n"),
                ("routes", b"10.0.0.0/8 192.0.2.1\n"),
                ("snort", b"alert tcp any any -> any 80 (content:\"ab\"; sid:1;)\n"),
                ("literals", b"0\t0\t1\t00\t7\n"),
                ("mrt", b"\0\0\0\0\0\x0d\0\x01\0\0\0\x08\0\0\0\0\0\0\0\0"),
            ][format];
            let mut text = text.to_vec();
            let at = at.index(text.len());
            text[at] = byte;
            for declared in [ACL, "table r: lpm(ip4) -> u8 { capacity 9 }", "table s: patterns(bytes) -> u8 { capacity 9 }"] {
                let table = table(declared);
                for text in [&text[..], &text[..at]] {
                    let _ = read(text, name, &bound(&[("eth0".to_owned(), 1)]), &table);
                }
            }
        }
    }

    #[test]
    fn entries_of_our_own_tell_the_place_of_a_fault() {
        let routes = table("table r: lpm(ip4) -> port { capacity 9 }");
        assert_eq!(
            read(b"10.0.0.0/8 => 7\n", "", &FileOptions::default(), &routes).expect("reads").entries.len(),
            1
        );
        let fault = read(b"10.0.0.0/8 => 7\n10.1.0.0/16 => x\n", "", &FileOptions::default(), &routes)
            .expect_err("no port");
        assert_eq!((fault.line, fault.column), (2, 16), "{fault}");
        let fault = read(b"10.0.0.0/8 => 7\n10.1.0.0/16 => 1", "", &FileOptions::default(), &routes)
            .expect_err("cut, perhaps");
        assert_eq!((fault.line, fault.column), (2, 17), "{fault}");
        let fault =
            read(b"10.0.0.0/8 => 7\n\xff\n", "", &FileOptions::default(), &routes).expect_err("no text");
        assert_eq!((fault.line, fault.column), (2, 1), "{fault}");
        let fault =
            read(&vec![b'\n'; LONGEST_TEXT + 1], "", &FileOptions::default(), &routes).expect_err("too long");
        assert!(fault.what.contains("16777216 bytes, and these take 16777217"), "{fault}");
    }
}
