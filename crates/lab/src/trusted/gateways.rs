//! What stands between the hosts of `lab trusted`: nothing, Linux, and a gateway of ours as one process or
//! split into confined ones, with the router in a container or a virtual machine.

use super::policies::{INTERFACES, Policy};
use super::signing::{BUNDLE_FILE, Signing};
use crate::control_socket::ControlSocket;
use crate::forwarding::gateways::routing;
use crate::forwarding::load::{SERVER, StreamServer};
use crate::forwarding::net::{A, CableOffloads, Net, TO_A, Way};
use crate::hosted::{Daemon, START, until};
use crate::needed::IPERF3;
use ports::live::GuestLink;
use rig::{GuestSystem, VirtualMachine};
use std::fs::{self, Permissions};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

const FIREWALL: &str = include_str!("../../../../programs/rules/firewall.rav");
/// Where the program names its rules.
const RULES: &str = "from \"rules.v4\" as iptables interfaces { int0 = INSIDE ext0 = OUTSIDE }";
/// Where the program has its ports, and where it chooses by which one a packet leaves; and how it does both
/// with the router as a third one: by the networks of the destination.
const PORTS: [&str; 2] = [
    "const OUTSIDE: port = 2\n",
    "    if in_port != INSIDE && in_port != OUTSIDE { drop no_zone }
    let leaves: port = if in_port == INSIDE { OUTSIDE } else { INSIDE }
",
];
const PORTS_WITH_ROUTER: [&str; 2] = [
    "const OUTSIDE: port = 2\nconst ROUTER: port = 3\n",
    "    let inside: port = if to in ::ffff:10.0.1.0/120 { INSIDE } else { OUTSIDE }
    let leaves: port = if to == ::ffff:10.0.1.253 { ROUTER } else { inside }
    if leaves == in_port { drop no_zone }
",
];
/// The router's station, the port that leads to it, and the folder of its container.
const ROUTER: ([u8; 6], Ipv4Addr) = ([2, 0, 0, 0, 0, 0x63], Ipv4Addr::new(10, 0, 1, 253));
pub(super) const ROUTER_PORT: &str = "router";
/// Another address of a router in a container, by which `redteam` floods.
const ROUTER_AS_ATTACKER: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 99);
const CONTAINERS: &str = "containers";
/// The files beside the gateway's.
pub(super) const PROGRAM_FILE: &str = "program.rav";
const RULES_FILE: &str = "rules.npf";

/// What stands between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Between {
    /// A cable.
    Nothing,
    /// The kernel's IP forwarding, without rules.
    Linux,
    /// One process with native code.
    OneProcess,
    /// One process with bytecode.
    Bytecode,
    /// One process with native code, by AF_XDP.
    OneProcessByXdp,
    /// Confined processes, of which the core has bytecode.
    Split,
    /// The same, of which the core has native code.
    SplitNative,
    /// As the last, by AF_XDP.
    SplitByXdp,
    /// Confined processes with bytecode, and the router in a container.
    Contained,
    /// The same with native code.
    ContainedNative,
    /// As the last, and the router in a virtual machine there, which has its frames by a TAP.
    MachineByTap,
    /// The same by shared rings.
    MachineByRings,
}

impl Between {
    pub(super) const ALL: [Between; 12] = [
        Between::Nothing,
        Between::Linux,
        Between::OneProcess,
        Between::SplitNative,
        Between::ContainedNative,
        Between::MachineByTap,
        Between::MachineByRings,
        Between::OneProcessByXdp,
        Between::SplitByXdp,
        Between::Bytecode,
        Between::Split,
        Between::Contained,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Between::Nothing => "a cable",
            Between::Linux => "Linux routing without rules",
            Between::OneProcess => "one process with native code",
            Between::Bytecode => "one process with bytecode",
            Between::OneProcessByXdp => "one process by AF_XDP with native code",
            Between::Split => "T0 with bytecode",
            Between::SplitNative => "T0 with native code",
            Between::SplitByXdp => "T0 by AF_XDP with native code",
            Between::Contained => "T1 with bytecode",
            Between::ContainedNative => "T1 with native code",
            Between::MachineByTap => "T2 by TAP with native code",
            Between::MachineByRings => "T2 by vhost-user with native code",
        }
    }

    /// Whether it decides by a policy.
    pub(super) fn has_policy(self) -> bool {
        !matches!(self, Between::Nothing | Between::Linux)
    }

    /// Whether the router is in a container; elsewhere it is the machine of the gateway.
    fn is_contained(self) -> bool {
        matches!(self, Between::Contained | Between::ContainedNative) || self.guest().is_some()
    }

    /// How the virtual machine in the container, which is the router, is linked.
    pub(super) fn guest(self) -> Option<GuestLink> {
        match self {
            Between::MachineByTap => Some(GuestLink::Tap),
            Between::MachineByRings => Some(GuestLink::VhostUser),
            _ => None,
        }
    }

    /// By which way a gateway's packets come and go at the cables, as its file says it.
    fn way_of_ports(self) -> &'static str {
        match self {
            Between::OneProcessByXdp | Between::SplitByXdp => "kind = \"af_xdp\"",
            // AF_XDP takes each packet from the kernel anyway.
            _ => "keep_from_kernel = true",
        }
    }

    /// What `ravelin serve` is told.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Between::Nothing | Between::Linux | Between::OneProcess | Between::OneProcessByXdp => {
                &["--one-process"]
            }
            Between::Bytecode => &["--one-process", "--back-end", "bytecode"],
            Between::Split | Between::Contained => &["--trusted"],
            Between::SplitNative
            | Between::SplitByXdp
            | Between::ContainedNative
            | Between::MachineByTap
            | Between::MachineByRings => &["--trusted", "--native"],
        }
    }
}

