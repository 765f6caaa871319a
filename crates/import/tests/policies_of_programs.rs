//! Policies of programs whose rules come from files: a program decides, counts and logs as the policy of the
//! file says, and what it cannot do is refused at the line of the file.

#[path = "policies_of_programs/asking.rs"]
mod asking;
#[path = "policies_of_programs/texts.rs"]
mod texts;

use asking::{Buckets, COLUMNS, POINTS, counting, counts, probe, run_one};

use exec::{BackendKind, load};
use import::policies::{PolicyOptions, RULES_READER, read};
use ir::{Entry, Program};
use lang::pipeline::{CompileOptions, Compiled, compile};
use lang::policy_model::PolicyModel;
use lang::policy_rows::{HookRows, of_rows};
use policy::{
    AskedFamilies, HookPoint, Packet, PacketField, Path, Policy, Reject, Remembers, RuleAction, Step,
    Unreachable, difference, evaluate,
};
use std::cell::RefCell;
use texts::{Random, iptables_dump, npf_file, pf_file};

/// The ports of interfaces.
const INTERFACES: &str = "eth0 = 1  eth1 = 2  tun0 = 3";

fn compiled(program: &str, file: &str) -> Compiled {
    let load = |path: &str| (path == "rules").then(|| file.to_owned());
    let options = CompileOptions { rules_reader: Some(RULES_READER), ..CompileOptions::default() };
    compile("program.rav", program, &load, &options)
}

fn told(compiled: &Compiled) -> Vec<String> {
    let line = |found: &lang::diagnostic::Diagnostic| {
        let help = found.help.as_deref().unwrap_or_default();
        format!("{} {}: {}; {help}", compiled.sources.place(found.primary.span), found.code, found.headline)
    };
    compiled.diagnostics.iter().map(line).collect()
}

fn options() -> PolicyOptions {
    let interfaces = [("eth0", 1), ("eth1", 2), ("tun0", 3)];
    let interfaces = interfaces.map(|(name, port)| (name.to_owned(), port)).to_vec();
    PolicyOptions { interfaces, ..PolicyOptions::default() }
}

/// A packet as its fields and its bytes.
fn packet(random: &mut Random, point: HookPoint) -> (Packet, Vec<u8>) {
    let family = if random.below(5) == 0 { 6 } else { 4 };
    let proto = random.pick(&[6u128, 6, 6, 17, 17, 1, 58, 47]);
    let fragment = u128::from(random.below(8) == 0);
    let mut there = 0u16;
    if fragment == 0 {
        there |= u16::from(matches!(proto, 6 | 17));
        there |= if matches!((proto, family), (1, 4) | (58, 6)) { 2 } else { 0 };
        there |= if proto == 6 { 4 } else { 0 };
    }
    let values = COLUMNS.map(|(field, ..)| match field {
        PacketField::Family => family,
        PacketField::Protocol => proto,
        PacketField::LaterFragment => fragment,
        PacketField::Source | PacketField::Destination if family == 6 => {
            (0x2001_0db8 << 96) + u128::from(random.below(8))
        }
        PacketField::Source | PacketField::Destination => {
            (0xffff << 32) + (10 << 24) + u128::from(random.below(8))
        }
        PacketField::IcmpType => random.pick(&[8, 0, 3, 128]),
        PacketField::IcmpCode => u128::from(random.below(3)),
        PacketField::TcpFlags => random.pick(&[2, 0x12, 0x10, 0x11, 4, 0xc2, 0x3f, 0]),
        PacketField::Dscp | PacketField::Ecn | PacketField::TimeToLive => u128::from(random.below(4)),
        PacketField::Length => u128::from(random.below(4) * 20),
        PacketField::State | PacketField::OutState => u128::from(random.below(5)),
        PacketField::InPort | PacketField::OutPort => 1 + u128::from(random.below(4)),
        _ => u128::from(random.below(8)),
    });
    let fields = COLUMNS.into_iter().zip(values);
    let packet = fields.fold(Packet::default(), |packet, ((field, _, bit), value)| {
        packet.with(field, bit.is_none_or(|bit| there & bit != 0).then_some(value))
    });
    // A value that is not there is handed over all the same.
    (packet, probe(point, there, values))
}

fn reject_number(reject: Reject) -> usize {
    match reject {
        Reject::TcpReset => 0,
        Reject::ByProtocol => 1,
        Reject::Unreachable(Unreachable::NoRoute) => 2,
        Reject::Unreachable(Unreachable::Host) => 3,
        Reject::Unreachable(Unreachable::Port) => 4,
        Reject::Unreachable(Unreachable::Prohibited) => 5,
        Reject::Icmp(code) => 256 + usize::from(code),
        Reject::Icmpv6(code) => 512 + usize::from(code),
    }
}

