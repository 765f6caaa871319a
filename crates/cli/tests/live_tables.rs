//! Tables of a running gateway from outside: by the command, by the client and by the example in Python.

mod net;

use client::answer::{ListedValue, TableAnswer};
use client::message::TableRequest;
use client::{ClientError, KeyMatch, TableClient, TableEntry};
use net::{Net, binary};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A switch that tells of hosts that move, and has tables of all kinds.
const PROGRAM: &str = "import std.net.{ethernet, ipv4}
reason odd \"neither IPv4 nor ARP\"
reason large \"a long packet\"
reason bad \"holds a word\"
reason denied \"not permitted\"
event moved(host: mac, from: port) {}
event passed(length: u16) {}
table hosts: exact(mac) -> port { capacity 64  age 300s  evict refuse }
group servers: port { buckets 16  capacity 4  members { 1 } }
table networks: lpm(ip4) -> (port, u8) { capacity 1k  default => (2, 3)  entries { 10.0.0.0/8 => (1, 7) } }
table acl: rules(ip4, u16) -> { permit, mark(level: u8), deny } { capacity 1k  choose priority }
table words: patterns(bytes) -> u8 { capacity 8  entries { \"attack\" => 1 } }
pool numbers: u16 { 1..100 }
table taken: exact(mac) -> u16 { capacity 200  age 60s  evict refuse  releases numbers }
event freed(number: u16, port: port) {}
table leases: exact(u16) -> port { capacity 64  age 1h  evict refuse  expires freed }
event unblocked(net: ip4, length: u8, why: u8) {}
table blocked: lpm(ip4) -> u8 { capacity 64  age 1h  expires unblocked }
start decoder frame(eth: ethernet) {
    match hosts[eth.src] {
        some p if p != in_port => { raise moved(eth.src, p)  learn hosts[eth.src] = in_port else {} }
        some _ => {}
        none => learn hosts[eth.src] = in_port else {}
    }
    match eth.type { 0x0806 => switch, 0x86dd => switch, 0x0800 => packet, else => punt odd }
}
decoder packet(ip: ipv4) {
    raise passed(ip.total)
    if ip.total > 500 { punt large }
    match networks[ip.dst] { some _ => {}, none => {} }
    match acl[ip.src, ip.total] { some deny => drop denied, else => {} }
    match words[clip(payload, 200)] { some _ => drop bad, none => {} }
    goto switch
}
stage switch() requires eth {
    match hosts[eth.dst] { some p => send p, none => flood }
}
";

fn served(test: &str, more: &str) -> Option<Net> {
    Net::served(test, PROGRAM, more)
}

/// What `ravelin table …` says, and whether it was content.
fn table(net: &Net, arguments: &[&str]) -> (bool, String, String) {
    let control = net.path("control.sock").display().to_string();
    let Output { status, stdout, stderr } =
        net.ravelin(&[&["table"], arguments, &["--control", &control]].concat());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (status.success(), text(stdout), text(stderr))
}

fn shown(net: &Net, name: &str) -> String {
    let (done, entries, errors) = table(net, &["show", name]);
    assert!(done, "{errors}");
    entries
}

fn connected(net: &Net) -> TableClient {
    TableClient::connect(&net.path("control.sock")).expect("the gateway answers")
}

/// An entry of `networks` for the network 20.x.y.0/24 of this number.
fn network(number: u32, port: u128) -> TableEntry {
    let key = vec![KeyMatch::Prefix { value: u128::from(0x1400_0000 + (number << 8)), length: 24 }];
    TableEntry { key, priority: 0, value: vec![port, 9] }
}

#[test]
fn entries_are_shown_added_and_removed_as_the_language_writes_them() {
    let Some(mut net) = served("entries_are_shown_added_and_removed_as_the_language_writes_them", "") else {
        return;
    };
    assert_eq!(shown(&net, "networks"), "10.0.0.0/8 => (1, 7)\n");
    let learned = shown(&net, "hosts");
    assert!(learned.contains("02:00:00:00:00:01 => 1\n"), "{learned}");
    let added = table(&net, &["add", "hosts", "02:00:00:00:00:07 => 2", "02:00:00:00:00:08 => 1"]);
    assert_eq!(added, (true, "2 added\n".into(), String::new()));
    let one = table(&net, &["show", "hosts", "02:00:00:00:00:07"]);
    assert_eq!(one, (true, "02:00:00:00:00:07 => 2\n".into(), String::new()));
    let json = net.ask(&["table", "show", "hosts", "02:00:00:00:00:08"]);
    assert_eq!(
        (&json["entry"], &json["key"][0], &json["value"][0]),
        (&"02:00:00:00:00:08 => 1".into(), &0x0200_0000_0008_u64.into(), &1.into())
    );
    let removed = table(&net, &["remove", "hosts", "02:00:00:00:00:07", "02:00:00:00:00:09"]);
    assert_eq!(removed.1, "1 removed; 1 were not there\n");
    assert!(!table(&net, &["show", "hosts", "02:00:00:00:00:07"]).0);

    // Rules in the order in which they are tried, and variants.
    let rules = [
        "(10.0.0.1, 900..) priority 3 => deny",
        "(_, 7) priority 9 => mark(3)",
        "(_, _) priority 1 => permit",
    ];
    assert!(table(&net, &[&["add", "acl"], &rules[..]].concat()).0);
    let acl = shown(&net, "acl");
    assert_eq!(
        acl,
        "(_, 7) priority 9 => mark(3)\n(10.0.0.1, 900..65535) priority 3 => deny\n(_, _) priority 1 => permit\n"
    );
    // What is shown is what is read.
    for line in acl.lines() {
        assert_eq!(table(&net, &["add", "acl", line]).1, "1 added\n");
    }
    assert_eq!(shown(&net, "acl"), acl);
    // The rule is in force: long pings of `a` are dropped, others pass.
    let long = net.run("a", "ping", &["-c", "2", "-i", "0.1", "-W", "1", "-s", "300", "10.0.0.2"]);
    assert!(long.status.success());
    assert!(table(&net, &["add", "acl", "(10.0.0.1, 300..) priority 4 => deny"]).0);
    let long = net.run("a", "ping", &["-c", "2", "-i", "0.1", "-W", "1", "-s", "300", "10.0.0.2"]);
    assert!(!long.status.success());
    assert_eq!(net.pings("10.0.0.2"), 20);

    // Page by page.
    let first = table(&net, &["show", "acl", "--most", "3"]);
    assert_eq!(first.1.lines().count(), 3);
    let cursor = first.2.trim().rsplit(' ').next().expect("a cursor").to_owned();
    let rest = table(&net, &["show", "acl", "--from", &cursor]);
    assert_eq!((rest.1.as_str(), rest.2.as_str()), ("(_, _) priority 1 => permit\n", "1 entry\n"));
    net.stop();
}

#[test]
fn what_does_not_fit_is_told_with_its_place_and_changes_nothing() {
    let Some(mut net) = served("what_does_not_fit_is_told_with_its_place_and_changes_nothing", "") else {
        return;
    };
    let refused = |arguments: &[&str], wanted: &str| {
        let (done, said, errors) = table(&net, arguments);
        assert!(!done && said.is_empty() && errors.contains(wanted), "{arguments:?}: {errors}");
    };
    refused(
        &["show", "host"],
        "program.rav has no table `host`; it has hosts, networks, acl, words, taken, leases, blocked",
    );
    refused(
        &["add", "hosts", "02:00:00:00:00:07 => 10.0.0.1"],
        "\n  02:00:00:00:00:07 => 10.0.0.1\n                       ^\n",
    );
    refused(&["add", "hosts", "02:00:00:00:00:07 => 3, 10.0.0.1 => 4"], "is wanted here");
    refused(&["remove", "hosts", "02:00:00:00:00:07 => 3"], "leave out `=>`");
    refused(&["add", "words", "\"x\" => 1"], "replace the table");
    refused(
        &["add", "networks", "_ => (1, 1)"],
        "fewer than 8 bits changes in `networks`: replace the table",
    );
    refused(&["add", "taken", "02:00:00:00:00:07 => 3"], "which only packets take");
    refused(&["show", "acl", "--from", "00"], "the cursor is none of this list");
    refused(&["watch", "gone"], "there is no event `gone`; the program has moved, passed");

    let mut client = connected(&net);
    let change = |client: &mut TableClient, key: KeyMatch, value: Vec<u128>| {
        let entry = TableEntry { key: vec![key], priority: 0, value };
        match client.change_one(&TableRequest::Insert { table: 1, entry }) {
            Err(ClientError::Refused(fault)) => (fault.place.part as u8, fault.place.index),
            other => panic!("{other:?}"),
        }
    };
    // Bits behind the prefix; a range in a table of prefixes; a ninth bit in a value of eight.
    let prefix = KeyMatch::Prefix { value: 0x0a00_0001, length: 8 };
    assert_eq!(change(&mut client, prefix, vec![1, 1]), (1, 0));
    assert_eq!(change(&mut client, KeyMatch::Range { low: 1, high: 2 }, vec![1, 1]), (1, 0));
    assert_eq!(shown(&net, "networks"), "10.0.0.0/8 => (1, 7)\n");
    net.stop();
}

#[test]
fn many_changes_are_in_flight_and_each_has_its_answer() {
    let Some(mut net) = served("many_changes_are_in_flight_and_each_has_its_answer", "") else { return };
    let mut client = connected(&net);
    let insert = |number| TableRequest::Insert { table: 1, entry: network(number, 2) };
    let mut told = Vec::new();
    // There is room for 1023 more.
    client
        .change((0..3000).map(insert), |place, result| told.push((place, result.is_ok())))
        .expect("goes on");
    let wanted: Vec<(usize, bool)> = (0..3000).map(|place| (place, place < 1023)).collect();
    assert_eq!(told, wanted);
    assert_eq!(shown(&net, "networks").lines().count(), 1024);
    assert_eq!(client.find(1, network(5, 0).key, 0).expect("goes on")[0].entry, network(5, 2));
    let remove = |number| TableRequest::Remove { table: 1, key: network(number, 0).key, priority: 0 };
    let mut removed = 0;
    client.change((0..3000).map(remove), |_, result| removed += result.expect("is taken")).expect("goes on");
    assert_eq!((removed, shown(&net, "networks").lines().count()), (1023, 1));
    net.stop();
}

#[test]
fn a_table_is_replaced_as_a_whole_or_not_at_all() {
    let Some(mut net) = served("a_table_is_replaced_as_a_whole_or_not_at_all", "") else { return };
    let mut client = connected(&net);
    let count = client.replace(1, (0..1000).map(|number| network(number, 1))).expect("has room");
    assert_eq!((count, shown(&net, "networks").lines().count()), (1000, 1000));
    for (entries, wanted) in [(0..1025, "room for 1024 entries"), (0..0, "earlier one")] {
        let entries = entries.map(|number| network(number, 2)).chain([network(7, 1), network(7, 1)]);
        let error = client.replace(1, entries.take(1025)).expect_err("is refused").to_string();
        assert!(error.contains(wanted), "{error}");
    }
    let shown_now = shown(&net, "networks");
    assert!(
        shown_now.lines().count() == 1000 && shown_now.contains("20.0.7.0/24 => (1, 9)\n"),
        "{shown_now}"
    );
    // A client that goes away in the middle changes nothing, and another one has its turn.
    assert!(connected(&net).change_one(&TableRequest::Replace { table: 1 }).is_ok());
    let end = Instant::now() + Duration::from_secs(20);
    while let Err(error) = client.replace(1, [network(1, 1)]) {
        assert!(error.to_string().contains("another client") && Instant::now() < end, "{error}");
    }
    assert_eq!(shown(&net, "networks"), "20.0.1.0/24 => (1, 9)\n");

    // Patterns, from a file: pings that hold the word are dropped, until other words take its place.
    let ping = || {
        let pattern = "61747461636b"; // attack
        net.run("a", "ping", &["-c", "2", "-i", "0.1", "-W", "1", "-p", pattern, "10.0.0.2"]).status.success()
    };
    assert!(!ping());
    let file = net.path("words.txt");
    fs::write(&file, "\"nothing\" nocase => 3\nhex \"00 ff\" offset 2 depth 9 => 4\n")
        .expect("can be written");
    let said = table(&net, &["replace", "words", &file.display().to_string()]);
    assert_eq!(said.1, "`words` has 2 entries now\n", "{said:?}");
    assert_eq!(shown(&net, "words"), "\"nothing\" nocase => 3\nhex \"00 ff\" offset 2 depth 9 => 4\n");
    assert!(ping());
    net.stop();
}

#[test]
fn a_change_is_made_at_all_workers_and_a_list_shows_each_entry_once() {
    let test = "a_change_is_made_at_all_workers_and_a_list_shows_each_entry_once";
    if !net::installed(test, &["python3"]) {
        return;
    }
    let Some(mut net) = served(test, "workers = 2\nstate = \"per-worker\"\n") else { return };
    assert_eq!(table(&net, &["add", "networks", "20.0.0.0/8 => (2, 1)"]).1, "1 added\n");
    for worker in ["1", "2"] {
        let one = table(&net, &["show", "networks", "--worker", worker]).1;
        assert_eq!(one, "10.0.0.0/8 => (1, 7)\n20.0.0.0/8 => (2, 1)\n");
    }
    assert_eq!(shown(&net, "networks"), "10.0.0.0/8 => (1, 7)\n20.0.0.0/8 => (2, 1)\n");
    assert!(!table(&net, &["show", "networks", "--worker", "3"]).0);
    // Each worker has learned its own hosts: frames of no flow all come to one of them. So one worker has no
    // room for all that come from outside, and no worker takes what only one takes.
    let frames = "import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(('eth0', 0))
for i in range(20): s.send(bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 1, i, 0x86, 0xdd]) + bytes(46))";
    assert!(net.run("a", "python3", &["-c", frames]).status.success());
    let held = |worker: u16| {
        let mut client = connected(&net);
        client.list(0, worker, 4096, Vec::new()).expect("goes on").0.len()
    };
    let (mut first, mut second) = (0, 0);
    let end = Instant::now() + Duration::from_secs(20);
    while first + second < 22 || first == second {
        assert!(Instant::now() < end, "{first} and {second} hosts are known");
        (first, second) = (held(1), held(2));
    }
    let mut client = connected(&net);
    let insert = |number: u32| TableRequest::Insert {
        table: 0,
        entry: TableEntry {
            key: vec![KeyMatch::Exact(0x0600_0000_0000 + u128::from(number))],
            priority: 0,
            value: vec![1],
        },
    };
    let (mut taken, mut worker) = (0, 0);
    let told = |_, result: Result<u32, client::RequestRefusal>| match result {
        Ok(count) => taken += count as usize,
        Err(fault) => worker += usize::from(fault.message.starts_with("worker ")),
    };
    client.change((0..100).map(insert), told).expect("goes on");
    // A frame that a host sends by itself may have brought one more meanwhile.
    let (now, then) = ([held(1), held(2)], [first, second]);
    let by_itself: Vec<Option<usize>> =
        now.iter().zip(then).map(|(now, then)| now.checked_sub(then + taken)).collect();
    assert_eq!(now.iter().max(), Some(&64), "one worker has no room left: {then:?}, {taken}, {now:?}");
    assert!(by_itself.iter().all(|more| more.is_some_and(|more| more <= 2)), "{then:?}, {taken}, {now:?}");
    assert!(worker > 0, "nothing was undone");
    net.stop();
}

