//! What a program costs at most: work for one packet, event or timer, and memory for what it remembers.
//!
//! The bound of a function is its longest path. Blocks that form a loop (a strongly connected component of
//! the graph) count together: the loop's longest way without passing the `ok` of a fuel, as often as its fuel
//! allows and once more; what is left has no cycles. Each figure is maximised by itself, so different figures
//! may come from different paths, and none can be exceeded.

use crate::components::{Components, is_circle};
use crate::limits::LONGEST_PACKET;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use ir::footprint::{MemoryUse, footprint, total, total_of};
use ir::*;

/// Upper bounds for a verified program. A figure of [`u64::MAX`] means "no bound known".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// One for each function: the packet function first, then handlers.
    pub functions: Vec<FunctionCost>,
    /// What the program remembers, declaration by declaration.
    pub footprint: Vec<MemoryUse>,
    /// All of it together with one worker, in bytes.
    pub memory: u64,
}

impl Cost {
    /// All of it together with so many workers, in bytes.
    pub fn memory_of(&self, workers: u16) -> u64 {
        total_of(&self.footprint, workers)
    }
}

/// Bounds for one run of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCost {
    /// Its name.
    pub name: String,
    /// The bounds.
    pub bound: Bound,
    /// Its loops in the order in which packets come to them.
    pub loops: Vec<LoopCost>,
}

/// A loop of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopCost {
    /// Its first block in the function's order.
    pub first: u32,
    /// How many blocks it has.
    pub blocks: u32,
    /// The most times it comes round for one packet.
    pub rounds: u64,
    /// The bounds for one round.
    pub round: Bound,
}

/// Upper bounds of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// Instructions and ends of blocks, without those that only serve traces.
    pub instructions: u64,
    /// Searches in tables: lookups, and one for each key of "has room".
    pub lookups: u64,
    /// Entries learned or removed, and defaults set or cleared.
    pub table_writes: u64,
    /// Packets made from templates and copies.
    pub packets_made: u64,
    /// Events raised.
    pub events: u64,
    /// Bytes of the packet read or written, and of templates copied out. A tail that is appended to a made
    /// packet is not counted, nor what moves when a packet gets longer or shorter.
    pub bytes_touched: u64,
}

/// The bounds of a program.
///
/// They hold for programs that `verify` accepts; for others the figures mean nothing, but are given all the
/// same.
pub fn cost(program: &Program) -> Cost {
    let functions = program.functions.iter().map(|function| function_cost(program, function)).collect();
    let footprint = footprint(program);
    let memory = total(&footprint);
    Cost { functions, footprint, memory }
}

/// One figure of a bound.
type Figure = fn(&Bound) -> u64;

impl Bound {
    const FIGURES: [(&'static str, Figure); 6] = [
        ("instructions", |bound| bound.instructions),
        ("lookups", |bound| bound.lookups),
        ("table writes", |bound| bound.table_writes),
        ("packets made", |bound| bound.packets_made),
        ("events", |bound| bound.events),
        ("bytes touched", |bound| bound.bytes_touched),
    ];

    fn combine(self, other: Bound, with: impl Fn(u64, u64) -> u64) -> Bound {
        Bound {
            instructions: with(self.instructions, other.instructions),
            lookups: with(self.lookups, other.lookups),
            table_writes: with(self.table_writes, other.table_writes),
            packets_made: with(self.packets_made, other.packets_made),
            events: with(self.events, other.events),
            bytes_touched: with(self.bytes_touched, other.bytes_touched),
        }
    }

    fn plus(self, other: Bound) -> Bound {
        self.combine(other, u64::saturating_add)
    }

    fn max(self, other: Bound) -> Bound {
        self.combine(other, u64::max)
    }

    fn times(self, factor: u64) -> Bound {
        self.combine(self, |figure, _| figure.saturating_mul(factor))
    }
}

impl Display for Bound {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let figures =
            Self::FIGURES.iter().map(|(name, figure)| (name, figure(self))).filter(|(_, figure)| *figure > 0);
        for (index, (name, figure)) in figures.enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(out, "{comma}{} {name}", Grouped(figure))?;
        }
        Ok(())
    }
}

impl Display for Cost {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for (index, function) in self.functions.iter().enumerate() {
            match index {
                0 => writeln!(out, "for each packet at most:")?,
                _ => writeln!(out, "for each run of {} at most:", function.name)?,
            }
            for (name, figure) in Bound::FIGURES {
                writeln!(out, "  {name:<14} {:>15}", Grouped(figure(&function.bound)).to_string())?;
            }
            for LoopCost { first, blocks, rounds, round } in &function.loops {
                let rounds = Grouped(*rounds);
                let plural = if *blocks == 1 { "" } else { "s" };
                writeln!(
                    out,
                    "  loop at b{first} ({blocks} block{plural}), at most {rounds} rounds of: {round}"
                )?;
            }
        }
        if self.footprint.is_empty() {
            return writeln!(out, "nothing is remembered");
        }
        writeln!(out, "memory at most:")?;
        for MemoryUse { what, name, count, parts, bytes, .. } in &self.footprint {
            let (count, bytes) = (Grouped(*count), Size(*bytes).to_string());
            writeln!(out, "  {name:<14} {bytes:>15}  (a {what}, {parts}: {count})")?;
        }
        writeln!(out, "  {:<14} {:>15}", "total", Size(self.memory).to_string())
    }
}

