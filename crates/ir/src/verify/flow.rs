//! Checks what depends on paths: definitions before uses, fuel in every cycle, captured bytes before
//! accesses.
//!
//! Bounds: a fact "so many bytes from this value on are captured" begins on the way from a `need` to its
//! `ok`, at a join if every edge into it brings the fact (the smallest holds), and at a block parameter if
//! every edge hands over a value with a fact. Values never change and no instruction shortens the packet
//! (functions that do: see `moving`), so a fact that holds where a block begins holds in every block it
//! dominates; walking the dominator tree therefore finds the facts of each block in linear time. Loops begin
//! with the best assumption and repeat the walk, which only ever lowers facts, until nothing changes.

use super::paths::{Paths, Step};
use super::*;

/// Checks one function that `body` found well formed.
pub(super) fn check(index: usize, function: &Function, errors: &mut Vec<VerifyError>) {
    let paths = Paths::of(function);
    let mut report = |block: usize, instruction: Option<usize>, fault: Fault| {
        let place = FaultPlace { function: Some(index), block: Some(BlockId(block as u32)), instruction };
        errors.push(VerifyError { place, fault });
    };
    if let Some(block) = endless(function, &paths) {
        report(block, None, Fault::Endless);
    }
    let made = definitions(function);
    let late = late_uses(function, &paths, &made);
    if late.is_empty() {
        let faults = match moving::resizes(function) {
            true => moving::unproven(function, &paths),
            false => Bounds::of(function, &paths, &made).check(),
        };
        for (block, instruction, fault) in faults {
            report(block, Some(instruction), fault);
        }
    }
    for (block, instruction, value) in late {
        report(block, Some(instruction), Fault::NotDominated(value));
    }
}

/// A block on a cycle that does not pass the `ok` of a `Fuel`. The `out` of a `Fuel` is an edge like any
/// other: passing it is not limited.
fn endless(function: &Function, paths: &Paths) -> Option<usize> {
    let free = |block: usize| {
        let skipped = usize::from(matches!(function.blocks[block].terminator, Terminator::Fuel { .. }));
        paths.successors[block].iter().skip(skipped).copied()
    };
    let mut incoming = vec![0_usize; function.blocks.len()];
    for &block in &paths.order {
        free(block).for_each(|next| incoming[next] += 1);
    }
    let mut ready: Vec<usize> = paths.order.iter().copied().filter(|&block| incoming[block] == 0).collect();
    let mut left = paths.order.len();
    while let Some(block) = ready.pop() {
        left -= 1;
        for next in free(block) {
            incoming[next] -= 1;
            if incoming[next] == 0 {
                ready.push(next);
            }
        }
    }
    if left == 0 {
        return None;
    }
    // Every block left has a predecessor that is left: going back long enough ends on a cycle.
    let mut before = vec![0; function.blocks.len()];
    for &block in paths.order.iter().filter(|&&block| incoming[block] > 0) {
        free(block).for_each(|next| before[next] = block);
    }
    let start = paths.order.iter().copied().find(|&block| incoming[block] > 0)?;
    Some((0..left).fold(start, |block, _| before[block]))
}

/// Where a value is made: its block, and zero for a parameter or one more than the instruction's index.
type Made = Option<(usize, usize)>;

fn definitions(function: &Function) -> Vec<Made> {
    let mut made = vec![None; function.widths.len()];
    for (block, code) in function.blocks.iter().enumerate() {
        code.params.iter().for_each(|param| made[param.0 as usize] = Some((block, 0)));
        for (index, instruction) in code.instructions.iter().enumerate() {
            instruction.results.iter().for_each(|result| made[result.0 as usize] = Some((block, index + 1)));
        }
    }
    made
}

/// Uses that some path reaches before the definition.
fn late_uses(function: &Function, paths: &Paths, made: &[Made]) -> Vec<(usize, usize, Value)> {
    let mut late = Vec::new();
    for &block in &paths.order {
        let mut check = |instruction: usize, value: Value| {
            let early = made[value.0 as usize].is_some_and(|(at, step)| {
                if at == block {
                    step <= instruction
                } else {
                    paths.is_reachable(at) && paths.dominates(at, block)
                }
            });
            if !early {
                late.push((block, instruction, value));
            }
        };
        let code = &function.blocks[block];
        for (index, instruction) in code.instructions.iter().enumerate() {
            instruction.op.operands(|value| check(index, value));
        }
        code.terminator.operands(|value| check(code.instructions.len(), value));
    }
    late
}

/// One edge between reachable blocks.
struct Edge<'a> {
    from: usize,
    to: usize,
    args: &'a [Value],
    /// What a `need` shows on this edge.
    shows: Option<(Value, u32)>,
    /// For each value in `begins[to]`, the fact that this edge brings.
    brings: Vec<u32>,
}

impl Edge<'_> {
    /// The value on this side that stands for the `index`th of `begins`.
    fn handed(&self, index: usize, begins: &[Value]) -> Value {
        self.args.get(index).copied().unwrap_or(begins[index])
    }
}

struct Bounds<'a> {
    function: &'a Function,
    paths: &'a Paths,
    edges: Vec<Edge<'a>>,
    /// By block: indexes of the edges into and out of it.
    incoming: Vec<Vec<usize>>,
    outgoing: Vec<Vec<usize>>,
    /// By block: values whose facts may begin here, the parameters first.
    begins: Vec<Vec<Value>>,
    /// By value: so many bytes from it on are captured, at the place where the walk is.
    shown: Vec<u32>,
}

