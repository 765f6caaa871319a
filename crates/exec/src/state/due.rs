//! Handles what is due, before a packet and between packets: entries end, timers and periodic handlers run.
//!
//! Everything goes in the order of times, within two budgets: one of entries that end and of timers, and one
//! of periodic handlers, which thus keep their times while many of the others wait. Whatever a handler raises
//! to be handled at once runs before anything else, without a budget: no packet comes in between.

use super::ending::EntryEnd;
use super::limits::{LOOKS_FOR_STEP, MAX_RUNS, MOVED_EVERY, STEPS_BEFORE_PACKET, STEPS_WITHOUT_PACKET};
use super::table_set::TableFamily;
use super::{ProgramState, RunHandler};
use crate::outputs::{Output, Outputs, Raised};

impl<F: TableFamily> ProgramState<F> {
    /// Handles everything that is due by `time`, before a packet of that time, and moves the program's time
    /// forward to it.
    pub fn handle_due(&mut self, time: u64, runner: &mut impl RunHandler<F>, outputs: &mut Outputs) {
        self.handle_due_in(STEPS_BEFORE_PACKET, time, runner, outputs);
    }

    /// As [`ProgramState::handle_due`], where time passes without a packet.
    pub fn advance(&mut self, time: u64, runner: &mut impl RunHandler<F>, outputs: &mut Outputs) {
        self.handle_due_in(STEPS_WITHOUT_PACKET, time, runner, outputs);
    }

    /// Handles what is due, and reclaims expired entries in at most `steps` steps.
    pub(super) fn handle_due_in(
        &mut self,
        mut steps: u32,
        time: u64,
        runner: &mut impl RunHandler<F>,
        outputs: &mut Outputs,
    ) {
        let time = time.max(self.now);
        self.cause = Output::BETWEEN;
        let is_moving = self.tables.catch_up(steps / STEPS_BEFORE_PACKET);
        self.pending.start(time);
        let mut looks = LOOKS_FOR_STEP * steps;
        let mut chained = self.drain(runner, outputs);
        // Whether what is left of ends and timers, or of periodic handlers, waits for a later moment.
        let (mut ends_wait, mut periods_wait) = (false, false);
        while chained < MAX_RUNS {
            let timer = self.pending.first_delayed().filter(|_| !ends_wait);
            let periodic = self.pending.first_periodic().filter(|_| !periods_wait);
            let first = timer.into_iter().chain(periodic.map(|(at, ..)| at)).min();
            let first = first.map(|(due, _)| due).filter(|due| *due <= time);
            let timers = self.pending.delayed();
            if !ends_wait {
                // What ends at one moment with a timer comes before it.
                let end = self.tables.next_end(first.unwrap_or(time), &mut looks);
                ends_wait = match &end {
                    Some(end) => !self.ends_budget.take(end.time, time, timers),
                    None => looks == 0,
                };
                if let Some(end) = end.filter(|_| !ends_wait) {
                    self.come_to(end.time, &mut steps);
                    self.end_entry(&end, runner, outputs);
                    chained += self.drain(runner, outputs);
                    continue;
                }
                if ends_wait {
                    continue;
                }
            }
            let Some(due) = first else { break };
            match periodic.filter(|(at, _)| timer.is_none_or(|timer| *at < timer)) {
                Some((_, index)) if self.periods_budget.take(due, time, 0) => {
                    self.come_to(due, &mut steps);
                    self.run_periodic(index, runner, outputs);
                }
                None if self.ends_budget.take(due, time, timers) => {
                    self.come_to(due, &mut steps);
                    self.run_timer(runner, outputs);
                }
                Some(_) => periods_wait = true,
                None => ends_wait = true,
            }
            chained += self.drain(runner, outputs);
        }
        self.come_to(time, &mut steps);
        self.ends_budget.close(time);
        self.periods_budget.close(time);
        if periods_wait || chained >= MAX_RUNS {
            self.pending.skip_periods(time);
        }
        self.set_next_wake();
        if is_moving || self.tables.has_dead_rules() {
            self.next_wake = self.next_wake.min(time.saturating_add(MOVED_EVERY));
        }
    }

    /// Moves the program's time forward, unless it is later already.
    fn come_to(&mut self, time: u64, steps: &mut u32) {
        self.now = self.now.max(time);
        self.expire(steps);
    }

    /// Handles the events that were raised to be handled at once.
    pub fn handle_queued(&mut self, runner: &mut impl RunHandler<F>, outputs: &mut Outputs) {
        self.cause = Output::BETWEEN;
        self.drain(runner, outputs);
        if self.has_queued() {
            self.next_wake = 0;
        }
    }

    /// Ends an entry whose time is up, and runs the handler of the event that it raises.
    fn end_entry(&mut self, end: &EntryEnd, runner: &mut impl RunHandler<F>, outputs: &mut Outputs) {
        let shape = &self.tables.shapes[end.table as usize];
        let Some(event) = shape.expires else { return };
        let mut args = std::mem::take(&mut self.scratch);
        // A handler of machine code reads all columns of the entry, so it does not run without them.
        if !self.tables.ending_columns(end, &mut args) {
            self.tables.end(end);
            self.scratch = args;
            return;
        }
        if let Some(pool) = shape.releases {
            self.memory.give(pool, &args[shape.key.places.len()..]);
        }
        self.tables.end(end);
        self.events[event as usize].raised += 1;
        let first = u32::try_from(outputs.arguments.len()).unwrap_or(u32::MAX);
        outputs.arguments.extend(&args);
        outputs.raised.push(Raised { event, time: self.now, delay: 0, cause: self.cause, first });
        let handler = self.events[event as usize].handler;
        runner.run_handler(self, handler, &args, outputs);
        self.scratch = args;
    }

    fn run_periodic(&mut self, index: usize, runner: &mut impl RunHandler<F>, outputs: &mut Outputs) {
        let handler = self.pending.next_period(index);
        runner.run_handler(self, handler, &[], outputs);
    }

    fn run_timer(&mut self, runner: &mut impl RunHandler<F>, outputs: &mut Outputs) {
        let mut args = std::mem::take(&mut self.scratch);
        if let Some(event) = self.pending.next_delayed(&mut args) {
            let handler = self.events[event as usize].handler;
            runner.run_handler(self, handler, &args, outputs);
        }
        self.scratch = args;
    }

    /// Runs queued events in order, and those that they raise, [`MAX_RUNS`] at most; returns how many ran.
    fn drain(&mut self, runner: &mut impl RunHandler<F>, outputs: &mut Outputs) -> u32 {
        let (mut args, mut runs) = (std::mem::take(&mut self.scratch), 0);
        while runs < MAX_RUNS
            && let Some(event) = self.pending.next_queued(&mut args)
        {
            runs += 1;
            let handler = self.events[event as usize].handler;
            runner.run_handler(self, handler, &args, outputs);
        }
        self.scratch = args;
        runs
    }
}