#[test]
fn events_and_punted_packets_reach_several_subscribers() {
    let Some(mut net) = served("events_and_punted_packets_reach_several_subscribers", "") else { return };
    let control = net.path("control.sock").display().to_string();
    let watch = |arguments: &[&str]| {
        let all = [&["table", "watch", "--seconds", "60", "--control", &control], arguments].concat();
        let mut command = net.at("g", binary(), &all);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ravelin runs")
    };
    let watchers = [
        watch(&["moved", "--count", "2"]),
        watch(&["moved", "--count", "2", "--json"]),
        watch(&["--punts", "large", "--count", "2"]),
    ];
    let done = |mut child: std::process::Child| {
        let end = Instant::now() + Duration::from_secs(60);
        while child.try_wait().expect("can be asked").is_none() {
            assert!(Instant::now() < end, "it does not end");
            // The host is said to be elsewhere, so that it moves with its next packet, which is punted.
            assert!(table(&net, &["add", "hosts", "02:00:00:00:00:01 => 2", "--learn"]).0);
            net.run("a", "ping", &["-c", "1", "-W", "1", "-s", "600", "10.0.0.2"]);
        }
        let Output { stdout, stderr, .. } = child.wait_with_output().expect("ended");
        (String::from_utf8(stdout).expect("text"), String::from_utf8(stderr).expect("text"))
    };
    let [plain, json, punts] = watchers.map(done);
    assert!(plain.0.lines().count() == 2, "{plain:?}");
    assert!(
        plain.0.lines().all(|line| line.ends_with(" moved(host: 02:00:00:00:00:01, from: 2)")),
        "{plain:?}"
    );
    let told: Vec<Value> = json.0.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((told.len(), &told[0]["event"]), (2, &"moved".into()), "{json:?}");
    assert_eq!(told[0]["arguments"], serde_json::json!(["02:00:00:00:00:01", "2"]));
    assert!(punts.0.lines().count() == 2, "{punts:?}");
    assert!(punts.0.lines().all(|line| line.contains(" port 1 large: ")), "{punts:?}");
    net.stop();
}

