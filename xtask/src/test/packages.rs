//! Debian packages that tests use: installed where that is allowed, named where it is not.

use super::{Context, Outcome, execute};
use std::path::Path;
use std::process::Command;

/// A package and the program, or the file with its whole path, by which one sees that it is there.
const PACKAGES: [(&str, &str); 19] = [
    ("tshark", "tshark"),
    ("nftables", "nft"),
    ("iproute2", "ip"),
    ("iputils-ping", "ping"),
    ("iperf3", "iperf3"),
    ("ethtool", "ethtool"),
    ("tcpdump", "tcpdump"),
    ("curl", "curl"),
    ("nginx-light", "nginx"),
    ("dnsmasq-base", "dnsmasq"),
    ("bind9-dnsutils", "dig"),
    ("openssh-server", "sshd"),
    ("openssh-client", "ssh"),
    ("traceroute", "traceroute"),
    ("python3-minimal", "python3"),
    ("ocl-icd-libopencl1", "/usr/lib/x86_64-linux-gnu/libOpenCL.so.1"),
    ("pocl-opencl-icd", "/etc/OpenCL/vendors/pocl.icd"),
    ("oclgrind", "/usr/lib/oclgrind/liboclgrind-rt-icd.so"),
    ("clang", "clang"),
];

/// Installs what is missing when this runs as root on a machine with apt-get.
pub(super) fn install(_: &Context) -> anyhow::Result<Outcome> {
    let missing: Vec<&str> =
        PACKAGES.iter().filter(|(_, program)| !is_there(program)).map(|(package, _)| *package).collect();
    if missing.is_empty() {
        return Ok(Outcome::Passed);
    }
    if !on_path("apt-get") || !is_root() {
        let names = missing.join(" ");
        return Ok(Outcome::Skipped(format!("not installed: {names} (as root: apt-get install {names})")));
    }
    execute(Command::new("apt-get").arg("update"))?;
    execute(
        Command::new("apt-get")
            .args(["install", "-y", "--no-install-recommends"])
            .args(missing)
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}

fn is_there(program: &str) -> bool {
    if program.starts_with('/') { Path::new(program).exists() } else { on_path(program) }
}

fn on_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

/// True for user 0: the owner of this process' folder under `/proc`.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    Path::new("/proc/self").metadata().is_ok_and(|folder| folder.uid() == 0)
}
