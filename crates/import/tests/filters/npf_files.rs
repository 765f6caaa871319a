//! Configurations of NPF: nine as gateways in use have them, and generated ones.

use crate::packets::{INTERFACES, PORTS, V4, V6};
use crate::random::Random;

/// Nine configurations with the shapes of those of TrustedGateway: the name, whether the first line is a
/// title, the text.
pub(crate) const NINE: [(&str, bool, &str); 9] = [
    (
        "more rules without state",
        true,
        "1. no state, with more rules\n\ngroup \"north\" on north {\npass out final proto tcp to 192.0.2.49 port 4433\n\
         pass in final proto tcp from 192.0.2.49 port 4433\npass out final proto tcp to 192.0.2.49 port 8000\n\
         pass in final proto tcp from 192.0.2.49 port 8000\npass in final proto tcp from 192.0.2.42\n\
         pass out final proto tcp from any port 5203\npass in final proto tcp from 192.0.2.49 to any port 5201\n\
         pass out final proto tcp from any port 5201 to 192.0.2.49\nblock all\n}\ngroup default {\npass all\n}\n\n",
    ),
    (
        "without state",
        true,
        "1. \"stateful\" is left out\n\ngroup \"north\" on north {\n\
         pass in final proto tcp from 192.0.2.49 to any port 5201\npass out final proto tcp from any port 5201 to 192.0.2.49\n\
         pass out final proto tcp to 192.0.2.49 port 4433\npass in final proto tcp from 192.0.2.49 port 4433\n\
         pass out final proto tcp to 192.0.2.49 port 8000\npass in final proto tcp from 192.0.2.49 port 8000\n\
         block all\n}\ngroup default {\npass all\n}\n\n",
    ),
    (
        "both networks",
        false,
        "# \"in\" at lan0 is what clients send\n\ngroup \"cards\" on \"lan0\" {\n\
         \x20 pass stateful final proto tcp to 172.16.0.7 port 5201\n\
         \x20 pass stateful in final proto tcp to 192.0.2.49 port 4433\n\
         \x20 pass stateful in final proto tcp to 192.0.2.49 port 8000\n  block all\n}\n\n\
         group default {\n  pass all\n}\n",
    ),
    (
        "one card",
        false,
        "# directions are those of a measurement in reverse\n\ngroup \"north\" on north {\n\
         \x20 pass stateful in final proto tcp from 192.0.2.49 to any port 5201\n\
         \x20 pass stateful out final proto tcp to 192.0.2.49 port 4433\n\
         \x20 pass stateful out final proto tcp to 192.0.2.49 port 8000\n  block all\n}\n\n\
         group default {\n  pass all\n}\n",
    ),
    (
        "both networks without state",
        true,
        "both_networks_without_state\n\ngroup \"cards\" on \"lan0\" {\npass final proto tcp to 172.16.0.7 port 5201\n\
         pass final proto tcp from 172.16.0.7 port 5201\npass in final proto tcp to 192.0.2.49 port 4433\n\
         pass out final proto tcp from 192.0.2.49 port 4433\npass in final proto tcp to 192.0.2.49 port 8000\n\
         pass out final proto tcp from 192.0.2.49 port 8000\nblock all\n}\ngroup default {\npass all\n}",
    ),
    (
        "ports only",
        true,
        "2. ports only\n\ngroup \"north\" on north {\n  pass stateful in final proto tcp to any port 5201\n\
         \x20 pass stateful out final proto tcp to any port 4433\n\
         \x20 pass stateful out final proto tcp to any port 8000\n  block all\n}\n\ngroup default {\n  pass all\n}",
    ),
    (
        "split by direction",
        true,
        "3. split by direction\n\ngroup \"northIN\" in on north {\n\
         \x20 pass stateful final proto tcp from 192.0.2.49 to any port 5201\n  block all\n}\n\n\
         group \"northOUT\" out on north {\n  pass stateful out final proto tcp to 192.0.2.49 port 4433\n\
         \x20 pass stateful out final proto tcp to 192.0.2.49 port 8000\n  block all\n}\n\n\
         group default {\n  pass all\n}",
    ),
    (
        "one rule",
        true,
        "4. one rule\n\ngroup \"north\" on north {\n\
         \x20 pass stateful in final proto tcp from 192.0.2.49 to any port 5201\n  block all\n}\n\n\
         group default {\n  pass all\n}",
    ),
    ("default", false, "group default {\n  pass all\n}\n"),
];

