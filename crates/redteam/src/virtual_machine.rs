//! A virtual machine whose only link is the VNIC of a gateway: Linux with a shell as its process 1, by QEMU
//! without KVM, in the gateway's container.
//!
//! ```text
//! laboratory ─ number, command ─► serial console ─► shell, as root of the machine
//!            ◄─ what it prints, and `ended NUMBER STATUS` ─┘
//! ```

use cpio::newc::{Builder, trailer};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Modules that its Linux needs for the link, in the order in which they are loaded.
const MODULES: [&str; 8] = [
    "virtio",
    "virtio_ring",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
];
/// Static, so that it needs nothing else of the machine around.
const BUSYBOX: &str = "/bin/busybox";
/// How long its start, or a command, may take: without KVM it is slow, and beside other work slower still.
const LIMIT: Duration = Duration::from_secs(300);

/// What a machine is started from: a Linux and its modules.
pub struct GuestSystem {
    kernel: PathBuf,
    modules: Vec<PathBuf>,
}

impl GuestSystem {
    /// The one below a folder that has the files of the Debian package `linux-image-cloud-amd64`.
    ///
    /// # Errors
    /// There is none ([`io::ErrorKind::NotFound`]), or a module is missing; there are several.
    pub fn below(folder: &Path) -> io::Result<GuestSystem> {
        const PREFIX: &str = "vmlinuz-";
        let missing = |what: String| {
            let help = format!("{what}; the Debian package linux-image-cloud-amd64, unpacked there, has it");
            io::Error::new(io::ErrorKind::NotFound, help)
        };
        let boot = folder.join("boot");
        let kernels = fs::read_dir(&boot).map_err(|error| missing(format!("{}: {error}", boot.display())))?;
        let mut names: Vec<_> =
            kernels.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| name.starts_with(PREFIX));
        let [name] = &names[..] else {
            return Err(missing(format!("{}: {} Linuxes, and not one", boot.display(), names.len())));
        };
        let version = name.strip_prefix(PREFIX).unwrap_or_default();
        let tree = folder.join("lib/modules").join(version).join("kernel");
        let find = |module: &str| {
            let file = format!("{module}.ko");
            ["net/core", "drivers/net", "drivers/virtio"]
                .iter()
                .map(|place| tree.join(place).join(&file))
                .find(|path| path.exists())
                .ok_or_else(|| missing(format!("{}: no {file}", tree.display())))
        };
        let modules = MODULES.into_iter().map(find).collect::<io::Result<_>>()?;
        Ok(GuestSystem { kernel: boot.join(name), modules })
    }

    /// Writes its first files: a shell, the modules, and this program with the libraries that it uses.
    fn write(&self, program: &Path, addresses: &str, to: &Path) -> io::Result<()> {
        let mut archive = Archive { file: io::BufWriter::new(fs::File::create(to)?), number: 0 };
        for folder in ["bin", "dev", "lib", "lib64", "lib/modules", "proc", "sys", "tmp", "usr", "usr/lib"] {
            archive.folder(folder)?;
        }
        archive.folder("lib/x86_64-linux-gnu")?;
        archive.file("bin/busybox", 0o755, &fs::read(BUSYBOX)?)?;
        archive.file("bin/redteam", 0o755, &fs::read(program)?)?;
        for library in libraries(program)? {
            let name = library.to_string_lossy();
            archive.file(name.trim_start_matches('/'), 0o755, &fs::read(&library)?)?;
        }
        for module in &self.modules {
            let name = module.file_name().unwrap_or_default().to_string_lossy();
            archive.file(&format!("lib/modules/{name}"), 0o644, &fs::read(module)?)?;
        }
        archive.file("init", 0o755, first_program(addresses).as_bytes())?;
        trailer(archive.file)?.flush()
    }
}

/// What process 1 does: the link with these addresses, and then a command for each line.
fn first_program(addresses: &str) -> String {
    let modules = MODULES.join(" ");
    format!(
        "#!/bin/busybox sh\n\
         /bin/busybox --install -s /bin\n\
         export PATH=/bin\n\
         mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev\n\
         exec < /dev/ttyS0 > /dev/ttyS0 2>&1; stty -echo -onlcr\n\
         for module in {modules}; do insmod /lib/modules/$module.ko; done\n\
         ip link set lo up\n\
         for address in {addresses}; do ip address add $address dev eth0; done\n\
         ip link set eth0 mtu 9000 up\n\
         until grep -q 1 /sys/class/net/eth0/carrier; do sleep 0.1; done\n\
         echo; echo ended 0 0\n\
         while read -r number line; do sh -c \"$line\" < /dev/null; echo ended $number $?; done\n\
         poweroff -f\n"
    )
}

/// The libraries that a program is linked with, as ldd(1) tells.
fn libraries(program: &Path) -> io::Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let paths = said.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from);
    Ok(paths.collect())
}

/// An archive of files (cpio, "newc"; Linux, Documentation/driver-api/early-userspace).
struct Archive<W> {
    file: W,
    number: u32,
}

