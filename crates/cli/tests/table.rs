//! `ravelin table` and the generators beside it, as their users call them.

use assert_cmd::Command;
use std::fs;
use std::path::{Path, PathBuf};

fn ravelin() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("ravelin"))
}

/// Runs to the expected exit code: standard output, standard error.
fn run(arguments: &[&str], code: i32) -> (String, String) {
    let output = ravelin().args(arguments).assert().code(code).get_output().clone();
    (String::from_utf8(output.stdout).expect("text"), String::from_utf8(output.stderr).expect("text"))
}

/// A directory for the files of a test.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("directory"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, contents: &str) -> String {
        fs::write(self.path(name), contents).expect("a file can be written");
        self.path(name)
    }

    /// A file that a generator made.
    fn generated(&self, name: &str, arguments: &[&str]) -> String {
        run(&[&["generate"], arguments, &["-o", &self.path(name)]].concat(), 0);
        self.path(name)
    }
}

#[test]
fn all_ways_to_look_up_routes_answer_the_same() {
    let files = Files::new();
    for family in ["v4", "v6"] {
        let shape = ["--family", family, "--count", "3000", "--next-hops", "9", "--seed", "5"];
        let routes = files.generated("routes", &[&["routes"], &shape[..]].concat());
        for traffic in ["uniform", "prefixes", "zipf"] {
            let kind = ["addresses", "--addresses", "500", "--traffic", traffic];
            let queries = files.generated("queries", &[&kind[..], &shape].concat());
            let ask = ["table", "lpm", &routes, "--lookup", &queries];
            let (slow, _) = run(&[&ask[..], &["--linear"]].concat(), 0);
            assert_eq!(slow.lines().count(), 500);
            let hits = slow.lines().filter(|line| line.split(' ').count() == 3).count();
            assert!(traffic == "uniform" || hits == 500, "{traffic}: {hits}");
            for way in [&[][..], &["--bulk"], &["--compact"], &["--compact", "--bulk", "--stats"]] {
                assert_eq!(run(&[&ask[..], way].concat(), 0).0, slow, "{family} {traffic} {way:?}");
            }
        }
    }
}

#[test]
fn all_ways_to_look_up_rules_answer_what_the_trace_says() {
    let files = Files::new();
    for flavour in ["acl", "firewall", "chains"] {
        let shape = ["--flavour", flavour, "--count", "300", "--seed", "3"];
        let rules = files.generated("rules", &[&["rules"], &shape[..]].concat());
        let trace = files.generated("trace", &[&["trace", "--headers", "700"], &shape[..]].concat());
        let text = fs::read_to_string(&trace).expect("a trace is text");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let wanted: String =
            lines.map(|line| format!("{}\n", line.split_ascii_whitespace().last().expect("words"))).collect();
        assert_eq!(wanted.lines().count(), 700);
        for way in [&[][..], &["--bulk"], &["--linear"]] {
            let ask = ["table", "rules", &rules, "--lookup", &trace];
            assert_eq!(run(&[&ask[..], way].concat(), 0).0, wanted, "{flavour} {way:?}");
        }
    }
}

#[test]
fn all_ways_to_search_find_the_same() {
    let files = Files::new();
    let shape = ["--count", "200", "--seed", "3"];
    let patterns = files.generated("patterns", &[&["patterns"], &shape[..]].concat());
    let capture = files.path("traffic.pcapng");
    run(&["generate", "--packets", "300", "--seed", "7", "-o", &capture], 0);
    let ask = ["table", "patterns", &patterns, "--lookup", &capture];
    let (slow, _) = run(&[&ask[..], &["--linear"]].concat(), 0);
    for way in [&[][..], &["--bloom"], &["--stats"]] {
        assert_eq!(run(&[&ask[..], way].concat(), 0).0, slow, "{way:?}");
    }
    // A string that is in all frames with bytes from the generator's own payload.
    let one = files.write("one", "0\t0\t1\t00\t1\n1\t1\t1\t41\t2\n");
    let (found, _) = run(&["table", "patterns", &one, "--lookup", &capture], 0);
    assert_eq!(found, run(&["table", "patterns", &one, "--lookup", &capture, "--linear"], 0).0);
    assert!(found.lines().count() > 10, "{found}");
    let payload =
        fs::read(files.generated("payload", &[&["payload", "--bytes", "5000"], &shape[..]].concat()));
    assert_eq!(payload.expect("bytes").len(), 5000);
}

