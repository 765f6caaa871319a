//! The stage graph: which decoder or stage leads to which, with which verdicts, tables and headers.
//!
//! A stage reaches from its mark ([`Op::EnterStage`]) along all paths up to the next marks. Blocks that
//! several stages share count for each.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write;

use ir::*;

/// The graph as text for a terminal: for each stage where it can go, which tables it reads and writes, which
/// headers it decodes.
pub fn graph(program: &Program) -> String {
    let mut out = String::new();
    for region in regions(program) {
        if region.is_empty() {
            continue;
        }
        let _ = writeln!(out, "{}", region.title(program));
        for (word, items) in [
            ("decodes", region.headers),
            ("reads", named(&region.reads, |table| table_name(program, table))),
            ("writes", named(&region.writes, |table| table_name(program, table))),
            ("does", region.acts),
            ("goes to", named(&region.next, |stage| stage_name(program, stage))),
            ("ends in", region.verdicts),
        ] {
            if !items.is_empty() {
                let _ = writeln!(out, "    {word:<8} {}", items.into_iter().collect::<Vec<_>>().join(", "));
            }
        }
    }
    out
}

/// The graph for Graphviz: stages as boxes, verdicts and reasons as leaves.
pub fn dot(program: &Program) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "digraph {} {{", quoted(&program.name));
    let _ = writeln!(out, "    rankdir=LR;\n    node [shape=box, fontname=\"sans-serif\"];");
    let mut verdicts = BTreeSet::new();
    for region in regions(program) {
        if region.is_empty() {
            continue;
        }
        let node = region.node();
        let mut label = region.title(program);
        let headers = region.headers.iter().map(|header| format!("decodes {header}"));
        let reads = region.reads.iter().map(|table| format!("reads {}", table_name(program, *table)));
        let writes = region.writes.iter().map(|table| format!("writes {}", table_name(program, *table)));
        for line in headers.chain(reads).chain(writes).chain(region.acts.iter().cloned()) {
            let _ = write!(label, "\n{line}");
        }
        let _ = writeln!(out, "    {node} [label={}];", quoted(&label));
        for next in &region.next {
            let _ = writeln!(out, "    {node} -> stage{next};");
        }
        for verdict in region.verdicts {
            let _ = writeln!(out, "    {node} -> {};", quoted(&verdict));
            verdicts.insert(verdict);
        }
    }
    for verdict in verdicts {
        let _ = writeln!(out, "    {} [shape=plaintext];", quoted(&verdict));
    }
    out.push_str("}\n");
    out
}

/// Where a region begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Start {
    /// A function, up to its first marks.
    Function(usize),
    /// A stage, wherever it is marked.
    Stage(u32),
}

/// What can happen between a mark and the next.
struct Region {
    start: Start,
    next: BTreeSet<u32>,
    reads: BTreeSet<u32>,
    writes: BTreeSet<u32>,
    headers: BTreeSet<String>,
    acts: BTreeSet<String>,
    verdicts: BTreeSet<String>,
}

impl Region {
    /// True for a handler or an unused stage that does nothing worth a line.
    fn is_empty(&self) -> bool {
        self.next.is_empty()
            && self.reads.is_empty()
            && self.writes.is_empty()
            && self.acts.is_empty()
            && self.verdicts.is_empty()
    }

    fn title(&self, program: &Program) -> String {
        match self.start {
            Start::Function(0) => "start".to_owned(),
            Start::Function(function) => format!("handler {}", program.functions[function].name),
            Start::Stage(stage) => stage_name(program, stage),
        }
    }

    fn node(&self) -> String {
        match self.start {
            Start::Function(function) => format!("function{function}"),
            Start::Stage(stage) => format!("stage{stage}"),
        }
    }
}

/// Functions first, then stages by index.
fn regions(program: &Program) -> Vec<Region> {
    let mut starts: BTreeMap<Start, Vec<(usize, usize, usize)>> = BTreeMap::new();
    for (index, function) in program.functions.iter().enumerate() {
        starts.entry(Start::Function(index)).or_default().push((index, 0, 0));
        for (block, code) in function.blocks.iter().enumerate() {
            for (step, instruction) in code.instructions.iter().enumerate() {
                if let Op::EnterStage(stage) = instruction.op {
                    starts.entry(Start::Stage(stage)).or_default().push((index, block, step + 1));
                }
            }
        }
    }
    starts.into_iter().map(|(start, places)| region(program, start, places)).collect()
}

