//! Zeroed memory that begins at a page boundary, which a driver can pin.

#![allow(unsafe_code)]

use crate::number::Number;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Bytes of a page on every processor that has a device beside it; where pages are larger, a driver may
/// refuse the memory.
const PAGE: usize = 4096;

/// So many numbers.
pub(crate) struct Pages<T: Number> {
    place: NonNull<T>,
    length: usize,
    layout: Layout,
}

// SAFETY: nobody else knows the memory, and numbers can be sent.
unsafe impl<T: Number> Send for Pages<T> {}

impl<T: Number> Pages<T> {
    /// So many numbers, at least one; none if there is no memory.
    pub(crate) fn new(length: usize) -> Option<Pages<T>> {
        let length = length.max(1);
        let bytes = length.checked_mul(size_of::<T>())?.checked_next_multiple_of(PAGE)?;
        let layout = Layout::from_size_align(bytes, PAGE).ok()?;
        // SAFETY: the layout is at least a page.
        let place = NonNull::new(unsafe { alloc_zeroed(layout) })?.cast();
        Some(Pages { place, length, layout })
    }

    /// Where it begins.
    pub(crate) fn place(&self) -> *mut c_void {
        self.place.as_ptr().cast()
    }

    /// Its bytes, in whole pages.
    pub(crate) fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl<T: Number> Deref for Pages<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: so many numbers were allocated there, zero at first, and live as long as this.
        unsafe { std::slice::from_raw_parts(self.place.as_ptr(), self.length) }
    }
}

impl<T: Number> DerefMut for Pages<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and it is borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.place.as_ptr(), self.length) }
    }
}

impl<T: Number> Drop for Pages<T> {
    fn drop(&mut self) {
        // SAFETY: it was allocated so, and is given back once.
        unsafe { dealloc(self.place.as_ptr().cast(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_whole_pages_of_zeros_or_none() {
        let mut pages = Pages::<u32>::new(1025).expect("there is memory");
        assert_eq!((pages.len(), pages.bytes(), pages.place() as usize % PAGE), (1025, 2 * PAGE, 0));
        assert!(pages.iter().all(|word| *word == 0));
        pages[1024] = 7;
        assert_eq!(pages.last(), Some(&7));
        assert_eq!(Pages::<u8>::new(0).expect("there is memory").len(), 1);
        assert!(Pages::<u32>::new(usize::MAX).is_none() && Pages::<u8>::new(usize::MAX / 4).is_none());
    }
}
