//! Has a program take over: reads it, verifies it, loads it for every worker, and exchanges it in one step.

use crate::boot;
use crate::granted::Granted;
use crate::rights::{self, RightError};
use bundle::TableRight;
use engine::live::{Generation, Loaded, Remote, Resting, load_steering};
use engine::text_hash;
use exec::replace::ReplaceError;
use exec::{BackendKind, LoadError};
use ir::Program;
use ir::read::IrReadError;
use ir::steering::declare_worker_busy;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Why a program does not take over. What ran before goes on.
#[derive(Debug, thiserror::Error)]
pub enum ActivationError {
    /// not the text of a program
    #[error("the program cannot be read: {0}")]
    Read(#[from] IrReadError),
    /// refused by the verifier, or it needs too much memory
    #[error("the program is refused: {0}")]
    Load(#[from] LoadError),
    /// it has no place for the reason that several workers need
    #[error("the program is refused: {0}")]
    WorkerBusy(String),
    /// a right that is none for it
    #[error("{0}")]
    Right(#[from] RightError),
    /// what the running program remembers does not fit
    #[error("the program cannot take over what the one before it remembers: {0}")]
    Replace(ReplaceError),
    /// native code cannot be made any more
    #[error(
        "a core that runs native code takes another program only from `compile`: put it into the gateway's file, \
         and send SIGHUP to ravelin-launch"
    )]
    LockedIn,
    /// a worker has ended
    #[error("a worker of the core has ended")]
    Ended,
}

/// The program that runs.
#[derive(Clone, Debug)]
pub struct Active {
    /// [`text_hash`] of its text.
    pub hash: [u8; 32],
    /// How many have taken over, this one included.
    pub number: u64,
    /// Its name.
    pub name: String,
}

/// How programs are loaded in this core.
#[derive(Clone, Copy)]
pub(crate) struct Loading {
    pub(crate) back_end: BackendKind,
    pub(crate) workers: u16,
    pub(crate) ports: u16,
    pub(crate) seed: u64,
}

/// A program that is loaded for every worker.
pub(crate) struct Prepared {
    pub(crate) generations: Vec<Generation>,
    pub(crate) running: Running,
}

/// What is needed to have programs take over.
pub struct Activation {
    remote: Remote,
    loading: Loading,
    running: Mutex<Running>,
}

/// The program that runs.
pub(crate) struct Running {
    pub(crate) active: Active,
    /// The text of its IR.
    pub(crate) text: String,
    /// What `control` may change of it.
    pub(crate) granted: Granted,
}

impl Activation {
    /// For workers that run [`boot`].
    pub(crate) fn new(remote: Remote, loading: Loading) -> Activation {
        let boot = boot::program();
        let active = Active { hash: text_hash(boot::TEXT), number: 1, name: boot.name.clone() };
        let granted = Granted::new(Arc::new(boot), &[], Instant::now());
        let running = Mutex::new(Running { active, text: boot::TEXT.to_owned(), granted });
        Activation { remote, loading, running }
    }

    /// What runs.
    pub fn active(&self) -> Active {
        self.hold().active.clone()
    }

    /// What runs; no other program takes over as long as this is held.
    pub(crate) fn hold(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its programs are machine code.
    pub(crate) fn has_machine_code(&self) -> bool {
        self.loading.back_end != BackendKind::Bytecode
    }

    /// The handle of the workers.
    pub(crate) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Has the program of this text, with these rights of `control`, take over at all workers, or at none.
    ///
    /// # Errors
    /// The text is no program that the verifier admits, a right is none for it, or it cannot take over; what
    /// ran before goes on.
    pub fn activate(&self, text: &str, rights: &[TableRight]) -> Result<Active, ActivationError> {
        if self.has_machine_code() {
            return Err(ActivationError::LockedIn);
        }
        // One takeover after the other: each counts from the one before it.
        let mut running = self.hold();
        let next = prepare(text, rights, self.loading, running.active.number.saturating_add(1))?;
        let replaced = self.remote.replace(next.generations, Vec::new()).ok_or(ActivationError::Ended)?;
        replaced.outcome.map_err(ActivationError::Replace)?;
        *running = next.running;
        Ok(running.active.clone())
    }

    /// Has a program take over from [`boot`] in workers that stand still, before they take a
    /// packet.
    ///
    /// # Errors
    /// A worker has ended.
    pub(crate) fn begin(&self, first: Prepared, resting: Resting) -> Result<Active, ActivationError> {
        let mut running = self.hold();
        let replaced = resting.replace(first.generations).ok_or(ActivationError::Ended)?;
        replaced.outcome.map_err(ActivationError::Replace)?;
        *running = first.running;
        Ok(running.active.clone())
    }
}

/// Reads, verifies and loads a program with these rights of `control`.
///
/// # Errors
/// The text is no program that the verifier admits, or a right is none for it.
pub(crate) fn prepare(
    text: &str,
    rights: &[TableRight],
    loading: Loading,
    number: u64,
) -> Result<Prepared, ActivationError> {
    let mut program = ir::read::read(text)?;
    rights::check(&program, rights)?;
    if loading.workers > 1 {
        declare_worker_busy(&mut program).map_err(ActivationError::WorkerBusy)?;
    }
    let active = Active { hash: text_hash(text), number, name: program.name.clone() };
    let generations = generations(program, loading, number)?;
    let program = generations.first().map(|generation| generation.program.clone()).unwrap_or_default();
    let granted = Granted::new(program, rights, Instant::now());
    Ok(Prepared { generations, running: Running { active, text: text.to_owned(), granted } })
}

/// A program, loaded for every worker.
///
/// # Errors
/// The verifier refuses it, or it needs too much memory.
pub(crate) fn generations(
    program: Program,
    loading: Loading,
    number: u64,
) -> Result<Vec<Generation>, ActivationError> {
    let Loading { back_end, workers, ports, seed } = loading;
    let load = |_| exec::load(&program, back_end, ports, seed);
    let backends = (0..workers).map(load).collect::<Result<_, _>>()?;
    let steering = load_steering(&program, back_end, workers)?;
    let program = Arc::new(program);
    let loaded = Loaded { program, sources: Arc::default(), backends, schedule: None, steering };
    Ok(loaded.generations(ports, number))
}
