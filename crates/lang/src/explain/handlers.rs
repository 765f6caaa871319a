//! Handlers, packets in the program text, and tests.

use super::entry::Entry;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        code: "E0601",
        headline: "The period of `every` is zero.",
        cause: "The handler would run for ever at one point in time.",
        example: r#"counter ticks
every 0s { count ticks }
start stage all() { flood }
"#,
        fix: "Write a period longer than zero.",
        mend: ("0s", "1s"),
    },
    Entry {
        code: "E0603",
        headline: "An event raises itself at once.",
        cause: "Events are handled before the next packet, so a circle of events without a delay would never end.",
        example: r#"event again() { raise again() }
start stage all() {
    raise again()
    flood
}
"#,
        fix: "Let time pass in between.",
        mend: ("{ raise again() }", "{ after 1s raise again() }"),
    },
    Entry {
        code: "E0610",
        headline: "Nothing can follow `payload`.",
        cause: "The rest of the received packet ends the new one.",
        example: r#"import std.net.ethernet
start decoder frame(eth: ethernet) {
    emit ethernet / payload / zero[4] to in_port
    flood
}
"#,
        fix: "Put it last.",
        mend: ("payload / zero[4]", "zero[4] / payload"),
    },
    Entry {
        code: "E0611",
        headline: "A packet is too long.",
        cause: "A packet in the program text has at most 65,535 bytes.",
        example: r#"start stage all() {
    emit zero[65536] to in_port
    flood
}
"#,
        fix: "Write a shorter one.",
        mend: ("65536", "1500"),
    },
    Entry {
        code: "E0612",
        headline: "A field of bytes cannot be written here.",
        cause: "In a packet of the program text such fields are zero.",
        example: r#"import std.net.{ethernet, ipv4}
start decoder frame(eth: ethernet) {
    emit ethernet / ipv4(options 3) to in_port
    flood
}
"#,
        fix: "Write the header as `hex \"…\"`.",
        mend: ("(options 3)", ""),
    },
    Entry {
        code: "E0613",
        headline: "A field that shapes the header must be a constant here.",
        cause: "The size of a packet in the program text is known when the program is compiled.",
        example: r#"import std.net.{ethernet, ipv4}
start decoder frame(eth: ethernet) {
    match eth.type { 0x0800 => packet, else => flood }
}
decoder packet(ip: ipv4) {
    emit ethernet / ipv4(ihl ip.ihl) to in_port
    flood
}
"#,
        fix: "Write a number.",
        mend: ("ihl ip.ihl", "ihl 6"),
    },
    Entry {
        code: "E0614",
        headline: "The length of a field cannot be computed.",
        cause: "With the fields that are written it would be below zero or too large.",
        example: r#"layout odd { size: u8  data: bytes[size - 2] }
start stage all() {
    emit odd(size 1) to in_port
    flood
}
"#,
        fix: "Write fields that make sense together.",
        mend: ("size 1", "size 3"),
    },
    Entry {
        code: "E0615",
        headline: "Too many fields of a packet are computed.",
        cause: "Values of fields that are not constant wait on the stack until the packet is made; there is room for 4,096 of them.",
        example: r#"layout bits { a: u1  b: u1  c: u6 }
start stage all() {
    emit bits(a length as% u1) to in_port
    flood
}
"#,
        fix: "Write constants, or join narrow fields to wider ones.",
        mend: ("", ""),
    },
    Entry {
        code: "E0620",
        headline: "A test has at least one port.",
        cause: "Packets enter by a port.",
        example: r#"start stage all() { flood }
test "none" { ports 0  packet 1 { hex "00" } expect flood }
"#,
        fix: "Write how many ports there are.",
        mend: ("ports 0", "ports 2"),
    },
    Entry {
        code: "E0621",
        headline: "Time never goes back.",
        cause: "A packet arrives no earlier than the step before it.",
        example: r#"start stage all() { flood }
test "time" { packet 1 { hex "00" } at 2s expect flood packet 1 { hex "00" } at 1s expect flood }
"#,
        fix: "Write the steps in order of time.",
        mend: ("at 1s", "at 3s"),
    },
    Entry {
        code: "E0622",
        headline: "A test uses a port it does not have.",
        cause: "A test has five ports unless it says how many.",
        example: r#"start stage all() { flood }
test "ports" { packet 6 { hex "00" } expect flood }
"#,
        fix: "Say how many there are by `ports`.",
        mend: ("{ packet 6", "{ ports 6  packet 6"),
    },
    Entry {
        code: "E0623",
        headline: "A test expects something before anything came in.",
        cause: "An expectation is about the packet before it.",
        example: r#"start stage all() { flood }
test "order" { expect flood }
"#,
        fix: "Write the packet first.",
        mend: ("{ expect", "{ packet 1 { hex \"00\" } expect"),
    },
    Entry {
        code: "E0624",
        headline: "A test expects a reason that the program does not have.",
        cause: "The program never drops or punts for it, so the test could not hold.",
        example: r#"start stage all() { flood }
test "reason" { packet 1 { hex "00" } expect drop not_here }
"#,
        fix: "Write a reason of the program.",
        mend: ("drop not_here", "flood"),
    },
];
