//! Chains of rules that jump to one another, unrolled into one list in which the first rule that fits
//! decides.
//!
//! A jump puts the rules of the other chain in its place, each narrowed to the packets that take the jump. A
//! return cuts a hole: the rules behind it in its chain mean what they meant, without the packets that have
//! left. Holes are cut out of a rule only where they meet it, so that a return costs little where it is rare.

#[cfg(test)]
mod tests;

use crate::ImportError;
use crate::address::AddressFamily;
use crate::conditions::Naming;
use crate::region::{RangeUnderMask, Region};
use crate::ruleset::Decision;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A chain.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    pub(crate) name: String,
    /// What happens to packets that reach its end, where no other chain jumps to it.
    pub(crate) policy: Option<bool>,
    pub(crate) steps: Vec<Step>,
}

/// A line of a chain.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) text: Arc<str>,
    pub(crate) log: bool,
    /// The packets that it fits, in boxes, and what happens to them; or why it cannot be kept.
    pub(crate) rule: Result<(Vec<Region>, Target), ImportError>,
}

/// What happens to the packets that a rule fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// They may pass or they may not.
    Decide(bool),
    /// They go on behind the jump that led here.
    Return,
    /// They go through another chain, and then on behind this rule.
    Jump(usize),
    /// They go through another chain, and then on where this one's end leads.
    Goto(usize),
}

/// What to read of a file of chains, and how strictly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainOptions {
    /// The table.
    pub table: String,
    /// The chain whose decisions are wanted; `None` for the one that forwarded packets go through.
    pub chain: Option<String>,
    /// The family of the packets.
    pub family: AddressFamily,
    /// What the names of interfaces mean.
    pub interfaces: Naming,
    /// Whether the rules are read for the first packet of a connection: then it is known whether a match on
    /// the state of a connection fits. Without that such a match is refused.
    pub first_packets: bool,
    /// Lines that cannot be kept are left out and reported, instead of an error for all.
    pub lenient: bool,
    /// The most rules that may come out.
    pub limit: usize,
}

impl Default for ChainOptions {
    fn default() -> Self {
        Self {
            table: "filter".to_owned(),
            chain: None,
            family: AddressFamily::V4,
            interfaces: Naming::Themselves(Vec::new()),
            first_packets: false,
            lenient: false,
            limit: 1_000_000,
        }
    }
}

/// The rules of a chain and of those that it leads to, and the lines that were left out.
pub(crate) type Unrolled = (Vec<Decision>, Vec<ImportError>);

/// The deepest way of jumps; Linux allows 16 in nftables.
const DEEPEST: usize = 64;

/// For each rule that may come out, so many boxes may be compared.
const WORK: usize = 256;

/// Unrolls the chain with the number `start`.
///
/// # Errors
/// The first line that cannot be kept, unless they are left out; jumps in a circle; more rules than the
/// limit.
pub(crate) fn unroll(
    chains: &[Chain],
    start: usize,
    options: &ChainOptions,
) -> Result<Unrolled, ImportError> {
    let refused = refused(chains, start);
    if let (false, Some(first)) = (options.lenient, refused.first()) {
        return Err(first.clone());
    }
    let work = options.limit.saturating_mul(WORK);
    let mut walk = Walk { chains, options, work, way: Vec::new(), decisions: Vec::new() };
    let policy = chains[start].policy;
    walk.chain(start, &Region::any(options.family), &[], policy)?;
    Ok((walk.decisions, refused))
}

/// What cannot be kept in the chains that `start` leads to, in the order of the file.
fn refused(chains: &[Chain], start: usize) -> Vec<ImportError> {
    let (mut seen, mut open, mut refused) = (BTreeSet::from([start]), vec![start], BTreeSet::new());
    while let Some(chain) = open.pop() {
        for step in &chains[chain].steps {
            match &step.rule {
                Err(error) => drop(refused.insert(error.clone())),
                Ok((_, Target::Jump(next) | Target::Goto(next))) => {
                    if seen.insert(*next) {
                        open.push(*next);
                    }
                }
                Ok(_) => {}
            }
        }
    }
    refused.into_iter().collect()
}

struct Walk<'a> {
    chains: &'a [Chain],
    options: &'a ChainOptions,
    /// How many boxes may still be compared.
    work: usize,
    /// The chains on the way here.
    way: Vec<usize>,
    decisions: Vec<Decision>,
}

