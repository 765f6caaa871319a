//! Random files of firewalls, with one rule a line.

use std::fmt::Write;

/// Xorshift numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 16) % bound
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// An address or a prefix of those that packets have.
fn address(random: &mut Random) -> String {
    let free = random.below(4);
    format!("10.0.0.{}/{}", random.below(8) >> free << free, 32 - free)
}

/// The matches of a rule of iptables. `way` are the options of interfaces that Linux takes there.
fn matches(random: &mut Random, way: &str, states: bool) -> String {
    let (mut header, mut modules) = (String::new(), Vec::new());
    for _ in 0..random.below(3) {
        let not = if random.below(4) == 0 { "! " } else { "" };
        let option = match random.below(6) {
            0 => format!(" {not}-s 10.0.0.{}", random.below(8)),
            1 => format!(" {not}-d 10.0.0.{}/31", random.below(4) * 2),
            2 if way.contains('i') => format!(" {not}-i {}", random.pick(&["eth0", "eth1", "tun0"])),
            3 if way.contains('o') => format!(" {not}-o {}", random.pick(&["eth0", "eth1", "tun0"])),
            4 if states => {
                let states = random.pick(&["NEW", "ESTABLISHED,RELATED", "INVALID", "NEW,UNTRACKED"]);
                format!(" -m conntrack {not}--ctstate {states}")
            }
            5 => format!(" -m length {not}--length {}:{}", random.below(2) * 20, 20 + random.below(3) * 20),
            _ => continue,
        };
        if option.starts_with(" -m") {
            let same = |other: &String| other[..9] == option[..9];
            modules.extend((!modules.iter().any(same)).then_some(option));
        } else {
            let word = option.trim_start().trim_start_matches("! ").split(' ').next().unwrap_or_default();
            if !header.contains(&format!("{word} ")) {
                header += &option;
            }
        }
    }
    let not = if random.below(4) == 0 { "! " } else { "" };
    let low = random.below(8);
    let (protocol, module) = match random.below(8) {
        0 => (" -p tcp", format!(" -m tcp {not}--dport {low}")),
        1 => (" -p udp", format!(" -m udp {not}--sport {low}:{}", low + random.below(4))),
        2 => (" -p tcp", format!(" -m multiport {not}--dports {low},{}", (low + 2) % 8)),
        3 => (" -p tcp", " -m tcp --tcp-flags FIN,SYN,RST,ACK SYN".to_owned()),
        4 => {
            let kind = random.pick(&["8", "3/1", "any"]);
            let not = if kind == "any" { "" } else { not };
            (" -p icmp", format!(" -m icmp {not}--icmp-type {kind}"))
        }
        5 if not.is_empty() => (" -p 47", String::new()),
        5 => (" ! -p 47", String::new()),
        _ => ("", String::new()),
    };
    modules.extend((!module.is_empty()).then_some(module));
    // It counts what the matches before it have let through.
    for _ in 0..random.below(8).saturating_sub(5) {
        let at = random.below(modules.len() as u64 + 1) as usize;
        let rate = random.pick(&["1/sec", "3/min", "100/sec", "6/min", "40/hour", "30/day"]);
        modules.insert(at, format!(" -m limit --limit {rate} --limit-burst {}", 1 + random.below(4)));
    }
    format!("{header}{protocol}{}", modules.concat())
}

/// A dump of three tables, with chains that jump to one another.
pub(crate) fn iptables_dump(random: &mut Random) -> String {
    let states = random.below(3) > 0;
    let mut text = String::new();
    let chains = [
        ("raw", &[("PREROUTING", "i"), ("OUTPUT", "o")][..]),
        ("mangle", &[("PREROUTING", "i"), ("FORWARD", "io"), ("POSTROUTING", "o")][..]),
        ("filter", &[("INPUT", "i"), ("FORWARD", "io"), ("OUTPUT", "o")][..]),
    ];
    for (table, base) in chains {
        let _ = writeln!(text, "*{table}");
        for (name, _) in base {
            let policy = if random.below(3) == 0 { "DROP" } else { "ACCEPT" };
            let _ = writeln!(text, ":{name} {policy} [0:0]");
        }
        let own = ["a", "b", "c"].map(|name| format!("{table}-{name}"));
        own.iter().for_each(|name| text += &format!(":{name} - [0:0]\n"));
        let all = base.iter().map(|(name, way)| ((*name).to_owned(), *way, 0));
        let all = all.chain(own.iter().zip(1..).map(|(name, next)| (name.clone(), "", next)));
        for (chain, way, next) in all.collect::<Vec<_>>() {
            for _ in 0..random.below(if next == 0 { 5 } else { 4 }) {
                let matches = matches(random, way, states && table != "raw");
                let target = match random.below(10) {
                    0 | 1 if next < own.len() => format!(" -j {}", own[next]),
                    2 if next < own.len() => format!(" -g {}", own[own.len() - 1]),
                    3 => " -j RETURN".to_owned(),
                    4 => " -j LOG".to_owned(),
                    5 if table == "filter" && matches.contains("-p tcp") => {
                        " -j REJECT --reject-with tcp-reset".to_owned()
                    }
                    6 if table == "filter" => " -j REJECT --reject-with icmp-host-prohibited".to_owned(),
                    7 => String::new(),
                    8 => " -j DROP".to_owned(),
                    _ => " -j ACCEPT".to_owned(),
                };
                let _ = writeln!(text, "-A {chain}{matches}{target}");
            }
        }
        text += "COMMIT\n";
    }
    text
}

