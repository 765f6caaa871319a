//! The native back end: a program compiled to machine code, run from a batch loop in Rust.

mod arithmetic;
mod asked;
mod batched_lookup;
mod bytes;
mod call;
mod checksum;
mod compile;
mod early_lookups;
mod effects;
mod host;
mod memory;
mod offloaded;
mod placements;
mod plan;
mod prefetch_hints;
mod tables;
mod translate;
mod words;

use crate::errors::LoadError;
use crate::execution::{Engine, Execution};
use crate::inspect::{Draft, Measurable, Measured};
use crate::outputs::{self, Now, Output, Outputs};
use crate::reports::BackendKind;
use crate::stages::StageClock;
use crate::state::table_set::{Fast, TablePlace};
use crate::state::{ProgramState, RunHandler};
use batched_lookup::BatchedLookup;
pub use call::prefetch;
use call::{Code, Context};
use early_lookups::KEPT_WORDS;
use ir::{Op, Program, Template};
use packet::batch::Batch;
use packet::verdict::Verdict;
use plan::{Plan, Variant};
use prefetch_hints::Hint;
use std::ops::Range;
use std::sync::Arc;

/// How many packets ahead frames are fetched into the cache.
pub const PREFETCH_DISTANCE: usize = 12;
/// From this number of entries on, the slots of a table do not stay in the nearer caches, so they are
/// prefetched, too.
const MANY_ENTRIES: u64 = 4096;

/// A program as machine code.
pub type Native = Execution<Fast, CompiledNative>;

/// The code, with the data to which it refers.
pub struct CompiledNative {
    code: Code,
    templates: Vec<Template>,
    plan: Arc<Plan>,
    /// The program, if its stages may be measured.
    program: Option<Arc<Program>>,
    /// The second variant of the code, which measures stages, once it was compiled. While this variant runs,
    /// the first variant is stored here.
    measured: Option<Code>,
    args: Vec<[u64; 2]>,
    /// Keys that are known before a packet runs.
    hints: Vec<Hint>,
    /// Those hints whose table is large at present.
    useful: Vec<Hint>,
    /// Whether packets raise no events, cause no outputs and keep their size.
    plain: bool,
    /// Whether packets may change their size.
    resizes: bool,
    /// The early lookups of a group of packets.
    batched: BatchedLookup,
}

impl Native {
    /// Compiles a program; see [`crate::load()`] for the arguments.
    pub fn new(program: &Program, ports: u16, seed: u64) -> Result<Native, LoadError> {
        crate::verify::verify(program)?;
        let state = ProgramState::new(program, ports, seed)?;
        let plan = Plan::new(program, ports, &state);
        let code = plan.compile(program, false, None)?.code;
        let templates = program.templates.clone();
        let mut hints = prefetch_hints::hints(program);
        let places = &state.tables.places;
        // Hints name tables by their number in the program. Only exact tables and prefixes of IPv4 are
        // prefetched.
        hints.retain_mut(|hint| match places[hint.table] {
            TablePlace::Exact(place) => {
                hint.table = place;
                true
            }
            TablePlace::Prefixes(place) => {
                (hint.table, hint.prefix) = (place, true);
                true
            }
            _ => false,
        });
        let useful = Vec::with_capacity(hints.len());
        let plain = is_plain(program);
        let resizes = program.manifest.resizes_packet;
        let args = Vec::new();
        let batched = BatchedLookup::new(&plan.lookups, &state);
        let plan = Arc::new(plan);
        let (program, measured) = (None, None);
        let engine = CompiledNative {
            code,
            templates,
            plan,
            program,
            measured,
            args,
            hints,
            useful,
            plain,
            resizes,
            batched,
        };
        Ok(Native { state, engine })
    }

    /// The same for a program whose stages may be measured while it runs.
    pub fn measurable(program: Arc<Program>, ports: u16, seed: u64) -> Result<Native, LoadError> {
        let mut native = Native::new(&program, ports, seed)?;
        native.engine.program = Some(program);
        Ok(native)
    }
}

/// The compiled program as text: for every function Cranelift's IR and the machine's instructions.
pub fn listing(program: &Program) -> Result<String, LoadError> {
    crate::verify::verify(program)?;
    let mut text = String::new();
    let state = ProgramState::<Fast>::new(program, u16::MAX, 0)?;
    Plan::new(program, u16::MAX, &state).compile(program, false, Some(&mut text))?;
    Ok(text)
}

