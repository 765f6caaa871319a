//! `ravelin serve --trusted`: a gateway whose packets run in a confined process; and the two commands that
//! the other processes of such a gateway are.

use crate::allowance::Allowance;
use crate::commands::front::read as read_key;
use crate::commands::policy::review::tested;
use crate::commands::serve::{filled_program, read};
use crate::failure::Failure;
use confinement::{Entered, Layer, Missing, Role};
use gateway::Config;
use gateway::beside_core::{self, ConfinedRouting, ControlDuties};
use gateway::routing::{PortSettings, RoutingSettings};
use ir::print::print;
use messages::Channel;
use messages::compile::CompileMessage;
use messages::front::ControlSupply;
use messages::limits::{LONGEST_BUNDLE, LONGEST_SUPPLY, MOST_ADDRESSES};
use ports::files;
use ports::live::handed_over::can_be_handed_over;
use ports::live::{GuestLink, Offloads, PortKind, VnicWishes, WantedPort};
use std::io::{self, Write};
use std::net::{IpAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{self, Path, PathBuf};
use std::process::{self, Command};
use std::{env, fs};

/// How long addresses and routes may be as they are handed over, in bytes: Linux takes an argument of
/// 128 KiB.
const LONGEST_ROUTING: usize = 120 << 10;

/// Becomes `ravelin-launch`, which starts the processes of this gateway; its core runs machine code if it is
/// to be `native`.
pub(super) fn serve(file: &Path, config: &Config, native: bool, without: &[Layer]) -> Result<(), Failure> {
    let finding = |text: String| Failure::Finding(format!("{}: {text}", file.display()));
    suits(file, config).map_err(|why| match config.trust {
        Some(_) => finding(why),
        None => finding(format!("{why}; change that, or have it run with `--one-process`")),
    })?;
    // The process that reads it has another working directory.
    let real = fs::canonicalize(file).map_err(|error| finding(error.to_string()))?;
    let ravelin = env::current_exe().map_err(|error| finding(error.to_string()))?;
    let beside = |name: &str| beside(&ravelin, name).map_err(finding);
    let mut launch = Command::new(beside("ravelin-launch")?);
    launch.arg("--core").arg(beside(if native { "ravelin-core-native" } else { "ravelin-core" })?);
    if native {
        launch.arg("--native");
    }
    launch.arg("--ravelin").arg(&ravelin).arg("--file").arg(real);
    launch.arg("--control").arg(&config.control);
    launch.arg("--containers").arg(&config.containers);
    launch.arg("--workers").arg(config.workers.count.to_string());
    for layer in without {
        launch.arg("--without").arg(layer.name());
    }
    if let Some(trust) = &config.trust {
        launch.arg("--gateway").arg(&trust.gateway).arg("--threshold").arg(trust.threshold.to_string());
        // Whoever keeps it has another working directory, too.
        launch
            .arg("--keep-in")
            .arg(path::absolute(&trust.keep_in).map_err(|error| finding(error.to_string()))?);
        for (name, digits) in &trust.keys {
            launch.arg("--key").arg(format!("{name}={digits}"));
        }
    }
    if let Some(front) = &config.front {
        // A front without a key would be started again and again.
        read_key(&front.key)?;
        launch.arg("--front").arg(beside("ravelin-front")?).arg("--listen").arg(front.listen.to_string());
        launch
            .arg("--front-key")
            .arg(path::absolute(&front.key).map_err(|error| finding(error.to_string()))?);
        for client in &front.clients {
            launch.arg("--client").arg(client.to_string());
        }
    }
    let by_vhost =
        |port: &WantedPort| port.vnic.as_ref().is_some_and(|vnic| vnic.guest == Some(GuestLink::VhostUser));
    if config.ports.iter().any(by_vhost) {
        launch.arg("--vhost").arg(beside("ravelin-vhost")?);
    }
    if let Some(metrics) = config.metrics {
        launch.arg("--metrics").arg(metrics.to_string());
    }
    if config.routing.is_active() {
        let routing = serde_json::to_string(&config.routing).map_err(|error| finding(error.to_string()))?;
        if routing.len() > LONGEST_ROUTING {
            return Err(finding(format!(
                "its addresses and routes are {} bytes long as they are handed over, and may be {LONGEST_ROUTING}: take `[[route]]`s out, and have the machine route these (`[kernel] routes = true`)",
                routing.len()
            )));
        }
        launch.arg("--routing").arg(routing);
    }
    for (port, of_port) in config.ports.iter().zip(&config.routing.ports) {
        add_port(&mut launch, port);
        for own in &of_port.addresses {
            launch.arg("--own-address").arg(own.address.to_string());
        }
    }
    told(&started(config.front.is_some(), without));
    // It comes back only where it could not begin.
    Err(finding(format!("ravelin-launch cannot be started: {}", launch.exec())))
}

/// What a gateway of several processes says of that.
fn started(has_front: bool, without: &[Layer]) -> String {
    let count = if has_front { "five" } else { "four" };
    let mut text = format!(
        "trusted, {count} processes: whoever takes over one of them has the rights of this part and no others"
    );
    if !without.is_empty() {
        let names: Vec<_> = without.iter().map(|layer| layer.name()).collect();
        text += &format!(", as far as that holds without {}", names.join(", "));
    }
    text
}

/// The program of this name beside `ravelin`.
///
/// # Errors
/// It is not there.
fn beside(ravelin: &Path, name: &str) -> Result<PathBuf, String> {
    let path = ravelin.with_file_name(name);
    path.exists().then_some(path).ok_or_else(|| {
        format!(
            "the program `{name}` is not beside {}: `cargo build --release -p {name}` makes it",
            ravelin.display()
        )
    })
}

/// Whether the programs lie beside `ravelin` that a gateway of this file needs, without machine code.
///
/// # Errors
/// One of them does not.
pub(super) fn programs(ravelin: &Path, config: &Config) -> Result<(), String> {
    let front = config.front.as_ref().map(|_| "ravelin-front");
    ["ravelin-launch", "ravelin-core"]
        .into_iter()
        .chain(front)
        .try_for_each(|name| beside(ravelin, name).map(drop))
}

/// What the file asks for that a confined core cannot do.
fn lacking(config: &Config) -> Option<String> {
    let asked = [
        (config.snapshot.is_some(), "`snapshot`"),
        (config.names.is_some() || config.register.is_some(), "names"),
        (!config.workers.cores.is_empty(), "`cores`"),
    ];
    let port = |port: &WantedPort| {
        let what = can_be_handed_over(port).err()?;
        Some(format!("port {} cannot be had with `--trusted` yet: {what}", port.name()))
    };
    let asked = asked.iter().find(|(is_asked, _)| *is_asked);
    let asked = asked.map(|(_, what)| format!("{what} cannot be had with `--trusted` yet"));
    config.ports.iter().find_map(port).or(asked).or_else(|| routing_lacks(config))
}

/// What of its addresses and routes a confined core cannot do.
fn routing_lacks(config: &Config) -> Option<String> {
    let RoutingSettings { ports, .. } = &config.routing;
    if !config.routing.is_active() {
        return None;
    }
    if config.trust.is_none() {
        return Some(
            "addresses and routes can be had with `--trusted` only beside `[trust]`, whose policies give the rights for them"
                .to_owned(),
        );
    }
    let lacks = |(settings, port): (&PortSettings, &WantedPort)| {
        if settings.host_interface.is_some() {
            return Some(format!("port {} cannot have `host = true` with `--trusted` yet", port.name()));
        }
        for (family, of_family) in
            [("IPv4", IpAddr::is_ipv4 as fn(&IpAddr) -> bool), ("IPv6", IpAddr::is_ipv6)]
        {
            let count = settings.addresses.iter().filter(|own| of_family(&own.address)).count();
            if count > MOST_ADDRESSES {
                return Some(format!(
                    "port {} cannot have {count} addresses of {family} with `--trusted`: {MOST_ADDRESSES} at most",
                    port.name()
                ));
            }
        }
        let is_other = port.kind != PortKind::AfPacket && !settings.addresses.is_empty();
        is_other.then(|| {
            format!(
                "port {} cannot have addresses with `--trusted` yet: it is not of kind \"af_packet\"",
                port.name()
            )
        })
    };
    ports.iter().zip(&config.ports).find_map(lacks)
}

/// Whether confined processes can do what the file asks for.
///
/// # Errors
/// They cannot; the text says what to change.
pub(super) fn suits(file: &Path, config: &Config) -> Result<(), String> {
    if let Some(lacking) = lacking(config) {
        return Err(lacking);
    }
    if config.trust.is_some() {
        suits_signed(config)?;
    }
    let real = fs::canonicalize(file).map_err(|error| error.to_string())?;
    lies_together(&real, config)
}

/// Whether the file leaves to a signed policy what only that can say.
fn suits_signed(config: &Config) -> Result<(), String> {
    if !config.tables.is_empty() || !config.settings.values.is_empty() {
        return Err(
            "`[[table]]` and `[set]` mean nothing with `[trust]`: a signed policy brings its entries and values along"
                .to_owned(),
        );
    }
    if config.workers.count > 1 && !config.workers.own_state {
        return Err(format!(
            "with {} workers and `[trust]`, what a policy remembers may be apart for each of them: write `state = \"per-worker\"` if policies may, or `workers = 1`",
            config.workers.count
        ));
    }
    Ok(())
}

/// Whether what the file names lies in its folder or below: the process that compiles sees nothing else.
fn lies_together(file: &Path, config: &Config) -> Result<(), String> {
    let Some(folder) = file.parent() else { return Ok(()) };
    let named = [&config.program].into_iter().chain(config.tables.iter().map(|table| &table.file));
    for path in named {
        // What is missing is missed by whoever reads it.
        if fs::canonicalize(path).is_ok_and(|real| !real.starts_with(folder)) {
            return Err(format!(
                "{} lies outside of {}: with `--trusted`, nothing else than this folder can be read: put the file there",
                path.display(),
                folder.display()
            ));
        }
    }
    Ok(())
}

fn add_port(launch: &mut Command, port: &WantedPort) {
    launch.arg("--port").arg(&port.interface);
    let kind = match port.kind {
        PortKind::Tap => "tap",
        PortKind::Vnic => "vnic",
        _ => "af_packet",
    };
    launch.args(["--kind", kind]);
    if let Some(vnic) = &port.vnic {
        add_router(launch, vnic);
    }
    launch.arg("--offloads").arg(match port.offloads {
        Offloads::Cut => "cut",
        Offloads::Whole => "whole",
        Offloads::Off => "off",
    });
    if port.promiscuous {
        launch.arg("--promiscuous");
    }
    if port.keep_from_kernel {
        launch.arg("--keep-from-kernel");
    }
}

/// The router in the container of a port: its addresses, its MTU and what it may send.
fn add_router(launch: &mut Command, vnic: &VnicWishes) {
    let station: Vec<_> = vnic.ethernet.iter().map(|byte| format!("{byte:02x}")).collect();
    launch.arg("--ethernet").arg(station.join(":")).arg("--mtu").arg(vnic.mtu.to_string());
    for (address, length) in &vnic.addresses {
        launch.arg("--address").arg(format!("{address}/{length}"));
    }
    if vnic.advertises {
        launch.arg("--advertises");
    }
    if vnic.dhcp_client {
        launch.arg("--dhcp-client");
    }
    if let Some(link) = vnic.guest {
        launch.arg("--guest").arg(link.name());
    }
}

/// Makes the program of a gateway's file, and gives it to the core by standard input; confined, but for the
/// layers in `without`. Of files it can read those in the folder of the gateway's file and below, and no
/// other.
pub(super) fn compile_for_core(file: &Path, without: &[Layer]) -> Result<(), Failure> {
    let entered = enter_to_compile(file, without)?;
    let failed = |error: io::Error| Failure::Finding(format!("the core: {error}"));
    let mut core = standard_input().map_err(failed)?;
    entered.lock().map_err(missing)?;
    // Whoever reads it need not be at a terminal.
    let refused = |text: String| CompileMessage::Refused(anstream::adapter::strip_str(&text).to_string());
    core.send(&compiled(file).unwrap_or_else(refused), &[]).map_err(failed)
}

/// Finds out in the same way whether there is a program, and tells why there is none.
pub(super) fn try_to_compile(file: &Path, without: &[Layer]) -> Result<(), Failure> {
    enter_to_compile(file, without)?.lock().map_err(missing)?;
    compiled(file).map(drop).map_err(|text| {
        // A confined process may not ask whether it speaks to a terminal.
        told(&anstream::adapter::strip_str(&text).to_string());
        Failure::Told
    })
}

/// The failure for want of a layer.
fn missing(missing: Missing) -> Failure {
    Failure::Finding(missing.to_string())
}

/// Confines this process to the folder of the gateway's file, which is its working directory then.
fn enter_to_compile(file: &Path, without: &[Layer]) -> Result<Entered, Failure> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    confinement::enter_to_read(folder, without).map_err(missing)
}

