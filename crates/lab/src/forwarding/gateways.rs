//! Everything that can stand between the hosts: ours over each kind of port, the kernel's own ways, and other
//! people's.

use super::load::{Processors, reachable};
use super::net::{A, B, Net, SINK, TO_A, TO_B, Way};
use crate::control_socket::ControlSocket;
use rig::{Process, Shortcut};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a gateway may take to begin.
const START: Duration = Duration::from_secs(20);

/// Something that can stand between the hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// What it is called in reports.
    pub name: String,
    /// What it is.
    pub make: Make,
    /// How it hands packets on.
    pub way: Way,
}

/// What a gateway is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Make {
    /// A program of ours, its text, over ports of a kind.
    Ravelin {
        /// The kind as it stands in a gateway's file.
        kind: &'static str,
        /// What is done with long segments, as it stands there.
        segments: &'static str,
        /// The program.
        program: String,
    },
    /// The kernel's IP forwarding, on the processor that takes the packet or on the gateway's.
    Routing {
        /// Whether it is on the gateway's.
        steered: bool,
        /// So many rules in the chain `forward`, none of which fits.
        rules: Option<String>,
    },
    /// The kernel's bridge.
    Bridge,
    /// XDP programs that hand packets over in the kernel.
    Xdp,
    /// DPDK's testpmd over a virtual device.
    Testpmd {
        /// The device, with `{}` for the interface.
        device: &'static str,
    },
}

/// A gateway at work; it ends when it is dropped.
pub struct Running {
    child: Option<Child>,
    _shortcut: Option<Shortcut>,
    /// What it really is, in its own words.
    pub said: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Gateway {
    /// Whether it is ours.
    pub fn ours(&self) -> bool {
        matches!(self.make, Make::Ravelin { .. })
    }

    /// Whether its ports are TAP devices, which it makes itself.
    pub fn taps(&self) -> bool {
        match &self.make {
            Make::Ravelin { kind, .. } => *kind == "tap",
            Make::Testpmd { device } => device.starts_with("net_tap"),
            _ => false,
        }
    }

    /// How many frames surely find room in the ring of one of its ports while nobody empties it; none where
    /// it has none.
    pub fn ring(&self) -> Option<u64> {
        let kind = match &self.make {
            Make::Ravelin { kind, .. } => kind,
            Make::Testpmd { device } => device,
            _ => return None,
        };
        let sizes = [("af_packet", 8000), ("af_xdp", 1900), ("tap", 4000)];
        sizes.into_iter().find(|(name, _)| kind.contains(name)).map(|(_, size)| size)
    }

    /// Lets it work between the hosts, and waits until they reach each other. `directory` is its own for its
    /// files.
    ///
    /// # Errors
    /// Why it cannot take part.
    pub fn start(&self, net: &Net, processors: Processors, directory: &Path) -> Result<Running, String> {
        let system = |error: io::Error| error.to_string();
        let mut running = match &self.make {
            Make::Ravelin { kind, segments, program } => {
                // The kernel between the hosts has nothing to do with their packets; AF_XDP keeps them from
                // it by itself.
                let keep = if *kind == "af_packet" { "keep_from_kernel = true\n" } else { "" };
                let port = format!("kind = \"{kind}\"\noffloads = \"{segments}\"\n{keep}");
                ravelin(net, &port, program, processors, directory)?
            }
            Make::Routing { steered, rules } => {
                routing(net).map_err(system)?;
                if *steered {
                    steer(net, processors.gateway).map_err(|error| format!("steering packets: {error}"))?;
                }
                if let Some(rules) = rules {
                    nftables(net, rules)?;
                }
                Running::kernel(None)
            }
            Make::Bridge => {
                bridge(net).map_err(system)?;
                Running::kernel(None)
            }
            Make::Xdp => {
                let ends = [(&net.a, "eth0"), (&net.b, "eth0")];
                let shortcut = Shortcut::between(&net.gateway, ["to-a", "to-b"], ends);
                Running::kernel(Some(shortcut.map_err(|error| format!("XDP programs: {error}"))?))
            }
            Make::Testpmd { device } => testpmd(net, device, processors)?,
        };
        if self.taps() {
            let given = net.give_taps(START).map_err(|error| format!("TAP devices: {error}"));
            given.map_err(|error| running.failed(error))?;
        }
        reachable(net, START).map_err(|error| running.failed(error))?;
        Ok(running)
    }
}

impl Running {
    /// Its process, where it is a program.
    pub fn process(&self) -> Option<Process> {
        self.child.as_ref().map(|child| Process(child.id()))
    }

    /// What the kernel does by itself.
    fn kernel(shortcut: Option<Shortcut>) -> Running {
        Running { child: None, _shortcut: shortcut, said: String::new() }
    }

    /// Why it cannot take part, with what it said of it.
    fn failed(&mut self, why: String) -> String {
        match self.ended() {
            Some(said) => format!("{why}; it said: {said}"),
            None => why,
        }
    }

