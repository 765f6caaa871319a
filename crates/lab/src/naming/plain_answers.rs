//! Answers that need no promise, beside NSD: how many a second of the server's time on processors.

use super::name_servers::{Asker, NameServerProcess, nsd};
use super::queries::{A, Told, ZONE, query};
use crate::experiment::{Better, Figure, Other, Row};
use crate::plan::LabPlan;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};

/// Names in the zone, each with an address.
const NAMES: u32 = 1_000;
/// Queries that are asked together, the next ones when all are answered.
const TOGETHER: usize = 64;

/// The rows.
pub(super) fn rows(plan: &LabPlan) -> Vec<Row> {
    let case = format!("plain answers, {TOGETHER} queries together");
    let what = "a second of the server's processor time";
    let place = nsd();
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    let time = Duration::from_millis(if plan.quick { 200 } else { 2_000 });
    let folder = tempfile::tempdir().map_err(|error| error.to_string());
    let started = folder.and_then(|folder| Ok((both(folder.path(), place.as_deref())?, folder)));
    let measured = started.and_then(|((own, nsd), _folder)| {
        for run in 0..plan.runs {
            // Both take turns, in the other order every other time.
            for turn in [run % 2 == 1, run % 2 == 0] {
                match (&nsd, turn) {
                    (Some(nsd), true) => others.push(rate(nsd, time)?),
                    (_, false) => ours.push(rate(&own, time)?),
                    (None, true) => {}
                }
            }
        }
        Ok(())
    });
    if let Err(why) = measured {
        return vec![Row::refused(&case, what, "k/s", &why)];
    }
    let row = Row::alone(&case, what, "k/s", Figure::of(ours), None);
    let other = Figure::of(others).map(|figure| Other::of("NSD", figure));
    let absent = Row::absent(&case, "beside NSD", "`nsd` is not installed");
    if other.is_some() { vec![row.against(other, Better::More)] } else { vec![row, absent] }
}

/// Our name server, and NSD where it is there, with the same zone.
fn both(folder: &Path, nsd: Option<&Path>) -> Result<(NameServerProcess, Option<NameServerProcess>), String> {
    let address = |number: u32| Ipv4Addr::from_bits(0xc000_0200 + number % 250);
    let mut file = "[[names.server]]\nname = \"ns1\"\naddresses = [\"192.0.2.53\"]\n".to_owned();
    let mut zone = format!(
        "$ORIGIN {ZONE}.\n$TTL 300\n@ SOA ns1 hostmaster 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.53\n"
    );
    for number in 0..NAMES {
        let address = address(number);
        file += &format!("[[names.record]]\nkind = \"A\"\nname = \"h{number}\"\naddress = \"{address}\"\n");
        zone += &format!("h{number} A {address}\n");
    }
    let path = folder.join("zone");
    fs::write(&path, zone).map_err(|error| error.to_string())?;
    let other = nsd.map(|program| NameServerProcess::nsd(program, folder, &path)).transpose()?;
    Ok((NameServerProcess::ours(folder, "plain", &file)?, other))
}

/// Thousands of answers in a second of its time on processors.
fn rate(server: &NameServerProcess, time: Duration) -> Result<f64, String> {
    let told = |error: std::io::Error| error.to_string();
    let asker = Asker::new(Ipv4Addr::LOCALHOST).map_err(told)?;
    let name = |number: u32| query(number as u16, &format!("h{}", number % NAMES), A, &Told::default());
    let queries: Vec<Vec<u8>> = (0..NAMES / TOGETHER as u32 * TOGETHER as u32).map(name).collect();
    let mut answered = 0;
    let (begin, before) = (Instant::now(), server.busy());
    while begin.elapsed() < time {
        for group in queries.chunks(TOGETHER) {
            let count = asker
                .ask_together(group, server.at)
                .map_err(|error| format!("a query is not answered: {error}"))?;
            if count != group.len() {
                return Err("not every reply holds an address".to_owned());
            }
            answered += count;
        }
    }
    let busy = server.busy().saturating_sub(before);
    if busy.is_zero() {
        return Err("the system does not tell what a process has been on processors".to_owned());
    }
    Ok(answered as f64 / busy.as_secs_f64() / 1e3)
}
