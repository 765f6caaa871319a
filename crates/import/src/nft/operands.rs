//! What stands on both sides of a comparison: fields of headers, sets by name, elements, operators.

use super::document::{SetObject, flatten};
use crate::address::AddressFamily;
use crate::ruleset::Part;
use crate::text::shown;
use serde_json::Value;
use std::collections::HashMap;

/// Sets and maps by name.
pub(crate) type Sets = HashMap<String, NamedSet>;

/// A set or a map that rules ask by name.
pub(crate) struct NamedSet {
    /// Whether it is a map.
    pub(crate) is_map: bool,
    /// Whether packets may add elements to it or remove some.
    pub(crate) is_dynamic: bool,
    /// Whether its elements go after a time.
    pub(crate) ages: bool,
    elements: Vec<Value>,
}

impl NamedSet {
    pub(crate) fn new(is_map: bool, object: SetObject) -> Self {
        let has = |wanted: &str| object.flags.iter().flat_map(flatten).any(|flag| flag == wanted);
        let ages = has("timeout") || object.timeout.is_some();
        // nft writes one element without a list, too.
        let elements = match object.elem {
            Some(Value::Array(elements)) => elements,
            Some(one) => vec![one],
            None => Vec::new(),
        };
        Self { is_map, is_dynamic: has("dynamic"), ages, elements }
    }

    /// Its elements as they stand.
    pub(crate) fn elements(&self) -> &[Value] {
        &self.elements
    }
}

/// Why a statement cannot be kept.
pub(crate) struct Refusal {
    pub(crate) what: String,
    /// What to do, where it is not what is said of all.
    pub(crate) advice: Option<&'static str>,
}

impl Refusal {
    pub(crate) fn new<T>(what: impl Into<String>) -> Result<T, Self> {
        Err(Self { what: what.into(), advice: None })
    }
}

/// The operator and the two sides of a match, which has nothing else.
pub(crate) fn sides(body: &Value) -> Result<(&str, &Value, &Value), Refusal> {
    if let Some(other) = body
        .as_object()
        .and_then(|members| members.keys().find(|name| !matches!(name.as_str(), "op" | "left" | "right")))
    {
        return Refusal::new(format!("what `{}` means in a match is not known here", shown(other)));
    }
    match (body.get("op").and_then(Value::as_str), body.get("left"), body.get("right")) {
        (Some(operator), Some(left), Some(right)) => Ok((operator, left, right)),
        _ => Refusal::new("the match has no operator or not two sides"),
    }
}

/// The values on the right: the elements of a set, or the one value.
pub(crate) fn elements(right: &Value, sets: &Sets) -> Result<Vec<Value>, Refusal> {
    let elements = match right {
        Value::String(name) if name.starts_with('@') => {
            let Some(set) = sets.get(&name[1..]) else {
                return Refusal::new(format!("there is no set `{}`", shown(&name[1..])));
            };
            if set.is_map || set.is_dynamic || set.ages {
                return Refusal::new(format!("the set `{}` changes by itself", shown(&name[1..])));
            }
            set.elements()
        }
        Value::Object(object) => match object.get("set") {
            Some(Value::Array(elements)) => elements,
            Some(one) => std::slice::from_ref(one),
            None => std::slice::from_ref(right),
        },
        _ => std::slice::from_ref(right),
    };
    elements.iter().map(plain).collect()
}

/// The value of an element, which may come with its own comment and counter. One that goes after a time is
/// refused.
pub(crate) fn plain(element: &Value) -> Result<Value, Refusal> {
    let Some(own) = element.get("elem") else { return Ok(element.clone()) };
    let parts = own.as_object().into_iter().flatten();
    let mut value = None;
    for (key, part) in parts {
        match key.as_str() {
            "val" => value = Some(part.clone()),
            "comment" | "counter" => {}
            other => {
                let other = shown(other);
                return Refusal::new(format!(
                    "an element of the set has `{other}`, which is more than its value says"
                ));
            }
        }
    }
    value.ok_or_else(|| Refusal { what: "an element of the set has no value".to_owned(), advice: None })
}

