//! One self-contained page of HTML: for every experiment the machine, plots, and all numbers in a table.

use crate::experiment::{Experiment, Row};
use crate::plan::Kind;
use crate::plot::plot;
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
figure { margin: 1.5rem 0; } figcaption, .machine { font-size: 13px; color: light-dark(#545b63, #a7aeb5); }
.key span { display: inline-block; width: .8rem; height: .8rem; margin: 0 .3rem 0 1rem; }
code { font-size: 13px; }
";

/// The page.
pub fn page(experiments: &[Experiment]) -> String {
    let mut html = String::from("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    html.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    let _ = writeln!(html, "<title>Ravelin: measurements</title>\n<style>{STYLE}</style></head><body>");
    html.push_str("<h1>Ravelin: measurements</h1>\n");
    html.push_str(
        "<p>Every figure is the median of the runs that its section names, with the lowest and the highest of them. A ratio above 1 means that ours \
is better. The publication is the thesis on the language Steve (2016), for <code>transfer</code> the study of a router on a GPU (2012), for <code>hermes</code> Hermes (DAC 2011); their machines were others and older ones: their figures show proportions, not a race.</p>\n\
<p class=\"key\"><span style=\"background:#2f81d6\"></span>ours<span style=\"background:#d98426\"></span>what it is held against, measured in the same \
run<span style=\"background:#d6495a\"></span>the publication (diamond)</p>\n",
    );
    for experiment in experiments {
        section(&mut html, experiment);
    }
    html.push_str("</body></html>\n");
    html
}

fn section(html: &mut String, experiment: &Experiment) {
    let name = escaped(&experiment.experiment);
    let _ = write!(html, "<h2 id=\"{name}\">{name}</h2>\n{}", conditions(experiment));
    if experiment.experiment == Kind::Transfer.name() {
        html.push_str(&transfer::page::section(&experiment.rows));
        return;
    }
    if experiment.experiment == Kind::Crossover.name() {
        for (caption, svg) in crate::crossover::plots(&experiment.rows) {
            let _ = writeln!(html, "<figure>{svg}<figcaption>{}</figcaption></figure>", escaped(&caption));
        }
        return table(html, &experiment.rows);
    }
    if experiment.experiment == Kind::Schedule.name() {
        html.push_str(&crate::schedule::section(&experiment.rows));
        return table(html, &experiment.rows);
    }
    for (title, rows) in groups(&experiment.rows) {
        let Some(first) = rows.first() else { continue };
        let label = |row: &Row| shortened(row, &rows);
        let caption = format!("{} in {}", escaped(&title), escaped(&first.unit));
        // A plot that cannot be drawn is left out; its numbers are in the table.
        if let Ok(svg) = plot(&rows, label) {
            let _ = writeln!(
                html,
                "<figure>{svg}<figcaption>{caption}; median and range of {} runs; {}; {}</figcaption></figure>",
                experiment.machine.runs,
                escaped(&experiment.machine.cpu),
                escaped(&experiment.machine.date),
            );
        }
    }
    table(html, &experiment.rows);
}

fn conditions(experiment: &Experiment) -> String {
    let machine = &experiment.machine;
    let features =
        if machine.features.is_empty() { "none known".to_owned() } else { machine.features.join(" ") };
    format!(
        "<p class=\"machine\">{}<br>CPU features: {}<br>{}; {} build, {}<br>{}; {} runs, {}<br><code>{}</code></p>\n",
        escaped(&machine.line()),
        escaped(&features),
        escaped(&machine.date),
        escaped(&machine.build),
        escaped(&machine.rust),
        escaped(&machine.mode),
        machine.runs,
        escaped(&machine.length),
        escaped(&machine.command),
    )
}

/// Rows that are plotted together: the same traffic, measure and unit. Bit rates follow from packet rates and are left to the table.
fn groups(rows: &[Row]) -> Vec<(String, Vec<&Row>)> {
    let mut groups: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows.iter().filter(|row| row.ours.is_some() && row.unit != "Gbit/s") {
        let traffic = row.case.split(", ").next().unwrap_or("");
        let title = format!("{traffic}: {}", row.what);
        match groups.iter_mut().find(|(known, rows)| *known == title && rows[0].unit == row.unit) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((title, vec![row])),
        }
    }
    groups
}

/// What tells a row from the others of its plot.
fn shortened(row: &Row, rows: &[&Row]) -> String {
    let case = row.case.split_once(", ").map_or(row.case.as_str(), |(_, rest)| rest);
    let several = rows.iter().filter(|other| other.case == row.case).count() > 1;
    let mut label = match &row.other {
        Some(other) if several => format!("{case} | {}", other.name),
        _ => case.to_owned(),
    };
    if label.chars().count() > 62 {
        label = label.chars().take(72).chain(['…']).collect();
    }
    label
}

fn table(html: &mut String, rows: &[Row]) {
    html.push_str("<table><caption>All figures</caption><thead><tr><th>case<th>what<th>unit<th>ours<th>range<th>held against<th>ratio<th>publication</tr></thead><tbody>\n");
    for row in rows {
        let ours = row
            .ours
            .map(|ours| (number(ours.median), format!("{} – {}", number(ours.low), number(ours.high))));
        let (ours, range) = ours.unwrap_or_else(|| ("no figure".to_owned(), String::new()));
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
    html.push_str("</tbody></table>\n");
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
        let figure = Figure { median: 61.5, low: 60.0, high: 62.0 };
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
