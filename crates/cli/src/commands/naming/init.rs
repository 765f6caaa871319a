//! `ravelin naming init`: the keys and files of a waypoint and of a gateway that know each other.

use crate::arguments::naming::InitArguments;
use crate::failure::Failure;
use crate::render;
use ports::live::tunnel::key_file;
use serde_json::json;
use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

const WAYPOINT_PROGRAM: &str = include_str!("../../../../../programs/waypoint.rav");
const GATEWAY_PROGRAM: &str = include_str!("../../../../../programs/names_gateway.rav");

/// Runs the command.
pub(super) fn run(wanted: &InitArguments, json: bool) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Finding(error.to_string());
    let [waypoint, gateway] = ["waypoint", "gateway"].map(|role| wanted.directory.join(role));
    for folder in [&waypoint, &gateway] {
        fs::create_dir_all(folder)
            .map_err(|error| Failure::Finding(format!("{}: {error}", folder.display())))?;
    }
    let key = |path: &Path| {
        let public = key_file::make(path).map_err(|error| Failure::Finding(error.to_string()))?;
        Ok::<String, Failure>(public.to_string())
    };
    let of_waypoint = key(&waypoint.join("waypoint.key"))?;
    let of_gateway = key(&gateway.join("gateway.key"))?;
    let files = [
        (waypoint.join("waypoint.toml"), waypoint_file(wanted, &of_gateway)),
        (waypoint.join("waypoint.rav"), WAYPOINT_PROGRAM.to_owned()),
        (gateway.join("gateway.toml"), gateway_file(wanted, &of_waypoint)),
        (gateway.join("names_gateway.rav"), GATEWAY_PROGRAM.to_owned()),
    ];
    for (path, text) in &files {
        write_new(path, text).map_err(failed)?;
    }
    if json {
        let paths: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
        return Ok(render::json(&json!({
            "files": paths,
            "waypoint": of_waypoint,
            "gateway": of_gateway,
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

fn waypoint_file(wanted: &InitArguments, gateway: &str) -> String {
    let InitArguments { zone, machine, public, pool, router, lan_network, listen, .. } = wanted;
    let quoted = |all: &[String]| {
        let all: Vec<String> = all.iter().map(|one| format!("\"{one}\"")).collect();
        all.join(", ")
    };
    let shared = wanted.shared.map(|address| format!("shared_address = \"{address}\"\n")).unwrap_or_default();
    let clients = match &wanted.clients[..] {
        [] => String::new(),
        all => format!("clients = [{}]\n", quoted(all)),
    };
    let (known, unknown) = (quoted(&wanted.known), quoted(&wanted.unknown));
    let name_server = SocketAddr::new(IpAddr::V4(*machine), 53);
    let pool6 =
        |key: &str| wanted.pool6.as_ref().map(|pool| format!("{key} = \"{pool}\"\n")).unwrap_or_default();
    let (set_pool6, network6) = (pool6("POOL6"), pool6("ipv6"));
    let lan_network6 =
        wanted.lan_network6.as_ref().map(|network| format!(", \"{network}\"")).unwrap_or_default();
    format!(
        "# The waypoint: it answers for the zone {zone} and owns the public addresses {pool}.
program = \"waypoint.rav\"
control = \"ravelin.sock\"

[set]
POOL = \"{pool}\"
ROUTER = \"{router}\"
{set_pool6}
# Port 1: where the public addresses are.
[[port]]
interface = \"{public}\"
promiscuous = true

# Port 2: the tunnel to the gateways.
[[port]]
kind = \"tunnel\"
listen = \"{listen}\"
key = \"waypoint.key\"

[[port.peer]]
name = \"home\"
number = 1
key = \"{gateway}\"

[names]
listen = [\"{name_server}\"]
zone = \"{zone}\"
{shared}{clients}
[[names.server]]
name = \"ns1\"
addresses = [\"{machine}\"]

[[names.gateway]]
name = \"home\"
peer = 1
networks = [\"{lan_network}\"{lan_network6}]
# What it may register by itself, such as \"nas\", or all names below one.
names = [\"*.@\"]

[names.waypoint]
known = [{known}]
unknown = [{unknown}]
{network6}"
    )
}

fn gateway_file(wanted: &InitArguments, waypoint: &str) -> String {
    let InitArguments { zone, machine, lan, lan_address, lan_network, listen, .. } = wanted;
    let endpoint = SocketAddr::new(IpAddr::V4(*machine), listen.port());
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

# Port 2: the network of the hosts.
[[port]]
interface = \"{lan}\"
promiscuous = true
"
    )
}

fn next(wanted: &InitArguments) -> String {
    let directory = wanted.directory.display();
    let InitArguments { zone, machine, lan_address, .. } = wanted;
    let six = wanted.lan_address6.map(|address| format!(", of IPv6 to {address}")).unwrap_or_default();
    format!(
        "Made {directory}/waypoint and {directory}/gateway, each with a key that only you may read.

1. Copy {directory}/waypoint to the machine with the public addresses, and there:
     cd waypoint && ravelin serve waypoint.toml
2. Copy {directory}/gateway to a machine in the network of the hosts, and there:
     cd gateway && ravelin serve gateway.toml
3. At the hosts, let the default route lead to {lan_address}{six}.
4. Where the zone above {zone} is: delegate {zone} to ns1.{zone}, {machine}.
5. At the waypoint, in its folder, give a host a name:
     ravelin names add nas --gateway home --address ADDRESS --service tcp/22 --control ravelin.sock
"
    )
}
