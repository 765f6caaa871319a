//! Real rule files: `RAVELIN_DATA=DIRECTORY` names a folder with `rules/`; without it there is nothing to do.

use import::snort;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

fn plain(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).expect("a file of rules can be opened");
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).expect("it is a gzip file");
    bytes
}

/// The literals of a list: number, 1 for nocase, length, bytes in hexadecimal, first sid.
fn listed(path: &Path) -> BTreeMap<(Vec<u8>, bool), u32> {
    let text = String::from_utf8(plain(path)).expect("a list is text");
    let literal = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let digits = (0..fields[3].len()).step_by(2);
        let bytes: Vec<u8> =
            digits.map(|at| u8::from_str_radix(&fields[3][at..at + 2], 16).unwrap()).collect();
        assert_eq!(bytes.len(), fields[2].parse::<usize>().unwrap());
        ((bytes, fields[1] == "1"), fields[4].parse().unwrap())
    };
    text.lines().filter(|line| !line.starts_with('#')).map(literal).collect()
}

/// The list of the second set was taken with a `nocase` counted only where nothing but these options stand
/// between it and its content; so are the rules read for the comparison.
fn without_far_nocase(rules: &[u8]) -> Vec<u8> {
    let near = ["content", "nocase", "depth", "offset", "distance", "within", "fast_pattern"];
    let mut text = String::new();
    for line in String::from_utf8_lossy(rules).lines() {
        let mut counts = true;
        for option in line.split_inclusive("; ") {
            let name = option.split([':', ';']).next().unwrap_or_default();
            counts = name == "content" || counts && near.contains(&name);
            if name != "nocase" || counts {
                text.push_str(option);
            }
        }
        text.push('\n');
    }
    text.into_bytes()
}

#[test]
fn real_rules_give_the_literals_that_were_taken_from_them() {
    let Some(data) = std::env::var_os("RAVELIN_DATA") else {
        println!("RAVELIN_DATA names no folder of rules: nothing was read");
        return;
    };
    let rules = Path::new(&data).join("rules");
    for (file, list, count, far) in [
        ("snort3-community-20240118.rules.gz", "literals-snort-community.tsv.gz", 4004, true),
        ("et-open-20240421-a.rules.gz", "literals-et-a.tsv.gz", 6667, false),
    ] {
        let text = plain(&rules.join(file));
        let whole = snort::read(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let near = snort::read(&without_far_nocase(&text)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(whole.patterns.len(), near.patterns.len(), "{file}");
        let set = if far { whole } else { near };
        assert_eq!(set.rules.len(), count, "{file}");
        // A string is told once, with the first rule that has it; strings of less than four bytes are not.
        let mut found = BTreeMap::new();
        for pattern in set.patterns.iter().filter(|pattern| pattern.bytes.len() >= 4) {
            let (bytes, nocase) = (&pattern.bytes, pattern.nocase);
            let bytes = if nocase { bytes.to_ascii_lowercase() } else { bytes.clone() };
            found.entry((bytes, nocase)).or_insert(set.rules[pattern.value as usize].sid);
        }
        let listed = listed(&rules.join(list));
        let missing = listed.iter().filter(|(literal, _)| !found.contains_key(literal)).count();
        let more = found.iter().filter(|(literal, _)| !listed.contains_key(literal)).count();
        let others = listed
            .iter()
            .filter(|(literal, sid)| found.get(literal).is_some_and(|found| found != *sid))
            .count();
        println!(
            "{file}: {} contents, {} left out, {} literals; {missing} missing, {more} more, {others} of another sid",
            set.patterns.len(),
            set.unmeant.len(),
            found.len()
        );
        for (literal, sid) in listed.iter().filter(|(literal, _)| !found.contains_key(literal)).take(5) {
            println!("  missing {:?} {} {sid}", String::from_utf8_lossy(&literal.0), literal.1);
        }
        for (literal, sid) in found.iter().filter(|(literal, _)| !listed.contains_key(literal)).take(5) {
            println!("  more {:?} {} {sid}", String::from_utf8_lossy(&literal.0), literal.1);
        }
        assert_eq!((missing, more, others), (0, 0, 0), "{file}");
    }
}
