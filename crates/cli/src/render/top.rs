//! The picture of `ravelin top`: what a gateway did in one second, beside what it did in the minutes before.
//!
//! ```text
//! +--------------------------------------------+
//! | program, generation, rates                 |
//! | packets received ▁▂▃ | packets dropped ▁▂▃ |
//! | ports, stages        | stops and latency   |
//! | drops by reason, with place                |
//! | tables                                     |
//! | keys                                       |
//! +--------------------------------------------+
//! ```

use super::answer::{Interval, list, number, text, whole};
use super::quantity::{count, seconds, share};
use super::seen::stage_name;
use engine::value::scaled;
use ports::live::{LossKind, ReceiveLosses, SendLosses};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Row, Sparkline, Table};
use serde_json::Value;

/// The least rows for reasons, with their headings.
const REASONS: u16 = 5;

/// What a gateway did in one interval.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    interval: Interval,
    /// Where the time went in it; null where that was not measured.
    measured: Value,
}

impl Sample {
    /// What happened between two pictures.
    pub(crate) fn new(before: &Value, now: Value, measured: Value) -> Sample {
        Sample { interval: Interval::new(before.clone(), now), measured }
    }

    /// By how much the number at a place grew in a second.
    fn rate(&self, place: &str) -> f64 {
        self.interval.per_second(place)
    }

    fn lost(&self) -> f64 {
        (0..self.interval.ports()).map(|port| self.lost_at(port)).sum()
    }

    fn lost_at(&self, port: usize) -> f64 {
        let counts = ReceiveLosses::default().counts().into_iter().chain(SendLosses::default().counts());
        let whys = counts.filter(|(_, kind, _)| *kind == LossKind::Lost);
        whys.map(|(why, ..)| self.rate(&format!("/ports/{port}/{why}"))).sum()
    }

