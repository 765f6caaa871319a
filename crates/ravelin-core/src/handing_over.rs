//! Hands over to another core: what runs, then what packets left in it, then the ports, at which this core
//! takes no packet from then on. Whatever goes wrong before the last word, this core goes on.

use crate::carried::{carried, done_by_control};
use crate::error::say;
use crate::policies::Policies;
use engine::live::Halves;
use messages::limits::LONGEST_MESSAGE;
use messages::takeover::{LaneCheckpoint, TakeoverAnswer, TakeoverQuestion};
use messages::{Channel, ChannelError};
use std::io;
use std::process;
use std::sync::Arc;

/// Hands over to the core at the other end, and ends; or goes on, and says why.
pub(crate) fn hand_over(mut other: Channel, policies: &Policies) {
    let why = match handed_over(&mut other, policies) {
        // Nothing is left to do here: the other core has it all.
        Ok(true) => process::exit(0),
        Ok(false) => "the other one has ended before".to_owned(),
        Err(error) => error.to_string(),
    };
    say(&format_args!("another core does not take over, and this one goes on: {why}"));
}

/// Whether it was handed over; not if the other end is gone.
fn handed_over(other: &mut Channel, policies: &Policies) -> Result<bool, ChannelError> {
    let mut asked = None;
    while let Some(question) = other.receive_alone::<TakeoverQuestion>(LONGEST_MESSAGE)? {
        match question {
            TakeoverQuestion::Begin => {
                if policies.is_unconfirmed() {
                    let why = "a policy waits to be confirmed; confirm it, or wait until its time is over";
                    other.send(&TakeoverAnswer::Refused(why.to_owned()), &[])?;
                    return Ok(false);
                }
                let running = policies.activation().hold();
                let (text, number) = (running.text.clone(), running.active.number);
                drop(running);
                let newest = policies.hold().map_or(0, |in_force| in_force.newest());
                other.send(&TakeoverAnswer::Program { text, number, newest }, &[])?;
                asked = Some(number);
            }
            TakeoverQuestion::Rest => return rest(other, policies, asked),
            TakeoverQuestion::Ready => break,
        }
    }
    Ok(false)
}

/// Stands still, and hands the state over.
fn rest(other: &mut Channel, policies: &Policies, asked: Option<u64>) -> Result<bool, ChannelError> {
    // No other policy takes over meanwhile.
    let in_force = policies.hold();
    let activation = policies.activation();
    let running = activation.hold();
    if asked != Some(running.active.number)
        || in_force.as_ref().is_some_and(|in_force| in_force.until().is_some())
    {
        let why = "another program has taken over meanwhile; try once more".to_owned();
        other.send(&TakeoverAnswer::Refused(why), &[])?;
        return Ok(false);
    }
    let held: Arc<[_]> = running.granted.held().collect();
    let tables: Arc<[u32]> = running.granted.tables().collect();
    let resting = activation.remote().rest();
    let workers = (0..activation.remote().workers() as u16)
        .map(|worker| (worker, held.clone(), tables.clone()))
        .collect();
    let state = resting.each(workers, |generation, Halves { receive, send }, (worker, held, tables)| {
        // What sends gives frames back to what receives.
        let sent: Vec<_> = send.iter_mut().map(|port| port.checkpoint()).collect();
        let halves = receive.iter_mut().zip(sent);
        let checkpoints: Vec<_> =
            halves.map(|(port, send)| LaneCheckpoint { receive: port.checkpoint(), send }).collect();
        let mut state = carried(generation, worker);
        // Those of other workers are the same.
        if worker == 0 {
            state.extend(done_by_control(generation, &held, &tables));
        }
        (state, checkpoints)
    });
    let ended = || io::Error::other("a worker has ended");
    let (state, checkpoints): (Vec<_>, Vec<_>) = state.ok_or_else(ended)?.into_iter().unzip();
    for part in state.into_iter().flatten() {
        other.send(&part, &[])?;
    }
    for of_worker in checkpoints {
        other.send(&TakeoverAnswer::Checkpoints(of_worker), &[])?;
    }
    let Some(TakeoverQuestion::Ready) = other.receive_alone(LONGEST_MESSAGE)? else { return Ok(false) };
    other.send(&TakeoverAnswer::Yours, &[])?;
    // It may read that from now on: this core must not take another packet, whatever happens.
    process::exit(0)
}
