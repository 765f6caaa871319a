//! The part of a CUDA device that only studies use ([`crate::study`]): memory that is copied, memory of ours
//! that is registered with the driver, graphs, and round trips of words.

#![allow(unsafe_code)]

mod pings;

use super::handles::{Context, Stream};
use super::memory::{Home, Pinned};
use crate::number::Number;
use crate::study::StudyMemory;
use crate::study::pages::Pages;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
pub use pings::pings;
use std::sync::Arc;

/// Memory of ours.
pub(super) enum Ours<T: Number> {
    /// The driver knows nothing of it.
    Pageable(Pages<T>),
    /// The driver knows it.
    Registered(Registered<T>),
}

impl<T: Number> Ours<T> {
    pub(super) fn pages(&self) -> &Pages<T> {
        match self {
            Ours::Pageable(pages) => pages,
            Ours::Registered(registered) => &registered.pages,
        }
    }

    pub(super) fn pages_mut(&mut self) -> &mut Pages<T> {
        match self {
            Ours::Pageable(pages) => pages,
            Ours::Registered(registered) => &mut registered.pages,
        }
    }
}

/// Pages that the driver was told of, so that it keeps them in their place and the device reaches them over
/// the bus.
pub(super) struct Registered<T: Number> {
    pages: Pages<T>,
    place: sys::CUdeviceptr,
    context: Arc<Context>,
}

impl<T: Number> Registered<T> {
    fn new(context: &Arc<Context>, pages: Pages<T>) -> Result<Registered<T>, DriverError> {
        context.enter()?;
        let flags = sys::CU_MEMHOSTREGISTER_PORTABLE | sys::CU_MEMHOSTREGISTER_DEVICEMAP;
        // SAFETY: the pages are whole, are told of once, and stay until this is dropped.
        unsafe { sys::cuMemHostRegister_v2(pages.place(), pages.bytes(), flags) }.result()?;
        let mut registered = Registered { pages, place: 0, context: Arc::clone(context) };
        let host = registered.pages.place();
        // SAFETY: the memory was told of with the flag that lets the device reach it.
        unsafe { sys::cuMemHostGetDevicePointer_v2(&mut registered.place, host, 0) }.result()?;
        Ok(registered)
    }
}

impl<T: Number> Drop for Registered<T> {
    fn drop(&mut self) {
        let _ = self.context.enter();
        // SAFETY: it was told of once; who owns a region has waited for what is under way.
        let _ = unsafe { sys::cuMemHostUnregister(self.pages.place()) };
    }
}

/// Where the host finds so many values, each zero, and where the kernel finds them if they are not copied.
pub(super) fn home<T: Number>(
    context: &Arc<Context>,
    length: usize,
    memory: StudyMemory,
) -> Result<(Home<T>, Option<sys::CUdeviceptr>), DriverError> {
    let pages = || Pages::new(length).ok_or(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY));
    Ok(match memory {
        StudyMemory::Pageable => (Home::Ours(Ours::Pageable(pages()?)), None),
        StudyMemory::Pinned => (Home::Drivers(Pinned::new(context, length * size_of::<T>())?), None),
        StudyMemory::Registered => {
            let registered = Registered::new(context, pages()?)?;
            let reached = registered.place;
            (Home::Ours(Ours::Registered(registered)), Some(reached))
        }
    })
}

/// Commands of a stream that were recorded and go to the driver as one.
pub(super) struct Graph {
    handle: sys::CUgraphExec,
    context: Arc<Context>,
}

impl Graph {
    /// Records what `commands` puts on a stream, instead of doing it. Needs a driver for CUDA 11.4.
    pub(super) fn record(
        context: &Arc<Context>,
        stream: &Stream,
        commands: impl FnOnce() -> Result<(), DriverError>,
    ) -> Result<Graph, DriverError> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives as long as its owner; recording ends below, whatever comes between.
        unsafe { result::stream::begin_capture(stream.handle(), mode) }?;
        let put = commands();
        // SAFETY: as above.
        let graph = unsafe { result::stream::end_capture(stream.handle()) }?;
        // SAFETY: the graph has just been made, and is given back once. What can be launched does not need
        // it.
        let handle = unsafe {
            let made = put.and_then(|()| result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0)));
            let _ = result::graph::destroy(graph);
            made
        }?;
        Ok(Graph { handle, context: Arc::clone(context) })
    }

    /// Puts it on a stream. What its commands work on is still there.
    pub(super) fn launch(&self, stream: &Stream) -> Result<(), DriverError> {
        // SAFETY: graph and stream live as long as their owners.
        unsafe { result::graph::launch(self.handle, stream.handle()) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let _ = self.context.enter();
        // SAFETY: it was made once and is given back once.
        let _ = unsafe { result::graph::exec_destroy(self.handle) };
    }
}