/// How many bytes of stack each function of a program needs as machine code, by its name; parts of the packet
/// function follow under the same name.
pub fn frames(program: &Program) -> Result<Vec<(String, u32)>, LoadError> {
    crate::verify::verify(program)?;
    let state = ProgramState::<Fast>::new(program, u16::MAX, 0)?;
    Ok(Plan::new(program, u16::MAX, &state).compile(program, false, None)?.frames)
}

impl Engine<Fast> for CompiledNative {
    const BACK_END: BackendKind = BackendKind::Native;

    fn run(
        &mut self,
        state: &mut ProgramState<Fast>,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) {
        self.run_batch::<false>(state, memory, batch, outputs);
    }
}

impl Measurable<Fast> for CompiledNative {
    fn draft(&self) -> Option<Draft> {
        let program = self.program.as_ref().filter(|_| self.measured.is_none())?;
        Some(plan::draft(self.plan.clone(), program.clone()))
    }

    fn adopt(&mut self, measured: Measured) {
        // Code that was made with another plan may refer to other tables.
        if let Ok(variant) = measured.0.downcast::<Variant>()
            && Arc::ptr_eq(&variant.plan, &self.plan)
        {
            self.measured = Some(variant.code);
        }
    }

    fn run_measured(
        &mut self,
        state: &mut ProgramState<Fast>,
        clock: &mut StageClock,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) -> bool {
        let Some(measured) = &mut self.measured else { return false };
        std::mem::swap(&mut self.code, measured);
        std::mem::swap(&mut state.clock, clock);
        state.clock.begin(batch.len);
        self.run_batch::<true>(state, memory, batch, outputs);
        state.clock.leave();
        std::mem::swap(&mut state.clock, clock);
        if let Some(plain) = &mut self.measured {
            std::mem::swap(&mut self.code, plain);
        }
        true
    }
}

impl CompiledNative {
    /// Runs a batch; `MEASURED` says whether the code is the variant that measures stages.
    fn run_batch<const MEASURED: bool>(
        &mut self,
        state: &mut ProgramState<Fast>,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) {
        for i in 0..PREFETCH_DISTANCE.min(batch.len) {
            prefetch(memory, batch, i);
        }
        self.choose_hints(state);
        let mut batched = std::mem::take(&mut self.batched);
        batched.clear();
        let looking_up = batched.pays(state);
        let (mut next, end) = (0, batch.len.min(packet::BATCH));
        while next < end {
            let time = batch.time[next];
            if time.max(state.now) >= state.next_wake {
                state.handle_due(time, self, outputs);
            }
            next = if looking_up {
                self.stretch_looking_up::<MEASURED>(&mut batched, state, memory, batch, next, outputs)
            } else if self.plain && self.useful.is_empty() {
                self.stretch::<true>(state, memory, batch, next..end, outputs)
            } else {
                self.stretch::<false>(state, memory, batch, next..end, outputs)
            };
            if state.has_queued() {
                state.handle_queued(self, outputs);
            }
        }
        self.batched = batched;
        state.cause = Output::BETWEEN;
    }

    /// Chooses the hints that are useful at the present size of the tables.
    fn choose_hints(&mut self, state: &ProgramState<Fast>) {
        self.useful.clear();
        let entries = |hint: &Hint| match hint.prefix {
            true => state.tables.prefixes[hint.table].held() as u64,
            false => state.tables.exact[hint.table].held() as u64,
        };
        let large = |hint: &&Hint| entries(hint) >= MANY_ENTRIES;
        self.useful.extend(self.hints.iter().filter(large));
    }

