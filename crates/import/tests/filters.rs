//! Files of NPF and pf beside independent models of them, over many packets and their connections.

#[path = "filters/firewall.rs"]
mod firewall;
#[path = "filters/npf_files.rs"]
mod npf_files;
#[path = "filters/packets.rs"]
mod packets;
#[path = "filters/pf_files.rs"]
mod pf_files;
#[path = "filters/pf_shapes.rs"]
mod pf_shapes;
#[path = "kernel/random.rs"]
mod random;

use firewall::Firewall;
use import::policies::{ImportedPolicy, PolicyOptions, read, write_npf};
use packets::{INTERFACES, Sent};
use policy::{Policy, RuleAction, difference};
use random::Random;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

const NPF_MODEL: &str = include_str!("filters/npf_model.py");
const PF_MODEL: &str = include_str!("filters/pf_model.py");

/// What the model says of a task, a word for each packet; `None` where Python is not installed.
fn model(program: &str, task: &Value) -> Option<Vec<String>> {
    let mut python = Command::new("python3");
    python.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = match python.spawn() {
        Ok(child) => child,
        Err(error) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "python3 does not run: {error}");
            println!("skipped: python3, in which the model is written, does not run: {error}");
            return None;
        }
    };
    let input = task.to_string();
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("the model reads its task");
    let output = child.wait_with_output().expect("the model ends");
    assert!(output.status.success(), "the model fails on {input:.2000}");
    let text = String::from_utf8(output.stdout).expect("text");
    Some(text.lines().map(str::to_owned).collect())
}

fn options(title: bool) -> PolicyOptions {
    PolicyOptions {
        interfaces: INTERFACES.map(str::to_owned).into_iter().zip(1..).collect(),
        tables: vec![("t".to_owned(), npf_files::TABLE.join("\n"))],
        skip_first_line: title,
        ..PolicyOptions::default()
    }
}

/// Packets, each several times in both directions among others.
fn packets(random: &mut Random, count: usize) -> Vec<Sent> {
    let mut packets: Vec<Sent> = Vec::new();
    while packets.len() < count {
        let next = match packets.len() {
            0 => Sent::random(random),
            sent if random.once_in(2) => packets[random.below(sent as u64) as usize].again(random),
            _ => Sent::random(random),
        };
        packets.push(next);
    }
    packets
}

/// Compares every decision; counts them.
fn agrees(format: &str, title: bool, text: &str, sent: &[Sent]) -> Option<BTreeMap<String, usize>> {
    let imported =
        read(text.as_bytes(), format, &options(title)).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(imported.refused, [], "{text}");
    let task = json!({
        "text": text,
        "title": title,
        "tables": { "t": npf_files::TABLE },
        "packets": sent.iter().map(Sent::json).collect::<Vec<_>>(),
    });
    let said = model(if format == "npf" { NPF_MODEL } else { PF_MODEL }, &task)?;
    assert_eq!(said.len(), sent.len());
    let (mut firewall, mut counts) = (Firewall::new(&imported), BTreeMap::new());
    for (number, (packet, said)) in sent.iter().zip(said).enumerate() {
        assert_eq!(firewall.packet(packet), said, "packet {number}: {packet:?}\n{text}");
        *counts.entry(said).or_default() += 1;
    }
    Some(counts)
}

#[test]
fn nine_configurations_of_npf_decide_as_the_model_says() {
    for (seed, (name, title, text)) in (1..).zip(npf_files::NINE) {
        let sent = packets(&mut Random(seed), 2_000);
        let Some(counts) = agrees("npf", title, text, &sent) else { return };
        let decided = |word: &str| counts.get(word).copied().unwrap_or_default();
        assert!(decided("pass") > 100, "{name}: {counts:?}");
        assert_eq!(decided("keep") > 0, text.contains("stateful "), "{name}: {counts:?}");
        assert_eq!(decided("block") > 100, text.contains("block"), "{name}: {counts:?}");
    }
}

#[test]
fn generated_configurations_of_npf_decide_as_the_model_says() {
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..40 {
        let mut random = Random(seed);
        let text = npf_files::generated(&mut random, if seed % 3 == 0 { "stateful-all" } else { "stateful" });
        let sent = packets(&mut random, 500);
        println!("seed {seed}");
        let Some(counts) = agrees("npf", false, &text, &sent) else { return };
        for (word, count) in counts {
            *all.entry(word).or_default() += count;
        }
    }
    for word in ["pass", "keep", "block", "rst", "icmp"] {
        assert!(all.get(word).is_some_and(|count| *count > 100), "{all:?}");
    }
}

