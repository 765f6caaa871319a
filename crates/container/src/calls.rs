//! The system calls that commands of a container are refused.
//!
//! Keys would stay in Linux's own memory when the container has ended, and no control group counts them. A
//! socket of AF_VSOCK would be another link than the gateway's. With CAP_SYS_ADMIN, root would have rights in
//! a namespace of his own that he lacks in those of the machine, so that none can be made or entered.

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

/// Calls with an error that they end with: always, where there are no conditions.
type Refused = (i32, Vec<(i64, Vec<SeccompRule>)>);

/// Refuses this process, which has a single thread, and all that it starts what no command may do, and with
/// `sys_admin` what one with CAP_SYS_ADMIN may not. A call by another architecture's numbers ends its
/// process.
pub(crate) fn refuse(sys_admin: bool) -> Result<(), ContainerError> {
    applied(sys_admin).map_err(|error| failed("refusing system calls")(io::Error::other(error)))
}

fn applied(sys_admin: bool) -> Result<(), seccompiler::Error> {
    let mut all = of_every_command()?;
    if sys_admin {
        all.extend(with_sys_admin()?);
    }
    all.iter().try_for_each(|(errno, calls)| seccompiler::apply_filter(&program(calls, *errno)?))
}

/// Always, whatever their arguments.
fn calls<const N: usize>(numbers: [i64; N]) -> Vec<(i64, Vec<SeccompRule>)> {
    numbers.into_iter().map(|number| (number, Vec::new())).collect()
}

fn of_every_command() -> Result<Vec<Refused>, seccompiler::BackendError> {
    let family = u64::from(libc::AF_VSOCK.unsigned_abs());
    let is_vsock = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, family)?;
    let is_vsock = SeccompRule::new(vec![is_vsock])?;
    let of_keys = calls([libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl]);
    Ok(vec![
        // As by a Linux that has neither.
        (libc::ENOSYS, of_keys),
        (libc::EAFNOSUPPORT, vec![(libc::SYS_socket, vec![is_vsock])]),
    ])
}

fn with_sys_admin() -> Result<Vec<Refused>, seccompiler::BackendError> {
    let made = NEW.iter().map(|flag| {
        let bits = u64::from(flag.unsigned_abs());
        let holds = SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(bits), bits)?;
        SeccompRule::new(vec![holds])
    });
    let mut refused = calls([
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        // Some ask for no right over the machine's mounts, and make a namespace of them.
        libc::SYS_open_tree,
        libc::SYS_move_mount,
        libc::SYS_fsopen,
        libc::SYS_fspick,
        libc::SYS_fsmount,
        libc::SYS_mount_setattr,
    ]);
    refused.push((libc::SYS_clone, made.collect::<Result<_, _>>()?));
    // The flags of `clone3` are in memory, where no filter can look; the C library makes `clone` then.
    Ok(vec![(libc::EPERM, refused), (libc::ENOSYS, calls([libc::SYS_clone3]))])
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
