//! Shows how a back end runs packets: step by step, or with the cost of each stage.

use crate::errors::LoadError;
use crate::execution::{Engine, Execution};
use crate::interpret::{AbstractMachine, Observer};
use crate::outputs::Outputs;
use crate::stages::StageClock;
use crate::state::ProgramState;
use crate::state::table_set::TableFamily;
use ir::Program;
use packet::batch::Batch;
use std::any::Any;

/// A back end that shows how it runs packets: step by step, or with the cost of each stage. It works on the
/// same tables and with the same outcome as [`Backend::run`](crate::Backend::run).
pub trait Inspect {
    /// Runs a batch step by step in the interpreter, and shows every step to `observer`. `program`
    /// and `ports` are what this back end was loaded with.
    fn run_observed(
        &mut self,
        program: &Program,
        ports: u16,
        observer: &mut (dyn Observer + Send),
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    );

    /// What is needed to compile the program's second variant, which measures its stages. Any thread may
    /// compile it; then it is [adopted](Inspect::adopt). `None` if this back end needs no second variant, has
    /// it already, or was not [loaded](crate::load_measurable()) to be measured.
    fn draft(&self) -> Option<Draft>;

    /// Adopts the second variant of its program; ignores that of any other program.
    fn adopt(&mut self, measured: Measured);

    /// Runs a batch and records in `clock` what each stage costs. `clock` was made for the program of this
    /// back end. Returns `false` if this back end cannot do that; then nothing has happened.
    fn run_measured(
        &mut self,
        clock: &mut StageClock,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) -> bool;
}

/// Compiles the second variant of a program.
type CompileVariant = dyn FnOnce() -> Result<Measured, LoadError> + Send;

/// What is needed to compile the second variant of a program: on any thread.
pub struct Draft(pub(crate) Box<CompileVariant>);

impl Draft {
    /// Compiles the second variant, which takes about as long as it took to load the program.
    ///
    /// # Errors
    /// [`LoadError::Compile`] and [`LoadError::Machine`].
    pub fn compile(self) -> Result<Measured, LoadError> {
        (self.0)()
    }
}

/// The second variant of a program, which measures its stages.
#[cfg_attr(not(feature = "native"), expect(dead_code, reason = "only native code has a second variant"))]
pub struct Measured(pub(crate) Box<dyn Any + Send>);

/// An engine that can be measured.
pub trait Measurable<F: TableFamily> {
    /// As [`Inspect::run_measured`].
    fn run_measured(
        &mut self,
        state: &mut ProgramState<F>,
        clock: &mut StageClock,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) -> bool;

    /// As [`Inspect::draft`].
    fn draft(&self) -> Option<Draft>;

    /// As [`Inspect::adopt`].
    fn adopt(&mut self, measured: Measured);
}

impl<F: TableFamily, E: Engine<F> + 'static> Inspect for Execution<F, E> {
    fn run_observed(
        &mut self,
        program: &Program,
        ports: u16,
        observer: &mut (dyn Observer + Send),
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) {
        Engine::run(
            &mut AbstractMachine::new(program, ports, observer),
            &mut self.state,
            memory,
            batch,
            outputs,
        );
    }

    fn draft(&self) -> Option<Draft> {
        self.engine.draft()
    }

    fn adopt(&mut self, measured: Measured) {
        self.engine.adopt(measured);
    }

    fn run_measured(
        &mut self,
        clock: &mut StageClock,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) -> bool {
        self.engine.run_measured(&mut self.state, clock, memory, batch, outputs)
    }
}
