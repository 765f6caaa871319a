//! Gives up rights: privileges that programs could bring, capabilities, what Landlock knows, and being
//! traced.

use super::sys;
use crate::{Layer, Missing};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::DumpableBehavior;
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};
use rustix::{process, thread};

/// No program that is executed brings rights.
pub(super) fn no_new_privileges() -> Result<(), Missing> {
    let missing = |error| Missing::new(Layer::NoNewPrivileges, format!("prctl: {error}"));
    thread::set_no_new_privs(true).map_err(missing)?;
    match thread::no_new_privs().map_err(missing)? {
        true => Ok(()),
        false => Err(Missing::new(Layer::NoNewPrivileges, "Linux has not taken it over")),
    }
}

/// The highest number that a capability may have.
const CAPABILITIES: u32 = 64;

/// User and group that have no right on the machine, as Linux shows those that a namespace does not know.
pub(super) const NOBODY: u32 = 65_534;

/// Gives up all capabilities, those that user 0 has by itself included; and user 0 itself, if it `is_root` of
/// the machine.
pub(super) fn no_capabilities(is_root: bool) -> Result<(), Missing> {
    let missing = |what: &'static str| {
        move |error: rustix::io::Errno| Missing::new(Layer::Capabilities, format!("{what}: {error}"))
    };
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    thread::set_capabilities_secure_bits(bits).map_err(missing("PR_SET_SECUREBITS"))?;
    for capability in bounded() {
        thread::remove_capability_from_bounding_set(capability).map_err(missing("PR_CAPBSET_DROP"))?;
    }
    thread::clear_ambient_capability_set().map_err(missing("PR_CAP_AMBIENT"))?;
    if is_root {
        sys::become_user(NOBODY, NOBODY)
            .map_err(|error| Missing::new(Layer::Capabilities, format!("setresuid: {error}")))?;
    }
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    thread::set_capabilities(None, none).map_err(missing("capset"))?;
    let left = thread::capabilities(None).map_err(missing("capget"))?;
    let bits_now = thread::capabilities_secure_bits().map_err(missing("PR_GET_SECUREBITS"))?;
    if left != none || bounded().next().is_some() || bits_now != bits {
        return Err(Missing::new(Layer::Capabilities, format!("some are left: {left:?}, {bits_now:?}")));
    }
    Ok(())
}

/// The capabilities that the bounding set still has. Linux says of a number that it does not know that it is
/// none.
fn bounded() -> impl Iterator<Item = CapabilitySet> {
    (0..CAPABILITIES)
        .map(|number| CapabilitySet::from_bits_retain(1 << number))
        .filter(|&capability| thread::capability_is_in_bounding_set(capability).unwrap_or(false))
}

/// The first version of Landlock that knows files, TCP, signals and abstract sockets: that of Linux 6.12.
const NEEDED: ABI = ABI::V6;

/// The last version that is known here. What it knows more than [`NEEDED`] is asked for where Linux knows it.
const KNOWN: ABI = ABI::V10;

/// Gives up all rights that Landlock knows, but to read what is in a folder if one is given.
pub(super) fn landlock(reads: Option<PathFd>) -> Result<(), Missing> {
    let missing = |error: landlock::RulesetError| {
        Missing::new(
            Layer::Landlock,
            format!("{error} (Linux 6.12 and newer have all of it, if switched on)"),
        )
    };
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(NEEDED)))
        .and_then(|rules| rules.scope(Scope::from_all(NEEDED)))
        .map(|rules| rules.set_compatibility(CompatLevel::BestEffort))
        .and_then(|rules| rules.handle_access(AccessFs::from_all(KNOWN)))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(KNOWN)))
        .and_then(|rules| rules.scope(Scope::from_all(KNOWN)))
        .map_err(missing)?;
    let mut rules = rules.create().map_err(missing)?;
    if let Some(folder) = reads {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        rules = rules.add_rule(PathBeneath::new(folder, read)).map_err(missing)?;
    }
    let status = rules.restrict_self().map_err(missing)?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err(Missing::new(Layer::Landlock, "Linux has not taken it over"));
    }
    check_landlock()
}

/// Tries something that Landlock alone refuses: to bind a TCP socket to any free port.
fn check_landlock() -> Result<(), Missing> {
    match std::net::TcpListener::bind((std::net::Ipv4Addr::UNSPECIFIED, 0)) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(Missing::new(Layer::Landlock, format!("bind: {error}"))),
        Ok(_) => Err(Missing::new(Layer::Landlock, "a TCP port could still be bound")),
    }
}

/// Lets no other process of the same user trace this one, or read its memory.
pub(super) fn not_dumpable() -> Result<(), Missing> {
    let missing = |error| Missing::new(Layer::NonDumpable, format!("prctl: {error}"));
    process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(missing)?;
    match process::dumpable_behavior().map_err(missing)? {
        DumpableBehavior::NotDumpable => Ok(()),
        other => Err(Missing::new(Layer::NonDumpable, format!("it is {other:?}"))),
    }
}
