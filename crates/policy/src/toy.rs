//! Random policies over a header so small that every packet of it can be looked at: about 16 bits. For tests.
//!
//! Each field has a few values, the last of which stands for all that no rule of these policies tells from
//! it. So what holds for all of these packets holds for all packets.

use crate::field::{Packet, PacketField, Values};
use crate::model::{
    Hook, HookPoint, MatchOrder, Memory, Path, Policy, PolicyRule, Reject, Remembers, RuleAction,
    RuleCondition, RuleGroup, RulePlace,
};
use crate::packet_space::WitnessPacket;
use proptest::prelude::*;

const MAPPED: u128 = 0xffff_0a00_0000;
const VERSION_6: u128 = 0x2001_0db8 << 96;
const ORDINARY: RulePlace = RulePlace { line: 0, column: 0 };

/// All packets of the small header: 3 ways, 2 families, 6 protocols, 2 kinds of fragment, 4 sources and
/// 3 more of IPv6 that look like IPv4, 17 destination ports, 4 states, 3 on the way out, 2 sets of flags, 4
/// ports to come in by, one memory.
pub(crate) fn packets() -> Vec<WitnessPacket> {
    let mut all =
        vec![WitnessPacket { path: Path::Forwarded, packet: Packet::default(), remembered: Vec::new() }];
    let mut each = |values: &[u128], set: &dyn Fn(&mut WitnessPacket, u128) -> bool| {
        let mut next = Vec::new();
        for packet in &all {
            let mut with = Vec::new();
            for value in values {
                let mut packet = packet.clone();
                // A value that the packet cannot have is no packet more.
                if set(&mut packet, *value) || with.is_empty() {
                    with.push(packet);
                }
            }
            next.extend(with);
        }
        all = next;
    };
    let put = |packet: &mut WitnessPacket, field: PacketField, value: u128, there: bool| {
        packet.packet = packet.packet.clone().with(field, there.then_some(value));
        there
    };
    let is = |packet: &WitnessPacket, field: PacketField, values: &[u128]| {
        packet.packet.get(field).is_some_and(|value| values.contains(&value))
    };
    each(&[0, 1, 2], &|packet, path| {
        packet.path = [Path::Forwarded, Path::ToGateway, Path::FromGateway][path as usize];
        put(packet, PacketField::Length, 60, true);
        put(packet, PacketField::OutPort, 1, packet.path != Path::ToGateway);
        true
    });
    each(&[4, 6], &|packet, version| put(packet, PacketField::Family, version, true));
    // No rule names 132, which has ports, or 47, which has none.
    each(&[1, 6, 17, 58, 132, 47], &|packet, protocol| put(packet, PacketField::Protocol, protocol, true));
    each(&[0, 1], &|packet, later| put(packet, PacketField::LaterFragment, later, true));
    each(&[0, 1, 2, 3, 4, 5, 6], &|packet, host| {
        let version_6 = is(packet, PacketField::Family, &[6]);
        let source = match host {
            0..4 if version_6 => VERSION_6 | host,
            0..4 => MAPPED | host,
            // An address of IPv6 may look like one of IPv4.
            _ => MAPPED | (host - 4),
        };
        put(packet, PacketField::Source, source, true) && (version_6 || host < 4)
    });
    each(&(0..17).collect::<Vec<u128>>(), &|packet, port| {
        let there =
            is(packet, PacketField::Protocol, &[6, 17, 132]) && is(packet, PacketField::LaterFragment, &[0]);
        put(packet, PacketField::DestinationPort, port, there)
    });
    each(&[0, 1, 2, 3], &|packet, state| put(packet, PacketField::State, state, true));
    // 1 stands for both states that pass, 3 for those that are left.
    each(&[0, 1, 3], &|packet, state| {
        let there = packet.path != Path::ToGateway;
        put(packet, PacketField::OutState, state, there)
    });
    each(&[2, 0x12], &|packet, flags| {
        let there = is(packet, PacketField::Protocol, &[6]) && is(packet, PacketField::LaterFragment, &[0]);
        put(packet, PacketField::TcpFlags, flags, there)
    });
    each(&[0, 8], &|packet, kind| {
        let version = if is(packet, PacketField::Family, &[6]) { 58 } else { 1 };
        let there =
            is(packet, PacketField::Protocol, &[version]) && is(packet, PacketField::LaterFragment, &[0]);
        put(packet, PacketField::IcmpType, kind, there)
    });
    each(&[1, 2, 3, 4], &|packet, port| {
        let there = packet.path != Path::FromGateway;
        put(packet, PacketField::InPort, port, there)
    });
    each(&[0, 1], &|packet, holds| {
        packet.remembered = if holds == 1 { vec![0] } else { Vec::new() };
        true
    });
    all
}

