//! The configuration file of a gateway: reads it and checks it.
//!
//! ```toml
//! program = "firewall.rav"        # beside this file, unless it begins with /
//! control = "/run/ravelin.sock"   # the socket of the control server; this is the default
//! containers = "/run/ravelin"     # the folder with the namespaces of containers (`vnic.rs`); this is the default
//! metrics = "127.0.0.1:9480"      # the address for Prometheus; none by default
//! snapshot = "gateway.state"      # the file that keeps what packets learned over a restart; none by default
//! workers = 2                     # threads that run the program; 1 is the default
//! cores = [0, 1]                  # the core of each worker; without it Linux chooses
//! state = "per-worker"            # each worker may have state of its own: needed with several
//!                                 # workers if the program has state
//!
//! [[port]]                        # port 1 of the program, the next one is port 2
//! interface = "eth0"
//! kind = "af_packet"              # by which way its packets come and go; this is the default, others are "af_xdp", "tap" and "vnic"
//! keep_from_kernel = false        # whether to keep what comes in from the kernel's own network stack; this is the default
//! offloads = "cut"                # unfinished packets are finished, long segments cut for the program; this is the default
//! addresses = ["10.0.1.1/24"]     # the gateway's own there; without any it has none and does not route
//! host = true                     # the machine is a host there, by an interface of its own; the default is that it is none
//! host_interface = "h-eth0"       # its name; this is the default
//! promiscuous = false             # take what is meant for other stations, too; the default unless there are `addresses` is true
//! mtu = 1500                      # the largest packet that leaves there; the interface's is the default
//! shape = { rate = "100Mbit" }    # this, `impair` and `trace` are described in `middleware.rs`; the default is nothing
//!
//! [[port]]                        # the frames of eth0 with the tag of VLAN 20, a port with the name eth0.20 (`places.rs`)
//! on = "eth0"
//! vlan = 20
//!
//! [[port]]                        # no port has the number 3
//! empty = true
//!
//! [[port]]                        # the end of an encrypted tunnel, whose peers are stations (`tunnel.rs`)
//! kind = "tunnel"
//! listen = "0.0.0.0:5282"
//! key = "home.key"
//!
//! [[route]]                       # to other networks, by a router of a connected one
//! to = "198.51.100.0/24"
//! via = "10.0.1.7"
//!
//! [kernel]
//! routes = true                   # follow the routes of the kernel's main table; the default is false, and true with a `host`;
//!                                 # the name of a port of kind "vnic" stands for the routes of the container there
//!
//! [[table]]                       # entries of a table of the program, in place of those in its text
//! name = "acl"
//! from = "rules.txt"              # beside this file, unless it begins with /
//! as = "iptables"                 # the format of the file; the language's own is the default
//! family = "ip4"                  # of a dump of iptables or nftables: the packets, unless the table's addresses say it
//! table = "filter"                # the table of the dump; this one is the default
//! chain = "FORWARD"               # the chain of it; the one of forwarded packets is the default
//! first_packets = false           # whether rules are read for the first packets of connections
//! interfaces = { wan0 = 1 }       # the ports that interfaces in the file stand for; unless it is said, those of this file by their names
//!
//! [set]                           # values for what the program declares as settable (`settings.rs`)
//! LIMIT = 500
//! IDLE = "5min"
//!
//! [register]                      # names of hosts behind this gateway, for waypoints (`register.rs`)
//!
//! [trust]                         # only policies that its administrators signed (`trust.rs`); `program` is a bundle then
//!
//! [front]                         # where it can be asked over a network, and by whom (`front.rs`)
//!
//! [names]                         # a name server beside the ports (`names.rs`), which may also be alone (`alone.rs`)
//! ```

mod addresses;
mod agreement;
mod alone;
mod changes;
mod constants;
pub(crate) mod elsewhere;
mod front;
mod hosts;
mod name_pattern;
pub(crate) mod names;
mod places;
mod register;
mod routes;
mod server_names;
mod settings;
mod table_files;
mod trust;
mod tunnel;
mod vnic;

