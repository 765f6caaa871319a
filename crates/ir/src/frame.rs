//! How much stack a function needs as machine code, known from the IR alone.
//!
//! Machine code needs stack for two things. Lists of values on their way to a host function (holes of a made
//! packet, arguments of an event, columns) lie there as pairs of words, in one place as long as the longest
//! list. Values that live while others are computed lie there where registers do not suffice: a value lives
//! from where it is made to its last use, on every way between. The estimate is what both come to where they
//! are largest. The code generator computes some values later than the IR does, from others that then live
//! longer; there is room for that, but no proof that it suffices, so what is laid out is measured as well
//! when a program is loaded.

use super::{Function, Instruction, KeyPart, Op, Program, Terminator, Value};
use crate::limits::{LARGEST_FRAME, LARGEST_RULES_KEY, LARGEST_WORDS};
use crate::source::Span;

/// What every function needs: a key, a value and a kept word on their way, saved registers, what is handed
/// over at calls, and values of both ways of a short branch, which are computed together.
const ALWAYS: u64 = ((LARGEST_RULES_KEY + LARGEST_WORDS) as u64 + 1) * 8 + 512;

/// Bytes for a word that lives: eight, and as many for words that the code generator computes later than the
/// IR, from others that live meanwhile.
const WORD: u64 = 16;

/// Words of the context, the packet and its port, which live as long as the function.
const ARGUMENTS: u64 = 8;

/// The stack that a function needs, and what needs most of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// Bytes.
    pub bytes: u64,
    /// The longest list, or where most values live.
    pub span: Span,
}

impl StackFrame {
    /// Whether no machine code is made for it.
    pub fn is_too_large(&self) -> bool {
        self.bytes > u64::from(LARGEST_FRAME)
    }
}

/// Estimates the frame of a function that is well formed.
pub fn frame(function: &Function) -> StackFrame {
    let (list, list_span) = longest_list(function);
    let (live, live_span) = most_alive(function);
    let fuel = function.blocks.iter().filter_map(|block| match block.terminator {
        Terminator::Fuel { slot, .. } => Some(slot),
        _ => None,
    });
    let mut fuel: Vec<u32> = fuel.collect();
    fuel.sort_unstable();
    fuel.dedup();
    let (lists, values) = (list as u64 * 16, live * WORD);
    let words = ARGUMENTS + fuel.len() as u64;
    StackFrame {
        bytes: ALWAYS + lists + values + words * 8,
        span: if lists > values { list_span } else { live_span },
    }
}

/// The first function of a program that needs more stack than it may have.
pub fn too_large(program: &Program) -> Option<(usize, StackFrame)> {
    program.functions.iter().map(frame).enumerate().find(|(_, frame)| frame.is_too_large())
}

/// The longest list of values that an instruction hands over as pairs of words, and where it is.
pub fn longest_list(function: &Function) -> (usize, Span) {
    let instructions = function.blocks.iter().flat_map(|block| &block.instructions);
    let lists = instructions.map(|instruction| (listed(&instruction.op), instruction.span));
    lists.max_by_key(|(length, _)| *length).unwrap_or_default()
}

/// How many values an instruction hands over as pairs of words.
fn listed(op: &Op) -> usize {
    match op {
        Op::Raise { args: values, .. }
        | Op::Emit { values, .. }
        | Op::PushBytes { values, .. }
        | Op::Give { item: values, .. }
        | Op::Join { member: values, .. }
        | Op::Leave { member: values, .. } => values.len(),
        Op::Insert { key, value, .. } => made(key) + value.len(),
        Op::Withdraw { key, .. } => made(key),
        _ => 0,
    }
}

/// How many parts of a key are values.
fn made(key: &[KeyPart]) -> usize {
    key.iter().filter(|part| !matches!(part, KeyPart::Fixed(_))).count()
}

/// A place in a block: 0 are its parameters, then come its instructions, then its terminator.
type Step = usize;

/// Where a value is made, and how many words it takes while it lives; constants are made anew wherever they
/// are used.
#[derive(Clone, Copy, Default)]
struct Made {
    block: usize,
    step: Step,
    words: u64,
}

/// The words of all values that live at once, where that is most.
///
/// From each use of a value one goes back along the edges to where it is made: it lives in all blocks on the
/// way.
fn most_alive(function: &Function) -> (u64, Span) {
    let blocks = &function.blocks;
    let made = made_values(function);
    let uses = Uses::of(function);
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); blocks.len()];
    for (index, block) in blocks.iter().enumerate() {
        for target in block.terminator.targets() {
            before[target.block.0 as usize].push(index);
        }
    }
    // Per block and step, how many words more live than at the step before.
    let mut change: Vec<Vec<i64>> =
        blocks.iter().map(|block| vec![0; block.instructions.len() + 3]).collect();
    let mut through = vec![0; blocks.len()];
    let mut seen = vec![Seen::default(); blocks.len()];
    let (mut open, mut touched) = (Vec::new(), Vec::new());
    for (value, made) in made.iter().enumerate().filter(|(_, made)| made.words > 0) {
        touch(&mut seen, &mut touched, made.block).start = made.step;
        for &(block, step) in uses.of_value(value) {
            let here = touch(&mut seen, &mut touched, block);
            here.last = here.last.max(step);
            if block != made.block && !std::mem::replace(&mut here.begins, true) {
                open.push(block);
            }
        }
        while let Some(block) = open.pop() {
            for &earlier in &before[block] {
                let here = touch(&mut seen, &mut touched, earlier);
                here.goes_on = true;
                if earlier != made.block && !std::mem::replace(&mut here.begins, true) {
                    open.push(earlier);
                }
            }
        }
        for block in touched.drain(..) {
            let here = std::mem::take(&mut seen[block]);
            let words = made.words as i64;
            if here.begins && here.goes_on {
                through[block] += words;
                if through[block] as u64 * 8 > u64::from(LARGEST_FRAME) {
                    return (through[block] as u64, blocks[block].span);
                }
                continue;
            }
            let end = if here.goes_on { change[block].len() - 2 } else { here.last.max(here.start) };
            change[block][here.start] += words;
            change[block][end + 1] -= words;
        }
    }
    let mut most = (0, Span::default());
    for (index, block) in blocks.iter().enumerate() {
        let mut alive = through[index];
        for (step, change) in change[index].iter().enumerate() {
            alive += change;
            if alive as u64 > most.0 {
                let at = step.checked_sub(1).and_then(|step| block.instructions.get(step));
                most = (alive as u64, at.map_or(block.span, |instruction| instruction.span));
            }
        }
    }
    most
}

