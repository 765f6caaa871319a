//! The delay commit queue: tasks in order of arrival from issue to commit, and the table from a running
//! warp's name to its place.
//!
//! ```text
//!  queue       head                     tail             table: name of a warp (core, slot) ─► position in the queue
//!               ▼                        ▼                       0,0  0,1  1,0  1,1
//!  ┌─────────┬─────────┬─────────┬─────────┬──────┐            ┌────┬────┬────┬────┐
//!  │         │ done    │ running │ done    │      │            │  7 │  8 │  6 │  9 │    asked when a warp finishes,
//!  │         │ 32      │ 32      │ 5       │      │            └────┴────┴────┴────┘    and at no other time
//!  └─────────┴─────────┴─────────┴─────────┴──────┘
//!
//!  entry      running ─► done ─────────────┐
//!                │   ◄─┐                    ├─► committed, once it is at the head
//!                │     └ issued again       │
//!                ├──► returned              │
//!                └──► refused ──────────────┘
//! ```
//!
//! An entry is taken at issue, so the queue bounds how far results can run ahead of the oldest one. Positions
//! wrap at 2^16.

/// How a warp ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    /// With results.
    Done,
    /// Without, and the host runs its packets.
    Refused,
    /// Without, and it is to be issued again.
    Returned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    first: u64,
    packets: u8,
    /// None while it runs.
    finish: Option<Finish>,
}

/// The queue with its table.
#[derive(Clone, Debug)]
pub(super) struct CommitQueue {
    entries: Box<[Entry]>,
    head: u16,
    tail: u16,
    places: Box<[u16]>,
    slots: usize,
    /// Entries that are to be issued again.
    returned: u16,
}

impl CommitQueue {
    /// An empty one; `entries` is a power of two up to 2^15.
    pub(super) fn new(entries: u16, cores: u16, slots: u8) -> CommitQueue {
        let empty = Entry { first: 0, packets: 0, finish: None };
        let names = usize::from(cores) * usize::from(slots);
        CommitQueue {
            entries: vec![empty; entries.into()].into(),
            head: 0,
            tail: 0,
            places: vec![0; names].into(),
            slots: slots.into(),
            returned: 0,
        }
    }

    pub(super) fn len(&self) -> u16 {
        self.tail.wrapping_sub(self.head)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    pub(super) fn is_full(&self) -> bool {
        usize::from(self.len()) == self.entries.len()
    }

    fn entry(&mut self, position: u16) -> &mut Entry {
        let place = usize::from(position) & (self.entries.len() - 1);
        &mut self.entries[place]
    }

    fn name(&self, core: u16, slot: u8) -> usize {
        usize::from(core) * self.slots + usize::from(slot)
    }

    /// A task that is issued. It is not full, and nothing runs under this name.
    pub(super) fn push(&mut self, core: u16, slot: u8, first: u64, packets: u8) {
        debug_assert!(!self.is_full(), "a task would be lost");
        *self.entry(self.tail) = Entry { first, packets, finish: None };
        self.places[self.name(core, slot)] = self.tail;
        self.tail = self.tail.wrapping_add(1);
    }

    /// A running warp ends; from now on its name may be another's.
    pub(super) fn finish(&mut self, core: u16, slot: u8, how: Finish) {
        let position = self.places[self.name(core, slot)];
        let inside = position.wrapping_sub(self.head) < self.len();
        let entry = self.entry(position);
        debug_assert!(inside && entry.finish.is_none(), "the table leads to a task that does not run");
        entry.finish = Some(how);
        self.returned += u16::from(how == Finish::Returned);
    }

    pub(super) fn has_returned(&self) -> bool {
        self.returned > 0
    }

    /// Issues the oldest returned task under a name; its packets.
    pub(super) fn issue_again(&mut self, core: u16, slot: u8) -> Option<(u64, u8)> {
        let name = self.name(core, slot);
        let position = self.positions().find(|at| self.entry_is_returned(*at))?;
        self.places[name] = position;
        self.returned -= 1;
        let entry = self.entry(position);
        entry.finish = None;
        Some((entry.first, entry.packets))
    }

    /// What was to be issued again will not be.
    pub(super) fn refuse_returned(&mut self) {
        for position in self.positions() {
            if self.entry_is_returned(position) {
                self.entry(position).finish = Some(Finish::Refused);
            }
        }
        self.returned = 0;
    }

    fn positions(&self) -> impl Iterator<Item = u16> + use<> {
        let head = self.head;
        (0..self.len()).map(move |place| head.wrapping_add(place))
    }

    fn entry_is_returned(&self, position: u16) -> bool {
        let place = usize::from(position) & (self.entries.len() - 1);
        self.entries[place].finish == Some(Finish::Returned)
    }

    /// The task at the head, if it has ended for good: its packets and how.
    pub(super) fn pop(&mut self) -> Option<(u8, Finish)> {
        if self.is_empty() {
            return None;
        }
        let Entry { packets, finish, .. } = *self.entry(self.head);
        let finish = finish.filter(|finish| *finish != Finish::Returned)?;
        self.head = self.head.wrapping_add(1);
        Some((packets, finish))
    }
}
