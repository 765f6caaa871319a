//! The page of a study and the index of all, as Markdown.

use super::file::{Claim, Part, Source};
use super::judge::{ClaimOutcome, Judge, Judged, number, own, with_range};
use super::{ClaimCounts, picture};
use crate::experiment::Experiment;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Columns of a line of a paragraph.
const COLUMNS: usize = 120;

/// The page of a study and its pictures, and how its claims came out.
pub(super) fn pages(judge: &Judge<'_>, name: &str) -> Result<(Vec<(String, String)>, ClaimCounts), String> {
    let study = judge.study;
    let judged = |part: &Part| part.claims.iter().map(|claim| judge.judged(claim)).collect();
    let judged: Vec<Vec<Judged>> = study.parts.iter().map(judged).collect::<Result<_, String>>()?;
    let of_original = study.parts.iter().zip(&judged).filter(|(part, _)| !part.beyond);
    let counts = ClaimCounts::of(of_original.flat_map(|(_, judged)| judged).map(|one| one.outcome));
    let known: Vec<(&Claim, &Judged)> =
        study.parts.iter().flat_map(|part| &part.claims).zip(judged.iter().flatten()).collect();
    let mut keys = BTreeSet::new();
    if let Some((claim, _)) = known.iter().find(|(one, _)| !one.key.is_empty() && !keys.insert(&one.key)) {
        return Err(format!("more than one claim has the key `{}`", claim.key));
    }
    let mut text = format!("# {}\n", study.title);
    paragraphs(&mut text, &judge.filled(&study.about, &[])?);
    let reports: Vec<String> = measured(judge).collect::<Result<_, String>>()?;
    paragraphs(
        &mut text,
        &format!(
            "**{}.** [All studies, and how to read them](README.md). Figures of ours are of {}. \
             `ravelin lab --studies docs/results --out docs/studies` made this page of them.",
            counts.line(),
            reports.join("; ")
        ),
    );
    let mut files = Vec::new();
    let mut first = 1;
    for (part, judged) in study.parts.iter().zip(&judged) {
        let _ = write!(text, "\n## {}\n", part.title);
        paragraphs(&mut text, &judge.filled(&part.text, &[])?);
        claims(&mut text, judge, part, judged, first)?;
        first += part.claims.len();
        for one in &part.pictures {
            let file = format!("{name}-{}.svg", one.name);
            files.push((file.clone(), picture::svg(one, &known)?));
            let better = if one.better.is_empty() { String::new() } else { format!("; {}", one.better) };
            paragraphs(&mut text, &format!("![{} in {}{better}]({file})", one.title, one.unit));
            paragraphs(&mut text, &format!("*{}, in {}{better}.*", one.title, one.unit));
        }
        paragraphs(&mut text, &judge.filled(&part.after, &[])?);
    }
    if !study.wrongs.is_empty() {
        text.push_str(
            "\n## What the original got wrong\n\n| where | it says | what is so |\n| --- | --- | --- |\n",
        );
        for wrong in &study.wrongs {
            let is = judge.filled(&wrong.is, &[])?;
            let _ = writeln!(text, "| {} | {} | {} |", cell(&wrong.place), cell(&wrong.says), cell(&is));
        }
    }
    judge.all_asked()?;
    files.insert(0, (format!("{name}.md"), text));
    Ok((files, counts))
}

/// The reports that figures are of, each with where it was measured and by how many runs: those of the
/// experiments of it that figures are taken from.
fn measured<'a>(judge: &'a Judge<'a>) -> impl Iterator<Item = Result<String, String>> + 'a {
    let usual = judge.study.report.as_str();
    let report = |source: &'a Source| source.report.as_deref().unwrap_or(usual);
    let mut names: Vec<&str> = judge.study.values.values().map(report).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(move |name| {
        let experiments = judge.reports.of(name).ok_or_else(|| format!("there is no report {name}"))?;
        let sources = judge.study.values.values().filter(|source| report(source) == name);
        let taken = |one: &&Experiment| sources.clone().any(|source| source.is_of(one));
        let taken: Vec<&Experiment> = experiments.iter().filter(taken).collect();
        let one = taken.first().ok_or_else(|| format!("{name} has no experiment that is asked for"))?;
        let runs: BTreeSet<usize> = taken.iter().map(|one| one.machine.runs).collect();
        let runs: Vec<String> = runs.iter().map(usize::to_string).collect();
        let day = one.machine.date.split('T').next().unwrap_or_default();
        let commit = one.machine.commit.as_ref().map(|commit| format!(", commit {commit}"));
        let machine = format!(
            "{day}, {}, medians of {} runs{}",
            one.machine.cpu,
            runs.join(" or "),
            commit.unwrap_or_default()
        );
        Ok(format!("[{name}](../results/{name}) ({machine})"))
    })
}

