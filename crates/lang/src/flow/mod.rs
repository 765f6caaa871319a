//! The stage graph: which headers are decoded where, which stages form cycles, which are never reached, what
//! each needs from its callers.
//!
//! A header is decoded at the entry of its decoder and nowhere else, so what is decoded at a stage's entry is
//! what is decoded at *every* transfer to it: a greatest fixpoint with intersection, linear in stages and
//! transfers. What a stage must be handed is what it and the stages behind it read and do not decode
//! themselves: a least fixpoint with union.

mod circles;
pub mod collect;
pub mod covering;
mod enclosing;
pub mod facts;
mod gone;
pub mod governing;
mod graph;
pub mod host;
mod needs;
mod removed;
pub mod witness;

use crate::check::hir::{HeaderId, Program, StageId};
use crate::diagnostic::{Diagnostic, DiagnosticKind};
use crate::limits::MOST_PATHS;
use covering::Covering;
use facts::Facts;
use gone::Decoded;
use ir::source::Span;

pub use graph::{Flow, path, reach};
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

/// Builds the graph and checks everything that depends on paths between stages.
pub fn analyse(program: &Program) -> (Flow, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let facts: Vec<Facts> = program.stages.iter().map(|stage| collect::stage(program, stage)).collect();
    let Some(start) = program.start else {
        return (Flow::default(), diagnostics);
    };
    let mut reached = BTreeSet::from([start]);
    graph::reach(&facts, &mut reached, vec![start]);
    let asks_host = reached.iter().any(|stage| facts[stage.0].asks_host);
    let mut unreached: Vec<(StageId, Diagnostic)> = Vec::new();
    // A hook of a policy is written out as two stages that share its place.
    let mut told = HashSet::new();
    for (index, stage) in program.stages.iter().enumerate() {
        if reached.contains(&StageId(index)) || !told.insert(stage.name_span) {
            continue;
        }
        let headline = format!("no packet reaches `{}`", stage.name);
        let mut warning = Diagnostic::warning("W0406", headline, stage.name_span, "nothing transfers to it")
            .help("remove it, or go to it from a stage that packets reach")
            .of_kind(DiagnosticKind::Unused);
        if facts[index].asks_host && !asks_host {
            warning = warning.help(
                "packets of the machine leave past this program: only stages that no packet reaches name `from_host`",
            );
        }
        unreached.push((StageId(index), warning));
    }
    let mut flow = Flow {
        available: Vec::new(),
        decoded: Vec::new(),
        covering: Covering::default(),
        enclosing: BTreeMap::new(),
        governing: BTreeMap::new(),
        cyclic: vec![false; program.stages.len()],
        needs: Vec::new(),
        last: last(program, &facts, &reached),
        order: Vec::new(),
        facts,
    };
    if flow.facts.iter().any(|facts| !facts.places.is_empty() || !facts.turns.is_empty()) {
        flow.decoded = available(program, &flow.facts, start, &reached, &Covering::default());
        let perhaps = enclosing::perhaps(program, &flow.facts, &reached);
        enclosing::settle(program, &mut flow, &reached, &perhaps, &mut diagnostics);
        governing::settle(program, &mut flow, &reached, &perhaps, &mut diagnostics);
    }
    flow.covering = Covering::of(program, &flow.facts);
    flow.decoded = available(program, &flow.facts, start, &reached, &flow.covering);
    flow.available = flow.decoded.iter().map(|decoded| decoded.headers.clone()).collect();
    check_cycles(program, &mut flow, &reached, &mut diagnostics);
    needs::add_reads(program, &mut flow, &reached);
    removed::check(program, &flow, &reached, &mut diagnostics);
    let undecoded = check_decoded(program, &flow, start, &reached, &mut diagnostics);
    // Where a header is missed whose decoder is never reached, that is said with the read.
    let missed =
        |stage: StageId| program.stages[stage.0].header.is_some_and(|header| undecoded.contains(&header));
    let unreached = unreached.into_iter().filter(|(stage, _)| !missed(*stage));
    diagnostics.extend(unreached.map(|(_, warning)| warning));
    flow.needs = needs::needs(program, &flow.facts, &reached);
    flow.order = order(&flow, start);
    check_events(program, &mut diagnostics);
    (flow, diagnostics)
}

