//! The experiment as a part of the page: what a batch brings, beside the original's figures; delays; where
//! the time goes; the ladder.

use super::charts::{Stack, Step, ladder, short, stacks};
use super::original::{self, Of};
use super::rows::{DELAYS, LEGACY, PARTS, PROCESSING, RATE};
use super::view::{LADDER, Pivot, Placed, WANTED, pivots};
use crate::experiment::Row;
use crate::page::escaped;
use crate::plot::{Curve, curves};
use std::fmt::Write;

/// How the names of ways begin, in the order of the bars.
const WAYS: [&str; 6] = ["one core", "all ", "1 ", "2 ", "3 ", "4 "];
/// Colours of the parts of a batch.
const PART_COLOURS: [&str; 6] = ["#d98426", "#2f81d6", "#2da44e", "#6cb6ff", "#8b949e", "#b08800"];
const STYLE: &str = "<style>th.number { text-align: right; } .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; } .keys { font-size: 13px; } \
.keys span { white-space: nowrap; margin-right: 1rem; } .keys i { display: inline-block; width: 1.1rem; height: .22rem; margin: 0 .35rem .25rem 0; } \
@media (max-width: 40rem) { .pair { grid-template-columns: 1fr; } }</style>\n";

/// The pictures and tables of the experiment.
pub(crate) fn section(rows: &[Row]) -> String {
    let mut html = String::from(STYLE);
    let functions = named(rows);
    for function in &functions {
        let own = |what: &str| {
            let own = pivots(rows, what).into_iter().filter(|pivot| {
                !pivot.is_ladder
                    && pivot.title.starts_with(&format!("{function}, "))
                    && pivot.ways.iter().any(|(way, _)| way.starts_with("one core"))
            });
            own.collect::<Vec<_>>()
        };
        let _ = writeln!(html, "<h3>{}</h3>", escaped(function));
        let compared = if *function == "firewall" {
            "; dashed: what the original called Gbit/s, as the packets that it was"
        } else {
            ""
        };
        let rates = own(RATE).into_iter().map(|pivot| (pivot.title.clone(), over_batches(&pivot)));
        let told = format!("Packets a second, by the size of a batch{compared}");
        figure(&mut html, rates.collect(), "million packets a second", &told);
        // Of our tables alone: the second of the two.
        let delays = [DELAYS[1].0, DELAYS[2].0].into_iter().filter_map(|what| {
            let last = own(what).pop()?;
            Some((format!("{}: {what}", last.title), over_batches(&last)))
        });
        let told = "How long a packet takes, from when it is fetched until its verdict is known";
        figure(&mut html, delays.collect(), "µs", told);
        parts(&mut html, rows, function);
    }
    ladders(&mut html, rows);
    wanted(&mut html, rows);
    legacy(&mut html, rows);
    for (what, unit) in [
        (RATE, "millions of packets a second"),
        (PROCESSING, "µs"),
        (DELAYS[1].0, "µs"),
        (DELAYS[2].0, "µs"),
        (DELAYS[3].0, "µs"),
    ] {
        let _ = writeln!(html, "<details><summary>All figures: {}, in {unit}</summary>", escaped(what));
        pivots(rows, what).iter().for_each(|pivot| table(&mut html, pivot));
        html.push_str("</details>\n");
    }
    html.push_str("<p>The lowest and highest of the runs, least delays, bit rates and every part of every batch are in the JSON.</p>\n");
    html
}

/// The functions that there are, in order.
fn named(rows: &[Row]) -> Vec<&str> {
    let mut functions: Vec<&str> = Vec::new();
    for placed in rows.iter().filter_map(Placed::of) {
        if !functions.contains(&placed.function) {
            functions.push(placed.function);
        }
    }
    functions
}

/// The curves of a table: one for each way, over the sizes of batches.
fn over_batches(pivot: &Pivot<'_>) -> Vec<Curve> {
    let curve = |(way, rows): &(&str, Vec<Option<&Row>>)| {
        let points = pivot.batches.iter().zip(rows);
        let points =
            points.filter_map(|(batch, row)| Some((*batch as f64, row.as_ref()?.ours.as_ref()?.median)));
        Curve::new(way, points.filter(|(_, value)| *value > 0.0).collect())
    };
    let mut all: Vec<Curve> = pivot.ways.iter().map(curve).collect();
    // Beside its own algorithms and rules stands what it measured, at all of its batches.
    if pivot.title == "firewall, the original's algorithms" {
        let of = [
            ("one core", Of::Host(4)),
            ("1 ", Of::Device(1)),
            ("2 ", Of::Device(2)),
            ("3 ", Of::Device(3)),
            ("4 ", Of::Device(4)),
            ("sockets: one core", Of::Host(1)),
        ];
        for (begin, of) in of {
            let points = original::BATCHES.iter().filter_map(|batch| {
                Some((*batch as f64, original::packets(original::megabytes(of, *batch)?)))
            });
            let name = pivot.ways.iter().find(|(way, _)| way.starts_with(begin));
            let name = name.map_or(begin, |(way, _)| way).to_owned();
            all.push(Curve { name, points: points.collect(), dashed: true });
        }
    }
    all
}

