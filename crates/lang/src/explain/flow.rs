//! Paths of a packet: decoding, circles, verdicts.

use super::entry::Entry;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        code: "E0401",
        headline: "The program has no start.",
        cause: "Packets come to the decoder or stage marked `start`.",
        example: r#"stage all() { flood }
"#,
        fix: "Write `start` in front of one of them.",
        mend: ("stage all", "start stage all"),
    },
    Entry {
        code: "E0402",
        headline: "The program has two starts.",
        cause: "Packets come to one place first.",
        example: r#"start stage one() { goto two }
start stage two() { flood }
"#,
        fix: "Remove one `start`.",
        mend: ("start stage two", "stage two"),
    },
    Entry {
        code: "E0403",
        headline: "A packet can reach the end of a stage without a verdict.",
        cause: "No packet is lost without a reason, so every path ends in send, flood, multicast, drop, punt, recirculate or goto.",
        example: r#"start stage all() {
    if in_port == 1 { send 2 }
}
"#,
        fix: "Say what becomes of the packet at the end.",
        mend: ("{ send 2 }", "{ send 2 }\n    flood"),
    },
    Entry {
        code: "E0404",
        headline: "A statement is never reached.",
        cause: "Every packet leaves before it.",
        example: r#"start stage all() {
    flood
    send 2
}
"#,
        fix: "Remove it, or move it up.",
        mend: ("flood\n    send 2", "send 2"),
    },
    Entry {
        code: "W0405",
        headline: "An arm never matches.",
        cause: "The arms above it fit everything that it fits; perhaps their order is wrong.",
        example: r#"start stage all() {
    match in_port { 1..9 => send 2, 5 => send 3, else => flood }
}
"#,
        fix: "Put the narrower arm first, or remove it.",
        mend: ("1..9 => send 2, 5 => send 3", "5 => send 3, 1..9 => send 2"),
    },
    Entry {
        code: "W0406",
        headline: "No packet reaches a stage.",
        cause: "Nothing transfers to it, or only stages that are not reached themselves.",
        example: r#"start stage all() { flood }
stage forgotten() { send 1 }
"#,
        fix: "Go to it from a stage that packets reach, or remove it.",
        mend: ("{ flood }", "{ if in_port == 1 { goto forgotten } flood }"),
    },
    Entry {
        code: "W0407",
        headline: "A comparison always gives the same.",
        cause: "The type alone decides it: no number is above its largest value or below zero.",
        example: r#"import std.net.{ethernet, ipv4}
start decoder frame(eth: ethernet) {
    match eth.type { 0x0800 => packet, else => flood }
}
decoder packet(ip: ipv4) {
    if ip.ttl > 255 { send 1 }
    flood
}
"#,
        fix: "Compare with another number.",
        mend: ("> 255", "> 64"),
    },
    Entry {
        code: "W0408",
        headline: "Nothing is dropped or punted for a declared reason.",
        cause: "The declaration says that the program may drop for it, and it never does; perhaps a statement is missing.",
        example: r#"reason lost "nobody knows where it went"
start stage all() { flood }
"#,
        fix: "Use the reason, or remove it.",
        mend: ("{ flood }", "{ if in_port == 9 { drop lost } flood }"),
    },
    Entry {
        code: "E0410",
        headline: "A packet could go round for ever.",
        cause: "Every circle of stages passes a decoder, which consumes bytes, or a stage with a `cap`.",
        example: r#"start stage all() {
    if in_port == 1 { flood }
    goto again
}
stage again() { goto all }
"#,
        fix: "Let the circle pass a decoder, limit it by `cap`, or start again by `recirculate`.",
        mend: ("stage again()", "stage again() cap 4"),
    },
    Entry {
        code: "E0412",
        headline: "A header is not decoded on every path to where it is read.",
        cause: "A field is read only where its header was decoded before, on every way a packet can come; the places and the packet show one way without it.",
        example: r#"import std.net.{ethernet, ipv4}
start decoder frame(eth: ethernet) {
    match eth.type { 0x0800 => packet, else => switch }
}
decoder packet(ip: ipv4) { goto switch }
stage switch() {
    if ip.ttl == 0 { send 1 }
    flood
}
"#,
        fix: "Let every path pass the decoder, or go to another stage where the header is missing.",
        mend: ("else => switch", "else => flood"),
    },
    Entry {
        code: "E0413",
        headline: "What follows a header is not certain.",
        cause: "The layout says when something follows it: only a first fragment holds ports, for example. A decoder behind it is reached only where that condition is known to hold.",
        example: r#"import std.net.{ethernet, ipv4, udp}
start decoder frame(eth: ethernet) {
    match eth.type { 0x0800 => packet, else => flood }
}
decoder packet(ip: ipv4) {
    match ip.proto { 17 => datagram, else => flood }
}
decoder datagram(u: udp) {
    if u.dst == 53 { send 1 }
    flood
}
"#,
        fix: "Test the condition first.",
        mend: ("    match ip.proto", "    if ip.frag != 0 { flood }\n    match ip.proto"),
    },
    Entry {
        code: "E0414",
        headline: "A header name stands for two layouts.",
        cause: "Later stages know a header by its name, so the name means one layout in the whole program.",
        example: r#"import std.net.{ethernet, ipv4, arp}
start decoder frame(eth: ethernet) {
    match eth.type { 0x0800 => packet, 0x0806 => question, else => flood }
}
decoder packet(h: ipv4) { flood }
decoder question(h: arp) { flood }
"#,
        fix: "Give the headers different names.",
        mend: ("question(h:", "question(ask:"),
    },
    Entry {
        code: "E0415",
        headline: "There is no packet here.",
        cause: "Events and periodic handlers run between packets, functions see their parameters only, and a test makes its own packets.",
        example: r#"event seen(at: port) { send at }
start stage all() {
    raise seen(in_port)
    flood
}
"#,
        fix: "Hand over what is needed as an argument; a handler sends by `emit`.",
        mend: ("send at", "emit \"hello\" to at"),
    },
    Entry {
        code: "E0417",
        headline: "There is nothing to leave here.",
        cause: "`break` leaves a walk over headers.",
        example: r#"start stage all() {
    if in_port == 1 { break }
    flood
}
"#,
        fix: "Use `if` and `else`, or end with a verdict.",
        mend: ("{ break }", "{ send 2 }"),
    },
    Entry {
        code: "E0418",
        headline: "The ports of a multicast are wrong.",
        cause: "A multicast names at least one port, and every port gets one copy; or it names a group of ports with a capacity of at most 64.",
        example: r#"start stage all() {
    multicast { 1, 2, 1 }
}
"#,
        fix: "Name each port once.",
        mend: ("1, 2, 1", "1, 2"),
    },
    Entry {
        code: "E0419",
        headline: "A recirculation needs a budget from 1 to 64.",
        cause: "A packet may start again only so often; then it is dropped for `too_many_rounds`.",
        example: r#"start stage all() {
    if in_port == 1 { recirculate 0 }
    flood
}
"#,
        fix: "Write how often it may start again.",
        mend: ("recirculate 0", "recirculate 2"),
    },
    Entry {
        code: "E0421",
        headline: "A walk might never end.",
        cause: "Each round consumes a header, so the smallest header has at least one byte.",
        example: r#"import std.net.ethernet
layout blob { data: bytes[0] }
start decoder frame(eth: ethernet) {
    for piece in payload as blob { copy to 1 }
    flood
}
"#,
        fix: "Walk over a layout with a field that is always there.",
        mend: ("data: bytes[0]", "size: u8  data: bytes[size]"),
    },
    Entry {
        code: "E0422",
        headline: "There is no header to extract from.",
        cause: "A decoder extracts from its own header; a stage has none.",
        example: r#"import std.net.ethernet
start decoder frame(eth: ethernet) {
    goto more
}
stage more() { extract all  flood }
"#,
        fix: "Extract in the decoder. Fields are read where they are used anyway.",
        mend: ("extract all  ", ""),
    },
    Entry {
        code: "E0423",
        headline: "There is no port 0.",
        cause: "Ports are numbered from 1.",
        example: r#"start stage all() {
    send 0
}
"#,
        fix: "Write a port from 1 on.",
        mend: ("send 0", "send 1"),
    },
];
