//! Kinds of tables, meters, registers, pools and groups.

use super::entry::Entry;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        code: "E0518",
        headline: "A key does not go with its kind of table.",
        cause: "Exact tables hold single values, tables of `lpm` one prefix in the last part of the key, rules anything, and tables of `patterns` bytes; what could never match is refused too.",
        example: r#"table hosts: exact(ip4) -> port { entries { 10.0.0.0/8 => 3 } }
start stage all() { flood }
"#,
        fix: "Choose the kind of table that holds such keys, or write another key.",
        mend: ("exact(ip4) -> port {", "lpm(ip4) -> port { "),
    },
    Entry {
        code: "E0519",
        headline: "A table that is filled from a file does not say how much it holds.",
        cause: "The file is read when the program is started; its memory must be known before.",
        example: r#"table routes: lpm(ip4) -> port { from "routes.txt" as routes }
start stage all() { flood }
"#,
        fix: "Give it a capacity.",
        mend: ("{ from", "{ capacity 1M from"),
    },
    Entry {
        code: "E0520",
        headline: "Tables of this kind do not have this property.",
        cause: "`idle`, `evict` and `releases` belong to exact tables, `age` to those and to `lpm` and `rules`, `choose` to `rules`, `answer` to `patterns`, `counted` to all but exact ones, `default` to all but `patterns`.",
        example: r#"table hosts: exact(ip4) -> port { capacity 8 counted }
start stage all() { flood }
"#,
        fix: "Leave it out.",
        mend: (" counted", ""),
    },
    Entry {
        code: "E0521",
        headline: "A table is to be filled from a file without a name.",
        cause: "The path behind `from` is empty.",
        example: r#"table routes: lpm(ip4) -> port { capacity 8 from "" }
start stage all() { flood }
"#,
        fix: "Name the file, relative to the program.",
        mend: ("\"\"", "\"routes.txt\""),
    },
    Entry {
        code: "E0535",
        headline: "The interfaces that a file names are bound to what is no port, or to two.",
        cause: "Dumps of iptables and nftables name interfaces, and a program knows ports by their numbers: behind `interfaces` each name has one port, from 1 on.",
        example: r#"table acl: rules(src: ip4, in_port: port) -> bool { capacity 8 from "rules.txt" as iptables interfaces { eth0 = 0 } }
start stage all() { flood }
"#,
        fix: "Write the number of the port that the interface is.",
        mend: ("eth0 = 0", "eth0 = 1"),
    },
    Entry {
        code: "E0522",
        headline: "A table cannot give back to this pool.",
        cause: "The value of an entry that goes is given back to the pool, so it must be an item of the pool, and an entry may not be evicted while it holds one.",
        example: r#"pool numbers: u16 { 1..9 }
table flows: exact(ip4) -> u8 { capacity 8 idle 5s evict refuse releases numbers }
start stage all() { flood }
"#,
        fix: "Let the table hold exactly an item of the pool, and refuse entries when it is full.",
        mend: ("-> u8", "-> u16"),
    },
    Entry {
        code: "E0523",
        headline: "A priority is missing, or stands where none belongs.",
        cause: "In a table of rules with `choose priority` every entry has one, also where `insert` and `remove` name it; elsewhere the order or the longest prefix decides.",
        example: r#"table acl: rules(ip4) -> u8 { choose priority entries { 10.0.0.0/8 => 1 } }
start stage all() { flood }
"#,
        fix: "Write the priority behind the key, in an `insert` behind the value, or leave `choose priority` out.",
        mend: ("10.0.0.0/8 =>", "10.0.0.0/8 priority 5 =>"),
    },
    Entry {
        code: "E0524",
        headline: "The rates of a meter do not go together.",
        cause: "A meter of one rate has `committed`, `burst` and perhaps `excess` (RFC 2697), a meter of two rates has `committed`, `burst`, `peak` and `peak_burst`, and the peak is not below the committed rate (RFC 2698).",
        example: r#"meter line: bytes { committed 1000 burst 100 peak 500 peak_burst 100 }
start stage all() { flood }
"#,
        fix: "Give it the rates of one of the two.",
        mend: ("peak 500", "peak 2000"),
    },
    Entry {
        code: "E0525",
        headline: "A group is not well formed.",
        cause: "A group has a power of two of buckets, not fewer than members; each member has the parts that the group declares, a weight above zero, and stands once; where there are several groups it says to which it belongs.",
        example: r#"group servers: port { buckets 100 members { 1, 2 } }
start stage all() { flood }
"#,
        fix: "Mend what the message names.",
        mend: ("buckets 100", "buckets 128"),
    },
    Entry {
        code: "E0526",
        headline: "A built-in function gets something it cannot work with.",
        cause: "`hash` takes single values, `clip` bytes and a length, `take` a pool and perhaps a number; patterns are searched for in bytes.",
        example: r#"import std.net.ethernet
start decoder frame(eth: ethernet) {
    if hash(payload) == 0 { drop zero }
    flood
}
"#,
        fix: "Hand it what it takes.",
        mend: ("hash(payload)", "hash(payload.length)"),
    },
    Entry {
        code: "E0527",
        headline: "A table of this kind is not learned like an exact one.",
        cause: "`learn` and `learn together` write exact tables. Entries of tables of `lpm` and `rules` are made by `insert` and taken away by `remove`; patterns do not change.",
        example: r#"table nets: lpm(port) -> port { capacity 8 age 5s }
start stage all() {
    learn nets[in_port] = 3 else { drop full }
    flood
}
"#,
        fix: "Write `insert`.",
        mend: ("learn nets", "insert nets"),
    },
    Entry {
        code: "E0528",
        headline: "A cell of a register is too wide.",
        cause: "A cell has at most 64 bits.",
        example: r#"register last: ip6
start stage all() { flood }
"#,
        fix: "Keep a part of the value or its hash, or use a table.",
        mend: ("ip6", "u64"),
    },
    Entry {
        code: "W0409",
        headline: "An entry is never found.",
        cause: "Entries before it, or longer prefixes, take everything that fits it, alone or together; or a pattern lies inside of another one and always ends before it.",
        example: r#"table acl: rules(ip4, u16) -> u8 { capacity 8 entries { (10.0.0.0/8, _) => 1, (10.1.0.0/16, 22) => 2 } }
start stage all() { flood }
"#,
        fix: "Move it before what takes its place, or remove it.",
        mend: (
            "(10.0.0.0/8, _) => 1, (10.1.0.0/16, 22) => 2",
            "(10.1.0.0/16, 22) => 2, (10.0.0.0/8, _) => 1",
        ),
    },
    Entry {
        code: "E0529",
        headline: "An entry or member that comes from outside does not suit its table or group.",
        cause: "Entries of files, packet tests and the control plane are written as in the program, with the keys and values that the table declares; so are the members of a group in a file, each once and not more than the group has room for.",
        example: "10.0.0.0/8 => 70000",
        fix: "Compare it with the declaration of the table; here a port is wanted.",
        mend: ("", ""),
    },
    Entry {
        code: "E0530",
        headline: "An event has too many arguments.",
        cause: "Every event that waits keeps its arguments, and up to 65,536 wait: an event has at most 256.",
        example: "event seen(a: u32) { }\nstart stage all() { raise seen(1) flood }",
        fix: "Put what the handler needs into a table, and hand over its key.",
        mend: ("", ""),
    },
];