pub use alone::{AloneConfig, ProcessConfig};
pub use front::FrontConfig;
pub use names::{HostPlace, NamesConfig};
pub use register::RegisterConfig;
pub use trust::TrustConfig;

use crate::middleware::{self, FileImpair, FileShape};
use crate::routing::{self, RoutingError, RoutingSettings, TableNeed};
use engine::live::{Core, remembered};
use ir::Program;
use lang::settings::Settings;
use messages::limits::MOST_WORKERS;
use packet::PortNumber;
use places::PortPlace;
use ports::live::{Offloads, PortKind, TunnelError, WantedPort, XdpMode, XdpWishes};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use table_files::FileTable;
pub use table_files::TableFile;
use toml::Spanned;
use tunnel::{FileTunnel, OneOrMany};
use vnic::PortWithVnic;

/// The default path of the control socket.
pub const CONTROL: &str = "/run/ravelin.sock";

/// The default path of the folder that keeps the namespaces of containers.
pub const CONTAINERS: &str = "/run/ravelin";

/// An error in the file, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ConfigError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1 in characters.
    pub column: usize,
    /// What is wrong, and what to do about it.
    pub message: String,
}

/// The configuration of a gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The path of the program's file, relative to the working directory or absolute.
    pub program: PathBuf,
    /// The path of the control socket.
    pub control: PathBuf,
    /// The folder that keeps the namespaces of containers.
    pub containers: PathBuf,
    /// The address for Prometheus, if the file gives one.
    pub metrics: Option<SocketAddr>,
    /// The file that keeps what packets learned over a restart, if there is to be one.
    pub snapshot: Option<PathBuf>,
    /// The threads that run the program.
    pub workers: WorkerSettings,
    /// The ports in order; the first is port 1.
    pub ports: Vec<WantedPort>,
    /// The addresses and routes of the gateway.
    pub routing: RoutingSettings,
    /// The line and column of the first address of IPv4 and of IPv6, for errors about tables that a program
    /// lacks.
    pub first_address: [Option<(usize, usize)>; 2],
    /// Files with entries for tables.
    pub tables: Vec<TableFile>,
    /// Values for what the program declares as settable; the text is that of this file.
    pub settings: Settings,
    /// The names that are answered for beside the ports.
    pub names: Option<NamesConfig>,
    /// The names that this gateway registers elsewhere.
    pub register: Option<RegisterConfig>,
    /// Whose policies are taken, if only signed ones are; the program is a bundle then.
    pub trust: Option<TrustConfig>,
    /// Where it can be asked over a network, and by whom, if the file says so.
    pub front: Option<FrontConfig>,
    /// The places of settings that a running gateway cannot change.
    pub(crate) places: Places,
}

/// Lines and columns of settings that are fixed when a gateway starts; the start of the file for settings
/// that are not in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// The interface of each port.
    ports: Vec<Place>,
    /// Where each port says that the machine is a host there.
    hosts: Vec<Option<Place>>,
    /// Where each port names the files of its keys.
    keys: Vec<Option<Place>>,
    /// Where each route says by which routers it leads.
    routes: Vec<Place>,
    control: Option<Place>,
    metrics: Option<Place>,
    snapshot: Option<Place>,
}

/// A line and a column, counted from 1.
type Place = (usize, usize);

/// The threads that run a gateway's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerSettings {
    /// The number of workers.
    pub count: u16,
    /// The core of each worker; empty if Linux chooses.
    pub cores: Vec<Core>,
    /// Whether each worker may have state of its own.
    pub own_state: bool,
    /// Line and column of the number of workers.
    pub(crate) place: (usize, usize),
}

impl Default for WorkerSettings {
    fn default() -> WorkerSettings {
        WorkerSettings { count: 1, cores: Vec::new(), own_state: false, place: (1, 1) }
    }
}

