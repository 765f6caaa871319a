//! The reports that figures of studies are of, and the row that a value names.

use super::expression::Span;
use super::file::Source;
use crate::experiment::{Experiment, Row};
use crate::survey::Survey;
use std::collections::{BTreeMap, BTreeSet};

/// Reports by the name of their file.
#[derive(Debug, Default)]
pub(super) struct Reports {
    files: BTreeMap<String, Vec<Experiment>>,
}

/// Reads the report of an experiment, of several, or of a device.
///
/// # Errors
/// It is none of these.
pub fn read_report(text: &str) -> Result<Vec<Experiment>, serde_json::Error> {
    serde_json::from_str::<Vec<Experiment>>(text)
        .or_else(|_| serde_json::from_str::<Survey>(text).map(|survey| survey.experiments))
        .or_else(|_| serde_json::from_str(text).map(|one| vec![one]))
}

impl Reports {
    pub(super) fn add(&mut self, file: &str, experiments: Vec<Experiment>) {
        self.files.insert(file.to_owned(), experiments);
    }

    pub(super) fn of(&self, file: &str) -> Option<&[Experiment]> {
        self.files.get(file).map(Vec::as_slice)
    }

    /// The figure that a value names; `usual` is the study's report.
    pub(super) fn figure(
        &self,
        source: &Source,
        usual: &str,
        argument: Option<&str>,
    ) -> Result<Span, String> {
        let file = source.report.as_deref().unwrap_or(usual);
        let experiments = self.of(file).ok_or_else(|| format!("there is no report {file}"))?;
        let experiments: Vec<&Experiment> = experiments.iter().filter(|one| source.is_of(one)).collect();
        let [experiment] = experiments[..] else {
            return Err(format!("{file} has {} such experiments, and not one", experiments.len()));
        };
        let takes_argument = source.case.contains("{}") || source.what.contains("{}");
        let filled = |text: &str| match (takes_argument, argument) {
            (true, Some(argument)) => Ok(text.replace("{}", argument)),
            (false, None) => Ok(text.to_owned()),
            (true, None) => Err("it takes an argument".to_owned()),
            (false, Some(argument)) => Err(format!("it takes no argument, and has `{argument}`")),
        };
        let (case, what) = (filled(&source.case)?, filled(&source.what)?);
        let of_case = || experiment.rows.iter().filter(|row| row.case == case);
        let exact: Vec<&Row> = of_case().filter(|row| row.what == what).collect();
        let rows = if exact.is_empty() {
            of_case().filter(|row| row.what.starts_with(&what)).collect()
        } else {
            exact
        };
        let figures: Vec<_> = rows.iter().filter_map(|row| field(row, &source.field)).collect();
        // A row stands there once for everything that it is held against. Figures of different things may be
        // equal by chance.
        let whats: BTreeSet<&str> = rows.iter().map(|row| row.what.as_str()).collect();
        match &figures[..] {
            [first, rest @ ..] if whats.len() == 1 && rest.iter().all(|other| other == first) => Ok(first.1),
            [] => Err(format!("{file} has no figure `{}` of `{case}`, `{what}`", source.field)),
            several => Err(format!(
                "{file} has {} figures `{}` of `{case}`, `{what}`, of rows that begin so: {whats:?}",
                several.len(),
                source.field
            )),
        }
    }
}

/// The figure, and the name of what ours is held against if it is that one's.
fn field<'a>(row: &'a Row, field: &str) -> Option<(&'a str, Span)> {
    let figure = match field {
        "ours" => row.ours.as_ref().map(|one| Span { median: one.median, low: one.low, high: one.high }),
        "median" => row.ours.as_ref().map(|one| Span::exactly(one.median)),
        "paper" => row.paper.map(Span::exactly),
        name => {
            let other = row.other.as_ref().filter(|other| other.name.starts_with(name))?;
            let figure = Span { median: other.median, low: other.low, high: other.high };
            return Some((&other.name, figure));
        }
    };
    figure.map(|figure| ("", figure))
}
