//! Policies: which packets may pass, as administrators write it in any language, and what can be said of
//! that before a packet comes.
//!
//! A [`Policy`] is what a file means: base groups at the hooks that a packet passes, rules in groups that
//! jump to one another, a default for each hook. It says so in the fields of packets and knows no bytes.
//! Others make it (`import` from the files of other firewalls), and [`evaluate`] says what it means for one
//! packet. That is slow and obviously right: whatever is faster must agree with it.

#![forbid(unsafe_code)]

mod evaluate;
mod field;
mod limits;
mod model;

pub use evaluate::{PolicyFault, PolicyVerdict, Step, evaluate};
pub use field::{Packet, PacketField, State, Values};
pub use limits::{DEEPEST_JUMPS, MOST_RULES, MOST_STEPS};
pub use model::{
    Hook, HookPoint, MatchOrder, Memory, Path, Policy, PolicyRule, Reject, Remembers, RuleAction,
    RuleCondition, RuleGroup, RulePlace, Unreachable,
};