fn values() -> impl Strategy<Value = (PacketField, Vec<Values>)> {
    let range = |field: PacketField, base: u128, most: u128| {
        let one = (0..=most, 0..=most).prop_map(move |(one, other)| Values::Range {
            low: base | one.min(other),
            high: base | one.max(other),
        });
        proptest::collection::vec(one, 1..3).prop_map(move |values| (field, values)).boxed()
    };
    let among = |field: PacketField, values: &'static [u128]| {
        proptest::sample::subsequence(values.to_vec(), 1..values.len())
            .prop_map(move |values| (field, values.into_iter().map(Values::exact).collect()))
            .boxed()
    };
    let masked = (0..16u128, 0..16u128).prop_map(|(value, mask)| {
        // The bits above are compared as well, so that 16 stands for all other ports.
        let mask = 0xfff0 | mask;
        (PacketField::DestinationPort, vec![Values::Masked { value: value & mask, mask }])
    });
    let out_state = prop_oneof![Just(Values::exact(0)), Just(Values::Range { low: 1, high: 2 })]
        .prop_map(|values| (PacketField::OutState, vec![values]));
    prop_oneof![
        range(PacketField::DestinationPort, 0, 15),
        range(PacketField::Source, MAPPED, 2),
        range(PacketField::Source, VERSION_6, 2),
        among(PacketField::Protocol, &[1, 6, 17, 58]),
        among(PacketField::Family, &[4, 6]),
        among(PacketField::State, &[0, 1, 2]),
        out_state,
        among(PacketField::InPort, &[1, 2, 3]),
        among(PacketField::LaterFragment, &[0, 1]),
        among(PacketField::IcmpType, &[8, 8]),
        Just((PacketField::TcpFlags, vec![Values::Masked { value: 2, mask: 0x12 }])),
        masked,
    ]
}

/// Conditions of these policies.
pub(crate) fn conditions() -> impl Strategy<Value = RuleCondition> {
    let absent = prop_oneof![
        Just(PacketField::DestinationPort),
        Just(PacketField::TcpFlags),
        Just(PacketField::InPort)
    ];
    let one = prop_oneof![
        8 => values().prop_map(|(field, values)| RuleCondition::Holds(field, values)),
        1 => absent.prop_map(RuleCondition::Absent),
        1 => Just(RuleCondition::Remembered(0)),
    ];
    one.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            4 => proptest::collection::vec(inner.clone(), 0..3).prop_map(RuleCondition::All),
            2 => proptest::collection::vec(inner.clone(), 1..3).prop_map(RuleCondition::Any),
            1 => inner.prop_map(|inner| RuleCondition::Not(Box::new(inner))),
        ]
    })
}

/// A rule of the group with this number; it jumps to later groups only.
fn rule(group: usize, groups: usize) -> impl Strategy<Value = PolicyRule> {
    let next = (group + 1..groups.max(group + 2)).prop_map(move |next| next.min(groups - 1));
    let jump = move |action: fn(usize) -> RuleAction| {
        next.clone().prop_map(move |next| if next > group { action(next) } else { RuleAction::Continue })
    };
    let action = prop_oneof![
        3 => Just(RuleAction::Pass),
        1 => Just(RuleAction::Keep),
        3 => Just(RuleAction::Block),
        1 => Just(RuleAction::Reject(Reject::ByProtocol)),
        3 => jump(RuleAction::Jump),
        1 => jump(RuleAction::Goto),
        1 => Just(RuleAction::Return),
        1 => Just(RuleAction::Continue),
    ];
    (conditions(), action, any::<bool>()).prop_map(|(condition, action, decides_at_once)| PolicyRule {
        place: ORDINARY,
        text: "".into(),
        condition,
        action,
        decides_at_once,
        log: false,
        count: false,
    })
}

/// A policy of three groups and up to three hooks.
pub(crate) fn policies() -> impl Strategy<Value = Policy> {
    const GROUPS: usize = 3;
    let group =
        |index: usize| {
            let order = prop_oneof![2 => Just(MatchOrder::First), 1 => Just(MatchOrder::Last)];
            (order, proptest::collection::vec(rule(index, GROUPS), 0..5))
                .prop_map(|(order, rules)| RuleGroup { name: String::new(), order, rules })
        };
    let point = prop_oneof![
        3 => Just(HookPoint::Forward),
        1 => Just(HookPoint::In),
        1 => Just(HookPoint::Out),
        1 => Just(HookPoint::ToGateway),
        1 => Just(HookPoint::FromGateway),
    ];
    let default = prop_oneof![Just(RuleAction::Pass), Just(RuleAction::Block)];
    let hook = (point, 0..GROUPS - 1, default).prop_map(|(point, group, default)| Hook {
        point,
        group,
        default,
        place: ORDINARY,
    });
    let remembers = prop_oneof![
        Just(Remembers::Nothing),
        Just(Remembers::Passed),
        Just(Remembers::KeptAndAsked),
        Just(Remembers::Kept),
        Just(Remembers::KeptByDirection)
    ];
    let remembers = (remembers, any::<bool>());
    (proptest::collection::vec(hook, 1..4), (group(0), group(1), group(2)), remembers).prop_map(
        |(hooks, (first, second, third), (remembers, follows_icmp))| {
            let mut groups = vec![first, second, third];
            // Each fourth rule stands in the line of the one before it, as if they were one for their author.
            for (number, rule) in groups.iter_mut().flat_map(|group| &mut group.rules).enumerate() {
                (rule.place.line, rule.place.column) = (1 + number as u32 * 3 / 4, 1);
            }
            Policy {
                hooks,
                groups,
                memories: vec![Memory { place: ORDINARY, text: "rate".into(), rate: Err("a toy".into()) }],
                remembers,
                follows_icmp,
                ..Policy::default()
            }
        },
    )
}
