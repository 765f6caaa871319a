//! `ravelin run`, `trace`, `generate` and `demo` as their users call them.

use assert_cmd::Command;
use captures::Capture;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn ravelin() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("ravelin"));
    command.current_dir(root());
    command
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs to the expected exit code; standard output as JSON, standard error as text.
fn json(arguments: &[&str], code: i32) -> (Value, String) {
    let output = ravelin().args(arguments).arg("--json").assert().code(code).get_output().clone();
    let text = String::from_utf8(output.stderr).expect("text");
    (serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {text}")), text)
}

/// A directory with a capture of 300 packets.
fn capture() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("traffic.pcapng").display().to_string();
    ravelin().args(["generate", "--packets", "300", "--seed", "7", "-o", &path]).assert().success();
    (directory, path)
}

/// A report without what differs from run to run.
fn counts(mut report: Value) -> Value {
    let object = report.as_object_mut().expect("object");
    object.retain(|key, _| {
        key == "seed"
            || !(key.ends_with("seconds")
                || key.ends_with("pps")
                || key.ends_with("gbps")
                || key == "back_end")
    });
    report
}

#[test]
fn the_report_has_every_key_and_adds_up() {
    let (_directory, path) = capture();
    let (report, _) = json(&["run", "programs/mac_switch.rav", "--in", &path, "--ports", "3"], 0);
    for key in ["received", "forwarded", "transmitted"] {
        assert!(report[key]["packets"].is_u64() && report[key]["bytes"].is_u64(), "{key}");
    }
    for key in ["send", "flood", "multicast", "punt", "drop"] {
        assert!(report["verdicts"][key].is_u64(), "{key}");
    }
    for key in ["seconds", "mpps", "gbps", "forwarded_gbps", "compile_seconds", "load_seconds"] {
        assert!(report[key].is_f64(), "{key}");
    }
    for key in ["entries", "inserts", "moves", "evictions", "expired"] {
        assert!(report["tables"]["hosts"][key].is_u64(), "{key}: {}", report["tables"]);
    }
    assert_eq!(report["back_end"], "native");
    assert!(report["seed"].is_u64());
    let ports = report["ports"].as_array().expect("ports");
    assert_eq!(
        ports.iter().map(|port| port["port"].as_u64().expect("number")).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    let sum = |key: &str| ports.iter().map(|port| port[key].as_u64().expect("number")).sum::<u64>();
    assert_eq!(sum("received"), 300);
    assert_eq!(sum("transmitted"), report["transmitted"]["packets"].as_u64().expect("number"));
    let dropped: u64 = report["drops"]
        .as_object()
        .expect("drops")
        .values()
        .map(|packets| packets.as_u64().expect("number"))
        .sum();
    let forwarded = report["forwarded"]["packets"].as_u64().expect("number");
    assert_eq!(report["received"]["packets"].as_u64(), Some(forwarded + dropped));
    assert!(report.get("error").is_none());
}

#[test]
fn back_ends_sources_and_repeats_report_the_same() {
    let (_directory, path) = capture();
    let program = "programs/mac_switch.rav";
    let (native, _) = json(&["run", program, "--in", &path], 0);
    let (interpreted, _) = json(&["run", program, "--in", &path, "--back-end", "interpreter"], 0);
    assert_eq!(interpreted["back_end"], "interpreter");
    let native = counts(native);
    assert_eq!(counts(interpreted), native);
    let piped = ravelin()
        .args(["run", program, "--in", "-", "--json"])
        .write_stdin(fs::read(&path).expect("capture"))
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let piped: Value = serde_json::from_slice(&piped).expect("json");
    assert_eq!((&piped["drops"], &piped["ports"]), (&native["drops"], &native["ports"]));
    for order in ["replay", "each"] {
        let (report, _) = json(&["run", program, "--in", &path, "--repeat", "4", "--order", order], 0);
        assert_eq!(report["received"]["packets"], 1200);
        assert_eq!(
            report["received"]["bytes"].as_u64(),
            native["received"]["bytes"].as_u64().map(|bytes| 4 * bytes)
        );
    }
}

#[test]
fn everything_before_the_damage_is_processed_and_the_place_told() {
    let (directory, path) = capture();
    let mut bytes = fs::read(&path).expect("capture");
    bytes.truncate(bytes.len() - 10);
    let cut = directory.path().join("cut.pcapng").display().to_string();
    fs::write(&cut, &bytes).expect("capture");
    for repeat in ["1", "2"] {
        let (report, text) = json(&["run", "programs/mac_switch.rav", "--in", &cut, "--repeat", repeat], 1);
        assert_eq!(
            report["received"]["packets"].as_u64(),
            Some(299 * repeat.parse::<u64>().expect("number"))
        );
        let offset = report["error"]["offset"].as_u64().expect("offset");
        assert!(offset > 1000 && offset < bytes.len() as u64);
        assert!(text.contains(&format!("damaged at byte {offset}")), "{text}");
    }
}

#[test]
fn what_leaves_is_written_by_port_and_what_is_dropped_with_its_reason() {
    let (directory, path) = capture();
    let out = directory.path().join("out");
    let (report, _) = json(
        &[
            "run",
            "programs/mac_switch.rav",
            "--in",
            &path,
            "--ports",
            "2",
            "--out",
            &out.display().to_string(),
        ],
        0,
    );
    let packets = |name: &str| {
        let bytes = fs::read(out.join(name)).expect("capture");
        let mut capture = Capture::open(&bytes[..]).expect("capture");
        let mut packets = 0;
        while capture.next().expect("record").is_some() {
            packets += 1;
        }
        packets
    };
    assert_eq!(report["ports"][0]["transmitted"], packets("port1.pcapng"));
    assert_eq!(report["ports"][1]["transmitted"], packets("port2.pcapng"));
    assert_eq!(report["verdicts"]["drop"], packets("dropped.pcapng"));
    let dropped = fs::read(out.join("dropped.pcapng")).expect("capture");
    assert!(dropped.windows(7).any(|window| window == b"hairpin"));
}

#[test]
fn people_get_tables_with_help_and_places() {
    let (_directory, path) = capture();
    let output = ravelin().args(["run", "programs/mac_switch.rav", "--in", &path]).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).expect("text");
    for part in
        ["300 packets", "Dropped because of", "hairpin", "mac_switch.rav:", "Port", "hosts", "packets/s"]
    {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "colours are for terminals");
}

