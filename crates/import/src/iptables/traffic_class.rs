//! The class of traffic of a packet: the differentiated services code point (RFC 2474), and below it the two
//! bits of explicit congestion notification (RFC 3168).

use super::matches::Matches;
use super::numbers::number;
use super::values::holds;
use super::words::Argument;
use crate::ImportError;
use crate::region::Set;
use crate::ruleset::Part;
use crate::text::shown;
use policy::{PacketField, RuleCondition, Values};

pub(super) fn dscp(value: &Argument<'_>, not: bool, matches: &mut Matches) -> Result<(), ImportError> {
    let point = u128::from(number(value.word(), 63, "code point")?);
    holds(PacketField::Dscp, vec![(point, point)], not, matches);
    Ok(())
}

/// A code point by its class (RFC 2474, 2597, 3246).
pub(super) fn dscp_class(value: &Argument<'_>, not: bool, matches: &mut Matches) -> Result<(), ImportError> {
    let name = value.text.to_ascii_uppercase();
    let digit = |at: usize, most: u8| {
        let digit = name.as_bytes().get(at).map(|digit| digit.wrapping_sub(b'0'));
        digit.filter(|digit| (1..=most).contains(digit)).map(u128::from)
    };
    let point = match (&*name, name.len()) {
        ("BE" | "CS0", _) => Some(0),
        ("EF", _) => Some(46),
        (class, 3) if class.starts_with("CS") => digit(2, 7).map(|class| class << 3),
        (class, 4) if class.starts_with("AF") => {
            digit(2, 4).zip(digit(3, 3)).map(|(class, drop)| class << 3 | drop << 1)
        }
        _ => None,
    };
    let point = point.ok_or_else(|| {
        let what = format!("`{}` is no class of code points", shown(&value.text));
        value.error(what, "classes are BE, EF, CS0 to CS7 and AF11 to AF43")
    })?;
    holds(PacketField::Dscp, vec![(point, point)], not, matches);
    Ok(())
}

/// The type of service: the code point and the bits below it in one byte.
pub(super) fn type_of_service(
    value: &Argument<'_>,
    not: bool,
    matches: &mut Matches,
) -> Result<(), ImportError> {
    const NAMES: [(&str, u64); 5] = [
        ("Minimize-Delay", 0x10),
        ("Maximize-Throughput", 0x08),
        ("Maximize-Reliability", 0x04),
        ("Minimize-Cost", 0x02),
        ("Normal-Service", 0x00),
    ];
    let (bits, mask) = match (NAMES.iter().find(|(name, _)| *name == value.text), value.word().split('/')) {
        (Some((_, bits)), _) => (*bits, 0x3f),
        (None, Some((bits, mask))) => {
            (number(bits, 255, "type of service")?, number(mask, 255, "mask of a type of service")?)
        }
        (None, None) => (number(value.word(), 255, "type of service")?, 0xff),
    };
    if bits & !mask != 0 {
        // Linux compares, and finds a difference.
        if !not {
            matches.conditions.never();
        }
        return Ok(());
    }
    let (bits, mask) = (u128::from(bits), u128::from(mask));
    let under = |field: PacketField, value: u128, mask: u128| {
        let values = if mask == field.most() { Values::exact(value) } else { Values::Masked { value, mask } };
        (mask != 0).then(|| RuleCondition::Holds(field, vec![values]))
    };
    let parts = [under(PacketField::Dscp, bits >> 2, mask >> 2), under(PacketField::Ecn, bits & 3, mask & 3)];
    // Every packet has both fields, so the opposite is that of the condition.
    matches.also(RuleCondition::All(parts.into_iter().flatten().collect()).turned(not));
    Ok(())
}

/// The bits of explicit congestion notification in the header of IP.
pub(super) fn congestion(value: &Argument<'_>, not: bool, matches: &mut Matches) -> Result<(), ImportError> {
    let bits = u128::from(number(value.word(), 3, "value of ECN")?);
    holds(PacketField::Ecn, vec![(bits, bits)], not, matches);
    Ok(())
}

/// A flag of TCP for congestion: ECE or CWR (RFC 3168, 6.1). Linux reads it in later fragments as well, where
/// it is a bit of the payload.
pub(super) fn congestion_flag(
    option: &Argument<'_>,
    not: bool,
    matches: &mut Matches,
) -> Result<(), ImportError> {
    if matches.protocol != Some(6) {
        let what = format!("`{}` is asked for where the protocol need not be 6", shown(&option.text));
        return Err(option.error(what, "put `-p tcp` before it"));
    }
    if !matches.asks_header() {
        let what = format!("`{}` reads the payload of later fragments as if it were a header", option.text);
        return Err(option.error(what, "put `-m tcp` before it, which no later fragment fits"));
    }
    let bit = if option.text == "--ecn-tcp-ece" { 0x40 } else { 0x80 };
    matches.conditions.is(Set::masked(8, bit, bit), Part::TcpFlags, not);
    Ok(())
}
