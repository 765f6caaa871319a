//! Rights of `control` that are none for a program.

use bundle::{KeyPrefix, TableRight};
use lang::pipeline::{CompileOptions, compile};
use ravelin_core::rights::{RightError, check};

const PROGRAM: &str = "import std.net.{ethernet, ipv4}
reason lost \"no route\"
table routes: lpm(dst: ip4) -> { forward(port: port) } { capacity 8 }
table pairs: exact(a: u16, b: u16) -> { known } { capacity 8 }
table acl: rules(src: ip4) -> { permit } { capacity 8 }
start stage all() { drop lost }
";

#[test]
fn a_right_is_for_a_table_of_the_program_whose_keys_have_its_width() {
    let compiled = compile("p.rav", PROGRAM, &|_| None, &CompileOptions::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let right = |table: &str, widths: &[u8]| TableRight {
        table: table.to_owned(),
        prefixes: widths.iter().map(|width| KeyPrefix::new(*width, 0, 0).expect("a prefix")).collect(),
        most_entries: 1,
        changes_per_second: 1,
    };
    assert_eq!(check(&program, &[]), Ok(()));
    let fitting = [right("pairs", &[32]), right("routes", &[32, 32])];
    assert_eq!(check(&program, &fitting), Ok(()));
    let width = |found| RightError::Width { table: "routes".to_owned(), bits: 32, found };
    for (wrong, error) in [
        (right("route", &[32]), RightError::NoTable("route".to_owned())),
        (right("acl", &[32]), RightError::Rules("acl".to_owned())),
        (right("acl", &[]), RightError::Rules("acl".to_owned())),
        (right("routes", &[32, 128]), width(128)),
        (right("routes", &[16]), width(16)),
    ] {
        assert_eq!(check(&program, &[right("pairs", &[32]), wrong]), Err(error));
    }
}