impl WorkerSettings {
    /// Whether both are equal, apart from their places in the files.
    fn are(&self, other: &WorkerSettings) -> bool {
        (self.count, &self.cores, self.own_state) == (other.count, &other.cores, other.own_state)
    }

    /// Tests whether these workers may run this program.
    ///
    /// # Errors
    /// There are several workers, the program has state and does not say to which worker a packet goes, and
    /// the file does not allow each worker to have state of its own. What a program does from time to time
    /// happens at every worker, so steering does not help there.
    pub fn suit(&self, program: &Program) -> Result<(), ConfigError> {
        let remembered = remembered(program);
        let steered = program.steering.is_some() && program.every.is_empty();
        if self.count == 1 || self.own_state || steered || remembered.is_empty() {
            return Ok(());
        }
        let message = format!(
            "with {} workers each has {} for itself, so that a packet does not find what packets of another flow left there: write `state = \"per-worker\"` if the program may, or `workers = 1`; a program that has a `steer decoder` says itself which worker a packet needs",
            self.count,
            remembered.join(", ")
        );
        let (line, column) = self.place;
        Err(ConfigError { line, column, message })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    program: Spanned<String>,
    control: Option<Spanned<PathBuf>>,
    containers: Option<PathBuf>,
    metrics: Option<Spanned<String>>,
    #[serde(default)]
    metrics_anywhere: bool,
    snapshot: Option<Spanned<PathBuf>>,
    workers: Option<Spanned<u16>>,
    cores: Option<Spanned<Vec<Core>>>,
    state: Option<State>,
    #[serde(default, rename = "port")]
    ports: Vec<Spanned<FilePort>>,
    #[serde(default)]
    route: Vec<routes::FileRoute>,
    #[serde(default)]
    kernel: addresses::FileKernel,
    #[serde(default)]
    table: Vec<FileTable>,
    names: Option<names::FileNames>,
    register: Option<register::FileRegister>,
    trust: Option<trust::FileTrust>,
    front: Option<front::FileFront>,
    /// Read at its places by `settings`.
    #[serde(default, rename = "set")]
    _set: IgnoredAny,
}

/// To whom the state of a program belongs.
#[derive(Deserialize)]
enum State {
    #[serde(rename = "per-worker")]
    PerWorker,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePort {
    empty: Option<Spanned<bool>>,
    interface: Option<Spanned<String>>,
    on: Option<Spanned<String>>,
    vlan: Option<Spanned<u16>>,
    kind: Option<Spanned<PortKind>>,
    offloads: Option<Spanned<Offloads>>,
    keep_from_kernel: Option<Spanned<bool>>,
    mode: Option<Spanned<XdpMode>>,
    zero_copy: Option<Spanned<bool>>,
    queues: Option<Spanned<Vec<u32>>>,
    shape: Option<FileShape>,
    impair: Option<FileImpair>,
    trace: Option<Spanned<String>>,
    trace_size: Option<Spanned<String>>,
    #[serde(default)]
    addresses: Vec<Spanned<String>>,
    promiscuous: Option<Spanned<bool>>,
    mtu: Option<Spanned<u16>>,
    host: Option<Spanned<bool>>,
    host_interface: Option<Spanned<String>>,
    listen: Option<Spanned<String>>,
    key: Option<Spanned<OneOrMany>>,
    #[serde(default)]
    peer: Vec<Spanned<tunnel::FilePeer>>,
    vnic: Option<Spanned<vnic::FileVnic>>,
}

impl FilePort {
    fn kind(&self) -> PortKind {
        if self.is_empty() {
            return PortKind::Empty;
        }
        self.kind.as_ref().map(|kind| kind.get_ref().clone()).unwrap_or_default()
    }

