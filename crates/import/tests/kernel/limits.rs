//! Linux counts packets by the limits of rules as a policy does, and as a program does by the same rules:
//! rulesets of nftables and dumps of iptables, with limits at every place of a rule, in jumps and at several
//! hooks; and buckets that fill while time goes by.

use super::asking::{Buckets, COLUMNS, counting, counts, probe, run_one};
use super::dumps::options;
use super::packets::Piece;
use super::random::Random;
use super::router::Router;
use super::rulesets::{loaded, some_rules};
use super::{Packet, made, rounds, seed, times};
use exec::{Backend, BackendKind, load};
use import::address::AddressFamily;
use import::policies::{RULES_READER, read};
use lang::pipeline::{CompileOptions, compile};
use policy::{HookPoint, PacketField, Path, Policy, RuleAction, RuleRate, evaluate};
use std::cell::RefCell;
use std::thread;
use std::time::{Duration, Instant};

/// What a rule of nft asks. No bucket fills while a test runs.
const MATCHES: [&str; 16] = [
    "limit rate 2/hour burst 3 packets",
    "limit rate 1/day burst 9 packets",
    "limit rate 3/hour burst 30 packets",
    "limit rate over 2/hour burst 5 packets",
    "limit rate over 1/day burst 20 packets",
    "limit rate 2/hour burst 4 packets",
    "tcp dport 22",
    "tcp sport { 0, 53, 1000-2000 }",
    "udp dport != { 22, 80, 1024-2048 }",
    "ip saddr 10.0.0.0/8",
    "ip6 saddr 2001:db8::a00:0/112",
    "ip daddr { 192.0.2.1, 8.8.8.8 }",
    "meta l4proto != tcp",
    "meta length > 60",
    "icmp type { echo-reply, echo-request }",
    "tcp flags & (syn | ack) == syn",
];

const TARGETS: [&str; 10] = [
    "accept",
    "accept",
    "drop",
    "drop",
    "return",
    "jump x",
    "goto y",
    "counter",
    "log prefix \"a\" accept",
    "reject",
];

/// Linux follows connections in it, so that no fragments come to the limits.
fn ruleset(random: &mut Random) -> String {
    let mut rules = |count: usize, deeper: &[&str], excluded: &[&str]| {
        // What counts behind a limit and asks again is refused.
        some_rules(random, count, &MATCHES, &TARGETS, deeper, excluded)
            .replace("packets counter ", "packets ")
    };
    let (y, x) = (rules(3, &[], &["return"]), rules(4, &["y"], &[]));
    let (forward, early, before) =
        (rules(7, &["x", "y"], &[]), rules(2, &["x"], &[]), rules(2, &[], &["reject"]));
    let policy = random.one(&["accept", "drop"]);
    format!(
        "table inet one {{
    chain y {{
{y}    }}
    chain x {{
{x}    }}
    chain late {{
        type filter hook forward priority 0; policy {policy};
{forward}    }}
    chain early {{
        type filter hook forward priority -10; policy accept;
{early}    }}
    chain before {{
        type filter hook prerouting priority -150; policy accept;
        ct state new counter
{before}    }}
}}
"
    )
}

fn dump(random: &mut Random) -> String {
    const LIMITS: [&str; 4] = [
        " -m limit --limit 2/hour --limit-burst 3",
        " -m limit --limit 3/hour --limit-burst 20",
        " -m limit --limit 1/day --limit-burst 1",
        "",
    ];
    const HEADERS: [(&str, &str); 6] = [
        ("", ""),
        (" -p tcp", " -m tcp --dport 22"),
        (" -p udp", " -m udp ! --dport 53"),
        (" -s 10.0.0.0/8", ""),
        (" -p tcp", " -m multiport --ports 22,80"),
        (" ! -p udp", " -m length --length 44"),
    ];
    let mut text = String::new();
    for (table, chains) in [("mangle", &["PREROUTING", "FORWARD"][..]), ("filter", &["FORWARD", "x", "y"])] {
        text += &format!("*{table}\n");
        let is_filter = table == "filter";
        for chain in chains {
            let policy = if is_filter && random.once_in(2) { "DROP" } else { "ACCEPT" };
            text += &format!(":{chain} {} [0:0]\n", if chain.len() > 1 { policy } else { "-" });
        }
        for chain in chains {
            for _ in 0..if is_filter { 5 } else { 2 } {
                let (header, module) = random.one(&HEADERS);
                let (first, second) = (random.one(&LIMITS), random.one(&LIMITS));
                let second = if random.once_in(3) { second } else { "" };
                let target = match (random.below(8), *chain, is_filter) {
                    (0 | 1, "FORWARD", true) => "-j x",
                    (2, "FORWARD", true) | (0, "x", _) => "-g y",
                    (3, ..) => "-j RETURN",
                    (4 | 5, ..) => "-j DROP",
                    (6, ..) => "-j LOG",
                    _ => "-j ACCEPT",
                };
                text += &format!("-A {chain}{header}{first}{module}{second} {target}\n");
            }
        }
        text += "COMMIT\n";
    }
    text
}