/// The table of a part's claims, and behind it those of the claims with several points.
fn claims(
    text: &mut String,
    judge: &Judge<'_>,
    part: &Part,
    judged: &[Judged],
    first: usize,
) -> Result<(), String> {
    if part.claims.is_empty() {
        return Ok(());
    }
    let who = if part.beyond { "we say" } else { "the original says" };
    let _ = write!(
        text,
        "\n| | where | {who} | its value | ours | verdict |\n| ---: | --- | --- | ---: | ---: | --- |\n"
    );
    for ((claim, judged), place) in part.claims.iter().zip(judged).zip(first..) {
        let unit = |value: String| {
            if claim.unit.is_empty() || value.is_empty() { value } else { format!("{value} {}", claim.unit) }
        };
        let below = |is: bool| if is { "below".to_owned() } else { String::new() };
        let paper = claim.paper.map(number).map_or_else(|| below(!claim.points.is_empty()), unit);
        let ours = judged.ours.as_ref().map(with_range);
        let ours = ours.map_or_else(|| below(!judged.points.is_empty()), unit);
        let _ = writeln!(
            text,
            "| {place} | {} | {} | {paper} | {ours} | {} |",
            cell(&claim.place),
            cell(&judge.filled(&claim.says, &own(claim.paper, judged.ours))?),
            cell(&verdict(judge, claim, judged)?)
        );
    }
    for ((claim, judged), place) in part.claims.iter().zip(judged).zip(first..) {
        if judged.points.is_empty() {
            continue;
        }
        let held = judged.points.iter().filter(|point| point.holds).count();
        let has_ours = judged.points.iter().any(|point| point.ours.is_some());
        let counted =
            if has_ours { format!("; holds at {held} of {}", judged.points.len()) } else { String::new() };
        let unit = if claim.unit.is_empty() { String::new() } else { format!(", in {}", claim.unit) };
        paragraphs(text, &format!("Points of {place}{unit}{counted}:"));
        if claim.points.is_empty() {
            let _ = write!(text, "\n| {} | ours |\n| ---: | ---: |\n", claim.at);
        } else {
            let _ = write!(text, "\n| {} | the original | ours |\n| ---: | ---: | ---: |\n", claim.at);
        }
        for ((at, _), point) in claim.points().zip(&judged.points) {
            let at = at.number().map_or_else(|| at.text(), number);
            let ours = point.ours.as_ref().map(with_range).unwrap_or_default();
            let paper = point.paper.map(|paper| format!(" {} |", number(paper))).unwrap_or_default();
            let _ = writeln!(text, "| {at} |{paper} {ours} |");
        }
    }
    Ok(())
}

fn verdict(judge: &Judge<'_>, claim: &Claim, judged: &Judged) -> Result<String, String> {
    let own = own(claim.paper, judged.ours);
    let reason = |why: &Option<String>| judge.filled(why.as_deref().unwrap_or_default(), &own);
    let mut text = match judged.outcome {
        ClaimOutcome::Holds => "**holds**".to_owned(),
        ClaimOutcome::Differs => format!("**differs** because {}", reason(&claim.differs)?),
        ClaimOutcome::Cannot => format!("**cannot be repeated here** because {}", reason(&claim.cannot)?),
    };
    if let Some(percent) = claim.within {
        let _ = write!(text, " (asked: within {} % of the original)", number(percent));
    }
    if let Some(relation) = &claim.holds {
        let _ = write!(text, " (asked: `{relation}`)");
    }
    if !claim.shown.is_empty() {
        let tests: Vec<String> = claim.shown.iter().map(|test| format!("`{test}`")).collect();
        let _ = write!(text, "; shown by {}", tests.join(", "));
    }
    Ok(text)
}

/// The index of all studies.
pub(super) fn index(studies: &[(&str, String, ClaimCounts)]) -> String {
    let mut text = String::from("# Studies, claim by claim\n");
    paragraphs(
        &mut text,
        "Each page goes through a publication in its order: every claim, figure, table, number and mechanism, its value, \
         ours, and a verdict. `ravelin lab --studies docs/results --out docs/studies` makes the pages of the reports \
         in [results](../results/README.md), and says how many claims came out how. Figures of ours are \
         computed from reports. Only registers and instructions of our kernels are typed, in reasons.\n\n\
         *Holds* means that our figures have the relation that the row asks for, by their medians; a range behind a median \
         is that of the runs or, of a figure that is computed of several, the widest that their ranges allow. *Differs* \
         and *cannot be repeated here* say why. If the figures of a claim no longer say what its file says of them, no page \
         is made. What we say beyond an original is judged likewise and not counted. Numbers of the originals, and the relations that are asked for, are in `crates/lab/src/studies/`.",
    );
    text.push_str("\n| study | claims | hold | differ | cannot be repeated here |\n| --- | ---: | ---: | ---: | ---: |\n");
    for (name, title, counts) in studies {
        let ClaimCounts { hold, differ, cannot } = counts;
        let _ = writeln!(text, "| [{title}]({name}.md) | {} | {hold} | {differ} | {cannot} |", counts.all());
    }
    text
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Paragraphs, each after an empty line, in lines that are not too long. A list is one paragraph of lines
/// that begin with `- `; further lines of an entry are indented.
fn paragraphs(text: &mut String, written: &str) {
    for paragraph in written.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
        text.push('\n');
        if paragraph.starts_with('|') || paragraph.starts_with("```") {
            let _ = writeln!(text, "{paragraph}");
            continue;
        }
        let mut columns = 0;
        let mut indent = "";
        for (number, line) in paragraph.lines().enumerate() {
            let starts = line.starts_with("- ");
            if starts && number > 0 {
                text.push('\n');
                columns = 0;
            }
            indent = if starts { "  " } else { indent };
            for word in line.split_whitespace() {
                let size = word.chars().count();
                if columns > 0 && columns + 1 + size > COLUMNS {
                    text.push('\n');
                    text.push_str(indent);
                    columns = indent.len();
                } else if columns > 0 {
                    text.push(' ');
                    columns += 1;
                }
                text.push_str(word);
                columns += size;
            }
        }
        text.push('\n');
    }
}
