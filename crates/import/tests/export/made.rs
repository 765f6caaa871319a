//! Random policies over the values that random packets have, with all that rules may ask.

use super::random::Random;
use policy::{
    Hook, HookPoint, MAPPED, MatchOrder, PacketField, Policy, PolicyRule, Reject, Remembers, RuleAction,
    RuleCondition, RuleGroup, RulePlace, Unreachable, Values,
};

const VERSION_6: u128 = 0x2001_0db8 << 96;

/// What a random policy may have.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// The points of its hooks.
    pub(crate) points: &'static [HookPoint],
    /// Whether rules ask for states.
    pub(crate) states: bool,
    /// Whether the last match of some groups decides.
    pub(crate) last: bool,
}

/// The names of interfaces and their ports.
pub(crate) fn interfaces() -> Vec<(String, u16)> {
    vec![("from-in".to_owned(), 1), ("to-out".to_owned(), 2)]
}

fn values(random: &mut Random, field: PacketField) -> Vec<Values> {
    let mut one = || -> Values {
        let range = |random: &mut Random, of: &[u128]| {
            let (one, other) = (random.one(of), random.one(of));
            if random.once_in(2) {
                Values::exact(one)
            } else {
                Values::Range { low: one.min(other), high: one.max(other) }
            }
        };
        match field {
            PacketField::Source | PacketField::Destination => {
                let hosts = [0x0a00_0001, 0x0a00_0002, 0xac10_0001, 0xc000_0201, 0x0a01_0009, 0x0808_0808];
                let (base, host) = (random.one(&[MAPPED, MAPPED, VERSION_6]), random.one(&hosts));
                match random.below(4) {
                    0 => Values::Masked { value: base | host & !0xff00, mask: !0xff00 },
                    1 => Values::exact(base | host),
                    2 => Values::Range { low: base | host, high: base | host.max(random.one(&hosts)) },
                    _ => {
                        let low = base | host & !0xff_ffff;
                        Values::Range { low, high: low | 0xff_ffff }
                    }
                }
            }
            PacketField::SourcePort | PacketField::DestinationPort => match random.below(8) {
                0 => Values::Masked { value: 0x10, mask: 0xf0 },
                _ => range(random, &[0, 22, 53, 80, 1023, 1024, 2048, 65535]),
            },
            PacketField::Protocol => range(random, &[6, 6, 17, 1, 58, 132, 47, 255]),
            PacketField::TcpFlags => match random.below(3) {
                0 => Values::exact(0x12),
                _ => {
                    let mask = random.one(&[0x02, 0x12, 0x17]);
                    Values::Masked { value: random.one(&[0x02, 0x10, 0]) & mask, mask }
                }
            },
            PacketField::IcmpType | PacketField::IcmpCode => range(random, &[0, 3, 4, 8, 128]),
            PacketField::Dscp => range(random, &[0, 10, 46]),
            PacketField::Ecn => range(random, &[0, 1, 2, 3]),
            PacketField::TimeToLive => range(random, &[2, 63, 64, 65, 255]),
            PacketField::Length => range(random, &[20, 44, 64, 72, 1500]),
            PacketField::InPort | PacketField::OutPort => range(random, &[1, 2]),
            PacketField::Family => Values::exact(random.one(&[4, 6])),
            PacketField::State => range(random, &[0, 0, 1, 2, 3]),
            _ => range(random, &[0, 1]),
        }
    };
    (0..=one_more(&mut one)).map(|_| one()).collect()
}

/// One value more in one of a few cases.
fn one_more(one: &mut dyn FnMut() -> Values) -> usize {
    match one() {
        Values::Range { low, .. } => usize::from(low & 3 == 0),
        Values::Masked { .. } => 0,
    }
}

