//! Values of nftables' JSON as numbers and sets of a column.

use crate::address::{self, AddressFamily, host_mask};
use crate::region::Set;
use crate::ruleset::Part;
use crate::services;
use serde_json::Value;

/// A value of a column that is one number.
pub(crate) fn number(value: &Value, part: Part, family: AddressFamily) -> Option<u128> {
    let most = host_mask(part.width(family), 0);
    let number = match value {
        Value::Number(number) => u128::from(number.as_u64()?),
        Value::String(text) => match crate::text::parse_number(text) {
            Some(number) => number.into(),
            None => named(text, part, family)?,
        },
        Value::Array(flags) if part == Part::TcpFlags => {
            flags.iter().try_fold(0, |all, flag| Some(all | number_of_flag(flag, family)?))?
        }
        Value::Object(object) => {
            let [one, other] = &object.get("|")?.as_array()?[..] else { return None };
            number_of_flag(one, family)? | number_of_flag(other, family)?
        }
        _ => return None,
    };
    (number <= most).then_some(number)
}

fn number_of_flag(value: &Value, family: AddressFamily) -> Option<u128> {
    number(value, Part::TcpFlags, family)
}

fn named(text: &str, part: Part, family: AddressFamily) -> Option<u128> {
    match part {
        Part::Source | Part::Destination => {
            address::parse(text.as_bytes()).filter(|(own, _)| *own == family).map(|(_, bits)| bits)
        }
        Part::Protocol => services::protocol(text).map(u128::from),
        Part::SourcePort | Part::DestinationPort => services::port(text, None).map(u128::from),
        Part::IcmpType => {
            let (kind, code) = services::icmp(text, family == AddressFamily::V6)?;
            code.is_none().then_some(kind.into())
        }
        Part::IcmpCode => icmp_code(text, family),
        Part::TcpFlags => {
            let names = ["fin", "syn", "rst", "psh", "ack", "urg", "ecn", "cwr"];
            names.iter().position(|name| *name == text).map(|bit| 1 << bit)
        }
        Part::SourceMac => address::parse_mac(text),
        Part::InPort | Part::OutPort | Part::Flags | Part::Fragment => None,
    }
}

fn icmp_code(text: &str, family: AddressFamily) -> Option<u128> {
    const V4: [(&str, u128); 8] = [
        ("net-unreachable", 0),
        ("host-unreachable", 1),
        ("prot-unreachable", 2),
        ("port-unreachable", 3),
        ("frag-needed", 4),
        ("net-prohibited", 9),
        ("host-prohibited", 10),
        ("admin-prohibited", 13),
    ];
    const V6: [(&str, u128); 6] = [
        ("no-route", 0),
        ("admin-prohibited", 1),
        ("addr-unreachable", 3),
        ("port-unreachable", 4),
        ("policy-fail", 5),
        ("reject-route", 6),
    ];
    let names = if family == AddressFamily::V6 { &V6[..] } else { &V4[..] };
    names.iter().find(|(name, _)| *name == text).map(|(_, code)| *code)
}

/// The values of a column that a value, a range or a prefix means.
pub(crate) fn set(value: &Value, part: Part, family: AddressFamily) -> Option<Set> {
    set_of(value, part.width(family), &|value| number(value, part, family))
}

/// The values of a field of so many bits that a value, a range or a prefix means; `number` reads one value.
pub(crate) fn set_of(value: &Value, width: u8, number: &dyn Fn(&Value) -> Option<u128>) -> Option<Set> {
    let object = value.as_object();
    if let Some([low, high]) = object.and_then(|object| object.get("range")?.as_array()).map(|ends| &ends[..])
    {
        let (low, high) = (number(low)?, number(high)?);
        return (low <= high).then_some(Set::Range { low, high });
    }
    if let Some(prefix) = object.and_then(|object| object.get("prefix")) {
        let length = u8::try_from(prefix.get("len")?.as_u64()?).ok().filter(|length| *length <= width)?;
        return Some(Set::prefix(width, number(prefix.get("addr")?)?, length));
    }
    number(value).map(Set::exact)
}