/// Curves over batches side by side, each with its title. What cannot be drawn is left out; its numbers are
/// in the tables.
fn figure(html: &mut String, charts: Vec<(String, Vec<Curve>)>, unit: &str, caption: &str) {
    let mut drawn = String::new();
    for (title, chart) in charts {
        if let Ok(svg) = curves(&chart, "packets of a batch", unit) {
            let _ = write!(drawn, "<div><h4>{}</h4>{svg}</div>", escaped(&title));
        }
    }
    if !drawn.is_empty() {
        let caption = escaped(caption);
        let _ = writeln!(
            html,
            "<figure><div class=\"pair\">{drawn}</div><figcaption>{caption}</figcaption></figure>"
        );
    }
}

/// Where the time of batches goes, by iteration.
fn parts(html: &mut String, rows: &[Row], function: &str) {
    let algorithm = if function == "firewall" { "the original's algorithms" } else { "our tables" };
    let placed: Vec<Placed<'_>> = rows
        .iter()
        .filter_map(Placed::of)
        .filter(|placed| placed.function == function && placed.algorithm == algorithm && !placed.is_step())
        .collect();
    let mut batches: Vec<usize> = placed.iter().map(|placed| placed.batch).collect();
    batches.sort_unstable();
    batches.dedup();
    // The smallest, one in the middle, and the largest.
    let shown = [batches.first(), batches.get(batches.len() / 2), batches.last()];
    let mut bars = Vec::new();
    for batch in shown.into_iter().flatten() {
        let mut is_apart = !bars.is_empty();
        for way in WAYS {
            let own = || placed.iter().filter(|placed| placed.batch == *batch && placed.way.starts_with(way));
            let part = |name: &str| {
                let what = format!("part: {name}");
                own()
                    .find(|placed| placed.row.what == what)
                    .and_then(|placed| placed.row.ours.as_ref())
                    .map_or(0.0, |ours| ours.median)
            };
            let sizes: Vec<(&str, f64)> =
                PARTS.iter().zip(PART_COLOURS).map(|((name, _), colour)| (colour, part(name))).collect();
            let sum: f64 = sizes.iter().map(|(_, size)| size).sum();
            if let (Some(first), true) = (own().next(), sum > 0.0) {
                let label = format!("{batch} packets, {}", first.way);
                let note = format!("{} µs, {} ns a packet", short(sum), short(sum * 1e3 / *batch as f64));
                bars.push(Stack { is_apart, label, note, parts: sizes });
                is_apart = false;
            }
        }
    }
    let parts = PARTS.iter().zip(PART_COLOURS);
    let keys: String = parts
        .map(|((name, _), colour)| format!("<span><i style=\"background:{colour}\"></i>{name}</span>"))
        .collect();
    let _ = writeln!(
        html,
        "<figure>{}<p class=\"keys\">{keys}</p><figcaption>Where the time of a batch goes: {}, {algorithm}. Cores have their work under kernel, and what they wait for each other under driver</figcaption></figure>",
        stacks(&bars),
        escaped(function)
    );
}

/// The ladders, one picture for each function and batch.
fn ladders(html: &mut String, rows: &[Row]) {
    let all: Vec<Pivot<'_>> = pivots(rows, RATE).into_iter().filter(|pivot| pivot.is_ladder).collect();
    if all.is_empty() {
        return;
    }
    html.push_str("<h3 id=\"ladder\">The ladder</h3>\n<p>One thing at a time is varied from the setting that was best; the iterations of the original stand beside.</p>\n");
    for pivot in &all {
        for (column, batch) in pivot.batches.iter().enumerate() {
            let mut groups: Vec<(String, Vec<Step>)> = Vec::new();
            let mut steps: Vec<(&str, &Row)> =
                pivot.ways.iter().filter_map(|(way, rows)| Some((*way, rows[column]?))).collect();
            // The setting that was best has other names at other batches; rows are in the order of the
            // ladder.
            steps.sort_by_key(|(_, row)| std::ptr::from_ref::<Row>(row).addr());
            for (way, row) in steps {
                let told = way.strip_prefix(LADDER).unwrap_or(way);
                let (heading, label) = told.split_once(" = ").unwrap_or(("", told));
                let is_base = label.ends_with(" *");
                let value = match &row.ours {
                    Some(ours) => Ok([ours.median, ours.low, ours.high]),
                    None => Err(reason(&row.what)),
                };
                let step = Step { label: label.trim_end_matches(" *").to_owned(), is_base, value };
                match groups.iter_mut().find(|(known, _)| known == heading) {
                    Some((_, steps)) => steps.push(step),
                    None => groups.push((heading.to_owned(), vec![step])),
                }
            }
            let _ = writeln!(
                html,
                "<figure>{}<figcaption>{}, {batch} packets at once; dark: the setting from which the others differ in one thing</figcaption></figure>",
                ladder(&groups, "Mpps"),
                escaped(&pivot.title)
            );
        }
    }
}

