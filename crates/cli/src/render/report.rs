//! The report of a run as tables for people who have never seen one.

use super::quantity::{bit_rate, bytes, count, of, packet_rate, seconds, share};
use super::table::{Side, table};
use engine::Report;
use ir::source::Sources;
use ir::{Program, Terminator};
use std::collections::{BTreeMap, BTreeSet};

/// The whole report of a run over a capture.
pub(crate) fn report(report: &Report, program: &Program, sources: &Sources) -> String {
    heading(report) + &body(report, program, sources) + &speed(report) + &ready(report)
}

/// The last account of a gateway that ran so many programs, one after the other.
pub(crate) fn live(report: &Report, programs: u64, program: &Program, sources: &Sources) -> String {
    let style = anstyle::Style::new().bold();
    let (name, packets) = (&report.setting.program, of(report.received.packets, "packet"));
    let (amount, time) = (bytes(report.received.bytes), seconds(report.seconds));
    let before = match programs {
        0 | 1 => "",
        _ => " and before it",
    };
    let mut text =
        format!("{style}{name}{style:#}{before} between live ports: {packets}, {amount}, in {time}\n");
    if programs > 1 {
        text += &format!(
            "{programs} programs ran one after the other; tables and counters are those of the last\n"
        );
    }
    format!("{text}\n{}{}", body(report, program, sources), speed(report))
}

/// All tables of a report.
fn body(report: &Report, program: &Program, sources: &Sources) -> String {
    let mut text = verdicts(report);
    let places = places(program, sources);
    text.push_str(&reasons("Dropped because of", &report.drops, report, program, &places));
    text.push_str(&reasons(
        "Handed to the control plane because of",
        &report.punts,
        report,
        program,
        &places,
    ));
    text.push_str(&ports(report));
    text.push_str(&tables(report));
    text.push_str(&counters(report));
    text.push_str(&events(report));
    text
}

/// Where each reason stands in the program, by name: files and lines in order.
type Places = BTreeMap<String, BTreeSet<(String, u32)>>;

fn places(program: &Program, sources: &Sources) -> Places {
    let mut places = Places::new();
    for block in program.functions.iter().flat_map(|function| &function.blocks) {
        let (Terminator::Drop(reason) | Terminator::Punt(reason)) = block.terminator else { continue };
        let Some(reason) = program.reasons.get(reason as usize) else { continue };
        let (line, _) = sources.line_column(block.span);
        let name = &sources.file(block.span.file).name;
        let file = name.rsplit('/').next().unwrap_or(name).to_owned();
        places.entry(reason.name.clone()).or_default().insert((file, line));
    }
    places
}

fn heading(report: &Report) -> String {
    let setting = &report.setting;
    let style = anstyle::Style::new().bold();
    let repeated = match (setting.repeat, setting.order.as_str()) {
        (1, _) => String::new(),
        (times, "each") => format!(", each packet {} times in a row", count(times)),
        (times, _) => format!(", all of it {} times", count(times)),
    };
    let (program, capture, amount) = (&setting.program, &setting.capture, bytes(report.received.bytes));
    let Some(filter) = &report.filter else {
        let packets = of(report.received.packets, "packet");
        return format!("{style}{program} over {capture}{style:#}: {packets}, {amount}{repeated}\n\n");
    };
    let packets = format!("{} of {}", count(report.received.packets), of(filter.ran.packets, "packet"));
    format!(
        "{style}{program} over {capture}{style:#}: {packets}, {amount}{repeated}\n  \
those that the filter `{}` holds for; all ran, and tables, counters, events and speed are of all\n\n",
        filter.text
    )
}

fn verdicts(report: &Report) -> String {
    let all = report.received.packets;
    let verdicts = &report.verdicts;
    let rows = [
        ("sent to one port", verdicts.send),
        ("flooded to all other ports", verdicts.flood),
        ("sent to a set of ports", verdicts.multicast),
        ("handed to the control plane", verdicts.punt),
        ("dropped", verdicts.drop),
    ]
    .into_iter()
    .filter(|(what, packets)| *packets > 0 || *what == "sent to one port" || *what == "dropped")
    .map(|(what, packets)| vec![what.into(), count(packets), share(packets, all)])
    .collect();
    let columns = [("What happened", Side::Left), ("packets", Side::Right), ("share", Side::Right)];
    format!("{}\n", table(&columns, rows))
}

fn reasons(
    title: &str,
    found: &BTreeMap<String, u64>,
    report: &Report,
    program: &Program,
    places: &Places,
) -> String {
    if found.is_empty() {
        return String::new();
    }
    let mut ordered: Vec<(&String, &u64)> = found.iter().collect();
    ordered.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let rows = ordered
        .into_iter()
        .map(|(name, &packets)| {
            let help = program.reasons.iter().find(|reason| reason.name == *name);
            vec![
                name.clone(),
                count(packets),
                share(packets, report.received.packets),
                help.map(|reason| reason.help.clone()).unwrap_or_default(),
                where_it_stands(places.get(name)),
            ]
        })
        .collect();
    let columns = [
        Side::Left.columns(&[title]),
        Side::Right.columns(&["packets", "share"]),
        Side::Wrapped.columns(&["which means"]),
        Side::Left.columns(&["where"]),
    ];
    format!("{}\n", table(&columns.concat(), rows))
}

