//! lldpd, a daemon of LLDP (IEEE 802.1AB), in the namespaces of a test.

use super::{Net, text};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The programs that this needs.
pub(crate) const PROGRAMS: [&str; 2] = ["lldpd", "lldpcli"];

/// Where the library of an lldpcli lies that was unpacked and not installed.
const LIBRARY: &str =
    "LD_LIBRARY_PATH=$(dirname $(command -v lldpcli))/../lib/x86_64-linux-gnu && export LD_LIBRARY_PATH";

/// lldpd at some interfaces of a host, which it names after the host.
pub(crate) struct Lldpd {
    daemon: Child,
    socket: String,
}

impl Lldpd {
    /// Starts it. It says every second who is there.
    pub(crate) fn start(net: &Net, host: &str, interfaces: &[&str]) -> Lldpd {
        let at = |name: &str| net.path(&format!("lldpd-{host}.{name}")).display().to_string();
        let written = |name: &str, text: String| fs::write(at(name), text).expect("can be written");
        written("conf", format!("configure system hostname {host}\nconfigure lldp tx-interval 1\n"));
        // The folder, the user and the group that it insists on are made where nobody else sees them.
        let list = |file: &str| fs::read_to_string(file).expect("a list");
        written("passwd", list("/etc/passwd") + "_lldpd:x:65533:65533::/run/lldpd:/usr/sbin/nologin\n");
        written("group", list("/etc/group") + "_lldpd:x:65533:\n");
        let (socket, interfaces) = (at("socket"), interfaces.join(","));
        let script = format!(
            "{LIBRARY} && mount -t tmpfs none /run && mkdir /run/lldpd && mount --bind {} /etc/passwd && \
             mount --bind {} /etc/group && \
             exec $(command -v lldpd) -d -u {socket} -I {interfaces} -O {} -L $(command -v lldpcli)",
            at("passwd"),
            at("group"),
            at("conf")
        );
        let mut command = net.at(host, "sh", &["-c", &script]);
        let daemon = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Lldpd { daemon: daemon.expect("lldpd starts"), socket }
    }

    /// Who is there: our interface, the neighbour's name, and what it calls its own, one a line.
    fn heard(&self) -> Vec<String> {
        let ask = format!("{LIBRARY} && lldpcli -u {} -f keyvalue show neighbors", self.socket);
        let said = text(&Command::new("sh").args(["-c", &ask]).output().expect("a shell"));
        let value = |line: &str, what: &str| Some(line.split_once(what)?.1.to_owned());
        let names = said.lines().filter_map(|line| value(line, ".chassis.name="));
        let interfaces = said.lines().filter_map(|line| {
            let (ours, theirs) = line.strip_prefix("lldp.")?.split_once(".port.descr=")?;
            Some((ours.to_owned(), theirs.to_owned()))
        });
        let mut heard: Vec<_> = names
            .zip(interfaces)
            .map(|(name, (ours, theirs))| format!("{ours}: {theirs} of {name}"))
            .collect();
        heard.sort();
        heard
    }

    /// Waits until these neighbours are there, and no others.
    pub(crate) fn until_heard(&self, expected: &[&str]) {
        let end = Instant::now() + Duration::from_secs(20);
        while self.heard() != expected {
            assert!(Instant::now() < end, "{:?} and not {expected:?}", self.heard());
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Lldpd {
    fn drop(&mut self) {
        // It ends its second process when it is asked to end, and not when it is killed.
        let _ = Command::new("kill").args(["-TERM", &self.daemon.id().to_string()]).output();
        let _ = self.daemon.wait();
    }
}
