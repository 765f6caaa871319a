//! A gateway at work between its hosts, what it says of itself, and what the system says of its process.

use super::traffic::Traffic;
use super::{Account, BEFORE, BEHIND, SoakPlan};
use crate::control_socket::ControlSocket;
use crate::forwarding::net::{CableOffloads, Net, Way};
use serde_json::Value;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a gateway may take to begin.
const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway between its hosts.
pub(super) struct Setting<'a> {
    plan: &'a SoakPlan,
    pub(super) net: Net,
    gateway: Child,
    socket: PathBuf,
    /// What host b's interface had counted before the first packet.
    before: u64,
}

impl Drop for Setting<'_> {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
    }
}

impl<'a> Setting<'a> {
    pub(super) fn start(plan: &'a SoakPlan, directory: &Path, program: &str) -> Result<Setting<'a>, String> {
        let system = |error: io::Error| error.to_string();
        let net = Net::new(Way::Switched, CableOffloads::On).map_err(system)?;
        let socket = directory.join("control.sock");
        let text = format!(
            "program = \"program.rav\"\ncontrol = {:?}\ncores = [{}]\n[[port]]\ninterface = \"to-a\"\n[[port]]\ninterface = \"to-b\"\n",
            socket.display().to_string(),
            plan.processors.1,
        );
        fs::write(directory.join("program.rav"), program).map_err(system)?;
        fs::write(directory.join("gateway.toml"), text).map_err(system)?;
        let mut command = net.gateway.command(&plan.binary, None);
        command.args(["serve", "--one-process"]).arg(directory.join("gateway.toml"));
        let gateway = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(system)?;
        let mut setting = Setting { plan, net, gateway, socket, before: 0 };
        let end = Instant::now() + PATIENCE;
        while let Err(error) = setting.control().and_then(|mut control| control.ask("picture")) {
            if Instant::now() > end {
                return Err(format!("the gateway does not begin: {error}"));
            }
            thread::sleep(Duration::from_millis(20));
        }
        setting.before = setting.arrived()?;
        Ok(setting)
    }

    pub(super) fn traffic(&self) -> Traffic<'_> {
        Traffic { net: &self.net, processor: self.plan.processors.0 }
    }

    pub(super) fn control(&self) -> io::Result<ControlSocket> {
        ControlSocket::connect(&self.socket)
    }

    /// How many frames host b has counted.
    fn arrived(&self) -> Result<u64, String> {
        self.net.arrived().map(|counters| counters.received).map_err(|error| error.to_string())
    }

    pub(super) fn account(&self, sent: u64) -> Result<Account, String> {
        let picture = self.control().and_then(|mut control| control.told("picture")).map_err(broken)?;
        let number = |place: &str| picture.pointer(place).and_then(Value::as_u64).unwrap_or(0);
        let sum = |place: &str| -> u64 {
            let all = picture.pointer(place).and_then(Value::as_object);
            all.into_iter().flat_map(|all| all.values()).filter_map(Value::as_u64).sum()
        };
        Ok(Account {
            sent,
            lost_before: lost(&picture, "/ports/0", &BEFORE),
            received: number("/report/received/packets"),
            forwarded: number("/report/forwarded/packets"),
            dropped: sum("/report/drops"),
            punted: sum("/report/punts"),
            transmitted: number("/report/ports/1/transmitted"),
            lost_behind: lost(&picture, "/ports/1", &BEHIND),
            arrived: self.arrived()? - self.before,
        })
    }

    /// The gateway's resident memory from a time on until it is told to stop, in KiB.
    pub(super) fn resident(&self, from: Duration, on: &AtomicBool) -> Result<RangeInclusive<u64>, String> {
        let path = format!("/proc/{}/status", self.gateway.id());
        let (start, mut least, mut most) = (Instant::now(), u64::MAX, 0);
        while on.load(Ordering::Relaxed) || most == 0 {
            thread::sleep(Duration::from_millis(200));
            if start.elapsed() < from && on.load(Ordering::Relaxed) {
                continue;
            }
            let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
            let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let now = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0);
            (least, most) = (least.min(now), most.max(now));
        }
        Ok(least..=most)
    }

    pub(super) fn descriptors(&self) -> Result<u64, String> {
        let path = format!("/proc/{}/fd", self.gateway.id());
        let entries = fs::read_dir(&path).map_err(|error| format!("{path}: {error}"))?;
        Ok(entries.count() as u64)
    }
}

/// What is wrong with a control socket.
pub(super) fn broken(error: io::Error) -> String {
    format!("control: {error}")
}

/// How many packets a part of a picture says were lost, by all of these names.
pub(super) fn lost(picture: &Value, place: &str, names: &[&str]) -> u64 {
    let named = |name: &&str| picture.pointer(&format!("{place}/{name}")).and_then(Value::as_u64);
    names.iter().filter_map(named).sum()
}
