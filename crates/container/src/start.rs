//! Starts a command inside a container: in its network, and in namespaces of processes, mounts, messages and
//! the host name that are new.

use crate::{ContainerError, Namespaces, failed, sys};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Command, ExitStatus, Stdio};

/// The argument by which this program becomes the process that calls [`enter`](crate::enter()); the file of
/// the user namespace, the user outside that is its root, and the end for reading of a pipe that closes with
/// this process follow.
pub const ENTER: &str = "enter-container";

/// Has this program, started anew with [`ENTER`] and these arguments, be process 1 of a container, and waits
/// for its end. The command in it gets `link` as its descriptor 3.
///
/// # Errors
/// The namespaces cannot be had: this process is not root.
pub fn start(
    namespaces: &Namespaces,
    link: Option<OwnedFd>,
    arguments: &[&OsStr],
) -> Result<ExitStatus, ContainerError> {
    move_into_link_name_space(namespaces.network.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(failed("entering the container's network"))?;
    let own = UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    sys::leave(own).map_err(failed("namespaces of its own"))?;
    let mut command = Command::new("/proc/self/exe");
    let first_user = namespaces.first_user.to_string();
    // As long as this process lives, the pipe has a writer.
    let (starter, _writer) = io::pipe().map_err(failed("a pipe"))?;
    fcntl_setfd(&starter, FdFlags::empty()).map_err(failed("handing over a pipe"))?;
    command.arg(ENTER).arg(&namespaces.user_path).arg(first_user).arg(starter.as_raw_fd().to_string());
    if let Some(link) = &link {
        // Whoever is started now, which is this one process, has it by the number that it has here.
        fcntl_setfd(link, FdFlags::empty()).map_err(failed("handing over the link"))?;
        command.arg("--link").arg(link.as_raw_fd().to_string());
    }
    command.args(arguments);
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    command.status().map_err(failed("starting process 1 of the container"))
}
