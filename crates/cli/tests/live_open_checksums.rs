//! Checksums that hosts leave open travel through a router, and are finished where a port or a program needs
//! them; and segments stay whole through a program that cannot tell them from their packets.
//!
//! Nothing but its namespaces is ever addressed, and they go with the test. Where the rights for them are
//! missing, a test says so and ends.

mod net;

use captures::Capture;
use net::{Net, installed, program};
use packet::VirtioHeader;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The two ports with these lines more for each.
fn ports(a: &str, b: &str) -> String {
    format!(
        "[[port]]\ninterface = \"to-a\"\naddresses = [\"10.0.1.1/24\", \"fd00:1::1/64\"]\n{a}\n[[port]]\ninterface = \"to-b\"\naddresses = [\"10.0.2.1/24\", \"fd00:2::1/64\"]\n{b}\n"
    )
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Takes what comes, and says how much that was and its hash.
const TAKE: &str = "
import hashlib, socket, sys
family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
with socket.create_server((sys.argv[1], 9000), family=family) as server:
    print('ready', flush=True)
    stream, digest, length = server.accept()[0], hashlib.sha256(), 0
    while part := stream.recv(1 << 16):
        digest.update(part)
        length += len(part)
    print(length, digest.hexdigest(), flush=True)
";

/// Sends 20 MB that no part of repeats, and says how much that was and its hash.
const GIVE: &str = "
import hashlib, random, socket, sys
data = random.Random(7).randbytes(20_000_000)
with socket.create_connection((sys.argv[1], 9000), timeout=30) as stream:
    stream.sendall(data)
print(len(data), hashlib.sha256(data).hexdigest())
";

/// Sends data from `a` to `b` and compares.
fn stream_arrives(net: &Net, address: &str) {
    let mut server = net.at("b", "timeout", &["60", "python3", "-c", TAKE, address]);
    let server = server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("python3 runs");
    let mut server = Running(server);
    let mut said = std::io::BufReader::new(server.0.stdout.take().expect("is piped"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).expect("it says that it is ready");
    let sent = net.run("a", "timeout", &["60", "python3", "-c", GIVE, address]);
    assert!(sent.status.success(), "{}", net::text(&sent));
    line.clear();
    std::io::BufRead::read_line(&mut said, &mut line).expect("it says what came");
    assert_eq!(line, String::from_utf8_lossy(&sent.stdout), "to {address}");
}

/// Packets that the kernel of a host threw away for their checksum.
fn bad_checksums(net: &Net, host: &str) -> u64 {
    let said = net.run(host, "nstat", &["-a", "-s", "-z"]);
    let lines = String::from_utf8_lossy(&said.stdout).into_owned();
    let figures = lines.lines().filter(|line| line.contains("CsumErrors"));
    let figures: Vec<u64> = figures.filter_map(|line| line.split_whitespace().nth(1)?.parse().ok()).collect();
    assert!(figures.len() > 2, "{lines}");
    figures.iter().sum()
}

/// A capture of what reaches host `b` while something runs.
fn captured(net: &Net, name: &str, run: impl FnOnce()) -> Vec<Vec<u8>> {
    let file = net.path(name);
    let words =
        ["-i", "eth0", "-Q", "in", "-s", "0", "-B", "65536", "--immediate-mode", "-U", "-Z", "root", "-w"];
    let mut command = net.at("b", "tcpdump", &[&words[..], &[&file.display().to_string()]].concat());
    let capture = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("tcpdump runs");
    let capture = Running(capture);
    // It writes the head of the file once it listens.
    until("tcpdump begins", || fs::metadata(&file).map_or(0, |data| data.len()) >= 24);
    run();
    until("the capture has the packets", || {
        frames(&file).iter().filter(|frame| transport(frame).is_some()).count() > 100
    });
    drop(capture);
    frames(&file)
}

fn until(what: &str, is: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is() {
        assert!(Instant::now() < end, "{what}: waited for 20 s");
        thread::sleep(Duration::from_millis(50));
    }
}

/// The frames of a capture, as far as it is written.
fn frames(file: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(file).expect("is there");
    let mut capture = match Capture::open(&bytes[..]) {
        Ok(capture) => capture,
        Err(_) => return Vec::new(),
    };
    let mut all = Vec::new();
    while let Ok(Some(record)) = capture.next() {
        all.push(record.data.to_vec());
    }
    all
}

/// What would be left to do with a TCP packet whose checksum is open.
fn transport(frame: &[u8]) -> Option<VirtioHeader> {
    let start: u16 = match frame.get(12..15)? {
        [0x08, 0, 0x45] if frame[23] == 6 => 34,
        [0x86, 0xdd, _] if frame[20] == 6 => 54,
        _ => return None,
    };
    let mut header = [1, 0, 0, 0, 0, 0, 0, 0, 16, 0];
    header[6..8].copy_from_slice(&start.to_ne_bytes());
    header[8..10].copy_from_slice(&16u16.to_ne_bytes());
    Some(VirtioHeader::read(&header))
}

/// How many TCP packets of a capture are open, and how many finished; none is wrong.
fn counted(frames: &[Vec<u8>]) -> (usize, usize) {
    let (mut open, mut finished) = (0, 0);
    for frame in frames {
        let Some(virtio) = transport(frame) else { continue };
        let mut begun = frame.clone();
        assert!(virtio.restart(&mut begun));
        let mut right = begun.clone();
        assert!(virtio.complete(&mut right));
        assert!(*frame == begun || *frame == right, "a checksum is wrong: {:02x?}", &frame[..60]);
        // Once in 65,536 times both are the same.
        open += usize::from(*frame != right);
        finished += usize::from(*frame == right);
    }
    (open, finished)
}

/// A stream of each family between the hosts; returns the open and finished packets that reach `b`, and how
/// many the gateway left open.
fn streamed(net: &mut Net, addresses: [&str; 2]) -> (usize, usize, u64) {
    let (frames, now) = streamed_and_asked(net, addresses);
    let (open, finished) = counted(&frames);
    (open, finished, now["checksums_left_open"].as_u64().expect("a figure"))
}

/// The same; returns the frames that reach `b`, and what the gateway says of itself.
fn streamed_and_asked(net: &mut Net, addresses: [&str; 2]) -> (Vec<Vec<u8>>, Value) {
    let frames =
        captured(net, "b.pcap", || addresses.iter().for_each(|address| stream_arrives(net, address)));
    for host in ["a", "b"] {
        assert_eq!(bad_checksums(net, host), 0, "at {host}");
    }
    let now = net.ask(&["show", "run", "--total"])["now"].clone();
    net.stop();
    (frames, now)
}

/// The same through a router whose ports have these lines.
fn routed(test: &str, a: &str, b: &str) -> Option<(usize, usize, u64)> {
    if !installed(test, &["tcpdump", "python3", "nstat"]) {
        return None;
    }
    let mut net = Net::routed(test)?;
    net.serve_ports(&program("router.rav"), &ports(a, b));
    Some(streamed(&mut net, ["10.0.2.2", "fd00:2::2"]))
}

#[test]
fn a_router_passes_open_checksums_on_between_ports_that_can() {
    let Some((open, _, left)) = routed("open checksums", "", "") else { return };
    assert!(open > 100 && left > 100, "{open} open, {left} left open");
}

#[test]
fn a_port_without_offloads_gets_finished_packets() {
    let test = "open checksums to a plain port";
    let Some((open, finished, _)) = routed(test, "", "offloads = \"off\"") else { return };
    assert!(open == 0 && finished > 100, "{open} open, {finished} finished");
}

#[test]
fn a_shaped_port_leaves_checksums_open() {
    let shape = "shape = { rate = \"400Mbit\" }";
    let Some((open, ..)) = routed("open checksums to a shaped port", "", shape) else { return };
    assert!(open > 100, "{open} open");
}

/// Whether Linux takes a description of a packet before it in the memory of AF_XDP (6.11).
fn describes() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("says its number");
    let mut numbers = release.split(|one: char| !one.is_ascii_digit()).map_while(|one| one.parse().ok());
    (numbers.next(), numbers.next()) >= (Some(6u32), Some(11u32))
}

#[test]
fn an_af_xdp_port_leaves_checksums_open_where_linux_lets_it() {
    let xdp = "kind = \"af_xdp\"";
    for (test, from) in [("open to AF_XDP", ""), ("open between AF_XDP", xdp)] {
        let Some((open, finished, left)) = routed(test, from, xdp) else { return };
        let as_it_can = if describes() { open > 100 && left > 100 } else { open == 0 && finished > 100 };
        assert!(as_it_can, "{test}: {open} open, {finished} finished, {left} left open");
    }
}

#[test]
fn whole_segments_pass_a_wire_open() {
    let test = "open segments";
    if !installed(test, &["tcpdump", "python3", "nstat"]) {
        return;
    }
    let Some(mut net) = Net::new(test) else { return };
    let port = |host| format!("[[port]]\ninterface = \"to-{host}\"\noffloads = \"whole\"\n");
    net.serve_ports(&program("wire.rav"), &(port("a") + &port("b")));
    let (open, _, left) = streamed(&mut net, ["10.0.0.2", "fd00::2"]);
    assert!(open > 100 && left > 100, "{open} open, {left} left open");
}

/// Streams through `mac_switch`, whose ports have these lines, with this line more in its text. Returns the
/// longest frame that reaches `b`, and how many segments the program got whole. Whatever it gets, the account
/// is of packets.
fn switched(test: &str, lines: [&str; 2], line: &str) -> Option<(usize, u64)> {
    if !installed(test, &["tcpdump", "python3", "nstat"]) {
        return None;
    }
    let mut net = Net::new(test)?;
    let text = fs::read_to_string(program("mac_switch.rav")).expect("is there");
    let begin = "start decoder frame(eth: ethernet) {";
    assert!(text.contains(begin));
    let file = net.path("switch.rav");
    fs::write(&file, text.replace(begin, &format!("{begin}\n{line}"))).expect("is written");
    let port = |host, lines| format!("[[port]]\ninterface = \"to-{host}\"\n{lines}\n");
    net.serve_ports(&file, &(port("a", lines[0]) + &port("b", lines[1])));
    let (frames, now) = streamed_and_asked(&mut net, ["10.0.0.2", "fd00::2"]);
    counted(&frames);
    let longest = frames.iter().map(Vec::len).max().expect("there are some");
    let [from, to] = [&now["report"]["ports"][0], &now["report"]["ports"][1]];
    // 20 MB in packets of 1,448 bytes over IPv4 and of 1,428 over IPv6, each with 66 or 86 bytes of headers.
    let [packets, bytes] = ["received", "received_bytes"].map(|what| from[what].as_u64().expect("a figure"));
    assert!(packets >= 13_813 + 14_006, "{packets} packets");
    assert!(bytes >= 40_000_000 + 13_813 * 66 + 14_006 * 86, "{bytes} bytes");
    assert_eq!([&from["received"], &from["received_bytes"]], [&to["transmitted"], &to["transmitted_bytes"]]);
    Some((longest, now["segments_whole"].as_u64().expect("a figure")))
}

#[test]
fn segments_stay_whole_through_a_program_that_cannot_tell() {
    let Some((longest, whole)) = switched("whole segments", ["", ""], "") else { return };
    assert!(longest > 1_514 && whole > 100, "{whole} whole, the longest frame has {longest} bytes");
}

#[test]
fn segments_are_cut_behind_the_program_where_a_port_takes_packets() {
    for port in ["kind = \"af_xdp\"", "offloads = \"off\""] {
        let Some((longest, whole)) = switched("segments to a port of packets", ["", port], "") else {
            return;
        };
        assert!(longest <= 1_514 && whole > 100, "{port}: {whole} whole, a frame has {longest} bytes");
    }
}

#[test]
fn segments_are_cut_before_a_program_that_could_tell() {
    let line = "    if length == 65000 { drop hairpin }";
    let Some((_, whole)) = switched("segments for a program that could tell", ["", ""], line) else { return };
    assert_eq!(whole, 0);
}
