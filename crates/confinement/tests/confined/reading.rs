//! What whoever compiles can read: the files of one folder, and what is below it.

use crate::process::{Running, Told, can_run};
use confinement::{Layer, Role};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A folder with a file, one below it, and links that lead out; and a file beside the folder.
fn folders() -> (tempfile::TempDir, PathBuf) {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("folder");
    fs::create_dir_all(folder.join("below")).unwrap();
    for place in [outer.path(), &folder, &folder.join("below")] {
        fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(outer.path().join("secret"), "secret").unwrap();
    fs::write(folder.join("file"), "file").unwrap();
    fs::write(folder.join("below/file"), "below").unwrap();
    fs::write(folder.join("closed"), "closed").unwrap();
    fs::set_permissions(folder.join("closed"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("../secret", folder.join("climbs")).unwrap();
    symlink(outer.path().join("secret"), folder.join("leads-out")).unwrap();
    symlink("below/file", folder.join("leads-down")).unwrap();
    (outer, folder)
}

fn tried(what: &str, folder: &Path, without: &[Layer], path: &str) -> Told {
    let names = without.iter().map(|layer| layer.name()).collect::<Vec<_>>().join(",");
    let folder = folder.to_str().unwrap();
    Running::begin(Role::Compile, &[what, folder, &names, path], without, &[]).finish()
}

#[test]
fn whoever_compiles_reads_its_folder_and_nothing_else_and_changes_nothing() {
    if !can_run("whoever_compiles_reads_its_folder_and_nothing_else_and_changes_nothing") {
        return;
    }
    let (outer, folder) = folders();
    let read = |path: &str| {
        let told = tried("read", &folder, &[], path);
        told.output.strip_prefix("ready\n").unwrap_or_else(|| panic!("{path}: {told:?}")).to_owned()
    };
    for (path, text) in
        [("file", "file"), ("below/file", "below"), ("leads-down", "below"), ("/file", "file")]
    {
        assert_eq!(read(path), format!("read {text}\n"), "{path}");
    }
    let secret = outer.path().join("secret");
    let missing = format!("failed {}\n", libc::ENOENT);
    for path in
        ["../secret", "climbs", "leads-out", secret.to_str().unwrap(), "/etc/passwd", "/proc/self/maps"]
    {
        assert_eq!(read(path), missing, "{path}");
    }
    assert_eq!(read("closed"), format!("failed {}\n", libc::EACCES), "it is nobody");
    for path in ["file", "new"] {
        let told = tried("write", &folder, &[], path);
        assert!(told.killed(), "{path}: {told:?}");
    }
}

#[test]
fn each_layer_alone_keeps_files_of_others_from_whoever_compiles() {
    if !can_run("each_layer_alone_keeps_files_of_others_from_whoever_compiles") {
        return;
    }
    let (outer, folder) = folders();
    let secret = outer.path().join("secret");
    let secret = secret.to_str().unwrap();
    let read = |without: &[Layer], path: &str| tried("read", &folder, without, path).output;
    let by_landlock = read(&[Layer::MountNamespace], secret);
    assert_eq!(by_landlock, format!("ready\nfailed {}\n", libc::EACCES));
    assert_eq!(read(&[Layer::MountNamespace], "below/file"), "ready\nread below\n");
    let by_root = read(&[Layer::Landlock], secret);
    assert_eq!(by_root, format!("ready\nfailed {}\n", libc::ENOENT));
    assert_eq!(read(&[Layer::MountNamespace, Layer::Landlock], secret), "ready\nread secret\n");
    // A file that everybody may write is not written, by the root or by Landlock.
    fs::set_permissions(folder.join("file"), fs::Permissions::from_mode(0o666)).unwrap();
    let others = [Layer::Seccomp, Layer::Limits];
    let write = |more: &[Layer]| tried("write", &folder, &[&others[..], more].concat(), "file").output;
    assert_eq!(write(&[Layer::MountNamespace]), format!("ready\nfailed {}\n", libc::EACCES));
    assert_eq!(write(&[Layer::Landlock]), format!("ready\nfailed {}\n", libc::EROFS));
    assert_eq!(write(&[Layer::MountNamespace, Layer::Landlock]), "ready\ndone\n");
}

#[test]
fn a_folder_that_nobody_can_reach_is_named() {
    if !can_run("a_folder_that_nobody_can_reach_is_named") {
        return;
    }
    let (outer, folder) = folders();
    fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let told = tried("read", &folder, &[], "file");
    assert!(told.output.is_empty() && told.errors.contains(folder.to_str().unwrap()), "{told:?}");
    assert!(told.errors.contains("nobody (65534) has to be able to reach it"), "{told:?}");
}