fn block_cost(program: &Program, block: &Block) -> Bound {
    let mut bound = Bound { instructions: 1, ..Bound::default() };
    for instruction in &block.instructions {
        let mut step = Bound { instructions: 1, ..Bound::default() };
        match &instruction.op {
            Op::EnterStage(_) | Op::Header { .. } => step.instructions = 0,
            Op::Load { bytes, .. } | Op::Store { bytes, .. } => step.bytes_touched = u64::from(*bytes),
            Op::Checksum { bytes, more, .. } => {
                let more = if more.is_some() { u64::from(LONGEST_PACKET) } else { 0 };
                step.bytes_touched = u64::from(*bytes) + more;
            }
            Op::Lookup { .. } | Op::Scan { .. } | Op::Choose { .. } | Op::Member { .. } | Op::Take { .. } => {
                step.lookups = 1
            }
            Op::HasRoom(keys) => step.lookups = keys.len() as u64,
            Op::Insert { .. }
            | Op::Withdraw { .. }
            | Op::Join { .. }
            | Op::Leave { .. }
            | Op::Give { .. } => step.table_writes = 1,
            Op::Learn { .. }
            | Op::Remove { .. }
            | Op::EndAfter { .. }
            | Op::SetDefault { .. }
            | Op::ClearDefault(_) => step.table_writes = 1,
            Op::Copy(_) => step.packets_made = 1,
            Op::Emit { template, .. } => {
                step.packets_made = 1;
                let template = program.templates.get(*template as usize);
                step.bytes_touched = template.map_or(0, |template| template.bytes.len() as u64);
            }
            Op::PushBytes { template, .. } => {
                let template = program.templates.get(*template as usize);
                step.bytes_touched = template.map_or(0, |template| template.bytes.len() as u64);
            }
            Op::Raise { .. } => step.events = 1,
            _ => {}
        }
        bound = bound.plus(step);
    }
    bound
}

fn function_cost(program: &Program, function: &Function) -> FunctionCost {
    let name = function.name.clone();
    if function.blocks.is_empty() {
        return FunctionCost { name, ..FunctionCost::default() };
    }
    let exists = |block: &usize| *block < function.blocks.len();
    let successors: Vec<Vec<usize>> = (function.blocks.iter())
        .map(|block| {
            block.terminator.targets().iter().map(|target| target.block.0 as usize).filter(exists).collect()
        })
        .collect();
    let components = Components::of(&successors, 0..1);
    let mut loops = Vec::new();
    // By component, which are numbered from the ends of the function to its entry: the most work from there
    // on.
    let mut from_there: Vec<Bound> = Vec::new();
    for (number, range) in components.ranges.iter().enumerate() {
        let members = &components.members[range.clone()];
        let mut after = Bound::default();
        for next in members.iter().flat_map(|&block| &successors[block]) {
            let next = components.of_node[*next];
            if next != number {
                after = after.max(from_there[next]);
            }
        }
        let own = if is_circle(&successors, members) {
            let found = loop_cost(program, function, &successors, members);
            let total = found.round.times(found.rounds);
            loops.push(found);
            total
        } else {
            block_cost(program, &function.blocks[members[0]])
        };
        from_there.push(own.plus(after));
    }
    loops.reverse();
    FunctionCost { name, bound: from_there.last().copied().unwrap_or_default(), loops }
}

fn loop_cost(
    program: &Program,
    function: &Function,
    successors: &[Vec<usize>],
    members: &[usize],
) -> LoopCost {
    let place: BTreeMap<usize, usize> =
        members.iter().enumerate().map(|(place, &block)| (block, place)).collect();
    let mut caps = BTreeMap::new();
    // The loop without the edges that use up fuel; what remains is free of cycles in a verified program.
    let inner: Vec<Vec<usize>> = (members.iter())
        .map(|&block| {
            let mut skipped = 0;
            if let Terminator::Fuel { slot, cap, ok, .. } = &function.blocks[block].terminator {
                skipped = 1;
                if place.contains_key(&(ok.block.0 as usize)) {
                    let largest = caps.entry(*slot).or_insert(*cap);
                    *largest = (*largest).max(*cap);
                }
            }
            successors[block].iter().skip(skipped).filter_map(|next| place.get(next).copied()).collect()
        })
        .collect();
    let mut round = Bound::default();
    let mut from_there: Vec<Bound> = vec![Bound::default(); members.len()];
    let components = Components::of(&inner, 0..inner.len());
    for (number, range) in components.ranges.iter().enumerate() {
        let inside = &components.members[range.clone()];
        let endless = is_circle(&inner, inside);
        for &member in inside {
            let mut bound = block_cost(program, &function.blocks[members[member]]);
            if endless {
                bound = bound.times(u64::MAX);
            }
            let next = inner[member].iter().filter(|next| components.of_node[**next] != number);
            let after = next.fold(Bound::default(), |after, next| after.max(from_there[*next]));
            from_there[member] = bound.plus(after);
            round = round.max(from_there[member]);
        }
    }
    LoopCost {
        first: members.iter().copied().min().unwrap_or(0) as u32,
        blocks: members.len() as u32,
        rounds: caps.values().fold(1, |sum: u64, cap| sum.saturating_add(u64::from(*cap))),
        round,
    }
}

/// A number with commas between thousands.
struct Grouped(u64);

impl Display for Grouped {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if self.0 == u64::MAX {
            return out.write_str("unbounded");
        }
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                out.write_str(",")?;
            }
            write!(out, "{digit}")?;
        }
        Ok(())
    }
}

/// Bytes in the largest binary unit that leaves at least one.
struct Size(u64);

impl Display for Size {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes @ 0..1024 => write!(out, "{bytes} B"),
            bytes @ 1024..1_048_576 => write!(out, "{:.1} KiB", bytes as f64 / 1024.0),
            bytes @ 1_048_576..1_073_741_824 => write!(out, "{:.1} MiB", bytes as f64 / 1_048_576.0),
            bytes => write!(out, "{:.1} GiB", bytes as f64 / 1_073_741_824.0),
        }
    }
}
