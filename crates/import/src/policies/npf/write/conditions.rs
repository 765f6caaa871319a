//! Conditions as what one rule of NPF can ask, for packets of one family.

use crate::address::{AddressFamily, host_mask, print_prefix};
use crate::policies::endpoints::{TCP, UDP, flags_are, is};
use crate::policies::limits::MOST_RULES_OF_ONE;
use policy::{MAPPED, PacketField, RuleCondition, Values};

/// What NPF cannot say.
pub(super) struct Unsayable(pub(super) &'static str);

/// What one rule asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) family: Option<AddressFamily>,
    /// The protocol, once there is one at most.
    pub(super) protocol: Option<u8>,
    protocols: Option<Vec<u8>>,
    /// Whether it is TCP or UDP, as where NPF is asked for ports without a protocol.
    has_ports: bool,
    /// The flags of TCP that are set, and those that are looked at.
    pub(super) flags: Option<(u8, u8)>,
    /// Whether segments of TCP must be the first of a connection, whatever else is asked.
    pub(super) first_segments: bool,
    /// What is asked of the source and of the destination.
    addresses: [Option<Prefixes>; 2],
    /// Everything else: the field and its values.
    others: Vec<(PacketField, Vec<Values>)>,
}

/// Addresses of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Prefixes {
    /// The address and the length of each.
    any: Vec<(u128, u8)>,
    /// Whether the address must be outside of them.
    not: bool,
}

/// What is left of a condition for packets of one family.
enum Left {
    Always,
    Never,
    /// All of these hold.
    All(Vec<Literal>),
}

/// One comparison.
#[derive(Clone, PartialEq, Eq)]
enum Literal {
    Holds(PacketField, Vec<Values>, bool),
    FirstSegments,
}

/// That segments of TCP are the first of a connection, as stateful rules of NPF imply it.
fn first_segments() -> RuleCondition {
    let other = RuleCondition::Not(Box::new(is(PacketField::Protocol, TCP.into())));
    RuleCondition::Any(vec![other, flags_are(0b0_0010, 0b1_0111)])
}

fn is_address(field: PacketField) -> bool {
    matches!(field, PacketField::Source | PacketField::Destination)
}

/// Whether the condition asks for this protocol among other things.
pub(super) fn is_about(condition: &RuleCondition, protocol: u8) -> bool {
    match condition {
        RuleCondition::All(all) => all.iter().any(|each| is_about(each, protocol)),
        other => *other == is(PacketField::Protocol, protocol.into()),
    }
}

fn left(condition: &RuleCondition, family: AddressFamily) -> Result<Left, Unsayable> {
    let version = if family == AddressFamily::V4 { 4 } else { 6 };
    if *condition == first_segments() {
        return Ok(Left::All(vec![Literal::FirstSegments]));
    }
    match condition {
        RuleCondition::Holds(PacketField::Family, values) => {
            let holds = values.iter().any(|values| values.hold(version));
            Ok(if holds { Left::Always } else { Left::Never })
        }
        RuleCondition::Holds(field, values) => {
            Ok(Left::All(vec![Literal::Holds(*field, values.clone(), false)]))
        }
        RuleCondition::All(all) => {
            let mut literals = Vec::new();
            for each in all {
                match left(each, family)? {
                    Left::Always => {}
                    Left::Never => return Ok(Left::Never),
                    Left::All(more) => literals.extend(more),
                }
            }
            Ok(if literals.is_empty() { Left::Always } else { Left::All(literals) })
        }
        RuleCondition::Any(any) => {
            let mut ways = Vec::new();
            for each in any {
                match left(each, family)? {
                    Left::Always => return Ok(Left::Always),
                    Left::Never => {}
                    Left::All(way) => ways.push(way),
                }
            }
            one_way(ways)
        }
        RuleCondition::Not(inner) => match left(inner, family)? {
            Left::Always => Ok(Left::Never),
            Left::Never => Ok(Left::Always),
            Left::All(literals) => match &literals[..] {
                [Literal::Holds(field, values, not)] if is_address(*field) => {
                    Ok(Left::All(vec![Literal::Holds(*field, values.clone(), !not)]))
                }
                _ => Err(Unsayable("the opposite of anything but addresses")),
            },
        },
        RuleCondition::Absent(_) => Err(Unsayable("that a packet has no such field")),
        RuleCondition::Remembered(_) => Err(Unsayable("what depends on earlier packets")),
    }
}