    /// Runs these packets up to the first one that raises an event or before which something is due. Returns
    /// the index of the packet with which to go on. `PLAIN` is for programs whose packets raise no events,
    /// cause no outputs and keep their size, while no table is large: then nothing needs a packet's number
    /// and time, and only the clock makes something due.
    fn stretch<const PLAIN: bool>(
        &self,
        state: &mut ProgramState<Fast>,
        memory: &mut [u8],
        batch: &mut Batch,
        packets: Range<usize>,
        outputs: &mut Outputs,
    ) -> usize {
        let Range { start: first, end } = packets;
        let mut wake = state.next_wake;
        let mut context = Context::new(state, outputs, &self.templates, &self.plan.placements);
        // The key of a packet can be read only when its frame has arrived in the cache.
        let ahead = if PLAIN || self.useful.is_empty() { PREFETCH_DISTANCE } else { 2 * PREFETCH_DISTANCE };
        let mut i = first;
        while i < end {
            let time = batch.time[i].max(context.now);
            if !PLAIN {
                wake = context.state().next_wake;
            }
            // What is due before the first packet has been handled, or remains due because of the limit of
            // handlers.
            if i > first && time >= wake {
                break;
            }
            prefetch(memory, batch, i + ahead);
            context.now = time;
            context.wire = batch.wire[i].into();
            if !PLAIN {
                self.fetch_slots(&mut context, memory, batch, i + PREFETCH_DISTANCE);
                let state = context.state();
                (state.now, state.cause) = (time, i as u32);
            }
            if !PLAIN && self.resizes {
                self.run_resizing(&mut context, memory, batch, i, None);
            } else {
                let start = batch.frame[i] as usize;
                let frame = memory.get_mut(start..start.saturating_add(batch.captured[i] as usize));
                let verdict = self.code.run_packet(&mut context, frame.unwrap_or_default(), batch.port[i]);
                batch.verdict[i] = Verdict::from_bits(verdict as u32);
            }
            i += 1;
            if !PLAIN && context.state().has_queued() {
                break;
            }
        }
        let now = context.now;
        context.state().now = now;
        i
    }

    /// Runs one packet, and the events that it raises. What was due before the packet has been handled
    /// already.
    pub(crate) fn run_one(
        &mut self,
        state: &mut ProgramState<Fast>,
        memory: &mut [u8],
        batch: &mut Batch,
        i: usize,
        outputs: &mut Outputs,
    ) {
        self.stretch::<false>(state, memory, batch, i..i + 1, outputs);
        if state.has_queued() {
            state.handle_queued(self, outputs);
        }
    }

    /// Runs a packet that may change its size, from the beginning or after an early lookup, and writes its
    /// new place and size into the batch.
    fn run_resizing(
        &self,
        context: &mut Context<'_>,
        memory: &mut [u8],
        batch: &mut Batch,
        i: usize,
        lookup: Option<(usize, &mut [u64; KEPT_WORDS])>,
    ) {
        let (first, room) = outputs::room_before(batch, i);
        let frame = memory.get_mut(first..);
        let frame = frame.and_then(|rest| rest.get_mut(..room + batch.captured[i] as usize));
        let verdict = self.code.run_resizing(context, frame.unwrap_or_default(), room, batch.port[i], lookup);
        batch.verdict[i] = Verdict::from_bits(verdict as u32);
        let (start, fragmenting) = context.resized();
        let now = Now {
            frame: first + start,
            captured: context.captured as usize,
            wire: context.wire as u32,
            fragmenting,
        };
        context.parts().1.write_back(batch, i, now);
    }

    /// Prefetches the slots of large tables that packet `i` will probably use.
    #[inline(always)]
    fn fetch_slots(&self, context: &mut Context<'_>, memory: &[u8], batch: &Batch, i: usize) {
        for hint in &self.useful {
            if let Some(key) = frame_of(memory, batch, i).and_then(|frame| hint.key(frame)) {
                let tables = &mut context.state().tables;
                match hint.prefix {
                    true => tables.prefixes[hint.table].search().prefetch32(key as u32),
                    false => tables.exact[hint.table].prefetch(&[key]),
                }
            }
        }
    }
}

/// Whether the packet function makes no outputs and events, makes nothing due, and keeps the size of packets.
fn is_plain(program: &Program) -> bool {
    let blocks = program.functions.iter().take(1).flat_map(|function| &function.blocks);
    let sends = blocks.flat_map(|block| &block.instructions).any(|instruction| {
        matches!(instruction.op, Op::Raise { .. } | Op::Copy(_) | Op::Emit { .. } | Op::EndAfter { .. })
    });
    !sends && !program.manifest.resizes_packet
}

/// The captured bytes of a packet of the batch.
#[inline(always)]
fn frame_of<'m>(memory: &'m [u8], batch: &Batch, i: usize) -> Option<&'m [u8]> {
    let start = *batch.frame.get(i)? as usize;
    memory.get(start..)?.get(..*batch.captured.get(i)? as usize)
}

impl RunHandler<Fast> for CompiledNative {
    fn run_handler(
        &mut self,
        state: &mut ProgramState<Fast>,
        function: u32,
        args: &[u128],
        outputs: &mut Outputs,
    ) {
        self.args.clear();
        self.args.extend(args.iter().map(|&arg| [arg as u64, (arg >> 64) as u64]));
        let mut context = Context::new(state, outputs, &self.templates, &self.plan.placements);
        self.code.run_handler(&mut context, function, &self.args);
    }
}
