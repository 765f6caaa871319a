//! A gateway of several processes, whose packets run in a confined one; and the two commands that other
//! processes of such a gateway are.

use crate::allowance::Allowance;
use crate::arguments::{CompileForCoreArguments, ControlForCoreArguments};
use crate::commands::as_started::AsStarted;
use crate::commands::doctor_trust::is_executable;
use crate::commands::front::read as read_key;
use crate::commands::policy::review::tested;
use crate::commands::processes::never_one;
use crate::commands::serve::{FilledProgram, filled_program, read};
use crate::failure::Failure;
use confinement::{Entered, Layer, Missing, Role};
use gateway::Config;
use gateway::beside_core::{self, ConfinedRouting, ControlDuties, OneProcess};
use gateway::routing::{PortSettings, RoutingSettings};
use ir::print::print;
use messages::Channel;
use messages::compile::CompileMessage;
use messages::front::ControlSupply;
use messages::limits::{LONGEST_BUNDLE, LONGEST_SUPPLY, MOST_ADDRESSES, MOST_TUNNEL_PEERS};
use ports::files;
use ports::live::handed_over::can_be_handed_over;
use ports::live::{MOST_SHARING, PortKind, TunnelWishes, WantedPort};
use std::io::{self, Write};
use std::net::{IpAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::{env, fs};

/// The programs that lie beside `ravelin`.
const LAUNCH: &str = "ravelin-launch";
const CORE: &str = "ravelin-core";
const FRONT: &str = "ravelin-front";
const VHOST: &str = "ravelin-vhost";
const TUNNEL: &str = "ravelin-tunnel";

/// Becomes `ravelin-launch`, which starts the processes of this gateway; its core runs machine code if it is
/// to be `native`.
pub(super) fn serve(file: &Path, native: bool, without: &[Layer]) -> Result<(), Failure> {
    let finding = |text: String| Failure::Finding(format!("{}: {text}", file.display()));
    // The process that reads it has another working directory.
    let real = fs::canonicalize(file).map_err(|error| finding(error.to_string()))?;
    let config = read(&real)?;
    let never_one = never_one(&config);
    suits(&real, &config).map_err(|why| match never_one {
        Some(_) => finding(why),
        None => finding(format!("{why}; change that, or have it run with `--one-process`")),
    })?;
    let ravelin = env::current_exe().map_err(|error| finding(error.to_string()))?;
    let beside = |name: &str| beside(&ravelin, name).map_err(finding);
    let mut launch = Command::new(beside(LAUNCH)?);
    launch.arg("--core").arg(beside(if native { "ravelin-core-native" } else { CORE })?);
    if native {
        launch.arg("--native");
    }
    for layer in without {
        launch.arg("--without").arg(layer.name());
    }
    if let Some(front) = &config.front {
        // A front without a key would be started again and again.
        read_key(&front.key)?;
        launch.arg("--front").arg(beside(FRONT)?);
    }
    if vhosts(&config) > 0 {
        launch.arg("--vhost").arg(beside(VHOST)?);
    }
    for tunnel in tunnels(&config) {
        // Its process would be started again and again.
        tunnel.secrets().map_err(|error| finding(error.to_string()))?;
    }
    if tunnels(&config).next().is_some() {
        launch.arg("--tunnel").arg(beside(TUNNEL)?);
    }
    launch.arg("--ravelin").arg(&ravelin).arg("--file").arg(&real);
    let folder = real.parent().unwrap_or(Path::new("/"));
    let started = AsStarted::of(&config, folder).map_err(finding)?;
    launch.args(started.arguments()).arg("--as-started").arg(started.digest());
    told(&several(&config, native, without));
    // It comes back only where it could not begin.
    Err(finding(format!("ravelin-launch cannot be started: {}", launch.exec())))
}

/// What a gateway of several processes says of that.
fn several(config: &Config, native: bool, without: &[Layer]) -> String {
    let count = 4 + usize::from(config.front.is_some()) + vhosts(config) + tunnels(config).count();
    let mut text = format!(
        "several processes, {count} of them: whoever takes over one of them has the rights of this part and no others"
    );
    if !without.is_empty() {
        let names: Vec<_> = without.iter().map(|layer| layer.name()).collect();
        text += &format!(", as far as that holds without {}", names.join(", "));
    }
    if config.trust.is_none() {
        text += match native {
            true => "; its tables take no changes from outside",
            false => "; it runs bytecode, and its tables take no changes from outside",
        };
        text += match (never_one(config), native) {
            (Some(_), _) => "",
            (None, true) => ": with `--one-process` they do",
            (None, false) => ": `--one-process` has machine code and such changes",
        };
    }
    text
}

/// The program of this name beside `ravelin`.
///
/// # Errors
/// It is not there, or cannot be executed.
fn beside(ravelin: &Path, name: &str) -> Result<PathBuf, String> {
    let path = ravelin.with_file_name(name);
    is_executable(&path).then_some(path).ok_or_else(|| {
        format!(
            "the program `{name}` is not beside {}, or cannot be executed: `cargo build --release -p {name}` makes it",
            ravelin.display()
        )
    })
}

/// Whether the programs lie beside `ravelin` that a gateway of this file needs, without machine code.
///
/// # Errors
/// One of them does not.
pub(super) fn programs(ravelin: &Path, config: &Config) -> Result<(), String> {
    let needed = [
        (true, LAUNCH),
        (true, CORE),
        (config.front.is_some(), FRONT),
        (vhosts(config) > 0, VHOST),
        (tunnels(config).next().is_some(), TUNNEL),
    ];
    let mut needed = needed.into_iter().filter(|(is_needed, _)| *is_needed);
    needed.try_for_each(|(_, name)| beside(ravelin, name).map(drop))
}

/// The ports that are tunnels.
fn tunnels(config: &Config) -> impl Iterator<Item = &TunnelWishes> {
    config.ports.iter().filter_map(|port| port.tunnel.as_ref())
}

/// How many ports are linked to virtual machines by vhost-user.
fn vhosts(config: &Config) -> usize {
    config.ports.iter().filter(|port| port.is_by_vhost()).count()
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
        Some(format!("port {} cannot be had with several processes yet: {what}", port.name()))
    };
    let peers: usize = tunnels(config).map(|tunnel| tunnel.peers.len()).sum();
    if peers > MOST_TUNNEL_PEERS {
        return Some(format!(
            "its tunnels have {peers} peers, and with several processes there can be {MOST_TUNNEL_PEERS}"
        ));
    }
    let sharing = config.ports.iter().filter(|port| port.kind == PortKind::AfXdp).count();
    if sharing > MOST_SHARING {
        return Some(format!(
            "{sharing} of its ports are of kind \"af_xdp\", and with several processes there can be {MOST_SHARING}"
        ));
    }
    let asked = asked.iter().find(|(is_asked, _)| *is_asked);
    let asked = asked.map(|(_, what)| format!("{what} cannot be had with several processes yet"));
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
            "addresses and routes can be had with several processes only beside `[trust]`, whose policies give the rights for them"
                .to_owned(),
        );
    }
    let lacks = |(settings, port): (&PortSettings, &WantedPort)| {
        if settings.host_interface.is_some() {
            return Some(format!(
                "port {} cannot have `host = true` with several processes yet",
                port.name()
            ));
        }
        for (family, of_family) in
            [("IPv4", IpAddr::is_ipv4 as fn(&IpAddr) -> bool), ("IPv6", IpAddr::is_ipv6)]
        {
            let count = settings.addresses.iter().filter(|own| of_family(&own.address)).count();
            if count > MOST_ADDRESSES {
                return Some(format!(
                    "port {} cannot have {count} addresses of {family} with several processes: {MOST_ADDRESSES} at most",
                    port.name()
                ));
            }
        }
        let is_other =
            !matches!(port.kind, PortKind::AfPacket | PortKind::AfXdp) && !settings.addresses.is_empty();
        is_other.then(|| {
            format!(
                "port {} cannot have addresses with several processes yet: it is neither of kind \"af_packet\" nor \"af_xdp\"",
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
    suits_signed(config)?;
    let real = fs::canonicalize(file).map_err(|error| error.to_string())?;
    lies_together(&real, config)
}

/// Whether a file with `[trust]` leaves to a signed policy what only that can say.
fn suits_signed(config: &Config) -> Result<(), String> {
    if config.trust.is_none() {
        return Ok(());
    }
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
                "{} lies outside of {}: of several processes, the one that compiles reads nothing else than this folder: put the file there",
                path.display(),
                folder.display()
            ));
        }
    }
    Ok(())
}

