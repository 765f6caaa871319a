//! The pages of studies that are kept are what is made of the reports that are kept.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn docs(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(folder)
}

#[test]
fn kept_pages_are_what_is_made_of_kept_reports() {
    let mut reports = Vec::new();
    for name in lab::reports_of_studies().unwrap_or_else(|error| panic!("{error}")) {
        let text = std::fs::read_to_string(docs("results").join(&name)).expect("it is text");
        let report = lab::read_report(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        reports.push((name, report));
    }
    let made = lab::study_pages(reports).unwrap_or_else(|error| panic!("{error}"));
    let kept = std::fs::read_dir(docs("studies")).expect("the folder is there");
    let kept: BTreeSet<String> =
        kept.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    let names: BTreeSet<String> = made.files.iter().map(|(name, _)| name.clone()).collect();
    let again = "`ravelin lab --studies docs/results --out docs/studies` makes them again";
    assert_eq!(kept, names, "files of docs/studies; {again}");
    for (name, text) in &made.files {
        let there = std::fs::read_to_string(docs("studies").join(name)).expect("it is text");
        let first = there.lines().zip(text.lines()).find(|(there, made)| there != made);
        assert!(there == *text, "docs/studies/{name} is not what its reports say: {first:?}; {again}");
    }
    for (name, counts) in &made.counts {
        println!("{name}: {}", counts.line());
        assert!(counts.all() > 0, "{name} has no claims");
    }
}