fn available(
    program: &Program,
    facts: &[Facts],
    start: StageId,
    reached: &BTreeSet<StageId>,
    covering: &Covering,
) -> Vec<Decoded> {
    // Only headers that some stage reads without decoding them matter, and few programs have many of those.
    let mut wanted: BTreeSet<HeaderId> = covering.headers().collect();
    if wanted.iter().any(|&header| !covering::never_zero(program, program.layout(header))) {
        let counts = |header: &HeaderId| program.layout(*header).counting().next().is_some();
        wanted.extend((0..program.headers.len()).map(HeaderId).filter(counts));
    }
    if facts.iter().any(|facts| !facts.places.is_empty() || !facts.turns.is_empty()) {
        wanted.extend((0..program.headers.len()).map(HeaderId));
    }
    for &stage in reached {
        let described = &program.stages[stage.0];
        let reads = facts[stage.0].reads.iter().filter_map(|(read, _)| read.header());
        let late = facts[stage.0].late_reads.iter().map(|(header, ..)| *header);
        wanted.extend(late.filter(|header| described.header != Some(*header)));
        let named = reads.chain(described.requires.iter().map(|&(header, _)| header));
        wanted.extend(named.filter(|header| described.header != Some(*header)));
    }
    // `None` stands for a stage that no transfer was followed to yet: everything is decoded there.
    let mut available: Vec<Option<Decoded>> = vec![None; program.stages.len()];
    available[start.0] = Some(Decoded::default());
    let mut queue: VecDeque<StageId> = VecDeque::from([start]);
    while let Some(stage) = queue.pop_front() {
        let mut out = available[stage.0].clone().unwrap_or_default();
        program.stages[stage.0]
            .header
            .into_iter()
            .filter(|header| wanted.contains(header))
            .for_each(|own| out.decode(own));
        for transfer in &facts[stage.0].transfers {
            let out = out.without(&transfer.gone);
            let less = match &mut available[transfer.to.0] {
                None => {
                    available[transfer.to.0] = Some(out);
                    true
                }
                Some(entry) => entry.meet(&out),
            };
            if less {
                queue.push_back(transfer.to);
            }
        }
    }
    available.into_iter().map(Option::unwrap_or_default).collect()
}

fn last(program: &Program, facts: &[Facts], reached: &BTreeSet<StageId>) -> Vec<BTreeSet<HeaderId>> {
    let mut last: Vec<BTreeSet<HeaderId>> = vec![BTreeSet::new(); program.stages.len()];
    let mut queue: VecDeque<StageId> = reached.iter().copied().collect();
    while let Some(stage) = queue.pop_front() {
        let out = match program.stages[stage.0].header {
            Some(header) => BTreeSet::from([header]),
            None => last[stage.0].clone(),
        };
        for transfer in &facts[stage.0].transfers {
            let entry = &mut last[transfer.to.0];
            let before = entry.len();
            entry.extend(&out);
            if entry.len() > before {
                queue.push_back(transfer.to);
            }
        }
    }
    last
}

/// Strongly connected stages; a cycle must pass a decoder, which consumes bytes, or a stage with a cap.
fn check_cycles(
    program: &Program,
    flow: &mut Flow,
    reached: &BTreeSet<StageId>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for circle in circles::of(&flow.facts, reached, |_| true) {
        circle.iter().for_each(|stage| flow.cyclic[stage.0] = true);
    }
    let bounded = |stage: StageId| {
        let stage = &program.stages[stage.0];
        let consumes = stage.header.is_some_and(|header| program.layout(header).smallest > 0);
        stage.cap.is_some() || consumes
    };
    for circle in circles::of(&flow.facts, reached, |stage| !bounded(stage)) {
        let Some(&stage) = circle.iter().min() else { continue };
        let Some(cycle) = path(&flow.facts, stage, stage, |through| !bounded(through)) else { continue };
        let name = &program.stages[stage.0].name;
        let mut diagnostic = Diagnostic::error(
            "E0410",
            format!("a packet could go round through `{name}` for ever"),
            program.stages[stage.0].name_span,
            "it comes back here",
        )
        .help("let the cycle pass a decoder, which consumes bytes, or limit a stage with `cap`; to start again use `recirculate`");
        for transfer in cycle {
            diagnostic =
                diagnostic.place(transfer.span, format!("on to `{}`", program.stages[transfer.to.0].name));
        }
        diagnostics.push(diagnostic);
    }
}

fn check_decoded(
    program: &Program,
    flow: &Flow,
    start: StageId,
    reached: &BTreeSet<StageId>,
    diagnostics: &mut Vec<Diagnostic>,
) -> BTreeSet<HeaderId> {
    let mut undecoded = BTreeSet::new();
    let mut decoders: BTreeMap<HeaderId, Vec<StageId>> = BTreeMap::new();
    for (index, stage) in program.stages.iter().enumerate() {
        stage.header.into_iter().for_each(|header| decoders.entry(header).or_default().push(StageId(index)));
    }
    let removes = flow
        .facts
        .iter()
        .flat_map(|facts| &facts.transfers)
        .any(|transfer| !transfer.gone.removals.is_empty());
    let mut paths = 0;
    for &stage in reached {
        let own = program.stages[stage.0].header;
        let known = |header: HeaderId| own == Some(header) || flow.available[stage.0].contains(&header);
        let mut told: BTreeSet<HeaderId> = BTreeSet::new();
        let reads = flow.facts[stage.0].reads.iter().filter_map(|&(read, span)| Some((read.header()?, span)));
        let reads = reads.map(|(header, span)| HeaderUse { header, span, required: false });
        let requires = program.stages[stage.0].requires.iter();
        let requires = requires.map(|&(header, span)| HeaderUse { header, span, required: true });
        for header_use in requires.chain(reads) {
            let header = header_use.header;
            if known(header) || !told.insert(header) {
                continue;
            }
            undecoded.insert(header);
            // A path is as long as the program: of many faults only the first are told with theirs. Without
            // one a header that was taken out is not told from one that was never decoded.
            let start = (removes || paths < MOST_PATHS).then_some(start);
            paths += 1;
            let decoders = decoders.get(&header).map_or(&[][..], Vec::as_slice);
            diagnostics.push(not_decoded(program, flow, start, reached, stage, header_use, decoders));
        }
    }
    undecoded
}

