//! Lists that have a limit while they are read: whoever writes a longer one has no memory taken for it.

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Reads a list of at most `MOST` values.
///
/// # Errors
/// It is longer, or one of them is none.
pub(crate) fn at_most<'de, D, T, const MOST: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(Bounded::<T, MOST>(PhantomData))
}

struct Bounded<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Bounded<T, MOST> {
    type Value = Vec<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "at most {MOST} values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Vec<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = values.next_element()? {
            if all.len() == MOST {
                return Err(A::Error::custom("a list that is too long"));
            }
            all.push(value);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use crate::control::{ControlQuestion, EntryChange, EntryOperation, LinkFrame};
    use crate::frame;
    use crate::limits::{LONGEST_LINK_FRAME, MOST_CHANGES, MOST_ENTRY_COLUMNS, MOST_FRAMES};

    #[test]
    fn as_many_changes_and_columns_as_may_be_are_read_and_no_more() {
        let question = |changes: usize, columns: usize| {
            let operation = EntryOperation::Insert(vec![7; columns]);
            let change = EntryChange { table: 1, length: 32, bits: 9, operation };
            ControlQuestion::Change { number: 2, changes: vec![change; changes] }
        };
        let read = |asked: &ControlQuestion| {
            frame::read::<ControlQuestion>(&frame::written(asked).expect("it has a form")[4..])
        };
        for (changes, columns) in [(0, 0), (MOST_CHANGES, 1), (1, MOST_ENTRY_COLUMNS)] {
            let asked = question(changes, columns);
            assert_eq!(read(&asked), Ok(asked));
        }
        for (changes, columns) in [(MOST_CHANGES + 1, 0), (1, MOST_ENTRY_COLUMNS + 1), (1 << 20, 0)] {
            assert!(read(&question(changes, columns)).is_err(), "{changes} {columns}");
        }
    }

    #[test]
    fn as_many_and_as_long_frames_as_may_be_are_read_and_no_more() {
        let read = |frames: usize, bytes: usize| {
            let frame = LinkFrame { port: 1, bytes: vec![9; bytes] };
            let asked = ControlQuestion::Exchange { frames: vec![frame; frames], patience: 0 };
            let written = frame::written(&asked).expect("it has a form");
            frame::read::<ControlQuestion>(&written[4..]).map(|read| read == asked)
        };
        for (frames, bytes) in [(0, 0), (MOST_FRAMES, 1), (1, LONGEST_LINK_FRAME)] {
            assert_eq!(read(frames, bytes), Ok(true));
        }
        for (frames, bytes) in [(MOST_FRAMES + 1, 0), (1, LONGEST_LINK_FRAME + 1), (1, 1 << 20)] {
            assert!(read(frames, bytes).is_err(), "{frames} {bytes}");
        }
    }
}