/// Several ways to match as one: all of them are about the same field.
fn one_way(mut ways: Vec<Vec<Literal>>) -> Result<Left, Unsayable> {
    if ways.len() <= 1 {
        return Ok(ways.pop().map_or(Left::Never, Left::All));
    }
    let mut together: Option<(PacketField, Vec<Values>)> = None;
    for way in ways {
        let [Literal::Holds(field, values, false)] = &way[..] else {
            return Err(Unsayable("one of several conditions"));
        };
        match &mut together {
            Some((own, all)) if own == field => all.extend(values.iter().copied()),
            None => together = Some((*field, values.clone())),
            Some(_) => return Err(Unsayable("one of several conditions")),
        }
    }
    Ok(together.map_or(Left::Never, |(field, values)| Left::All(vec![Literal::Holds(field, values, false)])))
}

/// What a condition asks of packets of a family; `None` if none can match.
pub(super) fn asked(condition: &RuleCondition, family: AddressFamily) -> Result<Option<Asked>, Unsayable> {
    let mut asked = Asked { family: Some(family), ..Asked::default() };
    let literals = match left(condition, family)? {
        Left::Never => return Ok(None),
        Left::Always => Vec::new(),
        Left::All(literals) => literals,
    };
    for literal in literals {
        let (field, values, not) = match literal {
            Literal::FirstSegments => {
                asked.first_segments = true;
                continue;
            }
            Literal::Holds(field, values, not) => (field, values, not),
        };
        if is_address(field) {
            let prefixes = prefixes(&values, family)?;
            let all = prefixes.iter().any(|(_, length)| *length == 0);
            if prefixes.is_empty() && !not || all && not {
                return Ok(None);
            }
            let side = &mut asked.addresses[usize::from(field == PacketField::Destination)];
            if side.is_some() && !prefixes.is_empty() && !all {
                return Err(Unsayable("two conditions on one address"));
            }
            if !prefixes.is_empty() && !all {
                *side = Some(Prefixes { any: prefixes, not });
            }
            continue;
        }
        if field == PacketField::Protocol {
            let own = |number: &u8| values.iter().any(|values| values.hold((*number).into()));
            let before = asked.protocols.take();
            let now = (0..=u8::MAX).filter(|number| before.as_ref().is_none_or(|all| all.contains(number)));
            asked.protocols = Some(now.filter(own).collect());
            continue;
        }
        // No packet holds one of no values.
        if values.is_empty() {
            return Ok(None);
        }
        asked.others.push((field, values));
    }
    Ok(Some(asked))
}

/// The addresses of a family among values, as prefixes without the bits in front of an address of IPv4.
fn prefixes(values: &[Values], family: AddressFamily) -> Result<Vec<(u128, u8)>, Unsayable> {
    let width = family.width();
    let (first, last) = match family {
        AddressFamily::V4 => (MAPPED, MAPPED | host_mask(32, 0)),
        AddressFamily::V6 => (0, u128::MAX),
    };
    let mut prefixes = Vec::new();
    for values in values {
        let (low, high) = match *values {
            Values::Range { low, high } => (low, high),
            Values::Masked { value, mask } if (!mask).wrapping_add(1) & !mask == 0 => (value, value | !mask),
            Values::Masked { .. } => return Err(Unsayable("a mask with holes")),
        };
        let (mut low, high) = (low.max(first), high.min(last));
        while low <= high {
            // The largest prefix that begins at `low` and ends before `high`.
            let aligned = low.trailing_zeros().min(width.into());
            let fits = (0..=aligned)
                .rev()
                .find(|bits| low | host_mask(128, 128 - *bits as u8) <= high)
                .unwrap_or_default();
            prefixes.push((low - first, width - fits as u8));
            let end = low | host_mask(128, 128 - fits as u8);
            match end.checked_add(1) {
                Some(next) => low = next,
                None => break,
            }
        }
    }
    Ok(prefixes)
}

impl Asked {
    /// Whether both ask the same of packets of their families.
    pub(super) fn is_same(&self, other: &Asked) -> bool {
        let has_addresses = self.addresses.iter().any(Option::is_some);
        !has_addresses && self.clone().of_both() == other.clone().of_both()
    }

