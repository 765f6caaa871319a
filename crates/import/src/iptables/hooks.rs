//! Chains at the hooks that a packet of the wanted one passes: each of them may drop it.
//!
//! Another chain is left aside only if it lets everything pass, whatever else it does; otherwise the line is
//! refused at which it drops something, or may do so.

use super::dump::{Table, is_counters};
use super::words::{self, Argument};
use crate::ImportError;
use crate::text::shown;
use std::collections::{BTreeSet, HashMap};

/// Targets after which a packet goes on as if the rule were not there, or passes this table, or comes to
/// another chain of it.
const TARGETS_THAT_DROP_NOTHING: [&str; 28] = [
    "ACCEPT",
    "RETURN",
    "LOG",
    "NFLOG",
    "ULOG",
    "TRACE",
    "AUDIT",
    "MARK",
    "CONNMARK",
    "SECMARK",
    "CONNSECMARK",
    "CLASSIFY",
    "TCPMSS",
    "TOS",
    "DSCP",
    "TTL",
    "HL",
    "ECN",
    "CHECKSUM",
    "TCPOPTSTRIP",
    "NOTRACK",
    "CT",
    "SET",
    "TEE",
    "LED",
    "IDLETIMER",
    "RATEEST",
    "HMARK",
];

/// Targets that translate addresses, which other hooks than the wanted one may do.
const TRANSLATIONS: [&str; 5] = ["DNAT", "SNAT", "MASQUERADE", "REDIRECT", "NETMAP"];

/// The hooks that every packet of a chain passes; none, if the chain is at no hook.
fn passed(chain: &str) -> &'static [&'static str] {
    match chain {
        "FORWARD" => &["PREROUTING", "FORWARD", "POSTROUTING"],
        "INPUT" => &["PREROUTING", "INPUT"],
        "OUTPUT" => &["OUTPUT", "POSTROUTING"],
        // Which hooks are behind the first one, or before the last one, is for the routes to say.
        "PREROUTING" => &["PREROUTING"],
        "POSTROUTING" => &["POSTROUTING"],
        _ => &[],
    }
}

/// Whether a table has a chain at a hook. The kernel makes it, whether the dump declares it or not.
fn has_hook(table: &Table<'_>, hook: &str) -> bool {
    match table.name {
        "filter" | "security" => matches!(hook, "INPUT" | "FORWARD" | "OUTPUT"),
        "raw" => matches!(hook, "PREROUTING" | "OUTPUT"),
        "nat" => hook != "FORWARD",
        _ => true,
    }
}

/// The rules of each chain, with their targets.
type Rules<'a> = HashMap<String, Vec<Option<Argument<'a>>>>;

/// Refuses a dump in which another chain that the packets of the wanted one pass lets not everything pass.
pub(super) fn others_decide_nothing(
    tables: &[Table<'_>],
    own: &Table<'_>,
    wanted: &str,
) -> Result<(), ImportError> {
    if !has_hook(own, wanted) {
        return Ok(());
    }
    for table in tables {
        let is_other = |hook: &&str| (table.name, *hook) != (own.name, wanted) && has_hook(table, hook);
        let others: Vec<&str> = passed(wanted).iter().copied().filter(is_other).collect();
        let Some(first) = others.first() else { continue };
        let rules = rules(table, first)?;
        for hook in others {
            let translates: &[&str] = if table.name == "nat" && hook != wanted { &TRANSLATIONS } else { &[] };
            drops_nothing(table, hook, &rules, translates)?;
        }
    }
    Ok(())
}

fn refuse(table: &Table<'_>, hook: &str, line: u32, column: u32, what: &str) -> ImportError {
    let what = format!(
        "the chain {hook} of the table `{}` decides about the same packets as well: {what}",
        shown(table.name)
    );
    let advice = "put both into one chain, or take the other one out of the dump";
    ImportError::new(line, column, what, advice)
}

fn rules<'a>(table: &Table<'a>, hook: &str) -> Result<Rules<'a>, ImportError> {
    let mut rules = Rules::new();
    for line in &table.rules {
        let mut words = words::words(*line)?.into_iter().skip_while(|word| is_counters(&word.text));
        let append = words.next().filter(|word| word.text == "-A");
        let chain = append.and(words.next()).map(|chain| chain.text.to_string());
        let is_chain = |chain: &String| table.number(chain).is_some() || !passed(chain).is_empty();
        let Some(chain) = chain.filter(is_chain) else {
            return Err(refuse(table, hook, line.number, 1, "this line is no rule of a chain of its table"));
        };
        let target =
            words.skip_while(|word| !matches!(&*word.text, "-j" | "--jump" | "-g" | "--goto")).nth(1);
        rules.entry(chain).or_default().push(target);
    }
    Ok(rules)
}

/// Refuses the policy of a chain, or the first target in it or in one that it leads to, that may drop a
/// packet.
fn drops_nothing(
    table: &Table<'_>,
    hook: &str,
    rules: &Rules<'_>,
    translates: &[&str],
) -> Result<(), ImportError> {
    if let Some(number) = table.number(hook)
        && table.chains[number].1 == Some(false)
    {
        let line = table.policies[number].unwrap_or(table.line);
        return Err(refuse(table, hook, line, 1, "its policy is DROP"));
    }
    let (mut seen, mut open) = (BTreeSet::from([hook.to_owned()]), vec![hook.to_owned()]);
    while let Some(chain) = open.pop() {
        // A rule without a target counts.
        for target in rules.get(&chain).into_iter().flatten().flatten() {
            if table.number(&target.text).is_some() {
                if seen.insert(target.text.to_string()) {
                    open.push(target.text.to_string());
                }
            } else if !TARGETS_THAT_DROP_NOTHING.contains(&&*target.text)
                && !translates.contains(&&*target.text)
            {
                let what = format!("here by the target {}", shown(&target.text));
                return Err(refuse(table, hook, target.line, target.column, &what));
            }
        }
    }
    Ok(())
}