/// A program by these rules.
fn program(format: &str, rules: &str) -> Box<dyn Backend> {
    let text = counting(format, "\"from-in\" = 1 \"to-out\" = 2");
    let files = |path: &str| (path == "rules").then(|| rules.to_owned());
    let options = CompileOptions { rules_reader: Some(RULES_READER), ..CompileOptions::default() };
    let compiled = compile("limits.rav", &text, &files, &options);
    let program = compiled.program.unwrap_or_else(|| panic!("{:#?}\n{rules}", compiled.diagnostics));
    load(&program, BackendKind::Native, 3, 1).expect("it loads")
}

/// Whether a program lets a packet pass all hooks on its way.
fn lets_pass(program: &mut dyn Backend, packet: &policy::Packet) -> bool {
    let has = |(field, _, bit): (PacketField, &str, Option<u16>)| bit.filter(|_| packet.get(field).is_some());
    let there = COLUMNS.into_iter().filter_map(has).fold(0, |all, bit| all | bit);
    let values = COLUMNS.map(|(field, ..)| packet.get(field).unwrap_or_default());
    [HookPoint::In, HookPoint::Forward, HookPoint::Out].into_iter().all(|point| {
        let before: u64 = counts(program)[0][..2].iter().sum();
        run_one(program, &probe(point, there, values), 1_000);
        counts(program)[0][..2].iter().sum::<u64>() > before
    })
}

/// Whether the policy lets packets pass, one after the other.
fn passing(policy: &Policy, packets: &[Packet]) -> Vec<bool> {
    let buckets = RefCell::new(Buckets::of(policy));
    let remembered = |memory: usize| buckets.borrow_mut().asked(memory, 1_000);
    let passes = |packet: &Packet| {
        let said = evaluate(policy, Path::Forwarded, &packet.fields(), &remembered).expect("every way ends");
        matches!(said.action, RuleAction::Pass | RuleAction::Keep)
    };
    packets.iter().map(passes).collect()
}

/// Takes the rules of iptables away that the dumps of these tests load.
fn clear(router: &mut Router) {
    let nothing = "*mangle\n:FORWARD ACCEPT [0:0]\nCOMMIT\n*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n";
    router.load("iptables-legacy-restore", &[], nothing);
}

/// Sends packets through Linux with these rules, and compares; gives how many pass.
fn agree(
    router: &mut Router,
    (format, rules): (&str, &str),
    load: &dyn Fn(&mut Router),
    random: &mut Random,
    family: AddressFamily,
) -> usize {
    let options = import::policies::PolicyOptions { family, ..options() };
    let imported = read(rules.as_bytes(), format, &options).expect("it is of the format");
    assert_eq!(imported.refused, [], "{rules}");
    let packets: Vec<Packet> =
        made(random, 160, family).into_iter().filter(|packet| matches!(packet.piece, Piece::Whole)).collect();
    let wanted = passing(&imported.policy, &packets);
    if family == AddressFamily::V4 || format == "nft" {
        let mut program = program(format, rules);
        let said: Vec<bool> =
            packets.iter().map(|packet| lets_pass(program.as_mut(), &packet.fields())).collect();
        assert_eq!(said, wanted, "{rules}");
    }
    // A frame that a busy machine lost is lost once; what Linux decides it decides again.
    let mut differ = Vec::new();
    for _ in 0..3 {
        load(router);
        let passed = router.passes_once(&packets);
        let Some(at) = (0..packets.len()).find(|&at| passed[at] != wanted[at]) else {
            router.judged.packets += packets.len();
            return wanted.iter().filter(|passes| **passes).count();
        };
        differ.push(format!("packet {at}, wanted {}: {:?}", wanted[at], packets[at]));
    }
    panic!("{differ:#?}\n{rules}");
}

