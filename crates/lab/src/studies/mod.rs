//! Pages that go through publications claim by claim: what each says, what we measure, and whether the claim
//! holds by our figures.
//!
//! ```text
//!  a study's file: claims, numbers of the publication ─┐
//!                                                      ├─► verdicts ─► a page, its pictures, the index
//!  reports of `ravelin lab --json`: figures of ours ───┘
//! ```
//!
//! The file says of each claim when it holds, and of one that does not, why. Making the page fails if the
//! figures say otherwise, so that no page tells a verdict which its figures do not bear out.

mod expression;
mod file;
mod judge;
mod page;
mod picture;
mod reports;

pub use reports::read_report;

use crate::experiment::Experiment;
use file::Study;
use judge::{ClaimOutcome, Judge};
use reports::Reports;
use std::collections::BTreeSet;

/// The files of studies, by the names of their pages, in the order of the publications.
const FILES: [(&str, &str); 3] = [
    ("hermes", include_str!("hermes.toml")),
    ("gpu-router", include_str!("gpu-router.toml")),
    ("steve", include_str!("steve.toml")),
];

/// The pages and pictures of all studies, and how their claims came out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StudyPages {
    /// Names of files in the folder of the pages, and what they hold.
    pub files: Vec<(String, String)>,
    /// What came of the claims of each study, by its name.
    pub counts: Vec<(String, ClaimCounts)>,
}

/// How many claims of a study came out how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimCounts {
    /// They hold.
    pub hold: usize,
    /// They differ, and the page says why.
    pub differ: usize,
    /// They cannot be repeated here, and the page says why.
    pub cannot: usize,
}

impl ClaimCounts {
    fn of(outcomes: impl Iterator<Item = ClaimOutcome>) -> ClaimCounts {
        let mut counts = ClaimCounts::default();
        for outcome in outcomes {
            match outcome {
                ClaimOutcome::Holds => counts.hold += 1,
                ClaimOutcome::Differs => counts.differ += 1,
                ClaimOutcome::Cannot => counts.cannot += 1,
            }
        }
        counts
    }

    /// All claims.
    pub fn all(&self) -> usize {
        self.hold + self.differ + self.cannot
    }

    /// In words.
    pub fn line(&self) -> String {
        format!(
            "{} claims: {} hold, {} differ, {} cannot be repeated here",
            self.all(),
            self.hold,
            self.differ,
            self.cannot
        )
    }
}

/// The names of the reports that studies take figures of: files in the folder of results.
///
/// # Errors
/// The file of a study cannot be read.
pub fn reports_of_studies() -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    for (name, text) in FILES {
        let study = read(name, text)?;
        names.extend(study.values.into_values().filter_map(|value| value.report));
        names.insert(study.report);
    }
    Ok(names)
}

/// Reads the file of a study.
fn read(name: &str, text: &str) -> Result<Study, String> {
    toml::from_str(text).map_err(|error| format!("study `{name}`: {error}"))
}

/// Makes the pages of all studies from the [reports](reports_of_studies): the names of their files, and what
/// was measured.
///
/// # Errors
/// The file of a study cannot be read, a figure is in no report, or what the file says of a claim is not what
/// the figures say. The text names the study, the claim and the figures.
pub fn study_pages(reports: Vec<(String, Vec<Experiment>)>) -> Result<StudyPages, String> {
    let mut all = Reports::default();
    reports.into_iter().for_each(|(name, experiments)| all.add(&name, experiments));
    let mut pages = StudyPages::default();
    let mut index = Vec::new();
    for (name, text) in FILES {
        let of_study = |error: String| format!("study `{name}`: {error}");
        let study = read(name, text)?;
        let judge = Judge::new(&study, &all);
        let (files, counts) = page::pages(&judge, name).map_err(of_study)?;
        pages.files.extend(files);
        pages.counts.push((name.to_owned(), counts));
        index.push((name, study.title, counts));
    }
    pages.files.push(("README.md".to_owned(), page::index(&index)));
    Ok(pages)
}

#[cfg(test)]
mod tests;
