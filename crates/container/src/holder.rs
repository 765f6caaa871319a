//! Makes the namespaces of a container: by a process that is in them until they are kept by files.

use crate::namespaces::{FIRST_USER, Namespaces, USERS, forget};
use crate::{ContainerError, failed, sys};
use rustix::thread::UnshareFlags;
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
}

impl Holder {
    /// Makes namespaces and keeps them by files `NAME.userns` and `NAME.netns` of the folder; `number` says
    /// which users outside they have, so that two containers have none in common.
    ///
    /// # Errors
    /// They cannot be made: this process is not root, or Linux has no user namespaces.
    pub fn start(folder: &Path, name: &str, number: u16) -> Result<Holder, ContainerError> {
        let what = "a process in a user and a network namespace of its own";
        let mut command = Command::new("/proc/self/exe");
        command.arg(HOLD).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Held(command.spawn().map_err(failed(what))?);
        let (told, process) = (child.0.stdout.take(), child.0.id());
        let mut byte = [0];
        told.ok_or(io::ErrorKind::BrokenPipe)
            .map_err(io::Error::from)
            .and_then(|mut told| told.read_exact(&mut byte))
            .map_err(failed(format!("{what}: it ended before it was in them")))?;
        let first = FIRST_USER + u32::from(number) * USERS;
        for map in ["gid_map", "uid_map"] {
            let path = format!("/proc/{process}/{map}");
            fs::write(&path, format!("0 {first} {USERS}\n")).map_err(failed(path))?;
        }
        let namespaces = Namespaces::keep(folder, name, process, first)?;
        Ok(Holder { folder: folder.to_owned(), name: name.to_owned(), namespaces })
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

/// What the process does: it goes into new namespaces, says so, and ends with its input.
///
/// # Errors
/// What Linux says.
pub fn hold() -> io::Result<()> {
    sys::leave(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?;
    io::stdout().write_all(b"+")?;
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new()).map(|_| ())
}
