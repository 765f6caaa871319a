//! Signs the policies of a gateway of `lab availability`, and keeps them on a disk that can be filled.

use super::gateways::PROGRAM_FILE;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file that the gateway takes its policy from.
pub(super) const BUNDLE_FILE: &str = "policy.bundle";
const POLICY_FILE: &str = "policy.toml";
const KEY_FILE: &str = "key";
const FILLING: &str = "filling";
/// Where accepted policies are kept.
const KEPT: &str = "kept";

/// Who signs for one gateway; the disk that keeps its policies goes with this.
pub(super) struct Signing {
    binary: PathBuf,
    folder: PathBuf,
    public_key: String,
}

impl Signing {
    /// Makes a key, and a small disk.
    ///
    /// # Errors
    /// A command fails.
    pub(super) fn new(binary: &Path, folder: &Path) -> Result<Signing, String> {
        let kept = folder.join(KEPT);
        fs::create_dir_all(&kept).map_err(|error| error.to_string())?;
        let mut signing =
            Signing { binary: binary.to_owned(), folder: folder.to_owned(), public_key: String::new() };
        let mut mount = Command::new("mount");
        said(mount.args(["-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs"]).arg(&kept))?;
        let key = signing.bundle().arg("key").arg("new").arg(folder.join(KEY_FILE)).output();
        let key = key.map_err(|error| error.to_string())?;
        signing.public_key = String::from_utf8_lossy(&key.stdout).trim().to_owned();
        if key.status.success() { Ok(signing) } else { Err(String::from_utf8_lossy(&key.stderr).into()) }
    }

    fn bundle(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("bundle");
        command
    }

    /// The section of the gateway's file.
    pub(super) fn section(&self) -> String {
        format!(
            "[trust]\ngateway = \"lab\"\nthreshold = 1\nkeep_in = \"{KEPT}\"\n[trust.keys]\nlab = \"{}\"\n",
            self.public_key
        )
    }

    /// Signs the program again with this version, in the place of the file that the gateway reads.
    ///
    /// # Errors
    /// It cannot be signed.
    pub(super) fn sign(&self, version: u64) -> Result<(), String> {
        let text = format!(
            "gateway = \"lab\"\nversion = {version}\nnot_before = \"2020-01-01T00:00:00Z\"\n\
             expiry = \"2100-01-01T00:00:00Z\"\nprogram = \"{PROGRAM_FILE}\"\n"
        );
        let policy = self.folder.join(POLICY_FILE);
        fs::write(&policy, text).map_err(|error| error.to_string())?;
        let new = self.folder.join("new.bundle");
        let mut sign = self.bundle();
        sign.arg("sign").arg(policy).arg("--key").arg(self.folder.join(KEY_FILE)).arg("--out").arg(&new);
        said(&mut sign)?;
        fs::rename(new, self.folder.join(BUNDLE_FILE)).map_err(|error| error.to_string())
    }

    /// Fills the disk until this is dropped.
    ///
    /// # Errors
    /// It does not become full.
    pub(super) fn fill(&self) -> Result<Filled, String> {
        let filled = Filled(self.folder.join(KEPT).join(FILLING));
        let mut file = File::create(&filled.0).map_err(|error| error.to_string())?;
        // More than the disk has.
        let filling = file.write_all(&vec![0; 64 << 20]);
        if filling.is_err() { Ok(filled) } else { Err("the disk does not become full".to_owned()) }
    }
}

impl Drop for Signing {
    fn drop(&mut self) {
        // The gateway has ended; the disk is in memory, and nobody needs it any more.
        let _ = Command::new("umount").arg("--lazy").arg(self.folder.join(KEPT)).status();
    }
}

/// A disk that is full.
pub(super) struct Filled(PathBuf);

impl Drop for Filled {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Runs a command to its end.
fn said(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
