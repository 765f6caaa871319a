//! A network namespace: made here, entered by threads and programs, and removed by Linux when nobody uses it
//! any more.

use crate::sys;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

/// A network namespace.
pub struct Namespace {
    network: OwnedFd,
}

impl Namespace {
    /// A new one, in which there is nothing but a loopback device that is off.
    ///
    /// # Errors
    /// The right is missing (CAP_SYS_ADMIN, which [`become_root`] gives), or the kernel has no more.
    pub fn new() -> io::Result<Namespace> {
        let make = || {
            sys::leave_network()?;
            Ok(Namespace { network: File::open("/proc/thread-self/ns/net")?.into() })
        };
        thread::scope(|scope| joined(scope.spawn(make).join()))
    }

    /// One that there is, which `ip netns` has given a name.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn named(name: &str) -> io::Result<Namespace> {
        Ok(Namespace { network: File::open(Path::new("/run/netns").join(name))?.into() })
    }

    /// Runs something on a thread inside; sockets that it opens belong to this network wherever they are
    /// used.
    ///
    /// # Errors
    /// The kernel refuses to enter, or what the work says.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let enter = || {
            sys::enter(&self.network)?;
            work()
        };
        thread::scope(|scope| joined(scope.spawn(enter).join()))
    }

    /// A command that will run inside, on one processor if one is named, and is killed when the thread ends
    /// that starts it.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>, processor: Option<usize>) -> Command {
        let mut command = Command::new(program);
        sys::start_in(&mut command, &self.network, processor);
        command
    }

    /// Runs a program inside to its end, with this text as its input.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn run(&self, program: &str, arguments: &[&str], input: &str) -> io::Result<Output> {
        let mut command = self.command(program, None);
        let streams =
            command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = streams.spawn()?;
        // A child that ended early has said why on its standard error.
        let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
        child.wait_with_output()
    }

    /// Writes a setting of this network, such as `ipv4/ip_forward`.
    ///
    /// # Errors
    /// There is none of this name, or it does not take this value.
    pub fn set(&self, setting: &str, value: &str) -> io::Result<()> {
        let path = format!("/proc/sys/net/{setting}");
        self.inside(|| {
            fs::write(&path, value).map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
        })
    }

    /// Lets packets that come by an interface be worked on by one processor, whichever took them (receive
    /// packet steering).
    ///
    /// # Errors
    /// The kernel does not have it, or there is no such interface.
    pub fn steer(&self, interface: &str, processor: usize) -> io::Result<()> {
        let path = format!("/sys/class/net/{interface}/queues/rx-0/rps_cpus");
        self.inside(|| {
            sys::own_sysfs()?;
            fs::write(&path, format!("{:x}", 1u64 << processor))
        })
    }

    /// The network as the kernel is told of it.
    pub(crate) fn network(&self) -> &OwnedFd {
        &self.network
    }
}

/// Lets this process, which must still have a single thread, make networks although its user may not: as root
/// of a user namespace of its own. Where the user is root already, nothing happens.
///
/// # Errors
/// The system does not allow it, or there are other threads.
pub fn become_root() -> io::Result<()> {
    let (user, group) = sys::identity();
    if user == 0 {
        return Ok(());
    }
    sys::leave_users()?;
    // Groups cannot be mapped before this (user_namespaces(7)).
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

fn joined<T>(result: thread::Result<io::Result<T>>) -> io::Result<T> {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
