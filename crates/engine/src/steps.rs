//! The steps of a packet in the interpreter: recorded while the packet runs, and described afterwards in the
//! words of the program.

use crate::places::place;
use crate::value::{columns, value};
use exec::{Learned, Observer};
use ir::source::{Sources, Span};
use ir::{BlockId, ColumnKind, Instruction, Layout, Op, Program, Terminator, Value};
use serde::Serialize;

/// One step of a run, as it was recorded.
#[derive(Clone, Debug)]
pub enum Moment {
    /// A handler began, with its arguments.
    Handler(u32, Vec<u128>),
    /// A decoder or stage began.
    Stage(u32),
    /// A header was decoded: its layout, position, name, and the packet's bytes at that time.
    Header(u32, u32, String, Vec<u8>),
    /// A table was looked up.
    Lookup(u32, Vec<u128>, Option<Vec<u128>>, Span),
    /// A table learned an entry.
    Learn(u32, Vec<u128>, Vec<u128>, Learned, Span),
    /// Another instruction was done, with its results.
    Instruction(u32, Instruction, Vec<u128>),
    /// A block of a function ended and went on there.
    End(u32, BlockId, Option<BlockId>),
}

/// The description of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceStep {
    /// The line of the program: `firewall.rav:12`; empty if the step has no line.
    pub place: String,
    /// What happened there.
    pub step: String,
}

/// The steps in the words of the program; steps that have no meaning for its reader are left out.
///
/// From a hit in a table that is `secret` on, steps are told without values: any of them may follow from it.
pub fn told(program: &Program, sources: &Sources, moments: &[Moment]) -> Vec<TraceStep> {
    let mut shows = Shows::Values;
    let told = moments.iter().filter_map(|moment| {
        let span = span(program, moment);
        let place = span.map_or_else(String::new, |span| place(sources, span));
        if asked(moment).is_some_and(|table| program.tables.get(table as usize).is_none_or(|it| it.secret)) {
            shows = Shows::NoValues;
        }
        Some(TraceStep { place, step: words(program, moment, shows)? })
    });
    told.collect()
}

/// The table of which a step knows what it holds, if it does.
fn asked(moment: &Moment) -> Option<u32> {
    match moment {
        Moment::Lookup(table, _, Some(_), _) => Some(*table),
        // What a search finds, and whether it does, are values of the instruction itself.
        Moment::Instruction(_, instruction, _) => match instruction.op {
            Op::Scan { table, .. } => Some(table),
            _ => None,
        },
        _ => None,
    }
}

/// Whether steps are told with the values that the program computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    Values,
    NoValues,
}

impl Shows {
    /// Some values, or a sign in their place.
    fn values(self, text: impl FnOnce() -> String) -> String {
        if self == Shows::Values { text() } else { "…".to_owned() }
    }
}

/// Records the steps of chosen packets of a batch.
#[derive(Debug, Default)]
pub struct Recorder {
    /// The chosen packets: their index in the batch, and their bytes as they came in.
    wanted: Vec<(usize, Vec<u8>)>,
    recorded: Vec<(usize, Vec<Moment>)>,
    started: bool,
    packet: Vec<u8>,
    moments: Vec<Moment>,
    /// Lookups and learns whose instruction has not been reported yet.
    waiting: Vec<Moment>,
}

impl Recorder {
    /// Requests the steps of packet `index` of the next batch, which has these bytes.
    pub fn want(&mut self, index: usize, bytes: Vec<u8>) {
        self.wanted.push((index, bytes));
    }

    /// Returns the recorded steps of the chosen packets, by their index, and ends the recording.
    pub fn take(&mut self) -> Vec<(usize, Vec<Moment>)> {
        self.wanted.clear();
        std::mem::take(&mut self.recorded)
    }

    fn add(&mut self, moment: impl FnOnce() -> Moment) {
        if self.started {
            self.moments.push(moment());
        }
    }
}

impl Observer for Recorder {
    fn packet(&mut self, index: usize, _now: u64) {
        if let Some(place) = self.wanted.iter().position(|(wanted, _)| *wanted == index) {
            self.packet = self.wanted.swap_remove(place).1;
            self.started = true;
        }
    }

    fn packet_end(&mut self, index: usize) {
        if std::mem::take(&mut self.started) {
            self.recorded.push((index, std::mem::take(&mut self.moments)));
        }
    }

    fn handler(&mut self, function: u32, args: &[u128], _now: u64) {
        self.add(|| Moment::Handler(function, args.to_vec()));
    }

    fn stage(&mut self, stage: u32) {
        self.add(|| Moment::Stage(stage));
    }