    /// Everything that is shown, for programs.
    pub(crate) fn document(&self) -> Value {
        let Interval { now, seconds, .. } = &self.interval;
        let rates = |kind: &str| -> Value {
            let kind = format!("/report/{kind}");
            let names = self.interval.members(&kind);
            names
                .map(|(name, _)| (name.clone(), self.rate(&format!("{kind}/{}", escaped(name))).into()))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let ports: Vec<Value> = (0..self.interval.ports())
            .map(|port| {
                let rate = |what: &str| self.rate(&format!("/report/ports/{port}/{what}"));
                serde_json::json!({
                    "port": port + 1,
                    "interface": now["ports"][port]["interface"],
                    "received": rate("received"),
                    "received_bytes": rate("received_bytes"),
                    "transmitted": rate("transmitted"),
                    "transmitted_bytes": rate("transmitted_bytes"),
                })
            })
            .collect();
        serde_json::json!({
            "seconds": seconds,
            "generation": now["generation"],
            "received": self.rate("/report/received/packets"),
            "received_bytes": self.rate("/report/received/bytes"),
            "forwarded": self.rate("/report/forwarded/packets"),
            "dropped": self.rate("/report/verdicts/drop"),
            "punted": self.rate("/report/verdicts/punt"),
            "lost": self.lost(),
            "drops": rates("drops"),
            "punts": rates("punts"),
            "ports": ports,
            "tables": now["report"]["tables"],
            "measured": self.measured,
        })
    }
}

/// A name as a part of a JSON pointer (RFC 6901).
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Packets a second in few letters.
fn packets(rate: f64) -> String {
    scaled(rate, 1000.0, &["/s", "k/s", "M/s"])
}

fn bits(bytes: f64) -> String {
    scaled(bytes * 8.0, 1000.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s"])
}

/// What is on the screen.
pub(crate) struct View<'a> {
    /// What is known, oldest first.
    pub(crate) samples: &'a [Sample],
    /// How many samples before the last one is shown.
    pub(crate) back: usize,
    /// Whether the picture stands still.
    pub(crate) paused: bool,
    /// Whether keys are explained.
    pub(crate) help: bool,
    /// Why there is nothing new.
    pub(crate) trouble: Option<&'a str>,
}

/// Draws it.
pub(crate) fn draw(frame: &mut Frame<'_>, view: &View<'_>) {
    let area = frame.area();
    let Some(last) = view.samples.len().checked_sub(1 + view.back) else {
        let words = view.trouble.unwrap_or("the first second is being measured …");
        frame.render_widget(Paragraph::new(words), area);
        return;
    };
    let sample = &view.samples[last];
    let named = |what: &str| sample.interval.members(&format!("/report/{what}")).count() as u16;
    let ports = sample.interval.ports() as u16;
    // The dearest stages of the program stand below the ports, as many as leave room for the reasons.
    let costs = stage_rows(sample);
    let wanted = ports + 2 + if costs.is_empty() { 0 } else { costs.len() as u16 + 2 };
    let least = if named("tables") == 0 { 0 } else { 3 };
    let room = area.height.saturating_sub(2 + 3 + least + 1 + REASONS);
    let middle = wanted.min(room).clamp(10, 24).max(ports.min(12) + 2);
    // Why packets were dropped is what somebody looks for; tables have what is left, and one line at least
    // where there is room for both.
    let left = area.height.saturating_sub(2 + 3 + middle + 1);
    let reasons = (named("drops") + named("punts") + 2).max(3);
    let tables = match named("tables") {
        0 => 0,
        _ if left < 6 => 0,
        tables => (tables + 2).min(left.saturating_sub(reasons).max(3)),
    };
    let rows = [
        Constraint::Length(2),
        Constraint::Length(3),
        Constraint::Length(middle),
        Constraint::Min(0),
        Constraint::Length(tables),
        Constraint::Length(1),
    ];
    let [head, lines, middle, drops, table, foot] = Layout::vertical(rows).areas(area);
    heading(frame, head, sample);
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(lines);
    let history = &view.samples[..=last];
    sparkline(
        frame,
        left,
        "received",
        history,
        &|sample| sample.rate("/report/received/packets"),
        Color::Green,
    );
    let gone = |sample: &Sample| sample.rate("/report/verdicts/drop") + sample.lost();
    sparkline(frame, right, "dropped and lost", history, &gone, Color::Red);
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Length(35)]).areas(middle);
    let [left, below] = Layout::vertical([Constraint::Length(ports + 2), Constraint::Min(0)]).areas(left);
    port_table(frame, left, sample);
    if below.height > 2 && !costs.is_empty() {
        // Its heading does not run into what stands beside it.
        stages(frame, Rect { width: below.width.saturating_sub(1), ..below }, costs);
    }
    stops(frame, right, sample);
    why(frame, drops, sample);
    if tables > 0 {
        fill(frame, table, sample);
    }
    footer(frame, foot, view);
    if view.help {
        help(frame, area);
    }
}

fn heading(frame: &mut Frame<'_>, area: Rect, sample: &Sample) {
    let now = &sample.interval.now;
    let program = text(&now["report"], "program").rsplit('/').next().unwrap_or_default();
    let age = seconds(number(now, "seconds"));
    let first = format!("{program}  generation {}  for {age}", now["generation"]);
    let second = format!(
        "in {} {}   out {}   dropped {}   punted {}   lost {}",
        packets(sample.rate("/report/received/packets")),
        bits(sample.rate("/report/received/bytes")),
        packets(sample.rate("/report/forwarded/packets")),
        packets(sample.rate("/report/verdicts/drop")),
        packets(sample.rate("/report/verdicts/punt")),
        packets(sample.lost()),
    );
    frame.render_widget(Paragraph::new(vec![Line::from(first).bold(), Line::from(second)]), area);
}

fn titled(title: String) -> Block<'static> {
    Block::new().borders(Borders::TOP).border_style(Style::new().fg(Color::DarkGray)).title(title)
}

