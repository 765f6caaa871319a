//! Conditions as ways to meet them, each of which one rule of nftables can say, for packets of one family.
//!
//! A condition is turned into alternatives of comparisons. Protocols, fragments and states are sets, which
//! are intersected at once, so what no packet can meet goes away. That a packet has no such field becomes
//! what follows from it: another protocol, or a later fragment.

use crate::address::{AddressFamily, host_mask};
use crate::conditions::WITH_PORTS;
use crate::policies::limits::MOST_RULES_OF_ONE;
use policy::{MAPPED, PacketField, RuleCondition, Values};
use std::rc::Rc;

/// What nftables cannot say.
pub(super) struct Unsayable(pub(super) &'static str);

/// Which packets an alternative leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// For each protocol, whether it is one of these.
    pub(super) protocols: Protocols,
    /// Whether a packet that is no later fragment may be one of these.
    pub(super) whole: bool,
    /// Whether a later fragment may.
    pub(super) later: bool,
    /// A bit for each state that is one of these, that of [`policy::State`] 0 lowest.
    pub(super) states: u8,
    /// What else must hold.
    pub(super) comparisons: Vec<Comparison>,
}

/// A set of protocols: a bit for each number, 0 lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Protocols([u128; 2]);

/// All states that a packet may have.
pub(super) const ALL_STATES: u8 = 0b1_1111;

/// What one field must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) field: PacketField,
    pub(super) with: Operand,
    /// Whether it must be anything else.
    pub(super) not: bool,
    /// Whether a packet without the field meets it.
    pub(super) absent: bool,
}

/// What a field is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    /// Ranges in order, none of which touches another.
    Ranges(Rc<Vec<(u128, u128)>>),
    /// A value under a mask.
    Mask(u128, u128),
}

impl Protocols {
    pub(super) const ALL: Protocols = Protocols([u128::MAX; 2]);

    pub(super) fn of(numbers: &[u8]) -> Protocols {
        numbers.iter().fold(Protocols([0; 2]), |Protocols(bits), number| {
            let mut bits = bits;
            bits[usize::from(*number >> 7)] |= 1 << (number & 0x7f);
            Protocols(bits)
        })
    }

    pub(super) fn holds(self, number: u8) -> bool {
        self.0[usize::from(number >> 7)] >> (number & 0x7f) & 1 == 1
    }

    pub(super) fn other(self) -> Protocols {
        Protocols(self.0.map(|bits| !bits))
    }

    pub(super) fn and(self, other: Protocols) -> Protocols {
        Protocols([self.0[0] & other.0[0], self.0[1] & other.0[1]])
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == [0; 2]
    }

    pub(super) fn numbers(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |number| self.holds(*number))
    }
}

/// The protocols whose headers have a field of the transport header; `None` for other fields.
pub(super) fn carriers(field: PacketField, family: AddressFamily) -> Option<Protocols> {
    Some(match field {
        PacketField::SourcePort | PacketField::DestinationPort => Protocols::of(&WITH_PORTS),
        PacketField::TcpFlags => Protocols::of(&[6]),
        PacketField::IcmpType | PacketField::IcmpCode => Protocols::of(&[icmp(family)]),
        _ => return None,
    })
}

/// The protocol ICMP of a family.
pub(super) fn icmp(family: AddressFamily) -> u8 {
    if family == AddressFamily::V4 { 1 } else { 58 }
}

impl Way {
    pub(super) const EVERY: Way = Way {
        protocols: Protocols::ALL,
        whole: true,
        later: true,
        states: ALL_STATES,
        comparisons: Vec::new(),
    };

    fn of(comparison: Comparison) -> Way {
        Way { comparisons: vec![comparison], ..Way::EVERY }
    }

    /// What is left of it for these protocols.
    pub(super) fn of_protocols(&self, protocols: Protocols) -> Option<Way> {
        self.and(&Way { protocols, ..Way::EVERY })
    }

    /// Whether it looks at fields that nftables has in the header of each family.
    pub(super) fn is_of_family(&self) -> bool {
        self.comparisons.iter().any(|one| {
            let field = one.field;
            let is_address = matches!(field, PacketField::Source | PacketField::Destination);
            is_address || matches!(field, PacketField::Dscp | PacketField::Ecn | PacketField::TimeToLive)
        })
    }

    /// How many values it compares with.
    pub(super) fn values(&self) -> usize {
        let of = |one: &Comparison| match &one.with {
            Operand::Ranges(ranges) => ranges.len(),
            Operand::Mask(..) => 1,
        };
        self.comparisons.iter().map(of).sum()
    }

