//! What else leads from an initiator to a host behind its carrier's NAT: the kernel's routing alone, an nft
//! map over VXLAN, the same over WireGuard in user space, and rathole's forwarded ports.
//!
//! A way whose programs are not installed is left out, and its rows say so.

use super::SERVICE;
use crate::hosted::Daemon;
use rig::{Namespace, SmallInternet};
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// The address at which the waypoint is asked for the host.
const SHARED: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// A way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherWay {
    Routing,
    Vxlan,
    Boringtun,
    WireguardGo,
    Rathole,
}

impl OtherWay {
    pub(super) const ALL: [OtherWay; 5] =
        [OtherWay::Routing, OtherWay::Vxlan, OtherWay::Boringtun, OtherWay::WireguardGo, OtherWay::Rathole];

    pub(super) fn name(self) -> &'static str {
        match self {
            OtherWay::Routing => "Linux routing, the same hops",
            OtherWay::Vxlan => "nft map over VXLAN, unencrypted",
            OtherWay::Boringtun => "nft map over boringtun",
            OtherWay::WireguardGo => "nft map over wireguard-go",
            OtherWay::Rathole => "rathole with Noise",
        }
    }
}

/// A way at work; it ends when it is dropped.
pub(super) struct Running {
    /// Where the initiator reaches the host.
    pub(super) address: Ipv4Addr,
    _processes: Vec<Daemon>,
}

impl Running {
    /// Starts it.
    pub(super) fn start(way: OtherWay, internet: &SmallInternet, folder: &Path) -> Result<Running, String> {
        ends(internet)?;
        let mut processes = Vec::new();
        match way {
            OtherWay::Routing => {
                routing(internet)?;
                let address = SmallInternet::host_address(0);
                return Ok(Running { address, _processes: processes });
            }
            OtherWay::Vxlan => {
                vxlan(internet)?;
                tunnelled(internet, "vx")?;
            }
            OtherWay::Boringtun => {
                processes = wireguard(internet, folder, "boringtun-cli", &["--disable-drop-privileges"])?;
                tunnelled(internet, "wg")?;
            }
            OtherWay::WireguardGo => {
                processes = wireguard(internet, folder, "wireguard-go", &[])?;
                tunnelled(internet, "wg")?;
            }
            OtherWay::Rathole => processes = rathole(internet, folder)?,
        }
        Ok(Running { address: SHARED, _processes: processes })
    }
}