    fn header(&mut self, layout: u32, base: u32, name: &str) {
        if self.started {
            self.moments.push(Moment::Header(layout, base, name.to_owned(), self.packet.clone()));
        }
    }

    fn instruction(&mut self, function: u32, instruction: &Instruction, results: &[u128]) {
        if !self.started {
            return;
        }
        for mut moment in self.waiting.drain(..) {
            if let Moment::Lookup(.., span) | Moment::Learn(.., span) = &mut moment {
                *span = instruction.span;
            }
            self.moments.push(moment);
        }
        self.moments.push(Moment::Instruction(function, instruction.clone(), results.to_vec()));
    }

    fn resized(&mut self, bytes: &[u8]) {
        self.packet = bytes.to_vec();
    }

    fn lookup(&mut self, table: u32, key: &[u128], hit: Option<&[u128]>) {
        if self.started {
            let hit = hit.map(<[u128]>::to_vec);
            self.waiting.push(Moment::Lookup(table, key.to_vec(), hit, Span::default()));
        }
    }

    fn learn(&mut self, table: u32, key: &[u128], taught: &[u128], learned: Learned) {
        if self.started {
            let moment = Moment::Learn(table, key.to_vec(), taught.to_vec(), learned, Span::default());
            self.waiting.push(moment);
        }
    }

    fn terminator(&mut self, function: u32, block: BlockId, next: Option<BlockId>) {
        self.add(|| Moment::End(function, block, next));
    }
}

/// The place of a step in the program's text.
fn span(program: &Program, moment: &Moment) -> Option<Span> {
    match moment {
        Moment::Stage(stage) => program.stages.get(*stage as usize).map(|stage| stage.span),
        Moment::Lookup(.., span) | Moment::Learn(.., span) => Some(*span),
        Moment::Instruction(_, instruction, _) => Some(instruction.span),
        Moment::End(function, block, _) => {
            let function = program.functions.get(*function as usize);
            function.and_then(|function| function.blocks.get(block.0 as usize)).map(|block| block.span)
        }
        Moment::Handler(..) | Moment::Header(..) => None,
    }
}

/// The description of a step; `None` if it has no meaning for the program's reader.
fn words(program: &Program, moment: &Moment, shows: Shows) -> Option<String> {
    match moment {
        Moment::Handler(function, args) => handler(program, *function, args, shows),
        Moment::Stage(stage) => Some(format!("→ {}", program.stages.get(*stage as usize)?.name)),
        Moment::Header(layout, base, name, packet) => {
            let layout = program.layouts.get(*layout as usize)?;
            let fields = shows.values(|| fields(layout, *base, packet).join(", "));
            Some(format!("  header {name}: {} at byte {base}: {fields}", layout.name))
        }
        Moment::Lookup(table, key, hit, _) => {
            let table = program.tables.get(*table as usize)?;
            let shows = if table.secret { Shows::NoValues } else { shows };
            let key = shows.values(|| columns(&table.keys, key));
            Some(match hit {
                Some(_) if table.secret => format!("  {}[{key}] is there, and secret", table.name),
                Some(_) if table.values.is_empty() => format!("  {}[{key}] is there", table.name),
                Some(hit) => {
                    format!("  {}[{key}] is {}", table.name, shows.values(|| columns(&table.values, hit)))
                }
                None => format!("  {}[{key}] is not there", table.name),
            })
        }
        Moment::Learn(table, key, taught, learned, _) => {
            let table = program.tables.get(*table as usize)?;
            let came = match learned {
                Learned::New => "new",
                Learned::Confirmed => "known, renewed",
                Learned::Moved => "changed",
                Learned::Refused => "refused: the table is full",
            };
            let shows = if table.secret { Shows::NoValues } else { shows };
            let key = shows.values(|| columns(&table.keys, key));
            let taught = shows.values(|| columns(&table.values, taught));
            Some(format!("  learn {}[{key}] = {taught} ({came})", table.name))
        }
        Moment::Instruction(function, instruction, results) => {
            instruction_words(program, *function, instruction, results, shows)
        }
        Moment::End(function, block, next) => end(program, *function, *block, *next),
    }
}

fn handler(program: &Program, function: u32, args: &[u128], shows: Shows) -> Option<String> {
    let event = program.events.iter().find(|event| event.handler == function);
    Some(match event {
        Some(event) => format!("→ event {}({})", event.name, shows.values(|| columns(&event.params, args))),
        None => format!("→ {}", program.functions.get(function as usize)?.name),
    })
}

