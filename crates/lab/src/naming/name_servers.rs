//! Name servers as processes of this machine, ours and NSD, at addresses of the loopback interface; and what
//! is asked of them.

use super::queries::{Told, ZONE, number, query};
use crate::hosted::{Daemon, START, until};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Where servers lie that tests have unpacked, below the folder of the repository.
const UNPACKED: &str = "target/debian/usr/sbin";

/// One at work; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct NameServerProcess {
    /// Where it is asked.
    pub(super) at: SocketAddr,
    process: Daemon,
}

impl NameServerProcess {
    /// Our own with these lines in its file, which `name` tells from others in the folder.
    pub(super) fn ours(folder: &Path, name: &str, names: &str) -> Result<NameServerProcess, String> {
        let at = free().map_err(told)?;
        let file = folder.join(format!("{name}.toml"));
        let control = folder.join(format!("{name}.sock")).display().to_string();
        let text = format!(
            "control = \"{control}\"\n[names]\nlisten = [\"{at}\"]\nzone = \"{ZONE}\"\nreplies_per_second = 0\n{names}"
        );
        fs::write(&file, text).map_err(told)?;
        let mut command = Command::new(std::env::current_exe().map_err(told)?);
        command.args(["serve", "--one-process"]).arg(file).current_dir(folder);
        NameServerProcess::start(&mut command, at, "our name server answers")
    }

    /// NSD with the zone in this file.
    pub(super) fn nsd(program: &Path, folder: &Path, zone: &Path) -> Result<NameServerProcess, String> {
        let at = free().map_err(told)?;
        let file = folder.join("nsd.conf");
        let [place, zone] = [folder, zone].map(|path| path.display().to_string());
        let text = format!(
            "server:\n  ip-address: {}@{}\n  server-count: 1\n  username: \"\"\n  chroot: \"\"\n  \
             zonesdir: \"{place}\"\n  database: \"\"\n  pidfile: \"\"\n  xfrdfile: \"{place}/xfrd\"\n  \
             xfrdir: \"{place}\"\n  zonelistfile: \"{place}/zones\"\n  logfile: \"{place}/nsd.log\"\n  \
             rrl-ratelimit: 0\nremote-control:\n  control-enable: no\nzone:\n  name: \"{ZONE}\"\n  \
             zonefile: \"{zone}\"\n",
            at.ip(),
            at.port()
        );
        fs::write(&file, text).map_err(told)?;
        let mut command = Command::new(program);
        NameServerProcess::start(command.arg("-d").arg("-c").arg(file), at, "NSD answers")
    }

    fn start(command: &mut Command, at: SocketAddr, what: &str) -> Result<NameServerProcess, String> {
        let process = Daemon::start(command).map_err(told)?;
        let asker = Asker::new(Ipv4Addr::LOCALHOST).map_err(told)?;
        until(START, what, || {
            // Who does not listen yet has the question refused at once, or does not answer it.
            asker.socket.set_read_timeout(Some(Duration::from_millis(200))).ok()?;
            asker.ask(&query(1, "ns1", super::queries::A, &Told::default()), at).ok()
        })?;
        Ok(NameServerProcess { at, process })
    }

    /// What it and the processes that it has started have been on processors.
    pub(super) fn busy(&self) -> Duration {
        self.process.busy_with_children()
    }
}

/// NSD, where it is in the search path or among the servers that tests have unpacked.
pub(super) fn nsd() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), UNPACKED.into()]);
    folders.map(|folder| folder.join("nsd")).find(|file| file.is_file())
}

/// Who asks, by a socket of its own.
#[derive(Debug)]
pub(super) struct Asker {
    socket: UdpSocket,
}

impl Asker {
    /// At this address of the loopback interface.
    pub(super) fn new(address: Ipv4Addr) -> io::Result<Asker> {
        let socket = UdpSocket::bind((address, 0))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Asker { socket })
    }

    /// Asks, and gives the reply.
    pub(super) fn ask(&self, query: &[u8], at: SocketAddr) -> io::Result<Vec<u8>> {
        self.socket.send_to(query, at)?;
        let mut reply = vec![0; 1_500];
        loop {
            let (length, from) = self.socket.recv_from(&mut reply)?;
            if from == at && number(&reply[..length]) == number(query) {
                reply.truncate(length);
                return Ok(reply);
            }
        }
    }

    /// Asks all of these at once, and counts the replies that hold one address.
    pub(super) fn ask_together(&self, queries: &[Vec<u8>], at: SocketAddr) -> io::Result<usize> {
        for query in queries {
            self.socket.send_to(query, at)?;
        }
        let mut reply = [0; 1_500];
        let mut answered = 0;
        for _ in queries {
            let (length, _) = self.socket.recv_from(&mut reply)?;
            answered += usize::from(super::queries::outcome(&reply[..length]) == Some((0, 1)));
        }
        Ok(answered)
    }
}

/// An address where nobody listens.
fn free() -> io::Result<SocketAddr> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

fn told(error: io::Error) -> String {
    error.to_string()
}
