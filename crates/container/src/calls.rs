//! The system calls that a command with CAP_SYS_ADMIN is refused: those that make namespaces or enter them.

use crate::{ContainerError, failed};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use std::collections::BTreeMap;
use std::io;

/// The flags of clone(2) that make a namespace.
const NEW: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// What marks the calls of the x32 interface, which have the architecture of the others (Linux,
/// arch/x86/include/uapi/asm/unistd.h).
const X32: i64 = 0x4000_0000;

/// Refuses these calls to this process, which has a single thread, and to all that it starts. In a namespace
/// of its own, root would have rights by CAP_SYS_ADMIN that he lacks in those of the machine. A call by
/// another architecture's numbers ends its process.
pub(crate) fn refuse_namespaces() -> Result<(), ContainerError> {
    let what = || failed("refusing further namespaces");
    let made = NEW.iter().map(|flag| {
        let bits = u64::from(flag.unsigned_abs());
        let holds = SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(bits), bits)?;
        SeccompRule::new(vec![holds])
    });
    let made = made.collect::<Result<Vec<_>, _>>().map_err(|error| what()(io::Error::other(error)))?;
    let refused = [(libc::SYS_unshare, Vec::new()), (libc::SYS_setns, Vec::new()), (libc::SYS_clone, made)];
    // Its flags are in memory, where no filter can look; the C library makes `clone` then.
    let unknown = [(libc::SYS_clone3, Vec::new())];
    for (rules, errno) in [(&refused[..], libc::EPERM), (&unknown, libc::ENOSYS)] {
        let program = program(rules, errno).map_err(|error| what()(io::Error::other(error)))?;
        seccompiler::apply_filter(&program).map_err(|error| what()(io::Error::other(error)))?;
    }
    Ok(())
}

/// The filter that answers these calls with an error.
fn program(calls: &[(i64, Vec<SeccompRule>)], errno: i32) -> Result<BpfProgram, seccompiler::BackendError> {
    let numbered = |(number, rules): &(i64, Vec<SeccompRule>)| {
        [*number, number | X32].map(|number| (number, rules.clone()))
    };
    let rules: BTreeMap<_, _> = calls.iter().flat_map(numbered).collect();
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno.unsigned_abs()), architecture)?
        .try_into()
}