/// What a rule of NPF or pf asks.
fn filter(random: &mut Random, port: bool) -> String {
    let from = match random.below(3) {
        0 => format!("from {}", address(random)),
        1 => format!("from ! {}", address(random)),
        _ => "from any".to_owned(),
    };
    let to = if random.below(2) == 0 { format!(" to {}", address(random)) } else { " to any".to_owned() };
    let low = random.below(8);
    let ports = match random.below(3) {
        0 if port => format!(" port {low}"),
        1 if port => format!(" port {low}-{}", low + random.below(4)),
        _ => String::new(),
    };
    format!("{from}{to}{ports}")
}

/// A file of NPF: groups by interface and direction, then the default.
pub(crate) fn npf_file(random: &mut Random) -> String {
    let keep = random.pick(&["stateful", "stateful", "stateful-all"]);
    let mut text = if random.below(2) == 0 { "alg \"icmp\"\n".to_owned() } else { String::new() };
    let groups = ["\"a\" in on eth0", "\"b\" out on eth1", "\"c\" on eth1", "\"d\" out on eth0", "default"];
    for group in groups {
        let _ = writeln!(text, "group {group} {{");
        for _ in 0..random.below(6) {
            let action = match random.below(6) {
                0 => "block".to_owned(),
                1 => "block return".to_owned(),
                2 => "block return-rst".to_owned(),
                3 | 4 => format!("pass {keep}"),
                _ => "pass".to_owned(),
            };
            let last = if random.below(3) == 0 { " final" } else { "" };
            let rule = match random.below(6) {
                0 => "all".to_owned(),
                1 => format!("proto tcp {}", filter(random, true)),
                2 => format!("proto udp {}", filter(random, true)),
                3 => format!(
                    "proto tcp flags {} {}",
                    random.pick(&["S/SAFR", "A/SA", "S"]),
                    filter(random, false)
                ),
                4 => format!("family inet4 proto icmp icmp-type {} all", random.pick(&["8", "3"])),
                _ => filter(random, false),
            };
            let _ = writeln!(text, "    {action}{last} {rule}");
        }
        text += "}\n";
    }
    text
}

/// A file of pf.
pub(crate) fn pf_file(random: &mut Random) -> String {
    let mut text = String::new();
    if random.below(2) == 0 {
        text += "set state-policy if-bound\n";
    }
    for _ in 0..2 + random.below(12) {
        let action = match random.below(7) {
            0 => "block".to_owned(),
            1 => "block return".to_owned(),
            2 => "block return-rst".to_owned(),
            3 => "match".to_owned(),
            _ => "pass".to_owned(),
        };
        let way = random.pick(&["", " in", " out"]);
        let on = random.pick(&["", " on eth0", " on eth1", " on ! eth0"]);
        let quick = match action.as_str() {
            "match" => " log",
            _ if random.below(4) == 0 => " quick",
            _ => "",
        };
        let state =
            if action == "pass" { random.pick(&["", " keep state", " no state", " no state"]) } else { "" };
        let ports = filter(random, true).replace('-', ":");
        let rule = match random.below(5) {
            0 => " all".to_owned(),
            1 => format!(" proto tcp {ports}"),
            2 => format!(" proto udp {ports}"),
            3 => " inet proto icmp all icmp-type 8".to_owned(),
            _ => format!(" {}", filter(random, false)),
        };
        let rule = if action == "block return-rst" { format!(" proto tcp {ports}") } else { rule };
        let _ = writeln!(text, "{action}{way}{quick}{on}{rule}{state}");
    }
    text
}
