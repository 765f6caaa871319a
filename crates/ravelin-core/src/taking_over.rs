//! Takes over from another core that runs: first it learns what runs there, or which program is to run in its
//! place; later, when this core is ready for packets, it gets the state and the ports.

use crate::activation::{Loading, Prepared, prepare};
use crate::boot;
use crate::carried;
use crate::error::CoreError;
use crate::in_force::{InForce, InstallError, Runs, TakenOver};
use crate::policies::now;
use crate::{ActivationError, Active};
use bundle::TableRight;
use engine::live::{Generation, Halves, Resting};
use exec::provision::provide;
use exec::replace::plan;
use ir::replace::Replacement;
use messages::Channel;
use messages::compile::CompileMessage;
use messages::launch::{Because, Kept};
use messages::limits::{LONGEST_BUNDLE_MESSAGE, LONGEST_STATE_MESSAGE, PROVIDED};
use messages::takeover::{TakeoverAnswer, TakeoverQuestion};
use ports::live::clock::{Clock, MachineClock};
use std::cell::RefCell;
use std::time::Instant;

/// A program that is ready, and why it is to run.
pub(crate) struct Chosen {
    pub(crate) taken: TakenOver,
    pub(crate) prepared: Prepared,
}

/// The core from which this one takes over.
pub(crate) struct Before {
    channel: Channel,
    /// What runs there.
    text: String,
    number: u64,
    /// The newest version of a policy that was accepted there.
    newest: u64,
}

/// What was taken over.
pub(crate) struct Taken {
    /// How much state.
    pub(crate) state: u64,
    /// When this core asked for it.
    pub(crate) asked: Instant,
}

impl Before {
    /// Asks what runs at the other end.
    ///
    /// # Errors
    /// It does not hand over.
    pub(crate) fn ask(mut channel: Channel) -> Result<Before, CoreError> {
        channel.send(&TakeoverQuestion::Begin, &[])?;
        match next(&mut channel, LONGEST_BUNDLE_MESSAGE)? {
            TakeoverAnswer::Program { text, number, newest } => Ok(Before { channel, text, number, newest }),
            TakeoverAnswer::Refused(why) => Err(CoreError::NotHandedOver(why)),
            _ => Err(CoreError::Order("a core begins otherwise to hand over")),
        }
    }

    /// Has the program go on with what packets left in the other core and with its ports. The other core
    /// takes no packet from then on, or goes on if this fails.
    ///
    /// # Errors
    /// The other core does not hand over, what it remembers does not fit, or a worker has ended.
    pub(crate) fn hand_over(mut self, chosen: &mut Chosen, resting: &Resting) -> Result<Taken, CoreError> {
        let plan = self.plan(&chosen.prepared)?;
        let Prepared { generations, running } = &mut chosen.prepared;
        // A policy that was signed anew begins with what was signed, also if its program is the same.
        let same = running.active.number == self.number && running.text == self.text;
        // Each large page that an entry of the other core is the first to need takes up to a millisecond.
        let bytes = PROVIDED / generations.len().max(1) as u64;
        for Generation { program, backend, .. } in generations.iter_mut() {
            provide(program, bytes, backend.as_mut(), |_| true);
        }
        let asked = Instant::now();
        self.channel.send(&TakeoverQuestion::Rest, &[])?;
        let (mut state, clock, mut checkpoints) = (0, MachineClock, Vec::new());
        while checkpoints.len() < generations.len() {
            match next(&mut self.channel, LONGEST_STATE_MESSAGE)? {
                TakeoverAnswer::Checkpoints(of_worker) => checkpoints.push(of_worker),
                TakeoverAnswer::Refused(why) => return Err(CoreError::NotHandedOver(why)),
                _ if !checkpoints.is_empty() => {
                    return Err(CoreError::Order("state comes behind the first checkpoints"));
                }
                // Where another program is to run, it begins with what was signed.
                TakeoverAnswer::ByControl(changes) if same => {
                    state += carried::take_done(generations, &mut running.granted, &changes)
                }
                part => state += carried::take(generations, &plan, part, clock.program()),
            }
        }
        let resumed = resting.each(checkpoints, |_, Halves { receive, send }, checkpoints| {
            // A sending half counts what it has of the frames of receiving ones.
            checkpoints.len() == receive.len()
                && receive.iter_mut().zip(&checkpoints).all(|(port, at)| port.resume(&at.receive))
                && send.iter_mut().zip(&checkpoints).all(|(port, at)| port.resume(&at.send))
        });
        if !resumed.is_some_and(|resumed| resumed.into_iter().all(|resumed| resumed)) {
            return Err(CoreError::Order("another core has other ports"));
        }
        running.granted.begin(Instant::now());
        self.channel.send(&TakeoverQuestion::Ready, &[])?;
        match next(&mut self.channel, LONGEST_STATE_MESSAGE)? {
            TakeoverAnswer::Yours => Ok(Taken { state, asked }),
            _ => Err(CoreError::Order("a core does not hand over at last")),
        }
    }

