//! Damaged packets at a live gateway: it stays up, every packet is in its account, and what leaves is what
//! the judge of programs lets leave.
//!
//! Frames are sent by one program and captured by another that know nothing of ours. Both hosts are silent,
//! so nothing else is on the line.

mod net;

use captures::Capture;
use captures::generate::{Generator, Profile};
use captures::write::PcapWriter;
use net::{Net, binary, installed, program};
use packet::LinkType;
use serde_json::Value;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use suite::corpus::{files, root};
use suite::random::SuiteRandom;

/// How many mutated frames are played.
const MUTATED: usize = 1_000_000;

/// Whether the kernel and the port carry a frame as it is: a link header, no more than an MTU, no VLAN tag
/// without a packet behind it, which the kernel drops while it takes the tag out, and no tag that names no
/// VLAN, which the port takes out.
fn carried(frame: &[u8]) -> bool {
    let tagged = matches!(frame.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8]));
    let priority = matches!(frame.get(12..16), Some(&[0x81, 0x00, high, 0]) if high & 0x0f == 0);
    (if tagged { 20 } else { 14 }..=1514).contains(&frame.len()) && !priority
}

/// The frames of a capture up to where it is damaged.
fn read(path: &Path) -> Vec<Vec<u8>> {
    let file = BufReader::new(File::open(path).expect("a capture can be opened"));
    let (mut all, Ok(mut capture)) = (Vec::new(), Capture::open(file)) else { return Vec::new() };
    while let Ok(Some(record)) = capture.next() {
        all.push(record.data.to_vec());
    }
    all
}

/// Frames of the project's own: the shipped capture, and traffic with tags, fragments, IPv6 and flaws.
fn samples() -> Vec<Vec<u8>> {
    let mut samples = read(&root().join("captures/demo.pcapng"));
    let profile = Profile { packets: 3_000, vlan_share: 0.2, ipv6_share: 0.3, ..Profile::demo() };
    let mut generator = Generator::new(&profile, 5).expect("a profile that can be");
    let mut bytes = Vec::new();
    while generator.next(&mut bytes).is_some() {
        samples.push(bytes.clone());
    }
    // What programs look at lies in front; short frames let many be played.
    samples.iter_mut().for_each(|sample| sample.truncate(160));
    samples.retain(|sample| sample.len() >= 14);
    samples
}

/// A sample that something was done to, up to four times.
fn mutated(samples: &[Vec<u8>], random: &mut SuiteRandom) -> Vec<u8> {
    loop {
        let mut frame = random.pick(samples).clone();
        for _ in 0..random.below(5) {
            let at = random.below(frame.len() as u64) as usize;
            match random.below(7) {
                0 | 1 => frame[at] ^= 1 << random.below(8),
                2 => frame[at] = *random.pick(&[0, 1, 0x7f, 0x80, 0xff]),
                3 => frame.truncate(at.max(14)),
                4 => {
                    // The front of one packet with the rest of another.
                    let other = random.pick(samples);
                    let from = random.below(other.len() as u64) as usize;
                    frame.truncate(at.max(14));
                    frame.extend_from_slice(&other[from..]);
                }
                5 => {
                    // Fields that say how long something is, in packets with and without a tag.
                    let place = *random.pick(&[14, 16, 18, 20, 24, 38, 42, 46, 50, 58]);
                    let value = random.value(16) as u16;
                    if let Some(field) = frame.get_mut(place..place + 2) {
                        field.copy_from_slice(&value.to_be_bytes());
                    }
                }
                _ => {
                    let kind: [u8; 2] =
                        *random.pick(&[[8, 0], [0x86, 0xdd], [0x81, 0], [8, 6], [0, 40], [0x88, 0x47]]);
                    frame[12..14].copy_from_slice(&kind);
                }
            }
        }
        if carried(&frame) {
            return frame;
        }
    }
}

/// How often each frame is in a capture.
fn count(path: &Path) -> HashMap<Vec<u8>, i64> {
    let mut all = HashMap::new();
    for frame in read(path) {
        *all.entry(frame).or_insert(0) += 1;
    }
    all
}

/// How many frames are on their way at most: far fewer than a ring of the gateway holds, and no more than the
/// kernel's queues before and behind it. Where some are lost all the same, as on a machine that is busy with
/// other things, everything is played again with fewer.
const AT_ONCE: [u64; 4] = [1000, 500, 250, 100];