    /// The same for both families.
    pub(super) fn of_both(self) -> Asked {
        Asked { family: None, ..self }
    }

    fn asks_ports(&self) -> bool {
        let ports = [PacketField::SourcePort, PacketField::DestinationPort];
        self.others.iter().any(|(field, _)| ports.contains(field))
    }

    /// The same for each protocol, set of flags, type and code by itself, as NPF has one of them in a rule.
    pub(super) fn by_protocol(self) -> Result<Vec<Asked>, Unsayable> {
        let one = |protocol: Option<u8>| Asked { protocol, protocols: None, ..self.clone() };
        let protocols = match &self.protocols {
            None => vec![one(None)],
            // Without a protocol NPF takes ports of TCP and UDP.
            Some(protocols) if protocols[..] == [TCP, UDP] && self.asks_ports() => {
                vec![Asked { has_ports: true, ..one(None) }]
            }
            Some(protocols) => protocols.iter().map(|protocol| one(Some(*protocol))).collect(),
        };
        let mut all = protocols;
        for field in [PacketField::TcpFlags, PacketField::IcmpType, PacketField::IcmpCode] {
            let mut each = Vec::new();
            for asked in all {
                each.extend(asked.by_value(field)?);
                bounded(each.len())?;
            }
            all = each;
        }
        Ok(all)
    }

    fn by_value(mut self, field: PacketField) -> Result<Vec<Asked>, Unsayable> {
        let Some(at) = self.others.iter().position(|(own, _)| *own == field) else { return Ok(vec![self]) };
        let values = self.others.remove(at).1;
        let mut each = Vec::new();
        for values in values {
            let single = |value: u128| {
                if field == PacketField::TcpFlags {
                    Values::Masked { value, mask: 0xff }
                } else {
                    Values::exact(value)
                }
            };
            match values {
                Values::Range { low, high } => each.extend((low..=high.min(0xff)).map(single)),
                Values::Masked { .. } if field == PacketField::TcpFlags => each.push(values),
                Values::Masked { .. } => {
                    each.extend((0..=0xff).filter(|value| values.hold(*value)).map(Values::exact));
                }
            }
            bounded(each.len())?;
        }
        let with = |values: Values| {
            let mut asked = self.clone();
            match values {
                Values::Masked { value, mask } if field == PacketField::TcpFlags && asked.flags.is_none() => {
                    asked.flags = Some((value as u8, mask as u8));
                }
                _ => asked.others.push((field, vec![values])),
            }
            asked
        };
        Ok(each.into_iter().map(with).collect())
    }

    /// The values of the port by which packets come or go, if the rule asks for it.
    pub(super) fn interfaces(&self, field: PacketField) -> Result<Option<&[Values]>, Unsayable> {
        let others = [PacketField::InPort, PacketField::OutPort];
        if self.others.iter().any(|(own, _)| others.contains(own) && *own != field) {
            return Err(Unsayable("where a packet goes when it comes in, or where it came in when it goes"));
        }
        let own: Vec<&Vec<Values>> =
            self.others.iter().filter(|(own, _)| *own == field).map(|(_, values)| values).collect();
        match own[..] {
            [] => Ok(None),
            [values] => Ok(Some(values)),
            _ => Err(Unsayable("two conditions on one interface")),
        }
    }

