//! Memory of a slot on an OpenCL device: a buffer of the kernel, and the memory by which the host fills and
//! reads it.

#![allow(unsafe_code)]

use super::study;
use crate::device::SlotMemory;
use crate::number::Number;
use crate::study::pages::Pages;
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::event::Event;
use opencl3::memory::{
    Buffer, CL_MAP_READ, CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION, CL_MEM_ALLOC_HOST_PTR,
    CL_MEM_READ_WRITE, CL_MEM_USE_HOST_PTR, ClMem,
};
use opencl3::types::{CL_BLOCKING, CL_NON_BLOCKING, cl_mem};
use std::ffi::c_void;
use std::ptr::null_mut;

/// Buffers are of a multiple of so many values: some drivers use memory in its place only then.
const WHOLE: usize = 64;

/// Which way values go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// To the device.
    Over,
    /// To the host.
    Back,
    /// To the device, and what it made of them to the host.
    Both,
}

/// Values that the host and the device both reach, one after the other.
pub(super) struct Region<T: Number> {
    // Goes before the memory that it may lie in.
    buffer: Buffer<T>,
    home: Home<T>,
    length: usize,
    way: Way,
}

/// Where the host finds them.
pub(super) enum Home<T: Number> {
    /// In memory of ours, and they are copied.
    Ours(Pages<T>),
    /// In memory of the driver, and they are copied.
    Drivers { mapped: *mut c_void, _staging: Buffer<T> },
    /// In the buffer while it is mapped, which is null while the device has it. It lies in memory of ours, or
    /// else of the driver.
    Buffer { mapped: *mut c_void, _pages: Option<Pages<T>> },
}

// SAFETY: mapped memory belongs to a buffer, which may be used from any thread, and only one at a time has
// the region.
unsafe impl<T: Number> Send for Region<T> {}

impl<T: Number> Region<T> {
    /// So many values, at least one, each zero.
    pub(super) fn new(
        context: &Context,
        queue: &CommandQueue,
        length: usize,
        way: Way,
        memory: SlotMemory,
    ) -> opencl3::Result<Region<T>> {
        let room = length.max(1).next_multiple_of(WHOLE);
        let (buffer, home) = match memory {
            SlotMemory::Mapped => {
                let buffer = make(context, CL_MEM_ALLOC_HOST_PTR, room)?;
                let mapped = map_all(queue, &buffer, room)?;
                (buffer, Home::Buffer { mapped, _pages: None })
            }
            SlotMemory::Study(memory) => study::home(context, queue, room, memory)?,
        };
        let mut region = Region { buffer, home, length, way };
        region.as_mut().fill(T::default());
        if !matches!(region.home, Home::Buffer { .. }) && length > 0 {
            region.write(queue, length, CL_BLOCKING)?;
        }
        Ok(region)
    }

    /// The buffer as an argument of a kernel.
    pub(super) fn argument(&self) -> cl_mem {
        self.buffer.get()
    }

    /// The values, while they are the host's; none otherwise.
    pub(super) fn as_mut(&mut self) -> &mut [T] {
        match &mut self.home {
            Home::Ours(pages) => &mut pages[..self.length],
            Home::Drivers { mapped, .. } | Home::Buffer { mapped, .. } if !mapped.is_null() => {
                // SAFETY: the driver has mapped at least so many values there, any bits are values, and the
                // region is borrowed.
                unsafe { std::slice::from_raw_parts_mut(mapped.cast(), self.length) }
            }
            _ => &mut [],
        }
    }

    /// Hands the first `length` values to the device, if they go over; gives what ends when it has them, if
    /// that is not at once.
    pub(super) fn give(&mut self, queue: &CommandQueue, length: usize) -> opencl3::Result<Option<Event>> {
        if let Home::Buffer { mapped, .. } = &mut self.home {
            let mapped = std::mem::replace(mapped, null_mut());
            if mapped.is_null() {
                return Ok(None);
            }
            // SAFETY: it is what mapping gave, and nobody refers to it, since `as_mut` borrows the region.
            return unsafe { queue.enqueue_unmap_mem_object(self.buffer.get(), mapped, &[]) }.map(Some);
        }
        if length == 0 || self.way == Way::Back {
            return Ok(None);
        }
        self.write(queue, length, CL_NON_BLOCKING).map(Some)
    }