/// Plays frames from host `a` through a program, and holds what reaches host `b` against what the interpreter
/// lets leave. What is lost on the way has to be counted by somebody, in every attempt; what is judged is an
/// attempt in which nothing was.
fn play(net: &mut Net, program: &Path, frames: impl Iterator<Item = Vec<u8>>) {
    let played = net.path("played.pcap");
    let file = BufWriter::new(File::create(&played).expect("can be made"));
    let mut writer = PcapWriter::new(file, LinkType::ETHERNET).expect("can be written");
    let mut total = 0u64;
    for frame in frames {
        // All within a second: nothing that a program remembers gets old.
        writer.write(1_000_000_000 + total, frame.len() as u32, &frame).expect("can be written");
        total += 1;
    }
    writer.finish().expect("can be written");
    silence(net);
    let mut lost = Vec::new();
    for at_once in AT_ONCE {
        let attempt = Attempt::make(net, program, &played, total, at_once);
        if attempt.lost.is_empty() {
            return judge(net, program, &played, &attempt.report);
        }
        eprintln!("{at_once} frames at once: lost, and played again: {:?}", attempt.lost);
        lost.push(attempt.lost);
    }
    panic!("frames are lost however few are on their way: {lost:?}");
}

/// Everything played once.
struct Attempt {
    /// The gateway's account.
    report: Value,
    /// Where frames were lost, and how many.
    lost: Vec<(&'static str, u64)>,
}

impl Attempt {
    fn make(net: &mut Net, program: &Path, played: &Path, total: u64, at_once: u64) -> Attempt {
        let left = net.path("left.pcap");
        // That of the attempt before.
        let _ = fs::remove_file(&left);
        // What the gateway joins is cut and summed again before it is captured, by a kernel that knows
        // nothing of how it was joined.
        let off = ["-K", "to-b", "tx", "off", "sg", "off", "tso", "off", "gso", "off"];
        assert!(net.run("g", "ethtool", &off).status.success());
        net.serve(program);
        // What the kernel had no room for at the other end of a virtual cable, which newer ones tell the
        // sender, too.
        let dropped = |net: &Net| {
            let output = net.run("g", "cat", &["/sys/class/net/to-b/statistics/tx_dropped"]).stdout;
            String::from_utf8_lossy(&output).trim().parse::<u64>().expect("a number")
        };
        let before = dropped(net);
        let dump = dump(net, &left);
        let script = root().join("crates/cli/tests/net/play.py").display().to_string();
        let (capture, control) = (played.display().to_string(), net.path("control.sock"));
        let (control, at_once) = (control.display().to_string(), at_once.to_string());
        let play = ["500", "python3", &script, &capture, "eth0", &control, &at_once];
        let output = net.run("a", "timeout", &play);
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let silently = said.strip_prefix(&format!("{total} 0 ")).and_then(|count| count.parse().ok());
        let silently =
            silently.unwrap_or_else(|| panic!("{said}{}", String::from_utf8_lossy(&output.stderr)));

        let ports = net.ask(&["show", "ports", "--total"]);
        let report = net.stop();
        let port = |number: usize, what: &'static str| {
            (what, ports["now"]["ports"][number - 1][what].as_u64().expect("is counted"))
        };
        let mut lost = vec![("before port 1", silently)];
        lost.extend(["ring_full", "too_long", "unreadable", "foreign"].map(|what| port(1, what)));
        let sum = |lost: &[(&str, u64)]| lost.iter().map(|(_, count)| count).sum::<u64>();
        let received = report["received"]["packets"].as_u64().expect("a count");
        assert_eq!(total, received + sum(&lost), "sent = received + lost: {lost:?}");

        let transmitted = report["ports"][1]["transmitted"].as_u64().expect("a count");
        assert!(transmitted > total / 100, "only {transmitted} of {total} left, so hardly any was judged");
        let mut behind = ["busy", "refused", "down"].map(|what| port(2, what)).to_vec();
        let (captured, missed) = end(dump, &left, transmitted - sum(&behind));
        behind.push(("tcpdump", missed));
        // The interface counts what the gateway tried again by another way, too, so it may name more than are
        // missing, but never fewer.
        let named = (dropped(net) - before).saturating_sub(behind[0].1);
        let missing =
            transmitted.checked_sub(captured + sum(&behind)).expect("no more is captured than left");
        assert!(missing <= named, "{missing} of {transmitted} are nowhere: {behind:?}");
        behind.push(("behind port 2", missing));
        lost.extend(behind);
        lost.retain(|&(_, count)| count > 0);
        Attempt { report, lost }
    }
}

/// Begins to capture what reaches host `b`.
fn dump(net: &Net, left: &Path) -> Child {
    let name = left.display().to_string();
    let dump = [
        "600", "tcpdump", "-i", "eth0", "-Q", "in", "-s", "0", "-B", "262144", "-U", "-Z", "root", "-w",
        &name,
    ];
    let dump = net
        .at("b", "timeout", &dump)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("can be started");
    wait(|| fs::metadata(left).is_ok_and(|data| data.len() >= 24), "tcpdump begins");
    dump
}

