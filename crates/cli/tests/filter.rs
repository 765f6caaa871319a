//! Filters over the shipped capture choose the packets that tshark chooses, whatever back end runs them and
//! however many batches go by without one.

mod net;

use net::installed;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const CAPTURE: &str = "captures/demo.pcapng";

/// Filters, and what tshark calls the same: the last field that a filter has to look into stands for the
/// whole header. Most hold for few packets, so that whole batches have none.
const FILTERS: [(&str, &str); 9] = [
    ("udp", "(ip.proto == 17 and ip.dst) or (ipv6.nxt == 17 and ipv6.dst)"),
    ("tcp", "(ip.proto == 6 and ip.dst) or (ipv6.nxt == 6 and ipv6.dst)"),
    ("arp", "eth.type == 0x0806 or vlan.etype == 0x0806"),
    ("udp port 123", "udp.port == 123 and udp.checksum"),
    ("tcp port 3306", "tcp.port == 3306 and tcp.urgent_pointer"),
    ("tcp.dst == 22", "tcp.dstport == 22 and tcp.urgent_pointer"),
    ("length > 1200", "frame.len > 1200"),
    ("not length > 1200", "frame.len <= 1200"),
    ("tcp port 25", "tcp.port == 25 and tcp.urgent_pointer"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn ravelin(arguments: &[&str]) -> Vec<Value> {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("ravelin"));
    let output = command.current_dir(root()).args(arguments).arg("--json").output().expect("can be run");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let documents = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    documents.collect::<Result<_, _>>().expect("json")
}

/// The numbers of the packets that tshark chooses; fragments are not put together.
fn tshark(capture: &Path, filter: &str) -> Vec<u64> {
    let alone = ["-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"];
    let shown = ["-T", "fields", "-e", "frame.number", "-Y", filter, "-r"];
    let output = Command::new("tshark").current_dir(root()).args(alone).args(shown).arg(capture).output();
    let output = output.expect("can be run");
    assert!(output.status.success(), "{filter}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| line.parse().expect("a number")).collect()
}

#[test]
fn a_filter_chooses_what_tshark_chooses_to_the_end_of_the_capture() {
    if !installed("a_filter_chooses_what_tshark_chooses", &["tshark"]) {
        return;
    }
    let all = tshark(Path::new(CAPTURE), "frame").len() as u64;
    for (filter, same) in FILTERS {
        let theirs = tshark(Path::new(CAPTURE), same);
        assert!(!theirs.is_empty() && (theirs.len() as u64) < all, "{filter} tells packets apart");
        for back_end in ["native", "interpreter"] {
            let run =
                ["run", "programs/hub.rav", "--in", CAPTURE, "--filter", filter, "--back-end", back_end];
            let report = &ravelin(&run)[0];
            assert_eq!(report["filter"]["ran"]["packets"], all, "{filter} {back_end}");
            assert_eq!(report["received"]["packets"], theirs.len(), "{filter} {back_end}");
        }
        let trace = ["trace", "programs/hub.rav", "--in", CAPTURE, "--filter", filter, "--count", "100000"];
        let ours = ravelin(&trace);
        let ours: Vec<u64> = ours.iter().map(|packet| packet["number"].as_u64().expect("number")).collect();
        assert_eq!(ours, theirs, "{filter}");
    }
    // What is written is what was chosen, too.
    let directory = tempfile::tempdir().expect("directory");
    for back_end in ["native", "interpreter"] {
        let out = directory.path().join(back_end);
        let name = out.display().to_string();
        let filter = "reason == later_fragment";
        let run =
            ["run", "programs/firewall.rav", "--in", CAPTURE, "--filter", filter, "--back-end", back_end];
        let report = &ravelin(&[&run[..], &["--out", &name]].concat())[0];
        let written = tshark(&out.join("dropped.pcapng"), "frame").len();
        let whole = &ravelin(&["run", "programs/firewall.rav", "--in", CAPTURE])[0];
        assert_eq!(report["received"]["packets"], written, "{back_end}");
        assert_eq!(whole["drops"]["later_fragment"], written, "{back_end}");
        assert!(written > 0);
    }
}
