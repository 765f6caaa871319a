//! The namespaces of a container, kept by two files of a folder, with a third that says its users: as long as
//! the two are mounted there, the namespaces are there, whether a process is in them or not.

use crate::groups::ControlGroup;
use crate::{ContainerError, failed};
use rustix::mount::{UnmountFlags, mount_bind, unmount};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;

/// The user outside that root of the first container is. Systemd's list of user numbers leaves these unused.
pub const FIRST_USER: u32 = 1_879_048_192;
/// The ending of the file that says where the container's control groups are, if it has any.
pub(crate) const GROUPS: &str = "groups";
/// How many users a container has.
pub const USERS: u32 = 65_536;

/// The namespaces of a container.
#[derive(Debug)]
pub struct Namespaces {
    /// Its network.
    pub network: File,
    /// The file of its users.
    pub user_path: PathBuf,
    /// The user outside that is root of it.
    pub first_user: u32,
}

fn paths(folder: &Path, name: &str) -> [(PathBuf, &'static str); 2] {
    [("userns", "user"), ("netns", "net")]
        .map(|(ending, file)| (folder.join(format!("{name}.{ending}")), file))
}

/// The socket at which the monitor of a virtual machine comes to the gateway, where the container's link is
/// one by vhost-user.
pub fn monitor_socket(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.vhost"))
}

/// The file that says which users outside are those of the container: the first, and how many.
fn users_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.users"))
}

impl Namespaces {
    /// Those of the container of this name.
    ///
    /// # Errors
    /// There are none.
    pub fn open(folder: &Path, name: &str) -> Result<Namespaces, ContainerError> {
        let [(user_path, _), (network, _)] = paths(folder, name);
        let network = File::open(&network).map_err(failed(network.display().to_string()))?;
        let users = users_path(folder, name);
        let what = || failed(users.display().to_string());
        let text = fs::read_to_string(&users).map_err(what())?;
        let first_user = text.split_whitespace().next().and_then(|word| word.parse().ok());
        let first_user =
            first_user.ok_or(io::ErrorKind::InvalidData).map_err(io::Error::from).map_err(what())?;
        Ok(Namespaces { network, user_path, first_user })
    }

    /// Runs something on a thread in the network of the container; descriptors that it opens belong to this
    /// network wherever they are used.
    ///
    /// # Errors
    /// Linux refuses to enter, or gives no thread.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, ContainerError> {
        let enter = || {
            move_into_link_name_space(self.network.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(failed("entering the container's network"))?;
            Ok(work())
        };
        thread::scope(|scope| {
            let enters = thread::Builder::new().name("inside".to_owned()).spawn_scoped(scope, enter);
            let enters = enters.map_err(failed("a thread for the container's network"))?;
            enters.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// The names of the containers of a folder.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn names(folder: &Path) -> Result<Vec<String>, ContainerError> {
        let what = || failed(folder.display().to_string());
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(what())? {
            let name = entry.map_err(what())?.file_name();
            names.extend(name.to_str().and_then(|name| name.strip_suffix(".netns")).map(str::to_owned));
        }
        names.sort();
        Ok(names)
    }

    /// Keeps the namespaces of a process under a name, in place of others that have it.
    ///
    /// # Errors
    /// The files cannot be made.
    pub(crate) fn keep(
        folder: &Path,
        name: &str,
        process: u32,
        first_user: u32,
        groups: &[ControlGroup],
    ) -> Result<Namespaces, ContainerError> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o755);
        builder.create(folder).map_err(failed(folder.display().to_string()))?;
        forget(folder, name);
        // Whoever finds the namespaces finds these.
        keep_groups(folder, name, groups)?;
        let make = |path: &Path| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600).open(path)
        };
        let users = users_path(folder, name);
        make(&users)
            .and_then(|mut file| writeln!(file, "{first_user} {USERS}"))
            .map_err(failed(users.display().to_string()))?;
        for (path, file) in paths(folder, name) {
            let what = path.display().to_string();
            make(&path).map_err(failed(&*what))?;
            mount_bind(format!("/proc/{process}/ns/{file}"), &path).map_err(failed(what))?;
        }
        Namespaces::open(folder, name)
    }
}

/// Says where the control groups of a container are.
fn keep_groups(folder: &Path, name: &str, groups: &[ControlGroup]) -> Result<(), ContainerError> {
    let path = folder.join(format!("{name}.{GROUPS}"));
    let lines: String = groups.iter().map(|group| format!("{}\n", group.path().display())).collect();
    fs::write(&path, lines).map_err(failed(path.display().to_string()))
}

/// Lets go of what is kept under a name; whoever is in those namespaces stays there.
pub(crate) fn forget(folder: &Path, name: &str) {
    for (path, _) in paths(folder, name) {
        // There may be none, or a file that nothing is mounted on.
        let _ = unmount(&path, UnmountFlags::DETACH);
        let _ = fs::remove_file(&path);
    }
    let _ = fs::remove_file(users_path(folder, name));
    let _ = fs::remove_file(monitor_socket(folder, name));
    let _ = fs::remove_file(folder.join(format!("{name}.{GROUPS}")));
}
