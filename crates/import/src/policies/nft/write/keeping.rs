//! Connections that single rules keep, as marks of connections.
//!
//! Linux remembers every connection that passes, and with it a mark. The rule that keeps a connection sets a
//! bit of the mark, and every chain asks for the bits first. Where each direction is kept by itself (pf),
//! perhaps at one port alone (NPF), there are four bits, for each port its own:
//!
//! ```text
//! the rule keeps              the bit lets pass on the way in     and on the way out
//! on the way in,  original    the original direction              the reply
//! on the way in,  reply       the reply                           the original direction
//! on the way out, original    the reply                           the original direction
//! on the way out, reply       the original direction              the reply
//! ```
//!
//! Where a connection is kept everywhere (`stateful-all` of NPF), it has one bit; the packet that the rule
//! lets pass has it, too, for the chains behind. An error about a connection goes in one of its directions,
//! and has its mark. A packet that begins none and belongs to none has no mark, and sets none.

use crate::policies::limits::MOST_RULES_LOOKED_AT;
use policy::{Hook, HookPoint, PacketField, Policy, Remembers, RuleAction};
use serde_json::{Value, json};
use std::collections::HashSet;

/// The bits that a rule on the way in and one on the way out set for the original direction, and those for
/// the reply. The highest ones, since rules for routing use the lowest ones.
const IN: [u32; 2] = [1 << 28, 1 << 30];
const OUT: [u32; 2] = [1 << 29, 1 << 31];
const EVERYWHERE: u32 = 1 << 31;

/// So many bits are those of one port.
const BITS: usize = 4;

/// The most ports for which a mark has bits.
pub(super) const MOST_PORTS: usize = u32::BITS as usize / BITS;

/// The names of interfaces of one port.
type Names = Vec<String>;

/// How marks say what is kept.
pub(super) enum Keeping {
    /// Everywhere; `false`: but for packets of ICMP.
    Everywhere(bool),
    /// Each direction by itself, at the ports that have these names, or at all. No rule keeps anything at
    /// other ports. `false`: but for packets of ICMP.
    Directions(Vec<Option<Names>>, bool),
}

impl Keeping {
    /// How a policy keeps that is asked at these hooks, by interfaces of these names and ports; `None` if
    /// marks cannot say it.
    pub(super) fn of(policy: &Policy, interfaces: &[(String, u16)], hooks: &[Hook]) -> Option<Keeping> {
        let once = |point| hooks.iter().filter(|hook| hook.point == point).count() <= 1;
        // What a rule has kept holds for the first packet at no other point of its direction.
        let is_plain = hooks.iter().all(|hook| matches!(hook.point, HookPoint::In | HookPoint::Out))
            && once(HookPoint::In)
            && once(HookPoint::Out);
        match policy.remembers {
            Remembers::Kept => Some(Keeping::Everywhere(policy.follows_icmp)),
            Remembers::KeptByDirection if is_plain => {
                Some(Keeping::Directions(vec![None], policy.follows_icmp))
            }
            Remembers::KeptAtPort if is_plain => {
                let mut ports: Vec<u16> = interfaces.iter().map(|(_, port)| *port).collect();
                ports.sort_unstable();
                ports.dedup();
                let mut left = MOST_RULES_LOOKED_AT;
                let keeps = |port: &u16| hooks.iter().any(|hook| may_keep(policy, hook, *port, &mut left));
                let ports: Vec<u16> = ports.into_iter().filter(keeps).take(MOST_PORTS + 1).collect();
                let names = |port: &u16| {
                    let own = interfaces.iter().filter(|(_, own)| own == port);
                    Some(own.map(|(name, _)| name.clone()).collect())
                };
                (ports.len() <= MOST_PORTS)
                    .then(|| Keeping::Directions(ports.iter().map(names).collect(), policy.follows_icmp))
            }
            _ => None,
        }
    }