#[test]
fn rules_that_decide_say_their_line_and_decision() {
    let files = Files::new();
    let dump = files.write(
        "dump",
        "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i eth0 -p tcp --dport 80 -j ACCEPT\n-A FORWARD -p udp -j REJECT\nCOMMIT\n",
    );
    let queries = files.write("queries", "10.0.0.1 10.0.0.2 9 80 6 in_port=eth0\n1 2 9 80 6\n1 2 3 4 17\n");
    let (answers, _) = run(&["table", "rules", &dump, "--lookup", &queries], 0);
    assert_eq!(answers, "0\t3\tpass\n-1\t-\tdrop\n1\t4\tdrop\n");
    let configuration = files.write("conf", "access-list 7 deny host 10.0.0.1\naccess-list 8 permit any\n");
    let (answers, _) =
        run(&["table", "rules", &configuration, "--chain", "8", "--lookup", &queries.clone()], 0);
    assert_eq!(answers, "0\t2\tpass\n0\t2\tpass\n0\t2\tpass\n");
    let (_, told) = run(&["table", "rules", &configuration, "--lookup", &queries], 2);
    assert!(told.contains("there are: 7, 8"), "{told}");
}

#[test]
fn a_line_that_cannot_be_kept_ends_the_command_with_its_place() {
    let files = Files::new();
    let routes = files.write("routes", "10.0.0.0/8 192.0.2.1\n10.0.0.0/8 192.0.2.2\n");
    let good = files.write("good", "10.0.0.0/8 192.0.2.1\n");
    let queries = files.write("queries", "10.1.1.1\n");
    let wrong = files.write("wrong", "10.1.1.1\n::1\n");
    let state =
        files.write("dump", "*filter\n:FORWARD DROP\n-A FORWARD -m state --state NEW -j ACCEPT\nCOMMIT\n");
    for (arguments, code, part) in [
        (
            &["lpm", &routes, "--lookup", &queries][..],
            1,
            "line 2, column 1: 10.0.0.0/8 goes to 192.0.2.2 here",
        ),
        (&["lpm", &good, "--lookup", &wrong], 1, "line 2, column 1: `::1` is no IPv4 address"),
        (&["lpm", &good, "--lookup", "/nowhere"], 2, "cannot read /nowhere"),
        (&["lpm", "-", "--lookup", "-"], 2, "only one file can be standard input"),
        (&["lpm", &good, "--lookup", &queries, "--json"], 2, "leave out --json"),
        (&["rules", &state, "--lookup", &queries], 1, "line 3, column 15: the match `state`"),
        (&["rules", &state, "--lookup", &queries, "--lenient", "--chain", "x"], 1, "no chain `x`"),
        (&["patterns", &good, "--lookup", &queries], 1, "line 1"),
    ] {
        let (printed, told) = run(&[&["table"], arguments].concat(), code);
        assert!(told.contains(part), "{arguments:?}: {told}");
        assert!(printed.is_empty() || arguments.contains(&"--json"), "{arguments:?}: {printed}");
    }
    let packets = files.write("packets", "1 2 3 4 6\n");
    let (printed, told) = run(&["table", "rules", &state, "--lookup", &packets, "--lenient"], 0);
    assert!(told.contains("left out: line 3") && printed == "-1\t-\tdrop\n", "{told}{printed}");
}

const PROGRAM: &str = "// Lets through what its rules permit.

import std.net.{ethernet, ipv4, tcp}

table acl: rules(src: ip4, dst: ip4, proto: u8, dport: u16) -> { permit, deny } {
    capacity 16
    choose priority
    entries {
        (10.0.0.0/8, _, 6, 22) priority 1 => deny
        (_, 192.0.2.0/24, 6, 80..89) priority 2 => permit
        (10.0.0.1 mask 255.0.0.255, _, _, _) priority 3 => deny
    }
    default => deny
}

start decoder frame(eth: ethernet) {
    match eth.type { 0x0800 => packet else => drop other }
}

decoder packet(ip: ipv4) {
    match ip.proto { 6 if ip.frag == 0 => segment else => drop other }
}