/// What the counters are to say after a packet at a point.
fn expected(
    before: &[Vec<u64>],
    policy: &Policy,
    point: HookPoint,
    packet: &Packet,
    remembered: &dyn Fn(usize) -> bool,
) -> Vec<Vec<u64>> {
    let mut alone = policy.clone();
    alone.hooks.retain(|hook| hook.point == point);
    let path = [Path::Forwarded, Path::ToGateway, Path::FromGateway];
    let path = path.into_iter().find(|path| path.points().contains(&point)).expect("each point is on a way");
    // What is remembered at another point has no say at this one.
    let elsewhere = match (policy.remembers, point) {
        (Remembers::KeptByDirection | Remembers::KeptAtPort, HookPoint::Out | HookPoint::FromGateway) => {
            Some(PacketField::State)
        }
        (Remembers::KeptByDirection | Remembers::KeptAtPort, _) => Some(PacketField::OutState),
        _ => None,
    };
    let packet = elsewhere.map_or(packet.clone(), |field| packet.clone().with(field, None));
    let verdict = evaluate(&alone, path, &packet, remembered).expect("it ends");
    let mut counts = before.to_vec();
    let mut decided = 0;
    for step in &verdict.steps {
        let Step::Rule(group, index) = *step else {
            decided = 0;
            continue;
        };
        let rule = &policy.groups[group].rules[index];
        let line = rule.place.line as usize;
        counts[3][line] += u64::from(rule.log);
        use RuleAction::{Block, Keep, Pass, Reject};
        if matches!(rule.action, Pass | Keep | Block | Reject(_)) {
            decided = line;
        }
    }
    // Linux remembers what passes the last hook.
    let ends =
        policy.remembers == Remembers::Passed && matches!(point, HookPoint::ToGateway | HookPoint::Out);
    let action = if ends && verdict.action == RuleAction::Pass { RuleAction::Keep } else { verdict.action };
    counts[1][decided] += 1;
    match action {
        RuleAction::Pass => counts[0][0] += 1,
        RuleAction::Keep => {
            counts[0][1] += 1;
            counts[4][match policy.remembers {
                Remembers::KeptByDirection => 1,
                Remembers::KeptAtPort => 2,
                _ => 0,
            }] += 1;
        }
        RuleAction::Block => counts[0][2] += 1,
        RuleAction::Reject(reject) => {
            counts[0][3] += 1;
            counts[2][reject_number(reject)] += 1;
        }
        other => panic!("no verdict: {other:?}"),
    }
    counts
}

/// The policy of a file, as a program asks about it: about packets of both families.
fn imported_as_program(policy: &Policy) -> Policy {
    Policy { families: AskedFamilies::Both, ..policy.clone() }
}

/// The policy read back from the rows that the rules of a file became; `None` if they pass over too many
/// others.
fn policy_of_rows(compiled: &Compiled, program: &Program, imported: &Policy) -> Option<Policy> {
    // Some packets have no port to come in by, which no column of this program says.
    let model = PolicyModel { policy: Ok(imported_as_program(imported)), ..compiled.policies[0].clone() };
    let text = |row: &Entry| format!("{row:?}");
    let hook = |name: &String| {
        let table = program.tables.iter().find(|table| table.name == *name).expect("a table of a hook");
        HookRows { table, rows: table.entries.clone(), text: &text }
    };
    let hooks: Vec<HookRows<'_>> = model.tables.iter().map(hook).collect();
    match of_rows(&model, &hooks) {
        Err(why) if why.contains("pass over more than") => None,
        policy => Some(policy.expect("rows of rules can be said")),
    }
}

