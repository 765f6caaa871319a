//! Names, modules and constants.

use super::entry::Entry;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        code: "E0100",
        headline: "A name stands for nothing.",
        cause: "The name is used where a table, stage, field, type or value is wanted, and nothing of that kind has this name here. A local is known in its own block only, a header by the name that its decoder gives it. A member stands behind the name of its enum, as in `colour.red`, and a flag behind its field.",
        example: r#"start stage all() {
    goto swich
}
stage switch() { flood }
"#,
        fix: "Write the name as it is declared, declare it, or import it.",
        mend: ("goto swich", "goto switch"),
    },
    Entry {
        code: "E0101",
        headline: "A name is declared twice.",
        cause: "Two declarations of one kind would share a name, so a use could mean either.",
        example: r#"start stage all() { goto out }
stage out() { flood }
stage out() { send 1 }
"#,
        fix: "Rename one of them, or remove it.",
        mend: ("stage out() { send 1 }", ""),
    },
    Entry {
        code: "E0102",
        headline: "There is no such module.",
        cause: "An import names a module that is neither built in nor a file beside the program.",
        example: r#"import std.nat.ethernet
start stage all() { flood }
"#,
        fix: "Write the path of a file beside the program (`tunnels.rav` is `import tunnels.{…}`), or `std.net`.",
        mend: ("std.nat", "std.net"),
    },
    Entry {
        code: "E0103",
        headline: "The module does not declare this name.",
        cause: "An import asks for a name that the module has not.",
        example: r#"import std.net.ethernot
start stage all() { flood }
"#,
        fix: "Write the name as the module declares it.",
        mend: ("ethernot", "ethernet"),
    },
    Entry {
        code: "E0104",
        headline: "Modules import each other in a circle.",
        cause: "What a module needs would need the module itself, so neither could be understood first.",
        example: r#"import first.{a}   // and first.rav imports second, and second.rav imports first
start stage all() { flood }
"#,
        fix: "Put what both need into a third module that imports neither.",
        mend: ("", ""),
    },
    Entry {
        code: "E0105",
        headline: "A name is imported twice.",
        cause: "The second import adds nothing; often another name was meant.",
        example: r#"import std.net.{ethernet, ethernet}
start stage all() { flood }
"#,
        fix: "Remove one of them.",
        mend: ("ethernet, ethernet", "ethernet"),
    },
    Entry {
        code: "E0106",
        headline: "A constant needs itself.",
        cause: "Its value is computed from other constants, and one of them is computed from it.",
        example: r#"const A: u8 = B
const B: u8 = A
start stage all() { flood }
"#,
        fix: "Give one of them a value of its own.",
        mend: ("const B: u8 = A", "const B: u8 = 1"),
    },
    Entry {
        code: "E0107",
        headline: "Two members of an enum stand for one value.",
        cause: "A value would be shown under two names, and a `match` could not tell them apart.",
        example: r#"enum colour: u8 { red = 1, blue = 1 }
start stage all() { flood }
"#,
        fix: "Give each member a value of its own.",
        mend: ("blue = 1", "blue = 2"),
    },
    Entry {
        code: "E0108",
        headline: "A program has too many files.",
        cause: "A program is made of at most 1,000 files of 32 MiB together, those that its modules import among them.",
        example: r#"import part1.{a}
import part2.{b}   // and so on, up to part1000
start stage all() { flood }
"#,
        fix: "Put several modules into one file, or entries of tables into files that the tables are filled from.",
        mend: ("", ""),
    },
    Entry {
        code: "E0109",
        headline: "There are more faults than are told.",
        cause: "Of a program the first 1,000 errors and the first 1,000 warnings are told.",
        example: "any file of some size that is no program",
        fix: "Mend the first ones, and check again.",
        mend: ("", ""),
    },
];
