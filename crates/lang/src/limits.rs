//! Every limit of the language that is not one of the IR: what a program may ask of its reader, of the
//! compiler and of memory. Those that the IR has as well stand in [`ir::limits`].
//!
//! A limit that a program goes beyond is a diagnostic at its place. Where a constant's documentation, here or
//! there, ends with the code of that diagnostic, the table in `docs/language.md`, section *Limits*, has a row
//! with the same number and code; a test compares both files with it.

/// The longest text of one file, in bytes (16 MiB). `E0012`
pub const LONGEST_TEXT: usize = 16 << 20;

/// How many bytes all files of a program have together, in bytes (32 MiB). `E0108`
pub const LONGEST_PROGRAM: usize = 32 << 20;

/// How many files a program is made of at most. `E0108`
pub const MOST_FILES: usize = 1000;

/// How many bytes a name has at most. `E0016`
pub const LONGEST_NAME: usize = 255;

/// How many errors, and how many warnings, of a program are told. `E0109`
pub const MOST_FAULTS: usize = 1000;

/// How many reads of a header that is not decoded are told with the path that misses it and a packet that
/// takes it; of more, only the place is told.
pub const MOST_PATHS: usize = 20;

/// How many steps are spent on finding the names that were meant, in all of a program: comparing a letter of
/// one name with a letter of another is one. Beyond that no name is suggested.
pub const LARGEST_LIKENESS: usize = 4_000_000;

/// How many entries of a table that are never found are told one by one (`W0409`); of more it is said how
/// many there are.
pub const UNREACHABLE_TOLD: usize = 20;

/// How many of the constants and pools that can be set are named where another name is given.
pub const SETTABLE_TOLD: usize = 20;

/// How deep blocks, brackets and conditions may nest. `E0066`
pub const DEEPEST_NESTING: u32 = 100;

/// How many operators one expression may chain, counted along its deepest branch. `E0066`
pub const TALLEST_EXPRESSION: u32 = 250;

/// How many expressions lie in each other at most, through constants and functions. `E0066`
pub const DEEPEST_VALUE: usize = 400;

/// How tall the tree of a function's value is at most, calls put in place. `E0066`
pub const TALLEST_FUNCTION: usize = 300;

/// How many steps all calls of functions in a program may add up to when they are put in place. `E0215`
pub const LARGEST_INLINED: usize = 20_000;

/// How many rounds unrolled loops may come to, nested ones multiplied. `E0218`
pub const LARGEST_UNROLLED: u128 = 1024;

/// How many steps are spent on one `match` before it counts as too entangled. `E0227`
pub const LARGEST_SEARCH: usize = 10_000_000;

/// How many values a packet function or handler has at most; loops and calls put in place can ask for more.
/// `E0233`
pub const MOST_VALUES: usize = 400_000;

/// No captured packet is longer, in bytes: the largest snap length of capture files.
pub const LONGEST_PACKET: u32 = 262_144;

/// How many bytes the fixed part of a header has at most. `E0304`
pub const LARGEST_FIXED: u32 = 4096;

/// How many bytes a packet in the program text has at most. `E0611`
pub const LARGEST_MADE: usize = 65_535;

/// How many bytes can go in before a packet: what every frame has before it. `E0434`
pub const MOST_PUSHED: usize = 128;

/// How many entries a table has at most. `E0507`
pub const LARGEST_TABLE: u128 = 1 << 26;

/// How many bits the key of a table with longest prefixes has at most. `E0518`
pub const WIDEST_PREFIX_KEY: u32 = 128;

/// How many regions of packets are compared when the conditions of a policy's rules are read, and again when
/// the rules of a hook are written out. `E0556`
pub const LARGEST_POLICY: usize = 1_000_000;

/// How many rows of rules a hook has at most, where its policy says no capacity; one is for the default.
/// `E0558`
pub const MOST_POLICY_ROWS: usize = 65_536;

/// How many groups lie in each other through jumps of a policy. `E0557`
pub const DEEPEST_POLICY: usize = 64;

/// How many rules of a hook may go on instead of deciding, and the one that decides: so often its table is
/// asked about a packet. `E0553`
pub const MOST_POLICY_ROUNDS: usize = 65_536;

/// How many different rates the limits of a policy's rules have at most. `E0565`
pub const MOST_POLICY_RATES: usize = 256;

/// How many cells a meter or register, and how many groups a group, has at most. `E0501`
pub const MOST_CELLS: u128 = 1 << 20;

#[cfg(test)]
mod tests {
    /// Rows of the table in the section *Limits* of the language's page, as `code → numbers as written`.
    fn rows() -> Vec<(String, u128)> {
        let page = include_str!("../../../docs/language.md");
        let section = page.split("\n## Limits\n").nth(1).expect("the page has the section");
        let section = section.split("\n## ").next().unwrap_or(section);
        let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_string()).collect::<Vec<_>>();
        let rows = section.lines().filter(|line| line.contains("`E0")).map(cells);
        rows.map(|row| {
            let digits: String = row[2].chars().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
            (row[3].trim_matches('`').to_string(), digits.replace(',', "").parse().expect("a number"))
        })
        .collect()
    }

    /// The constants of a file with the code that stands behind their documentation.
    fn constants(text: &str) -> Vec<(String, u128)> {
        let text = text.split("#[cfg(test)]").next().unwrap_or(text);
        let (mut found, mut code) = (Vec::new(), None);
        for line in text.lines() {
            if let Some(documentation) = line.strip_prefix("/// ") {
                code = documentation
                    .rsplit('`')
                    .nth(1)
                    .filter(|code| code.starts_with("E0"))
                    .map(str::to_string);
            } else if let (Some(constant), Some(code)) = (line.strip_prefix("pub const "), code.take()) {
                let value =
                    constant.split(" = ").nth(1).expect("a value").trim_end_matches(';').replace('_', "");
                let mut parts = value.split(" << ").map(|part| part.parse::<u128>().expect("a number"));
                let first = parts.next().expect("a number");
                found.push((code, parts.next().map_or(first, |shift| first << shift)));
            }
        }
        found
    }

    #[test]
    fn the_page_of_the_language_has_every_limit() {
        let (mut page, mut here) = (rows(), constants(include_str!("limits.rs")));
        let of_ir = constants(include_str!("../../ir/src/limits.rs"));
        assert!(of_ir.len() > 10, "{of_ir:?}");
        here.extend(of_ir);
        page.sort();
        here.sort();
        assert!(here.len() > 20, "{here:?}");
        assert_eq!(page, here, "the table under *Limits* in docs/language.md");
    }
}
