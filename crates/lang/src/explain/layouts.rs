//! Layouts and their fields.

use super::entry::Entry;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        code: "E0301",
        headline: "A field does not begin at a whole byte.",
        cause: "`bytes` and fields with `when` begin at a whole byte, so the bits before them add up to whole bytes.",
        example: r#"layout odd { a: u4  data: bytes[2]  b: u4 }
start decoder first(o: odd) {
    if o.a == 1 { send 1 }
    flood
}
"#,
        fix: "Move the field, or fill up the byte before it.",
        mend: ("data: bytes[2]  b: u4", "b: u4  data: bytes[2]"),
    },
    Entry {
        code: "E0302",
        headline: "A conditional field must be whole bytes.",
        cause: "What stands behind it would otherwise begin inside a byte whenever it is missing.",
        example: r#"layout odd { a: u8  b: u4 when a == 1  c: u4 }
start decoder first(o: odd) {
    if o.a == 1 { send 1 }
    flood
}
"#,
        fix: "Make it whole bytes, or one field of both parts.",
        mend: ("b: u4 when a == 1  c: u4", "b: u8 when a == 1"),
    },
    Entry {
        code: "E0303",
        headline: "A field spreads over too many bytes.",
        cause: "A field is read at once and may touch at most 16 bytes; 128 bits that begin inside a byte touch 17.",
        example: r#"layout odd { a: u4  b: u128  c: u4 }
start decoder first(o: odd) {
    if o.a == 1 { send 1 }
    flood
}
"#,
        fix: "Put it at a whole byte, or split it.",
        mend: ("b: u128  c: u4", "c: u4  b: u128"),
    },
    Entry {
        code: "E0304",
        headline: "A layout is too long.",
        cause: "Its fixed part may have at most 4,096 bytes.",
        example: r#"// a layout of more than 256 fields of 128 bits
start stage all() { flood }
"#,
        fix: "Use a `bytes[…]` field, or several layouts.",
        mend: ("", ""),
    },
    Entry {
        code: "E0305",
        headline: "A layout does not end at a whole byte.",
        cause: "The next header begins at a whole byte.",
        example: r#"layout odd { a: u4  b: u8 }
start decoder first(o: odd) {
    if o.a == 1 { send 1 }
    flood
}
"#,
        fix: "Add a field for the bits that are missing.",
        mend: ("b: u8", "b: u8  rest: u4"),
    },
    Entry {
        code: "E0306",
        headline: "Flags and bits do not match in number.",
        cause: "Every bit of a field of flags has one name, the most significant first.",
        example: r#"layout odd { f: u4 { a, b, c }  rest: u4 }
start decoder first(o: odd) {
    if o.rest == 3 { send 1 }
    flood
}
"#,
        fix: "Name every bit; unused ones too.",
        mend: ("a, b, c", "a, b, c, d"),
    },
    Entry {
        code: "E0307",
        headline: "Bytes cannot be constrained.",
        cause: "A constraint is about a single number.",
        example: r#"layout odd { a: u8  data: bytes[2] = 3 }
start decoder first(o: odd) {
    if o.a == 1 { send 1 }
    flood
}
"#,
        fix: "Constrain the field that says how long they are, or use a number such as `u16`.",
        mend: ("data: bytes[2] = 3", "data: u16 = 3"),
    },
    Entry {
        code: "E0308",
        headline: "No value satisfies a constraint.",
        cause: "The range is empty, so every packet would be dropped.",
        example: r#"layout odd { a: u4 in 9..5  b: u4 }
start decoder first(o: odd) {
    if o.a == 1 { send 1 }
    flood
}
"#,
        fix: "Write the smaller end first.",
        mend: ("9..5", "5..9"),
    },
    Entry {
        code: "E0309",
        headline: "A size or condition needs a field that is not certain.",
        cause: "Sizes and conditions are computed from numbers that stand before them and are always there.",
        example: r#"layout odd { data: bytes[size]  size: u8  a: u8 }
start decoder first(o: odd) {
    if o.a == 1 { send 1 }
    flood
}
"#,
        fix: "Use a field that stands before.",
        mend: ("data: bytes[size]  size: u8", "size: u8  data: bytes[size as u32]"),
    },
    Entry {
        code: "E0310",
        headline: "A field cannot be written.",
        cause: "Only single values that are always there are written; bytes and fields with `when` are not.",
        example: r#"layout odd { a: u8  b: u8 when a == 1 }
start decoder first(o: odd) {
    set o.b = 3
    flood
}
"#,
        fix: "Write another field, or make a new packet by `emit`.",
        mend: ("set o.b", "match o.b { some _ => send 1, none => { } }  // set o.b"),
    },
    Entry {
        code: "E0311",
        headline: "Writing a field would change the shape of the header.",
        cause: "Sizes or conditions of other fields depend on it, or whether something follows the header; the bytes behind would not move, and what was received decides what they are.",
        example: r#"layout odd { a: u8  data: bytes[a] }
start decoder first(o: odd) {
    set o.a = 3
    flood
}
"#,
        fix: "Make a new packet by `emit`.",
        mend: ("set o.a = 3", "emit odd(a 3) to in_port"),
    },
    Entry {
        code: "E0312",
        headline: "A value breaks the constraint of a field.",
        cause: "The packet would be one that every decoder of this layout refuses.",
        example: r#"import std.net.{ethernet, ipv4}
start decoder frame(eth: ethernet) {
    match eth.type { 0x0800 => packet, else => flood }
}
decoder packet(ip: ipv4) {
    set ip.version = 6
    flood
}
"#,
        fix: "Write an allowed value.",
        mend: ("= 6", "= 4"),
    },
    Entry {
        code: "E0313",
        headline: "A layout has no fields.",
        cause: "A header without fields would say nothing and consume nothing.",
        example: r#"layout nothing { }
start decoder first(n: nothing) { flood }
"#,
        fix: "Give it a field, or use a `stage` where nothing is decoded.",
        mend: ("{ }", "{ a: u8 }"),
    },
    Entry {
        code: "E0314",
        headline: "A checksum cannot stand here.",
        cause: "The compiler writes a checksum whenever what it covers changes, so its place must be known everywhere: in the first fields of fixed length, always there, behind an even number of bytes, and one in a layout.",
        example: r#"layout odd { a: u8  check: inet16 over header  b: u8 }
start decoder first(o: odd) {
    if o.a == 1 { send 1 }
    flood
}
"#,
        fix: "Move it, or declare it as `u16` and keep it right yourself.",
        mend: ("a: u8  check: inet16 over header  b: u8", "a: u8  b: u8  check: inet16 over header"),
    },
    Entry {
        code: "E0315",
        headline: "A pseudo header cannot be made of this.",
        cause: "Checksums of the header behind cover the fields that `pseudo` names, which are whole bytes, an even number of them, and always there. Something must be able to follow.",
        example: r#"layout outer { kind: u8  src: ip4 } next kind { 1 => inner } pseudo (kind + src)
layout inner { check: inet16 over (pseudo + header) }
start decoder first(o: outer) {
    if o.kind == 1 { send 1 }
    flood
}
"#,
        fix: "Name other fields; `kind of payload` is the number that announces the header behind.",
        mend: ("pseudo (kind + src)", "pseudo (src + kind of payload)"),
    },
    Entry {
        code: "E0316",
        headline: "A checksum is not set by the program.",
        cause: "Every `set` of what a checksum covers changes the checksum as well; to change it again would make it wrong.",
        example: r#"import std.net.{ethernet, ipv4}
start decoder frame(eth: ethernet) {
    match eth.type { 0x0800 => packet, else => flood }
}
decoder packet(ip: ipv4) {
    set ip.dst = 10.0.0.1
    set ip.check = ip.check +% 1
    flood
}
"#,
        fix: "Leave it out. A checksum declared `unless 0` may be set to 0, which says that there is none.",
        mend: ("    set ip.check = ip.check +% 1\n", ""),
    },
    Entry {
        code: "E0317",
        headline: "The checksum of an outer header cannot be kept right.",
        cause: "It covers all that follows, also what is written here, but its header was decoded again under the same name, and the place of the first one is no longer known.",
        example: r#"layout seal { kind: u16  check: inet16 over (header + payload) }
start decoder first(s: seal) {
    if s.kind == 1 { goto first }
    set s.kind = 2
    flood
}
"#,
        fix: "Decode the inner header in a decoder of its own, under another name.",
        mend: ("goto first }", "flood }"),
    },
    Entry {
        code: "E0318",
        headline: "`valid` looks at a checksum.",
        cause: "It says whether the checksum of a header is right, so it takes a field that is one.",
        example: r#"import std.net.{ethernet, ipv4}
start decoder frame(eth: ethernet) {
    match eth.type { 0x0800 => packet, else => flood }
}
decoder packet(ip: ipv4) {
    if valid(ip.ttl) { flood }
    send 1
}
"#,
        fix: "Name the checksum.",
        mend: ("ip.ttl", "ip.check"),
    },
    Entry {
        code: "E0319",
        headline: "The checksum of a pushed header may cover what changes.",
        cause: "A header that is pushed has no name, so nothing follows its place; its checksum was computed over all that follows it. Where it went in unannounced behind a header with a pseudo header, the checksum over that is no longer found either.",
        example: r#"import std.net.{ethernet, ipv4, udp}
start decoder frame(eth: ethernet) {
    match eth.type { 0x0800 => packet, else => flood }
}
decoder packet(ip: ipv4) {
    encapsulate { ethernet / ipv4 / udp(dst 9) }
    set ip.dst = 10.0.0.1
    flood
}
"#,
        fix: "Change it before the push, or push a header that says that it has no checksum.",
        mend: ("udp(dst 9)", "udp(dst 9, check 0)"),
    },
];
