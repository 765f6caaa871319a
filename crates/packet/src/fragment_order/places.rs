//! Which packets fragments have come of: a place for each, found by a bounded search.
//!
//! Places stand in sets of [`WAYS`]; a hash of the packet chooses the set. So a search looks at no more than
//! a set, whatever came before. A place whose first fragment has come gives way to another packet, the one
//! used the longest ago first; a place whose fragments wait does not.

use super::datagram::Datagram;

/// How many places a set has.
pub(super) const WAYS: usize = 8;

/// What is known of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Came {
    /// Nothing: the place is free.
    #[default]
    Nothing,
    /// The first fragment.
    First,
    /// Later fragments: the oldest and the newest that wait.
    Later { oldest: u32, newest: u32 },
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    datagram: Datagram,
    /// When the first fragment came.
    since: u64,
    came: Came,
}

/// Places for packets.
pub(super) struct Places {
    known: Vec<Known>,
    /// How long a first fragment is remembered, in nanoseconds.
    lasts: u64,
    seed: u64,
    /// At how many places the last search looked.
    #[cfg(test)]
    looked: std::cell::Cell<usize>,
}

impl Places {
    /// At least `count` places, a power of two of sets.
    pub(super) fn new(count: usize, lasts: u64, seed: u64) -> Places {
        Places {
            known: vec![Known::default(); Places::rounded(count)],
            lasts,
            seed,
            #[cfg(test)]
            looked: std::cell::Cell::default(),
        }
    }

    const fn rounded(count: usize) -> usize {
        count.div_ceil(WAYS).next_power_of_two() * WAYS
    }

    /// Bytes of so many places.
    pub(super) const fn allocated(count: usize) -> usize {
        Places::rounded(count) * size_of::<Known>()
    }

    /// The first place of the packet's set.
    pub(super) fn set_of(&self, datagram: &Datagram) -> usize {
        let Datagram { from, to, id, kind } = *datagram;
        let words = [
            from as u64,
            (from >> 64) as u64,
            to as u64,
            (to >> 64) as u64,
            u64::from(id) << 8 | u64::from(kind),
        ];
        (hash(self.seed, &words) as usize & (self.known.len() / WAYS - 1)) * WAYS
    }

    /// The place of a packet of which something is known.
    pub(super) fn find(&self, datagram: &Datagram, now: u64) -> Option<(usize, Came)> {
        let set = self.set_of(datagram);
        #[cfg(test)]
        self.looked.set(0);
        (set..set + WAYS).find_map(|place| {
            #[cfg(test)]
            self.looked.set(self.looked.get() + 1);
            let known = &self.known[place];
            (known.datagram == *datagram && !self.is_free(known, now)).then_some((place, known.came))
        })
    }

    /// A place for a packet of which nothing is known; `None` if fragments wait at all places of its set.
    pub(super) fn take(&mut self, datagram: &Datagram, now: u64) -> Option<usize> {
        let set = self.set_of(datagram);
        let oldest = (set..set + WAYS)
            .filter(|&place| !matches!(self.known[place].came, Came::Later { .. }))
            .min_by_key(|&place| {
                let known = &self.known[place];
                if self.is_free(known, now) { 0 } else { known.since.saturating_add(1) }
            })?;
        self.known[oldest].datagram = *datagram;
        Some(oldest)
    }

    /// Says what came of the packet that has the place.
    pub(super) fn set(&mut self, place: usize, came: Came, now: u64) {
        self.known[place].came = came;
        self.known[place].since = now;
    }

    /// What came of the packet that has the place.
    pub(super) fn came(&self, place: usize) -> Came {
        self.known[place].came
    }

    /// At how many places the last search looked.
    #[cfg(test)]
    pub(super) fn looked(&self) -> usize {
        self.looked.get()
    }

    fn is_free(&self, known: &Known, now: u64) -> bool {
        match known.came {
            Came::Nothing => true,
            Came::First => now.saturating_sub(known.since) >= self.lasts,
            Came::Later { .. } => false,
        }
    }
}

/// A hash that nobody can steer who does not know the seed: the finalizer of MurmurHash3, word by word.
pub(super) fn hash(seed: u64, words: &[u64]) -> u64 {
    let mix = |mut word: u64| {
        word = (word ^ word >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        word = (word ^ word >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        word ^ word >> 33
    };
    words.iter().fold(mix(seed ^ 0x9e37_79b9_7f4a_7c15), |state, &word| mix(state ^ word))
}