fn sparkline(
    frame: &mut Frame<'_>,
    area: Rect,
    name: &str,
    history: &[Sample],
    of: &dyn Fn(&Sample) -> f64,
    colour: Color,
) {
    let width = usize::from(area.width.saturating_sub(1));
    let values: Vec<u64> = history
        .iter()
        .skip(history.len().saturating_sub(width))
        .map(|sample| of(sample).round() as u64)
        .collect();
    let most = values.iter().copied().max().unwrap_or(0);
    let title = format!(" {name}, at most {} ", packets(most as f64));
    frame.render_widget(
        Sparkline::default().block(titled(title)).data(&values).style(Style::new().fg(colour)),
        area,
    );
}

fn table(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    head: &[&'static str],
    widths: &[Constraint],
    rows: Vec<Row<'static>>,
) {
    // Title and head take two lines.
    let room = usize::from(area.height.saturating_sub(2));
    let title = match rows.len().saturating_sub(room) {
        0 => format!(" {title} "),
        hidden => format!(" {title} ({hidden} more) "),
    };
    let head = Row::new(head.iter().copied()).style(Style::new().add_modifier(Modifier::DIM));
    let table = Table::new(rows, widths.iter().copied()).header(head).column_spacing(1).block(titled(title));
    frame.render_widget(table, area);
}

fn port_table(frame: &mut Frame<'_>, area: Rect, sample: &Sample) {
    let rows = list(&sample.interval.now, "ports").iter().enumerate().map(|(port, view)| {
        let rate = |what: &str| sample.rate(&format!("/report/ports/{port}/{what}"));
        let lost = sample.lost_at(port);
        let row = Row::new(vec![
            format!("{} {}", port + 1, text(view, "interface")),
            packets(rate("received")),
            packets(rate("transmitted")),
            packets(lost),
        ]);
        if lost > 0.0 { row.red() } else { row }
    });
    let widths = [Constraint::Fill(1), Constraint::Length(9), Constraint::Length(9), Constraint::Length(8)];
    table(frame, area, "ports", &["port", "in", "out", "lost"], &widths, rows.collect());
}

/// What is between packets, and the stages and handlers that were entered, the dearest first.
fn stage_rows(sample: &Sample) -> Vec<&Value> {
    let all = list(&sample.measured["program"], "stages").iter();
    let mut rows: Vec<&Value> = all.filter(|stage| stage["cycles"].as_u64() > Some(0)).collect();
    rows.sort_by_key(|stage| std::cmp::Reverse(stage["cycles"].as_u64()));
    rows
}

fn stages(frame: &mut Frame<'_>, area: Rect, costs: Vec<&Value>) {
    let rows = costs.into_iter().map(|stage| {
        Row::new(vec![
            stage_name(stage),
            end_of(text(stage, "place"), usize::from(area.width) * 3 / 8),
            seconds(number(stage, "nanoseconds_per_packet") / 1e9),
            format!("{:.0} %", number(stage, "share") * 100.0),
        ])
    });
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(area.width * 3 / 8),
        Constraint::Length(8),
        Constraint::Length(6),
    ];
    table(frame, area, "stages", &["stage", "place", "a packet", "share"], &widths, rows.collect());
}

/// What of a place finds room: its line stands at its end.
fn end_of(place: &str, room: usize) -> String {
    let letters = place.chars().count();
    if letters <= room {
        return place.to_owned();
    }
    let end = place.chars().skip(letters + 1 - room.max(1));
    std::iter::once('…').chain(end).collect()
}

