//! Tables and counters.

use super::entry::Entry;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        code: "E0501",
        headline: "A counter, meter, register, group or pool has too many cells, or none.",
        cause: "Counters, meters, registers and groups have 1 to 1,048,576 cells, pools at most 67,108,864 items.",
        example: r#"counter seen[0]
start stage all() {
    count seen[0]
    flood
}
"#,
        fix: "Write a number in between.",
        mend: ("seen[0]", "seen[1]"),
    },
    Entry {
        code: "E0502",
        headline: "A cap is too large, or zero.",
        cause: "A cap lies between 1 and 65,536: a stage with cap 0 could never run.",
        example: r#"start stage all() {
    goto once
}
stage once() cap 0 { flood }
"#,
        fix: "Write a number in between.",
        mend: ("cap 0", "cap 1"),
    },
    Entry {
        code: "E0503",
        headline: "A key has the wrong number of parts.",
        cause: "A table is asked with exactly the parts that its key is declared with.",
        example: r#"table pairs: exact(u8, u8) -> port { entries { (1, 2) => 3 } }
start stage all() {
    match pairs[1] { some p => send p, none => flood }
}
"#,
        fix: "Write all parts, with commas.",
        mend: ("pairs[1]", "pairs[1, 2]"),
    },
    Entry {
        code: "E0504",
        headline: "An entry has a value too many, or none.",
        cause: "A table declared with `-> type` holds a value with every key; one without holds keys alone.",
        example: r#"table seen: exact(port) { capacity 1k  age 300s  evict lru }
start stage all() {
    learn seen[in_port] = 3
    flood
}
"#,
        fix: "Write the value that is declared, or none.",
        mend: (" = 3", ""),
    },
    Entry {
        code: "E0505",
        headline: "The parts of a value must be written out.",
        cause: "An entry of several parts is not handed on as a whole.",
        example: r#"table actions: exact(port) -> { pass, mirror(to: port) } { capacity 1k  age 300s  evict lru  entries { 1 => mirror(3) } }
start stage all() {
    match actions[in_port] {
        some a => { learn actions[2] = a  flood }
        none   => flood
    }
}
"#,
        fix: "Take it apart by `match` and write `(a, b)` or the variant.",
        mend: (
            "some a => { learn actions[2] = a  flood }",
            "some mirror(to) => { learn actions[2] = mirror(to)  flood }\n        some pass => flood",
        ),
    },
    Entry {
        code: "E0506",
        headline: "An entry is too wide.",
        cause: "Key and value have at most 512 bits each.",
        example: r#"table wide: exact(u128, u128, u128, u128, u8) -> port { entries { (1, 2, 3, 4, 5) => 1 } }
start stage all() {
    match wide[1, 2, 3, 4, 5] { some p => send p, none => flood }
}
"#,
        fix: "Use fewer or narrower parts.",
        mend: ("", ""),
    },
    Entry {
        code: "E0507",
        headline: "A table is too large, or has no room.",
        cause: "A table holds between 1 and 67,108,864 entries.",
        example: r#"table hosts: exact(port) -> port { capacity 0  age 300s  evict lru }
start stage all() {
    learn hosts[in_port] = 1
    flood
}
"#,
        fix: "Write a capacity in between.",
        mend: ("capacity 0", "capacity 16"),
    },
    Entry {
        code: "E0508",
        headline: "A table has more entries than room.",
        cause: "The entries of the program text count towards the capacity.",
        example: r#"table hosts: exact(u8) -> port { capacity 1  age 1s  evict lru  entries { 1 => 1, 2 => 2 } }
start stage all() {
    match hosts[1] { some p => send p, none => flood }
}
"#,
        fix: "Raise the capacity.",
        mend: ("capacity 1 ", "capacity 2 "),
    },
    Entry {
        code: "E0509",
        headline: "Entries would be gone at once.",
        cause: "`age` and `idle` are longer than zero.",
        example: r#"table hosts: exact(port) -> port { capacity 1k  age 0s  evict lru }
start stage all() {
    learn hosts[in_port] = 1
    flood
}
"#,
        fix: "Write how long an entry stays.",
        mend: ("age 0s", "age 300s"),
    },
    Entry {
        code: "E0510",
        headline: "A table has two entries for one key.",
        cause: "Only one of them could ever be found.",
        example: r#"table hosts: exact(u8) -> port { entries { 1 => 1, 1 => 2 } }
start stage all() {
    match hosts[1] { some p => send p, none => flood }
}
"#,
        fix: "Remove one, or correct its key.",
        mend: ("1 => 2", "2 => 2"),
    },
    Entry {
        code: "E0512",
        headline: "A table grows with the traffic and does not say how it stays bounded.",
        cause: "Packets write to it, so it needs a capacity, a time after which entries go (`age` or `idle`), and what a full table does (`evict`).",
        example: r#"table hosts: exact(port) -> port { capacity 1k  evict lru }
start stage all() {
    learn hosts[in_port] = 1
    flood
}
"#,
        fix: "Say all three.",
        mend: ("capacity 1k", "capacity 1k  age 300s"),
    },
    Entry {
        code: "E0513",
        headline: "A table may be full.",
        cause: "It refuses new entries when it is full, and the program does not say what happens then.",
        example: r#"table hosts: exact(port) -> port { capacity 1k  age 300s  evict refuse }
start stage all() {
    learn hosts[in_port] = 1
    flood
}
"#,
        fix: "Say it: `else { … }`; or let the table give up the entry used longest ago by `evict lru`.",
        mend: ("= 1\n", "= 1 else { send 1 }\n"),
    },
    Entry {
        code: "E0514",
        headline: "A counter is counted wrongly.",
        cause: "A counter with cells is counted with an index, one without has none.",
        example: r#"counter by_port[16]
start stage all() {
    count by_port
    flood
}
"#,
        fix: "Write the index, or leave it out.",
        mend: ("count by_port", "count by_port[3]"),
    },
    Entry {
        code: "E0515",
        headline: "A counter has no such cell.",
        cause: "A test expects something of a cell behind the last one; cells are numbered from 0.",
        example: r#"counter cells[2]
start stage all() {
    count cells[1]
    flood
}
test "cells" { packet 1 { hex "00" } expect count cells[2] 1 }
"#,
        fix: "Write an existing cell.",
        mend: ("expect count cells[2]", "expect count cells[1]"),
    },
    Entry {
        code: "E0516",
        headline: "One entry is written twice at once.",
        cause: "The writes of `learn together` happen at the same time, so two for one key contradict each other.",
        example: r#"table hosts: exact(port) -> port { capacity 1k  age 300s  evict lru }
start stage all() {
    learn together { hosts[in_port] = 1, hosts[in_port] = 2 }
    flood
}
"#,
        fix: "Keep one of them.",
        mend: (", hosts[in_port] = 2", ""),
    },
    Entry {
        code: "E0517",
        headline: "A table has no room to learn.",
        cause: "It evicts the entry used longest ago, but every place belongs to an entry of the program text, and those are never evicted.",
        example: r#"table hosts: exact(port) -> port { capacity 1  age 300s  evict lru  entries { 1 => 2 } }
start stage all() {
    learn hosts[in_port] = 1
    flood
}
"#,
        fix: "Raise its capacity above the number of entries.",
        mend: ("capacity 1 ", "capacity 2 "),
    },
    Entry {
        code: "E0540",
        headline: "The program would take too much memory.",
        cause: "All tables, counters, meters, registers, pools and groups of a program may take 16 GiB together. `ravelin check` tells what they take.",
        example: r#"group g[1M]: port { buckets 1M capacity 8 }
start stage all() { flood }
"#,
        fix: "Give the largest of them fewer entries, cells, groups or buckets.",
        mend: ("g[1M]", "g[1k]"),
    },
];
