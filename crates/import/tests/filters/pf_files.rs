//! Generated configurations of pf.

use crate::packets::{INTERFACES, PORTS, V4, V6};
use crate::random::Random;

/// A configuration.
pub(crate) fn generated(random: &mut Random) -> String {
    let mut text = String::from(
        "if = \"lan0\"\nnets = \"{ 192.0.2.0/25, 10/8 }\"\nweb = \"80, 8000:8010\"\n\
         table <t> persist file \"/etc/t\"\ntable <own> const { 192.0.2.0/24, !192.0.2.42, 2001:db8::/32 }\n",
    );
    for (times, line) in [
        (3, "set block-policy return\n"),
        (3, "set state-policy if-bound\n"),
        (6, "set skip on { lo wan0 }\n"),
        (2, "block\n"),
    ] {
        if random.once_in(times) {
            text.push_str(line);
        }
    }
    block(random, &mut text, 0);
    text
}

fn block(random: &mut Random, text: &mut String, depth: usize) {
    for _ in 0..1 + random.below(6) {
        if depth < 3 && random.once_in(6) {
            let header = filter(random, "anchor", false);
            text.push_str(&format!("{header} {{\n"));
            block(random, text, depth + 1);
            text.push_str("}\n");
        } else {
            let action = random.one(&[
                "pass",
                "pass",
                "pass",
                "match",
                "block",
                "block drop",
                "block return",
                "block return-rst",
                "block return-icmp",
            ]);
            let rule = filter(random, action, action == "pass");
            text.push_str(&rule);
            text.push('\n');
        }
    }
}

fn filter(random: &mut Random, action: &str, passes: bool) -> String {
    let mut words = vec![action.to_owned()];
    if random.once_in(2) {
        words.push(random.one(&["in", "out"]).to_owned());
    }
    if action != "anchor" && action != "match" && random.once_in(4) {
        words.push("quick".to_owned());
    }
    if random.once_in(5) {
        words.push(format!("on {}", random.one(&["$if", "! north", "{ north wan0 }", INTERFACES[0]])));
    }
    let family = random.below(5);
    words.push(["inet", "inet6", "", "", ""][family as usize].to_owned());
    let protocol = random.one(&["tcp", "tcp", "udp", "{ tcp udp }", "icmp", "icmp6", "gre", "89", ""]);
    if !protocol.is_empty() {
        words.push(format!("proto {protocol}"));
    }
    let of_v6 = family == 1 || family > 1 && random.once_in(4);
    let has_ports = matches!(protocol, "tcp" | "udp" | "{ tcp udp }");
    for keyword in ["from", "to"] {
        words.push(endpoint(random, keyword, of_v6, has_ports));
    }
    match protocol {
        "tcp" | "" if random.once_in(3) => {
            words.push(random.one(&["flags S/SA", "flags any", "flags A/A", "flags /SR"]).to_owned());
        }
        "icmp" if random.once_in(2) => {
            words.push(random.one(&["icmp-type echoreq", "icmp-type { 8 code 0, unreach }"]).to_owned());
        }
        "icmp6" if random.once_in(2) => words.push("icmp6-type 128".to_owned()),
        _ => {}
    }
    if passes {
        words.push(random.one(&["", "keep state", "modulate state", "no state", "no state"]).to_owned());
    }
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

fn endpoint(random: &mut Random, keyword: &str, of_v6: bool, has_ports: bool) -> String {
    if random.once_in(3) {
        return String::new();
    }
    let not = random.one(&["", "", "", "! "]);
    let addresses = match (random.below(7), of_v6) {
        (0, _) => "any".to_owned(),
        (1, _) => format!("{not}<t>"),
        (2, _) => format!("{not}<own>"),
        (3, true) => format!("{{ {not}{}, 2001:db8:1::/48 }}", random.one(&V6)),
        (_, true) => format!("{not}2001:db8::/32"),
        (3, false) => format!("{{ {not}{} $nets }}", random.one(&V4)),
        (4, false) => format!("{not}10.0.0.0 - 10.100.0.0"),
        (5, false) => format!("{not}192.0.2.77/25"),
        (_, false) => format!("{not}{}", random.one(&V4)),
    };
    if !has_ports || random.once_in(2) {
        return format!("{keyword} {addresses}");
    }
    let port = random.one(&PORTS[1..PORTS.len() - 1]);
    let ports = match random.below(6) {
        0 => "{ ssh, $web }".to_owned(),
        1 => format!("!= {port}"),
        2 => format!("{} {port}", random.one(&["<", "<=", ">", ">=", "="])),
        3 => "5000 >< 5203".to_owned(),
        4 => "{ 80 <> 8000, 5201 }".to_owned(),
        _ => port.to_string(),
    };
    format!("{keyword} {addresses} port {ports}")
}