#[test]
fn an_entry_with_a_lifetime_ends_by_itself_and_raises_its_event() {
    let Some(mut net) = served("an_entry_with_a_lifetime_ends_by_itself_and_raises_its_event", "") else {
        return;
    };
    let mut client = connected(&net);
    client.subscribe(vec!["freed".to_owned()], Vec::new(), 0).expect("the event is there");
    let added = table(&net, &["add", "leases", "7 => 2", "--for", "1500ms"]);
    assert_eq!(added, (true, "1 added\n".into(), String::new()));
    assert_eq!(table(&net, &["add", "leases", "8 => 1", "--for", "1h"]).1, "1 added\n");
    let told = client.next(Duration::from_secs(60)).expect("the gateway is there");
    let Some((_, TableAnswer::Event(told))) = told else { panic!("{told:?} instead of an event") };
    assert_eq!(told.arguments, [7, 2]);
    assert_eq!(shown(&net, "leases"), "8 => 1\n");
    client.subscribe(vec!["unblocked".to_owned()], Vec::new(), 0).expect("the event is there");
    let added = table(&net, &["add", "blocked", "10.0.0.0/8 => 5", "--for", "1500ms"]);
    assert_eq!(added, (true, "1 added\n".into(), String::new()));
    assert_eq!(table(&net, &["add", "blocked", "10.1.0.0/16 => 6", "--for", "1h"]).1, "1 added\n");
    let told = client.next(Duration::from_secs(60)).expect("the gateway is there");
    let Some((_, TableAnswer::Event(told))) = told else { panic!("{told:?} instead of an event") };
    assert_eq!(told.arguments, [10 << 24, 8, 5]);
    assert_eq!(shown(&net, "blocked"), "10.1.0.0/16 => 6\n");
    let long = table(&net, &["add", "leases", "7 => 2", "--for", "61min"]);
    assert!(!long.0 && long.2.contains("3600000000000 ns at most, the `age` of the table"), "{long:?}");
    let ageless = table(&net, &["add", "networks", "10.1.0.0/16 => (1, 1)", "--for", "1s"]);
    assert!(!ageless.0 && ageless.2.contains("`networks` has no `age`"), "{ageless:?}");
    let unit = table(&net, &["add", "leases", "7 => 2", "--for", "5m"]);
    assert!(!unit.0 && unit.2.contains("one of the units"), "{unit:?}");
    net.stop();
}

