//! Starts the program that confines itself and then does something forbidden, and says what came of it.

use confinement::{Layer, ProcessEnd, Role, SeparateChild, SeparateStart, separate};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_forbidden");

/// What came of a process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) output: String,
    pub(crate) errors: String,
    pub(crate) end: ProcessEnd,
}

impl Told {
    /// Whether an action was done, or would have been.
    pub(crate) fn possible(&self) -> bool {
        self.output == "ready\ndone\n" || self.output.starts_with("ready\nreached ")
    }

    /// Whether the process was ended before its action, by the filter of system calls.
    pub(crate) fn killed(&self) -> bool {
        self.output == "ready\n" && self.end == ProcessEnd::REFUSED
    }
}

/// Whether the tests can run here. Where the checks have to be complete, they fail if not.
pub(crate) fn can_run(test: &str) -> bool {
    let why = (!rustix::process::geteuid().is_root()).then_some("only root can start them".to_owned());
    let why = why.or_else(|| {
        let lacking =
            confinement::probe().into_iter().find_map(|(layer, result)| Some((layer, result.err()?)));
        lacking.map(|(layer, why)| format!("{layer}: {why}"))
    });
    let Some(why) = why else { return true };
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{test}: no confined processes: {why}");
    eprintln!("{test} was not run: no confined processes here: {why}");
    false
}

/// The message queue that an action opens. There is one at a time.
pub(crate) struct Queue {
    number: String,
    _only: MutexGuard<'static, ()>,
}

static ONE_QUEUE: Mutex<()> = Mutex::new(());

impl Queue {
    pub(crate) fn new() -> Self {
        let only = ONE_QUEUE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let made = Command::new(PROGRAM).arg("queue").output().unwrap();
        Self { number: String::from_utf8(made.stdout).unwrap().trim().to_owned(), _only: only }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let _ = Command::new(PROGRAM).args(["no-queue", &self.number]).status();
    }
}

/// The names of all actions, with the numbers of their calls; none for one that comes by other numbers.
pub(crate) fn actions() -> Vec<(String, Option<i64>)> {
    let listed = Command::new(PROGRAM).arg("list").output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let actions = listed.lines().map(|line| {
        let (name, number) = line.split_once(' ').unwrap();
        (name.to_owned(), Some(number.parse().unwrap()))
    });
    let mut actions: Vec<_> = actions.collect();
    if cfg!(target_arch = "x86_64") {
        actions.push(("32-bit-call".to_owned(), None));
    }
    actions
}

/// Does an action without any confinement.
pub(crate) fn plain(outsider: u32, action: &str) -> Told {
    let done = Command::new(PROGRAM).args(["plain", "", &outsider.to_string(), action]).output().unwrap();
    Told {
        output: String::from_utf8(done.stdout).unwrap(),
        errors: String::from_utf8(done.stderr).unwrap(),
        end: done.status.code().map_or(ProcessEnd::Signalled(0), ProcessEnd::Exited),
    }
}

/// Does an action in a process that has all layers of a core but these.
pub(crate) fn confined(without: &[Layer], outsider: u32, action: &str) -> Told {
    let names = without.iter().map(|layer| layer.name()).collect::<Vec<_>>().join(",");
    start(&["core", &names, &outsider.to_string(), action], without, &[])
}

/// Does an action in a process of a role that has all its layers.
pub(crate) fn locked(role: Role, action: &str) -> Told {
    Running::begin(role, &[role.name(), "", "1", action], &[], &[]).finish()
}

/// Starts the program apart, with some descriptors, and waits for its end.
pub(crate) fn start(arguments: &[&str], without: &[Layer], descriptors: &[(BorrowedFd<'_>, RawFd)]) -> Told {
    Running::begin(Role::Core, arguments, without, descriptors).finish()
}

/// A program that runs apart.
pub(crate) struct Running {
    pub(crate) child: SeparateChild,
    output: io::PipeReader,
    errors: io::PipeReader,
}

impl Running {
    /// Starts it.
    pub(crate) fn begin(
        role: Role,
        arguments: &[&str],
        without: &[Layer],
        descriptors: &[(BorrowedFd<'_>, RawFd)],
    ) -> Self {
        let program = File::open(PROGRAM).unwrap();
        let arguments: Vec<OsString> = ["forbidden"].iter().chain(arguments).map(OsString::from).collect();
        let ((output, output_away), (errors, errors_away)) = (io::pipe().unwrap(), io::pipe().unwrap());
        let mut descriptors = descriptors.to_vec();
        descriptors.push((output_away.as_fd(), 1));
        let start = SeparateStart {
            program: program.as_fd(),
            arguments: &arguments,
            error_output: errors_away.as_fd(),
            descriptors: &descriptors,
        };
        Self { child: separate(&start, role, without).unwrap(), output, errors }
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Told {
        let (mut output, mut errors) = (String::new(), String::new());
        self.output.read_to_string(&mut output).unwrap();
        self.errors.read_to_string(&mut errors).unwrap();
        Told { output, errors, end: self.child.wait().unwrap() }
    }
}
