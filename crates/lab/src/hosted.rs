//! A gateway that runs `router` and whose machine is a host on its links; and what experiments need of the
//! programs beside it.

use crate::control_socket::ControlSocket;
use crate::programs::PROGRAMS;
use rig::Namespace;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long programs may take to begin.
pub(crate) const START: Duration = Duration::from_secs(30);

/// A program in the background, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Daemon(Child);

impl Daemon {
    /// Starts one whose words nobody hears.
    pub(crate) fn start(command: &mut Command) -> io::Result<Daemon> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(Daemon)
    }

    /// The same, but what it says of errors goes to a file.
    pub(crate) fn start_with_errors(command: &mut Command, errors: &Path) -> io::Result<Daemon> {
        let errors = fs::File::create(errors)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().map(Daemon)
    }

    /// Has it end by a signal, so that it lets go of what outlives it.
    pub(crate) fn end_well(&mut self) {
        if let Some(process) = i32::try_from(self.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process(process, Signal::TERM);
            let _ = until(START, "it ends", || self.0.try_wait().ok().flatten());
        }
    }

    /// Its number in the system.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// What it has been on processors.
    pub(crate) fn busy(&self) -> Duration {
        busy(self.id())
    }

    /// What it and the processes that it has started have been on processors.
    pub(crate) fn busy_with_children(&self) -> Duration {
        let (mut all, mut next) = (vec![self.id()], 0);
        while let Some(process) = all.get(next) {
            all.extend(children(*process));
            next += 1;
        }
        all.into_iter().map(busy).sum()
    }
}

/// What all threads of a process have been on processors (proc(5), schedstat); nothing where the system does
/// not say.
fn busy(process: u32) -> Duration {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Duration::ZERO };
    let times = threads.flatten().filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    });
    times.sum()
}

/// The processes that a process has started.
pub(crate) fn children(process: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port with `host = true`.
pub(crate) struct HostedPort<'a> {
    /// Its interface.
    pub(crate) interface: &'a str,
    /// The gateway's address there, in a network of 24 bits.
    pub(crate) own: Ipv4Addr,
    /// Further addresses, as the file has them.
    pub(crate) others: &'a str,
    /// The kind of the port, as the file has it.
    pub(crate) kind: &'a str,
}

/// The gateway at work; it ends when it is dropped.
pub(crate) struct HostedGateway {
    control: ControlSocket,
    _process: Daemon,
}

impl HostedGateway {
    /// Starts our own binary with these ports and, on top of its file, this; and waits until it answers. Its
    /// files are in `folder`.
    pub(crate) fn start(
        network: &Namespace,
        folder: &Path,
        top: &str,
        ports: &[HostedPort<'_>],
    ) -> Result<HostedGateway, String> {
        let system = |error: io::Error| error.to_string();
        let socket = HostedGateway::socket(folder);
        let program = PROGRAMS.iter().find(|(name, _)| *name == "router").map_or("", |(_, text)| text);
        fs::write(folder.join("program.rav"), program).map_err(system)?;
        let mut text =
            format!("program = \"program.rav\"\ncontrol = {:?}\n{top}", socket.display().to_string());
        for HostedPort { interface, own, others, kind } in ports {
            text.push_str(&format!(
                "[[port]]\ninterface = \"{interface}\"\nkind = \"{kind}\"\naddresses = [\"{own}/24\"{others}]\nhost = true\n"
            ));
        }
        let file = folder.join("gateway.toml");
        fs::write(&file, text).map_err(system)?;
        let mut command = network.command(std::env::current_exe().map_err(system)?, None);
        let process = Daemon::start(command.args(["serve", "--one-process"]).arg(file)).map_err(system)?;
        let control = until(START, "the gateway begins", || {
            let mut control = ControlSocket::connect(&socket).ok()?;
            control.told("picture").ok().map(|_| control)
        })?;
        Ok(HostedGateway { control, _process: process })
    }

    /// Where its control socket is.
    pub(crate) fn socket(folder: &Path) -> std::path::PathBuf {
        folder.join("control.sock")
    }

    /// What it tells of itself.
    pub(crate) fn picture(&mut self) -> Result<Value, String> {
        self.control.told("picture").map_err(|error| format!("control: {error}"))
    }
}

/// Tries until something is there.
pub(crate) fn until<T>(
    limit: Duration,
    what: &str,
    mut there: impl FnMut() -> Option<T>,
) -> Result<T, String> {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = there() {
            return Ok(found);
        }
        if Instant::now() > end {
            return Err(format!("in {limit:?} it does not come about that {what}"));
        }
        thread::sleep(Duration::from_millis(20));
    }
}
