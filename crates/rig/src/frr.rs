//! The daemons of FRR, unmodified, in a namespace: each from wherever its package was installed or unpacked.

use crate::namespace::Namespace;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where packages have these daemons, relative to where they were unpacked.
const PLACE: &str = "usr/lib/frr";

/// A daemon of FRR, if it is there: found where programs are looked for, or where its package puts it.
pub fn frr_daemon(name: &str) -> Option<PathBuf> {
    let listed = env::var_os("PATH").unwrap_or_default();
    let places = env::split_paths(&listed).chain([Path::new("/").join(PLACE)]);
    places.map(|place| place.join(name)).find(|path| path.is_file())
}

/// The folder with the library of this daemon: it lies beside it, wherever the package was unpacked.
pub fn frr_libraries(daemon: &Path) -> PathBuf {
    let root = daemon.parent().filter(|folder| folder.ends_with(PLACE));
    let root = root.and_then(|folder| folder.ancestors().nth(3)).unwrap_or(Path::new("/"));
    root.join("usr/lib/x86_64-linux-gnu/frr")
}

/// The socket by which the other daemons of this folder reach zebra; it is there when they can.
pub fn zebra_socket(folder: &Path) -> PathBuf {
    folder.join("zserv.api")
}

/// The command that runs a daemon in the foreground, with this configuration and a folder for its files and
/// its log, which the daemons of one host share.
///
/// # Errors
/// It is not there, or the folder cannot be written.
pub fn frr_command(
    namespace: &Namespace,
    folder: &Path,
    daemon: &str,
    configuration: &str,
) -> io::Result<Command> {
    let binary = frr_daemon(daemon)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{daemon} is not installed")))?;
    fs::create_dir_all(folder)?;
    let at = |name: &str| folder.join(name).display().to_string();
    fs::write(at(daemon), configuration)?;
    // It demands a group that the package's scripts would have made.
    let groups = fs::read_to_string("/etc/group")?;
    fs::write(at("group"), format!("{groups}\nfrrvty:x:64999:root\n"))?;
    let libraries = frr_libraries(&binary).display().to_string();
    let run = format!(
        "mount --bind {} /etc/group && exec {} -u root -g root --vty_socket {} -z {} -i {} -f {} -P 0 --log file:{} --moduledir {libraries}/modules",
        at("group"),
        binary.display(),
        folder.display(),
        zebra_socket(folder).display(),
        at(&format!("{daemon}.pid")),
        at(daemon),
        at(&format!("{daemon}.log")),
    );
    let mut command = namespace.command("unshare", None);
    command.args(["--mount", "sh", "-c", &run]).env("LD_LIBRARY_PATH", libraries);
    Ok(command)
}
