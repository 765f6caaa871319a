//! The task FIFO: how many packets each task has, in order of arrival.
//!
//! ```text
//!        head                    tail               place = position mod entries; positions count on and wrap at 2^16,
//!         ▼                       ▼                 of which the number of entries, a power of two, is a part
//!  ┌────┬────┬────┬────┬────┬────┬────┬────┐
//!  │    │ 32 │ 32 │  7 │ 32 │ 32 │    │    │        an entry: packets of a task, 1 to 32
//!  └────┴────┴────┴────┴────┴────┴────┴────┘
//! ```
//!
//! Where a task's packets lie needs no entry: they follow those of the task before it.

/// The FIFO.
#[derive(Clone, Debug)]
pub(super) struct TaskFifo {
    packets: Box<[u8]>,
    head: u16,
    tail: u16,
}

impl TaskFifo {
    /// An empty one; `entries` is a power of two up to 2^15.
    pub(super) fn new(entries: u16) -> TaskFifo {
        TaskFifo { packets: vec![0; entries.into()].into(), head: 0, tail: 0 }
    }

    pub(super) fn len(&self) -> u16 {
        self.tail.wrapping_sub(self.head)
    }

    pub(super) fn is_full(&self) -> bool {
        usize::from(self.len()) == self.packets.len()
    }

    fn place(&self, position: u16) -> usize {
        usize::from(position) & (self.packets.len() - 1)
    }

    /// Puts a task behind the others. It is not full.
    pub(super) fn push(&mut self, packets: u8) {
        debug_assert!(!self.is_full(), "a task would be lost");
        let place = self.place(self.tail);
        self.packets[place] = packets;
        self.tail = self.tail.wrapping_add(1);
    }

    pub(super) fn front(&self) -> Option<u8> {
        (self.len() > 0).then(|| self.packets[self.place(self.head)])
    }

    pub(super) fn pop(&mut self) -> Option<u8> {
        let packets = self.front()?;
        self.head = self.head.wrapping_add(1);
        Some(packets)
    }
}
