//! Debian packages that tests use: installed or unpacked where that is allowed, named where it is not. No
//! service is started or enabled.

use super::{Context, Outcome, execute};
use anyhow::{Context as _, ensure};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package and the program, or the file with its whole path, by which one sees that it is there.
struct Package {
    name: &'static str,
    file: &'static str,
}

const fn package(name: &'static str, file: &'static str) -> Package {
    Package { name, file }
}

/// Packages that hold programs and libraries. None of them starts or enables a service.
const INSTALLED: &[Package] = &[
    package("tshark", "tshark"),
    package("nftables", "nft"),
    package("iptables", "iptables-legacy-restore"),
    package("iproute2", "ip"),
    package("iputils-ping", "ping"),
    package("iperf3", "iperf3"),
    package("ethtool", "ethtool"),
    package("tcpdump", "tcpdump"),
    package("curl", "curl"),
    package("dnsmasq-base", "dnsmasq"),
    package("bind9-dnsutils", "dig"),
    package("isc-dhcp-client", "dhclient"),
    package("libyang2", "/usr/lib/x86_64-linux-gnu/libyang.so.2"),
    package("libjson-c5", "/usr/lib/x86_64-linux-gnu/libjson-c.so.5"),
    package("libc-ares2", "/usr/lib/x86_64-linux-gnu/libcares.so.2"),
    package("openssh-client", "ssh"),
    package("openssl", "openssl"),
    package("z3", "z3"),
    package("libnl-genl-3-200", "/usr/lib/x86_64-linux-gnu/libnl-genl-3.so.200"),
    package("libsnmp40", "/usr/lib/x86_64-linux-gnu/libnetsnmp.so.40"),
    package("libevent-2.1-7", "/usr/lib/x86_64-linux-gnu/libevent-2.1.so.7"),
    package("libxml2", "/usr/lib/x86_64-linux-gnu/libxml2.so.2"),
    package("libwrap0", "/usr/lib/x86_64-linux-gnu/libwrap.so.0"),
    package("libpython3.11", "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0"),
    package("libprotobuf-c1", "/usr/lib/x86_64-linux-gnu/libprotobuf-c.so.1"),
    package("libfstrm0", "/usr/lib/x86_64-linux-gnu/libfstrm.so.0"),
    package("libboost-context1.74.0", "/usr/lib/x86_64-linux-gnu/libboost_context.so.1.74.0"),
    package("libluajit-5.1-2", "/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"),
    package("libsodium23", "/usr/lib/x86_64-linux-gnu/libsodium.so.23"),
    package("traceroute", "traceroute"),
    package("mtr-tiny", "mtr"),
    package("hping3", "hping3"),
    package("libfaketime", "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"),
    package("wireguard-go", "wireguard-go"),
    package("wireguard-tools", "wg"),
    package("mosh", "mosh-server"),
    package("ngtcp2-client", "gtlsclient"),
    package("python3-minimal", "python3"),
    package("python3-scapy", "scapy3"),
    package("ocl-icd-libopencl1", "/usr/lib/x86_64-linux-gnu/libOpenCL.so.1"),
    package("pocl-opencl-icd", "/etc/OpenCL/vendors/pocl.icd"),
    package("oclgrind", "/usr/lib/oclgrind/liboclgrind-rt-icd.so"),
    package("qemu-system-x86", "qemu-system-x86_64"),
    package("busybox-static", "/bin/busybox"),
    package("runc", "runc"),
    package("clang", "clang"),
    package("g++", "c++"),
];

/// Packages whose installation would enable a server. Their files are unpacked into the target folder
/// instead, and their scripts do not run.
const UNPACKED: &[Package] = &[
    package("nginx", "nginx"),
    package("openssh-server", "sshd"),
    package("radvd", "radvd"),
    package("frr", "zebra"),
    package("keepalived", "keepalived"),
    package("lldpd", "lldpd"),
    package("unbound", "unbound"),
    package("bind9", "named"),
    package("pdns-recursor", "pdns_recursor"),
    package("vsftpd", "vsftpd"),
    package("nsd", "nsd"),
    package("ngtcp2-server", "gtlsserver"),
];

/// The package without a version, and without files, that leads to the Linux of virtual machines. That is
/// unpacked too: installed, it would be what this machine starts from.
const GUEST_KERNEL: &str = "linux-image-cloud-amd64";

/// Where the programs of unpacked packages lie.
const PROGRAMS: &[&str] = &["usr/sbin", "usr/lib/frr"];