impl Walk<'_> {
    /// The rules of a chain for the packets of `region` that are in no hole; `policy` is what a return means
    /// in the chain that nothing jumps to.
    fn chain(
        &mut self,
        index: usize,
        region: &Region,
        holes: &[Region],
        policy: Option<bool>,
    ) -> Result<(), ImportError> {
        let chains = self.chains;
        self.way.push(index);
        let mut holes = holes.to_vec();
        for step in &chains[index].steps {
            let Ok((boxes, target)) = &step.rule else { continue };
            for packets in boxes {
                self.spend(step, 1)?;
                let Some(packets) = packets.meet(region).map_err(|fault| refuse(step, fault))? else {
                    continue;
                };
                let leaves = match *target {
                    Target::Decide(allow) => {
                        // No hole: its rule comes first. Rules behind it are kept even if none can be
                        // reached.
                        self.decide(step, &packets, &holes, Some(allow))?;
                        false
                    }
                    Target::Return => {
                        if self.way.len() == 1 {
                            self.decide(step, &packets, &holes, policy)?;
                        }
                        true
                    }
                    Target::Jump(next) | Target::Goto(next) => {
                        self.jump(step, next, &packets, &holes, *target, policy)?;
                        matches!(target, Target::Goto(_))
                    }
                };
                if leaves && packets == *region {
                    self.way.pop();
                    return Ok(());
                }
                if leaves {
                    holes.push(packets);
                }
            }
        }
        self.way.pop();
        Ok(())
    }

    fn jump(
        &mut self,
        step: &Step,
        next: usize,
        packets: &Region,
        holes: &[Region],
        target: Target,
        policy: Option<bool>,
    ) -> Result<(), ImportError> {
        if self.way.contains(&next) {
            let what = format!("the jump to {} leads in a circle", self.chains[next].name);
            return Err(ImportError::new(
                step.line,
                step.column,
                what,
                "no packet would ever leave it; remove a jump",
            ));
        }
        if self.way.len() == DEEPEST {
            let what = format!("jumps lead deeper than {DEEPEST} chains");
            return Err(ImportError::new(
                step.line,
                step.column,
                what,
                "put some chains into those that jump to them",
            ));
        }
        self.spend(step, holes.len())?;
        let meets = |hole: &&Region| !matches!(hole.meet(packets), Ok(None));
        let near: Vec<Region> = holes.iter().filter(meets).cloned().collect();
        self.chain(next, packets, &near, policy)?;
        // The end of a chain that was gone to from the first one is the first one's end.
        if matches!(target, Target::Goto(_)) && self.way.len() == 1 {
            self.decide(step, packets, holes, policy)?;
        }
        Ok(())
    }

    fn decide(
        &mut self,
        step: &Step,
        packets: &Region,
        holes: &[Region],
        allow: Option<bool>,
    ) -> Result<(), ImportError> {
        let mut parts = vec![packets.clone()];
        for hole in holes {
            self.spend(step, parts.len())?;
            if matches!(hole.meet(packets), Ok(None)) {
                continue;
            }
            let mut left = Vec::new();
            for part in &parts {
                left.extend(part.without(hole).map_err(|fault| refuse(step, fault))?);
                self.room(step, left.len())?;
            }
            parts = left;
        }
        self.room(step, parts.len())?;
        self.decisions.extend(parts.into_iter().map(|region| Decision {
            region,
            allow,
            log: step.log,
            line: step.line,
            text: step.text.clone(),
        }));
        Ok(())
    }

    fn room(&self, step: &Step, more: usize) -> Result<(), ImportError> {
        if self.decisions.len() + more > self.options.limit { Err(self.too_many(step)) } else { Ok(()) }
    }

    fn spend(&mut self, step: &Step, boxes: usize) -> Result<(), ImportError> {
        self.work = self.work.checked_sub(boxes).ok_or_else(|| self.too_many(step))?;
        Ok(())
    }

    fn too_many(&self, step: &Step) -> ImportError {
        let what = format!("unrolling the chains up to here makes more than {} rules", self.options.limit);
        ImportError::new(step.line, step.column, what, "jump and return less")
    }
}

fn refuse(step: &Step, RangeUnderMask: RangeUnderMask) -> ImportError {
    let what = "a range meets a mask in the same column on the way here";
    ImportError::new(step.line, step.column, what, "write one of them as a prefix")
}
