//! `ravelin naming init`: the keys and files of a waypoint, a gateway and a name server that know each other.

use crate::arguments::naming::InitArguments;
use crate::failure::Failure;
use crate::render;
use ports::live::tunnel::key_file;
use serde_json::json;
use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

const WAYPOINT_PROGRAM: &str = include_str!("../../../../../programs/waypoint.rav");
const GATEWAY_PROGRAM: &str = include_str!("../../../../../programs/names_gateway.rav");

/// Runs the command.
pub(super) fn run(wanted: &InitArguments, json: bool) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Finding(error.to_string());
    let [waypoint, gateway, name_server] =
        ["waypoint", "gateway", "name-server"].map(|role| wanted.directory.join(role));
    let own = wanted.name_server.map(|address| (address, &name_server));
    for folder in [&waypoint, &gateway].into_iter().chain(own.map(|(_, folder)| folder)) {
        fs::create_dir_all(folder)
            .map_err(|error| Failure::Finding(format!("{}: {error}", folder.display())))?;
    }
    let key = |path: &Path| {
        let public = key_file::make(path).map_err(|error| Failure::Finding(error.to_string()))?;
        Ok::<String, Failure>(public.to_string())
    };
    let of_waypoint = key(&waypoint.join("waypoint.key"))?;
    let of_gateway = key(&gateway.join("gateway.key"))?;
    let own = match own {
        Some((address, folder)) => Some((address, folder, key(&folder.join("name-server.key"))?)),
        None => None,
    };
    let known = own.as_ref().map(|(address, _, public)| NameServer { address: *address, public });
    let mut files: Vec<(PathBuf, String)> = vec![
        (waypoint.join("waypoint.toml"), waypoint_file(wanted, &of_gateway, known.as_ref())),
        (waypoint.join("waypoint.rav"), WAYPOINT_PROGRAM.to_owned()),
        (gateway.join("gateway.toml"), gateway_file(wanted, &of_waypoint, known.as_ref())),
        (gateway.join("names_gateway.rav"), GATEWAY_PROGRAM.to_owned()),
    ];
    if let Some((address, folder, _)) = own {
        let text = name_server_file(wanted, address, [&of_waypoint, &of_gateway]);
        files.push((folder.join("name-server.toml"), text));
    }
    for (path, text) in &files {
        write_new(path, text).map_err(failed)?;
    }
    if json {
        let paths: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
        return Ok(render::json(&json!({
            "files": paths,
            "waypoint": of_waypoint,
            "gateway": of_gateway,
            "name_server": known.map(|known| known.public),
        }))?);
    }
    Ok(render::text(&next(wanted))?)
}

/// Writes a file where there is none: what somebody has changed by hand is never lost.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path).map_err(told)?;
    file.write_all(text.as_bytes()).map_err(told)
}

/// Of a gateway where names are answered for.
const REGISTERS: &str = "# What it may register by itself, such as \"nas\", or all names below one.
names = [\"*.@\"]
";

/// A name server on a machine of its own.
struct NameServer<'a> {
    address: Ipv4Addr,
    public: &'a str,
}

impl NameServer<'_> {
    /// This peer of a tunnel, with this number there. It has no packets for anybody.
    fn peer(&self, number: u32, more: &str) -> String {
        format!(
            "\n[[port.peer]]\nname = \"ns1\"\nnumber = {number}\nkey = \"{}\"\npackets = false\n{more}",
            self.public
        )
    }
}

fn quoted(all: &[String]) -> String {
    let all: Vec<String> = all.iter().map(|one| format!("\"{one}\"")).collect();
    all.join(", ")
}

/// Where and for whom a name server answers.
fn answers(wanted: &InitArguments, address: Ipv4Addr) -> String {
    let clients = match &wanted.clients[..] {
        [] => String::new(),
        all => format!("clients = [{}]\n", quoted(all)),
    };
    format!("listen = [\"{address}:53\"]\n{clients}")
}

