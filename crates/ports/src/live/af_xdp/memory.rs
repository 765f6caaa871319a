//! The memory of frames that all AF_XDP ports of a worker share with Linux (the UMEM), and the parts of it
//! that belong to each half.

#![allow(unsafe_code)]

use packet::region::SLACK;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// Pages for frames, zero at first.
pub(crate) struct Pages {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process and not to a thread; it is reached only through parts, which do
// not overlap.
unsafe impl Send for Pages {}
// SAFETY: nothing is read or written through a shared reference but by way of parts, each of which has one
// owner.
unsafe impl Sync for Pages {}

impl Pages {
    fn new(len: usize) -> io::Result<Pages> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        match NonNull::new(start.cast()) {
            Some(start) if start.as_ptr() as isize != -1 => Ok(Pages { start, len }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The address of the first byte, by which the kernel knows the memory.
    pub(crate) fn address(&self) -> usize {
        self.start.as_ptr().expose_provenance()
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Which bytes a slice is, counted from the first; `None` if it lies elsewhere.
    #[inline]
    pub(crate) fn place(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let start = bytes.as_ptr().addr().wrapping_sub(self.address());
        (start < self.len && bytes.len() <= self.len - start).then(|| start..start + bytes.len())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: it is exactly what `new` got, and no part of it is left. The kernel holds the pages as long
        // as it needs them.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// A range of the pages that nobody else in this process reaches.
pub(crate) struct Part {
    pages: Arc<Pages>,
    range: Range<usize>,
}

impl Part {
    /// New pages in parts of these lengths, one behind the other.
    ///
    /// # Errors
    /// There is not so much memory.
    pub(crate) fn of_new_pages(lengths: &[usize]) -> io::Result<(Arc<Pages>, Vec<Part>)> {
        let total: usize = lengths.iter().sum();
        let pages = Arc::new(Pages::new((total + SLACK).next_multiple_of(4096))?);
        let mut start = 0;
        let parts = lengths.iter().map(|length| {
            let range = start..start + length;
            start = range.end;
            Part { pages: pages.clone(), range }
        });
        let parts = parts.collect();
        Ok((pages, parts))
    }

    /// Where it begins in the pages.
    pub(crate) fn start(&self) -> usize {
        self.range.start
    }

    /// Where it ends there.
    pub(crate) fn end(&self) -> usize {
        self.range.end
    }

    /// Its bytes. Those of frames that the kernel has at this time may change by themselves and are not to be
    /// looked at.
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: inside the mapping, and parts are made once and side by side, so that nobody else in this
        // process has these bytes. The kernel writes only to frames that are its own, which no packet of a
        // batch lies in; every value of a byte is a valid one.
        unsafe {
            std::slice::from_raw_parts_mut(self.pages.start.as_ptr().add(self.range.start), self.range.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_side_by_side() {
        let (pages, mut parts) = Part::of_new_pages(&[128, 64]).expect("memory");
        let [first, second] = parts.as_mut_slice() else { panic!("two parts") };
        first.bytes().fill(1);
        second.bytes().fill(2);
        assert_eq!((first.bytes(), second.bytes()), (&mut [1; 128][..], &mut [2; 64][..]));
        assert_eq!((first.start(), second.start()), (0, 128));
        assert_eq!(pages.place(&second.bytes()[3..5]), Some(131..133));
        assert_eq!(pages.place(&[0; 4]), None);
        assert_eq!(pages.address() % 4096, 0);
        assert!(pages.len() >= 128 + 64 + SLACK);
    }
}
