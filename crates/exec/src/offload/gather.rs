//! Gather: what goes over for a batch, packet by packet, from the memory of frames into a slot's bytes and columns.

use super::Offload;
use crate::kernel::{Bytes, Column};
use packet::batch::Batch;

/// Which part of what goes over together a batch is.
#[derive(Clone, Copy, Debug)]
pub struct Whole {
    /// Packets before it.
    pub before: usize,
    /// Packets in all.
    pub packets: usize,
}

impl Offload {
    /// Writes what goes over for a batch, behind `before` others of `packets` together.
    pub fn gather(
        &mut self,
        memory: &[u8],
        batch: &Batch,
        whole: Whole,
        bytes: &mut [u8],
        columns: &mut [u32],
    ) {
        let plan = &self.kernel.plan;
        let stride = plan.bytes.stride() as usize;
        let Whole { before, packets } = whole;
        for (i, bytes) in (0..batch.len).zip(bytes.chunks_exact_mut(stride).skip(before)) {
            let start = batch.frame[i] as usize;
            let captured = batch.captured[i] as usize;
            let frame = memory.get(start..).unwrap_or_default();
            let frame = &frame[..captured.min(frame.len())];
            match (plan.bytes, frame.first_chunk::<64>()) {
                // A fixed length is copied in a few wide moves.
                (Bytes::All(64), Some(first)) => bytes.copy_from_slice(first),
                _ => {
                    let length = frame.len().min(stride);
                    bytes[..length].copy_from_slice(&frame[..length]);
                }
            }
        }
        for (column, words) in plan.columns.iter().zip(columns.chunks_exact_mut(packets)) {
            let words = &mut words[before..before + batch.len];
            match column {
                Column::Captured => words.copy_from_slice(&batch.captured[..batch.len]),
                Column::Wire => words.copy_from_slice(&batch.wire[..batch.len]),
                Column::Port => {
                    words.iter_mut().zip(&batch.port).for_each(|(word, port)| *word = u32::from(*port));
                }
                Column::TimeLow | Column::TimeHigh => {
                    let shift = if *column == Column::TimeHigh { 32 } else { 0 };
                    // Of those that went over before and have not been committed the processor does not know.
                    let mut now = self.native.state.now.max(self.latest);
                    for (word, time) in words.iter_mut().zip(&batch.time) {
                        now = now.max(*time);
                        *word = (now >> shift) as u32;
                    }
                }
            }
        }
        self.latest = batch.time[..batch.len].iter().fold(self.latest, |latest, time| latest.max(*time));
    }
}
