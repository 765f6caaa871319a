//! What an operation or the terminator of a block depends on: its values, and whether anything else.

use super::{KeyPart, Op, Terminator, Value};

impl Op {
    /// Whether its result depends on the packet and its operands alone, and it changes nothing.
    pub fn is_of_packet_alone(&self) -> bool {
        matches!(
            self,
            Op::Const(_)
                | Op::Binary(..)
                | Op::Compare(..)
                | Op::Select(..)
                | Op::Resize(_)
                | Op::Load { .. }
                | Op::Checksum { .. }
                | Op::InPort
                | Op::WireLength
                | Op::Captured
                | Op::Keep(_)
                | Op::EnterStage(_)
                | Op::Header { .. }
        )
    }

    /// Visits every value that it uses.
    pub fn operands(&self, mut visit: impl FnMut(Value)) {
        match self {
            Op::Const(_)
            | Op::InPort
            | Op::WireLength
            | Op::Captured
            | Op::Now
            | Op::ClearDefault(_)
            | Op::EnterStage(_) => {}
            Op::Binary(_, left, right) | Op::Compare(_, left, right) => {
                [*left, *right].into_iter().for_each(&mut visit)
            }
            Op::Select(condition, yes, no) => [*condition, *yes, *no].into_iter().for_each(&mut visit),
            Op::Resize(value) | Op::Copy(value) | Op::Keep(value) | Op::Truncate(value) => visit(*value),
            Op::Load { base, .. } | Op::Header { base, .. } => visit(*base),
            Op::Store { base, value, .. } => [*base, *value].into_iter().for_each(&mut visit),
            Op::Checksum { base, more, .. } => {
                [Some(*base), *more].into_iter().flatten().for_each(&mut visit)
            }
            Op::Lookup { key, .. } | Op::Remove { key, .. } => key.iter().copied().for_each(&mut visit),
            Op::Scan { start, end, .. } => [*start, *end].into_iter().for_each(&mut visit),
            Op::Insert { key, value, .. } => {
                key_values(key).chain(value.iter().copied()).for_each(&mut visit);
            }
            Op::Withdraw { key, .. } => key_values(key).for_each(&mut visit),
            Op::Mark { index, before, .. } => index.iter().chain(before).copied().for_each(&mut visit),
            Op::ReadRegister { index, .. } => index.iter().copied().for_each(&mut visit),
            Op::WriteRegister { index, value, .. } => {
                index.iter().chain([value]).copied().for_each(&mut visit)
            }
            Op::Take { hint, .. } => visit(*hint),
            Op::Give { item, .. } => item.iter().copied().for_each(&mut visit),
            Op::Choose { index, hash, .. } => index.iter().chain([hash]).copied().for_each(&mut visit),
            Op::Member { index, .. } => index.iter().copied().for_each(&mut visit),
            Op::Join { index, member, .. } | Op::Leave { index, member, .. } => {
                index.iter().chain(member).copied().for_each(&mut visit);
            }
            Op::Learn { key, value, .. } => key.iter().chain(value).copied().for_each(&mut visit),
            Op::EndAfter { key, after, .. } => key.iter().chain([after]).copied().for_each(&mut visit),
            Op::HasRoom(listed) => listed.iter().flat_map(|(_, key)| key).copied().for_each(&mut visit),
            Op::SetDefault { value, .. } => value.iter().copied().for_each(&mut visit),
            Op::Count { index, .. } => index.iter().copied().for_each(&mut visit),
            Op::Raise { args, delay, .. } => args.iter().chain(delay).copied().for_each(&mut visit),
            Op::PushBytes { at, values, .. } => [at].into_iter().chain(values).copied().for_each(&mut visit),
            Op::PopBytes { at, bytes: other } | Op::Fragment { at, mtu: other } => {
                [*at, *other].into_iter().for_each(&mut visit)
            }
            Op::Emit { values, tail, limit, port, .. } => {
                values.iter().chain(tail).chain(limit).chain([port]).copied().for_each(&mut visit)
            }
        }
    }
}

impl Terminator {
    /// Visits every value that it uses, those handed over as well.
    pub fn operands(&self, mut visit: impl FnMut(Value)) {
        match self {
            Terminator::Branch(value, ..) | Terminator::Switch(value, ..) | Terminator::Send(value) => {
                visit(*value)
            }
            Terminator::Need { base, more, limit, .. } => {
                [Some(*base), *more, *limit].into_iter().flatten().for_each(&mut visit);
            }
            _ => {}
        }
        self.targets().into_iter().flat_map(|target| &target.args).copied().for_each(visit);
    }
}

/// The values that a key is made of while the program runs.
fn key_values(key: &[KeyPart]) -> impl Iterator<Item = Value> {
    key.iter().filter_map(|part| match part {
        KeyPart::Exact(value) | KeyPart::Prefix(value, _) => Some(*value),
        KeyPart::Fixed(_) => None,
    })
}
