//! What changes while the kernel lists its routes.
//!
//! Linux puts a part of its list together first and then hands it over, so a change that happens in between
//! is told before the part that does not know of it. Such a part would bring back what has gone: a next hop
//! that went, those that another took the place of, or routes by a numbered next hop that went. All this is
//! noted here until the list is at its end.

use super::rtnetlink::{Hop, Key};
use std::collections::HashSet;

/// The most changes that are noted while one list comes; after more, the list is asked for again.
const NOTED: usize = 1 << 20;

/// What is to be thought of a next hop of a listed route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belief {
    /// It is there as far as was told.
    There,
    /// It went since.
    Gone,
    /// Another one took the place of this one, or of another beside it.
    Replaced,
}

/// Changes since a list was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    went: HashSet<(Key, Hop)>,
    /// Routes that took the place of others: all that is known of them was told since.
    replaced: HashSet<Key>,
    /// Numbered next hops that went.
    objects: HashSet<u32>,
    room: usize,
    doubtful: bool,
}

impl Default for Listing {
    fn default() -> Listing {
        Listing::with_room(NOTED)
    }
}

impl Listing {
    /// With room for so many changes.
    pub(crate) fn with_room(room: usize) -> Listing {
        let (went, replaced, objects) = Default::default();
        Listing { went, replaced, objects, room, doubtful: false }
    }

    /// A next hop of a route went.
    pub(crate) fn went(&mut self, key: Key, hop: Hop) {
        if self.has_room() {
            self.went.insert((key, hop));
        }
    }

    /// A next hop of a route came; with `replaces`, in place of all others.
    pub(crate) fn came(&mut self, key: Key, hop: Hop, replaces: bool) {
        self.went.remove(&(key, hop));
        if replaces && self.has_room() {
            self.replaced.insert(key);
        }
    }

    /// A numbered next hop went, and with it what was listed by it. It may come again at once: routes by that
    /// are told.
    pub(crate) fn object_went(&mut self, number: u32) {
        if self.has_room() {
            self.objects.insert(number);
        }
    }

    /// Whether a next hop of a listed route is still there as far as was told since.
    pub(crate) fn says(&self, key: Key, hop: Hop) -> Belief {
        let gone = matches!(hop, Hop::Object(number) if self.objects.contains(&number));
        if gone || self.went.contains(&(key, hop)) {
            Belief::Gone
        } else if self.replaced.contains(&key) {
            Belief::Replaced
        } else {
            Belief::There
        }
    }

    /// The list may say what is no longer so, or leave out what is there.
    pub(crate) fn doubt(&mut self) {
        self.doubtful = true;
    }

    /// More has changed than was noted: the list may say what is no longer so.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    fn has_room(&mut self) -> bool {
        self.doubtful |= self.went.len() + self.replaced.len() + self.objects.len() >= self.room;
        !self.doubtful
    }
}
