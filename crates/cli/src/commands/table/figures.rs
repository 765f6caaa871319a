//! Figures of a table for people: its size, and how fast it is filled and asked.

use crate::arguments::table::LookupArguments;
use crate::render::quantity::{bytes, seconds};
use std::time::{Duration, Instant};

/// Figures of a table, told on standard error if wanted.
pub(super) struct Figures {
    pub(super) wanted: bool,
    text: String,
}

impl Figures {
    pub(super) fn new(arguments: &LookupArguments) -> Self {
        Self { wanted: arguments.stats, text: String::new() }
    }

    pub(super) fn note(&mut self, what: &str, value: impl std::fmt::Display) {
        self.text += &format!("{what:<10} {value}\n");
    }

    /// Does something once and notes how long it took.
    pub(super) fn time<T>(&mut self, what: &str, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        self.note(what, seconds(start.elapsed().as_secs_f64()));
        done
    }

    pub(super) fn note_bytes(&mut self, number: usize) {
        self.note("image", bytes(number as u64));
    }

    /// Does something that looks up `lookups` times as often as it takes to know its rate, if figures are
    /// wanted.
    pub(super) fn rate(&mut self, how: &str, lookups: usize, mut work: impl FnMut()) {
        const LEAST: Duration = Duration::from_millis(300);
        if !self.wanted || lookups == 0 {
            return;
        }
        // The first round warms the caches.
        work();
        let (start, mut rounds) = (Instant::now(), 0u32);
        while rounds == 0 || start.elapsed() < LEAST {
            work();
            rounds += 1;
        }
        let each = start.elapsed().as_secs_f64() / f64::from(rounds) / lookups as f64;
        self.note("lookups", format!("{:.2} million a second, {how}", 1e-6 / each));
    }

    pub(super) fn tell(&self) {
        if self.wanted {
            anstream::eprint!("{}", self.text);
        }
    }
}