fn instruction_words(
    program: &Program,
    function: u32,
    instruction: &Instruction,
    results: &[u128],
    shows: Shows,
) -> Option<String> {
    let counter = |index: &u32| program.counters.get(*index as usize).map(|counter| counter.name.clone());
    match &instruction.op {
        Op::Remove { table, .. } => {
            Some(format!("  remove from {}", program.tables.get(*table as usize)?.name))
        }
        Op::EndAfter { table, .. } => Some(format!(
            "  an entry of {} with this key that packets made ends by a lifetime of its own",
            program.tables.get(*table as usize)?.name
        )),
        Op::SetDefault { table, .. } => {
            Some(format!("  set the default of {}", program.tables.get(*table as usize)?.name))
        }
        Op::ClearDefault(table) => {
            Some(format!("  remove the default of {}", program.tables.get(*table as usize)?.name))
        }
        Op::Count { counter: index, .. } => Some(format!("  count {}", counter(index)?)),
        Op::Raise { event, delay, .. } => {
            let name = &program.events.get(*event as usize)?.name;
            let when = if delay.is_some() { " for later" } else { "" };
            Some(format!("  raise {name}{when}"))
        }
        Op::Copy(_) => Some("  a copy is sent".into()),
        Op::Emit { .. } => Some("  a packet is made and sent".into()),
        Op::PushBytes { template, .. } => {
            let bytes = program.templates.get(*template as usize)?.bytes.len();
            let done = if results == [1] { "go in" } else { "should go in, and there is no room" };
            Some(format!("  {bytes} bytes {done}"))
        }
        Op::PopBytes { .. } => Some("  bytes are taken out".into()),
        Op::Truncate(_) => Some("  the end is cut off".into()),
        Op::Fragment { .. } => Some("  it is to leave in fragments".into()),
        Op::Store { bytes, .. } => Some(format!("  {bytes} bytes of the packet are changed")),
        // A step of its own describes these.
        Op::Lookup { .. } | Op::Learn { .. } => None,
        _ => {
            let named: Vec<String> = instruction
                .results
                .iter()
                .zip(results)
                .filter_map(|(result, &number)| {
                    let (name, kind) = name(program, function, *result)?;
                    Some(format!("{name} is {}", shows.values(|| value(kind, number))))
                })
                .collect();
            (!named.is_empty()).then(|| format!("  {}", named.join(", ")))
        }
    }
}

fn name(program: &Program, function: u32, wanted: Value) -> Option<(&str, &ColumnKind)> {
    let function = program.functions.get(function as usize)?;
    let (_, name, kind) = function.names.iter().find(|(value, ..)| *value == wanted)?;
    Some((name, kind))
}

fn end(program: &Program, function: u32, block: BlockId, next: Option<BlockId>) -> Option<String> {
    let block = program.functions.get(function as usize)?.blocks.get(block.0 as usize)?;
    let reason = |index: u16| program.reasons.get(index as usize).map(|reason| reason.name.clone());
    match &block.terminator {
        Terminator::Need { bytes, ok, short, .. } if next == Some(short.block) && ok.block != short.block => {
            Some(format!("  at least {bytes} more bytes are needed and not there"))
        }
        Terminator::Fuel { out, ok, cap, .. } if next == Some(out.block) && ok.block != out.block => {
            Some(format!("  more than {cap} times round"))
        }
        Terminator::Send(_) => Some("  send".into()),
        Terminator::Flood => Some("  flood".into()),
        Terminator::Multicast(_) => Some("  multicast".into()),
        Terminator::Drop(index) => Some(format!("  drop {}", reason(*index)?)),
        Terminator::Punt(index) => Some(format!("  punt {}", reason(*index)?)),
        _ => None,
    }
}

/// The fields of a header whose places are the same in every header, by name and value.
fn fields(layout: &Layout, base: u32, packet: &[u8]) -> Vec<String> {
    layout
        .fields
        .iter()
        .filter_map(|field| {
            let (bit, width) = (field.bit? as usize, field.width? as usize);
            if width == 0 || width > 128 {
                return None;
            }
            let start = base as usize * 8 + bit;
            let mut number = 0u128;
            for at in start..start + width {
                let byte = *packet.get(at / 8)?;
                number = number << 1 | u128::from(byte >> (7 - at % 8) & 1);
            }
            Some(format!("{} {}", field.name, value(&field.kind, number)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir::LayoutField;

    #[test]
    fn fields_are_read_bit_by_bit() {
        let field = |name: &str, bit, width| LayoutField {
            name: name.into(),
            kind: ColumnKind::Uint,
            bit: Some(bit),
            width: Some(width),
        };
        let layout = Layout {
            name: "ipv4".into(),
            fields: vec![
                field("version", 0, 4),
                field("ihl", 4, 4),
                field("rest", 8, 16),
                field("cut", 24, 8),
            ],
        };
        assert_eq!(fields(&layout, 1, &[0, 0x45, 1, 2]), ["version 4", "ihl 5", "rest 258"]);
    }
}
