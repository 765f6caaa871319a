//! Arrays that grow where they stand: a large one has addresses for the most items that it may come to, and
//! the system gives a page when it is first written. So no growth copies what there is, which would hold
//! packets up.

use std::alloc::{Layout, handle_alloc_error};
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use memmap2::{MmapMut, MmapOptions, MmapRaw};

/// From so many bytes on an array is mapped; a copy of fewer is quick.
const MAPPED_FROM: usize = 64 << 10;
const PAGE: usize = 4096;

/// Items that are copied as bytes.
pub(crate) struct Reserved<T: Copy> {
    /// The first item, wherever they stand.
    items: NonNull<T>,
    count: usize,
    place: Place<T>,
    /// The most items that addresses are taken for.
    most: usize,
}

/// Where items stand.
enum Place<T> {
    Heap(Vec<T>),
    Mapped {
        memory: MmapRaw,
        /// The most items that there have been, whose pages the system has given.
        touched: usize,
    },
}

// SAFETY: the items are owned, as those of a vector are, and `T` may go to and be seen by other threads.
unsafe impl<T: Copy + Send> Send for Reserved<T> {}
// SAFETY: a shared reference only reads items.
unsafe impl<T: Copy + Sync> Sync for Reserved<T> {}

impl<T: Copy> Reserved<T> {
    /// A mapping begins at a page, which has to suit the items.
    const SUITS: () = assert!(size_of::<T>() > 0 && align_of::<T>() <= PAGE);

    /// Without items, for at most so many bytes of them.
    pub(crate) fn new(bytes: usize) -> Reserved<T> {
        let () = Reserved::<T>::SUITS;
        Reserved { most: bytes / size_of::<T>(), ..Reserved::from(Vec::new()) }
    }

    pub(crate) fn push(&mut self, item: T) {
        self.resize(self.count + 1, item);
    }

    pub(crate) fn extend_from_slice(&mut self, more: &[T]) {
        let count = self.count + more.len();
        self.reserve(count);
        match &mut self.place {
            Place::Heap(vector) => {
                vector.extend_from_slice(more);
                self.find_vector();
            }
            Place::Mapped { touched, .. } => {
                *touched = count.max(*touched);
                let from = NonNull::from(more).cast::<T>();
                // SAFETY: `reserve` has mapped room for `count` items from `items` on, which nobody else has.
                unsafe { self.items.add(self.count).copy_from_nonoverlapping(from, more.len()) };
                self.count = count;
            }
        }
    }

    /// Cuts off what is beyond `count` items, or adds copies of `item`.
    pub(crate) fn resize(&mut self, count: usize, item: T) {
        if count <= self.count {
            return self.truncate(count);
        }
        self.reserve(count);
        let old = self.count;
        match &mut self.place {
            Place::Heap(vector) => {
                vector.resize(count, item);
                self.find_vector();
            }
            Place::Mapped { touched, .. } => {
                *touched = count.max(*touched);
                for at in old..count {
                    // SAFETY: `reserve` has mapped room for `count` items from `items` on.
                    unsafe { self.items.add(at).write(item) };
                }
                self.count = count;
            }
        }
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        if let Place::Heap(vector) = &mut self.place {
            vector.truncate(count);
        }
        self.count = self.count.min(count);
    }

    /// Gives back the room that it has spare.
    pub(crate) fn shrink_to_fit(&mut self) {
        if let Place::Heap(vector) = &mut self.place {
            vector.shrink_to_fit();
            self.find_vector();
        }
    }

    /// Asks a vector where its items are, and how many, after it may have moved them.
    fn find_vector(&mut self) {
        if let Place::Heap(vector) = &mut self.place {
            (self.items, self.count) = (NonNull::from(vector.as_mut_slice()).cast(), vector.len());
        }
    }

    /// Bytes that it takes: of a vector with its spare room, or of pages that have been written.
    pub(crate) fn taken(&self) -> u64 {
        match &self.place {
            Place::Heap(vector) => crate::sizes::vector(vector),
            Place::Mapped { touched, .. } => (touched * size_of::<T>()).next_multiple_of(PAGE) as u64,
        }
    }

    /// Makes room for `count` items in all. A vector may have moved its items: [`Reserved::find_vector`].
    fn reserve(&mut self, count: usize) {
        if let Place::Mapped { memory, .. } = &self.place
            && count <= memory.len() / size_of::<T>()
        {
            return;
        }
        if let Place::Heap(vector) = &mut self.place
            && (count <= vector.capacity() || count * size_of::<T>() < MAPPED_FROM)
        {
            return crate::sizes::room(vector, count - self.count);
        }
        match (&mut self.place, mapped::<T>(self.most.max(count + count / 8))) {
            (_, Some(memory)) => self.stand_in(memory),
            // Where the system has not so many addresses, growth takes copies.
            (Place::Heap(vector), None) => crate::sizes::room(vector, count - self.count),
            (Place::Mapped { .. }, None) => match mapped::<T>(count) {
                Some(memory) => self.stand_in(memory),
                // As a vector does that finds no memory.
                None => handle_alloc_error(Layout::array::<T>(count).unwrap_or(Layout::new::<T>())),
            },
        }
    }

