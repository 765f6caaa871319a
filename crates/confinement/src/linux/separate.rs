//! Starts a process apart from the machine: new namespaces, a user that is nobody outside, and no descriptors
//! but those that are named.

use super::namespaces::{self, NAMESPACES};
use super::rights::NOBODY;
use super::sys::{self, Beginning, Step};
use crate::{Layer, Missing, Role};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Signal, WaitId, WaitIdOptions, WaitIdStatus, waitid};
use std::ffi::{CString, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

/// The program of a process that is to be confined, and what it gets.
#[derive(Clone, Copy, Debug)]
pub struct SeparateStart<'a> {
    /// The program's file, opened for reading: `/proc/self/exe` is the one that runs. It is executed by this
    /// descriptor, so that it is the file that was opened, wherever it lies.
    pub program: BorrowedFd<'a>,
    /// Its arguments, its own name first. Its environment is empty but for what this crate says to it.
    pub arguments: &'a [OsString],
    /// Gets what it tells as errors, as number 2. It should be a pipe: a confined process may not let a file
    /// grow.
    pub error_output: BorrowedFd<'a>,
    /// Descriptors that it gets, with their numbers there, from 3. Numbers 0 and 1 are `/dev/null` unless
    /// they are named here.
    pub descriptors: &'a [(BorrowedFd<'a>, RawFd)],
}

/// Why a process could not be started apart.
#[derive(Debug, thiserror::Error)]
pub enum SeparateError {
    /// a layer cannot be had
    #[error(transparent)]
    Missing(#[from] Missing),
    /// {what}: {error}
    #[error("{what}: {error}")]
    Failed {
        /// What failed.
        what: &'static str,
        /// What Linux says.
        error: io::Error,
    },
}

impl SeparateError {
    fn failed(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Failed { what, error }
    }
}

/// A process that was started apart. It ends with the thread that started it, at the latest, and is ended
/// when this is dropped.
#[derive(Debug)]
pub struct SeparateChild {
    number: i32,
    process: OwnedFd,
    end: Option<ProcessEnd>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal. [`ProcessEnd::REFUSED`] is that of a refused system call.
    Signalled(i32),
}

impl ProcessEnd {
    /// The end of a process that made a system call that its role does not have. The number of the call is in
    /// the last line that the process wrote to its error output.
    pub const REFUSED: Self = Self::Signalled(libc::SIGSYS);
}

/// Starts a process in namespaces of its own: those of the layers of `role`, but for those in `without`.
///
/// If this process is root of the machine, the new one is user 0 of its namespace and nobody (65534) outside,
/// else it is user 0 there and the same user outside. It still sees the machine's files, since a program
/// needs its libraries to begin; its own first deed has to be [`enter`](super::enter()), before it reads
/// anything from others.
///
/// It may be called by a process with several threads. The new process is killed when the thread that calls
/// ends.
///
/// # Errors
/// A namespace cannot be had, or the program cannot be executed. No process is left then.
pub fn separate(
    start: &SeparateStart<'_>,
    role: Role,
    without: &[Layer],
) -> Result<SeparateChild, SeparateError> {
    let wanted: Vec<_> = NAMESPACES
        .into_iter()
        .filter(|(layer, ..)| !without.contains(layer) && role.layers().any(|has| has == *layer))
        .collect();
    let own_user = wanted.iter().any(|(layer, ..)| *layer == Layer::UserNamespace);
    let root = rustix::process::geteuid().is_root();

    let (mut failure, failure_writer) = io::pipe().map_err(SeparateError::failed("pipe"))?;
    let (go, mut go_writer) = io::pipe().map_err(SeparateError::failed("pipe"))?;
    let prepared = Prepared::new(start, go.into(), failure_writer.into())?;
    let began = sys::begin(&Beginning {
        namespaces: wanted.iter().fold(0, |flags, (_, flag, _)| flags | flag),
        program: &prepared.program,
        arguments: &prepared.arguments,
        environment: &prepared.environment,
        descriptors: &prepared.descriptors,
        go: &prepared.go,
        go_writer: go_writer.as_raw_fd(),
        failure: &prepared.failure,
        becomes_root: own_user,
        leaves_groups: root,
    });
    let (number, process) = began.map_err(|error| refused(&wanted, error))?;
    drop(prepared);
    // Dropping the child ends it, so that none is left behind if something fails from here on.
    let child = SeparateChild { number, process, end: None };
    if own_user {
        name_user(number, root)?;
    }
    if role.most_memory().is_some() && !without.contains(&Layer::Limits) {
        end_first(number)?;
    }
    go_writer.write_all(&[1]).map_err(SeparateError::failed("the process that was started"))?;
    let mut told = Vec::new();
    failure.read_to_end(&mut told).map_err(SeparateError::failed("the process that was started"))?;
    match told.as_slice() {
        [] => Ok(child),
        [step, error, ..] => Err(SeparateError::Failed {
            what: match *step {
                step if step == Step::User as u8 => "becoming user 0 of a new namespace",
                step if step == Step::Death as u8 => "prctl",
                step if step == Step::Descriptors as u8 => "handing descriptors over",
                _ => "executing the program",
            },
            error: io::Error::from_raw_os_error(i32::from(*error)),
        }),
        [_] => {
            Err(SeparateError::failed("the process that was started")(io::ErrorKind::UnexpectedEof.into()))
        }
    }
}

/// What a new process needs, at numbers that are not those that it is to get.
struct Prepared {
    program: OwnedFd,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    descriptors: Vec<(OwnedFd, RawFd)>,
    go: OwnedFd,
    failure: OwnedFd,
}

impl Prepared {
    fn new(start: &SeparateStart<'_>, go: OwnedFd, failure: OwnedFd) -> Result<Self, SeparateError> {
        let nothing = File::options().read(true).write(true).open("/dev/null");
        let nothing = nothing.map_err(SeparateError::failed("/dev/null"))?;
        let mut all = vec![(start.error_output, libc::STDERR_FILENO)];
        all.extend_from_slice(start.descriptors);
        for number in [libc::STDIN_FILENO, libc::STDOUT_FILENO] {
            if all.iter().all(|&(_, taken)| taken != number) {
                all.push((nothing.as_fd(), number));
            }
        }
        let above = all.iter().map(|&(_, number)| number).max().unwrap_or(0) + 1;
        let copy = |descriptor: BorrowedFd<'_>| {
            fcntl_dupfd_cloexec(descriptor, above)
                .map_err(|error| SeparateError::failed("copying a descriptor")(error.into()))
        };
        let text = |bytes: &[u8]| {
            CString::new(bytes).map_err(|error| SeparateError::failed("an argument")(error.into()))
        };
        let outside = format!("{}={}", namespaces::OUTSIDE, namespaces::told()?);
        Ok(Self {
            program: copy(start.program)?,
            arguments: start
                .arguments
                .iter()
                .map(|argument| text(argument.as_bytes()))
                .collect::<Result<_, _>>()?,
            environment: vec![text(outside.as_bytes())?],
            descriptors: all
                .into_iter()
                .map(|(descriptor, number)| Ok((copy(descriptor)?, number)))
                .collect::<Result<_, SeparateError>>()?,
            go: copy(go.as_fd())?,
            failure: copy(failure.as_fd())?,
        })
    }
}

