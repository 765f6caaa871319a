//! Rule sets that ask for the state of a connection, as text for nftables and as a program that imports
//! `std.connections`. Several sets stand in one text: each has hosts inside, and two ports of the program, of
//! its own.

use crate::packets::{Address, ICMP, TCP, UDP};
use std::fmt::Write;
use suite::random::SuiteRandom;

/// What a rule asks of a packet that could begin a connection, or of any packet of one, or of an invalid one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Established,
    Related,
    Invalid,
}

const STATES: [State; 4] = [State::New, State::Established, State::Related, State::Invalid];

/// An address with how many of its bits count.
#[derive(Clone, Copy, Debug)]
struct Prefix {
    address: Address,
    bits: u32,
}

/// A rule; what is absent asks for nothing.
#[derive(Clone, Debug, Default)]
struct Rule {
    /// Empty: every packet.
    states: Vec<State>,
    from_inside: Option<bool>,
    /// The direction, of packets of a connection.
    reply: Option<bool>,
    // Below: of packets that could begin a connection.
    v6: Option<bool>,
    proto: Option<u8>,
    src: Option<Prefix>,
    dst: Option<Prefix>,
    sport: Option<(u16, u16)>,
    dport: Option<(u16, u16)>,
    accept: bool,
}

/// What becomes of some packets before connections are looked at.
#[derive(Clone, Copy, Debug)]
struct Early {
    from_inside: bool,
    outside: Prefix,
    /// Passes without a connection; otherwise dropped.
    pass: bool,
}

/// The rules of one set.
#[derive(Clone, Debug)]
pub(crate) struct RuleSet {
    /// Which hosts inside it is about.
    pub(crate) number: u32,
    early: Vec<Early>,
    rules: Vec<Rule>,
    accept: bool,
}

/// A host inside of a set.
pub(crate) fn inside(v6: bool, set: u32, host: u8) -> Address {
    let bits = if v6 {
        0x2001_0db8_0000_0000_0000_0000_0000_0000 | u128::from(set) << 64 | u128::from(host)
    } else {
        u128::from(0x0a00_0000 | set << 8 | u32::from(host))
    };
    Address { v6, bits }
}

/// A host outside.
pub(crate) fn outside(v6: bool, host: u8) -> Address {
    let v6_net = 0x2001_0db8_ffff_0000_0000_0000_0000_0000;
    Address { v6, bits: if v6 { v6_net } else { 0xc000_0200 } | u128::from(host) }
}

/// Ports of services that rules and packets name.
pub(crate) const SERVICES: [u16; 6] = [22, 53, 80, 443, 8080, 33434];

fn prefix(random: &mut SuiteRandom, v6: bool, address: Address) -> Prefix {
    let width = if v6 { 128 } else { 32 };
    let host = *random.pick(&[0, 1, 2, 4, 8]);
    let address = Address { bits: address.bits >> host << host, ..address };
    Prefix { address, bits: width - host }
}

fn range(random: &mut SuiteRandom) -> (u16, u16) {
    let (one, other) = (*random.pick(&SERVICES), *random.pick(&SERVICES));
    if random.one_in(2) { (one, one) } else { (one.min(other), one.max(other)) }
}

impl RuleSet {
    pub(crate) fn made(random: &mut SuiteRandom, number: u32) -> RuleSet {
        let mut rules = Vec::new();
        let mut of_states = |random: &mut SuiteRandom, states: Vec<State>, accept| {
            let one = |random: &mut SuiteRandom| random.one_in(5).then(|| random.one_in(2));
            let from_inside = one(random);
            // Nothing has a direction that is no packet of a connection.
            let known =
                !states.is_empty() && !states.contains(&State::New) && !states.contains(&State::Invalid);
            let reply = if known { one(random) } else { None };
            rules.push(Rule { states, from_inside, reply, accept, ..Rule::default() });
        };
        // Most sets let pass what belongs to a connection: nothing else would be of interest.
        if !random.one_in(4) {
            of_states(random, vec![State::Invalid], false);
        }
        if !random.one_in(8) {
            of_states(random, vec![State::Established, State::Related], true);
        }
        for _ in 0..random.below(3) {
            let states = STATES.iter().copied().filter(|_| random.clone().one_in(2)).collect::<Vec<State>>();
            let states = if random.one_in(2) { vec![*random.pick(&STATES)] } else { states };
            let accept = !random.one_in(4);
            of_states(random, states, accept);
        }
        for _ in 0..random.between(1, 6) {
            rules.push(Rule::of_new(random, number));
        }
        if random.one_in(3) {
            let (one, other) = (random.below(rules.len() as u64), random.below(rules.len() as u64));
            rules.swap(one as usize, other as usize);
        }
        let early = |random: &mut SuiteRandom| {
            let v6 = random.one_in(2);
            let host = random.below(16) as u8;
            let net = if random.one_in(2) { 0 } else { 2 };
            let address = outside(v6, host >> net << net);
            let outside = Prefix { address, bits: if v6 { 128 } else { 32 } - net };
            Early { from_inside: random.one_in(2), outside, pass: random.one_in(2) }
        };
        let early = (0..random.below(8).saturating_sub(5)).map(|_| early(random)).collect();
        RuleSet { number, early, rules, accept: random.one_in(3) }
    }
}

