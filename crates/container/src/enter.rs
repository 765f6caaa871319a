//! What process 1 of a container does: files, users, rights, and then the command, whose end is its own.

use crate::namespaces::GROUPS;
use crate::{ContainerError, calls, failed, files, groups, limits, rights, sys};
use rustix::process::{DumpableBehavior, Gid, Signal, Uid, WaitOptions};
use rustix::thread::{self, LinkNameSpaceType};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::{AsFd, RawFd};
use std::os::unix::process::ExitStatusExt;
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
    /// What it gets as its descriptor 3, if that is to be anything.
    pub link: Option<RawFd>,
    /// The command and its arguments.
    pub command: Vec<OsString>,
}

/// Runs the command, and says how it ended. The process must have a single thread, have been started by
/// [`start`](crate::start()), and end then: all others of the container end with it.
///
/// It does not become the command, since Linux would forget whose death is its own when the command becomes
/// another user (prctl(2), PR_SET_PDEATHSIG).
///
/// # Errors
/// Something cannot be had; the command has not begun then.
pub fn enter(inside: &Inside) -> Result<ExitStatus, ContainerError> {
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
    drop(users);
    let what = || failed("becoming root of the container");
    thread::set_thread_groups(&[]).map_err(what())?;
    thread::set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).map_err(what())?;
    thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).map_err(what())?;
    // In a user namespace below this one, root would have rights that it lacks here.
    const FURTHER: &str = "/proc/sys/user/max_user_namespaces";
    fs::write(FURTHER, "0").map_err(failed(FURTHER))?;
    rights::limit(inside.sys_admin)?;
    sys::leave_keys().map_err(failed("leaving the keys of the machine"))?;
    sys::keep_descriptors(inside.link).map_err(failed("its descriptors"))?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(failed("ending with the one that started it"))?;
    // Nobody inside looks into this process or changes what it does.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(failed("keeping its memory to itself"))?;
    // Who has a terminal for its own can type into it, and whoever started the container would read that.
    rustix::process::setsid().map_err(failed("leaving the terminal"))?;
    if inside.sys_admin {
        calls::refuse_namespaces()?;
    }
    let Some((program, arguments)) = inside.command.split_first() else {
        return Err(failed("the command")(std::io::ErrorKind::InvalidInput));
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().current_dir("/");
    command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    command.env("HOME", "/root").env("container", "ravelin");
    command.envs(std::env::var_os("TERM").map(|term| ("TERM", term)));
    sys::lead_session(&mut command);
    let started = command.spawn().map_err(failed(program.to_string_lossy().into_owned()))?;
    sys::close_descriptors().map_err(failed("its descriptors"))?;
    loop {
        // Those whose parents have ended are its own now.
        let ended = rustix::process::wait(WaitOptions::empty()).map_err(failed("waiting for the command"))?;
        if let Some((process, status)) = ended
            && process.as_raw_pid() as u32 == started.id()
        {
            return Ok(ExitStatus::from_raw(status.as_raw()));
        }
    }
}