#[test]
fn default_entries_and_members_of_groups_are_changed_and_a_reload_forgets_that() {
    let test = "default_entries_and_members_of_groups_are_changed_and_a_reload_forgets_that";
    let Some(mut net) = served(test, "") else { return };
    let mut client = connected(&net);
    let number = |client: &TableClient, name| client.schema().table(name).expect("is declared").0;
    let (networks, hosts) = (number(&client, "networks"), number(&client, "hosts"));
    let columns =
        |values: Vec<ListedValue>| -> Vec<Vec<u128>> { values.into_iter().map(|one| one.columns).collect() };
    assert_eq!(columns(client.default_of(networks).expect("is asked")), [[2, 3]]);
    let set = TableRequest::SetDefault { table: networks, value: Some(vec![1, 200]) };
    assert_eq!(client.change_one(&set).expect("is set"), 1);
    assert_eq!(columns(client.default_of(networks).expect("is asked")), [[1, 200]]);
    let without = TableRequest::SetDefault { table: hosts, value: Some(vec![1]) };
    let refused = client.change_one(&without).expect_err("has none");
    assert!(refused.to_string().contains("gives `hosts` no default entry"), "{refused}");
    let join = |port| TableRequest::Join { group: 0, index: 0, member: vec![port] };
    assert_eq!(client.change_one(&join(2)).expect("has room"), 1);
    assert_eq!(table(&net, &["show", "servers"]).1, "1\n2\n");
    let leave = TableRequest::Leave { group: 0, index: 0, member: vec![1] };
    assert_eq!(client.change_one(&leave).expect("was there"), 1);
    assert_eq!(columns(client.members(0, 0).expect("is asked")), [[2]]);

    net.ask(&["reload"]);
    client.renew().expect("the new program");
    assert_eq!(columns(client.default_of(networks).expect("is asked")), [[2, 3]]);
    assert_eq!(table(&net, &["show", "servers"]).1, "1\n");
    net.stop();
}