/// Runs packets through programs with random files; gives how many there were, and how often each action.
fn compare(format: &str, text: fn(&mut Random) -> String, files: u64) -> (usize, Vec<u64>, u64) {
    let (mut compared, mut read_back, mut acts, mut logged) = (0, 0, vec![0; 4], 0);
    for seed in 1..=files {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let text = text(&mut random);
        let imported = read(text.as_bytes(), format, &options()).expect("it is of the format");
        let compiled = compiled(&counting(format, INTERFACES), &text);
        if !imported.refused.is_empty() {
            let lines: Vec<_> = imported.refused.iter().map(|refused| refused.line).collect();
            let told: Vec<_> = compiled
                .diagnostics
                .iter()
                .map(|found| compiled.sources.line_column(found.primary.span).0)
                .collect();
            assert_eq!(lines, told, "seed {seed}: {:?}\n{text}", imported.refused);
            continue;
        }
        let Some(program) = &compiled.program else {
            // Rules can multiply beyond the bound, and a range can meet a mask; nothing else is wrong.
            let limits: Vec<&str> = compiled.diagnostics.iter().map(|found| found.code).collect();
            let known = limits.iter().all(|code| ["E0555", "E0558"].contains(code));
            assert!(known && !limits.is_empty(), "seed {seed}: {:#?}\n{text}", told(&compiled));
            continue;
        };
        compared += 1;
        // What passes over other rows is told by more rules the more limits there are.
        let rows = policy_of_rows(&compiled, program, &imported.policy);
        assert!(rows.is_some() || !imported.policy.memories.is_empty(), "seed {seed}\n{text}");
        if let Some(rows) = rows {
            read_back += 1;
            let found = difference(&imported_as_program(&imported.policy), &rows, 3).expect("it is small");
            assert!(found.classes.is_empty(), "seed {seed}: {:#?}\n{rows:#?}\n{text}", found.classes);
        }
        let mut backends = BackendKind::ALL.map(|kind| load(program, kind, 5, seed).expect("it loads"));
        let mut before = counts(backends[0].as_ref());
        let (buckets, mut now) = (RefCell::new(Buckets::of(&imported.policy)), 1_000);
        for number in 0..250 {
            let (point, word) = POINTS[number % POINTS.len()];
            let (packet, bytes) = packet(&mut random, point);
            now +=
                random.pick(&[1, 1_000, 9_000_000, 10_000_000, 333_000_000, 1_000_000_000, 20_000_000_000]);
            let remembered = |memory: usize| buckets.borrow_mut().asked(memory, now);
            let wanted = expected(&before, &imported.policy, point, &packet, &remembered);
            for backend in &mut backends {
                run_one(backend.as_mut(), &bytes, now);
                let are = counts(backend.as_ref());
                assert!(
                    are == wanted,
                    "seed {seed}, packet {number} at {word}: {packet:?}\nit is {:?}\nshould be {:?}\n{text}",
                    changed(&before, &are),
                    changed(&before, &wanted)
                );
            }
            before = wanted;
        }
        acts.iter_mut().zip(&before[0]).for_each(|(all, one)| *all += one);
        logged += before[3].iter().sum::<u64>();
    }
    assert!(read_back * 5 >= compared * 4, "{read_back} of {compared}");
    println!(
        "{format}: {compared} of {files} files, {read_back} read back; pass, keep, block, reject {acts:?}, logged {logged}"
    );
    (compared, acts, logged)
}

/// The cells of counters that went on.
fn changed(before: &[Vec<u64>], after: &[Vec<u64>]) -> Vec<(usize, usize)> {
    let cells = |counter: usize| (0..before[counter].len()).map(move |cell| (counter, cell));
    (0..before.len()).flat_map(cells).filter(|&(at, cell)| before[at][cell] != after[at][cell]).collect()
}

#[test]
fn random_dumps_of_iptables_decide_as_the_walk_through_their_chains() {
    let (files, acts, logged) = compare("iptables", iptables_dump, 60);
    assert!(files >= 40 && acts.iter().all(|act| *act >= 100) && logged >= 100, "{acts:?} {logged}");
}

#[test]
fn random_files_of_npf_decide_as_the_walk_through_their_groups() {
    let (files, acts, _) = compare("npf", npf_file, 60);
    assert!(files >= 40 && acts.iter().all(|act| *act >= 100), "{acts:?}");
}

#[test]
fn random_files_of_pf_decide_as_the_walk_through_their_rules() {
    let (files, acts, _) = compare("pf", pf_file, 60);
    assert!(files >= 40 && acts.iter().all(|act| *act >= 100), "{acts:?}");
}

/// A program that asks `hook forward` with these columns about IPv4, by the rules of a file.
fn asking(columns: &str, parts: &str) -> String {
    let args = columns.split(", ").map(|column| match column {
        column if column.ends_with("absent") => "0, false",
        column if column.ends_with("ip6") => "::",
        _ => "0",
    });
    let args: Vec<&str> = args.collect();
    format!(
        "reason blocked \"a rule\"
policy edge({columns}) {{
    from \"rules\" as {parts}
    pass => flood
    block => drop blocked
}}
start stage all() {{ goto edge.forward({}) }}
",
        args.join(", ")
    )
}

const FAMILY: &str = "family: u8";
const FILTER: &str = "iptables interfaces { eth0 = 1 }\nhook forward";