/// Makes the program of a gateway's file, and gives it to the core by standard input; confined, but for the
/// layers that are to be done without. Of files it can read those in the folder of the gateway's file and
/// below, and no other.
pub(super) fn compile_for_core(arguments: &CompileForCoreArguments) -> Result<(), Failure> {
    let entered = enter_to_compile(arguments)?;
    if arguments.trial {
        entered.lock().map_err(missing)?;
        return compiled(arguments).map(drop).map_err(|text| {
            // A confined process may not ask whether it speaks to a terminal.
            told(&anstream::adapter::strip_str(&text).to_string());
            Failure::Told
        });
    }
    let failed = |error: io::Error| Failure::Finding(format!("the core: {error}"));
    let mut core = standard_input().map_err(failed)?;
    entered.lock().map_err(missing)?;
    // Whoever reads it need not be at a terminal.
    let refused = |text: String| CompileMessage::Refused(anstream::adapter::strip_str(&text).to_string());
    core.send(&compiled(arguments).unwrap_or_else(refused), &[]).map_err(failed)
}

/// The failure for want of a layer.
fn missing(missing: Missing) -> Failure {
    Failure::Finding(missing.to_string())
}

/// Confines this process to the folder of the gateway's file, which is its working directory then.
fn enter_to_compile(arguments: &CompileForCoreArguments) -> Result<Entered, Failure> {
    confinement::enter_to_read(folder_of(&arguments.file), &arguments.without).map_err(missing)
}

