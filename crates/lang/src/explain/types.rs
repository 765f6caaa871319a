//! Types, widths, patterns and proofs.

use super::entry::Entry;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        code: "E0200",
        headline: "A value of another type is wanted.",
        cause: "Nothing is converted silently: widths, addresses, ports and conditions are different types.",
        example: r#"import std.net.ethernet
start decoder frame(eth: ethernet) {
    let low: u32 = eth.type
    if low == 7 { send 1 }
    flood
}
"#,
        fix: "Convert it by `as`, or use a value of the right type.",
        mend: ("eth.type\n", "eth.type as u32\n"),
    },
    Entry {
        code: "E0201",
        headline: "A number does not fit its type.",
        cause: "The literal is larger than the largest value of the type that is wanted.",
        example: r#"const LIMIT: u8 = 256
start stage all() { flood }
"#,
        fix: "Write a smaller number, or a wider type.",
        mend: ("u8", "u16"),
    },
    Entry {
        code: "E0202",
        headline: "A result may not fit its type.",
        cause: "What is known of the operands does not exclude a result below zero or above the largest value. Nothing wraps around unless the program says so.",
        example: r#"import std.net.{ethernet, ipv4}
start decoder frame(eth: ethernet) {
    match eth.type { 0x0800 => packet, else => flood }
}
decoder packet(ip: ipv4) {
    set ip.ttl = ip.ttl - 1
    flood
}
"#,
        fix: "Test the operands first (`if ip.ttl > 0 { … }`), or use the form that wraps around (`-%`) or stops at the limit (`-|`).",
        mend: ("ip.ttl - 1", "ip.ttl -| 1"),
    },
    Entry {
        code: "E0203",
        headline: "A conversion may lose bits.",
        cause: "`as` to a narrower type is for values that are known to fit.",
        example: r#"import std.net.ethernet
start decoder frame(eth: ethernet) {
    let low = eth.type as u8
    if low == 0 { send 1 }
    flood
}
"#,
        fix: "Test the value first, keep the low bits (`as%`), or stop at the largest value (`as|`).",
        mend: ("as u8", "as% u8"),
    },
    Entry {
        code: "E0204",
        headline: "A divisor may be zero.",
        cause: "What is known of the divisor does not exclude zero.",
        example: r#"import std.net.{ethernet, ipv4}
start decoder frame(eth: ethernet) {
    match eth.type { 0x0800 => packet, else => flood }
}
decoder packet(ip: ipv4) {
    if ip.total / (ip.ttl as u16) == 3 { send 1 }
    flood
}
"#,
        fix: "Test it first.",
        mend: ("if ip.total /", "if ip.ttl == 0 { flood }\n    if ip.total /"),
    },
    Entry {
        code: "E0205",
        headline: "A shift may be too far.",
        cause: "A number of n bits is shifted by less than n bits.",
        example: r#"import std.net.{ethernet, ipv4}
start decoder frame(eth: ethernet) {
    match eth.type { 0x0800 => packet, else => flood }
}
decoder packet(ip: ipv4) {
    if ip.ttl >> 8 == 1 { send 1 }
    flood
}
"#,
        fix: "Shift by less, or convert to a wider type first.",
        mend: (">> 8", ">> 7"),
    },
    Entry {
        code: "E0206",
        headline: "The number of values is wrong.",
        cause: "A stage, event, function or variant takes as many values as it has parameters; the start takes none.",
        example: r#"start stage all() {
    goto hop(1)
}
stage hop(a: u8, b: u8) { if a == b { send 1 } flood }
"#,
        fix: "Hand over as many values as are declared.",
        mend: ("hop(1)", "hop(1, 2)"),
    },
    Entry {
        code: "E0208",
        headline: "A constant is needed here.",
        cause: "Bounds, capacities, entries and caps are fixed when the program is compiled; what a packet holds is not known then.",
        example: r#"import std.net.ethernet
start decoder frame(eth: ethernet) {
    for i in 0..eth.type { copy to 1 }
    flood
}
"#,
        fix: "Write a number or the name of a `const`.",
        mend: ("eth.type", "3"),
    },
    Entry {
        code: "E0209",
        headline: "A prefix is no value.",
        cause: "A prefix stands for many addresses, so it is used in a pattern or behind `in`.",
        example: r#"import std.net.{ethernet, ipv4}
start decoder frame(eth: ethernet) {
    match eth.type { 0x0800 => packet, else => flood }
}
decoder packet(ip: ipv4) {
    if ip.src == 10.0.0.0/8 { send 1 }
    flood
}
"#,
        fix: "Write `in` instead of a comparison; in front of a prefix or range.",
        mend: ("==", "in"),
    },
    Entry {
        code: "E0210",
        headline: "This is no number to calculate with.",
        cause: "Addresses, ports, flags and enums are compared and stored, not added.",
        example: r#"import std.net.{ethernet, ipv4}
start decoder frame(eth: ethernet) {
    match eth.type { 0x0800 => packet, else => flood }
}
decoder packet(ip: ipv4) {
    if ip.src + 1 == ip.dst { send 1 }
    flood
}
"#,
        fix: "Convert to a number first.",
        mend: ("ip.src + 1 == ip.dst", "(ip.src as u32) +% 1 == ip.dst as u32"),
    },
    Entry {
        code: "E0211",
        headline: "A header or table is no value.",
        cause: "A header is many fields, a table many entries.",
        example: r#"import std.net.ethernet
start decoder frame(eth: ethernet) {
    if eth == 3 { send 1 }
    flood
}
"#,
        fix: "Name a field (`eth.type`), or look something up (`hosts[eth.src]`).",
        mend: ("eth ==", "eth.type =="),
    },
    Entry {
        code: "E0212",
        headline: "The value has no such field.",
        cause: "Headers have fields, flag fields have flags, bytes have a `length`.",
        example: r#"start stage all() {
    if in_port.number == 3 { send 1 }
    flood
}
"#,
        fix: "Use the value itself.",
        mend: ("in_port.number", "in_port"),
    },
    Entry {
        code: "E0213",
        headline: "A table cannot be read here.",
        cause: "What a function or constant gives depends on its parameters alone.",
        example: r#"table hosts: exact(u8) -> port { entries { 1 => 2 } }
fn known(a: u8) -> bool { match hosts[a] { some _ => true, none => false } }
start stage all() {
    if known(1) { send 1 }
    flood
}
"#,
        fix: "Look it up in the stage, and hand the result over.",
        mend: ("", ""),
    },
    Entry {
        code: "E0214",
        headline: "A function needs itself.",
        cause: "Calls are put in place, so a function that calls itself, directly or through others, would never end.",
        example: r#"fn f(a: u8) -> u8 { f(a) }
start stage all() {
    if f(1) == 1 { send 1 }
    flood
}
"#,
        fix: "Compute the result without the call.",
        mend: ("{ f(a) }", "{ a }"),
    },
    Entry {
        code: "E0215",
        headline: "The calls of functions add up to too much code.",
        cause: "Calls are put in place; calls within calls multiply, and 20,000 steps are the limit.",
        example: r#"// f0 calls f1 twice, f1 calls f2 twice, and so on: fifteen functions make 32,768 calls
start stage all() { flood }
"#,
        fix: "Keep a result in a `let` instead of calling again.",
        mend: ("", ""),
    },
    Entry {
        code: "E0216",
        headline: "This cannot be compared.",
        cause: "Comparisons are made between single values.",
        example: r#"import std.net.ethernet
start decoder frame(eth: ethernet) {
    match payload { else => flood }
}
"#,
        fix: "Compare a field, or the length of the bytes.",
        mend: ("payload", "payload.length"),
    },
    Entry {
        code: "E0217",
        headline: "This cannot be converted.",
        cause: "`as` converts single numbers.",
        example: r#"import std.net.ethernet
start decoder frame(eth: ethernet) {
    let a = payload as u32
    if a == 3 { send 1 }
    flood
}
"#,
        fix: "Convert a field, or the length of the bytes.",
        mend: ("payload as", "payload.length as"),
    },
    Entry {
        code: "E0218",
        headline: "A loop has too many rounds.",
        cause: "A loop over numbers is written out round by round; with the loops around it, it has at most 1,024.",
        example: r#"start stage all() {
    for i in 0..2000 { copy to 1 }
    flood
}
"#,
        fix: "Use fewer rounds.",
        mend: ("2000", "20"),
    },
    Entry {
        code: "E0219",
        headline: "A counter may not have this cell.",
        cause: "The index may be larger than the last cell, and nothing is counted silently elsewhere.",
        example: r#"counter by_port[16]
start stage all() {
    count by_port[in_port as u16]
    flood
}
"#,
        fix: "Test the index first, keep its low bits, or give the counter more cells.",
        mend: ("[16]", "[65536]"),
    },
    Entry {
        code: "E0220",
        headline: "Alternatives cannot give names.",
        cause: "Only one alternative of a pattern fits, so the names of the others would mean nothing.",
        example: r#"table hosts: exact(u8) -> (port, port) { entries { 1 => (2, 3) } }
start stage all() {
    match hosts[1] { some (p, 1) | some (1, p) => send p, else => flood }
}
"#,
        fix: "Write one arm for each alternative.",
        mend: ("some (p, 1) | some (1, p) => send p", "some (p, 1) => send p, some (1, p) => send p"),
    },
    Entry {
        code: "E0221",
        headline: "`some` and `none` fit only what may be missing.",
        cause: "A lookup may find nothing, and a field with `when` may not be there; any other value is always there.",
        example: r#"start stage all() {
    match in_port { some p => send p, else => flood }
}
"#,
        fix: "Leave `some` out.",
        mend: ("some p => send p, else => flood", "p => send p"),
    },
    Entry {
        code: "E0222",
        headline: "The value has no variants.",
        cause: "A pattern with a name and brackets takes a variant of a table apart.",
        example: r#"start stage all() {
    match in_port { mirror(p) => send 1, else => flood }
}
"#,
        fix: "Match what the value is.",
        mend: ("mirror(p)", "2"),
    },
    Entry {
        code: "E0223",
        headline: "The pattern has the wrong number of parts.",
        cause: "A pattern in brackets has as many parts as the value.",
        example: r#"table hosts: exact(u8) -> (port, u8) { entries { 1 => (2, 7) } }
start stage all() {
    match hosts[1] { some (p, a, b) => send p, none => flood }
}
"#,
        fix: "Write as many parts as are declared, `_` for those you do not need.",
        mend: ("(p, a, b)", "(p, _)"),
    },
    Entry {
        code: "E0224",
        headline: "A range is empty.",
        cause: "It ends before it begins, so nothing lies in it.",
        example: r#"import std.net.ethernet
start decoder frame(eth: ethernet) {
    match eth.type { 9..5 => send 1, else => flood }
}
"#,
        fix: "Write the smaller end first.",
        mend: ("9..5", "5..9"),
    },
    Entry {
        code: "E0225",
        headline: "A number cannot fit this.",
        cause: "The value may be missing or has several parts, and the pattern is a single value.",
        example: r#"table hosts: exact(u8) -> port { entries { 1 => 2 } }
start stage all() {
    match hosts[1] { 2 => send 1, else => flood }
}
"#,
        fix: "Write `some` in front of it, or brackets around the parts.",
        mend: ("2 => send", "some 2 => send"),
    },
    Entry {
        code: "E0226",
        headline: "A `match` does not say what happens to every value.",
        cause: "A value that fits no arm would have no meaning.",
        example: r#"start stage all() {
    match in_port { 1 => send 2, 2 => send 1 }
}
"#,
        fix: "Add arms for the values that are left, or `else`.",
        mend: ("2 => send 1", "2 => send 1, else => flood"),
    },
    Entry {
        code: "E0227",
        headline: "A `match` is too entangled.",
        cause: "Whether its arms cover every value takes too many steps to find out: many parts, each with many overlapping ranges.",
        example: r#"// dozens of arms over tuples of many parts, all with different ranges
start stage all() { flood }
"#,
        fix: "Split it into several, one part after the other.",
        mend: ("", ""),
    },
    Entry {
        code: "E0228",
        headline: "A local cannot hold this.",
        cause: "A local holds a single value; what may be missing and what has several parts is taken apart first.",
        example: r#"table hosts: exact(u8) -> port { entries { 1 => 2 } }
start stage all() {
    let p = hosts[1]
    flood
}
"#,
        fix: "Use `match`, which gives its parts names.",
        mend: ("let p = hosts[1]", "match hosts[1] { some p => send p, none => { } }"),
    },
    Entry {
        code: "E0229",
        headline: "This name cannot be changed.",
        cause: "`let`, parameters and names in patterns have one value.",
        example: r#"start stage all() {
    let a: u8 = 1
    if in_port == 1 { a = 2 }
    if a == 2 { send 1 }
    flood
}
"#,
        fix: "Declare it by `var`.",
        mend: ("let", "var"),
    },
    Entry {
        code: "E0230",
        headline: "This holds no headers.",
        cause: "A walk goes over a `bytes[…]` field or the payload.",
        example: r#"import std.net.{ethernet, tcp_option}
start decoder frame(eth: ethernet) {
    for opt in eth.type as tcp_option { if opt.kind == 1 { send 1 } }
    flood
}
"#,
        fix: "Name a field of bytes.",
        mend: ("eth.type", "payload"),
    },
    Entry {
        code: "E0231",
        headline: "`if` and `match` give single values.",
        cause: "A lookup or several values cannot be the result of an expression with branches.",
        example: r#"table hosts: exact(u8) -> port { entries { 1 => 2 } }
start stage all() {
    send if in_port == 1 { hosts[1] } else { hosts[2] }
}
"#,
        fix: "Take the value apart inside, or use the statement.",
        mend: ("", ""),
    },
    Entry {
        code: "E0232",
        headline: "A time has a unit.",
        cause: "A bare number could be seconds as well as nanoseconds.",
        example: r#"counter ticks
every 5 { count ticks }
start stage all() { flood }
"#,
        fix: "Write the unit: `ns`, `us`, `ms`, `s`, `min` or `h`.",
        mend: ("every 5 ", "every 5s "),
    },
    Entry {
        code: "E0233",
        headline: "The program is too large.",
        cause: "Loops are unrolled and calls of functions put in place; together they come to more than 400,000 values. Or it has more than 65,536 reasons or lists of ports for `multicast`, which is what a verdict can number.",
        example: r#"fn one(x: u32) -> u32 { x *% 3 +% 1 }
fn two(x: u32) -> u32 { one(one(one(one(one(one(one(one(x)))))))) }
fn three(x: u32) -> u32 { two(two(two(two(two(two(two(two(x)))))))) }
fn four(x: u32) -> u32 { three(three(three(three(three(three(three(three(x)))))))) }
start stage all() {
    var x: u32 = 0
    for i in 0..1000 { x = four(x) }
    if x == 0 { flood }
    send 1
}
"#,
        fix: "Make fewer rounds, or less in each.",
        mend: ("0..1000", "0..10"),
    },
    Entry {
        code: "E0234",
        headline: "A packet function or handler needs too much stack.",
        cause: "Values that are computed before others and used behind them are kept on the stack meanwhile. A function has at most 256 KiB of it, so that every worker has room.",
        example: "start stage all() { flood }",
        fix: "Compute values where they are needed; join narrow fields of a made packet to wider ones.",
        mend: ("", ""),
    },
];
