//! `-m limit` of iptables as a rate.

use super::numbers::parse_number;
use super::options::{OptionValues, packets_in_time};
use super::rule::{OPTIONS, Reading};
use crate::rates;
use policy::RuleRate;
use std::sync::Arc;

/// Matches that have `--dport`.
const WITH_PORTS: [&str; 5] = ["tcp", "udp", "dccp", "sctp", "udplite"];

/// The rate of a limit with these options, behind which the rest of the rule stands: without options 3
/// packets an hour, and 5 at once.
///
/// # Errors
/// Why no program has a limit like it.
pub(super) fn rate(options: &OptionValues<'_>, rule: &Reading<'_, '_>) -> Result<RuleRate, Arc<str>> {
    if rule.arguments.ahead().iter().any(|word| is_of_header(&word.text)) {
        return Err("Linux looks at addresses, protocol and interfaces before it: write them in front".into());
    }
    if asks_before(rule) {
        return Err(
            "Linux asks a match that is named before it first: write the options of that one in front".into(),
        );
    }
    let (count, seconds) = match options.value("--limit") {
        Some(text) => packets_in_time(text).ok_or("its rate is no number of packets in a time")?,
        None => (3, 3_600),
    };
    let burst = match options.value("--limit-burst") {
        Some(text) => parse_number(text).and_then(|burst| u32::try_from(burst).ok()),
        None => Some(5),
    };
    rates::of_iptables(count, seconds, burst.ok_or("its burst is no number of packets")?)
}

/// Whether a word is an option about the header of IP or interfaces, which Linux looks at before all matches.
fn is_of_header(word: &str) -> bool {
    OPTIONS.iter().any(|(own, of, name)| *own == word && of.is_empty() && !matches!(*name, "-j" | "-m"))
}

/// Whether an option further on belongs to a match that has been named: Linux asks in the order of the
/// names.
fn asks_before(rule: &Reading<'_, '_>) -> bool {
    let mut renamed: Vec<&str> = Vec::new();
    let mut words = rule.arguments.ahead().iter().map(|word| &*word.text).peekable();
    while let Some(word) = words.next() {
        if matches!(word, "-m" | "--match") {
            renamed.extend(words.peek());
        }
        let Some((_, of, _)) = OPTIONS.iter().find(|(own, of, _)| *own == word && !of.is_empty()) else {
            continue;
        };
        let takes = |module: &str| match *of {
            "tcp" => WITH_PORTS.contains(&module),
            "icmp6" => matches!(module, "icmp6" | "icmpv6"),
            of => of == module,
        };
        let again = renamed.iter().any(|module| takes(module));
        // An option of a protocol names its match, too.
        let named = rule.named.iter().any(|module| takes(&module.text))
            || rule.seen.iter().any(|(seen, _)| seen == of);
        if named && !again {
            return true;
        }
    }
    false
}
