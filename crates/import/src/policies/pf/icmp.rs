//! Types and codes of ICMP by the names that pf has for them.

use super::lists::each;
use crate::ImportError;
use crate::policies::endpoints::{is, one_of};
use crate::policies::words::{FilterWord, Statement};
use crate::text::{parse_number, shown};
use policy::{PacketField, RuleCondition};

/// Names of the types of ICMP.
pub(super) const TYPES: [(&str, u8); 25] = [
    ("echorep", 0),
    ("unreach", 3),
    ("squench", 4),
    ("redir", 5),
    ("althost", 6),
    ("echoreq", 8),
    ("routeradv", 9),
    ("routersol", 10),
    ("timex", 11),
    ("paramprob", 12),
    ("timereq", 13),
    ("timerep", 14),
    ("inforeq", 15),
    ("inforep", 16),
    ("maskreq", 17),
    ("maskrep", 18),
    ("trace", 30),
    ("dataconv", 31),
    ("mobredir", 32),
    ("ipv6-where", 33),
    ("ipv6-here", 34),
    ("mobregreq", 35),
    ("mobregrep", 36),
    ("skip", 39),
    ("photuris", 40),
];

/// Names of the types of ICMPv6.
pub(super) const V6_TYPES: [(&str, u8); 17] = [
    ("unreach", 1),
    ("toobig", 2),
    ("timex", 3),
    ("paramprob", 4),
    ("echoreq", 128),
    ("echorep", 129),
    ("groupqry", 130),
    ("listqry", 130),
    ("grouprep", 131),
    ("listenrep", 131),
    ("groupterm", 132),
    ("listendone", 132),
    ("routersol", 133),
    ("routeradv", 134),
    ("neighbrsol", 135),
    ("neighbradv", 136),
    ("redir", 137),
];

/// Names of the codes of "destination unreachable", by their numbers.
const CODES: [&str; 16] = [
    "net-unr",
    "host-unr",
    "proto-unr",
    "port-unr",
    "needfrag",
    "srcfail",
    "net-unk",
    "host-unk",
    "isolate",
    "net-prohib",
    "host-prohib",
    "net-tos",
    "host-tos",
    "filter-prohib",
    "host-preced",
    "cutoff-preced",
];

/// Names of the codes of "destination unreachable" of ICMPv6.
const V6_CODES: [(&str, u8); 6] = [
    ("noroute-unr", 0),
    ("admin-unr", 1),
    ("notnbr-unr", 2),
    ("beyond-unr", 2),
    ("addr-unr", 3),
    ("port-unr", 4),
];

/// Reads types behind `icmp-type` or `icmp6-type`, each perhaps with a code: one of them holds.
pub(super) fn types(
    statement: &mut Statement<'_, '_>,
    names: &[(&str, u8)],
) -> Result<RuleCondition, ImportError> {
    let first = statement.peek();
    let mut any = Vec::new();
    each(statement, |statement| {
        let word = statement.name("type")?;
        let known = names.iter().find(|(name, _)| *name == word.text).map(|(_, kind)| *kind);
        let mut all = vec![is(PacketField::IcmpType, octet(&word, known)?.into())];
        if statement.takes("code") {
            let word = statement.name("code")?;
            all.push(is(PacketField::IcmpCode, octet(&word, None)?.into()));
        }
        any.push(RuleCondition::All(all));
        Ok(())
    })?;
    if any.is_empty() {
        return Err(first.error("the list is empty: it matches no packet", "leave the rule out"));
    }
    Ok(one_of(any))
}

/// Reads `(code)` of ICMPv6, or `(code[, code of ICMPv6])` if the first one is of ICMP. A code that is not
/// there is that of an unreachable port.
pub(super) fn codes(statement: &mut Statement<'_, '_>, is_v4: bool) -> Result<(u8, u8), ImportError> {
    let (mut v4, mut v6) = (3, 4);
    statement.mark("(")?;
    if is_v4 {
        let word = statement.name("code")?;
        let known = CODES.iter().position(|name| *name == word.text).map(|code| code as u8);
        v4 = octet(&word, known)?;
    }
    if !is_v4 || statement.takes_mark(",") {
        let word = statement.name("code")?;
        let known = V6_CODES.iter().find(|(name, _)| *name == word.text).map(|(_, code)| *code);
        v6 = octet(&word, known)?;
    }
    statement.mark(")")?;
    Ok((v4, v6))
}

fn octet(word: &FilterWord<'_>, known: Option<u8>) -> Result<u8, ImportError> {
    let number = parse_number(word.text).and_then(|number| u8::try_from(number).ok());
    number.or(known).ok_or_else(|| {
        let what = format!("`{}` is no type or code that is known here", shown(word.text));
        word.error(what, "write its number")
    })
}
