//! What a policy consists of: hooks, groups, rules, conditions and actions.

use crate::field::{PacketField, Values};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The port that stands for the loopback interface of a machine, `lo` of Linux and `lo0` of the BSDs, unless
/// its name is bound to another one. Packets that the machine sends to itself go out and come in by it, and
/// no port of a gateway has its number.
pub const LOOPBACK: u16 = u16::MAX;

/// The name under which packets are described that go by [`LOOPBACK`].
pub const LOOPBACK_NAME: &str = "lo";

/// These names of ports, with [`LOOPBACK_NAME`] for [`LOOPBACK`], unless that name is bound.
pub fn with_loopback(names: &[(String, u16)]) -> impl Iterator<Item = (&str, u16)> {
    let is_free = names.iter().all(|(name, _)| name != LOOPBACK_NAME);
    let loopback = is_free.then_some((LOOPBACK_NAME, LOOPBACK));
    names.iter().map(|(name, port)| (name.as_str(), *port)).chain(loopback)
}

/// What a file, or a declaration of a program, says about packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Where base groups are asked, in the order in which a packet meets them at one point.
    pub hooks: Vec<Hook>,
    /// The groups, also called chains.
    pub groups: Vec<RuleGroup>,
    /// What conditions ask that depends on earlier packets.
    pub memories: Vec<Memory>,
    /// Which connections are remembered.
    pub remembers: Remembers,
    /// Whether rules that keep connections also know echoes and errors of ICMP by them. Otherwise packets of
    /// ICMP are compared with rules, whatever was kept (NPF without `alg "icmp"`).
    pub follows_icmp: bool,
    /// The names of interfaces, and the port that each is bound to.
    pub interfaces: Vec<(String, u16)>,
    /// The packets that it is asked about.
    pub families: AskedFamilies,
}

/// The versions of IP that a policy is asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AskedFamilies {
    /// Both.
    #[default]
    Both,
    /// IPv4, by a file that is about it alone: packets of IPv6 pass, unless another file blocks them.
    Version4,
    /// IPv4 alone, by a program whose columns hold nothing else. What becomes of packets of IPv6 is not
    /// known; rules in front let them pass. Not compared with a policy that is asked about both.
    Version4Alone,
}

/// Where a rule stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RulePlace {
    /// The line, from 1.
    pub line: u32,
    /// The column in bytes, from 1; 0 for a rule that nobody has written, such as the last one of an access
    /// list of IOS.
    pub column: u32,
}

/// A base group, asked about every packet that comes to a point of the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// The point.
    pub point: HookPoint,
    /// The group: an index of [`Policy::groups`].
    pub group: usize,
    /// What happens to packets about which the group says nothing: they pass, are kept, blocked or rejected.
    pub default: RuleAction,
    /// Where the default stands.
    pub place: RulePlace,
}

/// A point that packets come to.
///
/// ```text
/// received ─► In ─┬─► Forward ───────────────────────┬─► Out ─► sent
///                 └─► ToGateway ─► the machine ─► FromGateway ─┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HookPoint {
    /// Every packet that comes in by a port; `prerouting` of Linux, `in` of NPF and pf.
    In,
    /// Every packet that goes from port to port; `forward` of Linux.
    Forward,
    /// Every packet for the gateway itself; `input` of Linux.
    ToGateway,
    /// Every packet of the gateway itself; `output` of Linux.
    FromGateway,
    /// Every packet that leaves by a port; `postrouting` of Linux, `out` of NPF and pf.
    Out,
}

/// The way of a packet, which says the points that it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Path {
    /// From port to port.
    Forwarded,
    /// To the gateway itself.
    ToGateway,
    /// From the gateway itself.
    FromGateway,
}

impl Path {
    /// The points on the way, in order.
    pub fn points(self) -> &'static [HookPoint] {
        match self {
            Path::Forwarded => &[HookPoint::In, HookPoint::Forward, HookPoint::Out],
            Path::ToGateway => &[HookPoint::In, HookPoint::ToGateway],
            Path::FromGateway => &[HookPoint::FromGateway, HookPoint::Out],
        }
    }
}

/// Rules under one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleGroup {
    /// Its name.
    pub name: String,
    /// Which rule decides where several match.
    pub order: MatchOrder,
    /// The rules, in the order of the file.
    pub rules: Vec<PolicyRule>,
}

/// Which rule of a group decides where several match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MatchOrder {
    /// The first one.
    First,
    /// The last one, unless one before it is [`PolicyRule::decides_at_once`].
    Last,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRule {
    /// Where it stands.
    pub place: RulePlace,
    /// Its text, as it stands there.
    pub text: Arc<str>,
    /// Which packets it matches.
    pub condition: RuleCondition,
    /// What happens to them.
    pub action: RuleAction,
    /// `final` of NPF, `quick` of pf: no later rule is looked at.
    pub decides_at_once: bool,
    /// Whether packets that it matches are logged.
    pub log: bool,
    /// Whether it counts the packets and bytes that it matches.
    pub count: bool,
}