/// Follows all paths from some places (function, block, instruction) to the next marks and the ends.
fn region(program: &Program, start: Start, mut places: Vec<(usize, usize, usize)>) -> Region {
    let mut region = Region {
        start,
        next: BTreeSet::new(),
        reads: BTreeSet::new(),
        writes: BTreeSet::new(),
        headers: BTreeSet::new(),
        acts: BTreeSet::new(),
        verdicts: BTreeSet::new(),
    };
    let mut seen: HashSet<(usize, usize, usize)> = places.iter().copied().collect();
    while let Some((function, block, step)) = places.pop() {
        let Some(code) = program.functions[function].blocks.get(block) else { continue };
        let mut rest = code.instructions[step..].iter();
        let mark = rest.find_map(|instruction| match instruction.op {
            Op::EnterStage(stage) => Some(stage),
            _ => {
                act(program, &instruction.op, &mut region);
                None
            }
        });
        if let Some(stage) = mark {
            region.next.insert(stage);
            continue;
        }
        region.verdicts.extend(verdict(program, &program.functions[function], &code.terminator));
        for target in code.terminator.targets() {
            let place = (function, target.block.0 as usize, 0);
            if seen.insert(place) {
                places.push(place);
            }
        }
    }
    region
}

fn act(program: &Program, op: &Op, region: &mut Region) {
    match op {
        Op::Lookup { table, .. } | Op::Scan { table, .. } => drop(region.reads.insert(*table)),
        Op::HasRoom(keys) => region.reads.extend(keys.iter().map(|(table, _)| table)),
        Op::Learn { table, .. }
        | Op::Insert { table, .. }
        | Op::Withdraw { table, .. }
        | Op::Remove { table, .. }
        | Op::EndAfter { table, .. }
        | Op::SetDefault { table, .. }
        | Op::ClearDefault(table) => {
            region.writes.insert(*table);
        }
        Op::Header { layout, name, .. } => {
            let layout = program.layouts.get(*layout as usize).map_or("?", |layout| &layout.name);
            region.headers.insert(if name == layout { name.clone() } else { format!("{name}: {layout}") });
        }
        Op::Store { .. } => drop(region.acts.insert("writes the packet".to_owned())),
        Op::Copy(_) => drop(region.acts.insert("sends copies".to_owned())),
        Op::Emit { .. } => drop(region.acts.insert("makes packets".to_owned())),
        Op::Raise { event, .. } => {
            let event = program.events.get(*event as usize).map_or("?", |event| &event.name);
            region.acts.insert(format!("raises {event}"));
        }
        Op::Count { counter, .. } => {
            let counter = program.counters.get(*counter as usize).map_or("?", |counter| &counter.name);
            region.acts.insert(format!("counts {counter}"));
        }
        Op::Mark { meter, .. } => {
            let meter = program.meters.get(*meter as usize).map_or("?", |meter| &meter.name);
            region.acts.insert(format!("meters {meter}"));
        }
        Op::WriteRegister { register, .. } => {
            let register = program.registers.get(*register as usize).map_or("?", |register| &register.name);
            region.acts.insert(format!("writes {register}"));
        }
        Op::Take { pool, .. } | Op::Give { pool, .. } => {
            let pool = program.pools.get(*pool as usize).map_or("?", |pool| &pool.name);
            region.acts.insert(format!("takes from or gives to {pool}"));
        }
        Op::Join { group, .. } | Op::Leave { group, .. } => {
            let group = program.groups.get(*group as usize).map_or("?", |group| &group.name);
            region.acts.insert(format!("changes {group}"));
        }
        _ => {}
    }
}

fn verdict(program: &Program, function: &Function, terminator: &Terminator) -> Option<String> {
    let reason = |index: u16| program.reasons.get(usize::from(index)).map_or("?", |reason| &reason.name);
    match terminator {
        Terminator::Send(port) => {
            let name =
                function.names.iter().find(|(value, ..)| value == port).map(|(_, name, _)| name.as_str());
            Some(name.map_or("send".to_owned(), |name| format!("send {name}")))
        }
        Terminator::Flood => Some("flood".to_owned()),
        Terminator::Multicast(set) => Some(match program.port_sets.get(*set as usize) {
            Some(ports) => {
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                format!("multicast {{{}}}", ports.join(", "))
            }
            None => "multicast".to_owned(),
        }),
        Terminator::Drop(index) => Some(format!("drop {}", reason(*index))),
        Terminator::Punt(index) => Some(format!("punt {}", reason(*index))),
        _ => None,
    }
}

fn named(indexes: &BTreeSet<u32>, name: impl Fn(u32) -> String) -> BTreeSet<String> {
    indexes.iter().map(|&index| name(index)).collect()
}

fn stage_name(program: &Program, stage: u32) -> String {
    program.stages.get(stage as usize).map_or_else(|| format!("s{stage}"), |stage| stage.name.clone())
}

fn table_name(program: &Program, table: u32) -> String {
    program.tables.get(table as usize).map_or_else(|| format!("t{table}"), |table| table.name.clone())
}

/// Text in quotes as Graphviz reads it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
