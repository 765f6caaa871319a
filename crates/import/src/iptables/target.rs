//! What stands behind `-j` and `-g`: the target of a rule and its options.

use super::matches::Matches;
use super::options;
use super::rule::Purpose;
use super::words::{Argument, Arguments};
use crate::ImportError;
use crate::address::AddressFamily;
use crate::text::shown;
use policy::{Reject, RuleAction};

/// What a refusal of address translation advises.
pub(super) const NO_TRANSLATION: &str = "address translation is not read yet; take it out of the dump";

/// The target as it is read.
pub(super) struct ReadTarget {
    pub(super) action: RuleAction,
    pub(super) log: bool,
}

/// What a rule with this target needs to know of its surroundings.
pub(super) struct Surroundings<'a> {
    pub(super) purpose: Purpose,
    pub(super) family: AddressFamily,
    /// The table; unknown where rows are wanted.
    pub(super) table: &'a str,
    /// The number of a chain of the table.
    pub(super) chain: &'a dyn Fn(&str) -> Option<usize>,
}

/// Reads the target, and the options that follow it.
pub(super) fn target(
    option: &Argument<'_>,
    arguments: &mut Arguments<'_>,
    matches: &Matches,
    around: &Surroundings<'_>,
) -> Result<ReadTarget, ImportError> {
    let goto = option.text.starts_with("-g") || option.text == "--goto";
    let name = arguments.value(option)?;
    let decided = |action| Ok(ReadTarget { action, log: false });
    if let Some(number) = (around.chain)(&name.text) {
        return decided(if goto { RuleAction::Goto(number) } else { RuleAction::Jump(number) });
    }
    match &*name.text {
        "ACCEPT" if !goto => return decided(RuleAction::Pass),
        "DROP" if !goto => return decided(RuleAction::Block),
        "REJECT" if !goto => {
            if !matches!(around.table, "" | "filter") {
                let what = format!("Linux rejects nothing in the table `{}`", shown(around.table));
                return Err(name.error(what, "reject in the table `filter`, or drop"));
            }
            return decided(RuleAction::Reject(reject(arguments, matches, around.family)?));
        }
        "RETURN" if !goto => return decided(RuleAction::Return),
        _ => {}
    }
    if let (Purpose::Policy, false, Some(set)) = (around.purpose, goto, options::logging(&name.text)) {
        set.read(&name, arguments)?;
        return Ok(ReadTarget { action: RuleAction::Continue, log: true });
    }
    Err(refused(&name, around.purpose))
}

/// What a target does that marks.
const MARKS: &str = "marks the packet for others";

fn refused(name: &Argument<'_>, purpose: Purpose) -> ImportError {
    let cause = match &*name.text {
        "LOG" | "NFLOG" | "ULOG" | "TRACE" | "AUDIT" => "writes a log and decides nothing",
        "DNAT" | "SNAT" | "MASQUERADE" | "NETMAP" | "REDIRECT" | "TPROXY" => "changes addresses (NAT)",
        "MARK" | "CONNMARK" | "SECMARK" | "CONNSECMARK" | "CLASSIFY" => MARKS,
        "TCPMSS" | "TOS" | "DSCP" | "TTL" | "HL" | "ECN" | "CHECKSUM" | "TCPOPTSTRIP" => "changes the packet",
        "NOTRACK" | "CT" | "SYNPROXY" => "tells how connections are followed",
        "SET" => "changes a set",
        "QUEUE" | "NFQUEUE" => "leaves the decision to a process",
        _ => {
            let what = format!("there is no chain or target `{}`", shown(&name.text));
            return name.error(what, "declare the chain with a line `:NAME - [0:0]`");
        }
    };
    let what = format!("the target {} {cause}", shown(&name.text));
    if cause == MARKS && purpose == Purpose::Policy {
        return name.error(what, "leave rules aside that mark, by `skip_marks`, if no rule asks for a mark");
    }
    name.error(what, "a rule means ACCEPT, DROP, REJECT, RETURN or a jump to a chain")
}

/// The names of ICMP codes that a rejected packet is answered with (RFC 792, RFC 1812), long and short.
const V4: [(&str, &str, u8); 7] = [
    ("icmp-net-unreachable", "net-unreach", 0),
    ("icmp-host-unreachable", "host-unreach", 1),
    ("icmp-proto-unreachable", "proto-unreach", 2),
    ("icmp-port-unreachable", "port-unreach", 3),
    ("icmp-net-prohibited", "net-prohib", 9),
    ("icmp-host-prohibited", "host-prohib", 10),
    ("icmp-admin-prohibited", "admin-prohib", 13),
];

/// Those of ICMPv6 (RFC 4443, 3.1).
const V6: [(&str, &str, u8); 6] = [
    ("icmp6-no-route", "no-route", 0),
    ("icmp6-adm-prohibited", "adm-prohibited", 1),
    ("icmp6-addr-unreachable", "addr-unreach", 3),
    ("icmp6-port-unreachable", "port-unreach", 4),
    ("icmp6-policy-fail", "policy-fail", 5),
    ("icmp6-reject-route", "reject-route", 6),
];

fn reject(
    arguments: &mut Arguments<'_>,
    matches: &Matches,
    family: AddressFamily,
) -> Result<Reject, ImportError> {
    let with = arguments.ahead().first().is_some_and(|word| word.text == "--reject-with");
    let Some(option) = with.then(|| arguments.next()).flatten() else {
        return Ok(match family {
            AddressFamily::V4 => Reject::Icmp(3),
            AddressFamily::V6 => Reject::Icmpv6(4),
        });
    };
    let kind = arguments.value(&option)?;
    if matches!(&*kind.text, "tcp-reset" | "tcp-rst") {
        return if matches.protocol == Some(6) {
            Ok(Reject::TcpReset)
        } else {
            Err(kind.error(
                "a reset answers TCP alone, and the protocol need not be TCP",
                "put `-p tcp` before it",
            ))
        };
    }
    let names: &[(&str, &str, u8)] = if family == AddressFamily::V4 { &V4 } else { &V6 };
    let found = names.iter().find(|(long, short, _)| [*long, *short].contains(&&*kind.text));
    let Some((_, _, code)) = found else {
        let what = format!("`{}` is no answer to a rejected packet", shown(&kind.text));
        let known: Vec<&str> = names.iter().map(|(long, _, _)| *long).collect();
        return Err(kind.error(what, format!("known are tcp-reset, {}", known.join(", "))));
    };
    Ok(if family == AddressFamily::V4 { Reject::Icmp(*code) } else { Reject::Icmpv6(*code) })
}