/// What is in the table of generated configurations.
pub(crate) const TABLE: [&str; 3] = ["192.0.2.0/24", "10.0.0.1", "2001:db8::/32"];

/// A configuration; `state` is the word of rules with state.
pub(crate) fn generated(random: &mut Random, state: &str) -> String {
    let mut text = String::from(
        "$nets = { 192.0.2.0/25, 10.0.0.0/8 }\n$web = { http, 8000-8010 }\n$if = { inet4(lan0) }\n\
         table <t> type lpm\nprocedure \"log\" {\n  log: npflog0\n}\nalg \"icmp\"\n",
    );
    let groups = 1 + random.below(4);
    let default = random.below(groups);
    for number in 0..groups {
        if number == default {
            text.push_str(random.one(&["group default {\n", "group default {\n  pass all\n"]));
        } else {
            let direction = random.one(&["", "", "in ", "out "]);
            let on = format!("on {}", random.one(&["north", "\"lan0\"", "$if"]));
            let on = if random.once_in(4) { "" } else { &on };
            text.push_str(&format!("group \"g{number}\" {direction}{on} {{\n"));
        }
        for _ in 0..random.below(7) {
            text.push_str(&format!("  {}\n", rule(random, state)));
        }
        text.push_str("}\n");
    }
    text
}

fn rule(random: &mut Random, state: &str) -> String {
    let mut words = vec![
        random
            .one(&["pass", "pass", "block", "block return", "block return-rst", "block return-icmp"])
            .to_owned(),
    ];
    let mut sometimes = |random: &mut Random, times: u64, word: &str| {
        if random.once_in(times) {
            words.push(word.to_owned());
        }
    };
    sometimes(random, 2, state);
    let direction = random.one(&["in", "out"]);
    sometimes(random, 2, direction);
    sometimes(random, 3, "final");
    let interface = format!("on {}", random.one(&INTERFACES));
    sometimes(random, 6, &interface);
    let family = random.below(4);
    sometimes(random, 1, ["family inet4", "family inet6", "", ""][family as usize]);
    let protocol = random.one(&["tcp", "tcp", "udp", "icmp", "\"ipv6-icmp\"", "gre", "0x59", ""]);
    if !protocol.is_empty() {
        sometimes(random, 1, &format!("proto {protocol}"));
    }
    let options: &[&str] = match protocol {
        "tcp" => &["flags S/SA", "flags A", "flags FR/FRA", "", "", "", ""],
        "icmp" => &["icmp-type echo code 0", "icmp-type 3", ""],
        "\"ipv6-icmp\"" => &["icmp-type 128", ""],
        _ => &[""],
    };
    let option = random.one(options);
    sometimes(random, 1, option);
    // One family in a rule.
    let of_v6 = match family {
        0 => false,
        1 => true,
        _ => random.once_in(3),
    };
    let has_ports = matches!(protocol, "tcp" | "udp" | "");
    let ends = [endpoint(random, "from", of_v6, has_ports), endpoint(random, "to", of_v6, has_ports)];
    let ends = ends.join(" ");
    words.push(if ends.trim().is_empty() { "all".to_owned() } else { ends });
    if random.once_in(6) {
        words.push("apply \"log\"".to_owned());
    }
    words.join(" ")
}

fn endpoint(random: &mut Random, keyword: &str, of_v6: bool, has_ports: bool) -> String {
    if random.once_in(3) {
        return String::new();
    }
    let not = if random.once_in(4) { "! " } else { "" };
    let addresses = match (random.below(5), of_v6) {
        (0, _) => "any".to_owned(),
        (1, _) => format!("{not}<t>"),
        (2, true) => format!("{not}{{ {}, 2001:db8:1::/48 }}", random.one(&V6)),
        (_, true) => format!("{not}2001:db8::/32"),
        (2, false) => format!("{not}{{ {}, $nets }}", random.one(&V4)),
        (3, false) => format!("{not}192.0.2.0/255.255.255.128"),
        (_, false) => format!("{not}{}", random.one(&V4)),
    };
    if !has_ports || random.once_in(2) {
        return format!("{keyword} {addresses}");
    }
    let ports = match random.below(4) {
        0 => "$web".to_owned(),
        1 => "{ ssh, 5000-5300, domain }".to_owned(),
        2 => "1024-0xffff".to_owned(),
        _ => random.one(&PORTS).to_string(),
    };
    format!("{keyword} {addresses} port {ports}")
}