    /// What becomes of what the other core's program remembers.
    fn plan(&self, prepared: &Prepared) -> Result<Replacement, CoreError> {
        let before = ir::read::read(&self.text).map_err(ActivationError::Read)?;
        let Some(generation) = prepared.generations.first() else { return Ok(Replacement::default()) };
        Ok(plan(&before, &generation.program, &[]).map_err(ActivationError::Replace)?)
    }
}

/// Where the first program of this core comes from.
pub(crate) struct Origin {
    /// What was kept of policies, where they have to be signed.
    pub(crate) kept: Option<Kept>,
    /// The core that runs, and the channel by which `compile` gives another program than runs there.
    pub(crate) beside: Option<(Channel, Option<Channel>)>,
}

/// Loads what this core is to run: what `compile` gives, or the policy that was kept, or what runs in the
/// other core. Nothing where there is none of it.
///
/// # Errors
/// It is refused, or the other core does not hand over.
pub(crate) fn choose(
    loading: Loading,
    in_force: Option<&mut InForce>,
    origin: Origin,
) -> Result<(Option<Chosen>, Option<Before>), CoreError> {
    let (other, compile) = origin.beside.unzip();
    let before = other.map(Before::ask).transpose()?;
    let compiled = compile.flatten().map(received).transpose()?;
    let number = before.as_ref().map_or(1, |before| before.number);
    let number = number.saturating_add(u64::from(before.is_none() || compiled.is_some()));
    // Where policies have to be signed, the other core is not believed what it runs.
    let is_judged = in_force.is_some() && compiled.is_none();
    let loader = Loader { loading, number, prepared: RefCell::default() };
    // Rights are not in the text of a program, so that its version is compared as well.
    let is_older =
        |in_force: &InForce| before.as_ref().is_some_and(|before| before.newest > in_force.newest());
    let other_policy = || {
        let why = "another policy runs there than was kept when this core began; try once more";
        CoreError::NotHandedOver(why.to_owned())
    };
    let taken = match (in_force, compiled) {
        (Some(in_force), compiled) => {
            let kept = origin.kept.unwrap_or_default();
            let taken = match compiled {
                Some(CompileMessage::Bundle(bundle)) => {
                    // What was kept may be right no more, such as by a key that is gone. Its version stays
                    // used, and keeps no newer policy away.
                    let _ = in_force.restore(kept, &Judged);
                    Some(in_force.accept(bundle, None, now(), &loader)?)
                }
                Some(_) => return Err(InstallError::Unsigned.into()),
                None => in_force.restore(kept, &loader)?,
            };
            if is_older(in_force) {
                return Err(other_policy());
            }
            taken
        }
        (None, Some(CompileMessage::Program(text))) => {
            Some(TakenOver { active: loader.run(&text, &[])?, because: Because::HandedIn, keep: None })
        }
        (None, Some(_)) => return Err(InstallError::NoTrust.into()),
        (None, None) => None,
    };
    if let (true, Some(before)) = (is_judged, &before) {
        let kept = loader.prepared.borrow();
        let judged = kept.as_ref().map_or(boot::TEXT, |prepared| &prepared.running.text);
        if before.text != judged {
            return Err(other_policy());
        }
    }
    let taken = match (taken, &before) {
        (None, Some(before)) => Some(TakenOver {
            active: loader.run(&before.text, &[])?,
            because: Because::RanBefore,
            keep: None,
        }),
        (taken, _) => taken,
    };
    let chosen = taken.zip(loader.prepared.into_inner());
    Ok((chosen.map(|(taken, prepared)| Chosen { taken, prepared }), before))
}

/// What `compile` gives.
fn received(mut compile: Channel) -> Result<CompileMessage, CoreError> {
    match compile.receive_alone(LONGEST_BUNDLE_MESSAGE)? {
        Some(CompileMessage::Refused(why)) => Err(CoreError::Compile(why)),
        Some(message) => Ok(message),
        None => Err(CoreError::Compile("compile ended without a program".to_owned())),
    }
}

/// Loads programs that are to run later.
struct Loader {
    loading: Loading,
    number: u64,
    prepared: RefCell<Option<Prepared>>,
}

impl Runs for Loader {
    fn run(&self, text: &str, rights: &[TableRight]) -> Result<Active, ActivationError> {
        let prepared = prepare(text, rights, self.loading, self.number)?;
        let active = prepared.running.active.clone();
        *self.prepared.borrow_mut() = Some(prepared);
        Ok(active)
    }
}

/// Runs nothing: another program is to run than the policy that was kept.
struct Judged;

impl Runs for Judged {
    fn run(&self, _: &str, _: &[TableRight]) -> Result<Active, ActivationError> {
        Ok(Active { hash: [0; 32], number: 0, name: String::new() })
    }
}

/// The next answer, of so many bytes at most.
fn next(channel: &mut Channel, most: usize) -> Result<TakeoverAnswer, CoreError> {
    let ended = || CoreError::NotHandedOver("it has ended".to_owned());
    channel.receive_alone(most)?.ok_or_else(ended)
}

#[cfg(test)]
mod tests;
