//! A whole program over the simulated device: the scheduler makes warps of its packets, the device runs them
//! in its own time and finishes them in any order, and in order of arrival they are committed to the
//! program's tables, frames and verdicts.
//!
//! The loop is that of [`simulate`](super::simulate), so times are those of a run without packets; what is
//! added is that every warp is a slot of a [`Device`], and that the interpreter says what should have come of
//! it.

use super::device::Simulated;
use super::hardware::Hardware;
use super::simulate::{Load, Outcome, Runner, simulate_on};
use super::work::Work;
use crate::device_run::DeviceRun;
use crate::device_workload::{PORTS, Packets};
use crate::measure::SEED;
use exec::kernel::{KernelOptions, Twin};
use exec::{Backend, BackendKind, DeviceTally, Outputs};
use gpu::{Device, DeviceError, SlotOutput};
use ir::Program;
use offload::hermes::{HermesSettings, SettingsError, Warp};
use offload::{ImageChanges, Offload, Whole, geometry};
use packet::{BATCH, Batch, Frames, Verdict};
use std::collections::BTreeMap;

/// Why a program was not run to its end, or not as it should have been.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WholeError {
    /// Settings that cannot be.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The device does not do what it is asked for.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The program has no kernel, or cannot be loaded.
    #[error("{0}")]
    Program(String),
    /// The interpreter says something else.
    #[error("packet {packet}: {found:?} and not {right:?}, which the interpreter says")]
    Verdict {
        /// Its number, from 0.
        packet: usize,
        /// What came of it.
        found: Verdict,
        /// What should have.
        right: Verdict,
    },
    /// The same of what is not a verdict.
    #[error("{0} are not those that the interpreter leaves")]
    Left(&'static str),
}

/// What came of a run whose every verdict, frame and packet sent is the interpreter's.
#[derive(Debug)]
pub(crate) struct Judged {
    /// Its times.
    pub(crate) outcome: Outcome,
    /// Who ran the packets in the end.
    pub(crate) tally: DeviceTally,
}

/// Runs all frames through a program, at these times and costs, and lets the interpreter judge them.
///
/// # Errors
/// It cannot be run, or what comes of it is something else than the interpreter's.
pub(crate) fn judged(
    program: &Program,
    options: &KernelOptions,
    frames: &Frames,
    hardware: &Hardware,
    settings: &HermesSettings,
    arrivals: &[u64],
    works: &[Work],
) -> Result<Judged, WholeError> {
    let mut run = prepared(program, options, frames, hardware, settings, works)?;
    let outcome = simulate_on(&mut run, settings, Load::new(arrivals, works))?;
    judge(program, Packets::by_sender(frames.clone()), &run)?;
    Ok(Judged { outcome, tally: run.on_device.kernel.tally() })
}

/// The program on the device, before its first packet.
fn prepared(
    program: &Program,
    options: &KernelOptions,
    frames: &Frames,
    hardware: &Hardware,
    settings: &HermesSettings,
    works: &[Work],
) -> Result<Run, WholeError> {
    let offload = Offload::new(program, PORTS, SEED, options);
    let offload = offload.map_err(|error| WholeError::Program(error.to_string()))?;
    let twin = Twin::new(offload.kernel(), program, PORTS);
    let slots = usize::from(settings.cores) * usize::from(settings.warps);
    let geometry = geometry(offload.kernel(), settings.warp.into(), slots);
    let device = Simulated::new(twin, geometry, hardware, settings.warps, works.to_vec())?;
    let mut on_device = DeviceRun { kernel: offload, device: Some(Box::new(device)) };
    on_device.upload()?;
    Ok(Run {
        on_device,
        packets: Packets::by_sender(frames.clone()),
        batch: Box::default(),
        running: vec![None; slots],
        done: BTreeMap::new(),
        inside: 0,
        verdicts: Vec::with_capacity(frames.len()),
        outputs: Outputs::default(),
    })
}

/// The program on its way.
struct Run {
    on_device: DeviceRun<Offload, Simulated>,
    packets: Packets,
    batch: Box<Batch>,
    /// The warp in each slot.
    running: Vec<Option<Warp>>,
    /// What finished warps left, by the number of their first packet: their slots are filled again before it
    /// is their turn.
    done: BTreeMap<u64, Left>,
    /// Packets that the device has had and that are not committed.
    inside: usize,
    verdicts: Vec<Verdict>,
    outputs: Outputs,
}