impl Rule {
    fn of_new(random: &mut SuiteRandom, number: u32) -> Rule {
        let mut rule = Rule { states: vec![State::New], accept: !random.one_in(4), ..Rule::default() };
        if !random.one_in(3) {
            rule.from_inside = Some(!random.one_in(4));
        }
        if random.one_in(2) {
            rule.proto = Some(*random.pick(&[TCP, TCP, UDP, ICMP, 47, 50]));
        }
        if let Some(TCP | UDP) = rule.proto {
            rule.sport = random.one_in(6).then_some((1024, 40_000));
            rule.dport = (!random.one_in(3)).then(|| range(random));
        }
        match random.below(5) {
            0 => rule.v6 = Some(random.one_in(2)),
            1 | 2 => {
                let v6 = random.one_in(2);
                let (own, other) =
                    (inside(v6, number, random.below(8) as u8), outside(v6, random.below(16) as u8));
                let (src, dst) = if rule.from_inside == Some(false) { (other, own) } else { (own, other) };
                rule.v6 = Some(v6);
                rule.src = random.one_in(2).then(|| prefix(random, v6, src));
                rule.dst = random.one_in(2).then(|| prefix(random, v6, dst));
            }
            _ => {}
        }
        rule
    }

    fn has(&self, state: State) -> bool {
        self.states.is_empty() || self.states.contains(&state)
    }
}

/// The address as nftables and programs write it.
fn written(address: Address) -> String {
    if address.v6 {
        std::net::Ipv6Addr::from(address.bits).to_string()
    } else {
        std::net::Ipv4Addr::from(address.bits as u32).to_string()
    }
}

/// Before all sets: markers pass and are no connections.
pub(crate) const PREAMBLE: &str = "ip saddr { 10.255.255.1, 203.0.113.1 }";

/// The sets for nftables: a chain for each, found by its hosts inside.
pub(crate) fn nftables(sets: &[RuleSet]) -> String {
    let interface = |from_inside| if from_inside { "from-in" } else { "from-out" };
    let (mut early, mut ways, mut chains) = (String::new(), String::new(), String::new());
    for set in sets {
        let number = set.number;
        let net = |v6| format!("{}/{}", written(inside(v6, number, 0)), if v6 { 64 } else { 24 });
        for one in &set.early {
            let family = if one.outside.address.v6 { "ip6" } else { "ip" };
            let (own, other) = if one.from_inside { ("saddr", "daddr") } else { ("daddr", "saddr") };
            let _ = writeln!(
                early,
                "  iifname \"{}\" {family} {own} {} {family} {other} {}/{} {}",
                interface(one.from_inside),
                net(one.outside.address.v6),
                written(one.outside.address),
                one.outside.bits,
                if one.pass { "notrack accept" } else { "drop" }
            );
        }
        for (v6, family) in [(false, "ip"), (true, "ip6")] {
            for (from_inside, side) in [(true, "saddr"), (false, "daddr")] {
                let name = interface(from_inside);
                let _ = writeln!(ways, "  iifname \"{name}\" {family} {side} {} goto set{number}", net(v6));
            }
        }
        let rules: String = set.rules.iter().map(|rule| format!("  {}\n", rule.nftables())).collect();
        let last = if set.accept { "accept" } else { "drop" };
        let _ = writeln!(chains, " chain set{number} {{\n  ct state untracked accept\n{rules}  {last}\n }}");
    }
    format!(
        "table inet judged {{\n{chains} chain early {{\n  type filter hook prerouting priority raw; policy accept;\n  \
         {PREAMBLE} notrack accept\n{early} }}\n chain forward {{\n  type filter hook forward priority filter; \
         policy drop;\n  {PREAMBLE} accept\n{ways} }}\n}}\n"
    )
}