#[test]
fn a_wrong_command_line_exits_with_2_and_says_what_was_meant() {
    let (_directory, path) = capture();
    let told = |arguments: &[&str], part: &str| {
        let output = ravelin().args(arguments).assert().code(2).get_output().clone();
        let text = String::from_utf8(output.stderr).expect("text");
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    };
    let program = "programs/mac_switch.rav";
    told(&["run", program, "--in", &path, "--port", "3"], "--ports");
    told(&["runn"], "'run'");
    told(&["run", "programs/mac_swich.rav", "--in", &path], "did you mean programs/mac_switch.rav");
    told(&["run", "mac_switch", "--in", &path], "did you mean programs/mac_switch.rav");
    told(&["run", program, "--in", "missing.pcap"], "there is no capture missing.pcap");
    told(&["run", program, "--in", &path, "--ingress", "randm"], "random:SEED");
    told(&["run", program, "--in", &path, "--ingress", "port:9"], "there is no port 9");
    told(&["run", program, "--in", &path, "--ingress", "subnet:10.0.0.0/8=9,else=1"], "there is no port 9");
    told(&["run", program, "--in", &path, "--ingress", "mac:02:00:00:00:00:01=1"], "else=PORT");
    let each = ["run", program, "--in", &path, "--ingress", "interface", "--repeat", "2", "--order", "each"];
    told(&each, "--order each");
    told(&["run", program, "--in", &path, "--ports", "0"], "--ports");
    told(&["generate", "--protocols", "tpc=1", "-o", "/dev/null"], "`tpc` is not known");
    told(&["generate", "--zipf", "99", "-o", "/dev/null"], "--zipf is 99");
    told(&["trace", program, "--packet", "0g"], "`g` is not a hexadecimal digit");
    told(&["trace", program, "--in", &path, "--number", "301"], "300 packets");
}

