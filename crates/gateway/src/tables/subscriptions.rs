//! Passes on what the packet loop tells a subscription, on a thread of its own for each.
//!
//! If the client reads too slowly, this thread waits, the subscription's queue fills, and what finds no room
//! there is counted; the client is told how many were lost. If another program takes over, the client is told
//! its schema before the first event of it.

use super::output::{Output, Waits};
use super::schema::{Known, describe};
use crate::limits::ANSWERS;
use client::message::{EventTold, PuntTold, TableAnswer};
use engine::live::{Subscription, Told, ToldOf};
use ports::live::clock::{Clock, MachineClock};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often a subscription looks whether it has ended.
const LOOK: Duration = Duration::from_millis(100);

/// A subscription of a client. When this is dropped, it ends.
pub(super) struct Passing {
    /// The number of the request that began it.
    pub(super) number: u32,
    over: Arc<AtomicBool>,
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl Passing {
    /// Begins to pass on what `subscription` tells. The thread that does it holds `thread`.
    pub(super) fn begin(
        number: u32,
        subscription: Subscription,
        known: Known,
        output: Arc<Output>,
        thread: Arc<()>,
    ) -> io::Result<Passing> {
        let over = Arc::new(AtomicBool::new(false));
        let passing = Passing { number, over: over.clone() };
        let pass = move || {
            // The client may have gone.
            let _ = pass(number, &subscription, known, &output, &over);
            drop(thread);
        };
        thread::Builder::new().name("subscription".to_owned()).spawn(pass)?;
        Ok(passing)
    }
}

fn pass(
    number: u32,
    subscription: &Subscription,
    mut known: Known,
    output: &Output,
    over: &AtomicBool,
) -> io::Result<()> {
    let (mut frames, mut lost) = (Vec::new(), 0);
    while !over.load(Ordering::Relaxed) {
        let mut patience = LOOK;
        while frames.len() < ANSWERS {
            match subscription.next(patience) {
                Ok(Some(told)) => push(&mut frames, number, told, &mut known),
                Ok(None) => break,
                Err(_) => return output.send(&frames, Waits::Forever),
            }
            patience = Duration::ZERO;
        }
        let now = subscription.lost();
        if now > lost {
            TableAnswer::Lost { count: now - lost }.push(&mut frames, number, &known.schema, None);
            lost = now;
        }
        if !frames.is_empty() {
            output.send(&frames, Waits::Forever)?;
            frames.clear();
        }
    }
    Ok(())
}

/// Appends something that was told, behind the schema of its program if that is another one than before.
fn push(frames: &mut Vec<u8>, number: u32, told: Told, known: &mut Known) {
    if told.generation != known.schema.generation {
        let before = &known.schema;
        // Which tables control fills is known to whoever asks; events do not need it.
        known.schema = describe(&told.program, &before.program, told.generation, before.workers.into(), &[]);
        TableAnswer::Schema(known.schema.clone()).push(frames, number, &known.schema, None);
    }
    let Told { worker, time, .. } = told;
    let time = MachineClock.now().on_wall(time);
    let answer = match told.what {
        ToldOf::Event { event, delay, arguments } => {
            TableAnswer::Event(EventTold { event: event as u16, worker, time, delay, arguments })
        }
        ToldOf::Punt { reason, port, length, bytes } => {
            TableAnswer::Punt(PuntTold { reason, worker, port, time, length, bytes })
        }
    };
    answer.push(frames, number, &known.schema, None);
}
