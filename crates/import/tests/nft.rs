//! Linux' own nft judges what the exporter writes: it takes it, and what it prints again means the same.

use import::nft::{ChainOptions, ExportLayout, read, write_json, write_text};
use import::{ImportedRules, Naming, iptables};
use std::io::Write;
use std::process::{Command, Stdio};

const DUMP: &str = "*filter
:FORWARD DROP [0:0]
:local - [0:0]
-A FORWARD -s 10.0.0.0/8 -d 192.0.2.1 -p tcp -m tcp --dport 22 -j ACCEPT
-A FORWARD -s 10.0.0.1/255.0.0.255 -j DROP
-A FORWARD -m iprange --src-range 172.16.0.1-172.16.0.9 -j ACCEPT
-A FORWARD -p udp -m multiport --dports 53,1024:2047 -j ACCEPT
-A FORWARD ! -p tcp -j local
-A FORWARD -p tcp --syn -j ACCEPT
-A FORWARD -p tcp --tcp-flags ALL NONE -j DROP
-A FORWARD -p icmp --icmp-type 3/4 -j ACCEPT
-A FORWARD -i eth0 ! -o lo -j ACCEPT
-A FORWARD -m mac --mac-source 02:00:00:00:00:0a -j ACCEPT
-A local -d 192.0.2.0/24 -j RETURN
-A local -p 89 -j ACCEPT
COMMIT
";

const FILTERS: &str = "@10.0.0.0/8\t0.0.0.0/0\t0 : 65535\t53 : 53\t0x11/0xFF\t0x0000/0x0000\t
@0.0.0.0/0\t10.1.0.0/16\t80 : 80\t1024 : 65535\t0x00/0x00\t0x0000/0x0000\t
@10.0.0.1/32\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x06/0xFF\t0x0000/0x0000\t
";

