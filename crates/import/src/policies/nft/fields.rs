//! What a comparison looks at, and the values that it is compared with, as fields of packets.
//!
//! What nftables adds by itself is said: `tcp dport` asks for the protocol as well, and `ip saddr` for the
//! family.

use super::conditions::{family, protocol};
use super::headers::{self, bits_of, known_where_asked, no_field};
use super::ruleset::{Families, Reached};
use crate::address::{AddressFamily, host_mask};
use crate::conditions::{Interfaces, values};
use crate::limits::MOST_SET_VALUES;
use crate::nft::document::flatten;
use crate::nft::operands::{self, Refusal, Sets, names};
use crate::nft::value;
use crate::region::Set;
use crate::ruleset::Part;
use crate::text::{parse_number, shown};
use policy::{HookPoint, PacketField, RuleCondition, RulePlace, State, Values};
use serde_json::Value;

/// Where a match stands.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) families: Families,
    pub(super) reached: &'a Reached,
    pub(super) sets: Option<&'a Sets>,
    pub(super) place: RulePlace,
}

/// What a comparison looks at.
pub(super) struct Left {
    pub(super) field: PacketField,
    /// What must hold besides.
    pub(super) needs: Vec<RuleCondition>,
    pub(super) reads: Reads,
    pub(super) mask: Option<u128>,
    /// Whether it is looked for in whatever header there is.
    pub(super) any_ports: bool,
}

/// How values on the right are read.
#[derive(Clone, Copy)]
pub(super) enum Reads {
    Column(Part, AddressFamily),
    /// The names of families behind IP, or behind Ethernet.
    Families(&'static [(&'static str, u128)]),
    /// Bits of the state of connections.
    State,
    Dscp,
    Ecn,
    /// A number of so many bits that is smaller than the field's by so much.
    Number {
        width: u8,
        less: u128,
    },
    /// A number of so many bits, or one of these names.
    Names {
        names: &'static [(&'static str, u128)],
        width: u8,
    },
    /// Some bits of the field, the lowest of them so many above its lowest.
    Bits {
        shift: u8,
        width: u8,
    },
}

const FAMILIES: &[(&str, u128)] = &[("ipv4", 4), ("ipv6", 6)];

/// Packets of ARP and with tags of VLANs come to no chain of `ip`, `ip6` or `inet`.
const ETHERNET: &[(&str, u128)] = &[("ip", 4), ("ip6", 6), ("arp", 0), ("vlan", 0), ("8021q", 0)];

/// The bit of a state (`NF_CT_STATE_BIT` of Linux).
pub(super) fn state_bit(state: State) -> u128 {
    match state {
        State::Invalid => 1,
        State::Established => 2,
        State::Related => 4,
        State::New => 8,
        State::Untracked => 64,
    }
}

/// Names of code points (RFC 2474, 2597, 3246).
const CODE_POINTS: [(&str, u128); 25] = [
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("df", 0),
    ("be", 0),
    ("ef", 46),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("lephb", 1),
    ("va", 44),
];

/// Names of the bits of explicit congestion notification (RFC 3168, 5).
const CONGESTION: [(&str, u128); 4] = [("not-ect", 0), ("ect1", 1), ("ect0", 2), ("ce", 3)];

/// Reads what stands on both sides of comparisons.
pub(super) struct Fields {
    interfaces: Interfaces,
    /// Whether the state of connections is asked for.
    pub(super) asks_state: bool,
    /// How many values conditions hold.
    values: usize,
}

impl Fields {
    pub(super) fn new(interfaces: Interfaces) -> Self {
        Self { interfaces, asks_state: false, values: 0 }
    }

    /// The parts of a key, of which a concatenation has several.
    pub(super) fn key(&mut self, left: &Value, context: Context<'_>) -> Result<Vec<Left>, Refusal> {
        match left.get("concat").and_then(Value::as_array) {
            Some(parts) => parts.iter().map(|part| self.left(part, context)).collect(),
            None => Ok(vec![self.left(left, context)?]),
        }
    }

