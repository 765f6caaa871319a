//! Memory of a CUDA device: regions that the processor reaches, too, and tables that only the device reads.

use super::Context;
use crate::device::Memory;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use std::ffi::c_void;
use std::sync::Arc;

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

/// Memory of the processor that the driver keeps in its place, and that the device reaches over the bus.
struct Pinned {
    host: *mut c_void,
    place: sys::CUdeviceptr,
    context: Arc<Context>,
}

impl Pinned {
    fn new(context: &Arc<Context>, bytes: usize) -> Result<Pinned, DriverError> {
        context.enter()?;
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: the content is written before anybody reads it.
        let host = unsafe { result::malloc_host(bytes.max(4), flags) }?;
        let mut pinned = Pinned { host, place: 0, context: Arc::clone(context) };
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

/// Where a region lies.
enum Home<T> {
    /// On the device, with a copy here.
    Copied(Owned, Vec<T>),
    /// Here, and the device reaches it.
    Mapped(Pinned),
}

/// Values that the processor and the device both reach, one after the other.
pub(super) struct Region<T> {
    home: Home<T>,
    length: usize,
}

impl<T: Copy + Default> Region<T> {
    /// So many values, each the default one. Who drops it has waited for what is under way.
    pub(super) fn new(
        context: &Arc<Context>,
        length: usize,
        memory: Memory,
    ) -> Result<Region<T>, DriverError> {
        let bytes = length * size_of::<T>();
        let home = match memory {
            Memory::Copied => Home::Copied(Owned::new(context, bytes)?, vec![T::default(); length]),
            Memory::Mapped => {
                let pinned = Pinned::new(context, bytes)?;
                // SAFETY: the memory has room for so many bytes, and zeros are values of the numbers that regions hold.
                unsafe { std::ptr::write_bytes(pinned.host.cast::<u8>(), 0, bytes) };
                Home::Mapped(pinned)
            }
        };
        Ok(Region { home, length })
    }

    /// Where the kernel finds it.
    pub(super) fn place(&self) -> sys::CUdeviceptr {
        match &self.home {
            Home::Copied(owned, _) => owned.place,
            Home::Mapped(pinned) => pinned.place,
        }
    }

    /// The values. Nothing is under way with them.
    pub(super) fn as_mut(&mut self) -> &mut [T] {
        match &mut self.home {
            Home::Copied(_, copy) => copy,
            // SAFETY: so many values were allocated and written there, at a page's beginning, and the region is borrowed.
            Home::Mapped(pinned) => unsafe {
                std::slice::from_raw_parts_mut(pinned.host.cast(), self.length)
            },
        }
    }

    /// Lets the first `length` values go over.
    pub(super) fn give(&mut self, stream: sys::CUstream, length: usize) -> Result<(), DriverError> {
        match &self.home {
            // SAFETY: the place has as much room as the copy, which stays as it is until the stream is done.
            Home::Copied(owned, copy) if length > 0 => unsafe {
                result::memcpy_htod_async(owned.place, &copy[..length], stream)
            },
            _ => Ok(()),
        }
    }

    /// Lets the first `length` values come back.
    pub(super) fn take(&mut self, stream: sys::CUstream, length: usize) -> Result<(), DriverError> {
        match &mut self.home {
            // SAFETY: as in `give`; nobody reads the copy before the stream is done.
            Home::Copied(owned, copy) if length > 0 => unsafe {
                result::memcpy_dtoh_async(&mut copy[..length], owned.place, stream)
            },
            _ => Ok(()),
        }
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

    /// Writes words from `first` on, and waits until they are there. Nothing is under way.
    pub(super) fn write(&mut self, first: usize, words: &[u32]) -> Result<(), DriverError> {
        if words.is_empty() {
            return Ok(());
        }
        if first + words.len() > self.words {
            return Err(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE));
        }
        // SAFETY: the words lie within the table.
        unsafe { result::memcpy_htod_sync(self.owned.place + 4 * first as u64, words) }
    }
}
