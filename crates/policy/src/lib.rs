//! Policies: which packets may pass, as administrators write it in any language, and what can be said of
//! that before a packet comes.
//!
//! A [`Policy`] is what a file means: base groups at the hooks that a packet passes, rules in groups that
//! jump to one another, a default for each hook. It says so in the fields of packets and knows no bytes.
//! Others make it (`import` from the files of other firewalls), and [`evaluate()`] says what it means for one
//! packet. That is slow and obviously right: whatever is faster must agree with it.

#![forbid(unsafe_code)]

#[cfg(test)]
mod analysis_tests;
mod changed;
#[cfg(test)]
mod changed_tests;
mod comments;
mod decisions;
mod diagram;
mod diagram_description;
mod difference;
mod evaluate;
mod families;
mod field;
mod findings;
mod header_fields;
mod left_over;
mod limits;
mod lines;
mod listed;
mod listed_difference;
#[cfg(test)]
mod listed_tests;
mod model;
mod one_field;
mod opposed;
mod order;
#[cfg(test)]
mod order_tests;
mod overlaps;
mod packet_space;
mod packet_text;
mod ranks;
mod search;
mod searches;
#[cfg(test)]
mod solver_tests;
mod told;
#[cfg(test)]
mod toy;
mod unreached;
mod why;

pub use comments::{behind_expect, comment, test_of_program, tests_in};
pub use decisions::{AnalysisFault, PolicyDecision};
pub use diagram_description::PacketBox;
pub use difference::{DifferenceClass, PolicyDifference, difference, difference_within};
pub use evaluate::{PolicyFault, PolicyVerdict, Step, evaluate};
pub use field::{MAPPED, Packet, PacketField, State, Values};
pub use findings::{PolicyFindings, findings};
pub use limits::{DEEPEST_JUMPS, MOST_NODES, MOST_RULES, MOST_STEPS};
pub use model::{
    AskedFamilies, Hook, HookPoint, LOOPBACK, LOOPBACK_NAME, MatchOrder, Memory, Path, Policy, PolicyRule,
    Reject, Remembers, RuleAction, RuleCondition, RuleGroup, RulePlace, RuleRate, Unreachable, with_loopback,
};
pub use order::{OpposedLines, OpposedPairs, OrderFindings, RedundantLine};
pub use packet_space::WitnessPacket;
pub use packet_text::{DescribedPackets, box_text, packet_text, path_text, read_packets};
pub use told::ToldFault;
pub use unreached::{CoverEffect, UnreachedCause};
pub use why::{DecidedPolicy, ExpectedVerdict, WhyAnswer};