/// The folder of a file, whose path is absolute.
fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}

/// What the core is given, or why there is nothing. The folder of the file is the working directory.
fn compiled(arguments: &CompileForCoreArguments) -> Result<CompileMessage, String> {
    let file = Path::new(arguments.file.file_name().unwrap_or_default());
    let config = read(file).map_err(|error| error.to_string())?;
    if let Some(started) = &arguments.as_started {
        may_go_on(started, &config, folder_of(&arguments.file))
            .map_err(|why| format!("{}: {why}", file.display()))?;
    }
    if config.trust.is_some() {
        // Nobody looks into it before the core has found its signatures right.
        let bundle = files::read(&config.program, LONGEST_BUNDLE as u64)
            .map_err(|error| format!("cannot read {}: {error}", config.program.display()))?;
        return Ok(CompileMessage::Bundle(bundle));
    }
    let filled = program_of(file, &config)?;
    if arguments.tested {
        filled.policies.iter().try_for_each(tested)?;
    }
    let text = print(&filled.program);
    if text.len() > LONGEST_BUNDLE {
        return Err(format!(
            "the program and its entries are {} bytes long as the core is given them, and may be {LONGEST_BUNDLE}: give its tables fewer entries",
            text.len()
        ));
    }
    Ok(CompileMessage::Program(text))
}

/// Whether a gateway that runs can go on with a file that is read again, by the digest of what it was started
/// with.
fn may_go_on(started: &str, config: &Config, folder: &Path) -> Result<(), String> {
    let other = AsStarted::of(config, folder)?.other_than(started)?;
    let lacks = lacking(config).map_or(Ok(()), Err);
    match other.is_empty() {
        true => lacks.and_then(|()| suits_signed(config)),
        false => Err(format!(
            "other {} than the gateway runs with: stop it and start it anew to have them",
            other.join(", ")
        )),
    }
}

/// The program of a file that names one, with its entries.
///
/// # Errors
/// It is wrong, or does not suit the gateway's workers.
pub(super) fn program_of(file: &Path, config: &Config) -> Result<FilledProgram, String> {
    let filled = filled_program(file, config, None, &mut Allowance::to_load())?;
    let suits = config.workers.suit(&filled.program);
    suits.map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(filled)
}

/// Answers at the control socket that standard output is, by what the core at the other end of standard input
/// tells; confined, but for the layers that are to be done without. Fronts and whoever asks for metrics are
/// answered, too, if that is said.
pub(super) fn control_for_core(arguments: &ControlForCoreArguments) -> Result<(), Failure> {
    let &ControlForCoreArguments { ref without, fronts, metrics, ref routing, routes, never_one } = arguments;
    let settings = routing.as_deref().map(serde_json::from_str::<RoutingSettings>).transpose();
    let settings = settings.map_err(|error| Failure::Finding(format!("addresses and routes: {error}")))?;
    let failed = |error: io::Error| Failure::Finding(format!("the control socket: {error}"));
    let entered = confinement::enter(Role::Control, without).map_err(missing)?;
    let mut core = standard_input().map_err(failed)?;
    let mut handed_over = |what| supplied(&mut core, what);
    let fronts = fronts.then(|| handed_over(ControlSupply::Fronts)).transpose()?.map(Channel::of);
    let metrics = metrics.then(|| handed_over(ControlSupply::Metrics)).transpose()?.map(TcpListener::from);
    let container = routes.then(|| handed_over(ControlSupply::Routes)).transpose()?;
    let routing = settings.map(|settings| ConfinedRouting { settings, container, told });
    let listener = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
    entered.lock().map_err(missing)?;
    // `launch` starts another process, with a channel to the core of then.
    let gone = || process::exit(0);
    let one_process = if never_one { OneProcess::Never } else { OneProcess::Possible };
    let duties = ControlDuties { fronts, metrics, routing, one_process };
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