    /// What both leave; `None` if that is nothing.
    fn and(&self, other: &Way) -> Option<Way> {
        let mut comparisons = self.comparisons.clone();
        comparisons.extend(other.comparisons.iter().filter(|new| !self.comparisons.contains(new)).cloned());
        let way = Way {
            protocols: self.protocols.and(other.protocols),
            whole: self.whole && other.whole,
            later: self.later && other.later,
            states: self.states & other.states,
            comparisons,
        };
        (!way.protocols.is_empty() && (way.whole || way.later) && way.states != 0).then_some(way)
    }
}

/// The ways to meet a condition, or (`not`) not to meet it.
pub(super) fn ways(
    condition: &RuleCondition,
    family: AddressFamily,
    not: bool,
) -> Result<Vec<Way>, Unsayable> {
    let version = if family == AddressFamily::V4 { 4 } else { 6 };
    let known = |holds: bool| Ok(if holds != not { vec![Way::EVERY] } else { Vec::new() });
    match condition {
        RuleCondition::All(each) | RuleCondition::Any(each) => {
            let together = matches!(condition, RuleCondition::All(_)) != not;
            let mut all = if together { vec![Way::EVERY] } else { Vec::new() };
            for each in each {
                let own = ways(each, family, not)?;
                if together {
                    bounded(all.len().saturating_mul(own.len()))?;
                    all = all.iter().flat_map(|one| own.iter().filter_map(|other| one.and(other))).collect();
                } else {
                    all.extend(own);
                    bounded(all.len())?;
                }
            }
            if all.contains(&Way::EVERY) {
                all = vec![Way::EVERY];
            }
            Ok(all)
        }
        RuleCondition::Not(inner) => ways(inner, family, !not),
        RuleCondition::Remembered(_) => Err(Unsayable("what depends on earlier packets")),
        RuleCondition::Holds(PacketField::Family, values) => known(holds(values, version)),
        RuleCondition::Holds(field, values) => compared(*field, values, family, not),
        RuleCondition::Absent(field) => match (carriers(*field, family), field) {
            (Some(carriers), _) if not => Ok(vec![Way { protocols: carriers, later: false, ..Way::EVERY }]),
            (Some(carriers), _) => Ok(without(carriers).to_vec()),
            (None, PacketField::InPort | PacketField::OutPort | PacketField::SourceMac) => {
                let none = Operand::Ranges(Rc::new(Vec::new()));
                Ok(vec![Way::of(Comparison { field: *field, with: none, not, absent: !not })])
            }
            (None, PacketField::OutState) => Err(Unsayable(BY_DIRECTION)),
            (None, _) if is_rare(*field, family) => Err(Unsayable(RARE)),
            _ => known(false),
        },
    }
}

const BY_DIRECTION: &str = "a state of connections by direction";
const RARE: &str = "a field of a header that few rules ask for";

/// Whether it is a field of a header that is not written here.
fn is_rare(field: PacketField, family: AddressFamily) -> bool {
    field.is_of_some_packets() && carriers(field, family).is_none()
}

fn bounded(ways: usize) -> Result<(), Unsayable> {
    if ways > MOST_RULES_OF_ONE {
        return Err(Unsayable("the alternatives of one rule in at most 4096 rules"));
    }
    Ok(())
}

fn holds(values: &[Values], value: u128) -> bool {
    values.iter().any(|values| values.hold(value))
}

/// Packets that have no header of these protocols: two sets that share no packet.
fn without(carriers: Protocols) -> [Way; 2] {
    [Way { whole: false, ..Way::EVERY }, Way { protocols: carriers.other(), later: false, ..Way::EVERY }]
}

fn compared(
    field: PacketField,
    values: &[Values],
    family: AddressFamily,
    not: bool,
) -> Result<Vec<Way>, Unsayable> {
    let one = |way: Way| Ok(vec![way]);
    match field {
        PacketField::Protocol => {
            let numbers: Vec<u8> = (0..=u8::MAX).filter(|number| holds(values, (*number).into())).collect();
            let protocols = Protocols::of(&numbers);
            let protocols = if not { protocols.other() } else { protocols };
            return if protocols.is_empty() { Ok(Vec::new()) } else { one(Way { protocols, ..Way::EVERY }) };
        }
        PacketField::LaterFragment => {
            let [whole, later] = [0, 1].map(|value| holds(values, value) != not);
            let way = Way { whole, later, ..Way::EVERY };
            return if whole || later { one(way) } else { Ok(Vec::new()) };
        }
        PacketField::State => {
            let bits = (0..5).filter(|state| holds(values, (*state).into()) != not);
            let states = bits.fold(0, |all, state: u8| all | 1 << state);
            return if states == 0 { Ok(Vec::new()) } else { one(Way { states, ..Way::EVERY }) };
        }
        PacketField::OutState => return Err(Unsayable(BY_DIRECTION)),
        _ if is_rare(field, family) => return Err(Unsayable(RARE)),
        _ => {}
    }
    let (ranges, masks) = operands(field, values, family)?;
    let most = most(field, family);
    let carriers = carriers(field, family);
    let optional = matches!(field, PacketField::InPort | PacketField::OutPort | PacketField::SourceMac);
    let base = match carriers {
        Some(protocols) => Way { protocols, later: false, ..Way::EVERY },
        None => Way::EVERY,
    };
    let with = |with: Operand| Comparison { field, with, not, absent: optional && not };
    let all = ranges == [(0, most)];
    let mut ways = Vec::new();
    if not {
        // It is none of them: all comparisons hold together.
        let mut comparisons: Vec<Comparison> =
            masks.iter().map(|(value, mask)| with(Operand::Mask(*value, *mask))).collect();
        if !ranges.is_empty() {
            comparisons.push(with(Operand::Ranges(Rc::new(ranges))));
        }
        if optional || !all {
            ways.push(Way { comparisons, ..base });
        }
        ways.extend(carriers.into_iter().flat_map(without));
        return Ok(ways);
    }
    if all && !optional {
        return one(base);
    }
    ways.extend(
        masks.iter().map(|(value, mask)| Way {
            comparisons: vec![with(Operand::Mask(*value, *mask))],
            ..base.clone()
        }),
    );
    if !ranges.is_empty() {
        ways.push(Way { comparisons: vec![with(Operand::Ranges(Rc::new(ranges)))], ..base });
    }
    bounded(ways.len())?;
    Ok(ways)
}

