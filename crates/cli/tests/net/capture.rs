//! What passes an interface, as tcpdump captures it and tshark reads it.

use super::{Net, Running};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// How long a packet may take to be in the file.
const PATIENCE: Duration = Duration::from_secs(20);
/// The header of the file (libpcap's format).
const HEADER: u64 = 24;

/// A capture that goes on until the test ends.
pub(crate) struct Capture {
    file: PathBuf,
    _tcpdump: Running,
}

impl Capture {
    /// Captures at an interface of a host from now on.
    pub(crate) fn at(net: &Net, host: &str, interface: &str) -> Capture {
        let file = net.path(&format!("{host}-{interface}.pcap"));
        let options =
            ["-i", interface, "--immediate-mode", "-U", "-Z", "root", "-w", &file.display().to_string()];
        let tcpdump = Running::start(&mut net.at(host, "tcpdump", &options));
        let end = Instant::now() + PATIENCE;
        while file.metadata().map_or(0, |data| data.len()) < HEADER {
            assert!(Instant::now() < end, "tcpdump does not begin at {interface} of {host}");
            thread::sleep(Duration::from_millis(20));
        }
        Capture { file, _tcpdump: tcpdump }
    }

    /// How many packets a filter of tshark chooses.
    pub(crate) fn chosen(&self, filter: &str) -> usize {
        self.values(filter, "frame.number").len()
    }

    /// What a field of tshark is in the packets that a filter chooses, in order.
    pub(crate) fn values(&self, filter: &str, field: &str) -> Vec<String> {
        let mut command = Command::new("tshark");
        command.args(["-n", "-T", "fields", "-e", field, "-Y", filter, "-r"]).arg(&self.file);
        let output = command.output().expect("tshark runs");
        // While the capture is written its end may be missing.
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    /// Waits until so many are in the capture.
    pub(crate) fn until(&self, filter: &str, wanted: impl Fn(usize) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !wanted(self.chosen(filter)) {
            let captured = self.file.display();
            assert!(Instant::now() < end, "{captured}: {} packets of `{filter}`", self.chosen(filter));
            thread::sleep(Duration::from_millis(50));
        }
    }
}
