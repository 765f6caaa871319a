//! Pictures of a study: the publication's figure, drawn from its numbers, and ours on the same axes.

use super::file::{Claim, Line, Picture};
use super::judge::Judged;
use crate::experiment::{Figure, Other};
use crate::plot::{self, Curve, Entry};

/// The picture as a file of its own.
///
/// # Errors
/// A claim is not there, or has nothing to be drawn.
pub(super) fn svg(picture: &Picture, known: &[(&Claim, &Judged)]) -> Result<String, String> {
    let of = |line: &Line| {
        let found = known.iter().find(|(claim, _)| claim.key == line.claim);
        found
            .copied()
            .ok_or_else(|| format!("picture `{}`: there is no claim `{}`", picture.name, line.claim))
    };
    let drawn = if picture.curves.is_empty() {
        let mut entries = Vec::new();
        for line in &picture.bars {
            let (claim, judged) = of(line)?;
            entries.extend(bars(&line.name, claim, judged));
        }
        plot::plot(&entries, &picture.unit)
    } else {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for line in &picture.curves {
            let (claim, judged) = of(line)?;
            let places = || claim.points.iter().map(|(at, _)| at.number());
            let points = places().zip(&judged.points);
            let point = |(at, figure): (Option<f64>, Option<f64>)| Some((at?, figure?));
            let paper = points.clone().map(|(at, (paper, ..))| (at, Some(paper.middle)));
            theirs.push(Curve::new(&line.name, paper.filter_map(point).collect()));
            let own = points.map(|(at, (_, ours, _))| (at, ours.map(|ours| ours.middle)));
            ours.push(Curve::new(&line.name, own.filter_map(point).collect()));
        }
        let panels = [("the original", &theirs[..]), ("ours", &ours[..])];
        plot::beside(&panels, &picture.below, &picture.unit)
    };
    let drawn = drawn.map_err(|error| format!("picture `{}`: {error}", picture.name))?;
    Ok(plot::standing_alone(&drawn))
}

/// A bar of the publication and one of ours, for the claim or for each of its points.
fn bars(name: &str, claim: &Claim, judged: &Judged) -> Vec<Entry> {
    let original = |value: f64| Other::of("the original", Figure::exactly(value));
    let figure = |span: super::expression::Span| Figure {
        median: span.middle,
        low: span.low,
        high: span.high,
        ..Figure::default()
    };
    let entry = |label: String, paper: Option<f64>, ours: Option<super::expression::Span>| Entry {
        label,
        ours: ours.map(figure),
        others: paper.map(original).into_iter().collect(),
        paper: None,
    };
    if claim.points.is_empty() {
        return vec![entry(name.to_owned(), claim.paper, judged.ours)];
    }
    let points = claim.points.iter().zip(&judged.points);
    points
        .map(|((at, paper), (_, ours, _))| entry(format!("{name}, {}", at.text()), Some(*paper), *ours))
        .collect()
}
