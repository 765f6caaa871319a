//! A virtual machine whose only link is the VNIC of a gateway: Linux with a shell as its process 1, by QEMU
//! without KVM, in the gateway's container.
//!
//! ```text
//! test ─ number, command ─► serial console ─► shell, as root of the machine
//!      ◄─ what it prints, and `ended NUMBER STATUS` ─┘
//! ```

use cpio::newc::{Builder, trailer};
use ports::live::GuestLink;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Modules that its Linux needs for the link; what these need is found out.
const MODULES: [&str; 2] = ["virtio_pci", "virtio_net"];
/// Static, so that it needs nothing else of the machine around.
const BUSYBOX: &str = "/bin/busybox";
/// How long its start, or a command, may take: without KVM it is slow, and beside other work slower still.
const LIMIT: Duration = Duration::from_secs(300);

/// The machine's network card.
const DEVICE: &str = "virtio-net-pci,netdev=link,mac=02:00:00:00:00:63";

/// The arguments by which QEMU has a link: as descriptor 3, or by a socket.
fn of_monitor(link: GuestLink, socket: &Path) -> Vec<String> {
    match link {
        GuestLink::Tap => ["-netdev", "tap,id=link,fd=3", "-device", DEVICE].map(str::to_owned).to_vec(),
        GuestLink::VhostUser => [
            "-object",
            "memory-backend-memfd,id=memory,size=256M,share=on",
            "-machine",
            "memory-backend=memory",
            "-chardev",
            &format!("socket,id=gateway,path={}", socket.display()),
            "-netdev",
            "vhost-user,id=link,chardev=gateway",
            // QEMU 7.2 breaks down without KVM where the machine has interrupts by messages (MSI-X).
            "-device",
            &format!("{DEVICE},vectors=0"),
        ]
        .map(str::to_owned)
        .to_vec(),
    }
}

/// What a machine is started from: a Linux and its modules; and how it is linked.
pub struct GuestSystem {
    /// How it is linked.
    pub link: GuestLink,
    kernel: PathBuf,
    modules: Vec<PathBuf>,
}

impl GuestSystem {
    /// The one below a folder that has the files of the Debian package `linux-image-cloud-amd64`.
    ///
    /// # Errors
    /// There is none ([`io::ErrorKind::NotFound`]), or a module or the shell is missing; there are several.
    pub fn below(folder: &Path, link: GuestLink) -> io::Result<GuestSystem> {
        const PREFIX: &str = "vmlinuz-";
        let missing = |what: String| {
            let help = format!("{what}; the Debian package linux-image-cloud-amd64, unpacked there, has it");
            io::Error::new(io::ErrorKind::NotFound, help)
        };
        if !Path::new(BUSYBOX).exists() {
            let help = format!("{BUSYBOX} is missing; the Debian package busybox-static has it");
            return Err(io::Error::new(io::ErrorKind::NotFound, help));
        }
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
        let mut modules = Vec::new();
        for module in MODULES {
            add_module(&tree, module, &mut modules)
                .map_err(|error| missing(format!("{}: {module}: {error}", tree.display())))?;
        }
        Ok(GuestSystem { link, kernel: boot.join(name), modules })
    }

    /// Writes its first files: a shell, the modules, and these programs with the libraries that they use.
    fn write(&self, programs: &[&Path], addresses: &str, to: &Path) -> io::Result<()> {
        let mut archive = Archive { file: io::BufWriter::new(fs::File::create(to)?), number: 0 };
        for folder in ["bin", "dev", "lib", "lib64", "lib/modules", "proc", "sys", "tmp", "usr", "usr/lib"] {
            archive.folder(folder)?;
        }
        archive.folder("lib/x86_64-linux-gnu")?;
        archive.file("bin/busybox", 0o755, &fs::read(BUSYBOX)?)?;
        let mut needed = BTreeSet::new();
        for program in programs {
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            archive.file(&format!("bin/{name}"), 0o755, &fs::read(program)?)?;
            needed.extend(libraries(program)?);
        }
        for library in needed {
            let name = library.to_string_lossy();
            archive.file(name.trim_start_matches('/'), 0o755, &fs::read(&library)?)?;
        }
        for module in &self.modules {
            let name = module.file_name().unwrap_or_default().to_string_lossy();
            archive.file(&format!("lib/modules/{name}"), 0o644, &fs::read(module)?)?;
        }
        archive.file("init", 0o755, self.first_program(addresses).as_bytes())?;
        trailer(archive.file)?.flush()
    }

