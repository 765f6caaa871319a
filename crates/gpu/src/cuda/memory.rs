//! Memory of a CUDA device: regions that the host also accesses, and tables that only the device reads.

use super::handles::{Context, Stream};
use super::study::{self, Ours};
use crate::device::SlotMemory;
use crate::number::Number;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// Memory on the device.
struct Owned {
    place: sys::CUdeviceptr,
    context: Arc<Context>,
}

impl Owned {
    /// So many bytes, at least 4, of any content.
    fn new(context: &Arc<Context>, bytes: usize) -> Result<Owned, DriverError> {
        context.enter()?;
        // SAFETY: the content means nothing until it is written.
        let place = unsafe { result::malloc_sync(bytes.max(4)) }?;
        Ok(Owned { place, context: Arc::clone(context) })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.context.enter();
        // SAFETY: it was made once; who owns a region or a table has waited for what is under way.
        let _ = unsafe { result::free_sync(self.place) };
    }
}

/// Memory of the host that the driver keeps in its place, and that the device reaches over the bus.
pub(super) struct Pinned {
    host: *mut c_void,
    place: sys::CUdeviceptr,
    context: Arc<Context>,
}

impl Pinned {
    /// So many bytes, each zero.
    pub(super) fn new(context: &Arc<Context>, bytes: usize) -> Result<Pinned, DriverError> {
        context.enter()?;
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: the content is written before anybody reads it.
        let host = unsafe { result::malloc_host(bytes.max(4), flags) }?;
        let mut pinned = Pinned { host, place: 0, context: Arc::clone(context) };
        // SAFETY: the memory has room for so many bytes.
        unsafe { std::ptr::write_bytes(pinned.host.cast::<u8>(), 0, bytes) };
        // SAFETY: the memory was asked for with the flag that lets the device reach it.
        unsafe { sys::cuMemHostGetDevicePointer_v2(&mut pinned.place, host, 0) }.result()?;
        Ok(pinned)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = self.context.enter();
        // SAFETY: as for `Owned`.
        let _ = unsafe { result::free_host(self.host) };
    }
}

/// Where the host finds a region.
pub(super) enum Home<T: Number> {
    /// In memory that the driver gave.
    Drivers(Pinned),
    /// In memory of ours.
    Ours(Ours<T>),
}

/// Values that the host and the device both reach, one after the other.
pub(super) struct Region<T: Number> {
    home: Home<T>,
    /// Memory on the device, where the values are copied there and back.
    copy: Option<Owned>,
    /// Where the kernel finds them.
    place: sys::CUdeviceptr,
    length: usize,
}

impl<T: Number> Region<T> {
    /// So many values, each zero, for use on a stream. Who drops it has waited for what is under way.
    pub(super) fn new(
        context: &Arc<Context>,
        stream: &Stream,
        length: usize,
        memory: SlotMemory,
    ) -> Result<Region<T>, DriverError> {
        let bytes = length * size_of::<T>();
        let (home, reached) = match memory {
            SlotMemory::Mapped => {
                let pinned = Pinned::new(context, bytes)?;
                let reached = pinned.place;
                (Home::Drivers(pinned), Some(reached))
            }
            SlotMemory::Study(memory) => study::home(context, length, memory)?,
        };
        let (place, copy) = match reached {
            Some(place) => (place, None),
            None => {
                let owned = Owned::new(context, bytes)?;
                // SAFETY: the memory has room for so many bytes, and is first used on the same stream.
                unsafe { result::memset_d8_async(owned.place, 0, bytes, stream.handle()) }?;
                (owned.place, Some(owned))
            }
        };
        Ok(Region { home, copy, place, length })
    }

    /// Where the kernel finds it.
    pub(super) fn place(&self) -> sys::CUdeviceptr {
        self.place
    }