impl<W: Write> Archive<W> {
    fn folder(&mut self, name: &str) -> io::Result<()> {
        self.add(name, 0o040_755, &[])
    }

    fn file(&mut self, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        self.add(name, 0o100_000 | mode, bytes)
    }

    /// Adds an entry; the mode has the kind of file in it (inode(7)).
    fn add(&mut self, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        self.number += 1;
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let entry = Builder::new(name).ino(self.number).mode(mode);
        let mut entry = entry.write(&mut self.file, length);
        entry.write_all(bytes)?;
        entry.finish().map(drop)
    }
}

/// A machine that runs.
pub struct VirtualMachine {
    monitor: Child,
    console: ChildStdin,
    said: Receiver<String>,
    /// How many commands were begun.
    commands: u64,
}

/// What a command in the machine came to.
#[derive(Debug)]
pub struct CommandEnd {
    /// What it printed.
    pub said: String,
    /// Its status.
    pub status: i32,
}

impl VirtualMachine {
    /// Starts it by `contain`, the command that runs another one in the gateway's container with the link,
    /// and waits until it takes commands. The folder is for its first files.
    ///
    /// # Errors
    /// It does not start, or Linux in it does not.
    pub fn start(
        system: &GuestSystem,
        program: &Path,
        addresses: &str,
        folder: &Path,
        contain: impl FnOnce(&[&Path], &[&str]) -> Command,
    ) -> io::Result<VirtualMachine> {
        let first_files = folder.join("guest.cpio");
        system.write(program, addresses, &first_files)?;
        let kernel = fs::canonicalize(&system.kernel)?;
        let (kernel_name, files_name) = (kernel.display().to_string(), first_files.display().to_string());
        #[rustfmt::skip]
        let monitor = [
            "qemu-system-x86_64", "-nodefaults", "-no-reboot", "-display", "none", "-accel", "tcg", "-m", "256",
            "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
            "-serial", "stdio", "-kernel", &kernel_name, "-initrd", &files_name,
            "-append", "console=ttyS0 quiet panic=-1",
            "-netdev", "tap,id=link,fd=3",
            "-device", "virtio-net-pci,netdev=link,mac=02:00:00:00:00:63",
        ];
        let mut command = contain(&[&kernel, &first_files], &monitor);
        let mut monitor = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(console), Some(output)) = (monitor.stdin.take(), monitor.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let (says, said) = channel();
        thread::spawn(move || {
            let mut lines = BufReader::new(output).split(b'\n').map_while(Result::ok);
            lines.all(|line| says.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_ok())
        });
        let mut machine = VirtualMachine { monitor, console, said, commands: 0 };
        let started = machine.wait(|| Ok(()))?;
        match started.status {
            0 => Ok(machine),
            _ => Err(io::Error::other(started.said)),
        }
    }

    /// Runs a command of the shell, and does `meanwhile` again and again until it has ended.
    ///
    /// # Errors
    /// The machine has ended, or takes too long; what `meanwhile` says.
    pub fn run(
        &mut self,
        command: &str,
        meanwhile: impl FnMut() -> io::Result<()>,
    ) -> io::Result<CommandEnd> {
        self.begin(command)?;
        self.wait(meanwhile)
    }

    /// Begins a command that need not end.
    ///
    /// # Errors
    /// The machine has ended.
    pub fn begin(&mut self, command: &str) -> io::Result<()> {
        self.commands += 1;
        writeln!(self.console, "{} {command}", self.commands)?;
        self.console.flush()
    }

    fn wait(&mut self, mut meanwhile: impl FnMut() -> io::Result<()>) -> io::Result<CommandEnd> {
        const LOOK: Duration = Duration::from_millis(1);
        let (end, mut said) = (Instant::now() + LIMIT, String::new());
        let ended = format!("ended {} ", self.commands);
        loop {
            meanwhile()?;
            match self.said.recv_timeout(LOOK) {
                Ok(line) => match line.strip_prefix(&*ended).and_then(|status| status.parse().ok()) {
                    Some(status) => return Ok(CommandEnd { said, status }),
                    None => said = said + &line + "\n",
                },
                Err(RecvTimeoutError::Timeout) if Instant::now() < end => {}
                Err(_) => {
                    let ended = self.monitor.try_wait()?;
                    return Err(io::Error::other(format!(
                        "the machine, whose monitor {ended:?}, says: {said}"
                    )));
                }
            }
        }
    }

    /// Waits until its monitor has ended.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn end(&mut self) -> io::Result<()> {
        self.monitor.wait().map(drop)
    }
}

impl Drop for VirtualMachine {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.monitor.kill();
        let _ = self.monitor.wait();
        // The process that has the link ends a moment after the one that started it; its output ends with it.
        let end = Instant::now() + LIMIT;
        while self.said.recv_timeout(end.saturating_duration_since(Instant::now())).is_ok() {}
    }
}
