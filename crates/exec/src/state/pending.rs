//! The pending work of a program: queued events, delayed events, and periodic handlers.
//!
//! Everything is kept in arrays, which never shrink. A delayed event names the place of its arguments; each
//! place has room for the event with the most arguments.

use ir::Program;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The time at which nothing ever happens.
pub(super) const NEVER: u64 = u64::MAX;

/// A delayed event; the order of the fields is the order in which timers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    due: u64,
    created: u64,
    event: u32,
    args: u32,
}

/// A periodic handler. `created` orders it among timers due at the same time.
#[derive(Clone, Copy, Debug)]
struct Periodic {
    due: u64,
    created: u64,
    period: u64,
    handler: u32,
}

/// Events, timers and periodic handlers of a program.
#[derive(Debug)]
pub(super) struct Pending {
    queue: VecDeque<u32>,
    queue_args: VecDeque<u128>,
    timers: BinaryHeap<Reverse<Timer>>,
    timer_args: Vec<u128>,
    free_timer_args: Vec<u32>,
    /// How many arguments each event has.
    params: Vec<usize>,
    stride: usize,
    periodic: Vec<Periodic>,
    started: bool,
    created: u64,
}

impl Pending {
    /// The pending work of a program at its start.
    pub(super) fn new(program: &Program) -> Pending {
        let params: Vec<usize> = program.events.iter().map(|event| event.params.len()).collect();
        let periodic = program.every.iter().map(|every| Periodic {
            due: NEVER,
            created: 0,
            period: every.period.max(1),
            handler: every.handler,
        });
        Pending {
            queue: VecDeque::new(),
            queue_args: VecDeque::new(),
            timers: BinaryHeap::new(),
            timer_args: Vec::new(),
            free_timer_args: Vec::new(),
            stride: params.iter().copied().max().unwrap_or(0),
            params,
            periodic: periodic.collect(),
            started: false,
            created: 0,
        }
    }

    /// How many arguments an event has.
    pub(super) fn params(&self, event: u32) -> usize {
        self.params[event as usize]
    }

    /// Whether events wait to be handled at once.
    #[inline]
    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The number of queued events.
    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// How many events are delayed.
    pub(super) fn delayed(&self) -> usize {
        self.timers.len()
    }

    /// Queues an event with its arguments.
    pub(super) fn queue(&mut self, event: u32, args: &[u128]) {
        self.queue.push_back(event);
        self.queue_args.extend(args);
    }

    /// The next queued event; its arguments go into `args`.
    pub(super) fn next_queued(&mut self, args: &mut Vec<u128>) -> Option<u32> {
        let event = self.queue.pop_front()?;
        args.clear();
        args.extend(self.queue_args.drain(..self.params[event as usize]));
        Some(event)
    }

    /// Schedules an event for the time `due`.
    pub(super) fn delay(&mut self, due: u64, event: u32, args: &[u128]) {
        let created = self.next_created();
        self.put(due, created, event, args);
    }

    fn put(&mut self, due: u64, created: u64, event: u32, args: &[u128]) {
        let place = self.free_timer_args.pop().unwrap_or_else(|| {
            let place = self.timer_args.len();
            self.timer_args.resize(place + self.stride, 0);
            // At most 65,536 timers times 65,536 arguments.
            (place / self.stride.max(1)) as u32
        });
        let start = place as usize * self.stride;
        self.timer_args[start..start + args.len()].copy_from_slice(args);
        self.timers.push(Reverse(Timer { due, created, event, args: place }));
    }

    /// The delayed event that comes first; its arguments go into `args`.
    pub(super) fn next_delayed(&mut self, args: &mut Vec<u128>) -> Option<u32> {
        let Reverse(timer) = self.timers.pop()?;
        let start = timer.args as usize * self.stride;
        args.clear();
        args.extend_from_slice(&self.timer_args[start..start + self.params[timer.event as usize]]);
        self.free_timer_args.push(timer.args);
        Some(timer.event)
    }

