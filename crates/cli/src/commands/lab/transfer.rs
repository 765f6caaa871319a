//! The experiment `transfer` as people read it: a table of packet rates for each function, with a column for
//! each size of batch.

use crate::render::table::{Side, table};
use lab::{Experiment, Pivot};

/// The tables.
pub(super) fn text(experiment: &Experiment) -> String {
    let mut text = String::new();
    for pivot in lab::pivots(&experiment.rows, "packet rate") {
        let ladder = if pivot.is_ladder { ", the ladder" } else { "" };
        text.push_str(&format!(
            "\n  {}{ladder}: millions of packets a second\n{}",
            pivot.title,
            rates(&pivot)
        ));
    }
    for row in experiment.rows.iter().filter(|row| row.case.starts_with("wanted: ")) {
        if let (Some(ours), Some(other)) = (row.ours.as_ref(), &row.other) {
            let (case, what) = (&row.case, &row.what);
            text.push_str(&format!("\n  {case}, {what}: {:.1} Mpps of {:.0}", ours.median, other.median));
        }
    }
    text.push_str("\n\n  delays, bits a second and where the time goes: --json, --html\n");
    text
}

fn rates(pivot: &Pivot<'_>) -> String {
    let heads: Vec<String> = pivot.batches.iter().map(|batch| format!("batch {batch}")).collect();
    let mut columns = vec![("", Side::Wrapped)];
    columns.extend(heads.iter().map(|head| (head.as_str(), Side::Right)));
    columns.push(("", Side::Wrapped));
    let cells = pivot.ways.iter().map(|(way, rows)| {
        let rate = |row: &Option<&lab::Row>| match row.map(|row| row.ours.as_ref()) {
            Some(Some(ours)) => format!("{:.3}", ours.median),
            Some(None) => "–".to_owned(),
            None => String::new(),
        };
        let why = rows.iter().flatten().find(|row| row.ours.is_none()).map(|row| row.what.clone());
        let mut cells = vec![way.trim_start_matches("ladder: ").to_owned()];
        cells.extend(rows.iter().map(rate));
        cells.push(why.unwrap_or_default());
        cells
    });
    table(&columns, cells.collect())
}
