//! Which namespaces belong to which layer, and whether this process has its own.

use crate::{Layer, Missing};
use std::fs;

/// The variable by which a process is told in which namespaces the one lives that started it.
pub(super) const OUTSIDE: &str = "CONFINEMENT_OUTSIDE";

/// The layers that are namespaces, with their flag of clone(2) and their file in `/proc/self/ns`.
pub(super) const NAMESPACES: [(Layer, u64, &str); 6] = [
    (Layer::UserNamespace, libc::CLONE_NEWUSER as u64, "user"),
    (Layer::NetworkNamespace, libc::CLONE_NEWNET as u64, "net"),
    (Layer::MountNamespace, libc::CLONE_NEWNS as u64, "mnt"),
    (Layer::IpcNamespace, libc::CLONE_NEWIPC as u64, "ipc"),
    (Layer::PidNamespace, libc::CLONE_NEWPID as u64, "pid"),
    (Layer::UtsNamespace, libc::CLONE_NEWUTS as u64, "uts"),
];

/// The namespaces of the thread that calls, as the value of [`OUTSIDE`].
#[cfg(feature = "start")]
pub(super) fn told() -> Result<String, Missing> {
    let mut told = String::new();
    for (layer, _, file) in NAMESPACES {
        told.push_str(&this_one("thread-self", layer, file)?);
        told.push(' ');
    }
    Ok(told)
}

/// Says whether a namespace of this process differs from that of the one that started it.
pub(super) fn is_own(layer: Layer, outside: Option<&str>) -> Result<(), Missing> {
    let Some((.., file)) = NAMESPACES.into_iter().find(|&(named, ..)| named == layer) else {
        return Ok(());
    };
    let missing = |why: &str| Missing::new(layer, why);
    let outside = outside.ok_or_else(|| missing("this process was not started apart (`separate`)"))?;
    let prefix = format!("{file}:");
    let theirs = outside.split_whitespace().find(|word| word.starts_with(&prefix));
    let theirs =
        theirs.ok_or_else(|| missing("the process that started this one does not say which it has"))?;
    if this_one("self", layer, file)? == theirs {
        return Err(missing("it is that of the process that started this one"));
    }
    Ok(())
}

/// Lets nobody make a user namespace below this one: he would have all capabilities in it (namespaces(7)).
pub(super) fn no_further_users() -> Result<(), Missing> {
    const PLACE: &str = "/proc/sys/user/max_user_namespaces";
    fs::write(PLACE, "0").map_err(|error| Missing::new(Layer::UserNamespace, format!("{PLACE}: {error}")))
}

/// The name of a namespace, such as `net:[4026531840]`.
fn this_one(whose: &str, layer: Layer, file: &str) -> Result<String, Missing> {
    let place = format!("/proc/{whose}/ns/{file}");
    let name = fs::read_link(&place).map_err(|error| Missing::new(layer, format!("{place}: {error}")))?;
    Ok(name.to_string_lossy().into_owned())
}