fn condition(random: &mut Random, shape: Shape, depth: usize) -> RuleCondition {
    let several = |random: &mut Random| {
        (0..1 + random.below(2)).map(|_| condition(random, shape, depth - 1)).collect::<Vec<_>>()
    };
    match random.below(if depth == 0 { 6 } else { 12 }) {
        6..=8 => RuleCondition::All(several(random)),
        9 => RuleCondition::Any(several(random)),
        10 => RuleCondition::Not(Box::new(condition(random, shape, depth - 1))),
        5 => RuleCondition::Absent(random.one(&[
            PacketField::DestinationPort,
            PacketField::TcpFlags,
            PacketField::IcmpType,
            PacketField::InPort,
        ])),
        _ => {
            let states = if shape.states { PacketField::State } else { PacketField::LaterFragment };
            let field = random.one(&[
                PacketField::Source,
                PacketField::Destination,
                PacketField::DestinationPort,
                PacketField::DestinationPort,
                PacketField::SourcePort,
                PacketField::Protocol,
                PacketField::TcpFlags,
                PacketField::IcmpType,
                PacketField::IcmpCode,
                PacketField::Dscp,
                PacketField::Ecn,
                PacketField::TimeToLive,
                PacketField::Length,
                PacketField::InPort,
                PacketField::OutPort,
                PacketField::Family,
                states,
            ]);
            let values = values(random, field);
            RuleCondition::Holds(field, values)
        }
    }
}

fn rule(random: &mut Random, shape: Shape, group: usize, groups: usize) -> PolicyRule {
    let mut condition = condition(random, shape, 2);
    let action = match random.below(16) {
        0..=3 => RuleAction::Pass,
        4 => RuleAction::Keep,
        5..=8 => RuleAction::Block,
        9 if group + 1 < groups => RuleAction::Goto(group + 1),
        9..=11 if group + 1 < groups => {
            RuleAction::Jump(group + 1 + random.below((groups - group - 1) as u64) as usize)
        }
        12 => RuleAction::Return,
        13 => RuleAction::Continue,
        14 => {
            let kind = random.one(&[
                Reject::TcpReset,
                Reject::Icmp(13),
                Reject::Icmpv6(1),
                Reject::ByProtocol,
                Reject::Unreachable(Unreachable::Host),
            ]);
            let need = match kind {
                Reject::TcpReset => Some((PacketField::Protocol, 6)),
                Reject::Icmp(_) => Some((PacketField::Family, 4)),
                Reject::Icmpv6(_) => Some((PacketField::Family, 6)),
                _ => None,
            };
            if let Some((field, value)) = need {
                let need = RuleCondition::Holds(field, vec![Values::exact(value)]);
                condition = RuleCondition::All(vec![need, condition]);
            }
            RuleAction::Reject(kind)
        }
        _ => RuleAction::Block,
    };
    PolicyRule {
        place: RulePlace { line: 1 + random.below(1000) as u32, column: 1 },
        text: "".into(),
        condition,
        action,
        decides_at_once: random.once_in(3),
        log: random.once_in(8),
        count: random.once_in(8),
    }
}

/// A policy of up to three hooks and four groups.
pub(crate) fn policy(random: &mut Random, shape: Shape) -> Policy {
    const GROUPS: usize = 4;
    let groups = (0..GROUPS).map(|number| {
        let last = shape.last && random.once_in(2);
        RuleGroup {
            name: format!("part {number}"),
            order: if last { MatchOrder::Last } else { MatchOrder::First },
            rules: (0..1 + random.below(5)).map(|_| rule(random, shape, number, GROUPS)).collect(),
        }
    });
    let groups = groups.collect();
    let hook = |number: usize, random: &mut Random| Hook {
        point: shape.points[number % shape.points.len()],
        group: random.below(2) as usize,
        default: match random.below(5) {
            0 => RuleAction::Reject(Reject::Unreachable(Unreachable::Prohibited)),
            1 | 2 => RuleAction::Block,
            _ => RuleAction::Pass,
        },
        place: RulePlace { line: 1, column: 1 },
    };
    let hooks = (0..1 + random.below(2) as usize).map(|number| hook(number, random)).collect();
    Policy {
        hooks,
        groups,
        remembers: if shape.states { Remembers::Passed } else { Remembers::Nothing },
        follows_icmp: true,
        interfaces: interfaces(),
        ..Policy::default()
    }
}