    /// What it says of how its interface is attached.
    fn attachment(&self) -> [(&'static str, Option<Range<usize>>); 7] {
        [
            ("kind", self.kind.as_ref().map(Spanned::span)),
            ("offloads", self.offloads.as_ref().map(Spanned::span)),
            ("keep_from_kernel", self.keep_from_kernel.as_ref().map(Spanned::span)),
            ("promiscuous", self.promiscuous.as_ref().map(Spanned::span)),
            ("mode", self.mode.as_ref().map(Spanned::span)),
            ("zero_copy", self.zero_copy.as_ref().map(Spanned::span)),
            ("queues", self.queues.as_ref().map(Spanned::span)),
        ]
    }

    /// What it says that matters to a VNIC.
    fn vnic(&self) -> PortWithVnic<'_> {
        PortWithVnic { kind: &self.kind, offloads: &self.offloads, vnic: &self.vnic }
    }

    /// Whether its router is a virtual machine.
    fn has_guest(&self) -> bool {
        self.vnic.as_ref().is_some_and(|vnic| vnic.get_ref().has_guest())
    }

    /// What it says that is for tunnels.
    fn tunnel(&self) -> FileTunnel<'_> {
        FileTunnel { listen: &self.listen, key: &self.key, mtu: &self.mtu, peers: &self.peer }
    }

    /// Whether the file says that no port has this number.
    fn is_empty(&self) -> bool {
        self.empty.as_ref().is_some_and(|empty| *empty.get_ref())
    }

    /// Whether it says anything but where it is and how its interface is attached.
    fn has_more(&self) -> bool {
        let middleware = self.shape.is_some() || self.impair.is_some() || self.trace.is_some();
        let own = !self.addresses.is_empty() || self.mtu.is_some() || self.host_place().is_some();
        middleware || self.vnic.is_some() || self.trace_size.is_some() || own
    }

    /// Whether the file says that the machine is a host there.
    fn has_host(&self) -> bool {
        self.host.as_ref().is_some_and(|host| *host.get_ref())
    }

    /// Where it says how the host interface is called, or that there is one.
    fn host_place(&self) -> Option<Range<usize>> {
        self.host_interface.as_ref().map(Spanned::span).or_else(|| self.host.as_ref().map(Spanned::span))
    }
}

impl FilePort {
    /// The settings for AF_XDP, or an error with its place.
    fn xdp(&self) -> Result<XdpWishes, (Option<Range<usize>>, String)> {
        let wishes = XdpWishes {
            mode: self.mode.as_ref().map(|mode| *mode.get_ref()),
            zero_copy: self.zero_copy.as_ref().map(|wish| *wish.get_ref()),
            queues: self.queues.as_ref().map(|queues| queues.get_ref().clone()),
        };
        let given = [
            ("mode", self.mode.as_ref().map(Spanned::span)),
            ("zero_copy", self.zero_copy.as_ref().map(Spanned::span)),
            ("queues", self.queues.as_ref().map(Spanned::span)),
        ];
        if let (true, Some((key, span))) =
            (self.kind() != PortKind::AfXdp, given.into_iter().find(|(_, span)| span.is_some()))
        {
            return Err((span, format!("`{key}` is for ports of `kind = \"af_xdp\"` alone")));
        }
        if let (Some(mode), Some(true)) = (&self.mode, wishes.zero_copy)
            && *mode.get_ref() == XdpMode::Generic
        {
            return Err((Some(mode.span()), "zero-copy needs `mode = \"driver\"`".to_owned()));
        }
        if let Some(queues) = &self.queues {
            let distinct: HashSet<_> = queues.get_ref().iter().collect();
            if distinct.is_empty() || distinct.len() < queues.get_ref().len() {
                let message = "`queues` names each queue that is to be served, once".to_owned();
                return Err((Some(queues.span()), message));
            }
        }
        Ok(wishes)
    }
}

/// The address of the metrics: a loopback address, unless `anywhere` allows another one.
fn metrics_at(text: &str, anywhere: bool) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| format!("`{text}` is not an address with a port, such as 127.0.0.1:9480"))?;
    if address.ip().is_loopback() || anywhere {
        return Ok(address);
    }
    Err(format!(
        "{address} can be asked from other machines: use 127.0.0.1, or add `metrics_anywhere = true` if that is meant"
    ))
}