#[test]
fn generated_configurations_of_pf_decide_as_the_model_says() {
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..40 {
        let mut random = Random(seed);
        let text = pf_files::generated(&mut random);
        let sent = packets(&mut random, 400);
        println!("seed {seed}");
        let Some(counts) = agrees("pf", false, &text, &sent) else { return };
        for (word, count) in counts {
            *all.entry(word).or_default() += count;
        }
    }
    for word in ["pass", "keep", "block", "rst", "port"] {
        assert!(all.get(word).is_some_and(|count| *count > 100), "{all:?}");
    }
}

#[test]
fn the_shapes_of_openbsds_own_tests_decide_as_the_manual_and_the_model_say() {
    for (text, expected) in pf_shapes::SHAPES {
        let imported = read(text.as_bytes(), "pf", &options(false)).expect(text);
        assert_eq!(imported.refused, [], "{text}");
        for (packet, expected) in pf_shapes::five().iter().zip(expected) {
            assert_eq!(Firewall::new(&imported).packet(packet), expected, "{packet:?}\n{text}");
        }
        agrees("pf", false, text, &packets(&mut Random(5), 300));
    }
}

/// The same decisions about every packet. Where no rule is left that keeps connections, none is remembered.
fn assert_no_difference(one: &Policy, other: &Policy, text: &str) {
    let keeps = |policy: &Policy| {
        let mut rules = policy.groups.iter().flat_map(|group| &group.rules);
        rules.any(|rule| rule.action == RuleAction::Keep)
    };
    let remembers = if keeps(other) { other.remembers } else { one.remembers };
    let other = Policy { remembers, ..other.clone() };
    let found = difference(one, &other, 1).expect("they can be compared");
    assert_eq!(found.classes, [], "{text}");
}

/// The same decisions about all packets, connections included.
fn decide_the_same(one: &ImportedPolicy, other: &ImportedPolicy, sent: &[Sent], text: &str) {
    let (mut one, mut other) = (Firewall::new(one), Firewall::new(other));
    for packet in sent {
        assert_eq!(one.packet(packet), other.packet(packet), "{packet:?}\n{text}");
    }
}

#[test]
fn what_is_written_for_npf_decides_as_before() {
    let read = |format: &str, text: &str| {
        let read =
            read(text.as_bytes(), format, &options(false)).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(read.refused, [], "{text}");
        read
    };
    for seed in 0..300 {
        let mut random = Random(seed);
        let text = npf_files::generated(&mut random, if seed % 3 == 0 { "stateful-all" } else { "stateful" });
        let imported = read("npf", &text);
        let written = write_npf(&imported.policy).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let sent = packets(&mut random, 200);
        let again = read("npf", &written);
        decide_the_same(&imported, &again, &sent, &format!("{text}\n{written}"));
        if seed % 4 < 2 {
            assert_no_difference(&imported.policy, &again.policy, &format!("{text}\n{written}"));
        }
        // What is written is also NPF to others.
        if seed % 20 == 0 {
            agrees("npf", false, &written, &sent);
        }
    }
    for text in [
        "block\npass in on lan0 inet proto { tcp udp } from 192.0.2.0/24 to any port != 22 no state\n",
        "block return-rst proto tcp\npass quick inet from 10.0.0.1 - 10.255.0.9 no state\nblock drop out on wan0 all\n",
        "pass no state\nblock in quick inet proto icmp icmp-type { echoreq, 3 }\nblock proto tcp flags S/SA\n",
        "set block-policy drop\nblock inet6\nset skip on north\nblock from ! 192.0.2.0/25\n",
    ] {
        let imported = read("pf", text);
        let written = write_npf(&imported.policy).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let sent = packets(&mut Random(7), 2_000);
        let again = read("npf", &written);
        decide_the_same(&imported, &again, &sent, &format!("{text}\n{written}"));
        assert_no_difference(&imported.policy, &again.policy, &format!("{text}\n{written}"));
    }
}

