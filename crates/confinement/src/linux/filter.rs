//! The list of system calls of a role, as a filter that Linux runs before every call.

use crate::role::{AllowedCall, Condition, Holds};
use crate::{Layer, Missing, Role};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use std::collections::BTreeMap;

use super::sys;

/// Lets all threads of this process make the calls of a role and no other. A refused call is told, and ends
/// the process; one by another architecture's numbers ends it at once.
pub(super) fn apply(role: Role) -> Result<(), Missing> {
    let missing = |error: seccompiler::Error| Missing::new(Layer::Seccomp, error);
    if sys::readable_is_executable() {
        // No argument would tell that memory can be executed.
        return Err(Missing::new(
            Layer::Seccomp,
            "all memory that can be read can be executed (personality)",
        ));
    }
    sys::tell_refused_calls().map_err(|error| Missing::new(Layer::Seccomp, format!("sigaction: {error}")))?;
    // The later filter forbids the call that brings a filter.
    for program in programs(&role.calls(), role.unknown_calls())? {
        seccompiler::apply_filter_all_threads(&program).map_err(missing)?;
    }
    Ok(())
}

/// Lets this process, which has a single thread, make the calls of a role that still has to make threads and
/// machine code, and no other. What is [applied](apply) later holds in addition.
pub(super) fn prepare(role: Role) -> Result<(), Missing> {
    let missing = |error: seccompiler::Error| Missing::new(Layer::Seccomp, error);
    sys::tell_refused_calls().map_err(|error| Missing::new(Layer::Seccomp, format!("sigaction: {error}")))?;
    for program in programs(&role.preparing_calls(), &[libc::SYS_clone3])? {
        seccompiler::apply_filter(&program).map_err(missing)?;
    }
    Ok(())
}

/// The filters for a list of calls, in the order in which they are to be applied; the strictest answer counts
/// (seccomp(2)).
fn programs(calls: &[AllowedCall], unknown_calls: &[i64]) -> Result<Vec<BpfProgram>, Missing> {
    let missing = |error: seccompiler::BackendError| Missing::new(Layer::Seccomp, error);
    let mut programs = Vec::new();
    if !unknown_calls.is_empty() {
        let rules = unknown_calls.iter().map(|&number| (number, Vec::new())).collect();
        let unknown = SeccompAction::Errno(libc::ENOSYS as u32);
        programs.push(program(rules, SeccompAction::Allow, unknown).map_err(missing)?);
    }
    let mut allowed = BTreeMap::new();
    for call in calls {
        let rules = call.arguments.iter().map(|conditions| rule(conditions));
        let rules = rules.collect::<Result<Vec<_>, _>>().map_err(missing)?;
        allowed.insert(call.number, rules);
    }
    // The first filter has to let these through, for its answer to be given.
    for &number in unknown_calls {
        allowed.insert(number, Vec::new());
    }
    programs.push(program(allowed, SeccompAction::Trap, SeccompAction::Allow).map_err(missing)?);
    Ok(programs)
}

fn program(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    listed: SeccompAction,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, otherwise, listed, architecture)?.try_into()
}

fn rule(conditions: &[Condition]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = conditions.iter().map(|condition| {
        let (length, operation, value) = match condition.holds {
            Holds::Is(number) => (SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, u64::from(number)),
            Holds::Without(bits) => (SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(bits), 0),
            Holds::With(bits) => (SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(bits), bits),
        };
        SeccompCondition::new(condition.argument, length, operation, value)
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}