/// The largest value of a field in packets of a family.
pub(super) fn most(field: PacketField, family: AddressFamily) -> u128 {
    match field {
        PacketField::Source | PacketField::Destination => host_mask(family.width(), 0),
        _ => field.most(),
    }
}

/// The fields that nftables compares under a mask.
const MASKABLE: [PacketField; 6] = [
    PacketField::SourcePort,
    PacketField::DestinationPort,
    PacketField::TcpFlags,
    PacketField::Source,
    PacketField::Destination,
    PacketField::SourceMac,
];

/// Ranges in order, none of which touches another, and values under masks.
type Operands = (Vec<(u128, u128)>, Vec<(u128, u128)>);

/// The values of a field as packets of a family hold them: without the bits in front of an address of IPv4.
fn operands(field: PacketField, values: &[Values], family: AddressFamily) -> Result<Operands, Unsayable> {
    let mapped =
        matches!(field, PacketField::Source | PacketField::Destination) && family == AddressFamily::V4;
    let (first, last) = if mapped { (MAPPED, MAPPED | 0xffff_ffff) } else { (0, field.most()) };
    let (width, whole_width) = (if mapped { 32 } else { field.width() }, field.width());
    let (mut ranges, mut masks) = (Vec::new(), Vec::new());
    for values in values {
        match *values {
            Values::Range { low, high } => ranges.push((low, high)),
            Values::Masked { value, .. } if value > host_mask(whole_width, 0) => {}
            // What stands in front of the address either is that or is not.
            Values::Masked { value, mask } if (first ^ value) & mask & !host_mask(width, 0) != 0 => {}
            Values::Masked { value, mask } => {
                let (value, mask) = (value & host_mask(width, 0), mask & host_mask(width, 0));
                let open = host_mask(width, 0) & !mask;
                let is_range = open & open.wrapping_add(1) == 0;
                if mask == 0 || is_range && field != PacketField::TcpFlags {
                    ranges.push((first | value, first | value | open));
                } else if MASKABLE.contains(&field) {
                    masks.push((value, mask));
                } else if width <= 8 {
                    let fitting = (0..=field.most()).filter(|number| number & mask == value);
                    ranges.extend(fitting.map(|number| (number, number)));
                } else {
                    return Err(Unsayable("a mask of this field"));
                }
            }
        }
    }
    ranges.retain_mut(|(low, high)| {
        (*low, *high) = ((*low).max(first), (*high).min(last));
        *low <= *high
    });
    ranges.iter_mut().for_each(|(low, high)| (*low, *high) = (*low - first, *high - first));
    Ok((merged(ranges), masks))
}

/// The same values in as few ranges as can be, in order.
pub(super) fn merged(mut ranges: Vec<(u128, u128)>) -> Vec<(u128, u128)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u128, u128)> = Vec::with_capacity(ranges.len());
    for (low, high) in ranges {
        match merged.last_mut() {
            Some((_, end)) if low <= end.saturating_add(1) => *end = high.max(*end),
            _ => merged.push((low, high)),
        }
    }
    merged
}

/// What is outside of ranges that are in order, up to `most`.
pub(super) fn outside(ranges: &[(u128, u128)], most: u128) -> Vec<(u128, u128)> {
    let (mut next, mut outside) = (Some(0), Vec::new());
    for (low, high) in ranges {
        if let Some(next) = next.filter(|next| next < low) {
            outside.push((next, low - 1));
        }
        next = high.checked_add(1);
    }
    outside.extend(next.filter(|next| *next <= most).map(|next| (next, most)));
    outside
}
