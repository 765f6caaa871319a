//! Codes about changes of a packet's size.

use super::entry::Entry;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        code: "E0430",
        headline: "The size of a packet cannot change while its headers are walked over.",
        cause: "A walk goes from header to header by their positions, which the change would move.",
        example: r#"import std.net.{ethernet, tcp, tcp_option}
start decoder frame(eth: ethernet) { goto segment }
decoder segment(t: tcp) {
    for option in t.options as tcp_option {
        if option.kind == 5 { truncate to 60 }
    }
    send 1
}
"#,
        fix: "Remember in a variable what was found, and change the packet behind the walk.",
        mend: ("if option.kind == 5 { truncate to 60 }", "if option.kind == 5 { send 2 }"),
    },
    Entry {
        code: "E0431",
        headline: "A header is no longer part of the packet.",
        cause: "On some way to this point `pop` took the header out, or `decapsulate` everything before another one, so there is nothing to read.",
        example: r#"import std.net.{ethernet, vlan}
start decoder frame(eth: ethernet) { match eth.type { 0x8100 => tag, else => flood } }
decoder tag(t: vlan) {
    pop t
    if t.id == 7 { send 2 }
    send 1
}
"#,
        fix: "Give what is needed of the header a name before it goes.",
        mend: ("    pop t\n    if t.id == 7", "    let id = t.id\n    pop t\n    if id == 7"),
    },
    Entry {
        code: "E0432",
        headline: "Only IPv4 headers can be fragmented.",
        cause: "Fragments are made of the fields of an IPv4 header (RFC 791). IPv6 packets are cut by their sender only (RFC 8200).",
        example: r#"import std.net.{ethernet, ipv6}
start decoder frame(eth: ethernet) { goto packet }
decoder packet(ip: ipv6) { fragment ip to 1280  send 1 }
"#,
        fix: "Answer a long IPv6 packet with an ICMPv6 message `packet too big`.",
        mend: ("fragment ip to 1280  ", ""),
    },
    Entry {
        code: "E0433",
        headline: "A packet that leaves in fragments can no longer change its size, start again or go to a group.",
        cause: "Fragments are cut when the packet leaves. Headers that were put around it before would then state the length of the whole, and copies are not cut.",
        example: r#"import std.net.{ethernet, vlan, ipv4}
start decoder frame(eth: ethernet) { match eth.type { 0x0800 => packet, else => flood } }
decoder packet(ip: ipv4) {
    fragment ip to 1400
    push vlan(id 7) after eth
    send 1
}
"#,
        fix: "Let `fragment` be the last change, shortly before the verdict.",
        mend: (
            "    fragment ip to 1400\n    push vlan(id 7) after eth\n",
            "    push vlan(id 7) after eth\n    fragment ip to 1400\n",
        ),
    },
    Entry {
        code: "E0434",
        headline: "There is no room for so many bytes.",
        cause: "Packets grow into 128 free bytes before them; more can never go in at once.",
        example: r#"import std.net.ethernet
start decoder frame(eth: ethernet) { encapsulate { ethernet / zero[120] }  send 1 }
"#,
        fix: "Send a new packet with the old one behind its headers.",
        mend: ("encapsulate { ethernet / zero[120] }  send 1", "encapsulate { ethernet }  send 1"),
    },
    Entry {
        code: "E0435",
        headline: "Fragments would be too small.",
        cause: "A fragment needs room for the longest header and eight bytes of data, 68 bytes together, which every link lets through (RFC 791).",
        example: r#"import std.net.{ethernet, ipv4}
start decoder frame(eth: ethernet) { goto packet }
decoder packet(ip: ipv4) { fragment ip to 60  send 1 }
"#,
        fix: "Fragment to at least 68 bytes, or test a computed value before.",
        mend: ("to 60", "to 68"),
    },
    Entry {
        code: "E0436",
        headline: "A length or checksum around an edit could not be kept right.",
        cause: "Headers around the place count what goes in or out. Where such a header is certain, its length is changed; where it is there on some paths only, where its checksum covers what follows it, or where every fragment would repeat it, nobody could say what to write. A pushed header has no name, so what it counts must not change its size any more. And a checksum of TCP or UDP covers the addresses of the header before it: where that goes out, its part goes out of the checksum, and where another goes in, its part goes in; but only if it is known whose addresses they were.",
        example: r#"import std.net.{ethernet, ipv4, udp, mpls}
start decoder frame(eth: ethernet) { match eth.type { 0x0800 => packet, else => flood } }
decoder packet(ip: ipv4) {
    if ip.frag != 0 { drop fragment }
    match ip.proto { 17 => datagram, else => flood }
}
decoder datagram(u: udp) {
    push mpls after u
    send 1
}
"#,
        fix: "Take the outer headers out first, or put the packet into new ones.",
        mend: ("    push mpls after u\n", "    encapsulate { mpls }\n"),
    },
];
