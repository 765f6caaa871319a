//! Gather: the host copies what the device needs of each packet from the frames of a batch into a slot's
//! bytes and columns.

use super::Offload;
use exec::kernel::{CopiedPart, KernelPlan, PacketColumn};
use gpu::Input;
use packet::batch::Batch;
use std::ops::Range;

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
    pub fn gather(&mut self, memory: &[u8], batch: &Batch, whole: Whole, input: &mut Input<'_>) {
        let Input { bytes, columns } = input;
        let plan = &self.kernel.plan;
        let own = bytes.chunks_exact_mut(plan.stride as usize).skip(whole.before);
        match plan.over {
            CopiedPart::InPlace => lay(plan, memory, batch, whole, bytes, columns),
            CopiedPart::Packed => {
                for (i, own) in (0..batch.len).zip(own) {
                    pack(&plan.ranges, frame(memory, batch, i), own);
                }
            }
            CopiedPart::Header | CopiedPart::Frame | CopiedPart::Page => {
                for (i, own) in (0..batch.len).zip(own) {
                    copy(frame(memory, batch, i), own);
                }
            }
        }
        self.gather_columns(batch, whole, columns);
    }

    fn gather_columns(&mut self, batch: &Batch, Whole { before, packets }: Whole, columns: &mut [u32]) {
        for (column, words) in self.kernel.plan.columns.iter().zip(columns.chunks_exact_mut(packets)) {
            let words = &mut words[before..before + batch.len];
            match column {
                PacketColumn::Captured => words.copy_from_slice(&batch.captured[..batch.len]),
                PacketColumn::Wire => words.copy_from_slice(&batch.wire[..batch.len]),
                PacketColumn::Port => {
                    words.iter_mut().zip(&batch.port).for_each(|(word, port)| *word = u32::from(*port));
                }
                PacketColumn::TimeLow | PacketColumn::TimeHigh => {
                    let shift = if *column == PacketColumn::TimeHigh { 32 } else { 0 };
                    // Of those that went over before and have not been committed the host does not know.
                    let mut now = self.native.state().now.max(self.latest);
                    for (word, time) in words.iter_mut().zip(&batch.time) {
                        now = now.max(*time);
                        *word = (now >> shift) as u32;
                    }
                }
                // Written with the frames.
                PacketColumn::Place => {}
            }
        }
        self.since += batch.len as u64;
        self.latest = batch.time[..batch.len].iter().fold(self.latest, |latest, time| latest.max(*time));
    }
}

/// The captured bytes of a packet.
fn frame<'m>(memory: &'m [u8], batch: &Batch, packet: usize) -> &'m [u8] {
    let frame = memory.get(batch.frame[packet] as usize..).unwrap_or_default();
    &frame[..frame.len().min(batch.captured[packet] as usize)]
}

/// Copies as much of a frame as there is room for.
fn copy(frame: &[u8], own: &mut [u8]) {
    match (own.as_chunks_mut::<64>(), frame.first_chunk::<64>()) {
        // A fixed length is copied in a few wide moves.
        (([first], []), Some(chunk)) => first.copy_from_slice(chunk),
        _ => {
            let length = frame.len().min(own.len());
            own[..length].copy_from_slice(&frame[..length]);
        }
    }
}

/// Copies ranges of a frame one behind the other; what the frame does not have is left out.
fn pack(ranges: &[Range<u32>], frame: &[u8], own: &mut [u8]) {
    let mut place = 0;
    for range in ranges {
        let (start, length) = (range.start as usize, range.len());
        let from = frame.get(start..).unwrap_or_default();
        // Most ranges are a field, and fields have few lengths.
        match (length, from.first_chunk::<4>(), from.first_chunk::<2>()) {
            (4, Some(field), _) => own[place..place + 4].copy_from_slice(field),
            (2, _, Some(field)) => own[place..place + 2].copy_from_slice(field),
            _ => {
                let there = from.len().min(length);
                own[place..place + there].copy_from_slice(&from[..there]);
            }
        }
        place += length;
    }
}

/// Lays whole frames down one behind the other, each from a multiple of 16 bytes on, and writes where each
/// begins.
fn lay(plan: &KernelPlan, memory: &[u8], batch: &Batch, whole: Whole, bytes: &mut [u8], columns: &mut [u32]) {
    let Whole { before, packets } = whole;
    let column = |wanted: PacketColumn| plan.columns.iter().position(|column| *column == wanted).unwrap_or(0);
    let (captured, place) = (column(PacketColumn::Captured) * packets, column(PacketColumn::Place) * packets);
    let units = |captured: u32| captured.min(plan.stride).div_ceil(16);
    // Behind the last frame of the batches before.
    let mut next = match before.checked_sub(1) {
        Some(last) => columns[place + last] + units(columns[captured + last]),
        None => 0,
    };
    for i in 0..batch.len {
        columns[place + before + i] = next;
        let length = units(batch.captured[i]);
        if let Some(own) = bytes.get_mut(next as usize * 16..(next + length) as usize * 16) {
            copy(frame(memory, batch, i), own);
        }
        next += length;
    }
}
