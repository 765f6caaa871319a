//! One self-contained page of HTML: for every experiment the machine, plots, and all numbers in a table.

use crate::experiment::{Better, Experiment, Row};
use crate::kinds::ExperimentKind;
use crate::plot::{Entry, plot};
use crate::transfer;
use std::fmt::Write;

const STYLE: &str = "
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: light-dark(#1b1f24, #e6e8eb); background: light-dark(#ffffff, #14171a); }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 1px solid light-dark(#d5d9de, #3a4046); }
table { border-collapse: collapse; width: 100%; font-size: 13px; } caption { text-align: left; padding: .4rem 0; }
th, td { text-align: left; padding: .2rem .5rem; border-bottom: 1px solid light-dark(#e3e6ea, #2c3136); vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 2rem 0; } figure > svg { display: block; max-width: 45rem; height: auto; }
nav ol { columns: 22rem; font-size: 13px; } nav summary { cursor: pointer; } .scroll { overflow-x: auto; } figcaption, .machine { font-size: 13px; color: light-dark(#545b63, #a7aeb5); }
.key span { display: inline-block; width: .8rem; height: .8rem; margin: 0 .3rem 0 1rem; }
code { font-size: 13px; }
";

/// The page.
pub fn page(experiments: &[Experiment]) -> String {
    let names: Vec<&str> = experiments.iter().map(|experiment| experiment.experiment.as_str()).collect();
    let title = format!("Ravelin lab: {}", escaped(&names.join(", ")));
    let mut body = String::new();
    experiments.iter().for_each(|experiment| section(&mut body, experiment));
    let (index, body) = indexed(&body);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
<title>{title}</title>\n<style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n{}{index}{body}</body></html>\n",
        key(experiments)
    )
}

/// What figures, colours and marks mean, as far as this page has them.
fn key(experiments: &[Experiment]) -> String {
    let rows = || experiments.iter().flat_map(|experiment| &experiment.rows);
    let mut key = String::from(
        "<p>Every figure is the median of the runs that its section names, unless its caption says that it is a mean; a line across a bar goes from the lowest to the highest of them.",
    );
    if rows().any(|row| row.ratio.is_some()) {
        key.push_str(" A ratio above 1 means that ours is better.");
    }
    if rows().any(|row| row.paper.is_some()) {
        key.push_str(
            " A publication's machines were other and older ones: its figures show proportions, not a race.",
        );
    }
    key.push_str("</p>\n<p class=\"key\"><span style=\"background:#2f81d6\"></span>ours");
    if rows().any(|row| row.other.is_some()) {
        key.push_str(
            "<span style=\"background:#d98426\"></span>what it is held against, measured in the same run",
        );
    }
    if rows().any(|row| row.paper.is_some()) {
        key.push_str("<span style=\"background:#d6495a\"></span>the publication (diamond)");
    }
    key + "</p>\n"
}

/// An index of all figures, where there are several, and the body with a mark at each.
fn indexed(body: &str) -> (String, String) {
    let mut parts = body.split("<figure>");
    let mut marked = parts.next().unwrap_or_default().to_owned();
    let mut entries = Vec::new();
    for (number, part) in (1..).zip(parts) {
        let caption = part.split_once("<figcaption>").and_then(|(_, rest)| rest.split_once("</figcaption>"));
        let title = caption.map_or("", |(caption, _)| caption.split(';').next().unwrap_or(caption));
        entries.push(format!("<li><a href=\"#figure-{number}\">{title}</a>\n"));
        let _ = write!(marked, "<figure id=\"figure-{number}\">{part}");
    }
    if entries.len() < 2 {
        return (String::new(), marked);
    }
    let count = entries.len();
    let open = if count <= 30 { " open" } else { "" };
    let index = format!(
        "<nav><details{open}><summary>Index of {count} figures</summary><ol>\n{}</ol></details></nav>\n",
        entries.concat()
    );
    (index, marked)
}

fn section(html: &mut String, experiment: &Experiment) {
    let name = escaped(&experiment.experiment);
    let kind = ExperimentKind::named(&experiment.experiment);
    let about = kind.map(|kind| format!("<p>{}</p>\n", escaped(kind.about()))).unwrap_or_default();
    let _ = write!(html, "<h2 id=\"{name}\">{name}</h2>\n{about}{}", conditions(experiment));
    if kind == Some(ExperimentKind::Transfer) {
        html.push_str(&transfer::page::section(&experiment.rows));
        return;
    }
    if kind == Some(ExperimentKind::Crossover) {
        for (caption, svg) in crate::crossover::plots(&experiment.rows) {
            let _ = writeln!(html, "<figure>{svg}<figcaption>{}</figcaption></figure>", escaped(&caption));
        }
        return table(html, &experiment.rows);
    }
    if kind == Some(ExperimentKind::Schedule) {
        html.push_str(&crate::schedule::section(&experiment.rows));
        return table(html, &experiment.rows);
    }
    for (title, rows) in groups(&experiment.rows) {
        let Some(first) = rows.first() else { continue };
        let (entries, shared) = Entry::of_rows(&rows);
        // A plot that cannot be drawn is left out; its numbers are in the table.
        let Ok(svg) = plot(&entries, &first.unit) else { continue };
        let own: Vec<&str> = shared.iter().skip(1).map(String::as_str).collect();
        let own = if own.is_empty() { String::new() } else { format!(", {}", own.join(", ")) };
        let _ = writeln!(
            html,
            "<figure>{svg}<figcaption>{} in {}{}; {}</figcaption></figure>",
            escaped(&format!("{title}{own}")),
            escaped(&first.unit),
            direction(&rows),
            middle(&rows, experiment.machine.runs),
        );
    }
    table(html, &experiment.rows);
}

/// What the middle and the range of bars are.
fn middle(rows: &[&Row], runs: usize) -> String {
    let figures = || rows.iter().filter_map(|row| row.ours.as_ref());
    if figures().all(|figure| figure.is_mean) && figures().count() > 0 {
        "mean and range of what the row names".to_owned()
    } else if figures().any(|figure| figure.is_mean) {
        format!("median and range of {runs} runs, or mean and range of what the row names")
    } else {
        format!("median and range of {runs} runs")
    }
}

fn conditions(experiment: &Experiment) -> String {
    let machine = &experiment.machine;
    let features =
        if machine.features.is_empty() { "none known".to_owned() } else { machine.features.join(" ") };
    format!(
        "<p class=\"machine\">{}<br>CPU features: {}<br>{}; {}<br>{}; {} runs, {}<br><code>{}</code></p>\n",
        escaped(&machine.line()),
        escaped(&features),
        escaped(&machine.date),
        escaped(&machine.built()),
        escaped(&machine.mode),
        machine.runs,
        escaped(&machine.length),
        escaped(&machine.command),
    )
}

/// Rows that are plotted together: the same traffic, measure and unit. Bit rates follow from packet rates and
/// are left to the table.
fn groups(rows: &[Row]) -> Vec<(String, Vec<&Row>)> {
    let mut groups: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows.iter().filter(|row| !row.is_missing() && !row.unit.is_empty() && row.unit != "Gbit/s") {
        let traffic = row.case.split(", ").next().unwrap_or("");
        // What is wanted of a figure stands behind it, and only in the table.
        let what = row.what.split("; ").next().unwrap_or("");
        let title = format!("{traffic}: {what}");
        match groups.iter_mut().find(|(known, rows)| *known == title && rows[0].unit == row.unit) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((title, vec![row])),
        }
    }
    groups
}

/// Which way is better, where all rows agree on it.
pub(crate) fn direction(rows: &[&Row]) -> &'static str {
    let mut ways = rows.iter().filter_map(|row| row.better());
    match ways.next() {
        Some(first) if ways.any(|way| way != first) => "",
        Some(Better::More) => "; higher is better",
        Some(Better::Less) => "; lower is better",
        None => "",
    }
}

fn table(html: &mut String, rows: &[Row]) {
    html.push_str("<div class=\"scroll\"><table><caption>All figures</caption><thead><tr><th>case<th>what<th>unit<th>ours<th>range<th>held against<th>ratio<th>publication</tr></thead><tbody>\n");
    for row in rows {
        let ours = row
            .ours
            .as_ref()
            .map(|ours| (number(ours.median), format!("{} – {}", number(ours.low), number(ours.high))));
        let none = if row.is_missing() { "no figure" } else { "" };
        let (ours, range) = ours.unwrap_or_else(|| (none.to_owned(), String::new()));
        let other = row.other.as_ref().map(|other| {
            let range = format!("{} – {}", number(other.low), number(other.high));
            format!("{}: {} ({range})", escaped(&other.name), number(other.median))
        });
        let optional = |value: Option<f64>| value.map(|value| format!("{value:.2}")).unwrap_or_default();
        let _ = writeln!(
            html,
            "<tr><td>{}<td>{}<td>{}<td class=\"number\">{ours}<td class=\"number\">{range}<td>{}<td class=\"number\">{}<td class=\"number\">{}</tr>",
            escaped(&row.case),
            escaped(&row.what),
            escaped(&row.unit),
            other.unwrap_or_default(),
            optional(row.ratio),
            optional(row.paper),
        );
    }
    html.push_str("</tbody></table></div>\n");
}

fn number(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.1}") } else { format!("{value:.2}") }
}

/// A text as it is written between tags and in attributes.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Machine;
    use crate::experiment::Figure;

    #[test]
    fn the_page_needs_nothing_else_and_says_where_its_figures_come_from() {
        let machine =
            Machine { runs: 5, command: "ravelin lab <all>".into(), ..Machine::describe("", "6.1") };
        let figure = Figure { median: 61.5, low: 60.0, high: 62.0, ..Figure::default() };
        let rows = vec![
            Row::alone("sample1, replay, wire", "packet rate", "Mpps", Some(figure), Some(3.17)),
            Row::refused("sample1, replay, firewall", "packet rate", "Mpps", "3 < 4"),
        ];
        let html = page(&[Experiment { experiment: "switch-apps".into(), machine, rows }]);
        assert!(html.contains("ravelin lab &lt;all&gt;") && html.contains("61.50") && html.contains("6.1"));
        assert!(html.contains("no figure") && html.contains("3 &lt; 4"));
        assert!(
            !html.contains("http://")
                || html.matches("http://").count() == html.matches("xmlns=\"http://").count()
        );
        assert!(!html.contains("https://") && !html.contains("src="));
    }
}