#[test]
fn commands_show_and_change_default_entries_and_members_of_groups() {
    let test = "commands_show_and_change_default_entries_and_members_of_groups";
    let Some(mut net) = served(test, "") else { return };
    let said = |arguments: &[&str]| {
        let (done, out, errors) = table(&net, arguments);
        assert!(done, "{arguments:?}: {errors}");
        out
    };
    let refused = |arguments: &[&str]| {
        let (done, out, errors) = table(&net, arguments);
        assert!(!done, "{arguments:?}: {out}");
        errors
    };
    assert_eq!(said(&["default", "networks"]), "(2, 3)\n");
    assert_eq!(said(&["default", "networks", "(1, 200)"]), "1 set\n");
    assert_eq!(said(&["default", "networks"]), "(1, 200)\n");
    let json = net.ask(&["table", "default", "networks"]);
    assert_eq!((&json["default"], &json["worker"]), (&"(1, 200)".into(), &1.into()));
    let wrong = refused(&["default", "networks", "(1, 256)"]);
    assert!(wrong.contains("_ => (1, 256)") && wrong.contains('^'), "{wrong}");
    refused(&["default", "networks", "(1, 2), 10.0.0.0/9 => (1, 2)"]);
    assert_eq!(said(&["default", "networks"]), "(1, 200)\n", "what was refused has changed nothing");
    assert_eq!(said(&["default", "networks", "--clear"]), "1 cleared\n");
    assert_eq!(said(&["default", "networks"]), "");
    let without = refused(&["default", "hosts", "1"]);
    assert!(without.contains("gives `hosts` no default entry"), "{without}");

    assert_eq!(said(&["join", "servers", "2"]), "1 joined\n");
    assert_eq!(said(&["show", "servers"]), "1\n2\n");
    assert_eq!(said(&["leave", "servers", "1", "3"]), "1 left; 1 were not there\n");
    assert_eq!(said(&["show", "servers"]), "2\n");
    let other = refused(&["join", "servers", "2", "--index", "1"]);
    assert!(other.contains("there is no `servers[1]`"), "{other}");
    let unknown = refused(&["join", "server", "2"]);
    assert!(unknown.contains("no group `server`; it has servers"), "{unknown}");
    let number = refused(&["join", "servers", "eth0"]);
    assert!(number.contains("the number of a port is wanted"), "{number}");
    net.stop();
}

/// The session of docs/operate.md: its program, and its commands with what they say.
#[test]
fn the_session_of_the_page_about_operating_says_what_the_page_says() {
    const PAGE: &str = include_str!("../../../docs/operate.md");
    let (_, part) = PAGE.split_once("a test repeats it word by word:").expect("the session is there");
    let block = |language: &str| {
        let (_, rest) = part.split_once(&format!("```{language}\n")).expect("a block");
        rest.split_once("```").expect("it ends").0
    };
    let test = "the_session_of_the_page_about_operating_says_what_the_page_says";
    let Some(mut net) = Net::served(test, block("rav"), "") else { return };
    let (session, mut repeated) = (block("text"), String::new());
    for command in session.lines().filter_map(|line| line.strip_prefix("# ravelin table ")) {
        let words = command.split('\'').enumerate().flat_map(|(place, part)| match place % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        });
        let (_, said, errors) = table(&net, &words.collect::<Vec<_>>());
        repeated += &format!("# ravelin table {command}\n{said}{errors}");
    }
    assert_eq!(repeated, session, "{repeated}");
    net.stop();
}