#[test]
fn rulesets_and_dumps_with_limits_count_as_linux_does() {
    let Some(mut router) = Router::with_iptables(&[]) else { return };
    let mut random = Random(seed());
    let (mut count, mut passed) = (0, 0);
    for _ in 0..rounds() {
        let text = loaded(&mut router, &ruleset(&mut random));
        let rules = router.listed();
        for family in [AddressFamily::V4, AddressFamily::V6] {
            let load = |router: &mut Router| router.try_load(&text).expect("nft has taken it before");
            passed += agree(&mut router, ("nft", &rules), &load, &mut random, family);
            count += 1;
        }
        let dump = dump(&mut random);
        let load = |router: &mut Router| router.load("iptables-legacy-restore", &[], &dump);
        passed += agree(&mut router, ("iptables", &dump), &load, &mut random, AddressFamily::V4);
        clear(&mut router);
        count += 1;
    }
    println!("{count} rulesets and dumps, {passed} packets passed");
    let asked = count * times();
    assert!(passed > 20 * count && passed < 100 * asked, "{passed} passed");
}

#[test]
fn a_limit_counts_on_each_way_into_its_chain() {
    let Some(mut router) = Router::with_iptables(&[]) else { return };
    let mut random = Random(seed());
    let text = "table inet one {
    chain x {
        limit rate 2/hour burst 60 packets meta l4proto != tcp accept
    }
    chain late {
        type filter hook forward priority 0; policy drop;
        ct state new counter
        meta l4proto tcp jump x
        jump x
    }
}
";
    router.try_load(text).expect("nft takes it");
    let rules = router.listed();
    let load = |router: &mut Router| router.try_load(text).expect("nft has taken it before");
    assert!(agree(&mut router, ("nft", &rules), &load, &mut random, AddressFamily::V4) > 0);
    router.load("nft", &["-f", "-"], "flush ruleset\n");
    let dump = "*filter
:FORWARD DROP [0:0]
:x - [0:0]
-A FORWARD -s 10.0.0.0/8 -j x
-A FORWARD -j x
-A x -m limit --limit 2/hour --limit-burst 60 -m iprange ! --src-range 10.0.0.0-10.255.255.255 -j ACCEPT
COMMIT
";
    let load = |router: &mut Router| router.load("iptables-legacy-restore", &[], dump);
    assert!(agree(&mut router, ("iptables", dump), &load, &mut random, AddressFamily::V4) > 0);
    clear(&mut router);
}

#[test]
fn a_bucket_of_many_seconds_holds_the_tokens_of_linux() {
    let Some(mut router) = Router::with_iptables(&[]) else { return };
    let mut random = Random(seed());
    // Linux keeps 18 of the 18.9 seconds: 20 tokens.
    let dump = "*filter
:FORWARD DROP [0:0]
-A FORWARD -m limit --limit 4000/hour --limit-burst 21 -j ACCEPT
COMMIT
";
    let imported = read(dump.as_bytes(), "iptables", &options()).expect("it is of the format");
    let rate = imported.policy.memories[0].rate.clone().expect("it is a rate");
    let mut packets = made(&mut random, 80, AddressFamily::V4);
    packets.retain(|packet| matches!(packet.piece, Piece::Whole));
    let mut seen = Vec::new();
    // A busy machine may lose a frame, or take longer than a token does.
    for _ in 0..5 {
        let before = Instant::now();
        router.load("iptables-legacy-restore", &[], dump);
        let passed = router.passes_once(&packets).iter().filter(|passed| **passed).count();
        let filled = before.elapsed().as_secs_f64() / 0.9;
        seen.push((passed, filled));
        if filled < 0.9 && passed == rate.burst as usize {
            break;
        }
    }
    clear(&mut router);
    let most = |filled: f64| f64::from(rate.burst) + filled + 0.1;
    assert!(seen.iter().all(|(passed, filled)| *passed as f64 <= most(*filled)), "{seen:?}, {rate:?}");
    assert!(seen.iter().any(|(passed, _)| *passed >= rate.burst as usize), "{seen:?}, {rate:?}");
}