    /// Starts the periodic handlers, the first time one period after `time`; those that were taken over from
    /// a replaced program go on in their rhythm.
    pub(super) fn start(&mut self, time: u64) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        for index in 0..self.periodic.len() {
            if self.periodic[index].due == NEVER {
                self.periodic[index].due = time.saturating_add(self.periodic[index].period);
                self.periodic[index].created = self.next_created();
            }
        }
    }

    fn next_created(&mut self) -> u64 {
        self.created += 1;
        self.created
    }

    /// When and in which order the first timer is due.
    pub(super) fn first_delayed(&self) -> Option<(u64, u64)> {
        let Reverse(timer) = self.timers.peek()?;
        (timer.due != NEVER).then_some((timer.due, timer.created))
    }

    /// When and in which order the first periodic handler is due, and its index.
    pub(super) fn first_periodic(&self) -> Option<((u64, u64), usize)> {
        let all = self.periodic.iter().enumerate().filter(|(_, periodic)| periodic.due != NEVER);
        all.map(|(index, periodic)| ((periodic.due, periodic.created), index)).min()
    }

    /// The function of a periodic handler that is due; the handler is due again one period later.
    pub(super) fn next_period(&mut self, index: usize) -> u32 {
        let periodic = &mut self.periodic[index];
        periodic.due = periodic.due.saturating_add(periodic.period);
        periodic.handler
    }

    /// Skips periods up to `time` that have not been run.
    pub(super) fn skip_periods(&mut self, time: u64) {
        for periodic in self.periodic.iter_mut().filter(|periodic| periodic.due <= time) {
            let periods = (time - periodic.due) / periodic.period + 1;
            periodic.due = periodic.due.saturating_add(periods.saturating_mul(periodic.period));
        }
    }

    /// The time when the first delayed event or periodic handler is due.
    pub(super) fn next_time(&self) -> u64 {
        let timer = self.first_delayed().map_or(NEVER, |(due, _)| due);
        let periodic = self.periodic.iter().map(|periodic| periodic.due).min().unwrap_or(NEVER);
        timer.min(periodic)
    }

    /// Takes over the pending work of another program, in the same order: queued and delayed events that
    /// `events` pairs (the other program's number first), and the times of periodic handlers, of which the
    /// first with some period continues the other program's first with that period, and so on. Other events
    /// are given up; returns their number.
    pub(super) fn take_over(&mut self, old: &mut Pending, events: &[(u32, u32)]) -> u64 {
        let same = self.params == old.params && events.len() == self.params.len();
        let given_up = if same && events.iter().all(|(from, to)| from == to) {
            std::mem::swap(&mut self.queue, &mut old.queue);
            std::mem::swap(&mut self.queue_args, &mut old.queue_args);
            std::mem::swap(&mut self.timers, &mut old.timers);
            std::mem::swap(&mut self.timer_args, &mut old.timer_args);
            std::mem::swap(&mut self.free_timer_args, &mut old.free_timer_args);
            0
        } else {
            self.copy(old, events)
        };
        self.created = self.created.max(old.created);
        let mut goes_on = vec![false; old.periodic.len()];
        for new in &mut self.periodic {
            let fits = |(place, old): &(usize, &Periodic)| !goes_on[*place] && old.period == new.period;
            if let Some((place, old)) = old.periodic.iter().enumerate().find(fits) {
                (new.due, new.created) = (old.due, old.created);
                goes_on[place] = true;
            }
        }
        given_up
    }

    fn copy(&mut self, old: &mut Pending, events: &[(u32, u32)]) -> u64 {
        let pair = |event: u32| events.iter().find(|(from, _)| *from == event).map(|(_, to)| *to);
        let mut given_up = 0;
        let mut args = Vec::with_capacity(old.stride);
        while let Some(event) = old.next_queued(&mut args) {
            match pair(event) {
                Some(event) => self.queue(event, &args),
                None => given_up += 1,
            }
        }
        while let Some(&Reverse(timer)) = old.timers.peek() {
            let _ = old.next_delayed(&mut args);
            match pair(timer.event) {
                Some(event) => self.put(timer.due, timer.created, event, &args),
                None => given_up += 1,
            }
        }
        given_up
    }
}
