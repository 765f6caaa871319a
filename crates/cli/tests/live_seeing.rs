//! Looking into a gateway while pings go through it: captures, paths, reasons and metrics.

mod net;

use captures::Capture;
use net::{Net, binary};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Lets ARP and pings pass, but those with more than 500 bytes.
const PROGRAM: &str = "import std.net.{ethernet, ipv4}
reason large \"more than 500 bytes\"
reason odd \"neither IPv4 nor ARP\"
table hosts: exact(mac) -> port { capacity 64  age 300s  evict lru }
start decoder frame(eth: ethernet) {
    learn hosts[eth.src] = in_port
    match eth.type { 0x0806 => switch, 0x0800 => packet, else => drop odd }
}
decoder packet(ip: ipv4) {
    if ip.total > 500 {
        drop large
    }
    goto switch
}
stage switch() requires eth {
    match hosts[eth.dst] { some p => send p, none => flood }
}
";

/// The line that drops large packets.
const PLACE: &str = "program.rav:11";

fn served(test: &str) -> Option<Net> {
    served_with(test, "")
}

fn served_with(test: &str, more: &str) -> Option<Net> {
    Net::served(test, PROGRAM, more)
}

fn control(net: &Net) -> String {
    net.path("control.sock").display().to_string()
}

/// Starts a command that looks into the gateway.
fn look(net: &Net, arguments: &[&str]) -> Child {
    let control = control(net);
    let mut command = net.at("g", binary(), &[arguments, &["--control", &control]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ravelin runs")
}

/// Pings of so many bytes from `a` to `b` until a command ends, and what it said.
fn ping_until(net: &Net, child: Child, bytes: &str) -> Output {
    let mut child = child;
    let end = Instant::now() + Duration::from_secs(60);
    while child.try_wait().expect("can be asked").is_none() {
        assert!(Instant::now() < end, "it does not end");
        net.run("a", "ping", &["-c", "5", "-i", "0.05", "-W", "1", "-w", "1", "-s", bytes, "10.0.0.2"]);
    }
    child.wait_with_output().expect("ended")
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_capture_tells_what_became_of_each_packet() {
    let Some(mut net) = served("a_capture_tells_what_became_of_each_packet") else { return };
    let file = net.path("seen.pcapng");
    let name = file.display().to_string();
    let child =
        look(&net, &["capture", "host 10.0.0.1 and icmp and verdict == drop", "-o", &name, "--count", "3"]);
    let output = ping_until(&net, child, "900");
    assert!(output.status.success(), "{:?}", said(&output));
    assert!(said(&output).1.contains("3 packets"), "{:?}", said(&output));
    let mut capture = Capture::open(File::open(&file).expect("was written")).expect("a capture");
    let mut lengths = Vec::new();
    while let Some(record) = capture.next().expect("whole") {
        lengths.push(record.data.len());
    }
    assert_eq!(lengths, [942; 3]);
    let bytes = fs::read(&file).expect("was written");
    let comment = format!("drop large (more than 500 bytes) at {PLACE}");
    assert_eq!(bytes.windows(comment.len()).filter(|window| *window == comment.as_bytes()).count(), 3);

    // On standard output, for another program to read along.
    let child = look(&net, &["capture", "icmp.type == 8 and port == 1", "--count", "2", "--snap", "60"]);
    let output = ping_until(&net, child, "56");
    assert!(output.status.success(), "{:?}", said(&output));
    fs::write(&file, &output.stdout).expect("can be written");
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.interface_name",
        "-e",
        "frame.comment",
        "-e",
        "icmp.type",
        "-e",
        "frame.cap_len",
    ];
    match std::process::Command::new("tshark").args(["-r", &name]).args(fields).output() {
        Ok(read) => {
            let lines = said(&read).0;
            assert_eq!(lines.lines().count(), 2, "{lines}");
            assert!(lines.lines().all(|line| line == "to-a\tsend to 2\t8\t60"), "{lines}");
        }
        Err(_) => eprintln!("not compared, since there is no tshark"),
    }
    let wrong = net.ravelin(&["capture", "prt 80", "--control", &control(&net)]);
    assert!(
        !wrong.status.success() && said(&wrong).1.contains("the filter is not understood"),
        "{:?}",
        said(&wrong)
    );
    // Whoever goes away while nothing comes is forgotten, and the gateway goes on.
    let mut child = look(&net, &["capture", "tcp port 9"]);
    thread::sleep(Duration::from_millis(300));
    child.kill().expect("can be ended");
    child.wait().expect("ended");
    assert_eq!(net.pings("10.0.0.2"), 20);
    net.stop();
}

#[test]
fn the_last_drops_are_told_with_their_line_and_way() {
    let Some(mut net) = served("the_last_drops_are_told_with_their_line_and_way") else { return };
    net.run("a", "ping", &["-c", "2", "-i", "0.1", "-W", "1", "-s", "700", "10.0.0.2"]);
    let drops = net.ask(&["why", "reason == large"]);
    let drops = drops.as_array().expect("a list");
    assert!((1..=2).contains(&drops.len()), "{drops:?}");
    let drop = drops.last().expect("is there");
    assert_eq!((drop["port"].as_u64(), drop["wire"].as_u64()), (Some(1), Some(742)));
    assert_eq!(drop["places"], serde_json::json!([PLACE]));
    let steps: Vec<&str> =
        drop["steps"].as_array().expect("replayed").iter().filter_map(|step| step["step"].as_str()).collect();
    assert!(steps.contains(&"→ packet") && steps.last() == Some(&"  drop large"), "{steps:?}");
    let told = net.ravelin(&["why", "--control", &control(&net)]);
    let text = said(&told).0;
    assert!(
        text.contains(PLACE) && text.contains("by way of frame → packet") && text.contains("ago"),
        "{text}"
    );
    let none = net.ravelin(&["why", "host 9.9.9.9", "--control", &control(&net)]);
    assert!(said(&none).0.contains("no packet"), "{:?}", said(&none));
    let rates = said(&net.ravelin(&["show", "drops", "--total", "--control", &control(&net)])).0;
    assert!(rates.contains(PLACE), "{rates}");
    net.stop();
}

#[test]
fn a_packet_is_followed_through_the_running_program() {
    let Some(mut net) = served("a_packet_is_followed_through_the_running_program") else { return };
    let child = look(&net, &["trace", "--live", "icmp.type == 0 and src host 10.0.0.2", "--count", "2"]);
    let output = ping_until(&net, child, "56");
    let text = said(&output).0;
    assert!(output.status.success(), "{:?}", said(&output));
    assert_eq!(text.matches("enters by port 2").count(), 2, "{text}");
    assert_eq!(
        text.matches("hosts[02:00:00:00:00:01] is port 1").count(),
        2,
        "from the tables of the running program: {text}"
    );
    assert_eq!(text.matches("send to 1").count(), 2, "{text}");
    let none =
        net.ravelin(&["trace", "--live", "udp port 7", "--seconds", "0.3", "--control", &control(&net)]);
    assert!(!none.status.success() && said(&none).1.contains("within 0.3 s"), "{:?}", said(&none));
    net.stop();
}

#[test]
fn stages_of_the_program_are_measured_while_somebody_asks() {
    let Some(mut net) = served("stages_of_the_program_are_measured_while_somebody_asks") else { return };
    let child = look(&net, &["show", "stages", "--seconds", "1", "--json"]);
    let output = ping_until(&net, child, "900");
    let measured: Value = serde_json::from_str(&said(&output).0).expect("JSON");
    assert!(measured.get("unmeasured").is_none(), "{measured}");
    let program = &measured["program"];
    let stages = program["stages"].as_array().expect("a list");
    let of = |name: &str| stages.iter().find(|stage| stage["name"] == name).expect(name);
    let number = |stage: &Value, what: &str| stage[what].as_u64().expect("a number");
    // So few packets are all measured, and all of them begin in one place.
    let packets = number(&measured, "packets");
    assert!(packets > 0 && number(program, "packets") == packets, "{measured}");
    assert_eq!(number(of("frame"), "entered"), packets);
    let (packet, switch) = (number(of("packet"), "entered"), number(of("switch"), "entered"));
    assert!(packet > 0 && switch < packets, "large pings go no further: {measured}");
    assert_eq!(of("packet")["place"], "program.rav:9");
    let run = &measured["stops"][1];
    assert_eq!(run["name"], "run");
    let parts: u64 = stages.iter().map(|stage| number(stage, "cycles")).sum();
    let (run, share) = (number(run, "cycles"), stages.iter().filter_map(|stage| stage["share"].as_f64()));
    assert!(parts > 0 && parts <= run, "{parts} of {run}");
    assert!((share.sum::<f64>() - 1.0).abs() < 1e-6, "{measured}");

    let text = said(&ping_until(&net, look(&net, &["show", "stages", "--seconds", "0.5"]), "56")).0;
    for words in ["frame", "(between)", "program.rav:5", "cycles a packet"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let once = said(&ping_until(&net, look(&net, &["top", "--once"]), "56")).0;
    assert!(once.contains("program.rav:5") && once.contains("frame"), "{once}");
    assert_eq!(net.pings("10.0.0.2"), 20);
    net.stop();
}

#[test]
fn metrics_and_top_show_what_happens() {
    // A port that is free here need not be free there, but that namespace is empty.
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let metrics = format!("metrics = \"127.0.0.1:{port}\"\n");
    let Some(mut net) = served_with("metrics_and_top_show_what_happens", &metrics) else { return };
    let namespace = net.name("g");
    net.ip(&["-n", &namespace, "link", "set", "lo", "up"]);
    net.run("a", "ping", &["-c", "3", "-i", "0.05", "-W", "1", "-s", "700", "10.0.0.2"]);
    let page = net.run("g", "curl", &["-s", "-i", &format!("http://127.0.0.1:{port}/metrics")]);
    if page.status.success() {
        let text = said(&page).0;
        assert!(text.contains("application/openmetrics-text"), "{text}");
        assert!(
            text.contains("# HELP ravelin_drops ")
                && text.contains("ravelin_port_received_total{port=\"1\",interface=\"to-a\"}"),
            "{text}"
        );
        let drops =
            text.lines().find(|line| line.starts_with("ravelin_drops_total{reason=\"large\"")).expect(&text);
        assert!(drops.contains(PLACE) && drops.ends_with(" 3"), "{drops}");
        assert!(text.ends_with("# EOF\n"));
        let other = said(&net.run("g", "curl", &["-s", "-i", &format!("http://127.0.0.1:{port}/other")])).0;
        assert!(other.contains("404") && other.contains("/metrics"), "{other}");
    } else {
        eprintln!("not asked, since there is no curl");
    }
    let mut child = look(&net, &["top", "--json"]);
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    net.pings("10.0.0.2");
    let first: Value = serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON");
    assert!(first["received"].as_f64().is_some_and(|rate| rate > 0.0), "{first}");
    assert_eq!(first["ports"][1]["interface"], "to-b");
    assert!(first["measured"]["stops"].as_array().is_some_and(|stops| !stops.is_empty()), "{first}");
    child.kill().expect("can be ended");
    child.wait().expect("ended");
    let once = said(&net.ravelin(&["top", "--once", "--control", &control(&net)])).0;
    assert!(
        once.contains("large")
            && once.contains(PLACE)
            && once.contains("hosts")
            && once.lines().count() == 23,
        "{once}"
    );
    let nobody = net.ravelin(&["top", "--once", "--control", "/nowhere"]);
    assert!(
        !nobody.status.success() && said(&nobody).1.contains("no gateway answers"),
        "{:?}",
        said(&nobody)
    );
    net.stop();
}