/// Where a stage reads a header, or requires it.
struct HeaderUse {
    header: HeaderId,
    span: Span,
    required: bool,
}

/// The diagnostic for a header that some path does not decode, from a start with that path and a packet that
/// takes it.
fn not_decoded(
    program: &Program,
    flow: &Flow,
    start: Option<StageId>,
    reached: &BTreeSet<StageId>,
    stage: StageId,
    header_use: HeaderUse,
    decoders: &[StageId],
) -> Diagnostic {
    let HeaderUse { header, span, required } = header_use;
    let name = &program.headers[header.0].name;
    let label = if required { "required here" } else { "read here" };
    let mut diagnostic = Diagnostic::error(
        "E0412",
        format!("`{name}` is not decoded on every path to `{}`", program.stages[stage.0].name),
        span,
        label,
    )
    .of_kind(DiagnosticKind::Path);
    if let Some(start) = start {
        let without = |stage: StageId| program.stages[stage.0].header != Some(header);
        let steps = if stage == start || !without(start) {
            Some(Vec::new())
        } else {
            path(&flow.facts, start, stage, without)
        };
        if steps.is_none()
            && let Some(removed) = removed::removed_before(flow, program, reached, header)
        {
            return removed::removed_header(program, header, span, removed);
        }
        if let Some(steps) = steps {
            diagnostic = diagnostic.place(program.stages[start.0].name_span, "a packet comes in here");
            for step in &steps {
                diagnostic =
                    diagnostic.place(step.span, format!("goes on to `{}`", program.stages[step.to.0].name));
            }
            diagnostic.witness = witness::packet(program, flow, start, &steps);
        }
        let layout = |header: HeaderId| program.headers[header.0].layout;
        let alike = program.stages[stage.0].header.into_iter().chain(flow.available[stage.0].iter().copied());
        if let Some(alike) =
            alike.into_iter().find(|&alike| alike != header && layout(alike) == layout(header))
        {
            let (of, called) = (&program.layouts[layout(header).0].name, &program.headers[alike.0].name);
            diagnostic =
                diagnostic.place(span, format!("the header of layout {of} is called `{called}` here"));
        }
    }
    let names: Vec<String> =
        decoders.iter().map(|decoder| format!("`{}`", program.stages[decoder.0].name)).collect();
    if decoders.iter().any(|decoder| reached.contains(decoder)) {
        let names = names.join(" and ");
        diagnostic.help(format!(
            "`{name}` is decoded in {names} only; let every path pass there, or do this in another stage"
        ))
    } else {
        let names = names.join(" or ");
        diagnostic.help(format!("`{name}` is decoded in {names}, which no packet reaches: go there first"))
    }
}

fn order(flow: &Flow, start: StageId) -> Vec<StageId> {
    let mut order = Vec::new();
    let mut seen = BTreeSet::from([start]);
    let mut stack = vec![(start, 0usize)];
    while let Some((stage, next)) = stack.pop() {
        match flow.facts[stage.0].transfers.get(next) {
            Some(transfer) => {
                stack.push((stage, next + 1));
                if seen.insert(transfer.to) {
                    stack.push((transfer.to, 0));
                }
            }
            None => order.push(stage),
        }
    }
    order.reverse();
    order
}

/// Events that raise each other at once would never end.
fn check_events(program: &Program, diagnostics: &mut Vec<Diagnostic>) {
    let raises: Vec<Vec<(usize, Span)>> =
        program.events.iter().map(|event| collect::raises_at_once(&event.body)).collect();
    let mut told = BTreeSet::new();
    for start in 0..raises.len() {
        if told.contains(&start) {
            continue;
        }
        let Some(mut circle) = graph::way(start, start, |event| raises[event].clone()) else { continue };
        told.extend(circle.iter().map(|(event, _)| *event));
        let Some((_, last)) = circle.pop() else { continue };
        let mut diagnostic = Diagnostic::error(
            "E0603",
            format!("`{}` raises itself at once", program.events[start].name),
            last,
            "raised again here",
        )
        .place(program.events[start].span, "the event")
        .help("let time pass in between: `after 1s raise …`");
        for (event, span) in circle {
            diagnostic = diagnostic.place(span, format!("raises `{}`", program.events[event].name));
        }
        diagnostics.push(diagnostic);
    }
}