/// How many tokens a bucket may have, at least and at most, where it is not known exactly when a packet came.
struct Level {
    rate: RuleRate,
    least: f64,
    most: f64,
}

impl Level {
    fn full(rate: RuleRate) -> Level {
        Level { rate, least: rate.burst.into(), most: rate.burst.into() }
    }

    /// A packet comes between so many seconds and so many after the one before; says whether it gets a token,
    /// where that is certain.
    fn comes(&mut self, shortest: f64, longest: f64) -> Option<bool> {
        let speed = f64::from(self.rate.tokens) / f64::from(self.rate.seconds);
        let most = f64::from(self.rate.burst);
        self.least = (self.least + shortest.max(0.0) * speed).min(most);
        self.most = (self.most + longest * speed).min(most);
        match () {
            () if self.least >= 1.0 => Some(true),
            () if self.most < 1.0 => Some(false),
            () => None,
        }
    }

    /// It has got one, or not.
    fn has_got(&mut self, token: bool) {
        if token {
            (self.least, self.most) = ((self.least - 1.0).max(0.0), (self.most - 1.0).max(0.0));
        } else {
            self.most = self.most.min(1.0);
        }
    }
}

#[test]
fn buckets_fill_as_those_of_linux_while_time_goes_by() {
    let Some(mut router) = Router::with_iptables(&[]) else { return };
    let mut random = Random(seed());
    let mut certain = [0, 0];
    let ruleset = |words: &str| {
        let hook = "type filter hook forward priority 0; policy drop";
        format!("table inet one {{\n chain late {{\n  {hook};\n  {words} accept\n }}\n}}")
    };
    let dump = |words: &str| {
        format!("*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m limit {words} -j ACCEPT\nCOMMIT\n")
    };
    // Linux counts time for iptables in ticks of its clock.
    for (format, rules, tick) in [
        ("nft", ruleset("limit rate 120/minute burst 3 packets"), 0.0),
        ("nft", ruleset("limit rate over 3/second burst 2 packets"), 0.0),
        ("iptables", dump("--limit 3/sec --limit-burst 2"), 0.01),
    ] {
        let policy = if format == "nft" {
            router.try_load(&rules).expect("nft takes it");
            read(router.listed().as_bytes(), format, &options()).expect("it is of the format").policy
        } else {
            router.load("iptables-legacy-restore", &[], &rules);
            read(rules.as_bytes(), format, &options()).expect("it is of the format").policy
        };
        let rate = policy.memories[0].rate.clone().expect("it is a rate");
        let (mut level, mut last) = (Level::full(rate), (Instant::now(), Instant::now()));
        let mut packets = made(&mut random, 100, AddressFamily::V4);
        packets.retain(|packet| !packet.is_later());
        for packet in packets.into_iter().take(24) {
            thread::sleep(Duration::from_millis(random.one(&[0, 0, 200, 450, 700])));
            let before = Instant::now();
            let passed = router.passes_once(std::slice::from_ref(&packet))[0];
            let after = Instant::now();
            let shortest = before.duration_since(last.1).as_secs_f64() - tick;
            let longest = after.duration_since(last.0).as_secs_f64() + tick;
            last = (before, after);
            let got = passed != rate.over;
            if let Some(sure) = level.comes(shortest, longest) {
                assert_eq!(got, sure, "{packet:?}, {} to {} tokens\n{rules}", level.least, level.most);
                router.judged.packets += 1;
                certain[usize::from(sure)] += 1;
            }
            level.has_got(got);
        }
        if format == "iptables" {
            clear(&mut router);
        }
    }
    println!("{certain:?} packets certainly got no token, or one");
    assert!(certain.iter().all(|count| *count >= 5), "{certain:?}");
}