/// Runs lines of a shell in a network.
fn run(network: &Namespace, lines: &str) -> Result<(), String> {
    let output = network.run("sh", &["-ec", lines], "").map_err(|error| format!("sh: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// Addresses for the two interfaces that have none, and forwarding.
fn ends(internet: &SmallInternet) -> Result<(), String> {
    for (network, interface, address) in [
        (&internet.waypoint, "public", format!("{SHARED}/27")),
        (&internet.gateway, "lan", format!("{}/24", SmallInternet::LAN_GATEWAY)),
    ] {
        run(
            network,
            &format!(
                "ip address add {address} dev {interface}\n\
                 for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $file; done\n\
                 echo 1 > /proc/sys/net/ipv4/ip_forward"
            ),
        )?;
    }
    run(&internet.router, "for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $file; done")?;
    // Answers leave the waypoint where questions come in.
    run(&internet.waypoint, "ip route add 203.0.113.0/24 via 198.51.100.30 dev public")
}

/// Each packet takes the way by the waypoint, there and back, and nobody translates.
fn routing(internet: &SmallInternet) -> Result<(), String> {
    run(
        &internet.router,
        "ip route add 10.0.0.0/24 via 192.0.2.50\n\
         ip rule add iif initiator0 lookup 100\nip route add 10.0.0.0/24 via 198.51.100.1 table 100\n\
         ip rule add iif carrier lookup 101\nip route add 203.0.113.0/28 via 192.0.2.34 table 101",
    )?;
    run(&internet.waypoint, "ip route add 10.0.0.0/24 via 192.0.2.33")?;
    run(&internet.carrier, "ip route add 10.0.0.0/24 via 100.64.0.2")
}

fn vxlan(internet: &SmallInternet) -> Result<(), String> {
    let end = |own: &str, other: &str, inside: &str| {
        format!(
            "ip link add vx type vxlan id 7 dstport 4789 local {own} remote {other}\n\
             ip address add {inside}/30 dev vx\nip link set vx up"
        )
    };
    let machine = SmallInternet::WAYPOINT_MACHINE.to_string();
    run(&internet.waypoint, &end(&machine, &SmallInternet::CARRIER.to_string(), "172.31.0.1"))?;
    run(&internet.gateway, &end(&SmallInternet::GATEWAY_MACHINE.to_string(), &machine, "172.31.0.2"))?;
    run(
        &internet.carrier,
        "nft 'table ip inward {\n chain in {\n  type nat hook prerouting priority dstnat\n  \
         iifname public udp dport 4789 dnat to 100.64.0.2\n }\n}'",
    )
}

/// A map of initiators and addresses to hosts at the waypoint, as names has it, and routes by the tunnel.
fn tunnelled(internet: &SmallInternet, tunnel: &str) -> Result<(), String> {
    let rules = format!(
        "table ip names {{\n map bindings {{\n  type ipv4_addr . ipv4_addr : ipv4_addr\n  elements = {{ {} . {SHARED} : {} }}\n }}\n \
         chain in {{\n  type nat hook prerouting priority dstnat\n  iifname public dnat to ip saddr . ip daddr map @bindings\n }}\n}}\n",
        SmallInternet::initiator_address(0),
        SmallInternet::host_address(0)
    );
    let output =
        internet.waypoint.run("nft", &["-f", "-"], &rules).map_err(|error| format!("nft: {error}"))?;
    if !output.status.success() {
        return Err(format!("nft: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    run(&internet.waypoint, &format!("ip route add 10.0.0.0/24 via 172.31.0.2 dev {tunnel}"))?;
    run(
        &internet.gateway,
        &format!(
            "ip rule add iif lan lookup 100\nip route add default via 172.31.0.1 dev {tunnel} table 100"
        ),
    )
}

/// WireGuard in user space at both ends, by a program that makes the interface whose name it is given.
fn wireguard(
    internet: &SmallInternet,
    folder: &Path,
    program: &str,
    more: &[&str],
) -> Result<Vec<Daemon>, String> {
    installed(program, "--version")?;
    installed("wg", "--version")?;
    let mut keys = Vec::new();
    for role in ["waypoint", "gateway"] {
        let made = Command::new("wg").arg("genkey").output().map_err(|error| format!("wg: {error}"))?;
        let file = folder.join(role);
        fs::write(&file, &made.stdout).map_err(|error| error.to_string())?;
        let public = internet.waypoint.run("wg", &["pubkey"], &String::from_utf8_lossy(&made.stdout));
        let public = public.map_err(|error| format!("wg: {error}"))?.stdout;
        keys.push((file.display().to_string(), String::from_utf8_lossy(&public).trim().to_owned()));
    }
    let mut processes = Vec::new();
    let ends = [
        (&internet.waypoint, 0, "172.31.0.1", "10.0.0.0/24,172.31.0.2/32", "listen-port 51820", ""),
        (
            &internet.gateway,
            1,
            "172.31.0.2",
            "0.0.0.0/0",
            "",
            "endpoint 192.0.2.34:51820 persistent-keepalive 25",
        ),
    ];
    for (network, number, inside, allowed, own, peer) in ends {
        // The programs meet `wg` at a socket named after the interface, in a folder that they share.
        let mut command = network.command("unshare", None);
        let (secret, public) = (&keys[number].0, &keys[1 - number].1);
        let begin = format!(
            "mount -t tmpfs none /var/run\nmkdir /var/run/wireguard\n{program} --foreground {} wg &\n\
             for turn in $(seq 100); do wg show wg >/dev/null 2>&1 && break; sleep 0.05; done\n\
             wg set wg private-key {secret} {own} peer {public} allowed-ips {allowed} {peer}\n\
             ip address add {inside}/30 dev wg\nip link set wg mtu 1420 up\ntouch {}/ready{number}\nwait",
            more.join(" "),
            folder.display()
        );
        command.args(["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]);
        command.args(["sh", "-ec", &begin]);
        command.env("WG_I_PREFER_BUGGY_USERSPACE_TO_POLISHED_KMOD", "1");
        processes.push(Daemon::start(&mut command).map_err(|error| error.to_string())?);
    }
    for turn in 0..200 {
        if (0..2).all(|number| folder.join(format!("ready{number}")).exists()) {
            return Ok(processes);
        }
        // The first time it has just begun.
        thread::sleep(Duration::from_millis(if turn == 0 { 100 } else { 50 }));
    }
    Err(format!("{program} does not make its interfaces"))
}

fn rathole(internet: &SmallInternet, folder: &Path) -> Result<Vec<Daemon>, String> {
    installed("rathole", "--version")?;
    let made =
        Command::new("rathole").arg("--genkey").output().map_err(|error| format!("rathole: {error}"))?;
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    let mut keys = text.lines().filter(|line| line.len() == 44 && line.ends_with('='));
    let (Some(secret), Some(public)) = (keys.next(), keys.next()) else {
        return Err("rathole makes no keys".to_owned());
    };
    let services = |of: &dyn Fn(&str) -> String| {
        ["tcp", "udp"].map(|kind| {
            let address = of(kind);
            format!("services.{kind}]\ntype = \"{kind}\"\ntoken = \"measured\"\n{address}\n")
        })
    };
    let server = services(&|_| format!("bind_addr = \"{SHARED}:{SERVICE}\""));
    let client = services(&|_| format!("local_addr = \"{}:{SERVICE}\"", SmallInternet::host_address(0)));
    let texts = [
        format!(
            "[server]\nbind_addr = \"192.0.2.34:2333\"\n[server.transport]\ntype = \"noise\"\n\
             [server.transport.noise]\nlocal_private_key = \"{secret}\"\n[server.{}[server.{}",
            server[0], server[1]
        ),
        format!(
            "[client]\nremote_addr = \"192.0.2.34:2333\"\n[client.transport]\ntype = \"noise\"\n\
             [client.transport.noise]\nremote_public_key = \"{public}\"\n[client.{}[client.{}",
            client[0], client[1]
        ),
    ];
    let mut processes = Vec::new();
    for (text, (network, role)) in
        texts.iter().zip([(&internet.waypoint, "--server"), (&internet.gateway, "--client")])
    {
        let file = folder.join(format!("rathole{role}.toml"));
        fs::write(&file, text).map_err(|error| error.to_string())?;
        let mut command = network.command("rathole", None);
        command.arg(role).arg(file);
        processes.push(Daemon::start(&mut command).map_err(|error| error.to_string())?);
    }
    Ok(processes)
}

/// Whether a program can be started at all.
fn installed(program: &str, asked: &str) -> Result<(), String> {
    match Command::new(program).arg(asked).output() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("{program} is not installed")),
    }
}