/// What the core is given, or why there is nothing. The folder of the file is the working directory.
fn compiled(file: &Path) -> Result<CompileMessage, String> {
    let file = Path::new(file.file_name().unwrap_or_default());
    let config = read(file).map_err(|error| error.to_string())?;
    if config.trust.is_some() {
        // Nobody looks into it before the core has found its signatures right.
        let bundle = files::read(&config.program, LONGEST_BUNDLE as u64)
            .map_err(|error| format!("cannot read {}: {error}", config.program.display()))?;
        return Ok(CompileMessage::Bundle(bundle));
    }
    let filled = filled_program(file, &config, None, &mut Allowance::to_load())?;
    let suits = config.workers.suit(&filled.program);
    suits.map_err(|error| format!("{}: {error}", file.display()))?;
    filled.policies.iter().try_for_each(tested)?;
    let text = print(&filled.program);
    if text.len() > LONGEST_BUNDLE {
        return Err(format!(
            "the program and its entries are {} bytes long as the core is given them, and may be {LONGEST_BUNDLE}: give its tables fewer entries",
            text.len()
        ));
    }
    Ok(CompileMessage::Program(text))
}

/// Answers at the control socket that standard output is, by what the core at the other end of standard input
/// tells; confined, but for the layers in `without`. With `fronts`, those that are handed over are answered,
/// too, and with `metrics`, whoever asks for metrics; `routing` has the gateway's addresses and routes.
pub(super) fn control_for_core(
    without: &[Layer],
    fronts: bool,
    metrics: bool,
    routing: Option<&str>,
) -> Result<(), Failure> {
    let settings = routing.map(serde_json::from_str::<RoutingSettings>).transpose();
    let settings = settings.map_err(|error| Failure::Finding(format!("addresses and routes: {error}")))?;
    let routing = settings.map(|settings| ConfinedRouting { settings, told });
    let failed = |error: io::Error| Failure::Finding(format!("the control socket: {error}"));
    let entered = confinement::enter(Role::Control, without).map_err(missing)?;
    let mut core = standard_input().map_err(failed)?;
    let mut handed_over = |what| supplied(&mut core, what);
    let fronts = fronts.then(|| handed_over(ControlSupply::Fronts)).transpose()?.map(Channel::of);
    let metrics = metrics.then(|| handed_over(ControlSupply::Metrics)).transpose()?.map(TcpListener::from);
    let listener = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
    entered.lock().map_err(missing)?;
    // `launch` starts another process, with a channel to the core of then.
    let gone = || process::exit(0);
    let duties = ControlDuties { fronts, metrics, routing };
    beside_core::serve(&UnixListener::from(listener), core, duties, gone).map_err(failed)
}

/// Tells the operator something; `launch` says whose words they are.
fn told(words: &str) {
    // Where nobody reads it, nothing is to be done.
    let _ = writeln!(io::stderr(), "{words}");
}

/// What `launch` hands over: it comes by the channel to the core, before the core has the other end.
fn supplied(core: &mut Channel, what: ControlSupply) -> Result<OwnedFd, Failure> {
    let failed = |why: String| Failure::Finding(format!("what `launch` hands over: {why}"));
    let supplied =
        core.receive::<ControlSupply>(LONGEST_SUPPLY).map_err(|error| failed(error.to_string()))?;
    match supplied {
        Some((supply, mut descriptors)) if supply == what => descriptors.pop(),
        _ => None,
    }
    .ok_or_else(|| failed(format!("{what:?} is missing")))
}

/// The channel that standard input is.
fn standard_input() -> io::Result<Channel> {
    Ok(Channel::of(io::stdin().as_fd().try_clone_to_owned()?))
}