#[test]
fn no_capture_is_a_finding() {
    let (report, text) = json(&["run", "programs/mac_switch.rav", "--in", "README.md"], 1);
    assert!(report["error"]["message"].as_str().expect("message").contains("not a capture"));
    assert!(text.contains("not a capture"));
}

#[test]
fn the_same_seed_makes_the_same_capture() {
    let make = |seed: &str| {
        let arguments = ["generate", "--packets", "50", "--protocols", "web=0.2,vlan=0", "--seed", seed];
        ravelin().args(arguments).assert().success().get_output().stdout.clone()
    };
    assert_eq!(make("3"), make("3"));
    assert_ne!(make("3"), make("4"));
}

#[test]
fn a_trace_shows_every_step() {
    let frame = "ffffffffffff 02:00:00:00:00:01 0800 0000";
    let (trace, _) = json(&["trace", "programs/mac_switch.rav", "--packet", frame, "--port", "2"], 0);
    assert_eq!(trace["verdict"], "flood");
    assert_eq!(trace["leaves_by"], serde_json::json!([1, 3, 4, 5]));
    let steps = trace["steps"].to_string();
    for part in ["02:00:00:00:00:01", "learn hosts[", "mac_switch.rav:", "header"] {
        assert!(steps.contains(part), "{part} is missing in {steps}");
    }
}

#[test]
fn a_trace_shows_nothing_of_a_secret_nor_of_what_follows_from_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sealed.rav");
    let text = |property: &str| {
        format!(
            "import std.net.{{ethernet}}
table keys: exact(u8) -> u32 {{ capacity 1 {property} entries {{ 7 => 4242424242 }} }}
table learned: exact(u32) -> u32 {{ capacity 4 age 1s evict lru }}
start decoder frame(eth: ethernet) {{
    if eth.type != 0x0800 {{ drop other }}
    match keys[7] {{ some key => seal(key), none => drop unknown }}
}}
stage seal(key: u32) requires eth {{
    if eth.dst == 02:00:00:00:00:09 {{ drop other }}
    let sealed = key ^ 1000
    learn learned[sealed] = key
    match learned[sealed] {{ some of => send of as| port, none => drop unknown }}
}}
"
        )
    };
    for (property, shown) in [("", true), ("secret", false)] {
        std::fs::write(&path, text(property)).expect("written");
        let frame = "ffffffffffff 02:00:00:00:00:01 0800 0000";
        let arguments = ["trace", path.to_str().expect("text"), "--packet", frame];
        let steps = json(&arguments, 0).0["steps"].to_string();
        assert!(steps.contains("eth.type is 2048"), "{steps}");
        for number in [4_242_424_242_u32, 4_242_424_242 ^ 1000] {
            assert_eq!(steps.contains(&number.to_string()), shown, "{number} in {steps}");
        }
        assert_eq!(steps.contains("keys[…] is there, and secret"), !shown, "{steps}");
        assert_eq!(steps.contains("learn learned[…] = … (new)"), !shown, "{steps}");
        assert_eq!(steps.contains("eth.dst is …"), !shown, "{steps}");
    }
}