impl Rule {
    fn nftables(&self) -> String {
        let mut text = String::new();
        if !self.states.is_empty() {
            let names: Vec<String> =
                self.states.iter().map(|state| format!("{state:?}").to_lowercase()).collect();
            let _ = write!(text, "ct state {} ", names.join(","));
        }
        if let Some(from_inside) = self.from_inside {
            let _ = write!(text, "iifname \"{}\" ", if from_inside { "from-in" } else { "from-out" });
        }
        if let Some(reply) = self.reply {
            let _ = write!(text, "ct direction {} ", if reply { "reply" } else { "original" });
        }
        if let Some(v6) = self.v6 {
            let _ = write!(text, "meta nfproto {} ", if v6 { "ipv6" } else { "ipv4" });
        }
        match self.proto {
            Some(ICMP) => text += "meta l4proto { icmp, ipv6-icmp } ",
            Some(proto) => {
                let _ = write!(text, "meta l4proto {proto} ");
            }
            None => {}
        }
        for (prefix, side) in [(self.src, "saddr"), (self.dst, "daddr")] {
            let Some(Prefix { address, bits }) = prefix else { continue };
            let family = if address.v6 { "ip6" } else { "ip" };
            let _ = write!(text, "{family} {side} {}/{bits} ", written(address));
        }
        for (range, side) in [(self.sport, "sport"), (self.dport, "dport")] {
            if let Some((low, high)) = range {
                let _ = write!(text, "th {side} {low}-{high} ");
            }
        }
        text + if self.accept { "accept" } else { "drop" }
    }

    /// As a condition of a program; `known` are those that every rule has.
    fn condition(&self, inside_port: usize, new: bool, reply: bool) -> String {
        let mut parts = Vec::new();
        if let Some(from_inside) = self.from_inside {
            parts.push(format!("in_port == {}", inside_port + usize::from(!from_inside)));
        }
        if let Some(wanted) = self.reply.filter(|_| reply) {
            parts.push(format!("reply == {wanted}"));
        }
        if new {
            if let Some(v6) = self.v6 {
                parts.push(format!("{}(from in ::ffff:0:0/96)", if v6 { "!" } else { "" }));
            }
            match self.proto {
                Some(ICMP) => parts.push("(proto == 1 || proto == 58)".to_owned()),
                Some(proto) => parts.push(format!("proto == {proto}")),
                None => {}
            }
            for (prefix, side) in [(self.src, "from"), (self.dst, "to")] {
                match prefix {
                    Some(Prefix { address, bits }) if address.v6 => {
                        parts.push(format!("{side} in {}/{bits}", written(address)));
                    }
                    Some(Prefix { address, bits }) => {
                        let low = address.bits as u32;
                        let (high, low) = (low >> 16, low & 0xffff);
                        parts.push(format!("{side} in ::ffff:{high:x}:{low:x}/{}", bits + 96));
                    }
                    None => {}
                }
            }
            for (range, side) in [(self.sport, "from_port"), (self.dport, "to_port")] {
                if let Some((low, high)) = range {
                    parts.push(format!("{side} >= {low} && {side} <= {high}"));
                }
            }
        }
        if parts.is_empty() { "true".to_owned() } else { parts.join(" && ") }
    }
}

/// The ports by which a program says what passes, above those by which packets come in: the module's view.
pub(crate) const OUTCOMES: [&str; 6] = ["new", "established", "reply", "related", "invalid", "untracked"];
pub(crate) const PORTS: u16 = 200;
pub(crate) const FIRST_OUTCOME: u16 = 101;

/// Stages that all sets share.
const SHARED: &str = "\
stage known_passes(state: connection_state, reply: bool) {
    if state == connection_state.related { send SAY_RELATED }
    if reply { send SAY_REPLY }
    send SAY_ESTABLISHED
}
stage refused(why: invalid) {
    match why {
        invalid.tcp_flags => drop tcp_flags
        invalid.tcp_state => drop tcp_state
        invalid.tcp_window => drop tcp_window
        invalid.error => drop unrelated_error
        else => drop no_connection
    }
}
";