    fn left(&mut self, left: &Value, context: Context<'_>) -> Result<Left, Refusal> {
        if let Some(sides) = left.get("&").and_then(Value::as_array) {
            let [inner, mask] = &sides[..] else { return Refusal::new("`&` has not two sides") };
            let inner = self.left(inner, context)?;
            let is_name = matches!(inner.field, PacketField::InPort | PacketField::OutPort);
            let mask = match inner.reads {
                _ if inner.mask.is_some() || is_name => None,
                Reads::Column(part, family) => value::number(mask, part, family),
                Reads::State => state_bits(mask),
                _ => None,
            };
            return match mask {
                Some(mask) => Ok(Left { mask: Some(mask), ..inner }),
                None => Refusal::new(format!("the mask on {} is not known here", inner.field.name())),
            };
        }
        if let Some(payload) = left.get("payload") {
            let (protocol, field) = names(payload, ["protocol", "field"]);
            return self.payload(protocol, field, context);
        }
        if let Some(header) = left.get("exthdr") {
            let (name, field) = names(header, ["name", "field"]);
            return self.extension(name, field, context);
        }
        if let Some(key) = left.get("meta").and_then(|meta| meta.get("key")?.as_str()) {
            return self.meta(key, context);
        }
        if let Some(key) = left.get("ct").and_then(|ct| ct.get("key")?.as_str()) {
            if key != "state" {
                return Refusal::new(format!("`ct {}` is more than the state of a connection", shown(key)));
            }
            self.asks_connections(context)?;
            return Ok(Left::of(PacketField::State, Reads::State));
        }
        operands::unknown(left)
    }

    /// Notes that a rule asks for connections.
    ///
    /// # Errors
    /// It stands where Linux has not looked for them yet.
    pub(super) fn asks_connections(&mut self, context: Context<'_>) -> Result<(), Refusal> {
        if context.reached.before_connections {
            let what = "the chain comes before connections are looked up, where every packet is invalid";
            let advice = "put the rule into a chain of a priority above -200";
            return Err(Refusal { what: what.to_owned(), advice: Some(advice) });
        }
        self.asks_state = true;
        Ok(())
    }

    fn meta(&self, key: &str, context: Context<'_>) -> Result<Left, Refusal> {
        let points = &context.reached.points;
        let ports = |part| Reads::Column(part, AddressFamily::V4);
        Ok(match key {
            "l4proto" => Left::of(PacketField::Protocol, Reads::Column(Part::Protocol, AddressFamily::V4)),
            "nfproto" => Left::of(PacketField::Family, Reads::Families(FAMILIES)),
            "protocol" => Left::of(PacketField::Family, Reads::Families(ETHERNET)),
            "length" => Left::of(PacketField::Length, Reads::Number { width: 16, less: 0 }),
            "iifname" | "iif" => Left::of(PacketField::InPort, ports(Part::InPort)),
            "oifname" | "oif" if points.contains(&HookPoint::In) => {
                return Refusal::new(
                    "the chain asks by which interface a packet leaves before that is known",
                );
            }
            "oifname" | "oif" => Left::of(PacketField::OutPort, ports(Part::OutPort)),
            _ => {
                return Refusal::new(format!(
                    "`meta {}` is something for which there is no field",
                    shown(key)
                ));
            }
        })
    }

