//! What a process does to itself: first its place and its rights, then, once its threads are there, its
//! calls.

use super::{empty_root, filter, folder_root, limits, namespaces, rights, sys};
use crate::{Layer, Locked, Missing, Role};
use landlock::PathFd;
use rustix::fs::Stat;
use std::path::Path;
use std::{env, fs};

/// A process that has its place and no rights, and may still make its threads.
#[derive(Debug)]
pub struct Entered {
    role: Role,
    without: Vec<Layer>,
}

/// Confines this process, which has a single thread and was started by [`separate`](super::separate()), as
/// far as threads and their memory still can be made: an empty root, no capabilities, Landlock, and the rest
/// but limits and system calls.
///
/// The calls of the C library that look into files (names of hosts and users, time zones, character sets, the
/// number of processors) fail from here on. What they are to find has to be asked before.
///
/// # Errors
/// A layer of the role cannot be had and is not in `without`. What was applied until then stays: the
/// process should end.
pub fn enter(role: Role, without: &[Layer]) -> Result<Entered, Missing> {
    enter_with(role, None, without)
}

/// The same as [`Role::Compile`], which may read what is in a folder and below it: that is the root then, and
/// the working directory. Where the layer is left out that gives it this root, it is the working directory.
///
/// # Errors
/// As with [`enter`]; or it is no folder that this process can reach.
pub fn enter_to_read(folder: &Path, without: &[Layer]) -> Result<Entered, Missing> {
    enter_with(Role::Compile, Some(folder), without)
}

fn enter_with(role: Role, folder: Option<&Path>, without: &[Layer]) -> Result<Entered, Missing> {
    let wanted = |layer| role.layers().any(|has| has == layer) && !without.contains(&layer);
    single_thread()?;
    let outside = env::var(namespaces::OUTSIDE).ok();
    for layer in role.layers().filter(|&layer| wanted(layer)) {
        namespaces::is_own(layer, outside.as_deref())?;
    }
    // A program that is executed by a descriptor would be listed under the number of this.
    let _ = rustix::thread::set_name(role.title());
    sys::fix_allocators();
    if wanted(Layer::UserNamespace) {
        namespaces::no_further_users()?;
    }
    let folder = folder.map(Folder::open).transpose()?;
    if wanted(Layer::MountNamespace) {
        match &folder {
            Some(folder) => folder_root::put(folder.path)?,
            None => empty_root::put()?,
        }
    } else if let Some(folder) = &folder {
        rustix::process::chdir(folder.path).map_err(|error| folder.missing(error))?;
    }
    if wanted(Layer::NoNewPrivileges) {
        rights::no_new_privileges()?;
    }
    if wanted(Layer::Capabilities) {
        // Where no namespace makes its user nobody, the process makes it so itself.
        let root = !wanted(Layer::UserNamespace) && rustix::process::geteuid().is_root();
        rights::no_capabilities(root)?;
    }
    let about = folder.as_ref().map(|folder| folder.about);
    if wanted(Layer::Landlock) {
        rights::landlock(folder.map(|folder| folder.handle))?;
    }
    if wanted(Layer::NonDumpable) {
        rights::not_dumpable()?;
    }
    if wanted(Layer::MountNamespace) {
        match about {
            Some(about) => folder_root::check(&about)?,
            None => empty_root::check()?,
        }
    }
    Ok(Entered { role, without: without.to_vec() })
}

/// A folder that may be read.
struct Folder<'a> {
    path: &'a Path,
    /// It, whatever becomes of the path.
    handle: PathFd,
    about: Stat,
}

impl Folder<'_> {
    fn open(path: &Path) -> Result<Folder<'_>, Missing> {
        let missing = |why: String| {
            let why = format!("{}: {why}; nobody (65534) has to be able to reach it", path.display());
            Missing::new(Layer::Landlock, why)
        };
        let handle = PathFd::new(path).map_err(|error| missing(error.to_string()))?;
        let about = rustix::fs::fstat(&handle).map_err(|error| missing(error.to_string()))?;
        Ok(Folder { path, handle, about })
    }

    fn missing(&self, why: rustix::io::Errno) -> Missing {
        Missing::new(Layer::Landlock, format!("{}: {why}", self.path.display()))
    }
}

/// Fails if there are other threads: rights are given up thread by thread, and they would keep theirs.
fn single_thread() -> Result<(), Missing> {
    let missing = |why: String| Missing::new(Layer::Capabilities, why);
    let threads =
        fs::read_dir("/proc/self/task").map_err(|error| missing(format!("/proc/self/task: {error}")))?;
    match threads.count() {
        1 => Ok(()),
        count => Err(missing(format!("the process has {count} threads already, which would keep theirs"))),
    }
}

impl Entered {
    /// Keeps this process, which has a single thread, to the calls that it still needs until it
    /// [locks](Entered::lock) itself: those that its role may make then, and those by which it makes threads
    /// and memory that can be executed. For a core that has machine code made from what others wrote.
    ///
    /// # Errors
    /// As with [`enter`].
    pub fn keep_to_own_work(&self) -> Result<(), Missing> {
        if self.without.contains(&Layer::Seccomp) {
            return Ok(());
        }
        filter::prepare(self.role)
    }

    /// Ends what [`enter`] began, for all threads that there are: limits, and the list of system calls.
    ///
    /// Threads that still have to set something up should have done so. From here on a call that is not in
    /// [`Role::calls`] ends the process by SIGSYS, after a line on the error output with the number of the
    /// call.
    ///
    /// # Errors
    /// As with [`enter`].
    pub fn lock(self) -> Result<Locked, Missing> {
        let wanted = |layer: &Layer| !self.without.contains(layer);
        if self.role.most_threads() > 0 {
            // With its first thread the C library makes calls that it makes once.
            let _ = std::thread::spawn(|| {}).join();
        }
        if wanted(&Layer::Limits) {
            limits::check_error_output()?;
            limits::apply(self.role)?;
        }
        if wanted(&Layer::Seccomp) {
            filter::apply(self.role)?;
        }
        Ok(Locked::with(self.role.layers().filter(wanted).collect()))
    }
}

/// Confines this process at once: [`enter`] and [`Entered::lock`].
///
/// # Errors
/// As with both.
pub fn lock(role: Role, without: &[Layer]) -> Result<Locked, Missing> {
    enter(role, without)?.lock()
}
