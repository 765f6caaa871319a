//! The memory on which a persistent kernel of CUDA works, and the launch of the kernel.

#![allow(unsafe_code)]

use super::errors::no_memory;
use super::handles::{Context, Event, Function, Stream};
use super::memory::{Region, Table};
use crate::device::{DeviceError, Geometry, SlotMemory};
use crate::number::Number;
use crate::ring::RingShape;
use cudarc::driver::result::DriverError;
use std::ffi::c_void;
use std::sync::Arc;

/// All of it, given back in this order.
pub(super) struct Served {
    pub(super) bytes: Region<u8>,
    pub(super) columns: Region<u32>,
    pub(super) verdicts: Region<u32>,
    pub(super) records: Region<u32>,
    pub(super) ring: Region<u32>,
    pub(super) own: Table,
    pub(super) tables: Vec<Table>,
    /// Behind the last launch.
    pub(super) ended: Event,
    pub(super) stream: Stream,
    kernel: Function,
    pub(super) context: Arc<Context>,
}

impl Served {
    /// Asks for memory for all slots.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn new(
        name: &str,
        memory: SlotMemory,
        shape: RingShape,
        geometry: &Geometry,
        stream: Stream,
        ended: Event,
        kernel: Function,
    ) -> Result<Served, DeviceError> {
        let context = Arc::clone(&kernel.context);
        let at = Place { name, context: &context, stream: &stream, memory };
        let Geometry { packets, stride, columns, record_words, slots, .. } = *geometry;
        Ok(Served {
            bytes: at.region(slots * packets * stride, "packets")?,
            columns: at.region(slots * packets * columns, "columns")?,
            verdicts: at.region(slots * geometry.verdict_words(packets), "verdicts")?,
            records: at.region(slots * packets * record_words, "records")?,
            ring: at.region(shape.words(), "a ring")?,
            own: at.table(shape.republishing_words(), "a ring")?,
            tables: (0..geometry.tables).map(|_| at.table(1, "a table")).collect::<Result<_, _>>()?,
            ended,
            stream,
            kernel,
            context,
        })
    }

    /// Starts the kernel in so many warps; `numbers` are those of its arguments that say no place.
    ///
    /// # Safety
    /// The kernel is `serve_packets` for as many tables, and nothing of this goes before it has been seen to
    /// end.
    pub(super) unsafe fn launch(
        &self,
        blocks: u32,
        threads: u32,
        together: bool,
        mut numbers: [u32; 5],
    ) -> Result<(), DriverError> {
        let Served { bytes, columns, verdicts, records, ring, own, .. } = self;
        let mut places = vec![
            bytes.place(),
            columns.place(),
            verdicts.place(),
            records.place(),
            ring.place(),
            own.place(),
        ];
        places.extend(self.tables.iter().map(Table::place));
        let mut arguments: Vec<*mut c_void> =
            places.iter_mut().map(|place| (&raw mut *place).cast()).collect();
        arguments.splice(6..6, numbers.iter_mut().map(|number| (&raw mut *number).cast()));
        // SAFETY: the arguments are those of `serve_packets`, in order and type, and are copied by the call;
        // the regions hold every slot that an entry of the ring can name, and stay as the caller says.
        unsafe { self.kernel.launch(blocks, threads, together, &self.stream, &mut arguments) }
    }
}

/// Where memory is asked for.
struct Place<'a> {
    name: &'a str,
    context: &'a Arc<Context>,
    stream: &'a Stream,
    memory: SlotMemory,
}

impl Place<'_> {
    fn region<T: Number>(&self, length: usize, what: &'static str) -> Result<Region<T>, DeviceError> {
        Region::new(self.context, self.stream, length, self.memory)
            .map_err(|error| no_memory(self.name, error, what, length * size_of::<T>()))
    }

    fn table(&self, words: usize, what: &'static str) -> Result<Table, DeviceError> {
        let made = Table::new(self.context, words);
        made.map_err(|error| no_memory(self.name, error, what, size_of::<u32>() * words))
    }
}