/// Installs and unpacks what is missing. Installing needs root and apt-get; on a terminal the user is asked
/// first.
pub(super) fn install(context: &Context) -> anyhow::Result<Outcome> {
    let missing = missing(INSTALLED);
    let mut servers = missing_servers(context);
    if !has_guest_kernel(context) {
        servers.push(GUEST_KERNEL);
    }
    if missing.is_empty() && servers.is_empty() {
        return Ok(Outcome::Passed);
    }
    if !on_path("apt-get") || (!missing.is_empty() && !is_root()) {
        let names = [missing, servers].concat().join(" ");
        return Ok(Outcome::Skipped(format!("not installed: {names} (as root: apt-get install {names})")));
    }
    if !missing.is_empty() {
        println!("Debian packages to install: {}", missing.join(" "));
    }
    if !servers.is_empty() {
        println!("Debian packages to unpack into {}: {}", folder(context).display(), servers.join(" "));
    }
    if std::io::stdin().is_terminal() && !agreed()? {
        return Ok(Outcome::Skipped("the packages above were declined".to_owned()));
    }
    if is_root() {
        execute(Command::new("apt-get").arg("update"))?;
    }
    let before = enabled_services();
    if !missing.is_empty() {
        let fixed = ["install", "-y", "--no-install-recommends"];
        let mut install = Command::new("apt-get");
        execute(install.args(fixed).args(missing).env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    if servers.last() == Some(&GUEST_KERNEL) {
        servers.pop();
        unpack(&folder(context), &[&guest_kernel()?])?;
    }
    unpack(&folder(context), &servers)?;
    let new: Vec<PathBuf> = enabled_services().difference(&before).cloned().collect();
    ensure!(new.is_empty(), "a package enabled services, which no package of this list may do: {new:?}");
    Ok(Outcome::Passed)
}

/// The search path with the folders of unpacked programs at its end, for tests.
pub(super) fn search_path(context: &Context) -> OsString {
    let mut folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    folders.extend(PROGRAMS.iter().map(|programs| folder(context).join(programs)));
    std::env::join_paths(folders).unwrap_or_default()
}

fn folder(context: &Context) -> PathBuf {
    context.target.join("debian")
}

fn missing(packages: &[Package]) -> Vec<&'static str> {
    packages.iter().filter(|package| !is_there(package.file)).map(|package| package.name).collect()
}

fn missing_servers(context: &Context) -> Vec<&'static str> {
    let unpacked = folder(context);
    let there = |file: &str| PROGRAMS.iter().any(|programs| unpacked.join(programs).join(file).is_file());
    let needed = UNPACKED.iter().filter(|package| !on_path(package.file) && !there(package.file));
    needed.map(|package| package.name).collect()
}

fn has_guest_kernel(context: &Context) -> bool {
    let names = entries(&folder(context).join("boot"));
    names
        .iter()
        .any(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-")))
}

/// The package that [`GUEST_KERNEL`] leads to.
fn guest_kernel() -> anyhow::Result<String> {
    let asked = ["depends", "--important", GUEST_KERNEL];
    let output = Command::new("apt-cache").args(asked).output().context("apt-cache")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let name = said.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    name.map(str::to_owned).with_context(|| format!("{GUEST_KERNEL} leads to no package: {said}"))
}

fn agreed() -> anyhow::Result<bool> {
    print!("Go on? [y/N] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Fetches packages and unpacks their files into `folder`.
fn unpack(folder: &Path, packages: &[&str]) -> anyhow::Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let archives = folder.join("archives");
    std::fs::create_dir_all(&archives).with_context(|| format!("cannot make {}", archives.display()))?;
    execute(Command::new("apt-get").arg("download").args(packages).current_dir(&archives))?;
    for archive in std::fs::read_dir(&archives)? {
        execute(Command::new("dpkg-deb").arg("--extract").arg(archive?.path()).arg(folder))?;
    }
    std::fs::remove_dir_all(&archives).with_context(|| format!("cannot remove {}", archives.display()))
}

/// The links by which systemd and the older init start services at boot.
fn enabled_services() -> BTreeSet<PathBuf> {
    let mut links = BTreeSet::new();
    for parent in ["/etc/systemd/system", "/etc"] {
        for folder in entries(Path::new(parent)) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let run_level = name.starts_with("rc") && name.ends_with(".d");
            if name.ends_with(".wants") || run_level {
                let starts = |link: &PathBuf| {
                    !run_level || link.file_name().is_some_and(|name| name.to_string_lossy().starts_with('S'))
                };
                links.extend(entries(&folder).into_iter().filter(starts));
            }
        }
    }
    links
}

/// What a folder holds; nothing where it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
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
