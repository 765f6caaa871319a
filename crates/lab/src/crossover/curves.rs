//! Plots of crossovers: packets a second by batch, and throughput and delay by load, all on logarithmic axes.

use super::rows::{CARRIED, DELAY, Named};
use crate::experiment::Row;
use crate::plot::{Curve, curves};

/// The plots of an experiment's rows, each with what it shows. One that cannot be drawn is left out; its
/// numbers are in the table.
pub(crate) fn plots(rows: &[Row]) -> Vec<(String, String)> {
    let mut names: Vec<&str> = Vec::new();
    for name in rows.iter().filter_map(|row| row.case.split(", ").next()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut drawn = Vec::new();
    for name in names {
        let own: Vec<&Row> = rows.iter().filter(|row| row.case.split(", ").next() == Some(name)).collect();
        let by_batch = by_batch(&own);
        if let Ok(svg) = curves(&by_batch, "packets in a batch", "Mpps") {
            let crossing = own.iter().find(|row| row.what.starts_with("the device is faster"));
            let crossing = crossing.map(|row| row.what.clone()).unwrap_or_default();
            drawn.push((format!("{name} by batch: {crossing}"), svg));
        }
        for (what, unit) in [(CARRIED, "Mpps done"), (DELAY, "median delay in µs")] {
            if let Ok(svg) = curves(&by_load(&own, what), "Mpps due", unit) {
                drawn.push((format!("{name} by load: {unit}"), svg));
            }
        }
    }
    drawn
}

/// The device's and the core's packet rates.
fn by_batch(rows: &[&Row]) -> Vec<Curve> {
    let (mut core, mut device) = (Vec::new(), Vec::new());
    for row in rows.iter().filter(|row| row.what == "packet rate") {
        let Some(batch) = number(&row.case, ", batch ") else { continue };
        device.extend(row.ours.as_ref().map(|figure| (batch, figure.median)));
        core.extend(row.other.as_ref().map(|figure| (batch, figure.median)));
    }
    vec![Curve::new("device", device), Curve::new("one core", core)]
}

/// What every policy comes to.
fn by_load(rows: &[&Row], what: &str) -> Vec<Curve> {
    // In the order of the colours of the plot by batch.
    let policies = [Named::Device, Named::Host, Named::Model];
    let of = |named: Named| {
        let own = rows.iter().filter(|row| row.what.starts_with(what) && row.case.ends_with(named.name()));
        let points = own.filter_map(|row| Some((number(&row.case, ", load ")?, row.ours.as_ref()?.median)));
        Curve::new(named.name(), points.collect())
    };
    policies.map(of).into()
}

/// The number behind some words.
fn number(case: &str, words: &str) -> Option<f64> {
    let (_, behind) = case.split_once(words)?;
    behind.split([' ', ',']).next()?.parse().ok()
}