    fn payload(&self, header: &str, field: &str, context: Context<'_>) -> Result<Left, Refusal> {
        let (of_protocol, of_family) = operands::header(header);
        let mut left = match (header, field) {
            ("ip" | "ip6", "dscp") => Left::of(PacketField::Dscp, Reads::Dscp),
            ("ip" | "ip6", "ecn") => Left::of(PacketField::Ecn, Reads::Ecn),
            ("ip", "length") => Left::of(PacketField::Length, Reads::Number { width: 16, less: 0 }),
            // Without the header itself.
            ("ip6", "length") => Left::of(PacketField::Length, Reads::Number { width: 16, less: 40 }),
            ("ip", "ttl") | ("ip6", "hoplimit") => {
                // Linux takes one away before it asks at `forward`.
                let forward = |point: &HookPoint| *point == HookPoint::Forward;
                let points = &context.reached.points;
                let less = u128::from(points.iter().all(forward));
                if less == 0 && points.iter().any(|point| forward(point) || *point == HookPoint::Out) {
                    return Refusal::new(
                        "the chain asks for the time to live both before and after it is one less",
                    );
                }
                Left::of(PacketField::TimeToLive, Reads::Number { width: 8, less })
            }
            ("ip", "version") => Left::of(PacketField::Family, Reads::Number { width: 4, less: 0 }),
            ("ether", "type") => Left::of(PacketField::Family, Reads::Families(ETHERNET)),
            _ => match operands::column(header, field) {
                Some(part) => {
                    let reads = Reads::Column(part, of_family.unwrap_or_default());
                    let name = PacketField::ALL.into_iter().find(|field| field.name() == part.name());
                    name.map(|field| Left::of(field, reads)).ok_or_else(|| Refusal {
                        what: format!("there is no field {}", part.name()),
                        advice: None,
                    })?
                }
                None => {
                    let found = headers::of_payload(header, field).ok_or_else(|| no_field(header, field))?;
                    known_where_asked(&found, header, field, context)?;
                    found.left()
                }
            },
        };
        // nft asks for the family of an ICMP message only where nothing else says it.
        let others = match of_family {
            Some(AddressFamily::V4) => Families::V6,
            _ => Families::V4,
        };
        if (header.starts_with("icmp") || header == "igmp") && context.families == others {
            return Refusal::new(format!("no packet of the table's family carries `{}`", shown(header)));
        }
        let own = |own: AddressFamily| match own {
            AddressFamily::V4 => (4, Families::V4),
            AddressFamily::V6 => (6, Families::V6),
        };
        let mut of_types = std::mem::take(&mut left.needs);
        if let Some((version, _)) = of_family.map(own).filter(|(_, own)| context.families != *own) {
            left.needs.push(family(version));
        }
        left.needs.extend(of_protocol.map(protocol));
        left.needs.append(&mut of_types);
        left.any_ports = header == "th";
        Ok(left)
    }

    /// A field of an extension header of IPv6.
    fn extension(&self, header: &str, field: &str, context: Context<'_>) -> Result<Left, Refusal> {
        let found = headers::of_extension(header, field).ok_or_else(|| no_field(header, field))?;
        known_where_asked(&found, header, field, context)?;
        let mut left = found.left();
        match context.families {
            Families::V4 => {
                return Refusal::new(format!(
                    "no packet of the table's family has a header `{}`",
                    shown(header)
                ));
            }
            Families::Both => left.needs.push(family(6)),
            Families::V6 => {}
        }
        Ok(left)
    }

    /// The values of a field that an element means.
    pub(super) fn values(&mut self, left: &Left, value: &Value) -> Result<Vec<Values>, Refusal> {
        let no_value = || {
            let what = format!("`{}` is no value of {}", shown(&value.to_string()), left.field.name());
            Refusal { what, advice: None }
        };
        let mut values = match left.reads {
            Reads::Column(Part::InPort | Part::OutPort, _) => self.ports(value)?,
            Reads::Column(part, family) => match left.mask {
                Some(mask) => {
                    let bits = value::number(value, part, family).ok_or_else(no_value)?;
                    // Bits outside of the mask are zero for Linux, so a value that has them never fits.
                    let set = Set::masked(part.width(family), bits, mask);
                    if bits & !mask == 0 { values_of(left, set) } else { Vec::new() }
                }
                None => {
                    let set = value::set(value, part, family).ok_or_else(no_value)?;
                    values_of(left, set)
                }
            },
            Reads::Families(known) => {
                let found = known.iter().find(|(name, _)| value == name).ok_or_else(no_value)?;
                vec![Values::exact(found.1)]
            }
            Reads::State => {
                let bits = state_bits(value).ok_or_else(no_value)?;
                let states = State::ALL.into_iter().filter(|state| state_bit(*state) == bits);
                states.map(|state| Values::exact(state as u128)).collect()
            }
            Reads::Dscp | Reads::Ecn => {
                let bits: fn(&Value) -> Option<u128> = match left.reads {
                    Reads::Dscp => code_point,
                    _ => congestion,
                };
                let set = value::set_of(value, left.field.width(), &bits).ok_or_else(no_value)?;
                values_of(left, set)
            }
            Reads::Number { width, .. } | Reads::Bits { width, .. } => {
                let number = |value: &Value| plain_number(value, width);
                let set = value::set_of(value, width, &number).ok_or_else(no_value)?;
                values_of(left, set)
            }
            Reads::Names { names, width } => {
                let number = |value: &Value| {
                    let named = names.iter().find(|(name, _)| value == name);
                    named.map(|(_, number)| *number).or_else(|| plain_number(value, width))
                };
                let set = value::set_of(value, width, &number).ok_or_else(no_value)?;
                values_of(left, set)
            }
        };
        values.shrink_to_fit();
        // A comparison with nothing takes memory, too.
        self.count(values.len().max(1))?;
        Ok(values)
    }