/// The sets as a program: set n of them has the ports 2n + 1, inside, and 2n + 2, outside.
pub(crate) fn program(sets: &[RuleSet]) -> String {
    let mut text = "import std.net.{ethernet, ipv4, ipv6}\nimport std.connections.{track4, track6, admit}\n\
                    reason early \"dropped before its connection is looked for\"\n\
                    reason by_rule \"a rule drops it\"\nreason not_ip \"not IP\"\n"
        .to_owned();
    for (index, name) in OUTCOMES.iter().enumerate() {
        let _ = writeln!(
            text,
            "const SAY_{}: port = {}",
            name.to_uppercase(),
            usize::from(FIRST_OUTCOME) + index
        );
    }
    text += "start decoder frame(eth: ethernet) { match eth.type { 0x0800 => packet, 0x86dd => packet6, else => drop not_ip } }\n";
    for (decoder, header, v6, track) in
        [("packet(ip: ipv4)", "ip", false, "track4"), ("packet6(ip6: ipv6)", "ip6", true, "track6")]
    {
        let _ = writeln!(text, "decoder {decoder} {{");
        for (index, set) in sets.iter().enumerate() {
            for one in set.early.iter().filter(|one| one.outside.address.v6 == v6) {
                let port = 2 * index + 1 + usize::from(!one.from_inside);
                let side = if one.from_inside { "dst" } else { "src" };
                let prefix = format!("{}/{}", written(one.outside.address), one.outside.bits);
                let verdict = if one.pass { "send SAY_UNTRACKED" } else { "drop early" };
                let _ =
                    writeln!(text, "    if in_port == {port} && {header}.{side} in {prefix} {{ {verdict} }}");
            }
        }
        let _ = writeln!(text, "    goto {track}\n}}");
    }
    let stages = [
        ("new_connection", "proto: u8, from: ip6, to: ip6, from_port: u16, to_port: u16, first: u128", "new"),
        ("known_connection", "state: connection_state, reply: bool", "known"),
        ("invalid_packet", "why: invalid", "bad"),
    ];
    for (stage, parameters, short) in stages {
        let names: Vec<&str> = parameters.split(", ").filter_map(|one| one.split(':').next()).collect();
        let names = names.join(", ");
        let _ = writeln!(text, "stage {stage}({parameters}) {{\n    match in_port {{");
        for index in 0..sets.len() {
            let (low, high) = (2 * index + 1, 2 * index + 2);
            let _ = writeln!(text, "        {low} | {high} => {short}{index}({names})");
        }
        text += "        else => drop not_ip\n    }\n}\n";
        for (index, set) in sets.iter().enumerate() {
            let body = match short {
                "new" => set.new_stage(2 * index + 1),
                "known" => set.known_stage(2 * index + 1),
                _ => set.invalid_stage(2 * index + 1),
            };
            let _ = writeln!(text, "stage {short}{index}({parameters}) {{\n{body}}}");
        }
    }
    text + SHARED
}

impl RuleSet {
    fn stage(
        &self,
        port: usize,
        which: impl Fn(&Rule) -> Option<String>,
        reply: bool,
        new: bool,
        [accept, refuse]: [&str; 2],
    ) -> String {
        let mut text = String::new();
        for rule in &self.rules {
            let Some(more) = which(rule) else { continue };
            let condition = format!("{more}{}", rule.condition(port, new, reply));
            let _ = writeln!(text, "    if {condition} {{ {} }}", if rule.accept { accept } else { refuse });
        }
        let _ = writeln!(text, "    {}", if self.accept { accept } else { refuse });
        text
    }

    fn new_stage(&self, port: usize) -> String {
        let which = |rule: &Rule| rule.has(State::New).then(String::new);
        let accept = "goto admit(proto, from, to, from_port, to_port, first)";
        self.stage(port, which, false, true, [accept, "drop by_rule"])
    }

    /// A packet of a new connection is decided about as the one that began it: it has the same addresses and
    /// ports.
    fn known_stage(&self, port: usize) -> String {
        let which = |rule: &Rule| match (rule.has(State::Established), rule.has(State::Related)) {
            (true, true) => Some(String::new()),
            (true, false) => Some("state == connection_state.established && ".to_owned()),
            (false, true) => Some("state == connection_state.related && ".to_owned()),
            (false, false) => None,
        };
        let rules = self.stage(port, which, true, false, ["goto known_passes(state, reply)", "drop by_rule"]);
        format!("    if state == connection_state.new {{ send SAY_NEW }}\n{rules}")
    }

    fn invalid_stage(&self, port: usize) -> String {
        let which = |rule: &Rule| rule.has(State::Invalid).then(String::new);
        self.stage(port, which, false, false, ["send SAY_INVALID", "goto refused(why)"])
    }
}
