//! Handles of driver objects, which are destroyed when the handle is dropped: contexts, code, streams and
//! events.

#![allow(unsafe_code)]

use super::errors::failure;
use super::found::CudaFound;
use super::lost;
use crate::device::DeviceError;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use std::ffi::{CString, c_void};
use std::sync::Arc;
use std::time::Duration;

/// The device as the driver keeps it for this process.
pub(super) struct Context {
    ordinal: i32,
    device: sys::CUdevice,
    handle: sys::CUcontext,
}

// SAFETY: the driver lets every thread use a context, after making it its current one.
unsafe impl Send for Context {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for Context {}

impl Context {
    /// Opens a device.
    ///
    /// # Errors
    /// The driver does not, or the device was lost in this process.
    pub(super) fn new(device: &CudaFound) -> Result<Context, DeviceError> {
        lost::refuse(device)?;
        let ordinal = device.ordinal;
        let opened = result::device::get(ordinal).and_then(|device| {
            // SAFETY: the device is one that the driver has just named.
            unsafe { result::primary_ctx::retain(device) }.map(|handle| Context { ordinal, device, handle })
        });
        opened.map_err(failure(&device.full_name(), "open it"))
    }

    /// The device has failed or hangs: this process does not open it again.
    pub(super) fn lose(&self) {
        lost::lose(self.ordinal);
    }

    /// Makes it this thread's current one, which every call below needs.
    pub(super) fn enter(&self) -> Result<(), DriverError> {
        // SAFETY: the context is retained until this is dropped.
        unsafe { result::ctx::set_current(self.handle) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once, and is released once.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// A kernel, with the code that it is part of. Who drops it has waited for what runs.
pub(super) struct Function {
    module: sys::CUmodule,
    handle: sys::CUfunction,
    pub(super) context: Arc<Context>,
}

impl Function {
    /// The kernel of this name out of an image: code that the compiler made, or PTX with a zero behind it.
    pub(super) fn load(context: &Arc<Context>, image: &[u8], name: &str) -> Result<Function, DriverError> {
        let name = CString::new(name).map_err(|_| DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE))?;
        context.enter()?;
        // SAFETY: code says itself how long it is, and PTX ends with a zero.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) }?;
        let mut made = Function { module, handle: std::ptr::null_mut(), context: Arc::clone(context) };
        // SAFETY: the module has just been loaded, and is unloaded when `made` is dropped.
        made.handle = unsafe { result::module::get_function(module, name) }?;
        Ok(made)
    }

    /// How many blocks of so many threads one multiprocessor of the device runs at once.
    pub(super) fn blocks_at_once(&self, threads: u32) -> Result<u32, DriverError> {
        self.context.enter()?;
        // SAFETY: the kernel is loaded as long as this lives.
        let blocks =
            unsafe { result::occupancy::max_active_block_per_multiprocessor(self.handle, threads as i32, 0) };
        Ok(blocks?.max(0) as u32)
    }

    /// Puts so many blocks of threads on a stream; with `together` they are refused unless all can run at
    /// once.
    ///
    /// # Safety
    /// The arguments are the kernel's, in order and type, and where they say is what it works on as long as
    /// it runs.
    pub(super) unsafe fn launch(
        &self,
        blocks: u32,
        threads: u32,
        together: bool,
        stream: &Stream,
        arguments: &mut [*mut c_void],
    ) -> Result<(), DriverError> {
        let (grid, block, stream) = ((blocks, 1, 1), (threads, 1, 1), stream.handle);
        self.context.enter()?;
        // SAFETY: as the caller says.
        unsafe {
            match together {
                true => result::launch_cooperative_kernel(self.handle, grid, block, 0, stream, arguments),
                false => result::launch_kernel(self.handle, grid, block, 0, stream, arguments),
            }
        }
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        let _ = self.context.enter();
        // SAFETY: it was loaded once, and nothing uses it any more.
        let _ = unsafe { result::module::unload(self.module) };
    }
}

/// Commands that follow each other.
pub(super) struct Stream {
    handle: sys::CUstream,
    context: Arc<Context>,
}

impl Stream {
    /// One that waits for no other.
    pub(super) fn new(context: &Arc<Context>) -> Result<Stream, DriverError> {
        context.enter()?;
        let handle = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        Ok(Stream { handle, context: Arc::clone(context) })
    }

    /// What the driver calls it.
    pub(super) fn handle(&self) -> sys::CUstream {
        self.handle
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.context.enter();
        // SAFETY: it was made once and is given back once.
        let _ = unsafe { result::stream::destroy(self.handle) };
    }
}

/// A place between commands of a stream.
pub(super) struct Event {
    handle: sys::CUevent,
    context: Arc<Context>,
}

impl Event {
    /// One that also knows the time, or does not.
    pub(super) fn new(context: &Arc<Context>, timed: bool) -> Result<Event, DriverError> {
        context.enter()?;
        let flags = match timed {
            true => sys::CUevent_flags::CU_EVENT_DEFAULT,
            false => sys::CUevent_flags::CU_EVENT_DISABLE_TIMING,
        };
        Ok(Event { handle: result::event::create(flags)?, context: Arc::clone(context) })
    }

    /// Puts it behind what is on a stream.
    pub(super) fn record(&self, stream: &Stream) -> Result<(), DriverError> {
        self.context.enter()?;
        // SAFETY: both live as long as their owners.
        unsafe { result::event::record(self.handle, stream.handle) }
    }

    /// What is before it has gone wrong, or does not end.
    pub(super) fn lose(&self) {
        self.context.lose();
    }

    /// Whether everything before it is done. An error is one of the device, which is lost by it.
    pub(super) fn is_over(&self) -> Result<bool, DriverError> {
        self.context.enter()?;
        // SAFETY: the event lives as long as this.
        match unsafe { result::event::query(self.handle) } {
            Ok(()) => Ok(true),
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(error) => {
                self.lose();
                Err(error)
            }
        }
    }

    /// How long after another one it was. Both are over and know the time; this needs a driver for CUDA 12.8.
    pub(super) fn since(&self, earlier: &Event) -> Option<Duration> {
        self.context.enter().ok()?;
        // SAFETY: both events live as long as their owners.
        let milliseconds = unsafe { result::event::elapsed(earlier.handle, self.handle) }.ok()?;
        Some(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1000.0))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _ = self.context.enter();
        // SAFETY: it was made once and is given back once.
        let _ = unsafe { result::event::destroy(self.handle) };
    }
}
