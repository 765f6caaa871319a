//! The part of the page about schedules: delays over load by schedule, measured and simulated, what is
//! carried at saturation, and everything side by side.

use super::rows::{DONE, MEDIAN, MPPS, SPREAD, WITHIN};
use crate::experiment::Row;
use crate::page::{direction, escaped};
use crate::plot::{Curve, Entry, curves, plot};
use std::fmt::Write;

/// Where a row belongs: its device, the load as a part and in words, and the schedule.
struct Place<'a> {
    device: &'a str,
    pattern: &'a str,
    /// None at saturation.
    load: Option<f64>,
    schedule: &'a str,
}

impl<'a> Place<'a> {
    fn of(row: &'a Row) -> Option<Place<'a>> {
        let parts: Vec<&str> = row.case.split(", ").collect();
        match parts[..] {
            [device, pattern, load, schedule] => {
                let load = load.strip_prefix("load ")?.split(' ').next()?.parse().ok();
                load.map(|load| Place { device, pattern, load: Some(load), schedule })
            }
            [device, "saturation", schedule] => {
                Some(Place { device, pattern: "saturation", load: None, schedule })
            }
            _ => None,
        }
    }
}

/// Plots, and a table in which what was measured and what was simulated stand side by side.
pub(crate) fn section(rows: &[Row]) -> String {
    let placed: Vec<(Place<'_>, &Row)> = rows.iter().filter_map(|row| Some((Place::of(row)?, row))).collect();
    let mut html = String::from(
        "<p>Points and lines are measured; hollow points and dashed lines of the same colour are simulated. A load is a part of what the fixed batch \
carries at saturation.</p>\n",
    );
    for device in distinct(placed.iter().map(|(place, _)| place.device)) {
        let own: Vec<&(Place<'_>, &Row)> =
            placed.iter().filter(|(place, _)| place.device == device).collect();
        let _ = writeln!(html, "<h3>{}</h3>", escaped(device));
        for what in [MEDIAN, WITHIN[1].1, SPREAD] {
            // A plot that cannot be drawn is left out; its numbers are in the table.
            if let Ok(svg) = curves(&by_load(&own, what), "load", &format!("{what} in µs")) {
                let caption = format!("{device}: {what}, Poisson arrivals");
                let _ =
                    writeln!(html, "<figure>{svg}<figcaption>{}</figcaption></figure>", escaped(&caption));
            }
        }
        let saturated: Vec<&Row> = own
            .iter()
            .filter(|(place, row)| place.load.is_none() && row.what == DONE)
            .map(|(_, row)| *row)
            .collect();
        if !saturated.is_empty()
            && let Ok(svg) = plot(&Entry::of_rows(&saturated).0, MPPS)
        {
            let caption = format!(
                "{device}: packets done at saturation in Mpps, measured and simulated; higher is better"
            );
            let _ = writeln!(html, "<figure>{svg}<figcaption>{}</figcaption></figure>", escaped(&caption));
        }
        html.push_str(&side_by_side(&own));
    }
    html.push_str(&bursts(rows));
    html
}

/// Bars of bursts on a kernel that keeps running, and of launches, by size.
fn bursts(rows: &[Row]) -> String {
    let mut html = String::new();
    let own: Vec<&Row> = rows.iter().filter(|row| row.case.contains(", bursts, ")).collect();
    if own.iter().any(|row| row.ours.is_some()) {
        html.push_str("<h3>Bursts</h3>\n");
    }
    for what in distinct(own.iter().map(|row| row.what.as_str())) {
        let same: Vec<&Row> =
            own.iter().copied().filter(|row| row.what == what && row.ours.is_some()).collect();
        let Some(first) = same.first() else { continue };
        let (entries, shared) = Entry::of_rows(&same);
        if let Ok(svg) = plot(&entries, &first.unit) {
            let (unit, better, of) = (&first.unit, direction(&same), shared.join(", "));
            let caption = format!("Bursts: {what} in {unit}{better}; {of}");
            let _ = writeln!(html, "<figure>{svg}<figcaption>{}</figcaption></figure>", escaped(&caption));
        }
    }
    html
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

/// What every schedule comes to under Poisson arrivals, measured and simulated.
fn by_load(rows: &[&(Place<'_>, &Row)], what: &str) -> Vec<Curve> {
    let mut drawn = Vec::new();
    for schedule in distinct(rows.iter().map(|(place, _)| place.schedule)) {
        let points = |value: &dyn Fn(&Row) -> Option<f64>| -> Vec<(f64, f64)> {
            let own = rows.iter().filter(|(place, row)| {
                place.schedule == schedule && place.pattern == "Poisson" && row.what == what
            });
            own.filter_map(|(place, row)| Some((place.load?, value(row)?))).collect()
        };
        drawn.push(Curve::new(schedule, points(&|row| row.ours.as_ref().map(|ours| ours.median))));
        let simulated = points(&|row| row.other.as_ref().map(|other| other.median));
        drawn.push(Curve { dashed: true, ..Curve::new(schedule, simulated) });
    }
    drawn
}

/// A line a load and schedule: what was measured, and in brackets what was simulated.
fn side_by_side(rows: &[&(Place<'_>, &Row)]) -> String {
    let columns = [DONE, MEDIAN, WITHIN[0].1, WITHIN[1].1, WITHIN[2].1, SPREAD];
    let mut html = String::from(
        "<table><caption>Measured, and in brackets simulated: Mpps done, and delays in µs</caption><thead><tr><th>packets come<th>load<th>schedule\
<th>done<th>middle<th>90 %<th>99 %<th>99.9 %<th>middle half</tr></thead><tbody>\n",
    );
    let lines = distinct(rows.iter().map(|(_, row)| row.case.as_str()));
    for case in lines {
        let own: Vec<&Row> = rows.iter().map(|(_, row)| *row).filter(|row| row.case == case).collect();
        let Some(place) = own.first().and_then(|row| Place::of(row)) else { continue };
        let load = place.load.map_or_else(String::new, |load| format!("{load:.2}"));
        let _ = write!(html, "<tr><td>{}<td>{load}<td>{}", escaped(place.pattern), escaped(place.schedule));
        for what in columns {
            let row = own.iter().find(|row| row.what == what);
            let shown = |value: f64| if what == DONE { format!("{value:.3}") } else { format!("{value:.0}") };
            let ours =
                row.and_then(|row| row.ours.as_ref()).map(|ours| shown(ours.median)).unwrap_or_default();
            let other = row.and_then(|row| row.other.as_ref());
            let other = other.map(|other| format!(" ({})", shown(other.median))).unwrap_or_default();
            let _ = write!(html, "<td class=\"number\">{ours}{other}");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table>\n");
    html
}