/// Why there is no figure, as short as there is room for.
fn reason(what: &str) -> String {
    let why = what.split_once(", since ").map_or(what, |(_, why)| why);
    let why = why.split_once("cannot travel as asked for: ").map_or(why, |(_, why)| why);
    match why.char_indices().nth(125) {
        Some((end, _)) => format!("{}…", &why[..end]),
        None => why.to_owned(),
    }
}

/// Rates that are to be reached.
fn wanted(html: &mut String, rows: &[Row]) {
    let wanted: Vec<&Row> = rows.iter().filter(|row| row.case.starts_with(WANTED)).collect();
    if wanted.is_empty() {
        return;
    }
    html.push_str("<h3>Rates that are wanted</h3>\n<table><thead><tr><th>of<th>how<th class=\"number\">wanted, Mpps<th class=\"number\">measured<th class=\"number\">range</tr></thead><tbody>\n");
    for row in wanted {
        let aim = row.other.as_ref().map_or_else(String::new, |other| short(other.median));
        let ours = row.ours.as_ref().map_or(("none".to_owned(), String::new()), |ours| {
            (short(ours.median), format!("{} – {}", short(ours.low), short(ours.high)))
        });
        let _ = writeln!(
            html,
            "<tr><td>{}<td>{}<td class=\"number\">{aim}<td class=\"number\">{}<td class=\"number\">{}</tr>",
            escaped(row.case.trim_start_matches(WANTED)),
            escaped(&row.what),
            ours.0,
            ours.1
        );
    }
    html.push_str("</tbody></table>\n");
}

/// Ours in the original's unit, and its figures.
fn legacy(html: &mut String, rows: &[Row]) {
    let all = pivots(rows, LEGACY);
    let Some(pivot) =
        all.iter().find(|pivot| !pivot.is_ladder && pivot.title == "firewall, the original's algorithms")
    else {
        return;
    };
    html.push_str(
        "<h3>In the original's unit</h3>\n<p>What the original called Gbit/s are millions of bytes a second: packets of 64 bytes, divided by 10<sup>6</sup>. Of each pair the upper figure is ours, the \
lower one the original's on its laptop of 2012.</p>\n<table><thead><tr><th>MB/s",
    );
    pivot.batches.iter().for_each(|batch| {
        let _ = write!(html, "<th class=\"number\">{batch}");
    });
    html.push_str("</tr></thead><tbody>\n");
    for (way, rows) in &pivot.ways {
        let _ = write!(html, "<tr><td>{}", escaped(way));
        for row in rows {
            let ours = row
                .and_then(|row| row.ours.as_ref())
                .map_or_else(|| "–".to_owned(), |ours| short(ours.median));
            let paper = row.and_then(|row| row.paper).map_or_else(|| "–".to_owned(), short);
            let _ = write!(html, "<td class=\"number\">{ours}<br>{paper}");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table>\n");
}

fn table(html: &mut String, pivot: &Pivot<'_>) {
    let _ = write!(html, "<table><caption>{}</caption><thead><tr><th>", escaped(&pivot.title));
    pivot.batches.iter().for_each(|batch| {
        let _ = write!(html, "<th class=\"number\">{batch}");
    });
    html.push_str("</tr></thead><tbody>\n");
    for (way, rows) in &pivot.ways {
        let _ = write!(html, "<tr><td>{}", escaped(way));
        for row in rows {
            match row {
                Some(row) => match &row.ours {
                    Some(ours) => {
                        let _ = write!(html, "<td class=\"number\">{}", short(ours.median));
                    }
                    None => {
                        let _ = write!(html, "<td title=\"{}\">none", escaped(&row.what));
                    }
                },
                None => html.push_str("<td>"),
            }
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table>\n");
}