fn waypoint_file(wanted: &InitArguments, gateway: &str, name_server: Option<&NameServer<'_>>) -> String {
    let InitArguments { zone, machine, public, pool, router, lan_network, listen, .. } = wanted;
    let shared = wanted.shared.map(|address| format!("shared_address = \"{address}\"\n")).unwrap_or_default();
    let (known, unknown) = (quoted(&wanted.known), quoted(&wanted.unknown));
    let role = if name_server.is_some() { "" } else { "answers for the zone {zone} and " };
    let role = role.replace("{zone}", zone);
    let (answers, server) = match name_server {
        None => (answers(wanted, *machine), *machine),
        Some(elsewhere) => ("name_servers = [\"ns1\"]\n".to_owned(), elsewhere.address),
    };
    let peer = name_server.map(|elsewhere| elsewhere.peer(2, "")).unwrap_or_default();
    let registers = if name_server.is_some() { "" } else { REGISTERS };
    let pool6 =
        |key: &str| wanted.pool6.as_ref().map(|pool| format!("{key} = \"{pool}\"\n")).unwrap_or_default();
    let (set_pool6, network6) = (pool6("POOL6"), pool6("ipv6"));
    let lan_network6 =
        wanted.lan_network6.as_ref().map(|network| format!(", \"{network}\"")).unwrap_or_default();
    format!(
        "# The waypoint: it {role}owns the public addresses {pool}.
program = \"waypoint.rav\"
control = \"ravelin.sock\"

[set]
POOL = \"{pool}\"
OURS = \"{machine}/32\"
ROUTER = \"{router}\"
{set_pool6}
# Port 1: where the public addresses are.
[[port]]
interface = \"{public}\"
promiscuous = true

# Port 2: the tunnel to the others.
[[port]]
kind = \"tunnel\"
listen = \"{listen}\"
key = \"waypoint.key\"

[[port.peer]]
name = \"home\"
number = 1
key = \"{gateway}\"
{peer}
[names]
zone = \"{zone}\"
{answers}{shared}
[[names.server]]
name = \"ns1\"
addresses = [\"{server}\"]

[[names.gateway]]
name = \"home\"
peer = 1
networks = [\"{lan_network}\"{lan_network6}]
{registers}
[names.waypoint]
known = [{known}]
unknown = [{unknown}]
{network6}"
    )
}

fn name_server_file(wanted: &InitArguments, address: Ipv4Addr, [waypoint, gateway]: [&str; 2]) -> String {
    let InitArguments { zone, machine, lan_network, listen, .. } = wanted;
    let (answers, endpoint) =
        (answers(wanted, address), SocketAddr::new(IpAddr::V4(*machine), listen.port()));
    format!(
        "# The name server: it answers for the zone {zone} and asks the waypoint for addresses.
control = \"ravelin.sock\"

[names]
zone = \"{zone}\"
waypoints = [\"waypoint\"]
{answers}
[[names.server]]
name = \"ns1\"
addresses = [\"{address}\"]

[[names.gateway]]
name = \"home\"
networks = [\"{lan_network}\"]
{REGISTERS}
# Control messages of the waypoint and of the gateway; no packets.
[tunnel]
listen = \"{listen}\"
key = \"name-server.key\"

[[tunnel.peer]]
name = \"waypoint\"
number = 1
key = \"{waypoint}\"
endpoint = \"{endpoint}\"

[[tunnel.peer]]
name = \"home\"
number = 2
key = \"{gateway}\"
"
    )
}

fn gateway_file(wanted: &InitArguments, waypoint: &str, name_server: Option<&NameServer<'_>>) -> String {
    let InitArguments { zone, machine, lan, lan_address, lan_network, listen, .. } = wanted;
    let endpoint = SocketAddr::new(IpAddr::V4(*machine), listen.port());
    let peer = name_server.map(|elsewhere| {
        let at = SocketAddr::new(IpAddr::V4(elsewhere.address), listen.port());
        elsewhere.peer(2, &format!("endpoint = \"{at}\"\n"))
    });
    let peer = peer.unwrap_or_default();
    let of_ipv6 = match (&wanted.lan_network6, &wanted.lan_address6) {
        (Some(network), Some(address)) => format!("NETWORK6 = \"{network}\"\nADDRESS6 = \"{address}\"\n"),
        _ => String::new(),
    };
    format!(
        "# The gateway: it dials the waypoint of {zone}, and is the default route of the hosts.
program = \"names_gateway.rav\"
control = \"ravelin.sock\"

[set]
NETWORK = \"{lan_network}\"
ADDRESS = \"{lan_address}\"
{of_ipv6}
# Port 1: the tunnel to the waypoint.
[[port]]
kind = \"tunnel\"
listen = \"{listen}\"
key = \"gateway.key\"

[[port.peer]]
name = \"waypoint\"
number = 1
key = \"{waypoint}\"
endpoint = \"{endpoint}\"
{peer}
# Port 2: the network of the hosts.
[[port]]
interface = \"{lan}\"
promiscuous = true
"
    )
}

fn next(wanted: &InitArguments) -> String {
    let directory = wanted.directory.display();
    let InitArguments { zone, machine, lan_address, name_server, .. } = wanted;
    let six = wanted.lan_address6.map(|address| format!(", of IPv6 to {address}")).unwrap_or_default();
    let (answers, at) = match name_server {
        None => (machine, "waypoint"),
        Some(address) => (address, "name server"),
    };
    let copy = |folder: &str, to: &str, file: &str| {
        format!(
            "Copy {directory}/{folder} to {to}, and there:\n     cd {folder} && ravelin serve {file}.toml"
        )
    };
    let mut steps = vec![
        copy("waypoint", "the machine with the public addresses", "waypoint"),
        copy("gateway", "a machine in the network of the hosts", "gateway"),
        format!("At the hosts, let the default route lead to {lan_address}{six}."),
        format!("Where the zone above {zone} is: delegate {zone} to ns1.{zone}, {answers}."),
        format!(
            "At the {at}, in its folder, give a host a name:
     ravelin names add nas --gateway home --address ADDRESS --service tcp/22 --control ravelin.sock"
        ),
    ];
    if let Some(address) = name_server {
        let machine = format!("the machine with the address {address}");
        steps.insert(2, copy("name-server", &machine, "name-server"));
    }
    let steps: Vec<String> = (1..).zip(steps).map(|(number, step)| format!("{number}. {step}\n")).collect();
    format!("Made folders in {directory}, each with a key that only you may read.\n\n{}", steps.concat())
}