    /// The words behind the interface.
    pub(super) fn words(&self) -> Result<String, Unsayable> {
        let mut words = String::new();
        match self.family {
            Some(AddressFamily::V4) => words.push_str(" family inet4"),
            Some(AddressFamily::V6) => words.push_str(" family inet6"),
            None => {}
        }
        match self.protocol {
            Some(TCP) => words.push_str(" proto tcp"),
            Some(UDP) => words.push_str(" proto udp"),
            Some(1) => words.push_str(" proto icmp"),
            Some(58) => words.push_str(" proto \"ipv6-icmp\""),
            Some(other) => words.push_str(&format!(" proto {other}")),
            None => {}
        }
        match (self.flags, self.protocol) {
            (Some((set, mask)), Some(TCP)) if set != 0 && !self.first_segments => {
                words.push_str(&format!(" flags {}/{}", letters(set), letters(mask)));
            }
            (None, _) => {}
            (Some(_), _) if self.first_segments => {
                return Err(Unsayable("flags of TCP beside those of first segments"));
            }
            (Some(_), Some(TCP)) => return Err(Unsayable("that flags of TCP are not set alone")),
            (Some(_), _) => return Err(Unsayable("flags of TCP without the protocol")),
        }
        let single = |field: PacketField| -> Result<Option<u128>, Unsayable> {
            let mut own = self.others.iter().filter(|(own, _)| *own == field);
            match (own.next().map(|(_, values)| &values[..]), own.next()) {
                (None, _) => Ok(None),
                (Some([Values::Range { low, high }]), None) if low == high => Ok(Some(*low)),
                _ => Err(Unsayable("several conditions on one field")),
            }
        };
        match (single(PacketField::IcmpType)?, single(PacketField::IcmpCode)?, self.protocol) {
            (None, None, _) => {}
            (Some(kind), code, Some(1 | 58)) => {
                words.push_str(&format!(" icmp-type {kind}"));
                if let Some(code) = code {
                    words.push_str(&format!(" code {code}"));
                }
            }
            _ => return Err(Unsayable("a code of ICMP without its type and protocol")),
        }
        let before = words.len();
        let sides = [("from", PacketField::SourcePort), ("to", PacketField::DestinationPort)];
        for ((keyword, port), addresses) in sides.into_iter().zip(&self.addresses) {
            let ports = self.ports(port)?;
            if addresses.is_none() && ports.is_empty() {
                continue;
            }
            words.push_str(&format!(" {keyword} "));
            match addresses {
                None => words.push_str("any"),
                Some(Prefixes { any, not }) => {
                    words.push_str(if *not { "! " } else { "" });
                    let family = self.family.unwrap_or_default();
                    words.push_str(&list(
                        any.iter().map(|(bits, length)| print_prefix(family, *bits, *length)),
                    ));
                }
            }
            if !ports.is_empty() {
                words.push_str(&format!(" port {}", list(ports.into_iter())));
            }
        }
        if words.len() == before {
            words.push_str(" all");
        }
        let said = [
            PacketField::InPort,
            PacketField::OutPort,
            PacketField::SourcePort,
            PacketField::DestinationPort,
            PacketField::IcmpType,
            PacketField::IcmpCode,
        ];
        if self.others.iter().any(|(field, _)| !said.contains(field)) {
            return Err(Unsayable("a field that it does not compare"));
        }
        Ok(words)
    }

    fn ports(&self, field: PacketField) -> Result<Vec<String>, Unsayable> {
        let mut own = self.others.iter().filter(|(own, _)| *own == field).map(|(_, values)| values);
        let Some(values) = own.next() else { return Ok(Vec::new()) };
        if own.next().is_some() {
            return Err(Unsayable("two conditions on one port"));
        }
        if !self.has_ports && !matches!(self.protocol, Some(TCP | UDP)) {
            return Err(Unsayable("ports of other protocols than TCP and UDP"));
        }
        let range = |values: &Values| match values {
            Values::Range { low, high } if low == high => Ok(low.to_string()),
            Values::Range { low, high } => Ok(format!("{low}-{high}")),
            Values::Masked { .. } => Err(Unsayable("a mask of a port")),
        };
        values.iter().map(range).collect()
    }
}

/// Refuses more rules than one of a policy becomes at most.
pub(super) fn bounded(rules: usize) -> Result<(), Unsayable> {
    if rules > MOST_RULES_OF_ONE {
        return Err(Unsayable("the protocols, flags, types and codes of one rule in at most 4096 rules"));
    }
    Ok(())
}

/// The flags of TCP by their letters.
fn letters(flags: u8) -> String {
    "FSRPAUEW"
        .chars()
        .enumerate()
        .filter(|(bit, _)| flags >> bit & 1 == 1)
        .map(|(_, letter)| letter)
        .collect()
}

/// One element, or several in braces.
fn list(elements: impl Iterator<Item = String>) -> String {
    let elements: Vec<String> = elements.collect();
    match &elements[..] {
        [one] => one.clone(),
        _ => format!("{{ {} }}", elements.join(", ")),
    }
}