    /// What it said of an error, or last, once it has been ended; none where it is no program.
    fn ended(&mut self) -> Option<String> {
        let mut child = self.child.take()?;
        // It may have ended by itself.
        let _ = child.kill();
        let output = child.wait_with_output().ok()?;
        let said = [output.stderr, output.stdout].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let lines =
            || said.iter().flat_map(|text| text.lines()).map(str::trim).filter(|line| !line.is_empty());
        let line =
            lines().find(|line| line.to_lowercase().contains("error")).or_else(|| lines().next_back())?;
        Some(line.chars().take(200).collect())
    }
}

/// Addresses and neighbours of a router.
pub(crate) fn routing(net: &Net) -> io::Result<()> {
    let links = net.gateway.links()?;
    links.address("to-a", TO_A.1, 24)?;
    links.address("to-b", TO_B.1, 24)?;
    links.neighbour("to-a", A.1, A.0)?;
    links.neighbour("to-b", B.1, B.0)?;
    links.neighbour("to-b", SINK.1, SINK.0)?;
    net.gateway.set("ipv4/ip_forward", "1")
}

fn steer(net: &Net, processor: usize) -> io::Result<()> {
    ["to-a", "to-b"].iter().try_for_each(|end| net.gateway.steer(end, processor))
}

fn bridge(net: &Net) -> io::Result<()> {
    let links = net.gateway.links()?;
    links.bridge("bridge")?;
    links.plug("to-a", "bridge")?;
    links.plug("to-b", "bridge")
}

fn nftables(net: &Net, rules: &str) -> Result<(), String> {
    let mut command = net.gateway.command("nft", None);
    let mut child = command
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("nft: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(rules.as_bytes()).map_err(|error| format!("nft: {error}"))?;
    }
    let output = child.wait_with_output().map_err(|error| format!("nft: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("nft: {}", said.lines().next().unwrap_or(""))) }
}

/// Our own binary with a file of its own, asked until it answers.
fn ravelin(
    net: &Net,
    port: &str,
    program: &str,
    processors: Processors,
    directory: &Path,
) -> Result<Running, String> {
    let path = |name: &str| directory.join(name);
    let write = |name: &str, text: &str| -> Result<PathBuf, String> {
        let path = path(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    };
    write("program.rav", program)?;
    let control = path("control.sock");
    let mut text = format!("program = \"program.rav\"\ncontrol = {:?}\n", control.display().to_string());
    for interface in ["to-a", "to-b"] {
        text.push_str(&format!("[[port]]\ninterface = \"{interface}\"\n{port}"));
    }
    let file = write("gateway.toml", &text)?;
    let binary = std::env::current_exe().map_err(|error| format!("our own program: {error}"))?;
    let mut command = net.gateway.command(binary, Some(processors.gateway));
    let mut running = start(command.args(["serve", "--one-process"]).arg(file))?;
    let end = Instant::now() + START;
    loop {
        match asked(&control) {
            Ok(said) => {
                running.said = said;
                return Ok(running);
            }
            Err(error) => {
                let over =
                    running.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(Some(_))));
                if over || Instant::now() > end {
                    return Err(running.ended().unwrap_or_else(|| error.to_string()));
                }
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// How our gateway says its ports are attached.
fn asked(control: &Path) -> io::Result<String> {
    let picture = ControlSocket::connect(control)?.told("picture")?;
    let mode = picture["ports"][0]["mode"].as_str();
    Ok(mode.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?.to_owned())
}

/// One core takes packets from each of both devices and hands them to the other; the main one sleeps.
fn testpmd(net: &Net, device: &str, processors: Processors) -> Result<Running, String> {
    let mut command = net.gateway.command("dpdk-testpmd", None);
    let cores = format!("0@{},1@{}", processors.sender, processors.gateway);
    // A name of its own, so that it does not take another one at work for itself.
    let prefix = format!("ravelin-lab-{}", std::process::id());
    command.args([
        "--no-huge",
        "-m",
        "512",
        "--no-pci",
        "--no-telemetry",
        "--no-shconf",
        "--file-prefix",
        &prefix,
    ]);
    command.args(["--lcores", &cores, "--main-lcore", "0"]);
    for (number, interface) in ["to-a", "to-b"].iter().enumerate() {
        let (name, options) = device.split_once(',').unwrap_or((device, ""));
        command.arg(format!("--vdev={name}{number},{}", options.replace("{}", interface)));
    }
    command.args(["--", "--forward-mode=io", "--auto-start", "--nb-cores=1", "--total-num-mbufs=32768"]);
    // Interfaces that go to the hosts are not there to be asked.
    command.args(["--no-mlockall", "--disable-link-check"]);
    start(&mut command)
}

fn start(command: &mut Command) -> Result<Running, String> {
    let program =
        Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    // Some end when there is nobody to read from.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("{program} is not installed"),
        _ => format!("{program}: {error}"),
    })?;
    Ok(Running { child: Some(child), _shortcut: None, said: String::new() })
}
