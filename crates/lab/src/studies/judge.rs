//! Whether claims hold, by the figures of reports. A verdict that the figures do not bear out is an error: no
//! page is made with it.

use super::expression::{Span, value};
use super::file::{Claim, Study};
use super::reports::Reports;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// What comes of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaimOutcome {
    Holds,
    Differs,
    Cannot,
}

/// A claim with its figures.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) outcome: ClaimOutcome,
    /// Ours, of a claim with one number.
    pub(super) ours: Option<Span>,
    pub(super) points: Vec<JudgedPoint>,
}

/// A point of a claim.
#[derive(Debug)]
pub(super) struct JudgedPoint {
    /// The publication's number, where it prints one.
    pub(super) paper: Option<f64>,
    pub(super) ours: Option<Span>,
    /// Whether the claim holds there.
    pub(super) holds: bool,
}

/// Whether two numbers have a relation.
type Compared = fn(&f64, &f64) -> bool;

/// Judges the claims of a study by the reports.
pub(super) struct Judge<'a> {
    pub(super) study: &'a Study,
    pub(super) reports: &'a Reports,
    /// Names of values that something asked for.
    asked: RefCell<BTreeSet<String>>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(study: &'a Study, reports: &'a Reports) -> Judge<'a> {
        Judge { study, reports, asked: RefCell::default() }
    }

    /// Refuses values that nothing asked for, once all claims and texts are there.
    ///
    /// # Errors
    /// Their names.
    pub(super) fn all_asked(&self) -> Result<(), String> {
        let asked = self.asked.borrow();
        let dead: Vec<&str> =
            self.study.values.keys().map(String::as_str).filter(|name| !asked.contains(*name)).collect();
        if dead.is_empty() { Ok(()) } else { Err(format!("nothing asks for the values {}", dead.join(", "))) }
    }

    /// The value of an expression; `own` are names that only this claim has.
    fn value(&self, expression: &str, at: Option<&str>, own: &[(&str, Span)]) -> Result<Span, String> {
        value(expression, at, &|name, argument| {
            if let (Some((_, span)), None) = (own.iter().find(|(known, _)| *known == name), argument) {
                return Ok(*span);
            }
            let source = self.study.values.get(name).ok_or_else(|| format!("there is no value `{name}`"))?;
            self.asked.borrow_mut().insert(name.to_owned());
            let figure = self.reports.figure(source, &self.study.report, argument);
            figure.map_err(|error| format!("value `{name}`: {error}"))
        })
    }

    /// A claim's figures, and what is to be said of it.
    ///
    /// # Errors
    /// A figure cannot be found, or what the file says of the claim is not what the figures say.
    pub(super) fn judged(&self, claim: &Claim) -> Result<Judged, String> {
        let named = |error: String| format!("{}, \"{}\": {error}", claim.place, claim.says);
        let several = !claim.points.is_empty() || !claim.places.is_empty();
        for (wrong, why) in [
            (several && claim.paper.is_some(), "`paper` is of a claim without points and places"),
            (!claim.points.is_empty() && !claim.places.is_empty(), "either `points` or `places`"),
            (!several && !claim.at.is_empty(), "`at` is of a claim with points or places"),
        ] {
            if wrong {
                return Err(named(why.to_owned()));
            }
        }
        let points = claim.points().map(|(at, paper)| {
            let (ours, holds) = self.figure(claim, paper, Some(&at.text()))?;
            Ok(JudgedPoint { paper, ours, holds: holds.unwrap_or(false) })
        });
        let points: Vec<_> = points.collect::<Result<_, String>>().map_err(named)?;
        let (ours, single) = match points.is_empty() {
            true => self.figure(claim, claim.paper, None).map_err(named)?,
            false => (None, Some(points.iter().all(|point| point.holds))),
        };
        let has_relation = claim.holds.is_some() || claim.within.is_some();
        let figures = || match (&ours, points.iter().filter(|point| point.holds).count()) {
            (Some(ours), _) => format!("ours is {} ({} to {})", ours.median, ours.low, ours.high),
            (None, held) => format!("it holds at {held} of {} points", points.len()),
        };
        let outcome = match (&claim.cannot, &claim.differs) {
            (Some(_), Some(_)) => Err("either `cannot` or `differs`".to_owned()),
            (Some(_), None) if has_relation => Err("what cannot be repeated has no `holds`".to_owned()),
            (Some(_), None) => Ok(ClaimOutcome::Cannot),
            (None, Some(_)) if has_relation && single == Some(true) => {
                Err(format!("it holds now, and the file says why it differs: {}", figures()))
            }
            (None, Some(_)) if has_relation || !claim.shown.is_empty() => Ok(ClaimOutcome::Differs),
            (None, None) if has_relation && single == Some(true) => Ok(ClaimOutcome::Holds),
            (None, None) if has_relation => {
                Err(format!("it does not hold, and the file does not say why it differs: {}", figures()))
            }
            (None, None) if !claim.shown.is_empty() && claim.ours.is_none() => Ok(ClaimOutcome::Holds),
            _ => Err("nothing says when it holds: `holds`, `within`, or tests that are `shown`".to_owned()),
        };
        Ok(Judged { outcome: outcome.map_err(named)?, ours, points })
    }

    /// Ours, and whether the relation holds, where there is one.
    fn figure(
        &self,
        claim: &Claim,
        paper: Option<f64>,
        at: Option<&str>,
    ) -> Result<(Option<Span>, Option<bool>), String> {
        let ours = claim.ours.as_ref().map(|ours| self.value(ours, at, &[])).transpose()?;
        let own = own(paper, ours);
        let holds = match (&claim.holds, claim.within) {
            (Some(_), Some(_)) => return Err("either `holds` or `within`".to_owned()),
            (Some(relation), None) => {
                let mut all = true;
                for part in relation.split(" and ") {
                    all &= self.relation(part, at, &own)?;
                }
                Some(all)
            }
            (None, Some(percent)) => {
                let (Some(ours), Some(paper)) = (ours, paper) else {
                    return Err("`within` needs `ours` and a number of the publication".to_owned());
                };
                Some((ours.median - paper).abs() <= percent / 100.0 * paper.abs())
            }
            (None, None) => None,
        };
        Ok((ours, holds))
    }

    /// Whether two expressions are as the mark between them says, by their medians.
    fn relation(&self, text: &str, at: Option<&str>, own: &[(&str, Span)]) -> Result<bool, String> {
        let marks: [(&str, Compared); 4] = [("<=", f64::le), (">=", f64::ge), ("<", f64::lt), (">", f64::gt)];
        let (mark, of) = marks
            .into_iter()
            .find(|(mark, _)| text.contains(mark))
            .ok_or_else(|| format!("`{text}` has none of <, <=, > and >="))?;
        let (left, right) = text.split_once(mark).unwrap_or((text, ""));
        Ok(of(&self.value(left, at, own)?.median, &self.value(right, at, own)?.median))
    }

    /// A text with its expressions filled in; `own` are names that only its claim has.
    ///
    /// # Errors
    /// An expression cannot be computed.
    pub(super) fn filled(&self, text: &str, own: &[(&str, Span)]) -> Result<String, String> {
        let mut parts = text.split('{');
        let mut filled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (inside, rest) = part.split_once('}').ok_or_else(|| format!("`{{{part}` has no end"))?;
            // A name of a row may have a colon, too.
            let numbered = inside.rsplit_once(':').and_then(|(start, end)| Some((start, end.parse().ok()?)));
            let (expression, decimals): (&str, Option<usize>) =
                numbered.map_or((inside, None), |(start, decimals)| (start, Some(decimals)));
            let value = self.value(expression, None, own)?.median;
            filled.push_str(&match decimals {
                Some(decimals) => separated(&format!("{value:.decimals$}")),
                None => number(value),
            });
            filled.push_str(rest);
        }
        Ok(filled)
    }
}

/// The names that only a claim's own relation and texts have: its numbers.
pub(super) fn own(paper: Option<f64>, ours: Option<Span>) -> Vec<(&'static str, Span)> {
    let paper = paper.map(|paper| ("paper", Span::exactly(paper)));
    paper.into_iter().chain(ours.map(|ours| ("ours", ours))).collect()
}

/// A number with three digits that count, or all of a whole one.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        size if value.fract() == 0.0 || size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size => (2 - size.log10().floor() as i32).clamp(3, 9) as usize,
    };
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    separated(text)
}

/// A number with commas between thousands and a minus that is one.
fn separated(text: &str) -> String {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("−", rest));
    let (whole, rest) = text.find('.').map_or((text, ""), |at| text.split_at(at));
    let mut out = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    format!("{sign}{out}{rest}")
}

/// The median and the range, as far as that is more than the median.
pub(super) fn with_range(span: &Span) -> String {
    let [median, low, high] = [span.median, span.low, span.high].map(number);
    if low == median && high == median { median } else { format!("{median} ({low} to {high})") }
}