/// Ends a capture once it has so many frames, or nothing more has come for long. Says how many there are, and
/// how many tcpdump says it missed.
fn end(dump: Child, left: &Path, wanted: u64) -> (u64, u64) {
    let frames = || read(left).len() as u64;
    let length = || fs::metadata(left).map_or(0, |data| data.len());
    let (mut before, mut grown) = (length(), Instant::now());
    // tcpdump gets packets a second after they came at the latest, where it gets to run.
    while grown.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(500));
        match length() {
            now if now != before => (before, grown) = (now, Instant::now()),
            _ if frames() >= wanted => break,
            _ => {}
        }
    }
    // Anything that should not have come has a moment more.
    thread::sleep(Duration::from_millis(1_500));
    // It ends by itself when it is told to, with everything written.
    let _ = Command::new("kill").arg(dump.id().to_string()).output();
    let errors = dump.wait_with_output().expect("ends");
    let errors = String::from_utf8_lossy(&errors.stderr).into_owned();
    let missed = errors.lines().find_map(|line| line.strip_suffix(" packets dropped by kernel"));
    (frames(), missed.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{errors}")))
}

/// Holds what left and the account of it against the interpreter.
fn judge(net: &Net, program: &Path, played: &Path, report: &Value) {
    let (left, judged) = (net.path("left.pcap"), net.path("judged"));
    let (out, path, capture) =
        (judged.display().to_string(), program.display().to_string(), played.display().to_string());
    let run = [
        "run",
        &path,
        "--in",
        &capture,
        "--ports",
        "2",
        "--ingress",
        "port:1",
        "--back-end",
        "interpreter",
        "--json",
        "--out",
        &out,
    ];
    let judge = Command::new(binary()).args(run).output().expect("ravelin runs");
    assert!(judge.status.success(), "{}", String::from_utf8_lossy(&judge.stderr));
    let judge: Value = serde_json::from_slice(&judge.stdout).expect("JSON");
    for what in ["received", "forwarded", "drops", "punts"] {
        assert_eq!(report[what], judge[what], "{what}");
    }
    assert_eq!(judge["ports"][1]["transmitted"], report["ports"][1]["transmitted"]);
    let (mut difference, wanted) = (count(&left), count(&judged.join("port2.pcapng")));
    for (frame, times) in wanted {
        *difference.entry(frame).or_insert(0) -= times;
    }
    difference.retain(|_, times| *times != 0);
    let some: Vec<_> = difference.iter().take(3).collect();
    assert!(
        some.is_empty(),
        "{} frames left more or less often than they should, as {some:02x?}",
        difference.len()
    );
    fs::remove_file(&left).expect("can be removed");
    fs::remove_dir_all(&judged).expect("can be removed");
}

/// Takes every address away, so that neither kernel says anything.
fn silence(net: &Net) {
    for (host, interface) in [("a", "eth0"), ("b", "eth0"), ("g", "to-a"), ("g", "to-b")] {
        let setting = format!("net.ipv6.conf.{interface}.disable_ipv6=1");
        assert!(net.run(host, "sysctl", &["-q", "-w", &setting]).status.success());
        net.ip(&["-n", &net.name(host), "address", "flush", "dev", interface]);
    }
}

fn wait(mut done: impl FnMut() -> bool, what: &str) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "waiting until {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn mutated_packets_meet_the_fate_that_the_judge_gives_them() {
    let test = "mutated_packets_meet_the_fate";
    if !installed(test, &["python3", "tcpdump"]) {
        return;
    }
    let (samples, mut random) = (samples(), SuiteRandom::new(4));
    // One program changes nearly all that it lets through; the other learns, and so keeps most of what comes
    // from one side back.
    let programs = [
        (root().join("crates/cli/tests/net/hops.rav"), MUTATED * 3 / 4),
        (program("firewall.rav"), MUTATED / 4),
    ];
    for (program, count) in programs {
        let Some(mut net) = Net::new(test) else { return };
        play(&mut net, &program, (0..count).map(|_| mutated(&samples, &mut random)));
    }
}

#[test]
fn malformed_captures_meet_the_fate_that_the_judge_gives_them() {
    let test = "malformed_captures_meet_the_fate";
    let Some(data) = std::env::var_os("RAVELIN_DATA").map(PathBuf::from) else {
        return println!("RAVELIN_DATA names no folder of captures: nothing was run");
    };
    if !installed(test, &["python3", "tcpdump"]) {
        return;
    }
    let mut frames = Vec::new();
    for ending in ["pcap", "pcapng"] {
        for path in files(&data.join("malformed"), ending).expect("malformed/ is there") {
            frames.extend(read(&path).into_iter().filter(|frame| carried(frame)));
        }
    }
    assert!(frames.len() > 1_000, "only {} packets under {}", frames.len(), data.display());
    for name in ["mac_switch.rav", "firewall_full.rav", "vlan_switch.rav"] {
        let Some(mut net) = Net::new(test) else { return };
        play(&mut net, &program(name), frames.iter().cloned());
    }
}