#[test]
fn a_rule_that_asks_for_a_port_of_no_ports_is_not_written_as_one_of_all() {
    let objects = r#"{"nftables": [
{"chain": {"family": "inet", "table": "t", "name": "in", "type": "filter", "hook": "prerouting", "prio": 0, "policy": "drop"}},
{"set": {"family": "inet", "table": "t", "name": "none", "type": "inet_service"}},
{"rule": {"family": "inet", "table": "t", "chain": "in", "expr": [{"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": "@none"}}, {"accept": null}]}}
]}
"#;
    let imported = read(objects.as_bytes(), "nft", &options(false)).expect("a ruleset");
    assert_eq!(imported.refused, []);
    // Either it cannot be said, or it passes nothing.
    if let Ok(written) = write_npf(&imported.policy) {
        let again = read(written.as_bytes(), "npf", &options(false)).expect("NPF");
        decide_the_same(&imported, &again, &packets(&mut Random(3), 500), &written);
    }
}

#[test]
fn what_npf_cannot_say_is_refused_at_its_rule() {
    for (text, line, why) in [
        ("pass proto udp\n", 1, "by direction alone"),
        ("set state-policy if-bound\npass proto tcp flags any\n", 2, "from any segment on"),
        ("match log all\n", 1, "neither passes nor blocks"),
        ("block return\n", 1, "what the sender is told"),
        ("pass no state\nanchor in {\n block\n}\n", 1, "rules beside groups"),
        ("block flags S/SA\n", 1, "the opposite of anything"),
        ("block inet proto icmp icmp-type { echoreq code 0, 3 }\n", 1, "one of several conditions"),
        ("block on ! lan0\n", 1, "the opposite of anything"),
        ("block on { lan0 wan0 }\n", 1, "several interfaces"),
        ("block proto tcp flags /SA\n", 1, "are not set alone"),
    ] {
        let imported = read(text.as_bytes(), "pf", &options(false)).expect("pf");
        assert_eq!(imported.refused, [], "{text}");
        let error = write_npf(&imported.policy).expect_err(text);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.what.contains(why), "{text}: {error}");
    }
}

/// A configuration of pf with a bit of everything.
const PF: &str = "ext = \"lan0\"\nweb = \"{ 80, 8000:8010 }\"\ntable <own> const { 10/8, !10.0.0.1 }\ntable <t> file \"/etc/t\"\n\
    set skip on lo\nset block-policy return\nblock log all\nmatch log proto tcp\n\
    pass in quick on $ext inet proto tcp from <own> to { 192.0.2.49, ! 192.0.2.0/24 } port $web \\\n flags S/SA keep state\n\
    anchor \"a\" out on ! north {\n  pass inet proto icmp icmp-type { echoreq code 0, 3 } no state\n  anchor {\n    block\n  }\n}\n\
    pass out proto { tcp udp } from any port != 22 to ! <t> port 5000 >< 5300 label \"x\"\n";

#[test]
fn spoiled_files_are_refused_at_places_in_them() {
    let (mut whole, mut spoiled) = (0, 0);
    assert_eq!(read(PF.as_bytes(), "pf", &options(false)).map(|read| read.refused), Ok(vec![]));
    for seed in 0..4_000 {
        let mut random = Random(seed);
        let format = random.one(&["npf", "pf"]);
        let text = if format == "pf" { PF.to_owned() } else { npf_files::generated(&mut random, "stateful") };
        let mut bytes = text.into_bytes();
        for _ in 0..1 + random.below(2) {
            let at = random.below(bytes.len() as u64) as usize;
            let other = random.below(bytes.len() as u64) as usize;
            let end = (at + random.below(12) as usize).min(bytes.len());
            match random.below(4) {
                0 => drop(bytes.drain(at..end)),
                1 => bytes.insert(at, random.one(b"{}()<>!=,;:\"\\#$/-. \n0aZ\xff")),
                2 => bytes.swap(at, other),
                _ => {
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(other..other, piece);
                }
            }
            if bytes.is_empty() {
                break;
            }
        }
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
        let title = random.once_in(2);
        let errors = match read(&bytes, format, &options(title)) {
            Err(error) => vec![error],
            Ok(imported) => {
                if let Ok(text) = write_npf(&imported.policy) {
                    let again =
                        read(text.as_bytes(), "npf", &options(false)).expect("what is written is read");
                    assert_eq!(again.refused, [], "{text}");
                    if seed % 16 == 0 {
                        assert_no_difference(&imported.policy, &again.policy, &text);
                    }
                }
                imported.refused
            }
        };
        (whole, spoiled) =
            (whole + usize::from(errors.is_empty()), spoiled + usize::from(!errors.is_empty()));
        for error in errors {
            assert!((1..=lines).contains(&error.line) && error.column > 0, "seed {seed}: {error}");
        }
    }
    assert!(whole > 100 && spoiled > 1_000, "{whole} {spoiled}");
}
