//! `lab operations`: what single operations of the language cost, by the difference between programs that do
//! them 8, 4 and 0 times a packet.
//!
//! The times of the three programs are taken in turn in every round, and an operation's cost in that round is
//! the slope of the straight line through them (by least squares, which for 0, 4 and 8 is the difference of
//! the ends divided by 8). Operations that overlap in the processor cost less together than alone; the last
//! row therefore holds the sum of what the firewall does against what a packet of it takes.

use crate::experiment::{Better, Figure, Other, Row};
use crate::measure::{Contender, Group, Pass, Workload, rounds};
use crate::plan::{LabPlan, Length};
use crate::programs::{EMPTY, compile, compiled};
use crate::traffic::{LabError, TrafficCapture, segments};
use exec::BackendKind;
use ir::Program;
use lang::pipeline::Decode;
use ports::Order;

/// How often the three programs of an operation do it.
const TIMES: [u64; 3] = [0, 4, 8];
/// Packets in memory; with 8 keys each they fill an eighth of the table.
const PACKETS: u32 = 1024;

/// The port by which packets enter that fill the table, that do what is measured, and that empty the table.
const FILL: u16 = 1;
const WORK: u16 = 2;
const CLEAR: u16 = 3;

/// One operation.
struct Operation {
    name: &'static str,
    /// Nanoseconds in the thesis.
    paper: Option<f64>,
    /// What the program does so many times.
    text: fn(u64) -> String,
    /// By which ports packets enter, untimed, before and after each timed pass.
    before: Option<u16>,
    after: Option<u16>,
}

/// Costs that the sum over the firewall is made of, in nanoseconds.
#[derive(Default)]
struct Costs {
    lookup: Option<f64>,
    learn: Option<f64>,
    read: Option<f64>,
}