/// Runs nft in a network namespace of its own, so that no rule reaches this machine; `None` where that is not
/// possible.
fn nft(script: &str, input: &str) -> Option<(bool, String)> {
    let command = format!("nft list ruleset >/dev/null || exit 77\n{script}");
    let mut child = Command::new("unshare")
        .args(["--net", "sh", "-c", &command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    // A child that ended early has said why on its standard error.
    let _ = child.stdin.take()?.write_all(input.as_bytes());
    let output = child.wait_with_output().ok()?;
    let possible = output
        .status
        .code()
        .is_some_and(|code| code != 77 && code != 1 || !output.stderr.starts_with(b"unshare"));
    if output.status.code() == Some(77) || !possible {
        return None;
    }
    let printed = if output.status.success() { output.stdout } else { output.stderr };
    Some((output.status.success(), String::from_utf8_lossy(&printed).into_owned()))
}

fn rule_sets() -> Vec<ImportedRules> {
    let dump =
        iptables::read(DUMP.as_bytes(), &iptables::ChainOptions::default()).expect("the dump can be kept");
    let mut filters =
        import::classbench::read(FILTERS.as_bytes(), &Default::default()).expect("these are filters");
    filters.default = Some(true);
    for (index, rule) in filters.rules.iter_mut().enumerate() {
        rule.allow = Some(index % 2 == 0);
    }
    vec![dump, filters]
}

/// Values near the ends of all fields, and a few between them.
fn keys(rules: &ImportedRules) -> Vec<Vec<(&'static str, u128)>> {
    let choices: [(&str, &[u128]); 12] = [
        ("src", &[0x0a00_0001, 0x0a00_0002, 0x0aff_ff01, 0xac10_0001, 0xac10_000a, 0x0b00_0000]),
        ("dst", &[0xc000_0201, 0xc000_0202, 0x0a01_0000, 0x0a02_0000, 7]),
        ("sport", &[0, 80, 65535]),
        ("dport", &[22, 53, 1023, 1024, 2048]),
        ("proto", &[1, 6, 17, 89]),
        ("icmp_type", &[3, 8]),
        ("icmp_code", &[4, 0]),
        ("tcp_flags", &[0, 2, 0x12]),
        ("in_port", &[0, 1, 2]),
        ("out_port", &[0, 1, 2]),
        ("src_mac", &[0x0200_0000_000a, 1]),
        ("fragment", &[0, 0, 1]),
    ];
    let (mut state, mut keys) = (1u64, Vec::new());
    for _ in 0..20_000 {
        let key = choices.iter().filter(|(name, _)| rules.column(name).is_some()).map(|(name, values)| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*name, values[(state >> 33) as usize % values.len()])
        });
        let mut key: Vec<(&'static str, u128)> = key.collect();
        let of = |name: &str, key: &[(&str, u128)]| {
            key.iter().find(|(own, _)| *own == name).map_or(0, |(_, value)| *value)
        };
        let (proto, later) = (of("proto", &key), of("fragment", &key) == 1);
        for (name, value) in &mut key {
            // What a header holds is 0 where there is none.
            let has = match *name {
                "sport" | "dport" => !later && matches!(proto, 6 | 17),
                "icmp_type" | "icmp_code" => !later && proto == 1,
                "tcp_flags" => !later && proto == 6,
                _ => true,
            };
            *value = if has { *value } else { 0 };
        }
        keys.push(key);
    }
    keys
}

fn decision(rules: &ImportedRules, key: &[(&str, u128)]) -> Option<bool> {
    let value = |name: &str| key.iter().find(|(own, _)| *own == name).map_or(0, |(_, value)| *value);
    let values: Vec<u128> = rules.columns.iter().map(|column| value(column.name)).collect();
    rules.allows(&values)
}

#[test]
fn nft_takes_what_is_written_and_means_the_same() {
    for rules in rule_sets() {
        let text = write_text(&rules, &ExportLayout::default()).expect("nftables can say this");
        let json = write_json(&rules, &ExportLayout::default()).expect("nftables can say this");
        for (script, input) in [
            ("nft -c -f - && nft -f - < /dev/null", &text),
            ("nft -f - && nft -j list ruleset", &text),
            ("nft -j -f - && nft -j list ruleset", &json),
        ] {
            let Some((taken, printed)) = nft(script, input) else {
                println!("nft cannot be run in a namespace of its own here: nothing was judged");
                return;
            };
            assert!(taken, "nft refuses:\n{printed}\n{input}");
            if script.ends_with("null") {
                continue;
            }
            let options = ChainOptions {
                interfaces: Naming::Ports(rules.interfaces.clone()),
                ..ChainOptions::default()
            };
            let again = read(printed.as_bytes(), &options).expect("what nft prints can be kept");
            let mut decided = [0, 0];
            for key in keys(&rules) {
                let wanted = decision(&rules, &key);
                assert_eq!(decision(&again, &key), wanted, "{key:?}\n{text}");
                decided[usize::from(wanted == Some(true))] += 1;
            }
            assert!(decided.iter().all(|count| *count > 100), "the keys decide nothing: {decided:?}");
        }
    }
}

/// The dumps in the folder of files from outside; none without it.
fn dumps() -> Vec<(String, Vec<u8>)> {
    let Some(data) = std::env::var_os("RAVELIN_DATA").map(std::path::PathBuf::from) else {
        println!("RAVELIN_DATA names no folder of files: no dump was written");
        return Vec::new();
    };
    let file = std::fs::File::open(data.join("acl/iptables-real.tar.zst")).expect("the archive is there");
    let stream = ruzstd::decoding::StreamingDecoder::new(file).expect("an archive is zstd");
    let mut dumps = Vec::new();
    for entry in tar::Archive::new(stream).entries().expect("an archive is tar") {
        let mut entry = entry.expect("an archive is whole");
        let name = entry.path().expect("a file has a name").display().to_string();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut bytes).expect("an archive is whole");
        dumps.push((name, bytes));
    }
    dumps
}

#[test]
fn nft_takes_what_real_dumps_become() {
    for (name, text) in dumps() {
        for (table, chain) in iptables::chains(&text).unwrap_or_default() {
            let options = iptables::ChainOptions {
                table,
                chain: Some(chain.clone()),
                first_packets: true,
                lenient: true,
                ..iptables::ChainOptions::default()
            };
            let rules = iptables::read(&text, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
            let written = write_text(&rules, &ExportLayout::default())
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let Some((taken, printed)) = nft("nft -c -f -", &written) else {
                println!("nft cannot be run in a namespace of its own here: nothing was judged");
                return;
            };
            assert!(taken, "{name} {chain}: nft refuses:\n{printed}");
            println!("{name} {}/{chain}: nft takes {} rules", options.table, rules.rules.len());
        }
    }
}
