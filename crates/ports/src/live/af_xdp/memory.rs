//! The memory of frames that all AF_XDP ports of a worker share with Linux (the UMEM), and the parts of it
//! that belong to each half.

#![allow(unsafe_code)]

use memmap2::{MmapOptions, MmapRaw};
use packet::region::SLACK;
use std::io;
use std::ops::Range;
#[cfg(feature = "open")]
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Pages for frames. They are reached only through parts, which do not overlap. The kernel holds them as long
/// as it needs them.
pub(crate) struct Pages(MmapRaw);

impl Pages {
    #[cfg(feature = "attach")]
    fn new(len: usize) -> io::Result<Pages> {
        Ok(Pages(MmapOptions::new().len(len).populate().map_anon()?.into()))
    }

    /// What a file in memory holds.
    pub(crate) fn of(file: &OwnedFd, len: usize) -> io::Result<Pages> {
        Ok(Pages(MmapOptions::new().len(len).populate().map_raw(file)?))
    }

    /// The address of the first byte, by which the kernel knows the memory.
    pub(crate) fn address(&self) -> usize {
        self.0.as_ptr().expose_provenance()
    }

    /// How many bytes there are.
    #[cfg(feature = "open")]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Which bytes a slice is, counted from the first; `None` if it lies elsewhere.
    #[inline]
    pub(crate) fn place(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let start = bytes.as_ptr().addr().wrapping_sub(self.address());
        let len = self.0.len();
        (start < len && bytes.len() <= len - start).then(|| start..start + bytes.len())
    }
}

/// Bytes of pages that hold parts of these lengths.
pub(crate) fn bytes_of_pages(lengths: &[usize]) -> usize {
    (lengths.iter().sum::<usize>() + SLACK).next_multiple_of(4096)
}

/// A file in memory of so many bytes, which nobody can make shorter or longer.
///
/// # Errors
/// There is not so much memory.
#[cfg(feature = "open")]
pub(crate) fn file_of(bytes: usize) -> io::Result<OwnedFd> {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
    let file = memfd_create("frames", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&file, bytes as u64)?;
    fcntl_add_seals(file.as_fd(), SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
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
    #[cfg(feature = "attach")]
    pub(crate) fn of_new_pages(lengths: &[usize]) -> io::Result<(Arc<Pages>, Vec<Part>)> {
        Ok(Part::of_pages(Pages::new(bytes_of_pages(lengths))?, lengths))
    }

    /// The pages that a file in memory holds, in such parts.
    ///
    /// # Errors
    /// It has another length, or Linux refuses.
    pub(crate) fn of_file(file: &OwnedFd, lengths: &[usize]) -> io::Result<(Arc<Pages>, Vec<Part>)> {
        let bytes = bytes_of_pages(lengths);
        if rustix::fs::fstat(file)?.st_size as u64 != bytes as u64 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the memory of frames has another length",
            ));
        }
        Ok(Part::of_pages(Pages::of(file, bytes)?, lengths))
    }

    fn of_pages(pages: Pages, lengths: &[usize]) -> (Arc<Pages>, Vec<Part>) {
        let (pages, mut start) = (Arc::new(pages), 0);
        let parts = lengths.iter().map(|length| {
            let range = start..start + length;
            start = range.end;
            Part { pages: pages.clone(), range }
        });
        let parts = parts.collect();
        (pages, parts)
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
        let (pages, range) = (&self.pages.0, &self.range);
        // Another process that maps them, be it because it opened the port, took packets before or is to take
        // them later, does not touch them meanwhile. The kernel writes only to frames that are its own, which
        // no packet of a batch lies in.
        // SAFETY: inside the mapping, and parts are made once and side by side, so that nobody else in this
        // process has these bytes, each value of which is a valid one.
        unsafe { std::slice::from_raw_parts_mut(pages.as_mut_ptr().add(range.start), range.len()) }
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