/// What happens to the packets of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RuleAction {
    /// They pass this hook.
    Pass,
    /// They pass, and the connection that they begin is remembered.
    Keep,
    /// They are dropped.
    Block,
    /// They are dropped, and the sender is told.
    Reject(Reject),
    /// They go through another group, and then on behind this rule.
    Jump(usize),
    /// They go through another group, and not back into this one.
    Goto(usize),
    /// They go on behind the jump that led here; in a base group the default decides.
    Return,
    /// They go on: the rule only logs or counts.
    Continue,
}

/// What the sender of a dropped packet is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reject {
    /// A TCP reset (RFC 9293, 3.10.7.1).
    TcpReset,
    /// "Destination unreachable" with this code: of ICMP (RFC 792) for IPv4.
    Icmp(u8),
    /// The same of ICMPv6 (RFC 4443, 3.1).
    Icmpv6(u8),
    /// A reset for TCP, and "port unreachable" of the packet's family for all others.
    ByProtocol,
    /// "Destination unreachable" in the packet's family: port, host, net or "administratively prohibited".
    Unreachable(Unreachable),
}

/// A reason of "destination unreachable" that both families have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Unreachable {
    /// No route: code 0 of ICMP and of ICMPv6.
    NoRoute,
    /// The host: codes 1 and 3.
    Host,
    /// The port: codes 3 and 4.
    Port,
    /// "Administratively prohibited": codes 13 and 1.
    Prohibited,
}

/// Which packets a rule matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RuleCondition {
    /// The packet has the field, and it holds one of the values. False for a packet without the field, also
    /// where the file asks that the field does *not* hold something.
    Holds(PacketField, Vec<Values>),
    /// The packet has no such field.
    Absent(PacketField),
    /// All of them hold; of none, that is every packet.
    All(Vec<RuleCondition>),
    /// One of them holds; of none, that is no packet.
    Any(Vec<RuleCondition>),
    /// It does not hold.
    Not(Box<RuleCondition>),
    /// It depends on earlier packets: an index of [`Policy::memories`].
    Remembered(usize),
}

impl RuleCondition {
    /// Whether it depends on earlier packets.
    pub(crate) fn depends_on_earlier_packets(&self) -> bool {
        match self {
            RuleCondition::Holds(..) | RuleCondition::Absent(_) => false,
            RuleCondition::All(parts) | RuleCondition::Any(parts) => {
                parts.iter().any(RuleCondition::depends_on_earlier_packets)
            }
            RuleCondition::Not(inner) => inner.depends_on_earlier_packets(),
            RuleCondition::Remembered(_) => true,
        }
    }

    /// The condition, or (`not`) its opposite.
    #[must_use]
    pub fn turned(self, not: bool) -> RuleCondition {
        if not { RuleCondition::Not(Box::new(self)) } else { self }
    }
}

/// A condition that depends on earlier packets, such as a rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Where it stands.
    pub place: RulePlace,
    /// Its text.
    pub text: Arc<str>,
    /// The rate that it asks for; or what it asks for in place of one, in a sentence.
    pub rate: Result<RuleRate, Arc<str>>,
}

/// A token bucket that is full at first and gives a token for each packet that comes to the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RuleRate {
    /// So many tokens arrive …
    pub tokens: u32,
    /// … in so many seconds, one after the other.
    pub seconds: u32,
    /// How many tokens the full bucket holds.
    pub burst: u32,
    /// Whether the condition holds for packets that get no token, and not for those that get one.
    pub over: bool,
}

/// Which connections a policy remembers. A packet of a remembered connection has the state "established", or
/// "related" if it reports an error about one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Remembers {
    /// None.
    #[default]
    Nothing,
    /// Every connection whose first packet passed; rules ask for the state of packets (Linux).
    Passed,
    /// Those whose first packet a rule with [`RuleAction::Keep`] let pass; all packets are compared with
    /// rules, as of a program about which no more is known.
    KeptAndAsked,
    /// Those whose first packet a rule with [`RuleAction::Keep`] let pass; their packets pass without being
    /// compared with rules, and so does the first one at the points behind that rule (`stateful-all` of NPF).
    Kept,
    /// As [`Remembers::Kept`], but each direction by itself: a rule on the way in keeps what comes in so, and
    /// answers on their way out; a rule on the way out the reverse (`keep state` of pf). At
    /// [`HookPoint::FromGateway`] and [`HookPoint::Out`] a packet's state is its
    /// [`crate::PacketField::OutState`], elsewhere its [`crate::PacketField::State`].
    KeptByDirection,
    /// As [`Remembers::KeptByDirection`], but only at the port where the rule kept the connection (`stateful`
    /// of NPF, `if-bound` of pf).
    KeptAtPort,
}

impl Remembers {
    /// The field that says whether a packet passes a point without being compared with rules; `None` where
    /// all packets are compared.
    pub fn asks(self, point: HookPoint) -> Option<PacketField> {
        match (self, point) {
            (Remembers::Nothing | Remembers::Passed | Remembers::KeptAndAsked, _) => None,
            (Remembers::KeptByDirection | Remembers::KeptAtPort, HookPoint::FromGateway | HookPoint::Out) => {
                Some(PacketField::OutState)
            }
            _ => Some(PacketField::State),
        }
    }

    /// Whether [`RuleAction::Keep`] is another treatment of packets than [`RuleAction::Pass`].
    pub fn keeps(self) -> bool {
        !matches!(self, Remembers::Nothing | Remembers::Passed)
    }
}