impl Config {
    /// Reads the text of a configuration file in `directory`.
    ///
    /// # Errors
    /// The first error in the text.
    pub fn read(text: &str, directory: &Path) -> Result<Config, ConfigError> {
        let at = |span: Option<Range<usize>>, message: String| {
            place(text, span.map_or(0, |span| span.start), message)
        };
        let file: File =
            toml::from_str(text).map_err(|error| at(error.span(), error.message().to_owned()))?;
        if file.program.get_ref().is_empty() {
            return Err(at(Some(file.program.span()), "`program` names no file".to_owned()));
        }
        let metrics = match &file.metrics {
            Some(metrics) => Some(
                metrics_at(metrics.get_ref(), file.metrics_anywhere)
                    .map_err(|message| at(Some(metrics.span()), message))?,
            ),
            None => None,
        };
        let File { ports, .. } = &file;
        if ports.iter().all(|port| port.get_ref().is_empty()) {
            let message = "a gateway needs at least one port: add `[[port]]` with `interface = \"…\"`";
            return Err(at(Some(text.len()..text.len()), message.to_owned()));
        }
        let spans: Vec<_> = file.ports.iter().map(Spanned::span).collect();
        let ports: Vec<FilePort> = file.ports.into_iter().map(Spanned::into_inner).collect();
        let at_interfaces = places::read(&ports, &spans, &at)?;
        let in_file = addresses::InFile { ports: &ports, places: &at_interfaces, routes: &file.route };
        let (routing, first_address) = addresses::read(&in_file, &file.kernel, &at)?;
        let first_address = first_address.map(|span| span.map(|span| line_and_column(text, span.start)));
        let workers = workers(text, file.workers, file.cores, file.state.is_some())?;
        let stands = |span: Range<usize>| line_and_column(text, span.start);
        let places = Places {
            ports: at_interfaces.iter().map(|place| stands(place.span.clone())).collect(),
            hosts: ports.iter().map(|port| port.host_place().map(stands)).collect(),
            keys: ports.iter().map(|port| port.key.as_ref().map(|key| stands(key.span()))).collect(),
            routes: file.route.iter().map(|route| stands(route.via_place())).collect(),
            control: file.control.as_ref().map(|control| stands(control.span())),
            metrics: file.metrics.as_ref().map(|metrics| stands(metrics.span())),
            snapshot: file.snapshot.as_ref().map(|snapshot| stands(snapshot.span())),
        };
        let names: Vec<&str> = at_interfaces.iter().map(|place| place.name.as_str()).collect();
        let tables = table_files::read(file.table, &names, directory, |offset| line_and_column(text, offset))
            .map_err(|(span, message)| at(Some(span), message))?;
        let settings = settings::read(text).map_err(|(span, message)| at(Some(span), message))?;
        let ports = wanted(ports, &at_interfaces, directory, &at)?;
        let peers = ports.iter().filter_map(|port| port.tunnel.as_ref()).flat_map(|tunnel| &tunnel.peers);
        let peer_names: Vec<&str> = peers.map(|peer| peer.name.as_str()).collect();
        let read = |names| names::read(names, Some((&ports[..], &settings)), &peer_names, &at);
        let names = file.names.map(read).transpose()?.map(|names| names.in_directory(directory));
        let register = file.register.map(|register| register::read(&register, &peer_names)).transpose();
        let register = register.map_err(|(span, message)| at(Some(span), message))?;
        if let Some(message) = names.as_ref().and_then(|names| names::other_number(names, &ports)) {
            return Err(at(None, message));
        }
        let trust = file.trust.map(|trust| trust::read(trust, directory)).transpose();
        let trust = trust.map_err(|(span, message)| at(Some(span), message))?;
        let front = file.front.map(|front| front::read(front, trust.as_ref(), directory)).transpose();
        let front = front.map_err(|(span, message)| at(Some(span), message))?;
        Ok(Config {
            program: directory.join(file.program.into_inner()),
            control: file.control.map_or_else(|| PathBuf::from(CONTROL), Spanned::into_inner),
            containers: file.containers.unwrap_or_else(|| PathBuf::from(CONTAINERS)),
            metrics,
            snapshot: file.snapshot.map(|snapshot| directory.join(snapshot.into_inner())),
            workers,
            ports,
            routing,
            first_address,
            tables,
            settings,
            names,
            register,
            trust,
            front,
            places,
        })
    }
}

