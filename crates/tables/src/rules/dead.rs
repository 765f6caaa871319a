//! Rules that are removed in steps: what becomes of a rule whose removal would look at too many leaves.
//!
//! The idea: such a rule is marked as dead at once, and a lookup that hits it searches once more among the
//! living. A sweep goes over all leaves, a few blocks at a time, and takes dead rules out; the number of a
//! rule is free when a whole sweep has begun and ended after its death.

/// A removed rule, and how many checks it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeadRule {
    pub(super) id: u32,
    pub(super) checks: u32,
}

/// One step of a sweep.
pub(super) enum SweepStep {
    /// Dead rules are to be taken out of the leaf that begins at this block, if one does.
    Leaf(u32),
    /// No leaf names this rule any more.
    Free(DeadRule),
}

/// The dead rules of a table, and how far the sweep has come.
#[derive(Clone, Debug, Default)]
pub(super) struct DeadRules {
    /// Dead before this sweep began.
    swept: Vec<DeadRule>,
    /// Dead since.
    waiting: Vec<DeadRule>,
    /// The next block of the sweep.
    next: u32,
}

impl DeadRules {
    pub(super) fn add(&mut self, rule: DeadRule) {
        self.waiting.push(rule);
    }

    /// What comes next over the `blocks` that there are; `None` if no rule is dead.
    pub(super) fn step(&mut self, blocks: usize) -> Option<SweepStep> {
        if self.swept.is_empty() {
            self.swept = std::mem::take(&mut self.waiting);
            self.next = 1;
        }
        if (self.next as usize) < blocks && !self.swept.is_empty() {
            return Some(SweepStep::Leaf(self.next));
        }
        self.swept.pop().map(SweepStep::Free)
    }

    /// The leaf that was to be swept had so many blocks.
    pub(super) fn passed(&mut self, blocks: usize) {
        self.next += blocks as u32;
    }

    /// Bytes of both lists, spare room included.
    pub(super) fn allocated(&self) -> u64 {
        crate::sizes::vector(&self.swept) + crate::sizes::vector(&self.waiting)
    }
}