    /// What process 1 does: the link with these addresses, and then a command for each line.
    fn first_program(&self, addresses: &str) -> String {
        let names = self.modules.iter().filter_map(|module| module.file_name());
        let modules: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
        let modules = modules.join(" ");
        format!(
            "#!/bin/busybox sh\n\
             /bin/busybox --install -s /bin\n\
             export PATH=/bin\n\
             mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev\n\
             exec < /dev/ttyS0 > /dev/ttyS0 2>&1; stty -echo -onlcr\n\
             for module in {modules}; do insmod /lib/modules/$module; done\n\
             ip link set lo up\n\
             for address in {addresses}; do ip address add $address dev eth0; done\n\
             ip link set eth0 mtu 9000 up\n\
             for trial in $(seq 300); do grep -q 1 /sys/class/net/eth0/carrier && break; sleep 0.1; done\n\
             grep -q 1 /sys/class/net/eth0/carrier; began=$?; echo; echo ended 0 $began\n\
             while read -r number line; do sh -c \"$line\" < /dev/null; echo ended $number $?; done\n\
             poweroff -f\n"
        )
    }
}

/// Adds a module behind those that it needs (modinfo(8): `depends`).
fn add_module(tree: &Path, name: &str, modules: &mut Vec<PathBuf>) -> io::Result<()> {
    let file = format!("{name}.ko");
    let path = below(tree, &file)?.ok_or(io::ErrorKind::NotFound)?;
    if modules.contains(&path) {
        return Ok(());
    }
    let bytes = fs::read(&path)?;
    const NEEDS: &[u8] = b"\0depends=";
    let needs = bytes.windows(NEEDS.len()).position(|window| window == NEEDS);
    let needs = needs.and_then(|at| bytes[at + NEEDS.len()..].split(|byte| *byte == 0).next());
    let needs = String::from_utf8_lossy(needs.unwrap_or_default()).into_owned();
    for needed in needs.split(',').filter(|needed| !needed.is_empty()) {
        add_module(tree, needed, modules)?;
    }
    modules.push(path);
    Ok(())
}

/// The file of this name below a folder.
fn below(folder: &Path, name: &str) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let found = match path.is_dir() {
            true => below(&path, name)?,
            false => Some(path).filter(|path| path.file_name().is_some_and(|file| file == name)),
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
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
    /// Starts it by `contain`, the command `ravelin contain` with the gateway's containers, and waits until
    /// it takes commands, of which these programs are some. The folder is for its first files; the socket is
    /// the gateway's, where the machine is linked by one.
    ///
    /// # Errors
    /// It does not start, or Linux in it does not.
    pub fn start(
        system: &GuestSystem,
        programs: &[&Path],
        addresses: &str,
        (folder, socket): (&Path, &Path),
        mut contain: Command,
    ) -> io::Result<VirtualMachine> {
        let first_files = folder.join("guest.cpio");
        system.write(programs, addresses, &first_files)?;
        let kernel = fs::canonicalize(&system.kernel)?;
        let (kernel_name, files_name) = (kernel.display().to_string(), first_files.display().to_string());
        #[rustfmt::skip]
        let options = [
            "-nodefaults", "-no-reboot", "-display", "none", "-accel", "tcg", "-m", "256",
            "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
            "-serial", "stdio", "-kernel", &kernel_name, "-initrd", &files_name,
            "-append", "console=ttyS0 quiet panic=-1 no_timer_check",
        ];
        let link = of_monitor(system.link, socket);
        let link: Vec<_> = link.iter().map(String::as_str).collect();
        let monitor = [&["qemu-system-x86_64"], &*link, &options].concat();
        contain.arg("--guest");
        for shown in [&kernel, &first_files] {
            contain.arg("--show").arg(shown);
        }
        contain.arg("--").args(monitor);
        let mut monitor = contain.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
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