decoder segment(t: tcp) {
    match acl[ip.src, ip.dst, ip.proto, t.dst] {
        permit => flood
        deny => drop denied
        none => drop denied
    }
}
";

#[test]
fn rules_of_programs_and_files_become_nftables() {
    let files = Files::new();
    let program = files.write("program.rav", PROGRAM);
    let (text, _) = run(&["export", "nft", &program], 0);
    let rules = "\t\tip saddr & 255.0.0.255 == 10.0.0.1 drop comment \"line 3\"
\t\tip daddr 192.0.2.0/24 tcp dport 80-89 accept comment \"line 2\"
\t\tip saddr 10.0.0.0/8 tcp dport 22 drop comment \"line 1\"\n";
    assert!(text.contains("policy drop;\n") && text.contains(rules), "{text}");
    let json = files.write("rules.json", &run(&["export", "nft", &program, "--as-json"], 0).0);
    let queries = files.write(
        "queries",
        "10.0.0.1 192.0.2.1 9 80 6\n10.0.0.2 192.0.2.1 9 80 6\n10.0.0.2 1 9 22 6\n1 2 3 4 6\n",
    );
    let (answers, _) = run(&["table", "rules", &json, "--lookup", &queries], 0);
    assert_eq!(
        answers.lines().map(|line| line.rsplit('\t').next()).collect::<Vec<_>>(),
        [Some("drop"), Some("pass"), Some("drop"), Some("drop")]
    );
    let filters =
        files.write("filters", "@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t53 : 53\t0x11/0xFF\t0x0000/0x0000\n");
    let (_, told) = run(&["export", "nft", &filters], 1);
    assert!(told.contains("a packet that none fits"), "{told}");
    let (text, _) = run(&["export", "nft", &filters, "--default", "drop", "--decision", "accept"], 0);
    assert!(text.contains("ip saddr 10.0.0.0/8 udp dport 53 accept"), "{text}");
    let renamed = files.write("renamed.rav", &PROGRAM.replace("dport: u16", "to: u16"));
    let (_, told) = run(&["export", "nft", &renamed], 1);
    assert!(told.contains("column 4, `to` of 16 bits, is none that nftables has"), "{told}");
    let (_, told) = run(&["export", "nft", &program, "--rules", "nothing"], 2);
    assert!(told.contains("there are: acl"), "{told}");
}

/// The folder of files from outside; without it there is nothing to compare with.
fn data() -> Option<PathBuf> {
    let data = std::env::var_os("RAVELIN_DATA").map(PathBuf::from);
    if data.is_none() {
        println!("RAVELIN_DATA names no folder of files: nothing was compared");
    }
    data
}

#[test]
fn what_rules_ask_beyond_strings_is_told_or_refused() {
    let files = Files::new();
    let rules = files.write(
        "rules",
        "alert tcp any any -> any 80 (content:\"abc\"; sid:1;)\nalert tcp any any -> any 80 (content:\"abc\"; pcre:\"/x/\"; sid:2;)\n",
    );
    let capture = files.path("empty.pcap");
    fs::write(
        &capture,
        [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 1, 0, 0, 0],
    )
    .expect("a file can be written");
    let ask = ["table", "patterns", &rules, "--lookup", &capture];
    let (_, told) = run(&ask, 0);
    assert!(told.contains("left out: 1 conditions") && told.contains("line 2, column"), "{told}");
    let (_, refused) = run(&[&ask[..], &["--strict"]].concat(), 1);
    assert!(refused.contains("line 2, column") && refused.contains("pcre"), "{refused}");
}

#[test]
fn entries_of_a_file_and_of_the_program_are_for_different_keys() {
    let files = Files::new();
    let program = files.write(
        "p.rav",
        "table t: lpm(ip4) -> port { capacity 9 entries { 10.0.0.0/8 => 1 } from \"routes\" as routes }\nstart stage all() { flood }\n",
    );
    files.write("routes", "11.0.0.0/8 2\n");
    run(&["check", &program], 0);
    files.write("routes", "11.0.0.0/8 2\n10.0.0.0/8 3\n");
    let (_, told) = run(&["check", &program], 1);
    assert!(told.contains("entry 2 has a key for which the program has an entry of table `t`"), "{told}");
}

