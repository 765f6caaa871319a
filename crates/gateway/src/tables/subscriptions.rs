//! Passes on what the packet loop tells a subscription, on a thread of its own for each.
//!
//! If the client reads too slowly, this thread waits, the subscription's queue fills, and what finds no room
//! there is counted; the client is told how many were lost. If another program takes over, the client is told
//! its schema before the first event of it.

use super::limits::ANSWERS;
use super::output::{Output, Waits};
use super::schema::describe;
use client::ProgramSchema;
use client::answer::{EventTold, PuntTold, TableAnswer};
use engine::live::{Subscription, Told, ToldOf};
use ports::live::clock::{Clock, MachineClock};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// How often a subscription looks whether it has ended.
const LOOK: Duration = Duration::from_millis(100);

/// A subscription of a client. When this is dropped, it ends.
pub(super) struct Passing {
    /// The number of the request that began it.
    pub(super) number: u32,
    over: Arc<AtomicBool>,
    /// Lets the thread begin, until it has.
    gate: Option<mpsc::Sender<()>>,
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl Passing {
    /// Prepares to pass on what `subscription` tells. The thread that does it holds `thread`.
    pub(super) fn new(
        number: u32,
        subscription: Subscription,
        schema: ProgramSchema,
        output: Arc<Output>,
        thread: Arc<()>,
    ) -> io::Result<Passing> {
        let over = Arc::new(AtomicBool::new(false));
        let (gate, opened) = mpsc::channel();
        let passing = Passing { number, over: over.clone(), gate: Some(gate) };
        let pass = move || {
            if opened.recv().is_ok() {
                // The client may have gone.
                let _ = pass(number, &subscription, schema, &output, &over);
            }
            drop(thread);
        };
        thread::Builder::new().name("subscription".to_owned()).spawn(pass)?;
        Ok(passing)
    }

    /// Begins to pass on, unless it has begun.
    pub(super) fn begin(&mut self) {
        if let Some(gate) = self.gate.take() {
            // The thread waits for this alone.
            let _ = gate.send(());
        }
    }
}

fn pass(
    number: u32,
    subscription: &Subscription,
    mut schema: ProgramSchema,
    output: &Output,
    over: &AtomicBool,
) -> io::Result<()> {
    let (mut frames, mut lost, mut ended) = (Vec::new(), 0, false);
    while !ended && !over.load(Ordering::Relaxed) {
        let mut patience = LOOK;
        while frames.len() < ANSWERS {
            match subscription.next(patience) {
                Ok(Some(told)) => push(&mut frames, number, told, &mut schema),
                Ok(None) => break,
                Err(_) => {
                    ended = true;
                    break;
                }
            }
            patience = Duration::ZERO;
        }
        // What was lost before the loop ended is told, too.
        let now = subscription.lost();
        if now > lost {
            TableAnswer::Lost { count: now - lost }.push(&mut frames, number, &schema, None);
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
fn push(frames: &mut Vec<u8>, number: u32, told: Told, schema: &mut ProgramSchema) {
    if told.generation != schema.generation {
        // Tables, and which of them can be changed, are for requests, which are about another program.
        let newer = describe(&told.program, "", told.generation, schema.workers.into(), &[]);
        *schema = ProgramSchema { tables: Vec::new(), groups: Vec::new(), ..newer };
        TableAnswer::Schema(schema.clone()).push(frames, number, schema, None);
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
    answer.push(frames, number, schema, None);
}
