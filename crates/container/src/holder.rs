//! Makes the namespaces of a container: by a process that is in them until they are kept by files.

use crate::groups::{Bound, ControlGroup};
use crate::limits::{MOST_PROCESSES, limit, most_memory, share};
use crate::namespaces::{FIRST_USER, Namespaces, USERS, forget};
use crate::{ContainerError, failed, sys};
use rustix::process::{Gid, Resource, Uid};
use rustix::thread::{self, CapabilitySet, CapabilitySets, UnshareFlags};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The argument by which this program becomes the process that is in new namespaces: [`hold`] is all that it
/// may do then.
pub const HOLD: &str = "hold-namespaces";

/// Namespaces that are kept until this is dropped.
#[derive(Debug)]
pub struct Holder {
    folder: PathBuf,
    name: String,
    /// The namespaces.
    pub namespaces: Namespaces,
    groups: Vec<ControlGroup>,
}

impl Holder {
    /// Makes namespaces and keeps them by files `NAME.userns` and `NAME.netns` of the folder; `number` says
    /// which users outside they have, so that two containers have none in common; a `monitor` of a virtual
    /// machine may be inside. `says` is told why memory or time have no limit, where that is so.
    ///
    /// # Errors
    /// They cannot be made: this process is not root, or Linux has no user namespaces.
    pub fn start(
        folder: &Path,
        name: &str,
        number: u16,
        monitor: bool,
        says: impl Fn(&ContainerError),
    ) -> Result<Holder, ContainerError> {
        let what = "a process in a user and a network namespace of its own";
        let mut command = Command::new("/proc/self/exe");
        let first = FIRST_USER + u32::from(number) * USERS;
        command.arg(HOLD).arg(first.to_string()).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Held(command.spawn().map_err(failed(what))?);
        let (told, process) = (child.0.stdout.take(), child.0.id());
        let mut byte = [0];
        told.ok_or(io::ErrorKind::BrokenPipe)
            .map_err(io::Error::from)
            .and_then(|mut told| told.read_exact(&mut byte))
            .map_err(failed(format!("{what}: it ended before it was in them")))?;
        for map in ["gid_map", "uid_map"] {
            let path = format!("/proc/{process}/{map}");
            fs::write(&path, format!("0 {first} {USERS}\n")).map_err(failed(path))?;
        }
        let bounds = [Bound::Memory(most_memory(monitor)), Bound::Time(share(monitor))].into_iter();
        let made = |bound| ControlGroup::new(name, bound).inspect_err(&says).ok();
        let groups: Vec<_> = bounds.filter_map(made).collect();
        let namespaces = Namespaces::keep(folder, name, process, first, &groups)?;
        Ok(Holder { folder: folder.to_owned(), name: name.to_owned(), namespaces, groups })
    }

    /// Has a process outside, which works for the container, take its part of the container's memory and
    /// time, where there are limits for them.
    ///
    /// # Errors
    /// It has ended, or Linux refuses.
    pub fn bound(&self, process: u32) -> Result<(), ContainerError> {
        self.groups.iter().try_for_each(|group| group.take(process.into()))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        forget(&self.folder, &self.name);
    }
}

/// The process that is in the namespaces: it ends with this.
struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        // Its input ends, and so does it.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// What the process does: it goes into new namespaces, says so, and ends with its input. `first` is the user
/// outside that is root inside.
///
/// Linux bounds the processes of a user namespace by the limit of whoever makes it, unless that is root, and
/// counts them for that user. So this process becomes a user whom nobody else is.
///
/// # Errors
/// What Linux says, or `first` is no user.
pub fn hold(first: Option<&OsStr>) -> Result<(), ContainerError> {
    let first = first.and_then(OsStr::to_str).and_then(|first| first.parse().ok());
    let first = first.ok_or(io::ErrorKind::InvalidInput).map_err(io::Error::from);
    let first: u32 = first.map_err(failed("the first user"))?;
    limit(Resource::Nproc, MOST_PROCESSES)?;
    let what = || failed("becoming the first user");
    thread::set_keep_capabilities(true).map_err(what())?;
    thread::set_thread_groups(&[]).map_err(what())?;
    let group = Gid::from_raw(first);
    thread::set_thread_res_gid(group, group, group).map_err(what())?;
    let user = Uid::from_raw(first);
    thread::set_thread_res_uid(user, user, user).map_err(what())?;
    // Where users may make no namespaces.
    let right = CapabilitySet::SYS_ADMIN;
    let sets = CapabilitySets { effective: right, permitted: right, inheritable: CapabilitySet::empty() };
    thread::set_capabilities(None, sets).map_err(what())?;
    sys::leave(UnshareFlags::NEWUSER | UnshareFlags::NEWNET).map_err(failed("leaving"))?;
    wait().map_err(failed("its input"))
}

fn wait() -> io::Result<()> {
    io::stdout().write_all(b"+")?;
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new()).map(|_| ())
}
