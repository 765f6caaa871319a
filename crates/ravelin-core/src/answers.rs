//! Answers the questions of `control`, one process after the other, and takes the policies that it hands in.

use crate::changing::ChangeError;
use crate::declared::declared;
use crate::error::say;
use crate::exchange::Exchange;
use crate::figures::{SeenPort, figures};
use crate::granted::ChangeRefusal;
use crate::guarded::Refused;
use crate::in_force::InstallError;
use crate::listing::{Asked, ListError};
use crate::policies::Policies;
use engine::figures::by_reason;
use engine::live::look::Counted;
use messages::Channel;
use messages::control::{ControlQuestion, CoreAnswer, EntryPage, Shown, ShownPolicy};
use messages::limits::{AFTER_ANSWER, AFTER_POLICY, KEPT_WITHIN, LONGEST_BUNDLE_MESSAGE, LONGEST_MESSAGE};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Instant;

/// What is needed to answer.
pub(crate) struct Answering<'a> {
    policies: &'a Policies,
    layers: &'a [String],
    /// What was refused of each VNIC, with the name of the port.
    refused: &'a [(String, Arc<Refused>)],
    ports: &'a [SeenPort],
    exchange: Exchange,
    /// What `launch` has kept.
    has_kept: &'a Receiver<(u64, Option<String>)>,
    /// The end of the last change of policies that was asked for.
    policy_taken: Option<Instant>,
}

