//! The page that says what native code assumes has a row for every instruction of the IR, and names tests
//! that exist.

use std::fs;
use suite::corpus::root;

/// The names of an enum's variants, from its source.
fn variants(source: &str, name: &str) -> Vec<String> {
    let body = source.split(&format!("pub enum {name} {{")).nth(1).expect("the enum is there");
    let body = body.split("\n}").next().unwrap_or(body);
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    let names = lines.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    names.map(|line| line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(line).to_string()).collect()
}

#[test]
fn every_instruction_has_a_row_and_every_row_a_test() {
    let page = fs::read_to_string(root().join("docs/native-contract.md")).expect("the page is there");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| instruction"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert!(rows.len() > 30 && rows.iter().all(|row| row.len() == 4), "{} rows", rows.len());
    let source = fs::read_to_string(root().join("crates/ir/src/lib.rs")).expect("the IR is there");
    let all = [variants(&source, "Op"), variants(&source, "Terminator")].concat();
    assert!(all.len() > 40, "{all:?}");
    let named =
        |name: &str| rows.iter().any(|row| row[0].split(", ").any(|cell| cell == format!("`{name}`")));
    let missing: Vec<&String> = all.iter().filter(|name| !named(name)).collect();
    assert!(missing.is_empty(), "without a row: {missing:?}");
    for row in rows {
        let test = row[3].trim_matches('`');
        let (file, function) = test.split_once('#').unwrap_or_else(|| panic!("{test} names no function"));
        let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.contains(&format!("fn {function}(")), "there is no test {test}");
    }
}