    /// The values. Nothing is under way with them.
    pub(super) fn as_mut(&mut self) -> &mut [T] {
        match &mut self.home {
            Home::Ours(ours) => &mut ours.pages_mut()[..self.length],
            // SAFETY: so many values were allocated and written there, at a page's beginning, and the region
            // is borrowed.
            Home::Drivers(pinned) => unsafe {
                std::slice::from_raw_parts_mut(pinned.host.cast(), self.length)
            },
        }
    }

    /// Where the host finds the values.
    fn host(&self) -> *mut c_void {
        match &self.home {
            Home::Drivers(pinned) => pinned.host,
            Home::Ours(ours) => ours.pages().place(),
        }
    }

    /// `length` values from `first` on.
    ///
    /// # Panics
    /// There are not so many.
    ///
    /// # Safety
    /// Until the borrow ends no kernel writes them, nor reads any that is written to.
    pub(super) unsafe fn part(&mut self, first: usize, length: usize) -> &mut [T] {
        assert!(first.checked_add(length).is_some_and(|end| end <= self.length), "{first} and {length} more");
        // SAFETY: so many values were allocated and written there, the region is borrowed, and no kernel is
        // in the way, as the caller says.
        unsafe { std::slice::from_raw_parts_mut(self.host().cast::<T>().add(first), length) }
    }

    /// Where the host finds the first `length` values, and where they are on the device, if they are copied.
    fn ends(&self, length: usize) -> Option<(*mut c_void, sys::CUdeviceptr, usize)> {
        let owned = self.copy.as_ref().filter(|_| length > 0)?;
        Some((self.host(), owned.place, length.min(self.length) * size_of::<T>()))
    }

    /// Lets the first `length` values go over.
    pub(super) fn give(&self, stream: &Stream, length: usize) -> Result<(), DriverError> {
        let Some((host, place, bytes)) = self.ends(length) else { return Ok(()) };
        // SAFETY: both have so much room, and nobody changes the values before the stream is done.
        unsafe { sys::cuMemcpyHtoDAsync_v2(place, host, bytes, stream.handle()) }.result()
    }

    /// Lets the first `length` values come back.
    pub(super) fn take(&self, stream: &Stream, length: usize) -> Result<(), DriverError> {
        let Some((host, place, bytes)) = self.ends(length) else { return Ok(()) };
        // SAFETY: both have so much room, and nobody reads the values before the stream is done.
        unsafe { sys::cuMemcpyDtoHAsync_v2(host, place, bytes, stream.handle()) }.result()
    }
}

impl Region<u32> {
    /// The values where the host and the device read and write them at any time. They are not copied, and
    /// nobody asks for a part.
    pub(super) fn shared(&self) -> &[AtomicU32] {
        // SAFETY: so many words were allocated and written there, at a page's beginning, and nobody reaches
        // them otherwise.
        unsafe { std::slice::from_raw_parts(self.host().cast(), self.length) }
    }
}

/// A table's words on the device.
pub(super) struct Table {
    owned: Owned,
    words: usize,
}

impl Table {
    /// So many words, at least one, of any content.
    pub(super) fn new(context: &Arc<Context>, words: usize) -> Result<Table, DriverError> {
        let words = words.max(1);
        Ok(Table { owned: Owned::new(context, 4 * words)?, words })
    }

    /// How many words it has.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Where the kernel finds it.
    pub(super) fn place(&self) -> sys::CUdeviceptr {
        self.owned.place
    }

    /// Lets words go over, from `first` on.
    ///
    /// # Safety
    /// They stay until the stream is done.
    pub(super) unsafe fn begin_to_write(
        &self,
        first: usize,
        words: &[u32],
        stream: &Stream,
    ) -> Result<(), DriverError> {
        if first.checked_add(words.len()).is_none_or(|end| end > self.words) {
            return Err(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE));
        }
        self.owned.context.enter()?;
        // A call that claims to wait may return before the device has the words, which a kernel on another
        // stream would then not see.
        // SAFETY: the words lie within the table, and stay as the caller says.
        unsafe { result::memcpy_htod_async(self.owned.place + 4 * first as u64, words, stream.handle()) }
    }
}
