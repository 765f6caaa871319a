//! What process 1 of a container does: files, users, rights, and then the command, whose end is its own.

use crate::namespaces::GROUPS;
use crate::{ContainerError, calls, failed, files, groups, limits, rights, sys};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Gid, Pid, Signal, Uid, WaitOptions};
use rustix::thread::{self, LinkNameSpaceType};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::{AsFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

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
    /// Whether root has CAP_SYS_ADMIN, too.
    pub sys_admin: bool,
    /// The end for reading of a pipe whose other end the starter of this process has, and nobody else.
    pub starter: RawFd,
    /// What it gets as its descriptor 3, if that is to be anything.
    pub link: Option<RawFd>,
    /// The command and its arguments.
    pub command: Vec<OsString>,
}

/// Runs the command, and says how it ended. The process must have a single thread, have been started by
/// [`start`](crate::start()), and end then: all others of the container end with it.
///
/// It does not become the command, since Linux would forget whose death is its own when the command becomes
/// another user (prctl(2), PR_SET_PDEATHSIG). It is no user of the container, so that root inside can neither
/// signal it nor keep it from the processor.
///
/// # Errors
/// Something cannot be had. A command that has begun ends with this process.
pub fn enter(inside: &Inside) -> Result<ExitStatus, ContainerError> {
    end_with_starter()?;
    let users = File::open(&inside.users).map_err(failed(inside.users.display().to_string()))?;
    groups::join(&inside.users.with_extension(GROUPS))?;
    limits::limit_process(inside.monitor)?;
    files::put(inside.first_user, &inside.shown, inside.monitor)?;
    // Where the machine has no memory left, services end before what filters packets. Root inside can take it
    // back only where root of the machine has no right to set limits.
    const FIRST_TO_END: &str = "/proc/self/oom_score_adj";
    fs::write(FIRST_TO_END, "1000").map_err(failed(FIRST_TO_END))?;
    match sys::fork().map_err(failed("a process for the command"))? {
        Some(command) => {
            // Before all descriptors are closed.
            drop(users);
            wait_for(command, inside.starter)
        }
        None => Err(become_command(inside, &users)),
    }
}

/// Has Linux end this process when the one ends that started it.
fn end_with_starter() -> Result<(), ContainerError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(failed("ending with the one that started it"))
}

/// Gives all rights up, and waits for the end of the command. Whoever is inside has no right over this
/// process.
fn wait_for(command: Pid, starter: RawFd) -> Result<ExitStatus, ContainerError> {
    const NOBODY: u32 = 65_534;
    let what = || failed("becoming nobody");
    thread::set_thread_groups(&[]).map_err(what())?;
    let (group, user) = (Gid::from_raw(NOBODY), Uid::from_raw(NOBODY));
    thread::set_thread_res_gid(group, group, group).map_err(what())?;
    thread::set_thread_res_uid(user, user, user).map_err(what())?;
    thread::set_no_new_privs(true).map_err(failed("no new privileges"))?;
    // Linux has forgotten it with the user.
    end_with_starter()?;
    if sys::is_closed(starter).map_err(failed("looking after the one that started it"))? {
        return Err(failed("the container")(std::io::Error::other("the one that started it has ended")));
    }
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(failed("keeping its memory to itself"))?;
    // Who has a terminal for its own can type into it, and whoever started the container would read that.
    rustix::process::setsid().map_err(failed("leaving the terminal"))?;
    sys::close_descriptors().map_err(failed("its descriptors"))?;
    loop {
        // Those whose parents have ended are its own now.
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((process, status))) if process == command => {
                return Ok(ExitStatus::from_raw(status.as_raw()));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(failed("waiting for the command")(error)),
        }
    }
}

/// Becomes the command, as root of the container; why it cannot.
fn become_command(inside: &Inside, users: &File) -> ContainerError {
    if let Err(error) = enter_users(inside, users) {
        return error;
    }
    let Some((program, arguments)) = inside.command.split_first() else {
        return failed("the command")(std::io::ErrorKind::InvalidInput);
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().current_dir("/");
    command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    command.env("HOME", "/root").env("container", "ravelin");
    command.envs(std::env::var_os("TERM").map(|term| ("TERM", term)));
    failed(program.to_string_lossy().into_owned())(command.exec())
}

/// Becomes root of the container, with the rights of root there and nothing of the machine's but what is to
/// be handed over.
fn enter_users(inside: &Inside, users: &File) -> Result<(), ContainerError> {
    thread::move_into_link_name_space(users.as_fd(), Some(LinkNameSpaceType::User))
        .map_err(failed("entering the container's user namespace"))?;
    let what = || failed("becoming root of the container");
    thread::set_thread_groups(&[]).map_err(what())?;
    thread::set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).map_err(what())?;
    thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).map_err(what())?;
    // In a user namespace below this one, root would have rights that it lacks here.
    const FURTHER: &str = "/proc/sys/user/max_user_namespaces";
    fs::write(FURTHER, "0").map_err(failed(FURTHER))?;
    rights::limit(inside.sys_admin)?;
    sys::leave_keys().map_err(failed("leaving the keys of the machine"))?;
    // As process 1; and only the leader of a session can take a terminal for it, as a server of logins does.
    rustix::process::setsid().map_err(failed("leaving the terminal"))?;
    calls::refuse(inside.sys_admin)?;
    sys::keep_descriptors(inside.link).map_err(failed("its descriptors"))
}