/// Has Linux end it before others where there is no memory left (proc_pid_oom_score_adj(5)), and after what
/// runs in containers, which has 1000.
fn end_first(number: i32) -> Result<(), Missing> {
    const SCORE: i32 = 800;
    let place = format!("/proc/{number}/oom_score_adj");
    let missing = |error: io::Error| Missing::new(Layer::Limits, format!("{place}: {error}"));
    let has = fs::read_to_string(&place).map_err(missing)?;
    // Only who has rights may make it lower.
    if has.trim().parse().is_ok_and(|has: i32| has >= SCORE) {
        return Ok(());
    }
    fs::write(&place, SCORE.to_string()).map_err(missing)
}

/// Says who user 0 and group 0 of a new namespace are outside.
fn name_user(number: i32, root: bool) -> Result<(), Missing> {
    let missing = |place: String| {
        move |error: io::Error| Missing::new(Layer::UserNamespace, format!("{place}: {error}"))
    };
    let (user, group) = if root {
        (NOBODY, NOBODY)
    } else {
        (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
    };
    let write = |file: &str, text: String| {
        let place = format!("/proc/{number}/{file}");
        fs::write(&place, text).map_err(missing(place))
    };
    if !root {
        // Who may not choose groups has to give up changing them (user_namespaces(7)).
        write("setgroups", "deny".to_owned())?;
    }
    write("gid_map", format!("0 {group} 1\n"))?;
    write("uid_map", format!("0 {user} 1\n"))
}

/// Finds out which namespace could not be had.
fn refused(wanted: &[(Layer, u64, &'static str)], error: io::Error) -> SeparateError {
    let layers: Vec<_> = wanted.iter().map(|(layer, ..)| *layer).collect();
    match super::probe::first_missing_namespace(&layers) {
        Some(missing) => missing.into(),
        None => SeparateError::Failed { what: "clone3", error },
    }
}

impl SeparateChild {
    /// Its number in the namespace of this process.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.number
    }

    /// Ends it at once.
    ///
    /// # Errors
    /// What Linux says. A process that has ended already is no error.
    pub fn kill(&self) -> io::Result<()> {
        match rustix::process::pidfd_send_signal(&self.process, Signal::KILL) {
            Err(rustix::io::Errno::SRCH) => Ok(()),
            result => Ok(result?),
        }
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// What Linux says.
    pub fn wait(&mut self) -> io::Result<ProcessEnd> {
        loop {
            if let Some(end) = self.look(WaitIdOptions::EXITED)? {
                return Ok(end);
            }
        }
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// What Linux says.
    pub fn try_wait(&mut self) -> io::Result<Option<ProcessEnd>> {
        self.look(WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
    }

    fn look(&mut self, options: WaitIdOptions) -> io::Result<Option<ProcessEnd>> {
        if self.end.is_none() {
            match waitid(WaitId::PidFd(self.process.as_fd()), options) {
                Err(rustix::io::Errno::INTR) => {}
                status => self.end = status?.as_ref().and_then(ended),
            }
        }
        Ok(self.end)
    }
}

fn ended(status: &WaitIdStatus) -> Option<ProcessEnd> {
    let exited = status.exit_status().map(ProcessEnd::Exited);
    exited.or_else(|| status.terminating_signal().map(ProcessEnd::Signalled))
}

/// Becomes readable when the process has ended.
impl AsFd for SeparateChild {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }
}

impl Drop for SeparateChild {
    fn drop(&mut self) {
        if self.end.is_none() && self.kill().is_ok() {
            let _ = self.wait();
        }
    }
}