#[test]
fn a_trace_shows_nothing_of_what_a_secret_search_finds() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sealed.rav");
    for (property, shown) in [("", true), ("secret", false)] {
        let text = format!(
            "import std.net.{{ethernet}}
table words: patterns(bytes) -> u32 {{ capacity 1 {property} entries {{ \"needle\" => 4242424242 }} }}
start decoder frame(eth: ethernet) {{
    match words[payload] {{ some found => seal(found), none => drop unknown }}
}}
stage seal(found: u32) {{
    if found == 7 {{ flood }}
    drop unknown
}}
reason unknown \"none\"
"
        );
        std::fs::write(&path, text).expect("written");
        let frame = "ffffffffffff 02:00:00:00:00:01 0800 6e6565646c65";
        let arguments = ["trace", path.to_str().expect("text"), "--packet", frame];
        let steps = json(&arguments, 0).0["steps"].to_string();
        assert_eq!(steps.contains("4242424242"), shown, "{steps}");
    }
}

#[test]
fn a_trace_of_a_capture_meets_the_tables_as_they_were() {
    let (_directory, path) = capture();
    let (first, _) = json(&["trace", "programs/mac_switch.rav", "--in", &path, "--number", "1"], 0);
    assert_eq!(first["port"], 1);
    let (report, _) = json(&["run", "programs/mac_switch.rav", "--in", &path], 0);
    let known = (1..40).any(|number| {
        let number = number.to_string();
        let (trace, _) = json(&["trace", "programs/mac_switch.rav", "--in", &path, "--number", &number], 0);
        let steps = trace["steps"].to_string();
        steps.contains("(known, renewed)") || steps.contains("(changed)")
    });
    assert!(known, "{report}");
}

/// A datagram of UDP in three fragments, the first one last, then a later fragment of another one.
fn early_fragments() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("fragments.pcap").display().to_string();
    let mut writer =
        captures::write::PcapWriter::new(fs::File::create(&path).expect("file"), packet::LinkType::ETHERNET)
            .expect("header");
    let (last, middle, first, lost) = ((7, 0, 4), (7, 0x20, 2), (7, 0x20, 0), (8, 0, 4));
    for (time, (id, more, place)) in [last, middle, first, lost].into_iter().enumerate() {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0, 0, 36, 0, id, more, place, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 9]);
        frame.extend([0x9c, 0x40, 0, 9, 0, 48, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let check = !packet::checksum::sum(&frame[14..34]);
        frame[24..26].copy_from_slice(&check.to_be_bytes());
        writer.write(time as u64 * 1_000_000, frame.len() as u32, &frame).expect("written");
    }
    writer.finish().expect("written");
    (directory, path)
}

#[test]
fn a_trace_of_a_capture_follows_fragments_in_the_order_in_which_they_run() {
    let (_directory, path) = early_fragments();
    let of_capture = ["programs/stateful.rav", "--in", &path, "--port", "1"];
    let trace = |more: &[&str]| {
        let mut command = ravelin();
        let output = command.arg("trace").args(of_capture).args(more).arg("--json").output().expect("runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let told: Vec<Value> = serde_json::Deserializer::from_str(&text)
            .into_iter()
            .collect::<Result<_, _>>()
            .unwrap_or_else(|error| panic!("{error}: {text}"));
        told.into_iter()
            .map(|packet| {
                // Behind the name of a reason, its sentence.
                let verdict = packet["verdict"].as_str().expect("a verdict").split(" (");
                let verdict = verdict.take(1).collect::<String>();
                (packet["number"].as_u64().expect("a number"), verdict, packet["waited_seconds"].as_f64())
            })
            .collect::<Vec<_>>()
    };
    let send = || "send 2".to_string();
    let dropped = || "drop fragment_without_first".to_string();
    let expected = vec![
        (3, send(), None),
        (1, send(), Some(0.002)),
        (2, send(), Some(0.001)),
        // The capture ends while it waits.
        (4, dropped(), Some(0.0)),
    ];
    assert_eq!(trace(&["--filter", "ip", "--count", "9"]), expected);
    for packet in &expected {
        assert_eq!(trace(&["--number", &packet.0.to_string()]), std::slice::from_ref(packet));
    }
    // As a run over the capture says.
    let (report, _) = json(&["run", "programs/stateful.rav", "--in", &path, "--ingress", "port:1"], 0);
    assert_eq!(
        (&report["verdicts"]["send"], &report["verdicts"]["drop"]),
        (&3.into(), &1.into()),
        "{report}"
    );
    assert_eq!(report["drops"]["fragment_without_first"], 1);
}

#[test]
fn the_demo_runs_the_firewall() {
    let (report, _) = json(&["demo"], 0);
    assert_eq!(report["program"], "programs/firewall.rav");
    assert!(report["drops"]["not_web"].as_u64().expect("number") > 0);
    let output = ravelin().arg("demo").assert().success().get_output().stdout.clone();
    let text = String::from_utf8(output).expect("text");
    assert!(text.contains("not_web") && text.contains("What to try next"), "{text}");
}

#[test]
fn what_leaves_keeps_the_link_type_it_came_with() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("raw.pcap");
    let mut writer = captures::write::PcapWriter::new(Vec::new(), packet::LinkType::RAW).expect("writes");
    writer.write(1, 20, &[0x45; 20]).expect("writes");
    std::fs::write(&path, writer.finish().expect("writes")).expect("writes");
    let out = directory.path().join("out");
    let program = root().join("programs/hub.rav");
    ravelin()
        .args([
            "run",
            &program.display().to_string(),
            "--in",
            &path.display().to_string(),
            "--link",
            "any",
            "--out",
        ])
        .arg(&out)
        .assert()
        .success();
    let link = ports::capture_in::first_link(&out.join("port2.pcapng").display().to_string());
    assert_eq!(link, Some(packet::LinkType::RAW));
}

/// The figures of a report that add up over packets.
fn additive(report: &Value) -> Vec<(String, u64)> {
    let mut figures = Vec::new();
    for key in ["received", "forwarded", "transmitted", "verdicts", "drops", "punts"] {
        for (name, value) in report[key].as_object().expect(key) {
            figures.push((format!("{key}.{name}"), value.as_u64().expect("number")));
        }
    }
    for port in report["ports"].as_array().expect("ports") {
        for (name, value) in port.as_object().expect("port").iter().filter(|(name, _)| *name != "port") {
            figures.push((format!("port {} {name}", port["port"]), value.as_u64().expect("number")));
        }
    }
    for key in ["copies", "made", "outputs_lost"] {
        figures.push((key.into(), report[key].as_u64().expect("number")));
    }
    figures.sort();
    figures
}

#[test]
fn a_filter_and_its_contrary_share_a_run_between_them() {
    let (directory, path) = capture();
    // One that learns, one that copies and makes packets larger, and one that answers.
    for program in ["mac_switch", "vxlan_gateway", "firewall"] {
        let program = format!("programs/{program}.rav");
        let run = |filter: Option<&str>, out: &str| {
            let out = directory.path().join(out).display().to_string();
            let mut arguments = vec!["run", &program, "--in", &path, "--out", &out];
            arguments.extend(filter.into_iter().flat_map(|filter| ["--filter", filter]));
            let (report, _) = json(&arguments, 0);
            let left = (1..=5).map(|port| {
                let file =
                    fs::File::open(Path::new(&out).join(format!("port{port}.pcapng"))).expect("written");
                let mut capture = Capture::open(file).expect("a capture");
                let mut packets: Vec<Vec<u8>> = Vec::new();
                while let Some(packet) = capture.next().expect("right") {
                    packets.push(packet.data.to_vec());
                }
                packets.sort();
                packets
            });
            let left: Vec<_> = left.collect();
            (report, left)
        };
        let (whole, left) = run(None, "all");
        assert!(whole.get("filter").is_none());
        for filter in ["length > 200", "verdict == drop", "port == 2 or out_port == 1"] {
            let (these, mut sent) = run(Some(filter), "these");
            let (others, sent_others) = run(Some(&format!("not ({filter})")), "others");
            assert_eq!(these["filter"]["text"], filter);
            assert_eq!(these["filter"]["ran"], whole["received"]);
            assert_eq!(
                (&these["tables"], &others["tables"]),
                (&whole["tables"], &whole["tables"]),
                "{filter}"
            );
            let mut sum: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
            for (name, value) in additive(&these).into_iter().chain(additive(&others)) {
                *sum.entry(name).or_default() += value;
            }
            assert_eq!(sum.into_iter().collect::<Vec<_>>(), additive(&whole), "{program} {filter}");
            for (port, more) in sent.iter_mut().zip(sent_others) {
                port.extend(more);
                port.sort();
            }
            assert_eq!(sent, left, "{program} {filter}");
        }
        let (dropped, _) = run(Some("verdict == drop"), "dropped");
        assert_eq!(dropped["received"]["packets"], whole["verdicts"]["drop"]);
        assert_eq!(dropped["forwarded"]["packets"], 0);
        assert_eq!(dropped["drops"], whole["drops"]);
    }
    let (tcp, _) = json(&["run", "programs/hub.rav", "--in", &path, "--filter", "tcp"], 0);
    let (no, _) = json(&["run", "programs/hub.rav", "--in", &path, "--filter", "not tcp"], 0);
    assert!(tcp["received"]["packets"].as_u64() > Some(50) && no["received"]["packets"].as_u64() > Some(50));
    let told =
        ravelin().args(["run", "programs/hub.rav", "--in", &path, "--filter", "tcp"]).assert().success();
    let text = String::from_utf8(told.get_output().stdout.clone()).expect("text");
    assert!(text.contains(" of 300 packets") && text.contains("the filter `tcp` holds for"), "{text}");
    let (wrong, _) = json(&["run", "programs/hub.rav", "--in", &path, "--filter", "tpc"], 2);
    assert!(
        wrong["error"]["message"].as_str().expect("text").contains("--filter: the filter is not understood")
    );
}

#[test]
fn traced_by_a_filter_a_packet_meets_what_it_meets_by_its_number() {
    let (_directory, path) = capture();
    let trace = |arguments: &[&str], code| {
        let mut command = ravelin();
        command.args(["trace", "programs/mac_switch.rav", "--in", &path, "--json"]).args(arguments);
        let output = command.assert().code(code).get_output().stdout.clone();
        let documents = serde_json::Deserializer::from_slice(&output).into_iter::<Value>();
        documents.collect::<Result<Vec<_>, _>>().expect("json")
    };
    let sent = trace(&["--filter", "verdict == send and tcp", "--count", "3"], 0);
    assert_eq!(sent.len(), 3);
    let numbers: Vec<u64> = sent.iter().map(|packet| packet["number"].as_u64().expect("number")).collect();
    assert!(numbers.is_sorted() && numbers[0] > 1, "a host has to be learned before: {numbers:?}");
    for packet in &sent {
        assert!(packet["verdict"].as_str().expect("verdict").starts_with("send"), "{packet}");
        assert_eq!(trace(&["--number", &packet["number"].to_string()], 0), std::slice::from_ref(packet));
    }
    assert_eq!(trace(&["--filter", "tcp"], 0).len(), 1);
    let none = trace(&["--filter", "tcp and udp"], 1);
    let message = none[0]["error"]["message"].as_str().expect("text");
    assert!(message.contains("has 300 packets") && message.contains("holds for none"), "{message}");
    trace(&[], 2);
    trace(&["--number", "1", "--count", "2"], 2);
    trace(&["--number", "1", "--filter", "tcp"], 2);
}

#[test]
fn a_report_of_the_lab_is_drawn_again_as_it_was() {
    let directory = tempfile::tempdir().expect("directory");
    let at = |name: &str| directory.path().join(name).display().to_string();
    let measured = ravelin()
        .args(["lab", "compile", "--runs", "1", "--repeat", "1", "--json", "--html", &at("first.html")])
        .assert()
        .success();
    fs::write(at("report.json"), &measured.get_output().stdout).expect("can be written");
    ravelin().args(["lab", "--draw", &at("report.json"), "--html", &at("again.html")]).assert().success();
    let page = |name: &str| fs::read_to_string(at(name)).expect("was written");
    assert_eq!(page("first.html"), page("again.html"));
    assert!(page("again.html").contains("lower is better"));
    let refused = ravelin().args(["lab", "--draw", "README.md", "--html", &at("x.html")]).assert().code(2);
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(said.contains("README.md is no report"), "{said}");
}