/// Runs it.
pub(crate) fn rows(plan: &LabPlan, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, LabError> {
    let mut rows = Vec::new();
    let mut costs = Costs::default();
    for operation in operations() {
        progress(&format!("operations: {}", operation.name));
        let case = format!("{PACKETS} TCP segments, {}", operation.name);
        match measure(&operation, plan) {
            Ok(figure) => {
                let median = figure.as_ref().map(|figure| figure.median);
                match operation.name {
                    LOOKUP => costs.lookup = median,
                    LEARN => costs.learn = median,
                    READ => costs.read = median,
                    _ => {}
                }
                rows.push(Row::alone(&case, "time of one", "ns", figure, operation.paper));
            }
            Err(why) => rows.push(Row::refused(&case, "time of one", "ns", &why)),
        }
    }
    progress("operations: the sum over the firewall");
    rows.extend(sum(plan, &costs)?);
    Ok(rows)
}

const LOOKUP: &str = "goto and match (a lookup that hits and the next stage)";
const LEARN: &str = "learn of a key that is there";
const READ: &str = "field read";

fn operations() -> [Operation; 9] {
    let table = |name, paper, text, before, after| Operation { name, paper, text, before, after };
    let field = |name, paper, text| Operation { name, paper, text, before: None, after: None };
    [
        table(LOOKUP, Some(110.49), lookups as fn(u64) -> String, Some(FILL), None),
        table("insert (a key that is not there)", Some(418.66), learns, None, Some(CLEAR)),
        table(LEARN, None, learns, Some(FILL), None),
        table("remove (a key that is there)", Some(273.53), removes, Some(FILL), None),
        field("field decode (a named field that nothing uses)", Some(23.22), decodes),
        field(READ, Some(35.02), reads),
        field("field write", Some(29.34), writes),
        field("deferred set (none here; nearest: emit of a changed packet of 60 bytes)", Some(140.76), emits),
        field("deferred output (none here; nearest: copy to a port of 60 bytes)", Some(108.92), copies),
    ]
}

/// The cost of an operation in every round, or why there is none.
fn measure(operation: &Operation, plan: &LabPlan) -> Result<Option<Figure>, String> {
    let programs: Vec<Program> = TIMES
        .iter()
        .map(|&times| compile("operation", &(operation.text)(times), Decode::Declared))
        .collect::<Result<_, _>>()?;
    let mut workload = Workload::new(segments(PACKETS), Order::Replay, 3);
    let mut contenders = Vec::new();
    for program in &programs {
        check(&mut workload, operation, program)?;
        contenders.push(Contender::loaded(program, BackendKind::Native, 3)?);
    }
    let mut slopes = Vec::new();
    for round in 0..=plan.runs {
        let mut taken = [0.0; TIMES.len()];
        for turn in 0..TIMES.len() {
            let index = if round % 2 == 1 { TIMES.len() - 1 - turn } else { turn };
            taken[index] = time(&mut workload, operation, &mut contenders[index], plan)?;
        }
        // The first round warms up.
        if round > 0 {
            slopes.push(slope(taken));
        }
    }
    Ok(Figure::of(slopes))
}

/// Nanoseconds a packet, over as many passes as the plan wants.
fn time(
    workload: &mut Workload,
    operation: &Operation,
    contender: &mut Contender<'_>,
    plan: &LabPlan,
) -> Result<f64, String> {
    let (mut seconds, mut packets, mut passes) = (0.0, 0, 0);
    loop {
        let pass = cycle(workload, operation, contender)?;
        seconds += pass.seconds;
        packets += pass.counts.received.packets;
        passes += 1;
        let done = match plan.length {
            Length::Seconds(wanted) => seconds >= wanted / TIMES.len() as f64,
            Length::Repeat(repeat) => passes >= repeat,
        };
        if done {
            return Ok(seconds * 1e9 / packets as f64);
        }
    }
}

/// One timed pass with what must come before and after it. What destroys what it works on is done once, all
/// else several times.
fn cycle(
    workload: &mut Workload,
    operation: &Operation,
    contender: &mut Contender<'_>,
) -> Result<Pass, String> {
    let prepared = operation.before.is_some() || operation.after.is_some();
    for (port, timed) in [(operation.before, false), (Some(WORK), true), (operation.after, false)] {
        let Some(port) = port else { continue };
        workload.enter_by(port);
        if !timed {
            workload.pass(contender, 1)?;
            continue;
        }
        let pass = workload.pass(contender, if prepared { 1 } else { 16 })?;
        if let Some(port) = operation.after {
            workload.enter_by(port);
            workload.pass(contender, 1)?;
        }
        return Ok(pass);
    }
    Err("nothing was timed".to_owned())
}

/// Holds one cycle against the interpreter, and sees to it that every packet came to the end of its program.
fn check(workload: &mut Workload, operation: &Operation, program: &Program) -> Result<(), String> {
    let run = |workload: &mut Workload, back_end| -> Result<Pass, String> {
        cycle(workload, operation, &mut Contender::loaded(program, back_end, 3)?)
    };
    let right = run(workload, BackendKind::Interpreter)?.counts;
    let found = run(workload, BackendKind::Native)?.counts;
    if let Some(difference) = found.difference(&right) {
        return Err(format!("native code does not count what the interpreter counts: {difference}"));
    }
    if right.forwarded != right.received {
        return Err("not every packet came to the end of the program".to_owned());
    }
    Ok(())
}

/// The slope of the straight line through the times of 0, 4 and 8 operations, by least squares.
fn slope(taken: [f64; TIMES.len()]) -> f64 {
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / TIMES.len() as f64;
    let x = mean(&mut TIMES.iter().map(|&times| times as f64));
    let y = mean(&mut taken.iter().copied());
    let (mut above, mut below) = (0.0, 0.0);
    for (&times, taken) in TIMES.iter().zip(taken) {
        above += (times as f64 - x) * (taken - y);
        below += (times as f64 - x).powi(2);
    }
    above / below
}

/// What the firewall does with a packet of the first sample on average, at the cost of single operations,
/// against what it takes.
fn sum(plan: &LabPlan, costs: &Costs) -> Result<Vec<Row>, LabError> {
    const WHAT: &str = "time of a packet against the sum of its operations";
    let traffic = TrafficCapture::Generated(1).load(plan.quick)?;
    let case = format!("{}, replay, firewall", traffic.name);
    let firewall = compiled("firewall", Decode::Lazy).map_err(LabError::Program)?;
    let empty = compile("empty", EMPTY, Decode::Lazy).map_err(LabError::Program)?;
    let mut workload = Workload::new(traffic.frames, Order::Replay, 5);
    let load = |program| Contender::loaded(program, BackendKind::Native, 5).map_err(LabError::Program);
    let mut groups = [(Group::new(vec![load(&firewall)?]), 5), (Group::new(vec![load(&empty)?]), 5)];
    let measured = rounds(&mut workload, &mut groups, plan).into_iter().collect::<Result<Vec<_>, _>>();
    let (measured, lookup, learn, read) = match (measured, costs.lookup, costs.learn, costs.read) {
        (Ok(measured), Some(lookup), Some(learn), Some(read)) => (measured.concat(), lookup, learn, read),
        (Err(why), ..) => return Ok(vec![Row::refused(&case, WHAT, "ns", &why)]),
        _ => return Ok(vec![Row::refused(&case, WHAT, "ns", "a cost that the sum needs has no figure")]),
    };
    let [firewall, empty] = &measured[..] else { return Ok(Vec::new()) };
    let (Some(pass), Some(harness)) = (firewall.passes.first(), empty.figure(Pass::nanoseconds)) else {
        return Ok(Vec::new());
    };
    let packets = pass.counts.received.packets as f64;
    let dropped = |reason: &str| pass.counts.drops.get(reason).copied().unwrap_or(0) as f64;
    // Every packet has its type read; IPv4 has version, length, fragment and protocol read; a segment or
    // datagram its port and, if TCP, the length of its header; what passes has both addresses read, one
    // learned and one looked up.
    let ip = packets - dropped("not_ipv4");
    let passed = ip - dropped("not_web") - dropped("later_fragment");
    let reads = (packets + 4.0 * ip + 2.0 * (ip - dropped("later_fragment")) + 2.0 * passed) / packets;
    let switched = passed / packets;
    let total = harness.median + reads * read + switched * (lookup + learn);
    let what = format!(
        "{WHAT} ({reads:.2} reads, {switched:.2} learns and lookups, harness {:.2} ns)",
        harness.median
    );
    let total = Figure::exactly(total);
    let other = Other::of("the sum", total);
    let ours = firewall.figure(Pass::nanoseconds);
    Ok(vec![Row::alone(&case, &what, "ns", ours, None).against(Some(other), Better::Less)])
}

/// A program whose packets do `work` if they come in by port 2; by port 1 they put 8 keys into the table and
/// by port 3 they take them out.
fn with_table(work: &str, stages: &str) -> String {
    let each = |statement: fn(u64) -> String| (0..8).map(statement).collect::<Vec<_>>().join("\n    ");
    format!(
        "import std.net.{{ethernet, ipv4}}
reason other \"not what the lab sends\"
reason missing \"a key that should be there is not\"
table t: exact(u32) -> port {{ capacity 64k  age 300s  evict lru }}
start decoder frame(eth: ethernet) {{ match eth.type {{ 0x0800 => packet, else => drop other }} }}
decoder packet(ip: ipv4) {{
    let x = ip.src as u32
    match in_port {{ {FILL} => fill(x), {WORK} => work(x), {CLEAR} => clear(x), else => drop other }}
}}
stage fill(x: u32) {{
    {}
    flood
}}
stage clear(x: u32) {{
    {}
    flood
}}
stage work(x: u32) {{
    {work}
}}
{stages}",
        each(|number| format!("learn t[x +% {number}] = in_port")),
        each(|number| format!("remove t[x +% {number}]")),
    )
}

fn lookups(times: u64) -> String {
    let stages: Vec<String> = (0..times)
        .map(|number| {
            let next = number + 1;
            format!("stage look{number}(x: u32) {{ match t[x +% {number}] {{ some p => look{next}(x), none => drop missing }} }}")
        })
        .chain([format!("stage look{times}(x: u32) {{ if x == 0 {{ drop missing }} flood }}")])
        .collect();
    with_table("goto look0(x)", &stages.join("\n"))
}

fn learns(times: u64) -> String {
    let all: String = (0..times).map(|number| format!("learn t[x +% {number}] = in_port\n    ")).collect();
    with_table(&format!("{all}flood"), "")
}

fn removes(times: u64) -> String {
    let all: String = (0..times).map(|number| format!("remove t[x +% {number}]\n    ")).collect();
    with_table(&format!("{all}flood"), "")
}

/// A program that has decoded a TCP header, with statements behind the IPv4 header and behind the TCP header.
fn with_headers(ip: &str, tcp: &str) -> String {
    format!(
        "import std.net.{{ethernet, ipv4, tcp}}
reason other \"not what the lab sends\"
start decoder frame(eth: ethernet) {{ match eth.type {{ 0x0800 => packet, else => drop other }} }}
decoder packet(ip: ipv4) {{
    {ip}
    if ip.frag != 0 {{ drop other }}
    match ip.proto {{ 6 => segment, else => drop other }}
}}
decoder segment(t: tcp) requires ip, eth {{
    {tcp}
    flood
}}
"
    )
}

/// The first fields, in the order in which the experiments add them.
const FIELDS: [&str; 8] =
    ["ip.id", "ip.ttl", "ip.total", "ip.dscp", "t.seq", "t.ack", "t.window", "t.urgent"];

fn decodes(times: u64) -> String {
    let named = |header: &str| {
        let fields = FIELDS.iter().take(times as usize);
        let names: Vec<&str> = fields.filter_map(|field| field.strip_prefix(header)).collect();
        if names.is_empty() { String::new() } else { format!("extract {};", names.join(", ")) }
    };
    with_headers(&named("ip."), &named("t."))
}

fn reads(times: u64) -> String {
    let fields = FIELDS.iter().take(times as usize);
    let terms: String = fields.map(|field| format!(" ^ ({field} as u32)")).collect();
    with_headers("", &format!("let sum = (ip.src as u32){terms}\n    if sum == 0xffff_ffff {{ drop other }}"))
}

fn writes(times: u64) -> String {
    let fields = FIELDS.iter().take(times as usize);
    // 46 is the length that the packets have.
    let all: Vec<String> = fields.map(|field| format!("set {field} = 46")).collect();
    with_headers("", &all.join("\n    "))
}

fn emits(times: u64) -> String {
    let one = "emit ethernet(dst eth.src, src eth.dst, type eth.type) / payload to 1\n    ";
    with_headers("", &one.repeat(times as usize))
}

fn copies(times: u64) -> String {
    with_headers("", &"copy to 1\n    ".repeat(times as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_that_of_the_line() {
        assert!((slope([10.0, 22.0, 34.0]) - 3.0).abs() < 1e-9);
        assert!((slope([10.0, 0.0, 34.0]) - 3.0).abs() < 1e-9, "the middle does not tilt the line");
    }

    #[test]
    fn every_program_does_what_it_says_on_both_back_ends() {
        for operation in operations() {
            for times in TIMES {
                let text = (operation.text)(times);
                let program = compile("operation", &text, Decode::Declared)
                    .unwrap_or_else(|why| panic!("{why}\n{text}"));
                let mut workload = Workload::new(segments(PACKETS), Order::Replay, 3);
                check(&mut workload, &operation, &program).expect("the same counts");
            }
        }
    }
}
