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
    use crate::control::{ControlQuestion, EntryChange, EntryOperation};
    use crate::frame;
    use crate::limits::{MOST_CHANGES, MOST_ENTRY_COLUMNS};

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
}