/// Whether an operator turns the comparison round.
pub(crate) fn is_not(operator: &str) -> Result<bool, Refusal> {
    match operator {
        "==" | "in" => Ok(false),
        "!=" => Ok(true),
        _ => Refusal::new(format!("the operator `{}` is not known here", shown(operator))),
    }
}

/// Whether an operator compares sizes.
pub(crate) fn is_order(operator: &str) -> bool {
    matches!(operator, "<" | ">" | "<=" | ">=")
}

/// The values from 0 to `most` that an operator of [`is_order`] means; `None` if there are none.
pub(crate) fn ends(operator: &str, value: u128, most: u128) -> Option<(u128, u128)> {
    match operator {
        "<" => value.checked_sub(1).map(|high| (0, high)),
        "<=" => Some((0, value)),
        ">=" => Some((value, most)),
        _ => (value < most).then(|| (value + 1, most)),
    }
}

/// The protocol that a header belongs to, and the family of its packets, where there is only one.
pub(crate) fn header(protocol: &str) -> (Option<u8>, Option<AddressFamily>) {
    match protocol {
        "ip" => (None, Some(AddressFamily::V4)),
        "ip6" => (None, Some(AddressFamily::V6)),
        "icmp" => (Some(1), Some(AddressFamily::V4)),
        "icmpv6" => (Some(58), Some(AddressFamily::V6)),
        "igmp" => (Some(2), Some(AddressFamily::V4)),
        "esp" => (Some(50), None),
        "ah" => (Some(51), None),
        "comp" => (Some(108), None),
        "tcp" => (Some(6), None),
        "udp" => (Some(17), None),
        "dccp" => (Some(33), None),
        "sctp" => (Some(132), None),
        "udplite" => (Some(136), None),
        _ => (None, None),
    }
}

/// The column of a field of a header; `None` where there is none.
pub(crate) fn column(protocol: &str, field: &str) -> Option<Part> {
    Some(match (protocol, field) {
        ("ip" | "ip6", "saddr") => Part::Source,
        ("ip" | "ip6", "daddr") => Part::Destination,
        ("ip", "protocol") => Part::Protocol,
        ("tcp" | "udp" | "dccp" | "sctp" | "udplite" | "th", "sport") => Part::SourcePort,
        ("tcp" | "udp" | "dccp" | "sctp" | "udplite" | "th", "dport") => Part::DestinationPort,
        ("tcp", "flags") => Part::TcpFlags,
        ("icmp" | "icmpv6", "type") => Part::IcmpType,
        ("icmp" | "icmpv6", "code") => Part::IcmpCode,
        ("ether", "saddr") => Part::SourceMac,
        _ => return None,
    })
}

/// Two names within an object, such as the protocol and the field of a `payload`; empty where there is none.
pub(crate) fn names<'a>(object: &'a Value, keys: [&str; 2]) -> (&'a str, &'a str) {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    (text(keys[0]), text(keys[1]))
}

pub(crate) fn is_fragment_offset(left: &Value) -> bool {
    left.get("payload").is_some_and(|payload| names(payload, ["protocol", "field"]) == ("ip", "frag-off"))
}

/// What is refused of a left side that looks at no field.
pub(crate) fn unknown<T>(left: &Value) -> Result<T, Refusal> {
    let what = left.as_object().and_then(|object| object.keys().next()).map_or("this", String::as_str);
    let cause = match what {
        "fib" | "rt" | "socket" | "ipsec" => "asks this machine and not the packet",
        "numgen" | "jhash" | "symhash" => "leaves the answer to chance",
        _ => "is something for which there is no column",
    };
    Refusal::new(format!("`{}` {cause}", shown(what)))
}

/// Why a statement is refused.
pub(crate) fn cause(kind: &str) -> &'static str {
    match kind {
        "limit" | "quota" | "meter" | "set" | "map" | "ct count" | "connlimit" => "remembers earlier packets",
        "snat" | "dnat" | "masquerade" | "redirect" | "tproxy" => "changes addresses",
        "mangle" => "changes the packet or its marks",
        "vmap" => "decides by a map",
        "queue" => "leaves the decision to a process",
        "dup" | "fwd" => "sends the packet elsewhere",
        "ct helper" | "ct timeout" | "ct expectation" | "notrack" | "flow" | "synproxy" => {
            "tells how connections are followed"
        }
        _ => "is not known here",
    }
}