/// A dump whose rules begin at line 4.
fn dump(rules: &str) -> String {
    format!("*filter\n:FORWARD ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n{rules}\nCOMMIT\n")
}

#[test]
fn what_a_program_cannot_do_is_refused_at_the_line() {
    let fine = compiled(&asking(FAMILY, FILTER), &dump("-A FORWARD -j DROP"));
    assert_eq!(told(&fine), Vec::<String>::new());
    for (columns, parts, rules, wanted) in [
        (FAMILY, FILTER, "-A FORWARD -j TEE", "rules:4:15 E0572: "),
        (FAMILY, FILTER, "-A FORWARD -i eth9 -j DROP", "rules:4:15 E0572: "),
        (
            FAMILY,
            FILTER,
            "-A FORWARD -j DROP\n-A FORWARD -s 10.0.0.1 -j DROP",
            "rules:5:1 E0573: the policy `edge` has no column `src`; declare a column `src: ip6`",
        ),
        (
            FAMILY,
            FILTER,
            "-A INPUT -j DROP",
            "rules:3:1 E0574: the policy `edge` has no hook `to_gateway`; declare `hook to_gateway`, and go to",
        ),
        (
            FAMILY,
            FILTER,
            "-A FORWARD -m recent --set -j ACCEPT",
            "rules:4:15 E0575: `recent --set` depends on earlier packets; take the rule out",
        ),
        (
            FAMILY,
            FILTER,
            "-A FORWARD -j LOG",
            "rules:4:1 E0554: the policy `edge` does not say what happens on `log`",
        ),
        (
            FAMILY,
            FILTER,
            "-A FORWARD -j REJECT",
            "rules:4:1 E0554: the policy `edge` does not say what happens on `reject`",
        ),
        (
            "family: u8, state: u2",
            FILTER,
            "-A FORWARD -m state --state NEW -j DROP",
            "program.rav:2:25 E0573: the column `state` is too narrow",
        ),
        (
            "family: u8, state: u3",
            FILTER,
            "-A FORWARD -m state --state NEW -j ACCEPT",
            "rules:2:1 E0554: the policy `edge` does not say what happens on `keep`",
        ),
        (
            FAMILY,
            "iptables\nhook forward { group web default block }",
            "",
            "program.rav:4:22 E0570: the rules of `edge` come from a file",
        ),
        (FAMILY, "iptables chain \"FORWARD\"\nhook forward", "", "program.rav:3:36 E0537: "),
        (FAMILY, "iptables skip_title\nhook forward", "", "program.rav:3:30 E0537: "),
        (FAMILY, "npf skip_nat\nhook forward", "", "program.rav:3:25 E0537: "),
        (FAMILY, "npf skip_marks\nhook forward", "", "program.rav:3:25 E0537: "),
        (
            FAMILY,
            "iptables skip_marks\nhook forward",
            "-A FORWARD -j MARK --set-mark 1\n-A FORWARD -m mark --mark 1 -j ACCEPT",
            "rules:5:15 E0572: the match `mark` asks",
        ),
        (FAMILY, "iptables tables { t = \"t\" }\nhook forward", "", "program.rav:3:43 E0571: "),
        (
            FAMILY,
            "iptable\nhook forward",
            "",
            "program.rav:3:21 E0100: there is no format of rules `iptable`",
        ),
        (FAMILY, "iptables family ip5\nhook forward", "", "program.rav:3:37 E0100: "),
    ] {
        let told = told(&compiled(&asking(columns, parts), &dump(rules)));
        assert!(told.first().is_some_and(|first| first.starts_with(wanted)), "{rules}: {told:#?}");
    }
}

/// What is told of limits that a program cannot ask, with the reason.
fn reasons(format: &str, rules: &str) -> Vec<String> {
    let columns =
        "family: u8, src: ip6, proto: u8, dport: u16 absent, tcp_flags: u8 absent, fragment: u1, length: u16";
    let compiled = compiled(&asking(columns, &format!("{format}\nhook forward")), rules);
    let line = |found: &lang::diagnostic::Diagnostic| {
        format!("{} {}: {}", compiled.sources.place(found.primary.span), found.code, found.primary.text)
    };
    compiled.diagnostics.iter().map(line).collect()
}

