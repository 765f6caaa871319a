//! The rights of root inside: those that services of a router need, over what belongs to the container.

use crate::{ContainerError, failed};
use rustix::thread::{self, CapabilitySet, CapabilitySets};

/// What root may do inside. All of it is over the users, the network and the processes of the container;
/// there is no right to mount, to trace or to load programs into Linux; that no user namespace can be made is
/// seen to in `enter`.
const KEPT: [CapabilitySet; 14] = [
    CapabilitySet::CHOWN,
    CapabilitySet::DAC_OVERRIDE,
    CapabilitySet::FOWNER,
    CapabilitySet::FSETID,
    CapabilitySet::KILL,
    CapabilitySet::SETGID,
    CapabilitySet::SETUID,
    CapabilitySet::SETPCAP,
    CapabilitySet::NET_BIND_SERVICE,
    CapabilitySet::NET_BROADCAST,
    CapabilitySet::NET_ADMIN,
    CapabilitySet::NET_RAW,
    CapabilitySet::SYS_CHROOT,
    CapabilitySet::AUDIT_WRITE,
];

/// Gives up all others, for this process and whatever it starts. With `sys_admin`, root keeps CAP_SYS_ADMIN:
/// daemons ask for it at their start. It is a right over namespaces, of which the network alone is the
/// container's; that no others can be made or entered is seen to in `calls`.
pub(crate) fn limit(sys_admin: bool) -> Result<(), ContainerError> {
    let further = if sys_admin { CapabilitySet::SYS_ADMIN } else { CapabilitySet::empty() };
    let kept = KEPT.into_iter().fold(further, |all, one| all | one);
    for number in 0..CapabilitySet::all().bits().ilog2() + 1 {
        let Some(one) = CapabilitySet::from_bits(1 << number) else { continue };
        // A Linux that does not know a right does not have it either.
        if !kept.contains(one) && thread::capability_is_in_bounding_set(one).unwrap_or(false) {
            thread::remove_capability_from_bounding_set(one).map_err(failed("giving up rights"))?;
        }
    }
    thread::clear_ambient_capability_set().map_err(failed("giving up rights"))?;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    thread::set_capabilities(None, sets).map_err(failed("giving up rights"))?;
    thread::set_no_new_privs(true).map_err(failed("no new privileges"))
}