    /// Copies the first `length` values into the buffer.
    fn write(&mut self, queue: &CommandQueue, length: usize, blocking: u32) -> opencl3::Result<Event> {
        let from: *const [T] = &raw const self.as_mut()[..length];
        // SAFETY: the values stay where they are until the slot is done, as nobody gets at them before, and
        // are not part of the buffer.
        unsafe { queue.enqueue_write_buffer(&mut self.buffer, blocking, 0, &*from, &[]) }
    }

    /// Asks for the memory back, with the first `length` values as the device left them, if they come back;
    /// the others mean nothing. The last thing to be waited for, if there is any.
    pub(super) fn take(&mut self, queue: &CommandQueue, length: usize) -> opencl3::Result<Option<Event>> {
        if let Home::Buffer { mapped, .. } = &mut self.home {
            // Where the device has memory of its own, the driver copies what the flags say, there or back.
            let flags = match self.way {
                Way::Over => CL_MAP_WRITE_INVALIDATE_REGION,
                Way::Back => CL_MAP_READ,
                Way::Both => CL_MAP_READ | CL_MAP_WRITE,
            };
            let (place, event) = map(queue, &self.buffer, self.length.max(1), flags, CL_NON_BLOCKING)?;
            *mapped = place;
            return Ok(Some(event));
        }
        if length == 0 || self.way == Way::Over {
            return Ok(None);
        }
        let to: *mut [T] = &raw mut self.as_mut()[..length];
        // SAFETY: as in `give`.
        unsafe { queue.enqueue_read_buffer(&self.buffer, CL_NON_BLOCKING, 0, &mut *to, &[]) }.map(Some)
    }
}

/// A buffer of so many values in memory of the driver.
pub(super) fn make<T>(context: &Context, flags: u64, room: usize) -> opencl3::Result<Buffer<T>> {
    // SAFETY: no host memory is handed over.
    unsafe { Buffer::create(context, CL_MEM_READ_WRITE | flags, room, null_mut()) }
}

/// A buffer that lies in these pages, and these as where the host finds its values.
pub(super) fn make_in<T: Number>(
    context: &Context,
    queue: &CommandQueue,
    pages: Pages<T>,
) -> opencl3::Result<(Buffer<T>, Home<T>)> {
    let (room, flags) = (pages.len(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR);
    // SAFETY: there are so many values in the pages, and the buffer goes before them: here, and in a region.
    let buffer = unsafe { Buffer::create(context, flags, room, pages.place()) }?;
    let mapped = map_all(queue, &buffer, room)?;
    Ok((buffer, Home::Buffer { mapped, _pages: Some(pages) }))
}

/// Where the host finds all values of a buffer, to read and to write.
pub(super) fn map_all<T>(
    queue: &CommandQueue,
    buffer: &Buffer<T>,
    room: usize,
) -> opencl3::Result<*mut c_void> {
    map(queue, buffer, room, CL_MAP_READ | CL_MAP_WRITE, CL_BLOCKING).map(|(mapped, _)| mapped)
}

/// Makes a buffer's first values the host's; unless it blocks, once the queue has come so far.
fn map<T>(
    queue: &CommandQueue,
    buffer: &Buffer<T>,
    length: usize,
    flags: u64,
    blocking: u32,
) -> opencl3::Result<(*mut c_void, Event)> {
    let mut mapped = null_mut();
    let bytes = length * size_of::<T>();
    // SAFETY: the buffer has so many bytes, and is not mapped.
    let event = unsafe { queue.enqueue_map_buffer(buffer, blocking, flags, 0, bytes, &mut mapped, &[]) }?;
    Ok((mapped, event))
}
