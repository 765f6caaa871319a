//! A network that loses, repeats, delays and reorders bytes, by a seed.

use std::collections::BTreeMap;
use tables::generate::Random;

/// How bad it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// Of a hundred messages.
    pub(crate) lost: u64,
    pub(crate) repeated: u64,
    /// Nanoseconds on the way, at least and at most; each message draws its own, so they overtake each other.
    pub(crate) delay: (u64, u64),
}

pub(crate) struct Network<T> {
    weather: Weather,
    random: Random,
    on_the_way: BTreeMap<(u64, u64), T>,
    sent: u64,
}

impl<T: Clone> Network<T> {
    pub(crate) fn new(seed: u64, weather: Weather) -> Network<T> {
        Network { weather, random: Random::new(seed), on_the_way: BTreeMap::new(), sent: 0 }
    }

    pub(crate) fn send(&mut self, message: T, now: u64) {
        let copies = 1 + u64::from(self.random.chance(self.weather.repeated));
        for _ in 0..copies {
            let delay = self.random.between(self.weather.delay.0, self.weather.delay.1);
            self.sent += 1;
            if !self.random.chance(self.weather.lost) {
                self.on_the_way.insert((now + delay, self.sent), message.clone());
            }
        }
    }

    pub(crate) fn next(&self) -> Option<u64> {
        self.on_the_way.keys().next().map(|(at, _)| *at)
    }

    pub(crate) fn arrived(&mut self, now: u64) -> Option<T> {
        if self.next()? > now { None } else { self.on_the_way.pop_first().map(|(_, message)| message) }
    }
}