/// The hosts and what stands between them.
pub(super) struct Joined {
    pub(super) net: Net,
    between: Between,
    pub(super) binary: PathBuf,
    containers: PathBuf,
    gateway: Option<Daemon>,
    /// In a lock only because streams are made by other threads, which do without it.
    machine: Option<Mutex<VirtualMachine>>,
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.machine = None;
        // The namespaces of a container outlive a gateway that is killed.
        if let Some(gateway) = self.gateway.as_mut().filter(|_| self.between.is_contained()) {
            gateway.end_well();
        }
    }
}

impl Joined {
    /// Makes the hosts and what stands between them, whose files are in `folder` and which is held on a
    /// processor. Where there is one who signs, a gateway takes what he has signed, and nothing else. A
    /// virtual machine has the Linux of the folder `guest`.
    ///
    /// # Errors
    /// What cannot be made, or does not begin.
    pub(super) fn new(
        between: Between,
        policy: &Policy,
        folder: &Path,
        processor: usize,
        signing: Option<&Signing>,
        guest: Option<&Path>,
    ) -> Result<Joined, String> {
        let system = |error: io::Error| error.to_string();
        let net = match between {
            Between::Nothing => Net::direct(CableOffloads::Off),
            Between::Linux => Net::new(Way::Routed, CableOffloads::Off),
            _ => Net::new(Way::Switched, CableOffloads::Off),
        };
        let (net, binary) = (net.map_err(system)?, std::env::current_exe().map_err(system)?);
        let containers = folder.join(CONTAINERS);
        let mut joined = Joined { net, between, binary, containers, gateway: None, machine: None };
        match between {
            Between::Nothing => {}
            Between::Linux => routing(&joined.net).map_err(system)?,
            _ => {
                joined.gateway = Some(joined.ours(policy, folder, processor, signing)?);
                if let Some(link) = between.guest() {
                    let guest = guest.ok_or("there is no Linux for a virtual machine")?;
                    joined.machine = Some(Mutex::new(joined.start_machine(guest, link, folder)?));
                }
                joined.settle_router()?;
            }
        }
        Ok(joined)
    }

    /// The process of the gateway that was started.
    pub(super) fn gateway(&self) -> Option<u32> {
        self.gateway.as_ref().map(Daemon::id)
    }

    /// The router's address at host a; `None` where there is no router.
    pub(super) fn router(&self) -> Option<Ipv4Addr> {
        match self.between {
            Between::Nothing => None,
            Between::Linux => Some(TO_A.1),
            _ => Some(ROUTER.1),
        }
    }

    /// The router as a virtual machine in the container, which serves streams.
    fn start_machine(&self, guest: &Path, link: GuestLink, folder: &Path) -> Result<VirtualMachine, String> {
        let iperf3 = IPERF3.found()?;
        let addresses = format!("{}/24", ROUTER.1);
        let socket = container::monitor_socket(&self.containers, ROUTER_PORT);
        let machine = GuestSystem::below(guest, link).and_then(|system| {
            let mut machine =
                VirtualMachine::start(&system, &[&iperf3], &addresses, (folder, &socket), self.contain())?;
            let settle = format!("arp -s {} {}", A.1, station(A.0));
            let serve = format!("{} --daemon {}", IPERF3.program, SERVER.join(" "));
            for command in [settle, serve] {
                let end = machine.run(&command, || Ok(()))?;
                if end.status != 0 {
                    return Err(io::Error::other(format!("`{command}` in the machine: {}", end.said)));
                }
            }
            Ok(machine)
        });
        machine.map_err(|error| error.to_string())
    }

    /// Lets router and host a know each other's station.
    fn settle_router(&self) -> Result<(), String> {
        let system = |error: io::Error| error.to_string();
        self.net.a.links().and_then(|links| links.neighbour("eth0", ROUTER.1, ROUTER.0)).map_err(system)?;
        if !self.between.is_contained() {
            let links = self.net.gateway.links().map_err(system)?;
            // Where it is already, with another station.
            links.hand(ROUTER_PORT, (ROUTER_PORT, ROUTER.0), &self.net.gateway).map_err(system)?;
            links.address(ROUTER_PORT, ROUTER.1, 24).map_err(system)?;
            return links.neighbour(ROUTER_PORT, A.1, A.0).map_err(system);
        }
        if self.machine.is_some() {
            // It knows host a since it began.
            return Ok(());
        }
        let mut command = self.program("ip");
        let (address, station) = (A.1.to_string(), station(A.0));
        command.args(["neighbour", "replace", &address, "lladdr", &station, "dev", ROUTER_PORT]);
        let output = command.output().map_err(system)?;
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
    }