/// What one value does in one block.
#[derive(Clone, Copy, Default)]
struct Seen {
    touched: bool,
    /// It lives where the block begins.
    begins: bool,
    /// It lives where the block ends.
    goes_on: bool,
    start: Step,
    last: Step,
}

fn touch<'a>(seen: &'a mut [Seen], touched: &mut Vec<usize>, block: usize) -> &'a mut Seen {
    if !std::mem::replace(&mut seen[block].touched, true) {
        touched.push(block);
    }
    &mut seen[block]
}

fn made_values(function: &Function) -> Vec<Made> {
    let mut made = vec![Made::default(); function.widths.len()];
    for (block, code) in function.blocks.iter().enumerate() {
        let results = |(index, instruction): (usize, &'_ Instruction)| {
            let constant = matches!(instruction.op, Op::Const(_));
            let results = if constant { &[][..] } else { &instruction.results[..] };
            results.iter().map(|value| (index + 1, *value)).collect::<Vec<_>>()
        };
        let params = code.params.iter().map(|param| (0, *param));
        for (step, value) in params.chain(code.instructions.iter().enumerate().flat_map(results)) {
            let words = 1 + u64::from(function.width(value) > 64);
            made[value.0 as usize] = Made { block, step, words };
        }
    }
    made
}

/// Where every value is used, one value after the other.
struct Uses {
    first: Vec<usize>,
    places: Vec<(usize, Step)>,
}

impl Uses {
    fn of(function: &Function) -> Uses {
        let mut first = vec![0; function.widths.len() + 1];
        each_use(function, |value, _, _| first[value.0 as usize + 1] += 1);
        for index in 1..first.len() {
            first[index] += first[index - 1];
        }
        let mut next = first.clone();
        let mut places = vec![(0, 0); first.last().copied().unwrap_or(0)];
        each_use(function, |value, block, step| {
            let place = &mut next[value.0 as usize];
            places[*place] = (block, step);
            *place += 1;
        });
        Uses { first, places }
    }

    fn of_value(&self, value: usize) -> &[(usize, Step)] {
        &self.places[self.first[value]..self.first[value + 1]]
    }
}

fn each_use(function: &Function, mut visit: impl FnMut(Value, usize, Step)) {
    for (index, block) in function.blocks.iter().enumerate() {
        for (step, instruction) in block.instructions.iter().enumerate() {
            instruction.op.operands(|value| visit(value, index, step + 1));
        }
        block.terminator.operands(|value| visit(value, index, block.instructions.len() + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read;

    fn alive(packet: &str) -> u64 {
        let program = read(&format!(
            "program \"case\"\nslots 1\nreason r0 \"no_such_port\" \"none\"\nfunction f0 \"packet\" {{ {packet} }}"
        ));
        most_alive(&program.unwrap_or_else(|error| panic!("{error}")).functions[0]).0
    }

    #[test]
    fn values_live_from_where_they_are_made_to_their_last_use() {
        assert_eq!(alive("b0: flood"), 0);
        assert_eq!(alive("b0: %0:16 = in_port send %0"), 1);
        assert_eq!(alive("b0: %0:16 = in_port %1:16 = in_port send %1"), 1, "one is never used");
        assert_eq!(alive("b0: %0:16 = in_port %1:16 = in_port %2:16 = add %0, %1 send %2"), 3);
        assert_eq!(alive("b0: %0:16 = in_port %1:128 = resize %0 %2:16 = resize %1 send %2"), 3);
    }

    #[test]
    fn a_value_lives_in_all_blocks_up_to_its_use_and_all_the_way_round_a_loop() {
        let chain = "b0: %0:16 = in_port jump b1 b1: %1:16 = in_port jump b2 b2: %2:16 = add %0, %1 send %2";
        assert_eq!(alive(chain), 3);
        let round = "b0: %0:16 = in_port jump b1 b1: %1:16 = in_port %2:16 = add %0, %1 fuel 0 cap 4 ok b1 out b2 b2: flood";
        assert_eq!(alive(round), 3);
        let constants = "b0: %0:16 = const 1 %1:16 = const 2 %2:16 = add %0, %1 send %2";
        assert_eq!(alive(constants), 1, "constants cost nothing");
    }
}