impl<'a> Bounds<'a> {
    fn of(function: &'a Function, paths: &'a Paths, made: &[Made]) -> Self {
        let count = function.blocks.len();
        let mut bounds = Self {
            function,
            paths,
            edges: Vec::new(),
            incoming: vec![Vec::new(); count],
            outgoing: vec![Vec::new(); count],
            begins: function.blocks.iter().map(|block| block.params.clone()).collect(),
            shown: vec![0; function.widths.len()],
        };
        for &from in &paths.order {
            let terminator = &function.blocks[from].terminator;
            for (index, target) in terminator.targets().into_iter().enumerate() {
                let shows = match terminator {
                    Terminator::Need { base, bytes, .. } if index == 0 => Some((*base, *bytes)),
                    _ => None,
                };
                let to = target.block.0 as usize;
                bounds.incoming[to].push(bounds.edges.len());
                bounds.outgoing[from].push(bounds.edges.len());
                bounds.edges.push(Edge { from, to, args: &target.args, shows, brings: Vec::new() });
            }
        }
        for &block in paths.order.iter().skip(1) {
            let candidates = bounds.candidates(block, made);
            bounds.begins[block].extend(candidates);
        }
        for edge in &mut bounds.edges {
            edge.brings = vec![u32::MAX; bounds.begins[edge.to].len()];
        }
        bounds
    }

    /// Values that are made above a block and may gain facts on every edge into it: those that do on one
    /// edge.
    fn candidates(&self, block: usize, made: &[Made]) -> Vec<Value> {
        let (paths, top) = (self.paths, self.paths.dominator[block]);
        let forward = self.incoming[block].iter().map(|&edge| &self.edges[edge]);
        let forward = forward.filter(|edge| paths.position[edge.from] < paths.position[block]);
        let Some(edge) = forward.min_by_key(|edge| paths.depth[edge.from]) else { return Vec::new() };
        let mut values: Vec<Value> = edge.shows.iter().map(|(base, _)| *base).collect();
        let mut above = edge.from;
        while above != top {
            values.extend(&self.begins[above]);
            above = paths.dominator[above];
        }
        values.retain(|value| made[value.0 as usize].is_some_and(|(at, _)| paths.dominates(at, top)));
        values.sort_unstable();
        values.dedup();
        values
    }

    /// Accesses that are not justified, once the facts are settled.
    fn check(mut self) -> Vec<(usize, usize, Fault)> {
        loop {
            let mut faults = Vec::new();
            let mut lowered = false;
            let mut undo = Vec::new();
            for &step in &self.paths.walk {
                match step {
                    Step::Enter(block) => {
                        undo.push(self.enter(block));
                        self.accesses(block, &mut faults);
                        lowered |= self.hand_over(block);
                    }
                    Step::Leave(_) => {
                        for (value, before) in undo.pop().into_iter().flatten().rev() {
                            self.shown[value] = before;
                        }
                    }
                }
            }
            if !lowered {
                return faults;
            }
        }
    }

    /// Puts the facts that begin at a block in force; gives what they replace.
    fn enter(&mut self, block: usize) -> Vec<(usize, u32)> {
        let mut replaced = Vec::new();
        for (index, value) in self.begins[block].iter().enumerate() {
            let value = value.0 as usize;
            let brought =
                self.incoming[block].iter().map(|&edge| self.edges[edge].brings[index]).min().unwrap_or(0);
            if brought > self.shown[value] {
                replaced.push((value, self.shown[value]));
                self.shown[value] = brought;
            }
        }
        replaced
    }

    /// Hands the facts at the end of a block to its edges; says whether one became lower.
    fn hand_over(&mut self, block: usize) -> bool {
        let mut lowered = false;
        for &edge in &self.outgoing[block] {
            let edge = &mut self.edges[edge];
            let begins = &self.begins[edge.to];
            for index in 0..begins.len() {
                let value = edge.handed(index, begins);
                let shown = match edge.shows {
                    Some((base, bytes)) if base == value => bytes.max(self.shown[value.0 as usize]),
                    _ => self.shown[value.0 as usize],
                };
                if shown < edge.brings[index] {
                    edge.brings[index] = shown;
                    lowered = true;
                }
            }
        }
        lowered
    }

    fn accesses(&self, block: usize, faults: &mut Vec<(usize, usize, Fault)>) {
        for (index, instruction) in self.function.blocks[block].instructions.iter().enumerate() {
            let fault = unproven_access(&instruction.op, |base| self.shown[base.0 as usize]);
            faults.extend(fault.map(|fault| (block, index, fault)));
        }
    }
}

/// What is wrong with an access where so many bytes from a value on are shown to be captured.
pub(super) fn unproven_access(op: &Op, shown: impl Fn(Value) -> u32) -> Option<Fault> {
    let (base, end, proven) = match *op {
        Op::Load { base, offset, bytes, proven } | Op::Store { base, offset, bytes, proven, .. } => {
            (base, u64::from(offset) + u64::from(bytes), proven)
        }
        Op::Checksum { base, bytes, .. } => (base, bytes.into(), bytes),
        _ => return None,
    };
    let shown = shown(base);
    if end > u64::from(proven) {
        return Some(Fault::NotProven { base, bytes: end, shown: proven });
    }
    (proven > shown).then(|| Fault::NotProven { base, bytes: proven.into(), shown })
}
