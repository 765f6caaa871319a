//! The file of a study: what a publication says, in its order, which figure of ours stands beside each claim,
//! and when the claim holds. Of numbers of ours, only registers and instructions of kernels are written in
//! it.
//!
//! In `about` of a study, `text` and `after` of parts, `says`, `differs` and `cannot` of claims, and `is` of
//! what a publication got wrong, `{expression}` stands for the value of an expression, and `{expression:2}`
//! for the same with two decimals.

use crate::experiment::Experiment;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A publication.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Study {
    /// The heading of its page.
    pub(super) title: String,
    /// What it is, where it was published, and what is compared.
    pub(super) about: String,
    /// The report that values are of unless they name another: a file in the folder of results.
    pub(super) report: String,
    /// Figures of ours by name.
    #[serde(default)]
    pub(super) values: BTreeMap<String, Source>,
    /// Parts of the publication in its order.
    #[serde(rename = "part")]
    pub(super) parts: Vec<Part>,
    /// What it got wrong.
    #[serde(rename = "wrong", default)]
    pub(super) wrongs: Vec<Wrong>,
}

/// Where a figure of ours stands. `{}` in a text is what the value is asked for with.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Source {
    /// The file, unless it is the study's.
    pub(super) report: Option<String>,
    /// The experiment in it, if there are several.
    pub(super) experiment: Option<String>,
    /// The row's case.
    pub(super) case: String,
    /// What the row measures: all of it, or how it begins.
    pub(super) what: String,
    /// `ours`, `median` (ours without its range), `paper`, or the name of what ours is held against, or how
    /// that begins.
    #[serde(default = "ours")]
    pub(super) field: String,
}

impl Source {
    /// Whether the row is one of this experiment.
    pub(super) fn is_of(&self, experiment: &Experiment) -> bool {
        self.experiment.as_ref().is_none_or(|name| *name == experiment.experiment)
    }
}

/// A part of a publication, such as a section.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    pub(super) title: String,
    #[serde(default)]
    pub(super) text: String,
    /// Whether its claims are ours, which nobody counts as the publication's.
    #[serde(default)]
    pub(super) beyond: bool,
    #[serde(rename = "claim", default)]
    pub(super) claims: Vec<Claim>,
    #[serde(rename = "picture", default)]
    pub(super) pictures: Vec<Picture>,
    /// What follows claims and pictures.
    #[serde(default)]
    pub(super) after: String,
}

/// A claim: a number, some numbers, or a mechanism. Without `differs` and `cannot` it holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    /// What pictures call it.
    #[serde(default)]
    pub(super) key: String,
    /// Where it stands in the publication.
    pub(super) place: String,
    /// What it says, in our words.
    pub(super) says: String,
    /// The publication's number, if it is one.
    pub(super) paper: Option<f64>,
    /// Its numbers, if there are several: where, and the number.
    #[serde(default)]
    pub(super) points: Vec<(At, f64)>,
    /// Places at which it says something without a number.
    #[serde(default)]
    pub(super) places: Vec<At>,
    /// What places are.
    #[serde(default)]
    pub(super) at: String,
    #[serde(default)]
    pub(super) unit: String,
    /// Ours, an expression.
    pub(super) ours: Option<String>,
    /// The relation by which it holds: two expressions with `<`, `<=`, `>` or `>=`, of `ours`, `paper` and
    /// values, or several of these with `and`.
    pub(super) holds: Option<String>,
    /// It holds if ours is so close to the publication's number, in percent of that.
    pub(super) within: Option<f64>,
    /// Tests that show a mechanism.
    #[serde(default)]
    pub(super) shown: Vec<String>,
    /// Why ours differs.
    pub(super) differs: Option<String>,
    /// Why it cannot be repeated here.
    pub(super) cannot: Option<String>,
}

/// Where a point stands on its axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum At {
    Number(f64),
    Name(String),
}

/// The publication's figure, drawn from its numbers, and ours.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Picture {
    /// The file's, behind the study's.
    pub(super) name: String,
    pub(super) title: String,
    /// What is better, in words.
    #[serde(default)]
    pub(super) better: String,
    /// The name of the axis from left to right, of curves.
    #[serde(default)]
    pub(super) below: String,
    /// The unit.
    pub(super) unit: String,
    /// Claims whose points are curves.
    #[serde(default)]
    pub(super) curves: Vec<Line>,
    /// Claims that are bars, or whose points are.
    #[serde(default)]
    pub(super) bars: Vec<Line>,
}

/// A claim in a picture.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    /// Its key.
    pub(super) claim: String,
    /// What it is called there.
    pub(super) name: String,
}

/// What a publication got wrong.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wrong {
    pub(super) place: String,
    /// What it says.
    pub(super) says: String,
    /// What is so, with the arithmetic.
    pub(super) is: String,
}

impl Claim {
    /// Its points: where, and the publication's number, if there is one.
    pub(super) fn points(&self) -> impl Iterator<Item = (&At, Option<f64>)> + Clone {
        let numbered = self.points.iter().map(|(at, paper)| (at, Some(*paper)));
        numbered.chain(self.places.iter().map(|at| (at, None)))
    }
}

fn ours() -> String {
    "ours".to_owned()
}

impl At {
    /// As text: what values are asked for with.
    pub(super) fn text(&self) -> String {
        match self {
            At::Number(number) => number.to_string(),
            At::Name(name) => name.clone(),
        }
    }

    /// The place on an axis, where it is a number.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            At::Number(number) => Some(*number),
            At::Name(_) => None,
        }
    }
}