#[test]
fn a_subscriber_that_does_not_read_is_told_how_many_it_lost() {
    let Some(mut net) = served("a_subscriber_that_does_not_read_is_told_how_many_it_lost", "") else {
        return;
    };
    let passed = |net: &Net| {
        let view = net.ask(&["show", "run", "--total"]);
        view["now"]["report"]["events"]["passed"].as_u64().expect("a number")
    };
    let (mut idle, mut reader) = (connected(&net), connected(&net));
    let names = || vec!["passed".to_owned()];
    let before = passed(&net);
    idle.subscribe(names(), Vec::new(), 0).expect("begins");
    reader.subscribe(names(), Vec::new(), 0).expect("begins");
    // More than the queue and the socket hold, one part after the other, so that who reads keeps up.
    let count = |client: &mut TableClient| {
        let (mut told, mut lost) = (0, 0);
        while let Some((_, answer)) = client.next(Duration::from_secs(2)).expect("goes on") {
            match answer {
                client::answer::TableAnswer::Event(event) => told += u64::from(event.event == 1),
                client::answer::TableAnswer::Lost { count } => lost += count,
                other => panic!("{other:?}"),
            }
        }
        (told, lost)
    };
    let mut read = 0;
    for _ in 0..10 {
        net.run("a", "ping", &["-f", "-q", "-c", "2000", "-s", "8", "-w", "20", "10.0.0.2"]);
        let (told, lost) = count(&mut reader);
        assert_eq!(lost, 0, "who reads loses nothing");
        read += told;
    }
    let (told, lost) = count(&mut idle);
    let raised = passed(&net) - before;
    assert_eq!((told + lost, read), (raised, raised));
    assert!(lost > 0 && told >= 8192, "{told} told, {lost} lost");
    net.stop();
}

#[test]
fn the_answer_to_a_subscription_comes_before_what_it_tells() {
    let Some(mut net) = served("the_answer_to_a_subscription_comes_before_what_it_tells", "") else { return };
    let mut ping = net.at("a", "ping", &["-f", "-q", "-w", "60", "-s", "8", "10.0.0.2"]);
    let mut ping = ping.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("ping runs");
    let mut stream = UnixStream::connect(net.path("control.sock")).expect("is accepted");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("can be set");
    stream.write_all(b"{\"ask\":\"tables\",\"version\":1}\n").expect("is read");
    let mut byte = [0];
    while byte != *b"\n" {
        stream.read_exact(&mut byte).expect("the gateway answers");
    }
    let mut begun = 0;
    for number in 1..=2000_u32 {
        // Subscribes, asks for 20 lists, and ends the subscription when the lists are there.
        let subscribe = b"\x0c\0\0\0\0\0\x01\x06passed\0\0";
        let list = b"\x02\0\x01\0\0\0\0\x10\0\0";
        let unsubscribe = [&[13][..], &number.to_be_bytes()].concat();
        let frame = |number: u32, body: &[u8]| {
            [&(body.len() as u32 + 4).to_be_bytes()[..], &number.to_be_bytes(), body].concat()
        };
        let lists = (1000..1020).map(|number| frame(number, list));
        let begin = [frame(number, subscribe)].into_iter().chain(lists).collect::<Vec<_>>().concat();
        let mut seen = Vec::new();
        for (requests, last) in [(begin, (1019, 131)), (frame(1020, &unsubscribe), (1020, 129))] {
            stream.write_all(&requests).expect("is read");
            while seen.last() != Some(&last) {
                let mut head = [0; 9];
                stream.read_exact(&mut head).expect("an answer comes");
                let word =
                    |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
                let mut body = vec![0; word(0) as usize - 5];
                stream.read_exact(&mut body).expect("the answer is whole");
                seen.push((word(4), head[8]));
            }
        }
        let first = seen.iter().find(|(of, _)| *of == number).expect("it is answered");
        if first.1 == 255 {
            // Ended subscriptions count until their threads have ended, which a busy machine lets wait.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        }
        assert_eq!(first.1, 129, "{:?}", &seen[..seen.len().min(9)]);
        begun += 1;
        if begun == 100 {
            break;
        }
    }
    assert_eq!(begun, 100);
    ping.kill().expect("can be ended");
    ping.wait().expect("ends");
    net.stop();
}

#[test]
fn subscriptions_are_limited_and_end_with_their_client() {
    let Some(mut net) = served("subscriptions_are_limited_and_end_with_their_client", "") else { return };
    let subscribe = |client: &mut TableClient| client.subscribe(vec!["moved".into()], Vec::new(), 0);
    let mut clients: Vec<TableClient> = (0..8).map(|_| connected(&net)).collect();
    let numbers: Vec<u32> = (0..4).map(|_| subscribe(&mut clients[0]).expect("begins")).collect();
    let refused = subscribe(&mut clients[0]).expect_err("a fifth one").to_string();
    assert!(refused.contains("at most 4 subscriptions"), "{refused}");
    for client in clients.iter_mut().skip(1) {
        subscribe(client).expect("begins");
    }
    let mut ninth = connected(&net);
    let refused = subscribe(&mut ninth).expect_err("a ninth client").to_string();
    assert!(refused.contains("8 clients subscribe already"), "{refused}");
    // Ending all subscriptions makes room for another client, and so does going away, also by halves.
    for number in numbers {
        assert_eq!(clients[0].change_one(&TableRequest::Unsubscribe { number }).expect("goes on"), 1);
    }
    subscribe(&mut ninth).expect("has room");
    drop(clients);
    let mut stream = UnixStream::connect(net.path("control.sock")).expect("is accepted");
    let names = b"\x00\x00\x00\x14\x00\x00\x00\x01\x0c\x00\x00\x00\x00\x00\x01\x06passed\x00\x00";
    stream.write_all(b"{\"ask\":\"tables\",\"version\":1}\n").expect("is read");
    stream.write_all(names).expect("is read");
    stream.shutdown(std::net::Shutdown::Write).expect("can be closed");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("comes to an end");
    let said = String::from_utf8_lossy(&bytes);
    assert!(said.starts_with("{\"tables\":") && bytes.ends_with(&[129, 0, 0, 0, 1]), "{said}");
    let mut again = connected(&net);
    let end = Instant::now() + Duration::from_secs(20);
    while let Err(error) = subscribe(&mut again) {
        assert!(Instant::now() < end, "{error}");
    }
    net.stop();
}

#[test]
fn the_example_in_python_lists_adds_and_watches() {
    let test = "the_example_in_python_lists_adds_and_watches";
    if !net::installed(test, &["python3"]) {
        return;
    }
    let Some(mut net) = served(test, "") else { return };
    let control = net.path("control.sock").display().to_string();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/tables.py");
    let python = |arguments: &[&str]| {
        let mut command = Command::new("python3");
        command.arg(script).arg(&control).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("python runs")
    };
    let said = |child: std::process::Child| {
        let Output { stdout, stderr, .. } = child.wait_with_output().expect("ended");
        String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr)
    };
    assert_eq!(said(python(&["add", "networks", "20.0.0.0/8 => (2, 1)"])), "");
    assert_eq!(said(python(&["list", "networks"])), "10.0.0.0/8 => 1, 7\n20.0.0.0/8 => 2, 1\n");
    assert!(
        said(python(&["add", "networks", "20.0.0.0 => true"])).contains("this is no value of `networks`")
    );
    let mut watching = python(&["watch", "1", "moved"]);
    let end = Instant::now() + Duration::from_secs(60);
    while watching.try_wait().expect("can be asked").is_none() {
        assert!(Instant::now() < end, "it does not end");
        assert!(table(&net, &["add", "hosts", "02:00:00:00:00:01 => 2", "--learn"]).0);
        net.run("a", "ping", &["-c", "1", "-W", "1", "10.0.0.2"]);
    }
    assert_eq!(said(watching), "moved(02:00:00:00:00:01, 2)\n");
    net.stop();
}