/// Makes an error from a place in the file's text and a message.
type At<'a> = dyn Fn(Option<Range<usize>>, String) -> ConfigError + 'a;

/// The longest name that Linux gives an interface (IFNAMSIZ, with the zero at its end), in bytes.
const LONGEST_NAME: usize = 15;

fn is_interface_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST_NAME && !name.contains(['/', '\0', ' '])
}

/// The settings of the ports; the paths of their traces are relative to `directory`.
fn wanted(
    ports: Vec<FilePort>,
    places: &[PortPlace],
    directory: &Path,
    at: &At<'_>,
) -> Result<Vec<WantedPort>, ConfigError> {
    let any = |first: usize, what: fn(&FilePort) -> bool| {
        ports.iter().zip(places).any(|(port, place)| place.first == first && what(port))
    };
    let hosts: Vec<bool> = places.iter().map(|place| any(place.first, FilePort::has_host)).collect();
    let addresses: Vec<bool> =
        places.iter().map(|place| any(place.first, |port| !port.addresses.is_empty())).collect();
    let mut wanted: Vec<WantedPort> = Vec::with_capacity(ports.len());
    let mut containers = 0;
    for (index, (port, place)) in ports.into_iter().zip(places).enumerate() {
        let xdp = port.xdp().map_err(|(span, message)| at(span, message))?;
        let tunnel = (port.kind() == PortKind::Tunnel).then(|| port.tunnel().read(directory)).transpose();
        let tunnel = tunnel.map_err(|(span, message)| at(span, message))?;
        let vnic = vnic::read(&port.vnic(), containers).map_err(|(span, message)| at(span, message))?;
        containers += u16::from(vnic.is_some());
        let (kind, keep) = (port.kind(), port.keep_from_kernel.as_ref());
        let is_tap = matches!(kind, PortKind::Tap | PortKind::Vnic);
        if let Some(keep) = keep.filter(|keep| *keep.get_ref() && is_tap) {
            let message = "a TAP device is the kernel's own side; nothing of it can be kept from the kernel";
            return Err(at(Some(keep.span()), message.to_owned()));
        }
        // The machine has packets by the host interface, and must not have them twice.
        let keep_from_kernel = keep.map_or(hosts[index], |keep| *keep.get_ref());
        let promiscuous = port.promiscuous.map_or(!addresses[index] && !hosts[index], Spanned::into_inner);
        let offloads = port.offloads.map(Spanned::into_inner).unwrap_or_default();
        let traced = port.trace.as_ref().map(Spanned::span);
        let middleware = middleware::read(port.shape, port.impair, port.trace, port.trace_size, directory)
            .map_err(|(span, message)| at(Some(span), message))?;
        let writes = |other: &WantedPort| {
            let own = middleware.trace.as_ref().map(|trace| &trace.file);
            own.is_some() && own == other.middleware.trace.as_ref().map(|trace| &trace.file)
        };
        if let Some(other) = wanted.iter().position(writes) {
            return Err(at(traced, format!("`trace`: port {} writes this file", other + 1)));
        }
        let (interface, vlan) = (place.interface.clone(), place.vlan);
        let own = WantedPort {
            interface,
            vlan,
            kind,
            offloads,
            keep_from_kernel,
            promiscuous,
            xdp,
            middleware,
            tunnel,
            vnic,
        };
        // How an interface is attached is said at its first port.
        wanted.push(match wanted.get(place.first) {
            Some(first) => {
                WantedPort { interface: own.interface, vlan, middleware: own.middleware, ..first.clone() }
            }
            None => own,
        });
    }
    Ok(wanted)
}

