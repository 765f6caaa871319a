//! What process 1 of a container does before it becomes the command: files, users, rights.

use crate::namespaces::GROUPS;
use crate::{ContainerError, failed, files, groups, limits, rights, sys};
use rustix::process::{Gid, Signal, Uid};
use rustix::thread::{self, LinkNameSpaceType};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::{AsFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// What is to be inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// The file of the user namespace.
    pub users: PathBuf,
    /// The user outside that is root inside.
    pub first_user: u32,
    /// Folders and files of the machine that are to be seen although what is around them is hidden.
    pub shown: Vec<PathBuf>,
    /// Whether the command is the monitor of a virtual machine.
    pub monitor: bool,
    /// What it gets as its descriptor 3, if that is to be anything.
    pub link: Option<RawFd>,
    /// The command and its arguments.
    pub command: Vec<OsString>,
}

/// Becomes the command. The process must have a single thread, and have been started by
/// [`start`](crate::start()).
///
/// # Errors
/// Something cannot be had; the command has not begun then.
pub fn enter(inside: &Inside) -> Result<std::convert::Infallible, ContainerError> {
    let users = File::open(&inside.users).map_err(failed(inside.users.display().to_string()))?;
    groups::join(&inside.users.with_extension(GROUPS))?;
    limits::limit_process(inside.monitor)?;
    files::put(inside.first_user, &inside.shown, inside.monitor)?;
    // Where the machine has no memory left, services end before what filters packets. Root inside can take it
    // back only where root of the machine has no right to set limits.
    const FIRST_TO_END: &str = "/proc/self/oom_score_adj";
    fs::write(FIRST_TO_END, "1000").map_err(failed(FIRST_TO_END))?;
    // From here on it has rights in the container alone.
    thread::move_into_link_name_space(users.as_fd(), Some(LinkNameSpaceType::User))
        .map_err(failed("entering the container's user namespace"))?;
    let what = || failed("becoming root of the container");
    thread::set_thread_groups(&[]).map_err(what())?;
    thread::set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).map_err(what())?;
    thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).map_err(what())?;
    // In a user namespace below this one, root would have rights that it lacks here.
    const FURTHER: &str = "/proc/sys/user/max_user_namespaces";
    fs::write(FURTHER, "0").map_err(failed(FURTHER))?;
    rights::limit()?;
    sys::leave_keys().map_err(failed("leaving the keys of the machine"))?;
    sys::keep_descriptors(inside.link).map_err(failed("its descriptors"))?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(failed("ending with the one that started it"))?;
    // Who has a terminal for its own can type into it, and whoever started the container would read that.
    rustix::process::setsid().map_err(failed("leaving the terminal"))?;
    let Some((program, arguments)) = inside.command.split_first() else {
        return Err(failed("the command")(std::io::ErrorKind::InvalidInput));
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().current_dir("/");
    command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    command.env("HOME", "/root").env("container", "ravelin");
    command.envs(std::env::var_os("TERM").map(|term| ("TERM", term)));
    Err(failed(program.to_string_lossy().into_owned())(command.exec()))
}
