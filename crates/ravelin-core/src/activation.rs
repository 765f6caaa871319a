//! Has a program take over: reads it, verifies it, loads it for every worker, and exchanges it in one step.

use crate::rights::{self, RightError};
use bundle::TableRight;
use engine::live::{Generation, Loaded, Remote, load_steering};
use engine::text_hash;
use exec::replace::ReplaceError;
use exec::{BackendKind, LoadError};
use ir::Program;
use ir::read::IrReadError;
use ir::steering::declare_worker_busy;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// What is needed to have programs take over.
pub struct Activation {
    remote: Remote,
    ports: u16,
    seed: u64,
    active: Mutex<Active>,
}

impl Activation {
    /// For workers that run [`boot`](crate::boot) over so many ports.
    pub(crate) fn new(remote: Remote, ports: u16, seed: u64) -> Activation {
        let boot = crate::boot::program();
        let active = Active { hash: text_hash(crate::boot::TEXT), number: 1, name: boot.name };
        Activation { remote, ports, seed, active: Mutex::new(active) }
    }

    /// What runs.
    pub fn active(&self) -> Active {
        self.lock().clone()
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
        let mut program = ir::read::read(text)?;
        rights::check(&program, rights)?;
        let workers = self.remote.workers() as u16;
        if workers > 1 {
            declare_worker_busy(&mut program).map_err(ActivationError::WorkerBusy)?;
        }
        // One takeover after the other: each counts from the one before it.
        let mut active = self.lock();
        let (hash, name) = (text_hash(text), program.name.clone());
        let next = Active { hash, number: active.number + 1, name };
        let generations = generations(program, workers, self.ports, self.seed, next.number)?;
        let replaced = self.remote.replace(generations, Vec::new()).ok_or(ActivationError::Ended)?;
        replaced.outcome.map_err(ActivationError::Replace)?;
        *active = next.clone();
        Ok(next)
    }

    fn lock(&self) -> MutexGuard<'_, Active> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A program, translated into bytecode for every worker.
///
/// # Errors
/// The verifier refuses it, or it needs too much memory.
pub(crate) fn generations(
    program: Program,
    workers: u16,
    ports: u16,
    seed: u64,
    number: u64,
) -> Result<Vec<Generation>, ActivationError> {
    let load = |_| exec::load(&program, BackendKind::Bytecode, ports, seed);
    let backends = (0..workers).map(load).collect::<Result<_, _>>()?;
    let steering = load_steering(&program, BackendKind::Bytecode, workers)?;
    let program = Arc::new(program);
    let loaded = Loaded { program, sources: Arc::default(), backends, schedule: None, steering };
    Ok(loaded.generations(ports, number))
}
