//! Connections that single rules keep, each direction by itself, as marks of connections.
//!
//! Linux remembers every connection that passes, and with it a mark. The rule that keeps a connection sets a bit
//! of the mark, and the chain asks for the bits first:
//!
//! ```text
//! the rule keeps              the bit lets pass on the way in     and on the way out
//! on the way in,  original    the original direction              the reply
//! on the way in,  reply       the reply                           the original direction
//! on the way out, original    the reply                           the original direction
//! on the way out, reply       the original direction              the reply
//! ```
//!
//! An error about a connection goes in one of its directions, too, and has its mark. A packet that begins none
//! and belongs to none has no mark, and sets none.

use policy::{Hook, HookPoint, Policy, Remembers};
use serde_json::{Value, json};

/// The highest bits, since rules for routing use the lowest ones.
const IN_ORIGINAL: u32 = 1 << 28;
const OUT_ORIGINAL: u32 = 1 << 29;
const IN_REPLY: u32 = 1 << 30;
const OUT_REPLY: u32 = 1 << 31;

/// Whether marks can say what the rules of a policy keep: each direction by itself, and each asked once.
pub(super) fn is_sayable(policy: &Policy, hooks: &[Hook]) -> bool {
    let once = |point| hooks.iter().filter(|hook| hook.point == point).count() <= 1;
    policy.remembers == Remembers::KeptByDirection
        && policy.follows_icmp
        && hooks.iter().all(|hook| matches!(hook.point, HookPoint::In | HookPoint::Out))
        && once(HookPoint::In)
        && once(HookPoint::Out)
}

/// The rules in front of a chain, by which packets of kept connections pass.
pub(super) fn passing(point: HookPoint) -> [Vec<Value>; 2] {
    let same = (IN_ORIGINAL | OUT_REPLY, IN_REPLY | OUT_ORIGINAL);
    let (original, reply) = if point == HookPoint::In { same } else { (same.1, same.0) };
    [("original", original), ("reply", reply)].map(|(direction, bits)| {
        let mark = json!({"&": [{"ct": {"key": "mark"}}, bits]});
        vec![
            goes(direction),
            json!({"match": {"op": "!=", "left": mark, "right": 0}}),
            json!({"accept": null}),
        ]
    })
}

/// The name and the rules of the chain to which a rule that keeps sends a packet.
pub(super) fn keeping(point: HookPoint) -> (&'static str, [Vec<Value>; 3]) {
    let (name, original, reply) = match point {
        HookPoint::In => ("keep_in", IN_ORIGINAL, IN_REPLY),
        _ => ("keep_out", OUT_ORIGINAL, OUT_REPLY),
    };
    let sets = |direction: &str, bit: u32| {
        let state = json!({"ct": {"key": "state"}});
        let value = json!({"|": [{"ct": {"key": "mark"}}, bit]});
        vec![
            // An error about a connection begins none.
            json!({"match": {"op": "in", "left": state, "right": ["new", "established"]}}),
            goes(direction),
            json!({"mangle": {"key": {"ct": {"key": "mark"}}, "value": value}}),
        ]
    };
    (name, [sets("original", original), sets("reply", reply), vec![json!({"accept": null})]])
}

fn goes(direction: &str) -> Value {
    json!({"match": {"op": "==", "left": {"ct": {"key": "direction"}}, "right": direction}})
}