    /// Notes that conditions hold so many more values.
    pub(super) fn count(&mut self, more: usize) -> Result<(), Refusal> {
        self.values = self.values.saturating_add(more);
        if self.values > MOST_SET_VALUES {
            let what = format!("the rules up to here hold more than {MOST_SET_VALUES} values");
            let advice = "ask for a large set in fewer rules, such as in a chain that others jump to";
            return Err(Refusal { what, advice: Some(advice) });
        }
        Ok(())
    }

    /// The ports that the name of an interface means.
    fn ports(&mut self, value: &Value) -> Result<Vec<Values>, Refusal> {
        let Some(name) = value.as_str() else {
            return Refusal::new(
                "an interface is known by its name alone; print the ruleset on the machine that has it",
            );
        };
        let sets = match name.strip_suffix('*') {
            Some(start) => self.interfaces.starting(start),
            None => self.interfaces.one(name).map(|set| vec![set]),
        };
        match sets {
            Ok(sets) => Ok(sets.into_iter().map(Values::from).collect()),
            Err(fault) => {
                let (what, advice) = fault.words(name);
                Err(Refusal { what, advice: Some(advice) })
            }
        }
    }
}

impl Left {
    pub(super) fn of(field: PacketField, reads: Reads) -> Self {
        Self { field, needs: Vec::new(), reads, mask: None, any_ports: false }
    }
}

/// The values of a field that a set of what stands in the file means; none if no value of the field can be
/// one of it.
pub(super) fn values_of(left: &Left, set: Set) -> Vec<Values> {
    let less = if let Reads::Number { less, .. } = left.reads { less } else { 0 };
    let most = left.field.most();
    match (left.reads, set) {
        (Reads::Column(part, family), set) => vec![values(family, part, set)],
        (Reads::Bits { shift, width }, Set::Range { low, high }) => {
            bits_of(left.field.width(), shift, width, low, high)
        }
        (_, Set::Range { low, high }) => (low + less <= most)
            .then(|| Values::Range { low: low + less, high: (high + less).min(most) })
            .into_iter()
            .collect(),
        (_, masked) => vec![masked.into()],
    }
}

pub(super) fn plain_number(value: &Value, width: u8) -> Option<u128> {
    let number = match value {
        Value::Number(number) => number.as_u64()?,
        Value::String(text) => parse_number(text)?,
        _ => return None,
    };
    Some(u128::from(number)).filter(|number| *number <= host_mask(width, 0))
}

pub(super) fn code_point(value: &Value) -> Option<u128> {
    let named = CODE_POINTS.iter().find(|(name, _)| value == name);
    named.map(|(_, point)| *point).or_else(|| plain_number(value, 6))
}

pub(super) fn congestion(value: &Value) -> Option<u128> {
    let named = CONGESTION.iter().find(|(name, _)| value == name);
    named.map(|(_, bits)| *bits).or_else(|| plain_number(value, 2))
}

pub(super) fn state_bits(value: &Value) -> Option<u128> {
    match value {
        Value::String(name) => State::ALL.into_iter().find(|state| state.name() == name).map(state_bit),
        Value::Number(number) => number.as_u64().map(u128::from),
        Value::Object(object) => {
            object.get("|")?.as_array()?.iter().try_fold(0, |all, one| Some(all | state_bits(one)?))
        }
        Value::Array(_) => flatten(value).try_fold(0, |all, one| Some(all | state_bits(one)?)),
        _ => None,
    }
}
