//! What this machine offers: each layer is really tried, in a process of its own.

use super::namespaces::{self, NAMESPACES};
use super::{empty_root, filter, limits, rights, sys};
use crate::{Layer, Missing, Role};
use std::fs;

/// Tries each layer, and says why those that cannot be had cannot.
///
/// The trials run in copies of this process, which should have a single thread: a copy has only the thread
/// that made it, and waits for ever for a lock that another one held.
#[must_use]
pub fn probe() -> Vec<(Layer, Result<(), String>)> {
    let users = own_user_is_possible();
    Layer::ALL.into_iter().map(|layer| (layer, try_one(layer, users))).collect()
}

/// Why the first of some namespaces that cannot be had cannot.
pub(super) fn first_missing_namespace(wanted: &[Layer]) -> Option<Missing> {
    let users = own_user_is_possible();
    let tried = wanted.iter().map(|&layer| (layer, try_one(layer, users)));
    tried.into_iter().find_map(|(layer, result)| Some(Missing { layer, why: result.err()? }))
}

fn own_user_is_possible() -> bool {
    try_one(Layer::UserNamespace, true).is_ok()
}

/// Tries a layer, as user 0 of a namespace of its own if that is possible.
fn try_one(layer: Layer, users: bool) -> Result<(), String> {
    let told = sys::in_a_copy(|| {
        if users || layer == Layer::UserNamespace {
            become_root_of_own_namespace()?;
        }
        if let Some((_, flag, _)) = NAMESPACES.into_iter().find(|&(named, ..)| named == layer)
            && layer != Layer::UserNamespace
        {
            sys::leave(flag).map_err(|error| format!("unshare: {error}"))?;
        }
        let result = match layer {
            Layer::MountNamespace => empty_root::put().and_then(|()| empty_root::check()),
            Layer::NoNewPrivileges => rights::no_new_privileges(),
            Layer::Capabilities => rights::no_capabilities(false),
            Layer::Landlock => rights::landlock(None),
            Layer::NonDumpable => rights::not_dumpable(),
            Layer::Limits => limits::apply(Role::Core),
            Layer::Seccomp => filter::apply(Role::Core),
            Layer::UserNamespace => namespaces::no_further_users(),
            Layer::NetworkNamespace | Layer::IpcNamespace | Layer::PidNamespace | Layer::UtsNamespace => {
                Ok(())
            }
        };
        result.map_err(|missing| missing.why)
    });
    match told {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(why),
        Err(error) => Err(format!("fork: {error}")),
    }
}

/// Gives this process, which has one thread, a user namespace in which it is user 0.
fn become_root_of_own_namespace() -> Result<(), String> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    sys::leave(libc::CLONE_NEWUSER as u64).map_err(|error| format!("unshare: {error}"))?;
    let write = |file: &str, text: String| {
        let place = format!("/proc/self/{file}");
        fs::write(&place, text).map_err(|error| format!("{place}: {error}"))
    };
    write("setgroups", "deny".to_owned())?;
    write("gid_map", format!("0 {group} 1\n"))?;
    write("uid_map", format!("0 {user} 1\n"))
}