fn workers(
    text: &str,
    count: Option<Spanned<u16>>,
    cores: Option<Spanned<Vec<Core>>>,
    own_state: bool,
) -> Result<WorkerSettings, ConfigError> {
    let mut workers = WorkerSettings { own_state, ..WorkerSettings::default() };
    if let Some(count) = count {
        let wrong = place(text, count.span().start, format!("`workers`: between 1 and {MOST_WORKERS}"));
        workers.place = (wrong.line, wrong.column);
        workers.count = count.into_inner();
        if !(1..=MOST_WORKERS).contains(&workers.count) {
            return Err(wrong);
        }
    }
    if let Some(cores) = cores {
        let start = cores.span().start;
        workers.cores = cores.into_inner();
        let distinct: HashSet<_> = workers.cores.iter().collect();
        if distinct.len() != usize::from(workers.count) || distinct.len() != workers.cores.len() {
            let message =
                format!("`cores` names a core of its own for each worker: {} of them", workers.count);
            return Err(place(text, start, message));
        }
    }
    Ok(workers)
}

impl Config {
    /// Tests whether the program has the tables that the addresses of this file need.
    ///
    /// # Errors
    /// The program lacks a table, or has it in another shape.
    pub fn routes_by(&self, program: &Program) -> Result<(), ConfigError> {
        routing::check(program, &self.routing).map_err(|error| self.explain(error))
    }

    /// An error about the snapshot, with its place in the file.
    pub(crate) fn about_snapshot(&self, message: String) -> ConfigError {
        let (line, column) = self.places.snapshot.unwrap_or((1, 1));
        ConfigError { line, column, message }
    }

    /// An error about a port, with its place in the file.
    pub(crate) fn about_port(&self, port: PortNumber, message: String) -> ConfigError {
        let place = self.places.ports.get(usize::from(port).wrapping_sub(1)).copied();
        let (line, column) = place.unwrap_or((1, 1));
        ConfigError { line, column, message }
    }

    /// Reads the keys of all tunnels, to say what is wrong with them.
    ///
    /// # Errors
    /// A file cannot be read, may be read by others, holds no key or one that a peer has.
    pub fn check_keys(&self) -> Result<(), ConfigError> {
        let tunnels = self.ports.iter().zip(&self.places.keys);
        let mut tunnels = tunnels.filter_map(|(port, place)| Some((port.tunnel.as_ref()?, place)));
        tunnels.try_for_each(|(wishes, place)| {
            let (line, column) = place.unwrap_or((1, 1));
            let wrong = |error: TunnelError| ConfigError { line, column, message: error.to_string() };
            wishes.secrets().map(drop).map_err(wrong)
        })
    }

    /// An error about the host interface of a port, with its place in the file.
    pub fn about_host(&self, port: PortNumber, message: String) -> ConfigError {
        let place = self.places.hosts.get(usize::from(port).wrapping_sub(1)).copied().flatten();
        let (line, column) = place.unwrap_or((1, 1));
        ConfigError { line, column, message }
    }

    /// The same error with the place in the file that caused it.
    pub fn explain(&self, error: RoutingError) -> ConfigError {
        let [four, six] = self.first_address;
        let place = match &error {
            RoutingError::Program { need: TableNeed::Ipv4, .. } => four,
            RoutingError::Program { need: TableNeed::Ipv6, .. } => six,
            RoutingError::Program { need: TableNeed::Route(route), .. } => {
                self.places.routes.get(*route).copied()
            }
            _ => four.or(six),
        };
        let (line, column) = place.or(self.places.hosts.iter().copied().flatten().next()).unwrap_or((1, 1));
        ConfigError { line, column, message: error.to_string() }
    }
}

fn place(text: &str, offset: usize, message: String) -> ConfigError {
    let (line, column) = line_and_column(text, offset);
    ConfigError { line, column, message }
}

fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|&character| character != '\n').count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests;
