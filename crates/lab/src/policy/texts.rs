//! The rules of a generated set as text: lines of a policy of the language, and a dump of iptables.

use std::fmt::{Display, Write};
use std::net::Ipv4Addr;
use tables::rules::{Rule, RuleField};

/// The names of the five columns in a policy, and in a dump of iptables.
const COLUMNS: [&str; 5] = ["src", "dst", "sport", "dport", "proto"];
const OPTIONS: [&str; 5] = ["-s", "-d", "--sport", "--dport", "-p"];

/// A line for each rule, with what `decision` says for its number.
pub(super) fn lines(rules: &[Rule], decision: impl Fn(usize) -> &'static str) -> String {
    let mut text = String::new();
    for (number, rule) in rules.iter().enumerate() {
        let conditions = conditions(rule, "..");
        let conditions = conditions.iter().map(|(column, value)| format!("{} {value}", COLUMNS[*column]));
        let conditions: Vec<String> = conditions.collect();
        line(&mut text, format_args!("        {} {}", decision(number), conditions.join(", ")));
    }
    text
}

/// A dump of the filter table, whose chain for forwarded packets has the rules: those that `passes` names
/// accept, the others drop.
pub(super) fn dump(rules: &[Rule], passes: impl Fn(usize) -> bool) -> String {
    let mut text = String::new();
    line(&mut text, "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]");
    for (number, rule) in rules.iter().enumerate() {
        let conditions = conditions(rule, ":");
        let value = |wanted| conditions.iter().find(|(column, _)| *column == wanted).map(|(_, value)| value);
        let mut options = String::new();
        for (column, option) in OPTIONS.iter().enumerate().filter(|(column, _)| !is_port(*column)) {
            if let Some(value) = value(column) {
                let _ = write!(options, " {option} {value}");
            }
        }
        let protocol = match rule.fields[4] {
            RuleField::Exact(17) => "udp",
            _ => "tcp",
        };
        for (nth, column) in [2, 3].into_iter().filter(|column| value(*column).is_some()).enumerate() {
            if nth == 0 {
                let _ = write!(options, " -m {protocol}");
            }
            if let Some(value) = value(column) {
                let _ = write!(options, " {} {value}", OPTIONS[column]);
            }
        }
        let target = if passes(number) { "ACCEPT" } else { "DROP" };
        line(&mut text, format_args!("-A FORWARD{options} -j {target}"));
    }
    line(&mut text, "COMMIT");
    text
}

/// The columns that a rule compares and to what, in the words that both formats share; `between` stands
/// between the ends of a range.
fn conditions(rule: &Rule, between: &str) -> Vec<(usize, String)> {
    let mut conditions = Vec::new();
    for (column, field) in rule.fields.iter().enumerate() {
        let value = match *field {
            RuleField::Prefix { value, length } if length > 0 => {
                format!("{}/{length}", Ipv4Addr::from_bits(value as u32))
            }
            RuleField::Range { low, high } if low == high => low.to_string(),
            RuleField::Range { low, high } if high - low < 0xffff => format!("{low}{between}{high}"),
            RuleField::Exact(value) => value.to_string(),
            _ => continue,
        };
        conditions.push((column, value));
    }
    conditions
}

fn is_port(column: usize) -> bool {
    matches!(column, 2 | 3)
}

/// Writing to a string cannot fail.
fn line(text: &mut String, words: impl Display) {
    let _ = writeln!(text, "{words}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_says_what_it_compares_in_both_formats() {
        let rule = Rule {
            fields: vec![
                RuleField::Prefix { value: 10 << 24, length: 8 },
                RuleField::Prefix { value: 0, length: 0 },
                RuleField::Range { low: 0, high: 0xffff },
                RuleField::Range { low: 1024, high: 0xffff },
                RuleField::Exact(17),
            ],
        };
        let rules = [rule];
        assert_eq!(lines(&rules, |_| "pass"), "        pass src 10.0.0.0/8, dport 1024..65535, proto 17\n");
        let dump = dump(&rules, |_| false);
        let dumped = "-A FORWARD -s 10.0.0.0/8 -p 17 -m udp --dport 1024:65535 -j DROP\n";
        assert!(dump.contains(dumped), "{dump}");
    }
}