/// `firewall.rav:32, 48`; of many places the first few.
fn where_it_stands(places: Option<&BTreeSet<(String, u32)>>) -> String {
    let Some(places) = places else { return String::new() };
    let mut text = String::new();
    let mut last = "";
    for (file, line) in places.iter().take(3) {
        let separator = if text.is_empty() { "" } else { ", " };
        let file_part = if file == last { String::new() } else { format!("{file}:") };
        text.push_str(&format!("{separator}{file_part}{line}"));
        last = file;
    }
    if places.len() > 3 {
        text.push_str(&format!(" and {} more", places.len() - 3));
    }
    text
}

fn ports(report: &Report) -> String {
    let rows = report
        .ports
        .iter()
        .map(|port| {
            vec![
                port.port.to_string(),
                count(port.received),
                bytes(port.received_bytes),
                count(port.transmitted),
                bytes(port.transmitted_bytes),
            ]
        })
        .collect();
    let columns =
        [Side::Left.columns(&["Port"]), Side::Right.columns(&["came in", "", "went out", ""])].concat();
    let lost = match report.outputs_lost {
        0 => String::new(),
        lost => format!("  {} for ports that do not exist were lost\n", of(lost, "copy or made packet")),
    };
    format!("{}{lost}\n", table(&columns, rows))
}

fn tables(report: &Report) -> String {
    if report.tables.is_empty() {
        return String::new();
    }
    let rows = report
        .tables
        .iter()
        .map(|(name, state)| {
            let mut row = vec![name.clone()];
            let figures = [
                state.entries,
                state.capacity,
                state.inserts,
                state.moves,
                state.expired,
                state.evictions,
                state.refused,
            ];
            row.extend(figures.map(count));
            row
        })
        .collect();
    let numbers = ["entries", "of at most", "inserted", "changed", "expired", "evicted", "refused"];
    let columns = [Side::Left.columns(&["Table"]), Side::Right.columns(&numbers)].concat();
    format!("{}\n", table(&columns, rows))
}

fn counters(report: &Report) -> String {
    let rows: Vec<Vec<String>> = report
        .counters
        .iter()
        .flat_map(|(name, cells)| cells.iter().map(move |cell| (name, cell)))
        .take(20)
        .map(|(name, cell)| vec![name.clone(), cell.cell.to_string(), count(cell.packets), bytes(cell.bytes)])
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let columns =
        [Side::Left.columns(&["Counter"]), Side::Right.columns(&["cell", "packets", "bytes"])].concat();
    let counted: usize = report.counters.values().map(Vec::len).sum();
    let more = match counted.saturating_sub(rows.len()) {
        0 => String::new(),
        more => format!("  and {more} more cells; --json shows all\n"),
    };
    format!("{}{more}\n", table(&columns, rows))
}

fn events(report: &Report) -> String {
    if report.events.is_empty() {
        return String::new();
    }
    let rows = report.events.iter().map(|(name, &raised)| vec![name.clone(), count(raised)]).collect();
    let lost = match report.events_lost {
        0 => String::new(),
        lost => format!("  {} were lost because too many were waiting\n", of(lost, "event")),
    };
    format!("{}{lost}\n", table(&[("Event", Side::Left), ("raised", Side::Right)], rows))
}

/// How packets went between the device and the host.
fn device(report: &Report) -> String {
    let Some(device) = &report.device else { return String::new() };
    let mut text = format!("  {} finished {}", device.name, of(device.finished, "packet"));
    let handed = device.finished + device.handed_back + device.run_again;
    if let Some(together) = handed.checked_div(device.handed_over) {
        text += &format!(" (handed over {together} at a time)");
    }
    for (packets, why) in [
        (device.handed_back, "handed back by it"),
        (device.run_again, "run again since a table had changed"),
        (device.not_asked, "not given to it"),
    ] {
        if packets > 0 {
            text += &format!(", {} {why}", of(packets, "packet"));
        }
    }
    if let Some(failure) = &device.failure {
        text += &format!(
            "\n  given up: {failure}; {} that it had, the processor ran",
            of(device.taken_back, "packet")
        );
        if device.given_up > 1 {
            text += &format!(" (and {} more)", of(device.given_up - 1, "worker"));
        }
    }
    text + "\n"
}

fn speed(report: &Report) -> String {
    let style = anstyle::Style::new().bold();
    format!(
        "  {style}{}{style:#} ({}; {} forwarded) through {}, {} in the packet loop\n{}",
        packet_rate(report.mpps),
        bit_rate(report.gbps),
        bit_rate(report.forwarded_gbps),
        match (report.back_end, &report.device) {
            (_, Some(_)) => "a device and native code",
            ("native", None) => "native code",
            (other, None) => other,
        },
        seconds(report.seconds),
        device(report),
    )
}

/// What had to be done before the first packet ran.
fn ready(report: &Report) -> String {
    format!(
        "  compiled in {}, made ready in {}, capture read in {}\n",
        seconds(report.compile_seconds),
        seconds(report.prepare_seconds),
        seconds(report.load_seconds),
    )
}