#[test]
fn a_table_that_the_gateway_fills_is_not_changed_from_outside() {
    let Some(mut net) = Net::routed("a_table_that_the_gateway_fills_is_not_changed_from_outside") else {
        return;
    };
    let port =
        |host, number| format!("[[port]]\ninterface = \"to-{host}\"\naddresses = [\"10.0.{number}.1/24\"]\n");
    net.serve_ports(&net::program("router.rav"), &(port("a", 1) + &port("b", 2)));
    assert_eq!(net.pings("10.0.2.2"), 20);
    let routes = shown(&net, "routes");
    assert!(routes.lines().any(|line| line.starts_with("10.0.1.0/24 => ")), "{routes}");
    let (done, _, errors) = table(&net, &["add", "routes", "10.9.0.0/16 => 1"]);
    assert!(!done && errors.contains("change those, as with `ip route add`"), "{errors}");
    let (done, _, errors) = table(&net, &["remove", "routes", "10.0.1.0/24"]);
    assert!(!done && errors.contains("the gateway itself fills `routes`"), "{errors}");
    let mut client = connected(&net);
    let (number, _) = client.schema().table("routes").expect("is there");
    assert!(client.replace(number, []).is_err());
    assert_eq!(shown(&net, "routes"), routes);
    // Its other tables are open.
    let (done, _, errors) = table(&net, &["add", "signatures", "\"nothing of the kind\" => 1"]);
    assert!(!done && errors.contains("replace the table"), "{errors}");
    assert_eq!(net.pings("10.0.2.2"), 20);
    net.stop();
}

