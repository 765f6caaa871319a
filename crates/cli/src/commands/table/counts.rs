//! `ravelin table show --counts`: what the entries of a table of a running gateway have counted.

use super::live::{PART, document, failed};
use crate::failure::Failure;
use crate::render;
use crate::render::quantity::{bytes, moment, of};
use client::{EntryCountTold, TableClient, TableEntry, TableSchema, text};
use serde_json::json;
use std::collections::HashMap;

/// Prints the entries of a table with what they have counted, at one worker or at all together.
pub(super) fn show(
    client: &mut TableClient,
    number: u16,
    schema: &TableSchema,
    worker: Option<u16>,
    json: bool,
) -> Result<(), Failure> {
    let workers = worker.map_or(1..=client.schema().workers, |worker| worker..=worker);
    let mut sums: Vec<(u16, TableEntry, EntryCountTold)> = Vec::new();
    let mut places: HashMap<(TableEntry, usize), usize> = HashMap::new();
    for worker in workers {
        // A table of rules may hold an entry several times.
        let mut seen: HashMap<TableEntry, usize> = HashMap::new();
        let mut cursor = Vec::new();
        loop {
            let (counted, next) = client.counts(number, worker, PART as u32, cursor).map_err(failed)?;
            for counted in counted {
                let times = seen.entry(counted.entry.clone()).or_default();
                *times += 1;
                match places.get(&(counted.entry.clone(), *times)) {
                    Some(place) => sums[*place].2.add(counted.count),
                    None => {
                        places.insert((counted.entry.clone(), *times), sums.len());
                        sums.push((worker, counted.entry, counted.count));
                    }
                }
            }
            cursor = next;
            if cursor.is_empty() {
                break;
            }
        }
    }
    for (worker, entry, count) in sums {
        if json {
            let listed = client::ListedEntry { worker, entry };
            let mut shown = document(schema, &listed);
            for (name, value) in [
                ("packets", json!(count.packets)),
                ("bytes", json!(count.bytes)),
                ("first", json!(count.first)),
                ("last", json!(count.last)),
            ] {
                shown[name] = value;
            }
            render::line(&shown)?;
        } else {
            render::text(&format!("{}  // {}\n", text::entry(schema, &entry), shown(count)))?;
        }
    }
    Ok(())
}

/// What an entry has counted, for people.
fn shown(EntryCountTold { packets, bytes: number, first, last }: EntryCountTold) -> String {
    let times =
        first.zip(last).map(|(first, last)| format!(", first {}, last {}", moment(first), moment(last)));
    format!("{}, {}{}", of(packets, "packet"), bytes(number), times.unwrap_or_default())
}
