//! `ravelin show routes` and `ravelin show neighbours`.

use crate::arguments::live::{ShowArguments, ShowChoice};
use crate::failure::Failure;
use crate::render;
use crate::render::answer::{list, number, text, whole};
use crate::render::quantity::{count, of};
use crate::render::table::{Side, table};
use gateway::control::{self, Asked};
use serde_json::Value;

/// Runs the command.
pub(super) fn run(arguments: &ShowArguments, json: bool) -> Result<(), Failure> {
    let routes = arguments.what == ShowChoice::Routes;
    let asked = if routes { Asked::Routes } else { Asked::Neighbours };
    let answer = control::ask(&arguments.reached.socket.control, asked)?;
    let view = &answer[if routes { "routes" } else { "neighbours" }];
    if json {
        return Ok(render::json(view)?);
    }
    let told = if routes { routes_of(view) } else { neighbours_of(view) };
    Ok(render::text(&told)?)
}

fn words(value: &Value, name: &str) -> String {
    text(value, name).to_owned()
}

fn routes_of(view: &Value) -> String {
    let rows: Vec<Vec<String>> = list(view, "routes")
        .iter()
        .flat_map(|route| {
            let state = match (route["used"].as_bool(), route["installed"].as_bool()) {
                (Some(true), Some(true)) => "",
                (Some(true), _) => "no room in the program",
                _ => "not used",
            };
            let way = match text(route, "way") {
                "via" => format!("via {}", words(route, "via")),
                way => way.to_owned(),
            };
            let own = vec![
                words(route, "to"),
                words(route, "source"),
                way,
                words(route, "interface"),
                state.to_owned(),
            ];
            // Each of several routers on a line of its own.
            let hops = list(route, "hops").iter().map(|hop| {
                let state = if hop["used"] == true { "" } else { "not known" };
                let way = format!("via {}", words(hop, "via"));
                vec![String::new(), String::new(), way, words(hop, "interface"), state.to_owned()]
            });
            std::iter::once(own).chain(hops).collect::<Vec<_>>()
        })
        .collect();
    let shown = list(view, "routes").len() as u64;
    let routes = whole(view, "count");
    let columns = ["to", "from", "way", "interface", ""].map(|name| (name, Side::Left));
    let more = match routes.saturating_sub(shown) {
        0 => String::new(),
        more => format!("and {} more\n", count(more)),
    };
    let unmeant: Vec<Vec<String>> = list(view, "unmeant")
        .iter()
        .map(|route| vec![words(route, "to"), words(route, "instead"), words(route, "because")])
        .collect();
    let more_unmeant = whole(view, "unmeant_count").saturating_sub(unmeant.len() as u64);
    let coming = match whole(view, "changes_on_their_way") {
        0 => String::new(),
        coming => format!("; {} on their way to the program", of(coming, "change")),
    };
    let mut told = format!("{}{coming}\n\n{}{more}", of(routes, "route"), table(&columns, rows));
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
    let rows: Vec<Vec<String>> = list(view, "neighbours")
        .iter()
        .map(|known| {
            vec![
                known["port"].to_string(),
                words(known, "interface"),
                words(known, "address"),
                words(known, "state"),
                words(known, "mac"),
                format!("{:.1} s", number(known, "seconds")),
                count(whole(known, "queued")),
            ]
        })
        .collect();
    let columns = [
        Side::Right.columns(&["port"]),
        Side::Left.columns(&["interface", "address", "state", "Ethernet address"]),
        Side::Right.columns(&["for", "waiting"]),
    ]
    .concat();
    let account = &view["account"];
    let mut fates: Vec<Vec<String>> = list(account, "fates")
        .iter()
        .map(|fate| vec![words(fate, "name"), count(whole(fate, "packets")), words(fate, "help")])
        .collect();
    fates.push(vec![
        "waiting".to_owned(),
        count(whole(account, "waiting")),
        "its neighbour is being asked for, or more pieces are to come".to_owned(),
    ]);
    let fate_columns = [("", Side::Left), ("packets", Side::Right), ("what it means", Side::Wrapped)];
    format!(
        "{}\n\n{}\nof {} handed to control:\n\n{}\n{} of ICMP sent, {} withheld; {} refused by full tables; {} gave way to others\n",
        of(rows.len() as u64, "neighbour"),
        table(&columns, rows),
        of(whole(account, "handed"), "packet"),
        table(&fate_columns, fates),
        of(whole(account, "errors_sent"), "error"),
        count(whole(account, "errors_withheld")),
        of(whole(account, "entries_refused"), "entry"),
        of(whole(account, "neighbours_displaced"), "neighbour"),
    )
}