#[test]
fn a_client_of_an_earlier_program_is_told_to_ask_again() {
    let Some(mut net) = served("a_client_of_an_earlier_program_is_told_to_ask_again", "") else { return };
    let mut client = connected(&net);
    let insert = || TableRequest::Insert { table: 1, entry: network(1, 1) };
    assert_eq!(client.change_one(&insert()).expect("is taken"), 1);
    let learn = TableEntry { key: vec![KeyMatch::Exact(7)], priority: 0, value: vec![2] };
    client
        .change_one(&TableRequest::Learn { table: 0, entry: learn.clone(), lifetime: None })
        .expect("is taken");
    let subscription = client.subscribe(vec!["moved".into()], Vec::new(), 0).expect("begins");
    assert_eq!(client.change_one(&TableRequest::Replace { table: 1 }).expect("nobody else does"), 0);
    // Another client follows events and asks for nothing: the next program's event has another argument.
    let mut follower = connected(&net);
    let followed = follower.subscribe(vec!["moved".into()], Vec::new(), 0).expect("begins");
    let program = PROGRAM.replace("from: port)", "from: port, more: u64)");
    let program = program.replace("moved(eth.src, p)", "moved(eth.src, p, 0x0123456789abcdef)");
    fs::write(net.path("program.rav"), program).expect("can be written");
    net.ask(&["reload"]);
    for request in [insert(), TableRequest::Commit] {
        match client.change_one(&request) {
            Err(ClientError::Refused(fault)) => {
                assert_eq!(fault.code, client::RefusalCode::Changed, "{fault}")
            }
            other => panic!("{request:?}: {other:?}"),
        }
    }
    let error = client.list(1, 0, 10, Vec::new()).expect_err("is refused");
    assert!(error.to_string().contains("another program has taken over"), "{error}");
    assert_eq!(client.renew().expect("is told").generation, 2);
    // What was inserted has ended with its program; what was learned goes on.
    assert_eq!(client.list(1, 0, 10, Vec::new()).expect("goes on").0.len(), 1);
    assert_eq!(client.find(0, learn.key.clone(), 0).expect("goes on")[0].entry, learn);
    // The subscription goes on, behind the schema of the new program.
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        assert!(Instant::now() < end, "nothing is told");
        let moved = TableEntry { key: vec![KeyMatch::Exact(0x0200_0000_0001)], priority: 0, value: vec![2] };
        client.change_one(&TableRequest::Learn { table: 0, entry: moved, lifetime: None }).expect("is taken");
        net.run("a", "ping", &["-c", "1", "-W", "1", "10.0.0.2"]);
        if let Some((number, told)) = client.next(Duration::from_millis(500)).expect("goes on") {
            assert!(
                number == subscription && matches!(told, client::answer::TableAnswer::Event(_)),
                "{told:?}"
            );
            break;
        }
    }
    assert_eq!(client.told_schema().generation, 2);
    match follower.next(Duration::from_secs(30)).expect("goes on") {
        Some((number, client::answer::TableAnswer::Event(told))) => {
            let arguments = [0x0200_0000_0001, 2, 0x0123_4567_89ab_cdef];
            assert_eq!((number, &told.arguments[..]), (followed, &arguments[..]));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(follower.told_schema().events[0].arguments.len(), 3);
    net.stop();
}

#[test]
fn clients_that_send_garbage_or_stall_hurt_nobody() {
    let Some(mut net) = served("clients_that_send_garbage_or_stall_hurt_nobody", "") else { return };
    let path = net.path("control.sock");
    let hello = b"{\"ask\":\"tables\",\"version\":1}\n";
    let mut stalled = Vec::new();
    let mut random = 0x9e37_79b9_u32;
    let mut next = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 24) as u8
    };
    for client in 0..40_usize {
        let mut stream = UnixStream::connect(&path).expect("is accepted");
        stream.set_write_timeout(Some(Duration::from_millis(300))).expect("can be set");
        // Whoever is turned away may find the connection closed.
        let _ = stream.write_all(hello);
        let _ = match client % 5 {
            // Frames of random kinds and bodies.
            0 => (0..200).try_for_each(|_| {
                let body: Vec<u8> = (0..next() % 40).map(|_| next()).collect();
                let head = [(body.len() as u32 + 5).to_be_bytes(), 7_u32.to_be_bytes()].concat();
                stream.write_all(&[&head[..], &[next() % 16], &body].concat())
            }),
            // An impossible length.
            1 => stream.write_all(&[0xff; 64]),
            // A frame that never ends.
            2 => stream.write_all(&[0, 1, 0, 0, 0, 0]),
            // Many lists, of which no answer is read.
            3 => (0..200_000_u32).try_for_each(|number| {
                let list =
                    [&[0, 0, 0, 14][..], &number.to_be_bytes(), &[2, 0, 1, 0, 0, 0, 0, 16, 0, 0]].concat();
                stream.write_all(&list)
            }),
            // Text.
            _ => stream.write_all(b"{\"ask\":\"picture\"}\n"),
        };
        stalled.push(stream);
    }
    assert_eq!(net.pings("10.0.0.2"), 20);
    // A client of good will has its turn as soon as a silent one can make room.
    let end = Instant::now() + Duration::from_secs(60);
    let mut client = loop {
        match TableClient::connect(&path) {
            Ok(client) => break client,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    let insert = |number| TableRequest::Insert { table: 1, entry: network(number, 2) };
    let mut taken = 0;
    client.change((0..500).map(insert), |_, told| taken += told.expect("is taken")).expect("goes on");
    assert_eq!(taken, 500);
    drop(stalled);
    assert_eq!(shown(&net, "networks").lines().count(), 501);
    net.stop();
}