fn stops(frame: &mut Frame<'_>, area: Rect, sample: &Sample) {
    let mut rows: Vec<Row<'static>> = list(&sample.measured, "stops")
        .iter()
        .map(|stop| {
            let spent = seconds(number(stop, "nanoseconds_per_packet") / 1e9);
            let part = format!("{:.1} %", number(stop, "share") * 100.0);
            Row::new(vec![text(stop, "name").to_owned(), spent, part])
        })
        .collect();
    let latency = &sample.measured["latency"];
    if whole(latency, "packets") > 0 {
        let at = |name: &str| seconds(whole(latency, name) as f64 / 1e9);
        rows.push(Row::new(vec!["stay p50".to_owned(), at("p50"), format!("p99 {}", at("p99"))]));
    }
    let widths = [Constraint::Length(10), Constraint::Length(9), Constraint::Fill(1)];
    let title = if sample.measured.is_null() { "where time goes: not told" } else { "where time goes" };
    table(frame, area, title, &["stop", "a packet", "share"], &widths, rows);
}

fn why(frame: &mut Frame<'_>, area: Rect, sample: &Sample) {
    let all = sample.rate("/report/received/packets");
    let mut rows = Vec::new();
    for (kind, what) in [("drops", "drop"), ("punts", "punt")] {
        for (name, _) in sample.interval.members(&format!("/report/{kind}")) {
            let rate = sample.rate(&format!("/report/{kind}/{}", escaped(name)));
            let place = match &sample.interval.places(name)[..] {
                [] => String::new(),
                [one] => (*one).to_owned(),
                [first, more @ ..] => format!("{first} and {} more", more.len()),
            };
            let part = share((rate * 1000.0) as u64, (all * 1000.0) as u64);
            rows.push((rate, vec![what.to_owned(), name.clone(), packets(rate), part, place]));
        }
    }
    rows.sort_by(|(a, left), (b, right)| b.total_cmp(a).then_with(|| left.cmp(right)));
    let rows = rows.into_iter().map(|(rate, cells)| {
        let row = Row::new(cells);
        if rate > 0.0 { row } else { row.dim() }
    });
    let widths = [
        Constraint::Length(4),
        Constraint::Fill(1),
        Constraint::Length(9),
        Constraint::Length(7),
        Constraint::Length(30),
    ];
    table(
        frame,
        area,
        "why packets did not go on",
        &["", "reason", "rate", "share", "in the program"],
        &widths,
        rows.collect(),
    );
}

fn fill(frame: &mut Frame<'_>, area: Rect, sample: &Sample) {
    let fullness = |state: &Value| number(state, "entries") / number(state, "capacity").max(1.0);
    let mut tables: Vec<_> = sample.interval.members("/report/tables").collect();
    tables.sort_by(|(_, a), (_, b)| fullness(b).total_cmp(&fullness(a)));
    let rows = tables.into_iter().map(|(name, state)| {
        let entries = whole(state, "entries");
        let rate = |what: &str| sample.rate(&format!("/report/tables/{name}/{what}"));
        Row::new(vec![
            name.clone(),
            count(entries),
            share(entries, whole(state, "capacity")),
            packets(rate("inserts")),
            packets(rate("expired") + rate("evictions")),
            packets(rate("refused")),
        ])
    });
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(11),
        Constraint::Length(7),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(9),
    ];
    table(
        frame,
        area,
        "tables, fullest first",
        &["table", "entries", "full", "new", "gone", "refused"],
        &widths,
        rows.collect(),
    );
}

fn footer(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let state = match (view.back, view.paused) {
        (0, false) => String::new(),
        (back, true) => format!("paused, {back} s ago"),
        (back, false) => format!("{back} s ago"),
    };
    let words = match view.trouble {
        Some(trouble) => format!("q end  {trouble}"),
        None => format!("q end  p pause  ←→ back and forth  ? help   {state}"),
    };
    let style = Style::new().add_modifier(Modifier::REVERSED);
    frame.render_widget(Paragraph::new(words).style(style), area);
}