    /// Our own binary, asked until its policy has taken over.
    fn ours(
        &self,
        policy: &Policy,
        folder: &Path,
        processor: usize,
        signing: Option<&Signing>,
    ) -> Result<Daemon, String> {
        let system = |error: io::Error| error.to_string();
        fs::create_dir_all(folder).map_err(system)?;
        // Where it is split, the process that reads the files is `nobody`.
        for folder in [folder.parent().unwrap_or(folder), folder] {
            fs::set_permissions(folder, Permissions::from_mode(0o755)).map_err(system)?;
        }
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).map_err(system);
        write(PROGRAM_FILE, &program()?)?;
        write(RULES_FILE, &policy.text)?;
        let control = folder.join("control.sock");
        let mut text = format!(
            "program = \"{}\"\ncontrol = {:?}\ncontainers = {:?}\n",
            if signing.is_some() { BUNDLE_FILE } else { PROGRAM_FILE },
            control.display().to_string(),
            self.containers.display().to_string()
        );
        let way = self.between.way_of_ports();
        for interface in ["to-a", "to-b"] {
            text.push_str(&format!("[[port]]\ninterface = \"{interface}\"\n{way}\n"));
        }
        text.push_str(&format!("[[port]]\ninterface = \"{ROUTER_PORT}\"\n"));
        // The Linux of a virtual machine hands unfinished packets over.
        if self.between.guest().is_none() {
            text.push_str("offloads = \"off\"\n");
        }
        if self.between.is_contained() {
            let guest = self.between.guest().map(|link| format!(", guest = \"{}\"", link.name()));
            text.push_str(&format!(
                "kind = \"vnic\"\nvnic = {{ ethernet = \"{}\", addresses = [\"{}/24\", \"{ROUTER_AS_ATTACKER}/24\"]{} }}\n",
                station(ROUTER.0),
                ROUTER.1,
                guest.unwrap_or_default()
            ));
        } else {
            text.push_str("kind = \"tap\"\n");
        }
        if let Some(signing) = signing {
            text.push_str(&signing.section());
            signing.sign(1)?;
        }
        write("gateway.toml", &text)?;
        let mut command = self.net.gateway.command(&self.binary, Some(processor));
        let errors = folder.join("errors");
        command.arg("serve").args(self.between.arguments()).arg(folder.join("gateway.toml"));
        let process = Daemon::start_with_errors(&mut command, &errors).map_err(system)?;
        until(START, "the policy takes over", || {
            let active =
                ControlSocket::connect(&control).and_then(|mut control| control.told("active")).ok()?;
            (active["program"] != "boot").then_some(())
        })
        .map_err(|why| {
            let said = fs::read_to_string(&errors).unwrap_or_default();
            said.lines().last().map_or(why.clone(), |line| format!("{why}: {line}"))
        })?;
        Ok(process)
    }
}

/// The program with the rules of a file of NPF in place of its own, and with a port for the router.
///
/// # Errors
/// It has no such place.
pub(super) fn program() -> Result<String, String> {
    let [inside, outside, router] = INTERFACES;
    let rules = format!(
        "from \"{RULES_FILE}\" as npf interfaces {{ {inside} = INSIDE {outside} = OUTSIDE {router} = ROUTER }}"
    );
    let changes = [(RULES, &*rules), (PORTS[0], PORTS_WITH_ROUTER[0]), (PORTS[1], PORTS_WITH_ROUTER[1])];
    changes.into_iter().try_fold(FIREWALL.to_owned(), |text, (before, after)| {
        if text.contains(before) {
            Ok(text.replace(before, after))
        } else {
            Err(format!("rules/firewall says in other words `{before}`"))
        }
    })
}

/// A station's address as it is written.
fn station(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

/// The router.
impl StreamServer for Joined {
    fn server(&self) -> Option<Command> {
        self.machine.is_none().then(|| self.program(IPERF3.program))
    }
}

impl Joined {
    fn contain(&self) -> Command {
        let mut command = self.net.gateway.command(&self.binary, None);
        command.arg("contain").arg("--containers").arg(&self.containers);
        command
    }

    /// A command of the router, or of the container that its virtual machine is in.
    pub(super) fn program(&self, name: &str) -> Command {
        if !self.between.is_contained() {
            return self.net.gateway.command(name, None);
        }
        let mut command = self.contain();
        // A program that is named by its path lies where the container sees nothing.
        if Path::new(name).is_absolute() {
            command.arg("--show").arg(name);
        }
        command.arg("--").arg(name);
        command
    }
}