/// What a warp left in its slot.
struct Left {
    bytes: Vec<u8>,
    verdicts: Vec<u32>,
    records: Vec<u32>,
}

impl Runner for Run {
    type Error = WholeError;

    fn start(&mut self, now: u64, warp: Warp, _work: Work) -> Result<(), WholeError> {
        self.on_device.device()?.until(now);
        // Commit compares tables with what went over last, which has to be what packets that are under way
        // have seen.
        if self.inside == 0 && self.on_device.kernel.changes() != ImageChanges::None {
            self.on_device.renew()?;
        }
        let slot = self.on_device.device()?.slot(warp.core, warp.slot);
        let packets = usize::from(warp.packets);
        self.packets.fill(&mut self.batch, warp.first as usize, packets);
        self.on_device.fill(slot, packets)?.push(self.packets.frames.memory(), &self.batch);
        self.on_device.submit(slot, packets)?;
        self.running[slot] = Some(warp);
        self.inside += packets;
        Ok(())
    }

    fn next(&self) -> Option<u64> {
        self.on_device.device.as_deref().and_then(Simulated::next)
    }

    fn advance(&mut self) -> Result<Option<Warp>, WholeError> {
        let Some(slot) = self.on_device.device()?.step() else { return Ok(None) };
        let output = self.on_device.device()?.output(slot)?;
        let left = Left {
            bytes: output.bytes.to_vec(),
            verdicts: output.verdicts.to_vec(),
            records: output.records.to_vec(),
        };
        let warp = self.running[slot].take();
        if let Some(warp) = warp {
            self.done.insert(warp.first, left);
        }
        Ok(warp)
    }

    fn commit(&mut self, first: u64, packets: u64) -> Result<(), WholeError> {
        let packets = packets as usize;
        let Some(left) = self.done.remove(&first) else { return Err(WholeError::Left("warps")) };
        self.packets.fill(&mut self.batch, first as usize, packets);
        let output = SlotOutput { bytes: &left.bytes, verdicts: &left.verdicts, records: &left.records };
        let whole = Whole { before: 0, packets };
        let memory = self.packets.frames.memory_mut();
        self.on_device.kernel.commit(memory, &mut self.batch, whole, &output, &mut self.outputs);
        self.verdicts.extend_from_slice(self.batch.verdicts());
        self.inside -= packets;
        Ok(())
    }

    fn busy(&self) -> u64 {
        self.on_device.device.as_deref().map_or(0, Simulated::busy)
    }
}

/// Whether the interpreter leaves the same.
fn judge(program: &Program, mut packets: Packets, run: &Run) -> Result<(), WholeError> {
    let judge = exec::load(program, BackendKind::Interpreter, PORTS, SEED);
    let mut judge: Box<dyn Backend> = judge.map_err(|error| WholeError::Program(error.to_string()))?;
    let (mut batch, mut outputs) = (Batch::new(), Outputs::default());
    let mut right = Vec::with_capacity(packets.frames.len());
    for first in (0..packets.frames.len()).step_by(BATCH) {
        packets.fill(&mut batch, first, BATCH);
        judge.run(packets.frames.memory_mut(), &mut batch, &mut outputs);
        right.extend_from_slice(batch.verdicts());
    }
    let both = run.verdicts.iter().zip(&right);
    if let Some((packet, (found, right))) = both.enumerate().find(|(_, (found, right))| found != right) {
        return Err(WholeError::Verdict { packet, found: *found, right: *right });
    }
    // What caused them is counted within batches, which are others.
    let sent = |outputs: &Outputs| {
        let packets = outputs.packets.iter();
        packets.map(|one| (one.port, one.wire, one.time, outputs.bytes_of(one).to_vec())).collect::<Vec<_>>()
    };
    let raised = |outputs: &Outputs| {
        outputs.raised.iter().map(|one| (one.event, one.time, one.delay)).collect::<Vec<_>>()
    };
    for (same, what) in [
        (run.verdicts.len() == right.len(), "verdicts"),
        (run.packets.frames.memory() == packets.frames.memory(), "frames"),
        (sent(&run.outputs) == sent(&outputs), "packets that were sent"),
        (raised(&run.outputs) == raised(&outputs), "events"),
        (run.on_device.kernel.as_backend().control().tables() == judge.tables(), "tables"),
    ] {
        if !same {
            return Err(WholeError::Left(what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
