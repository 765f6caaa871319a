//! The programs of ours that take part, with the entries that the hosts need, and the same rules for others.

use super::net::{A, B, SINK, TO_A, TO_B};
use crate::programs::PROGRAMS;

/// A program that ships, as it is.
pub(crate) fn shipped(name: &str) -> String {
    PROGRAMS.iter().find(|(known, _)| *known == name).map_or(String::new(), |(_, text)| (*text).to_owned())
}

/// The router with the hosts behind it. Its next hops take packets of any length: what is longer than an MTU
/// here is a segment that a host has not cut yet.
pub(crate) fn router() -> String {
    let mac = |bytes: [u8; 6]| bytes.map(|byte| format!("{byte:02x}")).join(":");
    let hop = |number: u16, port: u16, to: [u8; 6], from: [u8; 6]| {
        format!("{number} => ({port}, {}, {}, 65535)", mac(to), mac(from))
    };
    let text = shipped("router");
    let text = with_entries(
        &text,
        "routes",
        &["10.0.1.0/24 => 1".to_owned(), "10.0.2.0/24 => 2".to_owned(), format!("{} => 3", SINK.1)],
    );
    let hops = [hop(1, 1, A.0, TO_A.0), hop(2, 2, B.0, TO_B.0), hop(3, 2, SINK.0, TO_B.0)];
    let text = with_entries(&text, "next_hops", &hops);
    with_entries(&text, "behind", &["1 => 1", "2 => 2", "3 => 2"].map(str::to_owned))
}

/// The same without signatures: what it reads of a packet are the headers.
pub(crate) fn router_of_headers() -> String {
    with_entries(&router(), "signatures", &[])
}

/// A firewall between the hosts with so many rules, of which the last one fits.
pub(crate) fn firewall(rules: &[Rule]) -> String {
    let line = |rule: &Rule| {
        format!("({}, {}, _, {}, {}) => deny", rule.source, rule.destination, rule.port, rule.protocol)
    };
    let mut entries: Vec<String> = rules.iter().map(line).collect();
    entries.push("(_, _, _, _, _) => permit".to_owned());
    with_entries(&shipped("firewall_rules"), "acl", &entries)
}

/// The same rules for nftables.
pub(crate) fn nftables(rules: &[Rule]) -> String {
    let line = |rule: &Rule| {
        let protocol = if rule.protocol == 6 { "tcp" } else { "udp" };
        format!(
            "ip saddr {} ip daddr {} {protocol} dport {} counter drop\n",
            rule.source, rule.destination, rule.port
        )
    };
    let lines: String = rules.iter().map(line).collect();
    format!(
        "table ip lab {{\nchain forward {{\ntype filter hook forward priority 0; policy drop;\n{lines}counter accept\n}}\n}}\n"
    )
}

/// A rule that fits none of the packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    source: String,
    destination: String,
    port: u16,
    protocol: u8,
}

/// So many rules as a gateway has: networks of all lengths, single services.
pub(crate) fn rules(count: usize) -> Vec<Rule> {
    let rule = |number: usize| {
        let network = (number as u32).wrapping_mul(2_654_435_761) % (1 << 20);
        let length = 24 + number % 9;
        let source = (172u32 << 24 | 16 << 16 | network) & (u32::MAX << (32 - length));
        let source = format!("{}/{length}", std::net::Ipv4Addr::from(source));
        let destination = format!("10.0.2.{}/32", number % 250);
        Rule {
            source,
            destination,
            port: 1 + (number % 1000) as u16,
            protocol: if number.is_multiple_of(2) { 6 } else { 17 },
        }
    };
    (0..count).map(rule).collect()
}

/// The text of a program with other entries in one of its tables.
fn with_entries(text: &str, table: &str, entries: &[String]) -> String {
    let place = || {
        let start = text.find(&format!("table {table}:"))?;
        let open = start + text[start..].find("entries {")? + "entries {".len();
        Some((open, open + text[open..].find('}')?))
    };
    let Some((open, close)) = place() else { return text.to_owned() };
    let lines: String = entries.iter().map(|entry| format!("        {entry}\n")).collect();
    format!("{}\n{lines}    {}", &text[..open], &text[close..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::compile;
    use lang::pipeline::Decode;

    #[test]
    fn programs_compile_with_other_entries() {
        let router = router();
        assert!(router.contains("3 => (2, 02:00:00:00:00:0c, 02:00:00:00:00:1b, 65535)"), "{router}");
        let headers = router_of_headers();
        assert!(router.contains("cmd.exe\" nocase => 1") && !headers.contains("cmd.exe\" nocase => 1"));
        let programs = [("router", router), ("router", headers), ("firewall_rules", firewall(&rules(100)))];
        for (name, text) in programs {
            compile(name, &text, Decode::Lazy).expect("compiles");
        }
        assert!(!firewall(&[]).contains("deny\n"));
    }

    #[test]
    fn both_forms_hold_the_same_rules() {
        let rules = rules(1000);
        assert_eq!(firewall(&rules).matches("=> deny").count(), 1000);
        assert_eq!(nftables(&rules).matches("counter drop").count(), 1000);
        let mut different: Vec<String> = rules.iter().map(|rule| format!("{rule:?}")).collect();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), 1000);
    }
}
