//! `ravelin show routes` and `ravelin show neighbours`.

use super::show::failure;
use crate::arguments::live::{ShowArguments, ShowChoice};
use crate::failure::Failure;
use crate::render;
use crate::render::quantity::{count, of};
use crate::render::table::{Side, table};
use gateway::control::{self, Asked};
use serde_json::Value;

/// Runs the command.
pub(super) fn run(arguments: &ShowArguments, json: bool) -> Result<(), Failure> {
    let routes = arguments.what == ShowChoice::Routes;
    let asked = if routes { Asked::Routes } else { Asked::Neighbours };
    let answer = control::ask(&arguments.socket.control, asked).map_err(failure)?;
    let view = &answer[if routes { "routes" } else { "neighbours" }];
    if json {
        return Ok(render::json(view)?);
    }
    let told = if routes { routes_of(view) } else { neighbours_of(view) };
    Ok(render::text(&told)?)
}

fn text(value: &Value, what: &str) -> String {
    value[what].as_str().unwrap_or_default().to_owned()
}

fn all<'a>(view: &'a Value, what: &str) -> impl Iterator<Item = &'a Value> {
    view[what].as_array().into_iter().flatten()
}

fn routes_of(view: &Value) -> String {
    let rows: Vec<Vec<String>> = all(view, "routes")
        .map(|route| {
            let state = match (route["used"].as_bool(), route["installed"].as_bool()) {
                (Some(true), Some(true)) => "",
                (Some(true), _) => "no room in the program",
                _ => "not used",
            };
            let way = match route["way"].as_str().unwrap_or_default() {
                "via" => format!("via {}", text(route, "via")),
                way => way.to_owned(),
            };
            vec![text(route, "to"), text(route, "source"), way, text(route, "interface"), state.to_owned()]
        })
        .collect();
    let shown = rows.len() as u64;
    let number = view["count"].as_u64().unwrap_or(0);
    let columns = ["to", "from", "way", "interface", ""].map(|name| (name, Side::Left));
    let more = match number.saturating_sub(shown) {
        0 => String::new(),
        more => format!("and {} more\n", count(more)),
    };
    let unmeant: Vec<Vec<String>> = all(view, "unmeant")
        .map(|route| vec![text(route, "to"), text(route, "instead"), text(route, "because")])
        .collect();
    let more_unmeant = view["unmeant_count"].as_u64().unwrap_or(0).saturating_sub(unmeant.len() as u64);
    let mut told = format!("{}\n\n{}{more}", of(number, "route"), table(&columns, rows));
    if !unmeant.is_empty() {
        let columns = [("to", Side::Left), ("instead", Side::Left), ("because", Side::Wrapped)];
        told += &format!("\nof the kernel, not followed:\n\n{}", table(&columns, unmeant));
        if more_unmeant > 0 {
            told += &format!("and {} more\n", count(more_unmeant));
        }
    }
    told
}

fn neighbours_of(view: &Value) -> String {
    let rows: Vec<Vec<String>> = all(view, "neighbours")
        .map(|known| {
            vec![
                known["port"].to_string(),
                text(known, "interface"),
                text(known, "address"),
                text(known, "state"),
                text(known, "mac"),
                format!("{:.1} s", known["seconds"].as_f64().unwrap_or(0.0)),
                count(known["queued"].as_u64().unwrap_or(0)),
            ]
        })
        .collect();
    let columns = [
        ("port", Side::Right),
        ("interface", Side::Left),
        ("address", Side::Left),
        ("state", Side::Left),
        ("Ethernet address", Side::Left),
        ("for", Side::Right),
        ("waiting", Side::Right),
    ];
    let account = &view["account"];
    let number = |what: &str| account[what].as_u64().unwrap_or(0);
    let mut fates: Vec<Vec<String>> = all(account, "fates")
        .map(|fate| {
            vec![text(fate, "name"), count(fate["packets"].as_u64().unwrap_or(0)), text(fate, "help")]
        })
        .collect();
    fates.push(vec![
        "waiting".to_owned(),
        count(number("waiting")),
        "its neighbour is being asked for, or more pieces are to come".to_owned(),
    ]);
    let fate_columns = [("", Side::Left), ("packets", Side::Right), ("what it means", Side::Wrapped)];
    format!(
        "{}\n\n{}\nof {} handed to control:\n\n{}\n{} of ICMP sent, {} withheld; {} refused by full tables; {} gave way to others\n",
        of(rows.len() as u64, "neighbour"),
        table(&columns, rows),
        of(number("handed"), "packet"),
        table(&fate_columns, fates),
        of(number("errors_sent"), "error"),
        count(number("errors_withheld")),
        of(number("entries_refused"), "entry"),
        of(number("neighbours_displaced"), "neighbour"),
    )
}