const HELP: [&str; 12] = [
    "p or space   the picture stands still, or goes on",
    "← →          a second back, or forth",
    "PgUp PgDn    ten seconds back, or forth",
    "End          the present",
    "q            end",
    "",
    "Rates are those of the second that is shown.",
    "lost         the program had no say: see `ravelin show ports`",
    "share        of the packets that came in, of time, or of the program",
    "stay         from arrival to when its batch had been sent",
    "why          `ravelin why` shows the last packets",
    "any key      goes back",
];

fn help(frame: &mut Frame<'_>, area: Rect) {
    let (width, height) = (64.min(area.width), 14.min(area.height));
    let place = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    let lines: Vec<Line<'_>> = HELP.iter().map(|line| Line::from(*line)).collect();
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" help ")), place);
}

/// What a screen shows, line by line, without colours.
pub(crate) fn text_of(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width).max(1);
    let lines = buffer.content.chunks(width).map(|cells| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    fn view(second: u64) -> Value {
        json!({
            "seconds": second as f64, "generation": 2,
            "report": {
                "program": "/etc/ravelin/router.rav",
                "received": { "packets": 1000 * second * second, "bytes": 90_000 * second },
                "forwarded": { "packets": 900 * second, "bytes": 0 },
                "verdicts": { "drop": 90 * second, "punt": 10 * second },
                "drops": { "no_route": 80 * second, "short(ipv4)": 10 * second, "expired": 4 },
                "punts": { "neighbours": 10 * second },
                "ports": [
                    { "received": 600 * second, "transmitted": 300 * second },
                    { "received": 400 * second, "transmitted": 600 * second },
                ],
                "tables": { "routes": { "entries": 901_899, "capacity": 1_048_576, "inserts": 7 * second, "expired": 2 * second, "evictions": 0, "refused": 0 } },
            },
            "places": { "no_route": ["router.rav:201", "router.rav:260"], "short(ipv4)": ["router.rav:150"] },
            "ports": [
                { "port": second, "interface": "eth0", "ring_full": 0, "busy": 0, "waiting": 3 * second, "doubled": second, "foreign": second },
                { "interface": "eth1", "ring_full": 0, "too_long": 0, "busy": 5 * second, "refused": 0 },
            ],
        })
    }

    fn samples() -> Vec<Sample> {
        let measured = json!({
            "stops": [
                { "name": "receive", "nanoseconds_per_packet": 210.0, "share": 0.21 },
                { "name": "run", "nanoseconds_per_packet": 63.5, "share": 0.0635 },
                { "name": "commit", "nanoseconds_per_packet": 12.0, "share": 0.012 },
                { "name": "transmit", "nanoseconds_per_packet": 402.0, "share": 0.402 },
                { "name": "control", "nanoseconds_per_packet": 2.0, "share": 0.002 },
                { "name": "idle", "nanoseconds_per_packet": 320.0, "share": 0.32 },
                { "name": "measure", "nanoseconds_per_packet": 2.0, "share": 0.002 },
            ],
            "program": { "packets": 900, "stages": [
                { "kind": "between", "name": "", "place": "", "entered": 0, "cycles": 9_000, "nanoseconds_per_packet": 3.1, "share": 0.05 },
                { "kind": "stage", "name": "frame", "place": "router.rav:99", "entered": 900, "cycles": 27_000, "nanoseconds_per_packet": 10.4, "share": 0.16 },
                { "kind": "stage", "name": "route", "place": "router.rav:180", "entered": 890, "cycles": 129_000, "nanoseconds_per_packet": 49.0, "share": 0.77 },
                { "kind": "stage", "name": "never", "place": "router.rav:300", "entered": 0, "cycles": 0, "nanoseconds_per_packet": 0.0, "share": 0.0 },
                { "kind": "handler", "name": "moved", "place": "router.rav:20", "entered": 2, "cycles": 900, "nanoseconds_per_packet": 0.4, "share": 0.02 },
            ] },
            "latency": { "packets": 900, "p50": 12_400, "p99": 88_100 },
        });
        (1..30).map(|second| Sample::new(&view(second - 1), view(second), measured.clone())).collect()
    }

    fn screen(view: &View<'_>, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
        terminal.draw(|frame| draw(frame, view)).expect("draws");
        text_of(terminal.backend().buffer())
    }

    /// `BLESS=1` writes what is drawn to the file that it is compared with.
    #[test]
    fn a_screen_of_80_by_24_holds_everything() {
        let samples = samples();
        let view = View { samples: &samples, back: 0, paused: false, help: false, trouble: None };
        let drawn = screen(&view, 80, 24);
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/render/top.txt");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, &drawn).expect("can be written");
        }
        assert_eq!(drawn, std::fs::read_to_string(path).expect("is there"));
        let dearest = drawn.find("route     ").expect("is there");
        assert!(dearest < drawn.find("frame").expect("is there") && !drawn.contains("never"), "{drawn}");
        for words in [
            "no_route",
            "router.rav:180",
            "49 ns",
            "77 %",
            "router.rav:201 and 1 more",
            "eth1",
            "stay p50",
            "routes",
            "86",
            "transmit",
        ] {
            assert!(drawn.contains(words), "{words} in\n{drawn}");
        }
    }

    #[test]
    fn going_back_shows_what_was() {
        let samples = samples();
        let view = |back, paused| View { samples: &samples, back, paused, help: false, trouble: None };
        assert!(screen(&view(0, false), 80, 24).contains("for 29.0 s"));
        let before = screen(&view(9, true), 80, 24);
        assert!(before.contains("for 20.0 s") && before.contains("paused, 9 s ago"), "{before}");
        let help = screen(&View { help: true, ..view(0, false) }, 80, 24);
        assert!(help.contains("the picture stands still"), "{help}");
        for (width, height) in [(1, 1), (20, 5), (80, 12), (200, 60)] {
            screen(&view(0, false), width, height);
            screen(&View { help: true, ..view(3, true) }, width, height);
        }
        let empty = View { samples: &[], back: 0, paused: false, help: false, trouble: Some("nobody there") };
        assert!(screen(&empty, 80, 24).contains("nobody there"));
    }

    #[test]
    fn the_line_of_a_place_finds_room() {
        assert_eq!(end_of("filter_large.rav:9", 10), "…rge.rav:9");
        assert_eq!((end_of("a.rav:9", 7), end_of("a.rav:9", 0)), ("a.rav:9".into(), "…".into()));
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let mut crowded = view(2);
        for name in 0..9 {
            crowded["report"]["tables"][format!("table{name}")] =
                json!({ "entries": name, "capacity": 1000 });
        }
        let samples = [Sample::new(&view(1), crowded, Value::Null)];
        let view = View { samples: &samples, back: 0, paused: false, help: false, trouble: None };
        let drawn = screen(&view, 80, 24);
        assert!(drawn.contains("no_route") && drawn.contains("go on (1 more)"), "{drawn}");
        assert!(
            drawn.contains("fullest first (9 more)") && drawn.contains("routes"),
            "the fullest is shown: {drawn}"
        );
        let low = screen(&view, 80, 20);
        assert!(low.contains("no_route") && !low.contains("tables"), "{low}");
        let all = screen(&view, 120, 40);
        assert!(all.contains("expired") && all.contains("table8") && !all.contains("more)"), "{all}");
    }

    #[test]
    fn programs_get_the_same_numbers() {
        let document = samples()[27].document();
        assert_eq!(document["dropped"], 90.0);
        assert_eq!(document["drops"]["short(ipv4)"], 10.0);
        assert_eq!(document["lost"], 5.0);
        assert_eq!(document["ports"][1]["interface"], "eth1");
        let taken_over = Sample::new(&json!({ "generation": 1 }), view(2), Value::Null);
        assert_eq!(taken_over.document()["dropped"], 90.0, "since it took over");
    }
}
