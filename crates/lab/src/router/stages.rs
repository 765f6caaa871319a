//! Programs that do the first part of a router's work on IPv4 and then send, each a stage more than the one
//! before it.
//!
//! Each does what `router` does up to a point, but for groups, ICMP and fragments. What one takes longer than
//! the one before it is the cost of its stage.

use crate::programs::compile;
use lang::ir::Program;
use lang::pipeline::Decode;

/// What the stages are called, in order.
pub(super) const STAGES: [&str; 8] = [
    "receive and send",
    "check the headers",
    "look up the way back",
    "classify by rules",
    "ask for payload",
    "look up the route",
    "look up the next hop",
    "TTL with checksum, Ethernet addresses, padding cut off",
];

const WIRE: &str = "start stage all() { send 2 }\n";

/// Declarations, and everything up to the check of the source.
const HEADERS: &str = r#"
import std.net.{ethernet, ipv4, ipv4_option, tcp, is_group}

reason not_ip "not IPv4"
reason bad_length "the header says another length than the packet has"
reason bad_checksum "the checksum of the IPv4 header is wrong"
reason martian "an address that no packet between networks may have"
reason reverse_path "no route to its source leads by the port that it came in by"
reason source_routed "the sender wants to say which way its packet goes"
reason prohibited "a rule says that the packet must not pass"
reason suspicious "the payload holds a signature"
reason no_route "no prefix of the table holds the destination"
reason no_next_hop "the route leads to a next hop that is not in the table"
reason expired "the TTL is used up"
reason too_big "larger than the MTU of the way out"

layout ports {
    src: u16
    dst: u16
    length: u16
    check: u16
}

table acl: rules(src: ip4, dst: ip4, sport: u16, dport: u16, proto: u8) -> { permit, deny } {
    capacity 128k
    default => permit
}
table signatures: patterns(bytes) -> u32 { capacity 8k }
table routes: lpm(ip4) -> u16 { capacity 1M }
table next_hops: exact(u16) -> (port, mac, mac, u16) { capacity 4k }
table behind: exact(u16) -> port { capacity 8k }

fn is_martian(address: ip4) -> bool {
    address in 0.0.0.0/8 || address in 127.0.0.0/8 || address in 169.254.0.0/16 || address in 240.0.0.0/4
}

start decoder frame(eth: ethernet) {
    match eth.type {
        0x0800 => packet
        else => drop not_ip
    }
}

decoder packet(ip: ipv4) {
    let header = ip.ihl as u16 * 4
    if ip.total < header || length < ip.total as u32 + 14 { drop bad_length }
    if !valid(ip.check) { drop bad_checksum }
    if ip.dst in 224.0.0.0/4 || is_group(eth.dst) { drop martian }
    if is_martian(ip.src) || ip.src in 224.0.0.0/4 || is_martian(ip.dst) { drop martian }
    if ip.ihl > 5 {
        for option in ip.options as ipv4_option {
            if option.kind == 0 { break }
            if option.kind == 131 || option.kind == 137 { drop source_routed }
        }
    }
"#;

const WAY_BACK: &str = "
    match routes[ip.src] {
        some hop => {
            match behind[hop] {
                some at if at == in_port => {}
                else => drop reverse_path
            }
        }
        none => drop reverse_path
    }
";

/// Everything from there up to the classification.
const TRANSPORT: &str = r#"
    let rest = (ip.total - header) as u32
    if ip.frag != 0 { goto classify(0, 0, 0) }
    match ip.proto {
        6 => segment(rest)
        17 => datagram(rest)
        else => classify(0, 0, 0)
    }
}

decoder segment(t: tcp, rest: u32) {
    goto classify(t.src, t.dst, rest -| t.offset as u32 * 4)
}
decoder datagram(u: ports, rest: u32) {
    goto classify(u.src, u.dst, rest -| 8)
}
"#;

const RULES: &str = "
    match acl[ip.src, ip.dst, sport, dport, ip.proto] {
        some deny => drop prohibited
        some permit | none => {}
    }
";

const PAYLOAD: &str = "
    if rest > 0 {
        match signatures[clip(payload, rest)] {
            some _ => drop suspicious
            none => {}
        }
    }
";

/// The text of a stage; 0 is the first.
fn text(stage: usize) -> String {
    if stage == 0 {
        return WIRE.to_owned();
    }
    let way_back = if stage >= 2 { WAY_BACK } else { "" };
    let mut text = format!(
        "{HEADERS}{way_back}{TRANSPORT}\nstage classify(sport: u16, dport: u16, rest: u32) requires ip, eth {{"
    );
    for (least, part) in [(3, RULES), (4, PAYLOAD)] {
        text.push_str(if stage >= least { part } else { "" });
    }
    text.push_str(match stage {
        1..=4 => "\n    send 2\n}\n",
        5 => "\n    match routes[ip.dst] { some _ => send 2, none => drop no_route }\n}\n",
        _ => "\n    match routes[ip.dst] { some hop => leave(hop), none => drop no_route }\n}\n",
    });
    if stage >= 6 {
        text.push_str("stage leave(hop: u16) requires ip, eth {\n    match next_hops[hop] {\n");
        text.push_str("        some (out, neighbour, own, mtu) => {\n");
        if stage >= 7 {
            text.push_str("            if ip.ttl <= 1 { drop expired }\n            if ip.total > mtu { drop too_big }\n");
            text.push_str("            set ip.ttl = ip.ttl - 1\n            set eth.dst = neighbour\n");
            text.push_str("            set eth.src = own\n");
            text.push_str(
                "            if length > ip.total as u32 + 14 { truncate to ip.total as u32 + 14 }\n",
            );
        }
        text.push_str("            send out\n        }\n        none => drop no_next_hop\n    }\n}\n");
    }
    text
}

/// The program of a stage.
pub(super) fn program(stage: usize) -> Result<Program, String> {
    compile(&format!("stage {}", STAGES[stage]), &text(stage), Decode::Lazy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_compiles_and_the_last_one_does_all() {
        for (stage, name) in STAGES.iter().enumerate() {
            let compiled = program(stage).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(compiled.tables.is_empty(), stage == 0, "{name}");
        }
        assert!(text(STAGES.len() - 1).contains("set ip.ttl"));
    }
}