impl<'a> Answering<'a> {
    /// With nothing asked yet.
    pub(crate) fn new(
        policies: &'a Policies,
        layers: &'a [String],
        refused: &'a [(String, Arc<Refused>)],
        ports: &'a [SeenPort],
        exchange: Exchange,
        has_kept: &'a Receiver<(u64, Option<String>)>,
    ) -> Answering<'a> {
        Answering { policies, layers, refused, ports, exchange, has_kept, policy_taken: None }
    }

    /// Answers until the other end is gone, says something that is not understood, or does not read.
    pub(crate) fn serve(&mut self, mut control: Channel) {
        loop {
            let question = match control.receive_alone::<ControlQuestion>(LONGEST_BUNDLE_MESSAGE) {
                Ok(Some(question)) => question,
                Ok(None) => return,
                Err(error) => {
                    // Whatever it says next, nobody knows where it begins.
                    say(&format_args!("control: {error}"));
                    return;
                }
            };
            let answer = self.answer(question);
            if let Err(error) = control.send_at_most(LONGEST_MESSAGE, &answer, &too_long()) {
                say(&format_args!("control does not take its answer: {error}"));
                return;
            }
            thread::park_timeout(AFTER_ANSWER);
        }
    }

    /// Where the last change of policies is not long ago, also by another process: that another one could
    /// be made later.
    fn too_soon(&self) -> Option<CoreAnswer> {
        let left = AFTER_POLICY.checked_sub(self.policy_taken?.elapsed())?;
        let why = format!("a policy was handed in or confirmed within the last {} s", AFTER_POLICY.as_secs());
        let milliseconds = left.as_nanos().div_ceil(1_000_000) as u64;
        Some(CoreAnswer::TooFast { why, milliseconds })
    }

    fn answer(&mut self, question: ControlQuestion) -> CoreAnswer {
        // What was kept of earlier changes, which nobody waits for any more.
        while self.has_kept.try_recv().is_ok() {}
        if matches!(question, ControlQuestion::Install { .. } | ControlQuestion::Confirm { .. })
            && let Some(later) = self.too_soon()
        {
            return later;
        }
        let taken = match question {
            ControlQuestion::Show => return self.shown(),
            ControlQuestion::Figures => {
                let figures = figures(self.policies.activation(), self.ports);
                return figures.map_or_else(ended, |figures| CoreAnswer::Figures(Box::new(figures)));
            }
            ControlQuestion::Table(number) => return self.table(number),
            ControlQuestion::Entries { number, table, worker, own, place } => {
                return told(self.policies.activation().entries(Asked { number, table, worker }, own, place));
            }
            ControlQuestion::Entry { number, table, worker, length, bits } => {
                return told(self.policies.activation().entry(Asked { number, table, worker }, length, bits));
            }
            ControlQuestion::Change { number, changes } => {
                return changes_made(self.policies.activation().change(number, &changes));
            }
            ControlQuestion::Exchange { frames, patience } => {
                let number = self.policies.activation().hold().active.number;
                return self.exchange.exchange(number, frames, patience);
            }
            ControlQuestion::Install { bundle, confirm_within } => {
                self.policies.install(bundle, confirm_within)
            }
            ControlQuestion::Confirm { hash } => self.policies.confirm(hash),
        };
        let answer = self.taken(taken);
        self.policy_taken = Some(Instant::now());
        answer
    }

    /// What became of a policy.
    fn taken(&self, taken: Result<(Option<ShownPolicy>, Option<u64>), InstallError>) -> CoreAnswer {
        match taken {
            Ok((Some(policy), newest)) => {
                let not_kept = newest.and_then(|newest| self.not_kept(newest));
                CoreAnswer::Runs { policy, not_kept }
            }
            Ok((None, _)) => CoreAnswer::Refused("no policy runs".to_owned()),
            Err(error) => CoreAnswer::Refused(error.to_string()),
        }
    }

    /// Why a version is not kept, if it is not.
    fn not_kept(&self, version: u64) -> Option<String> {
        let end = Instant::now() + KEPT_WITHIN;
        loop {
            match self.has_kept.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok((newest, failed)) if newest == version => return failed,
                // Somebody else has handed that in.
                Ok(_) => {}
                Err(_) => return Some("the disk has not answered yet".to_owned()),
            }
        }
    }

    /// How a table is declared.
    fn table(&self, table: u32) -> CoreAnswer {
        let activation = self.policies.activation();
        let running = activation.hold();
        CoreAnswer::Table {
            number: running.active.number,
            workers: activation.remote().workers() as u16,
            table: declared(&running.granted, table),
        }
    }

    /// What runs, and what became of packets.
    fn shown(&self) -> CoreAnswer {
        let (active, policy) = self.policies.shown();
        let whole = self.policies.activation().remote().look().and_then(Counted::whole);
        let Some(counted) = whole else {
            return ended();
        };
        let (program, ledger) = (&counted.program, &counted.ledger);
        CoreAnswer::Shown(Shown {
            hash: active.hash,
            program: active.name,
            number: active.number,
            layers: self.layers.to_vec(),
            received: ledger.received().packets,
            forwarded: ledger.forwarded().packets,
            dropped: by_reason(program, |reason| ledger.dropped(reason).packets),
            punted: by_reason(program, |reason| ledger.punted(reason).packets),
            policy,
            refused: self.refused.iter().map(|(port, counts)| (port.clone(), counts.by_name())).collect(),
        })
    }
}

fn ended() -> CoreAnswer {
    CoreAnswer::Refused("a worker of the core has ended".to_owned())
}

/// Entries, or why they are not told.
fn told(page: Result<EntryPage, ListError>) -> CoreAnswer {
    match page {
        Ok(page) => CoreAnswer::Entries(page),
        Err(error) => CoreAnswer::Refused(error.to_string()),
    }
}

/// What became of changes of entries.
fn changes_made(made: Result<u32, ChangeError>) -> CoreAnswer {
    match made {
        Ok(removed) => CoreAnswer::Changed { removed },
        Err(ChangeError::Refused(refusal @ ChangeRefusal::TooFast { wait, .. })) => {
            let milliseconds = wait.as_nanos().div_ceil(1_000_000) as u64;
            CoreAnswer::TooFast { why: refusal.to_string(), milliseconds }
        }
        Err(error) => CoreAnswer::Refused(error.to_string()),
    }
}

/// In place of an answer that is longer than `control` takes.
fn too_long() -> CoreAnswer {
    CoreAnswer::Refused(format!("the answer is longer than {LONGEST_MESSAGE} bytes"))
}