    /// The rules in front of a chain, by which packets of kept connections pass.
    pub(super) fn passing(&self, point: HookPoint) -> Vec<Vec<Value>> {
        let has = |kind: &str, bits: u32| {
            let mark = json!({"&": [{kind: {"key": "mark"}}, bits]});
            json!({"match": {"op": "!=", "left": mark, "right": 0}})
        };
        let accept = || json!({"accept": null});
        match self {
            Keeping::Everywhere(icmp) => vec![
                vec![has("meta", EVERYWHERE), accept()],
                but_icmp(*icmp).chain([has("ct", EVERYWHERE), accept()]).collect(),
            ],
            Keeping::Directions(ports, icmp) => {
                let (own, other) = if is_in(point) { (IN, OUT) } else { (OUT, IN) };
                let mut rules = Vec::new();
                for (number, names) in ports.iter().enumerate() {
                    for (direction, bits) in [own[0] | other[1], own[1] | other[0]].into_iter().enumerate() {
                        let asked = by(names, point).into_iter().chain(but_icmp(*icmp));
                        let rest = [goes(direction), has("ct", bits >> (number * BITS)), accept()];
                        rules.push(asked.chain(rest).collect());
                    }
                }
                rules
            }
        }
    }

    /// The name and the rules of the chain to which a rule at a point sends the packets that it keeps.
    pub(super) fn keeping(&self, point: HookPoint) -> (&'static str, Vec<Vec<Value>>) {
        let sets = |kind: &str, bit: u32| {
            let value = json!({"|": [{kind: {"key": "mark"}}, bit]});
            json!({"mangle": {"key": {kind: {"key": "mark"}}, "value": value}})
        };
        // An error about a connection begins none.
        let state = || {
            let state = json!({"ct": {"key": "state"}});
            json!({"match": {"op": "in", "left": state, "right": ["new", "established"]}})
        };
        let accept = vec![json!({"accept": null})];
        match self {
            Keeping::Everywhere(_) => {
                ("keep", vec![vec![state(), sets("ct", EVERYWHERE)], vec![sets("meta", EVERYWHERE)], accept])
            }
            Keeping::Directions(ports, _) => {
                let (name, own) = if is_in(point) { ("keep_in", IN) } else { ("keep_out", OUT) };
                let mut rules = Vec::new();
                for (number, names) in ports.iter().enumerate() {
                    for (direction, bit) in own.into_iter().enumerate() {
                        let rest = [state(), goes(direction), sets("ct", bit >> (number * BITS))];
                        rules.push(by(names, point).into_iter().chain(rest).collect());
                    }
                }
                rules.push(accept);
                (name, rules)
            }
        }
    }
}

/// Whether a packet that a hook is asked about at a port may be kept there, as far as `left` rules say: where
/// none is left, it may.
fn may_keep(policy: &Policy, hook: &Hook, port: u16, left: &mut usize) -> bool {
    let field = if is_in(hook.point) { PacketField::InPort } else { PacketField::OutPort };
    let (mut seen, mut next) = (HashSet::from([hook.group]), vec![hook.group]);
    while let Some(group) = next.pop() {
        for rule in &policy.groups[group].rules {
            let Some(less) = left.checked_sub(1) else { return true };
            *left = less;
            if rule.condition.holds_where(field, port.into()) == Some(false) {
                continue;
            }
            match rule.action {
                RuleAction::Keep => return true,
                RuleAction::Jump(to) | RuleAction::Goto(to) if seen.insert(to) => next.push(to),
                _ => {}
            }
        }
    }
    hook.default == RuleAction::Keep
}

fn is_in(point: HookPoint) -> bool {
    point == HookPoint::In
}

/// That a packet goes in the original direction of its connection, or (1) is a reply.
fn goes(direction: usize) -> Value {
    let name = ["original", "reply"][direction];
    json!({"match": {"op": "==", "left": {"ct": {"key": "direction"}}, "right": name}})
}

/// That a packet is none of ICMP, where these are compared with rules whatever was kept.
fn but_icmp(follows: bool) -> impl Iterator<Item = Value> {
    let left = json!({"meta": {"key": "l4proto"}});
    let other = json!({"match": {"op": "!=", "left": left, "right": {"set": [1, 58]}}});
    (!follows).then_some(other).into_iter()
}

/// That a packet comes in, or goes out, by one of these interfaces.
fn by(names: &Option<Names>, point: HookPoint) -> Option<Value> {
    let names = names.as_ref()?;
    let left = json!({"meta": {"key": if is_in(point) { "iifname" } else { "oifname" }}});
    let right = if let [only] = &names[..] { json!(only) } else { json!({"set": names}) };
    Some(json!({"match": {"op": "==", "left": left, "right": right}}))
}
