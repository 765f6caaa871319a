//! The interpreter of a confined core: bytecode over the fast tables. It makes no machine code and has no
//! `unsafe`, and its twin is the reference interpreter.
//!
//! A program is translated once (`translate`) into steps of a fixed size, with the places of values and
//! blocks resolved. `machine` runs the steps, by one `match`. What changes more than values is in `effects`.

mod effects;
mod machine;
mod step;
mod translate;

use crate::errors::LoadError;
use crate::execution::{Engine, Execution};
#[cfg(feature = "reference")]
use crate::inspect::{Draft, Measurable, Measured};
use crate::one_by_one::{OneByOne, Packet};
use crate::outputs::Outputs;
use crate::reports::BackendKind;
#[cfg(feature = "reference")]
use crate::stages::StageClock;
use crate::state::table_set::Fast;
use crate::state::{ProgramState, RunHandler};
use ir::{Program, Template};
use machine::Run;
use packet::batch::Batch;
use packet::verdict::Verdict;
use step::Code;

/// A program as bytecode.
pub type Bytecode = Execution<Fast, BytecodeEngine>;

/// The bytecode of a program, and the memory that it runs in.
pub struct BytecodeEngine {
    functions: Vec<Code>,
    templates: Vec<Template>,
    ports: u16,
    slots: Vec<u64>,
    /// Columns, and keys with whether they are held, of the step that runs.
    columns: Vec<u128>,
    held: Vec<(u32, bool)>,
}

impl Bytecode {
    /// Translates a program; see [`crate::load()`] for the arguments.
    ///
    /// # Errors
    /// As [`crate::load()`].
    pub fn new(program: &Program, ports: u16, seed: u64) -> Result<Bytecode, LoadError> {
        crate::verify::verify(program)?;
        let engine = BytecodeEngine {
            functions: program.functions.iter().map(translate::function).collect(),
            templates: program.templates.clone(),
            ports,
            slots: vec![0; program.slots as usize],
            columns: Vec::new(),
            held: Vec::new(),
        };
        Ok(Bytecode { state: ProgramState::new(program, ports, seed)?, engine })
    }
}

impl BytecodeEngine {
    /// Runs a function to its end; [`Verdict::PENDING`] for a handler.
    fn call(
        &mut self,
        state: &mut ProgramState<Fast>,
        function: u32,
        args: &[u128],
        packet: &mut Packet<'_>,
        outputs: &mut Outputs,
    ) -> Verdict {
        let BytecodeEngine { functions, templates, ports, slots, columns, held } = self;
        let Code { steps, operations, cases, params, values } = &mut functions[function as usize];
        slots.fill(0);
        for (param, arg) in params.iter().zip(args) {
            values[*param as usize] = *arg;
        }
        let ports = *ports;
        Run { operations, cases, templates, ports, slots, values, columns, held, state, packet, outputs }
            .run(steps)
    }
}

impl Engine<Fast> for BytecodeEngine {
    const BACK_END: BackendKind = BackendKind::Bytecode;

    fn run(
        &mut self,
        state: &mut ProgramState<Fast>,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) {
        self.run_all(state, memory, batch, outputs);
    }
}

/// It is not measured.
#[cfg(feature = "reference")]
impl Measurable<Fast> for BytecodeEngine {
    fn run_measured(
        &mut self,
        _: &mut ProgramState<Fast>,
        _: &mut StageClock,
        _: &mut [u8],
        _: &mut Batch,
        _: &mut Outputs,
    ) -> bool {
        false
    }

    fn draft(&self) -> Option<Draft> {
        None
    }

    fn adopt(&mut self, _: Measured) {}
}

impl OneByOne<Fast> for BytecodeEngine {
    fn run_packet(
        &mut self,
        state: &mut ProgramState<Fast>,
        packet: &mut Packet<'_>,
        outputs: &mut Outputs,
    ) -> Verdict {
        self.call(state, 0, &[], packet, outputs)
    }
}

impl RunHandler<Fast> for BytecodeEngine {
    fn run_handler(
        &mut self,
        state: &mut ProgramState<Fast>,
        function: u32,
        args: &[u128],
        outputs: &mut Outputs,
    ) {
        self.call(state, function, args, &mut Packet::none(), outputs);
    }
}
