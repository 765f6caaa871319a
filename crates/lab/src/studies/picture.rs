//! Pictures of a study: the publication's figure, drawn from its numbers, and ours on the same axes.

use super::expression::Span;
use super::file::{Claim, Line, Picture};
use super::judge::Judged;
use crate::experiment::{Figure, Other};
use crate::plot::{self, Curve, Entry};

/// The picture as a file of its own.
///
/// # Errors
/// A claim is not there, has nothing to be drawn, or has points that are on no axis; or the picture has
/// curves and bars, or a name of an axis that is not there.
pub(super) fn svg(picture: &Picture, known: &[(&Claim, &Judged)]) -> Result<String, String> {
    let wrong = |why: &str| format!("picture `{}`: {why}", picture.name);
    let of = |line: &Line| {
        let found = known.iter().find(|(claim, _)| !claim.key.is_empty() && claim.key == line.claim);
        found.copied().ok_or_else(|| wrong(&format!("there is no claim `{}`", line.claim)))
    };
    if !picture.curves.is_empty() && !picture.bars.is_empty() {
        return Err(wrong("either `curves` or `bars`"));
    }
    if picture.curves.is_empty() != picture.below.is_empty() {
        return Err(wrong("curves have a name of the axis `below`, and bars have none"));
    }
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
            if judged.points.is_empty() {
                return Err(wrong(&format!("claim `{}` has no points for a curve", line.claim)));
            }
            if let Some((at, _)) = claim.points().find(|(at, _)| at.number().is_none()) {
                let (claim, at) = (&line.claim, at.text());
                return Err(wrong(&format!("claim `{claim}` has a point `{at}`, which is on no axis")));
            }
            let points = claim.points().map(|(at, _)| at.number()).zip(&judged.points);
            let point = |(at, figure): (Option<f64>, Option<f64>)| Some((at?, figure?));
            let paper = points.clone().map(|(at, judged)| (at, judged.paper));
            theirs.push(Curve::new(&line.name, paper.filter_map(point).collect()));
            let own = points.map(|(at, judged)| (at, judged.ours.map(|ours| ours.median)));
            ours.push(Curve::new(&line.name, own.filter_map(point).collect()));
        }
        let panels = [("the original", &theirs[..]), ("ours", &ours[..])];
        plot::beside(&panels, &picture.below, &picture.unit)
    };
    let drawn = drawn.map_err(|error| wrong(&error.to_string()))?;
    Ok(plot::standing_alone(&drawn))
}

/// A bar of the publication and one of ours, for the claim or for each of its points.
fn bars(name: &str, claim: &Claim, judged: &Judged) -> Vec<Entry> {
    let original = |value: f64| Other::of("the original", Figure::exactly(value));
    let figure =
        |span: Span| Figure { median: span.median, low: span.low, high: span.high, ..Figure::default() };
    let entry = |label: String, paper: Option<f64>, ours: Option<Span>| Entry {
        label,
        ours: ours.map(figure),
        others: paper.map(original).into_iter().collect(),
        paper: None,
    };
    if judged.points.is_empty() {
        return vec![entry(name.to_owned(), claim.paper, judged.ours)];
    }
    let points = claim.points().zip(&judged.points);
    points.map(|((at, paper), judged)| entry(format!("{name}, {}", at.text()), paper, judged.ours)).collect()
}