#[test]
fn a_limit_that_no_meter_has_is_refused_at_its_line_with_the_reason() {
    for (rule, wanted) in [
        (
            "-m limit --limit 3/sec -p tcp",
            "rules:4:15 E0575: Linux looks at addresses, protocol and interfaces",
        ),
        ("-m limit --limit 3/sec -s 10.0.0.1", "rules:4:15 E0575: Linux looks at addresses"),
        // What stands apart from its match is asked where the match is named.
        ("-p tcp -m tcp -m limit --limit 1/sec --dport 22", "rules:4:29 E0575: Linux asks a match"),
        ("-p tcp --syn -m limit --limit 1/sec --dport 22", "rules:4:28 E0575: Linux asks a match"),
        ("-p udp -m udp -m limit --limit 1/sec --dport 53", "rules:4:29 E0575: Linux asks a match"),
        ("-p tcp -m multiport -m limit --limit 1/sec --dports 22,80", "rules:4:35 E0575: Linux asks a match"),
        ("-m length -m limit --limit 1/sec ! --length 40", "rules:4:25 E0575: Linux asks a match"),
        ("-m limit --limit 7/min", "rules:4:15 E0575: Linux counts whole seconds of longer times"),
        ("-m limit --limit 3/sec --limit-burst 50", "rules:4:15 E0575: whether Linux counts"),
        ("-m limit --limit 3000/sec", "rules:4:15 E0575: its bucket fills in less than a tick"),
        ("-m limit --limit 1/day", "rules:4:15 E0575: its bucket takes more than 31 hours"),
        ("-m limit --limit 3/sec --limit-burst 0", "rules:4:15 E0575: its bucket has no room"),
        (
            "-p tcp -m connbytes --connbytes 9: --connbytes-dir both --connbytes-mode packets",
            "rules:4:22 E0575: a row of a table",
        ),
        ("-m quota --quota 9", "rules:4:15 E0575: a row of a table compares one packet"),
    ] {
        let told = reasons("iptables", &dump(&format!("-A FORWARD {rule} -j ACCEPT")));
        assert!(told.first().is_some_and(|first| first.starts_with(wanted)), "{rule}: {told:#?}");
    }
    for rule in [
        "-p tcp -m limit --limit 1/sec --dport 22",
        "-p tcp -m limit --limit 1/sec -m tcp --dport 22",
        "-p tcp -m tcp -m limit --limit 1/sec -m tcp --dport 22",
        "-p tcp -m tcp --dport 22 -m limit --limit 1/sec -m length --length 40",
    ] {
        let told = reasons("iptables", &dump(&format!("-A FORWARD {rule} -j ACCEPT")));
        assert_eq!(told, Vec::<String>::new(), "{rule}");
    }
    let table = r#"{"table": {"family": "inet", "name": "t", "handle": 1}}"#;
    let chain = r#"{"chain": {"family": "inet", "table": "t", "name": "f", "handle": 1, "type": "filter", "hook": "forward", "prio": 0, "policy": "accept"}}"#;
    let named = r#"{"limit": {"family": "inet", "name": "x", "table": "t", "handle": 5, "rate": 3, "per": "second", "burst": 5}}"#;
    let ruleset = |limit: &str| {
        let rule = format!(
            r#"{{"rule": {{"family": "inet", "table": "t", "chain": "f", "handle": 2, "expr": [{{"limit": {limit}}}, {{"drop": null}}]}}}}"#
        );
        format!("{{\"nftables\": [{table},\n{named},\n{chain},\n{rule}]}}")
    };
    for (limit, wanted) in [
        (r#""x""#, "a named limit has one bucket for all rules"),
        (
            r#"{"rate": 10, "burst": 0, "per": "second", "rate_unit": "kbytes", "burst_unit": "bytes"}"#,
            "Linux counts bytes",
        ),
        (r#"{"rate": 9, "burst": 5, "per": "second", "burst_unit": "kbytes"}"#, "Linux counts bytes"),
        (r#"{"rate": 1, "burst": 5, "per": "week"}"#, "no meter has a rate of this size, or tokens"),
        (r#"{"rate": 1, "burst": 5, "per": "fortnight"}"#, "its time is not known"),
        (r#"{"rate": 1, "burst": 5, "per": "second", "inv": "yes"}"#, "its numbers are not known"),
    ] {
        let told = reasons("nft", &ruleset(limit));
        assert!(
            told.first().is_some_and(|first| first.contains(wanted) && first.starts_with("rules:4:")),
            "{limit}: {told:#?}"
        );
    }
    let fine = reasons("nft", &ruleset(r#"{"rate": 1, "per": "hour", "inv": true}"#));
    assert_eq!(fine, Vec::<String>::new());
    // The same in other characters of JSON.
    let escaped = ruleset(r#"{"rate": 1, "per": "hour"}"#).replace("limit", r"\u006cimit");
    assert_eq!(reasons("nft", &escaped), Vec::<String>::new());
    let unknown = told(&compiled(
        &asking(FAMILY, "nft\nhook forward"),
        &ruleset(r#"{"rate": 1, "per": "hour", "of": "source"}"#),
    ));
    assert!(unknown[0].contains("E0572: the limit has a member `of` that is not known here"), "{unknown:?}");
}

/// A ruleset of nft with a chain at `forward`, and one `x` with a limit, by the statements of their rules.
fn nft_ruleset(forward: &[&str], x: &[&str]) -> String {
    let object =
        |kind: &str, rest: &str| format!(r#"{{"{kind}": {{"family": "inet", "table": "t", {rest}}}}}"#);
    let base =
        r#""name": "f", "handle": 1, "type": "filter", "hook": "forward", "prio": 0, "policy": "drop""#;
    let mut objects = vec![
        r#"{"table": {"family": "inet", "name": "t", "handle": 1}}"#.to_owned(),
        object("chain", base),
        object("chain", r#""name": "x", "handle": 2"#),
    ];
    for (chain, rules) in [("f", forward), ("x", x)] {
        let rule =
            |rule: &&str| object("rule", &format!(r#""chain": "{chain}", "handle": 3, "expr": [{rule}]"#));
        objects.extend(rules.iter().map(rule));
    }
    format!("{{\"nftables\": [{}]}}", objects.join(",\n"))
}

/// A match of nft.
fn nft_match(protocol: &str, field: &str, value: u32) -> String {
    let left = format!(r#"{{"payload": {{"protocol": "{protocol}", "field": "{field}"}}}}"#);
    format!(r#"{{"match": {{"op": "==", "left": {left}, "right": {value}}}}}"#)
}

const NFT_LIMIT: &str = r#"{"limit": {"rate": 2, "per": "hour", "burst": 3}}"#;

#[test]
fn a_limit_where_rules_compare_later_fragments_as_headers_is_refused() {
    let (port, accept) = (nft_match("tcp", "dport", 22), r#"{"accept": null}"#);
    let limited = format!("{NFT_LIMIT}, {accept}");
    let met = "Linux that follows no connections compares later fragments";
    for rules in [
        vec![format!("{NFT_LIMIT}, {port}, {accept}")],
        vec![format!(r#"{NFT_LIMIT}, {port}, {{"drop": null}}"#)],
        vec![format!("{port}, {limited}")],
        // A rule without a limit decides whether the fragment comes to one.
        vec![limited.clone(), format!("{port}, {accept}")],
    ] {
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let why = reasons("nft", &nft_ruleset(&rules, &[]));
        assert!(why.first().is_some_and(|first| first.contains(met)), "{rules:?}: {why:#?}");
        // Linux puts fragments together if it follows connections.
        let state = r#"{"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": "invalid"}}, {"drop": null}"#;
        let program = asking(
            "family: u8, proto: u8, dport: u16 absent, fragment: u1, state: u3",
            "nft\nkeep => flood\nhook forward",
        );
        let compiled = compiled(&program, &nft_ruleset(&[&[state], &rules[..]].concat(), &[]));
        assert_eq!(told(&compiled), Vec::<String>::new(), "{rules:?}");
    }
    assert_eq!(reasons("nft", &nft_ruleset(&[&limited], &[])), Vec::<String>::new());
}

#[test]
fn a_limit_counts_on_each_way_into_its_chain() {
    let nft = nft_ruleset(
        &[
            &format!(r#"{}, {{"jump": {{"target": "x"}}}}"#, nft_match("ip", "length", 60)),
            r#"{"jump": {"target": "x"}}"#,
        ],
        &[&format!(r#"{NFT_LIMIT}, {}, {{"accept": null}}"#, nft_match("ip", "length", 44))],
    );
    let iptables = "*filter
:FORWARD DROP [0:0]
:x - [0:0]
-A FORWARD -m length --length 60 -j x
-A FORWARD -j x
-A x -m limit --limit 2/hour --limit-burst 3 -m length --length 44 -j ACCEPT
COMMIT
";
    for (format, rules) in [("nft", &nft[..]), ("iptables", iptables)] {
        let imported = read(rules.as_bytes(), format, &options()).expect("it is of the format");
        assert_eq!(imported.refused, [], "{format}");
        let compiled = compiled(&counting(format, INTERFACES), rules);
        let program = compiled.program.as_ref().unwrap_or_else(|| panic!("{:#?}", told(&compiled)));
        for kind in BackendKind::ALL {
            let mut backend = load(program, kind, 5, 1).expect("it loads");
            // A packet of 60 bytes takes two tokens of three, one on each way.
            let passed = [60, 44, 44].map(|length| {
                let values = COLUMNS.map(|(field, ..)| match field {
                    PacketField::Family => 4,
                    PacketField::Protocol => 47,
                    PacketField::Length => length,
                    _ => 1,
                });
                let before = counts(backend.as_ref())[0][0];
                run_one(backend.as_mut(), &probe(HookPoint::Forward, 0, values), 1_000);
                counts(backend.as_ref())[0][0] > before
            });
            assert_eq!(passed, [false, true, false], "{format} {kind:?}");
        }
        let rows = policy_of_rows(&compiled, program, &imported.policy).expect("there are few");
        let found = difference(&imported_as_program(&imported.policy), &rows, 3).expect("it is small");
        assert!(found.classes.is_empty(), "{format}: {:#?}", found.classes);
    }
}

#[test]
fn limits_are_read_with_more_interfaces_than_there_are_ports() {
    let bindings: String = (0..65_600).map(|at| format!("e{at} = {}\n", 1 + at % 9)).collect();
    let parts = format!("iptables interfaces {{\n{bindings}}}\nhook forward");
    let program = asking("family: u8, in_port: port absent", &parts);
    let told = told(&compiled(&program, &dump("-A FORWARD -i e65599 -m limit --limit 3/min -j DROP")));
    assert_eq!(told, Vec::<String>::new());
}

#[test]
fn rules_of_a_file_have_as_many_rates_as_declared_ones() {
    let rules = |count: u32| -> String {
        (0..count)
            .map(|at| format!("-A FORWARD -m limit --limit 1/min --limit-burst {} -j DROP\n", 1 + at))
            .collect()
    };
    assert_eq!(reasons("iptables", &dump(&rules(256))), Vec::<String>::new());
    assert_eq!(reasons("iptables", &dump(&rules(257))), ["rules:260:15 E0565: one too many"]);
    // Those of one rate share a meter.
    let same = rules(1).repeat(2_000);
    assert_eq!(reasons("iptables", &dump(&same)), Vec::<String>::new());
}

#[test]
fn a_rule_that_keeps_needs_a_program_that_does() {
    let columns = "family: u8, proto: u8, tcp_flags: u8 absent, state: u3, out_state: u3";
    for (parts, rules, wanted) in [
        (
            "pf\nhook forward hook in hook out",
            "pass in all",
            "rules:1:1 E0554: the policy `edge` does not say what happens on `keep`",
        ),
        (
            "npf\nhook forward hook in hook out",
            "group default { pass stateful all }",
            "rules:1:17 E0554: the policy `edge` does not say what happens on `keep`",
        ),
    ] {
        let told = told(&compiled(&asking(columns, parts), &format!("{rules}\n")));
        assert!(told.first().is_some_and(|first| first.starts_with(wanted)), "{rules}: {told:#?}");
    }
    // And one that says what is kept.
    let told = told(&compiled(
        &asking(
            "family: u8, proto: u8, tcp_flags: u8 absent, out_state: u3",
            "pf\nkeep => flood\nhook forward hook in hook out",
        ),
        "pass in all\n",
    ));
    assert!(told[0].starts_with("rules:1:1 E0573: the policy `edge` has no column `state`"), "{told:#?}");
}

#[test]
fn files_have_the_limits_of_declared_policies() {
    let codes = |parts: &str, rules: &str| -> Vec<String> {
        let columns =
            "family: u8, src: ip6, dst: ip6, proto: u8, sport: u16 absent, dport: u16 absent, fragment: u1";
        told(&compiled(&asking(columns, parts), &dump(rules)))
            .iter()
            .map(|told| told.split(':').take(3).collect::<Vec<_>>().join(":"))
            .collect()
    };
    let rules = |count: usize, target: &str| -> String {
        let rule =
            |at: usize| format!("-A FORWARD -s 10.{}.{}.{} {target}\n", at >> 16, at >> 8 & 255, at & 255);
        (0..count).map(rule).collect()
    };
    // Two rows are the gate of the other family, and one is the default.
    assert_eq!(codes(FILTER, &rules(65_533, "-j DROP")), Vec::<String>::new());
    assert_eq!(codes(FILTER, &rules(65_534, "-j DROP")), ["rules:65537:1 E0558"]);
    let more = "iptables\ncapacity 128k\nhook forward";
    assert_eq!(codes(more, &rules(65_535, "")), Vec::<String>::new());
    assert_eq!(codes(more, &rules(65_536, "")), ["program.rav:5:6 E0553"]);
    let ports = |from: usize| (0..15).map(|at| (from + 2 * at).to_string()).collect::<Vec<_>>().join(",");
    let multiplied = format!(
        "-A FORWARD -p tcp -m multiport --sports {} -m multiport --dports {} -j DROP\n",
        ports(1),
        ports(100)
    );
    assert_eq!(codes(FILTER, &multiplied.repeat(10)), Vec::<String>::new());
    let work = codes(FILTER, &multiplied.repeat(5_000));
    assert!(work.len() == 1 && work[0].ends_with("E0556"), "{work:?}");
    let deep = |chains: usize| {
        let names: String = (0..chains).map(|at| format!(":c{at} - [0:0]\n")).collect();
        let jumps: String = (1..chains).map(|at| format!("-A c{} -j c{at}\n", at - 1)).collect();
        format!("{names}-A FORWARD -j c0\n{jumps}-A c{} -j DROP", chains - 1)
    };
    assert_eq!(codes(FILTER, &deep(63)), Vec::<String>::new());
    assert_eq!(codes(FILTER, &deep(64)), ["rules:68:1 E0572"]);
}

#[test]
fn a_file_that_is_not_there_is_told_at_its_place() {
    let text = asking(FAMILY, FILTER);
    let options = CompileOptions { rules_reader: Some(RULES_READER), ..CompileOptions::default() };
    let compiled = compile("program.rav", &text, &|_| None, &options);
    assert!(told(&compiled)[0].starts_with("program.rav:3:5 E0571: there is no text in `rules`"));
    let unread = compile("program.rav", &text, &|_| Some(dump("")), &CompileOptions::default());
    assert!(told(&unread)[0].starts_with("program.rav:3:5 E0571: `rules` is not read"));
}

#[test]
fn tables_of_a_file_have_their_addresses_in_files_beside_it() {
    const RULES: &str = "table <friends> persist file \"/etc/friends\"\nblock all\npass in from <friends>\n";
    let columns = "family: u8, src: ip6, state: u3, proto: u8, tcp_flags: u8 absent, out_state: u3 absent";
    let told_with = |tables: &str, friends: Option<&str>| {
        let load = |path: &str| match path {
            "rules" => Some(RULES.to_owned()),
            "friends.txt" => friends.map(str::to_owned),
            _ => None,
        };
        let parts = format!("pf {tables}\nkeep => flood\nhook in hook forward hook out");
        let options = CompileOptions { rules_reader: Some(RULES_READER), ..CompileOptions::default() };
        let compiled = compile("program.rav", &asking(columns, &parts), &load, &options);
        (told(&compiled), compiled.policies)
    };
    const NAMED: &str = "tables { friends = \"friends.txt\" }";
    let (found, policies) = told_with(NAMED, Some("10.0.0.0/8\n\n2001:db8::7\n"));
    assert!(found.iter().all(|found| found.contains("W0406")), "{found:#?}");
    let policy = policies[0].policy.as_ref().expect("it can be analysed");
    for (source, passes) in [("10.9.8.7", true), ("11.0.0.1", false)] {
        let address: std::net::Ipv4Addr = source.parse().expect("an address");
        let packet = [
            (PacketField::Family, 4),
            (PacketField::Source, u128::from(address.to_ipv6_mapped())),
            (PacketField::Protocol, 17),
            (PacketField::LaterFragment, 0),
            (PacketField::State, 0),
        ];
        let packet = packet.into_iter().fold(Packet::default(), |all, (at, value)| all.with(at, Some(value)));
        let said = evaluate(policy, Path::ToGateway, &packet, &|_| false).expect("it ends").action;
        assert_eq!(matches!(said, RuleAction::Pass | RuleAction::Keep), passes, "{source}");
    }
    for (tables, friends, wanted) in [
        (NAMED, None, "program.rav:3:43 E0571: there is no text in `friends.txt`"),
        (NAMED, Some("10.0.0.0/8\nx\n"), "rules:3:14 E0572: line 2 of the table: `x` is no address"),
        ("", None, "rules:3:14 E0572: what is in the table `friends` is not known"),
        (
            "tables { friends = \"friends.txt\", friends = \"friends.txt\" }",
            Some("10.0.0.1\n"),
            "program.rav:3:58 E0583: the table `friends` has two files",
        ),
    ] {
        let (found, _) = told_with(tables, friends);
        assert!(found.first().is_some_and(|first| first.starts_with(wanted)), "{found:#?}");
    }
    assert!(told_with("", None).0[0].contains("`tables { friends = \"friends.txt\" }` in a program"));
}
