//! The memory that a persistent kernel of OpenCL uses, and its allocation.

#![allow(unsafe_code)]

use super::no_memory;
use super::serving::Serving;
use super::svm::Svm;
use crate::device::DeviceError;
use crate::number::Number;
use crate::ring::RingShape;
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::kernel::Kernel;
use opencl3::program::Program;
use std::sync::Arc;

/// The arguments of `serve_packets` that change, and where its tables begin.
pub(super) const LAUNCH: u32 = 8;
pub(super) const TABLES: u32 = 11;

/// What the kernel uses.
pub(super) struct Parts {
    pub(super) bytes: Svm<u8>,
    pub(super) columns: Svm<u32>,
    pub(super) verdicts: Svm<u32>,
    pub(super) records: Svm<u32>,
    pub(super) ring: Svm<u32>,
    pub(super) own: Svm<u32>,
    pub(super) tables: Vec<Svm<u32>>,
    pub(super) kernel: Kernel,
    pub(super) _program: Program,
    pub(super) queue: CommandQueue,
    pub(super) context: Arc<Context>,
}

/// Where memory comes from.
pub(super) struct Room<'a> {
    pub(super) context: &'a Arc<Context>,
    pub(super) name: &'a str,
}

impl Room<'_> {
    pub(super) fn take<T: Number>(&self, length: usize, what: &'static str) -> Result<Svm<T>, DeviceError> {
        Svm::new(self.context, length).map_err(|error| {
            // Drivers do not say why they give no shared memory.
            match no_memory(self.name, error, what, length * size_of::<T>()) {
                DeviceError::Failed { device, .. } => {
                    DeviceError::Memory { device, what, bytes: length * size_of::<T>() }
                }
                error => error,
            }
        })
    }
}

impl Parts {
    /// Sets all arguments but the number of the launch.
    pub(super) fn arguments(
        &self,
        shape: RingShape,
        packets: usize,
        serving: Serving,
    ) -> opencl3::Result<()> {
        let Parts { bytes, columns, verdicts, records, ring, own, .. } = self;
        let places =
            [bytes.place(), columns.place(), verdicts.place(), records.place(), ring.place(), own.place()];
        let tables = self.tables.iter().map(Svm::place);
        for (place, memory) in (0..).zip(places).chain((TABLES..).zip(tables)) {
            // SAFETY: the arguments are those of `serve_packets`, in order and type, and live until the
            // kernel has ended.
            unsafe { self.kernel.set_arg_svm_pointer(place, memory) }?;
        }
        let numbers = [shape.entries() as u32, packets as u32, 0, serving.slots, serving.asks];
        for (place, number) in (6..).zip(numbers) {
            // SAFETY: they are of this type there.
            unsafe { self.kernel.set_arg(place, &number) }?;
        }
        Ok(())
    }
}