    /// Copies all items into a mapping, which has room for more.
    fn stand_in(&mut self, memory: MmapRaw) {
        let items = NonNull::new(memory.as_mut_ptr().cast::<T>()).unwrap_or(NonNull::dangling());
        // SAFETY: both ranges have room for `self.count` items, and the new one is nobody else's.
        unsafe { items.copy_from_nonoverlapping(self.items, self.count) };
        self.items = items;
        self.place = Place::Mapped { memory, touched: self.count };
    }
}

/// Addresses for so many items, if the system has them.
fn mapped<T>(count: usize) -> Option<MmapRaw> {
    let bytes = count.checked_mul(size_of::<T>())?;
    let memory = untouched(bytes).ok()?;
    // The system clears a large page in a hundred microseconds or more, for which a change would wait.
    #[cfg(all(target_os = "linux", not(miri)))]
    let _ = memory.advise(memmap2::Advice::NoHugePage);
    Some(MmapRaw::from(memory))
}

/// Memory of zeros, of which the system gives a page when it is first written.
pub(crate) fn untouched(bytes: usize) -> io::Result<MmapMut> {
    let mut wanted = MmapOptions::new();
    wanted.len(bytes);
    // Miri has no other pages than these.
    if !cfg!(miri) {
        wanted.no_reserve_swap();
    }
    wanted.map_anon()
}

impl<T: Copy> From<Vec<T>> for Reserved<T> {
    /// Of these items, and no room for more.
    fn from(vector: Vec<T>) -> Reserved<T> {
        let (items, most) = (NonNull::dangling(), vector.len());
        let mut made = Reserved { items, count: 0, most, place: Place::Heap(vector) };
        made.find_vector();
        made
    }
}

impl<T: Copy> Deref for Reserved<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `count` items have been written from `items` on, into memory that `place` keeps.
        unsafe { std::slice::from_raw_parts(self.items.as_ptr(), self.count) }
    }
}

impl<T: Copy> DerefMut for Reserved<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`, and nobody else has a reference.
        unsafe { std::slice::from_raw_parts_mut(self.items.as_ptr(), self.count) }
    }
}

impl<T: Copy> Clone for Reserved<T> {
    fn clone(&self) -> Reserved<T> {
        let mut copy = Reserved::new(self.most * size_of::<T>());
        copy.extend_from_slice(self);
        copy
    }
}

impl<T: Copy + PartialEq> PartialEq for Reserved<T> {
    fn eq(&self, other: &Reserved<T>) -> bool {
        **self == **other
    }
}

impl<T: Copy + Eq> Eq for Reserved<T> {}

impl<T: Copy + fmt::Debug> fmt::Debug for Reserved<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::{MAPPED_FROM, PAGE, Reserved};

    #[test]
    fn an_array_is_as_a_vector_and_stays_where_it_is_once_it_is_large() {
        let most = 4 * MAPPED_FROM;
        let (mut array, mut vector) = (Reserved::<u32>::new(4 * most), Vec::new());
        let mut stands = None;
        for number in 0..most as u32 {
            match number % 7 {
                0 => (
                    array.truncate(array.len() - array.len() / 500),
                    vector.truncate(vector.len() - vector.len() / 500),
                ),
                1 => (array.resize(array.len() + 300, number), vector.resize(vector.len() + 300, number)),
                2 => (array.extend_from_slice(&[number; 5]), vector.extend_from_slice(&[number; 5])),
                _ => (array.push(number), vector.push(number)),
            };
            if vector.len() + 400 > most {
                break;
            }
            if 4 * vector.len() > 2 * MAPPED_FROM {
                assert_eq!(*stands.get_or_insert(array.as_ptr()), array.as_ptr(), "it has moved");
            }
        }
        assert_eq!(array[..], vector[..]);
        assert!(stands.is_some() && array.taken() >= 4 * array.len() as u64);
        let copy = array.clone();
        assert!(copy == array && copy.as_ptr() != array.as_ptr());
    }

    #[test]
    fn an_array_grows_by_copies_where_the_system_has_no_addresses() {
        let mut array = Reserved::<u32>::new(usize::MAX);
        (0..4 * MAPPED_FROM as u32).for_each(|number| array.push(number));
        assert!(array.iter().copied().eq(0..4 * MAPPED_FROM as u32));
    }

    #[test]
    fn more_than_the_most_is_kept_all_the_same() {
        let mut array = Reserved::<u64>::new(MAPPED_FROM);
        array.resize(3 * MAPPED_FROM, 7);
        array.push(8);
        assert!(array[..3 * MAPPED_FROM].iter().all(|item| *item == 7));
        assert_eq!(array[3 * MAPPED_FROM], 8);
        assert!(array.taken().is_multiple_of(PAGE as u64));
        let small = Reserved::from(vec![1u8, 2]);
        assert_eq!((small.taken(), &small[..]), (2, &[1, 2][..]));
    }
}