#[test]
fn members_of_a_group_come_from_a_file() {
    let files = Files::new();
    let program = files.write(
        "p.rav",
        "group listeners[9]: port { capacity 2 members { 5: 3 } from \"members\" }\n\
         start stage all() { multicast listeners[5] }\n\
         test \"to both\" { packet 2 { \"hello\" } expect send 3 expect out 1 { \"hello\" } }\n",
    );
    files.write("members", "5: 1  // joins the one of the program\n8: 2 weight 3\n");
    run(&["test", &program], 0);
    for (members, place) in [
        ("8: 2\n5: 3\n", "line 2, column 1: a member stands twice in `listeners`"),
        ("5: 1\n  5: 2\n", "line 2, column 3: `listeners` has room for 2 members"),
        ("5: 1\n9: 2\n", "line 2, column 1: this is no member of `listeners`"),
        ("5: 1\n8: 70000\n", "line 2, column 4: this has more than 16 bits"),
        ("5: 1\n8: 2", "line 2"),
    ] {
        files.write("members", members);
        let (_, told) = run(&["check", &program], 1);
        assert!(told.contains(place) && told.contains("nothing is loaded"), "{members:?}: {told}");
    }
    fs::remove_file(files.path("members")).expect("removed");
    let (_, told) = run(&["check", &program], 2);
    assert!(told.contains("which group `listeners` is filled from"), "{told}");
}

fn unpacked(path: &Path) -> String {
    use std::io::Read;
    let mut stream = ports::capture_in::open(&path.display().to_string()).expect("the file is there");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("the file is text");
    text
}

#[test]
fn full_tables_answer_byte_for_byte() {
    let Some(data) = data() else { return };
    for name in ["rib4", "rib6"] {
        let path = |file: &str| data.join(format!("routes/{name}-{file}.txt.gz")).display().to_string();
        let (routes, queries) = (path("2022"), path("queries"));
        let wanted = unpacked(Path::new(&queries));
        for way in [&[][..], &["--bulk"], &["--linear"], &["--compact", "--bulk"]] {
            let (answers, _) = run(&[&["table", "lpm", &routes, "--lookup", &queries], way].concat(), 0);
            assert!(answers == wanted, "{name} {way:?}");
        }
    }
}

#[test]
fn filters_answer_what_their_traces_say() {
    let Some(data) = data() else { return };
    let files = Files::new();
    let stream = ports::capture_in::open(&data.join("acl/classbench.tar.zst").display().to_string());
    tar::Archive::new(stream.expect("the archive is there"))
        .unpack(files.0.path())
        .expect("an archive is whole");
    let mut sets = 0;
    for entry in fs::read_dir(files.0.path().join("classbench")).expect("the archive has a folder") {
        let rules = entry.expect("a file").path().display().to_string();
        let Some(name) = rules.strip_suffix(".rules") else { continue };
        // A build that is not optimised takes minutes for the large sets.
        if cfg!(debug_assertions) && !name.ends_with("_1k") {
            continue;
        }
        let trace = format!("{name}.trace");
        let text = fs::read_to_string(&trace).expect("a trace is text");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let wanted: String =
            lines.map(|line| format!("{}\n", line.rsplit('\t').next().expect("a word"))).collect();
        for way in [&[][..], &["--bulk"]] {
            let (answers, _) = run(&[&["table", "rules", &rules, "--lookup", &trace], way].concat(), 0);
            assert!(answers == wanted, "{rules} {way:?}");
        }
        sets += 1;
    }
    assert_eq!(sets, if cfg!(debug_assertions) { 12 } else { 27 });
}

#[test]
fn payloads_hold_what_the_oracles_say() {
    let Some(data) = data() else { return };
    let capture = data.join("captures/s1like.pcap.zst").display().to_string();
    for (patterns, oracle) in [("literals-snort-community", "snort"), ("literals-et-a", "et-a")] {
        let patterns = data.join(format!("rules/{patterns}.tsv.gz")).display().to_string();
        let oracle = unpacked(&data.join(format!("captures/s1like.dpi-{oracle}.tsv.gz")));
        let wanted: String = oracle.split_inclusive('\n').filter(|line| !line.starts_with('#')).collect();
        for way in [&[][..], &["--bloom"]] {
            let (answers, _) =
                run(&[&["table", "patterns", &patterns, "--lookup", &capture], way].concat(), 0);
            assert!(answers == wanted, "{patterns} {way:?}");
        }
    }
}
