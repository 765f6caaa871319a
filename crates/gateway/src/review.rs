//! What is compared of policies before another program takes over, and what a client wants to know of it.
//!
//! The comparison itself is a function of whoever starts the gateway: it makes texts.

use engine::live::Remote;
use ir::Program;
use ir::source::Sources;
use lang::policy_model::PolicyModel;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The policies that a program declares.
pub type Policies = Arc<[PolicyModel]>;

/// How a client wants to reload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReloadWish {
    /// Change nothing: only say what would be.
    #[serde(default)]
    pub check: bool,
    /// Say what changes between the policies, in a line before the answer.
    #[serde(default)]
    pub diff: bool,
    /// Take over only if this holds.
    #[serde(default)]
    pub only_if: Option<OnlyIf>,
    /// How many classes of packets of each policy are told.
    #[serde(default)]
    pub most: usize,
}

impl ReloadWish {
    /// Whether a program that is right takes over, whatever it changes.
    pub(crate) fn is_unconditional(&self) -> bool {
        !self.check && self.only_if.is_none()
    }
}

/// What must hold of the new policies beside those that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnlyIf {
    /// They let no packet pass that those do not.
    Narrower,
    /// They treat every packet alike.
    Same,
}

/// A program with its text and its policies.
pub struct ReviewedProgram {
    /// The program.
    pub program: Arc<Program>,
    /// Its text.
    pub sources: Arc<Sources>,
    /// Its policies.
    pub policies: Policies,
}

/// Two programs, of which one is to take over from the other.
pub struct Takeover<'a> {
    /// The one that runs.
    pub old: &'a ReviewedProgram,
    /// How many entries each of its tables holds now, at the worker that has most.
    pub held: &'a [u64],
    /// The one that is to take over.
    pub new: &'a ReviewedProgram,
    /// What of the gateway's file changes the meaning of policies, in words: its ports or values.
    pub file_changes: Vec<&'static str>,
    /// What the client wants.
    pub wish: &'a ReloadWish,
}

/// What the comparison found.
#[derive(Clone, Debug, Default)]
pub struct PolicyReview {
    /// For the client.
    pub told: serde_json::Value,
    /// Why the program does not take over, in words.
    pub refusal: Option<String>,
}

/// Runs the tests beside the rules, and compares the policies if the client wants that.
pub type Review = dyn Fn(&Takeover<'_>) -> PolicyReview + Send + Sync;

/// The program that runs, and how many entries each of its tables holds; `None` if the packet loop has ended.
pub(crate) fn running(remote: &Remote, policies: Policies) -> Option<(ReviewedProgram, Vec<u64>)> {
    let parts = remote.ask(|generation, _| {
        let tables = 0..generation.program.tables.len() as u32;
        let held: Vec<u64> = tables.map(|table| generation.backend.entries_held(table)).collect();
        (generation.program.clone(), generation.sources.clone(), held)
    })?;
    let most = |one: Vec<u64>, other: &[u64]| one.iter().zip(other).map(|(a, b)| *a.max(b)).collect();
    let (program, sources, first) = parts.first()?.clone();
    let held = parts.iter().fold(first, |held, (_, _, other)| most(held, other));
    Some((ReviewedProgram { program, sources, policies }, held))
}
