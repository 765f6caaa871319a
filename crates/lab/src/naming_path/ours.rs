//! The waypoint and the gateway of the product between an initiator and a host, from the files that
//! `ravelin naming init` writes.

use super::SERVICE;
use crate::hosted::{Daemon, START, until};
use crate::naming_demo::parties::{ZONE, ethernet, label, name, succeeded};
use rig::{Namespace, SmallInternet};
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Both at work; they end when this is dropped.
pub(super) struct Ours {
    /// Where the initiator reaches the host.
    pub(super) address: Ipv4Addr,
    processes: [Daemon; 2],
}

impl Ours {
    /// Starts both and gives the host a name.
    pub(super) fn start(internet: &SmallInternet, folder: &Path) -> Result<Ours, String> {
        let system = |error: io::Error| error.to_string();
        let binary = std::env::current_exe().map_err(system)?;
        let machine = SmallInternet::WAYPOINT_MACHINE.to_string();
        let mut init = Command::new(&binary);
        init.args(["naming", "init"]).arg(folder).args(["--zone", ZONE, "--machine", &machine]);
        init.args(["--public", "public", "--pool", "198.51.100.0/28", "--known", "198.51.100.2/31"]);
        init.args(["--clients", "203.0.113.0/24", "--router", &ethernet(rig::ROUTER_ETHERNET)]);
        init.args(["--lan", "lan", "--lan-address", &SmallInternet::LAN_GATEWAY.to_string()]);
        init.args(["--lan-network", "10.0.0.0/24"]);
        succeeded("ravelin naming init", &init.output().map_err(system)?).map_err(system)?;
        let waypoint = serve(&binary, &internet.waypoint, folder, "waypoint")?;
        let gateway = serve(&binary, &internet.gateway, folder, "gateway")?;
        let mut add = internet.waypoint.command(&binary, None);
        add.args(["names", "add", &label(0), "--gateway", "home", "--ipv4", "per-initiator"]);
        add.args(["--address", &SmallInternet::host_address(0).to_string(), "--control"]);
        add.arg(socket(folder, "waypoint"));
        for protocol in ["tcp", "udp"] {
            add.args(["--service", &format!("{protocol}/{SERVICE}")]);
        }
        succeeded("ravelin names add", &add.output().map_err(system)?).map_err(system)?;
        let mut ours = Ours { address: Ipv4Addr::UNSPECIFIED, processes: [waypoint, gateway] };
        ours.address = until(START, "the host's name leads to an address", || ours.ask(internet).ok())?;
        Ok(ours)
    }

    /// Lets the initiator ask for the host's name.
    pub(super) fn ask(&self, internet: &SmallInternet) -> Result<Ipv4Addr, String> {
        let server = format!("@{}", SmallInternet::WAYPOINT_MACHINE);
        let asked =
            internet.initiators[0].run("dig", &[&server, "+short", "+tries=1", "+time=4", &name(0)], "");
        let asked = asked.map_err(|error| format!("dig: {error}"))?;
        let text = String::from_utf8_lossy(&asked.stdout);
        text.trim().parse().map_err(|_| format!("the host's name leads nowhere: {}", text.trim()))
    }

    /// What both processes have been on processors.
    pub(super) fn busy(&self) -> Duration {
        self.processes.iter().map(Daemon::busy).sum()
    }
}

fn socket(folder: &Path, role: &str) -> PathBuf {
    folder.join(role).join("ravelin.sock")
}

/// Starts one of them, and returns when it answers.
fn serve(binary: &Path, network: &Namespace, folder: &Path, role: &str) -> Result<Daemon, String> {
    let mut command = network.command(binary, None);
    command
        .args(["serve", "--one-process"])
        .arg(folder.join(role).join(format!("{role}.toml")))
        .current_dir(folder.join(role));
    let process = Daemon::start(&mut command).map_err(|error| error.to_string())?;
    until(START, &format!("the {role} answers"), || {
        let mut asked = network.command(binary, None);
        asked.args(["show", "run", "--total", "--control"]).arg(socket(folder, role));
        asked.output().ok()?.status.success().then_some(())
    })?;
    Ok(process)
}
