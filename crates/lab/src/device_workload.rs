//! A workload of a device: a program with its tables full, packets in memory, and the interpreter's verdict
//! on each packet.
//!
//! Packets have numbers without end. Memory holds a limited number of different packets, which come again and
//! again. A program may decide otherwise when a packet comes again, so the interpreter judges every packet
//! twice.

use crate::measure::SEED;
use exec::kernel::KernelOptions;
use exec::{BackendKind, Outputs};
use ir::Program;
use packet::{BATCH, Batch, Frames, Verdict};

/// Ports of every program.
pub(crate) const PORTS: u16 = 4;
/// The time of packet 0, and the time between two packets, in nanoseconds, as packets carry them.
const EPOCH: u64 = 1_000_000_000;
const APART: u64 = 50;

/// Packets in memory, with the ports by which they come in.
#[derive(Clone)]
pub(crate) struct Packets {
    pub(crate) frames: Frames,
    ports: Vec<u16>,
}

impl Packets {
    /// All frames come in by port 1.
    pub(crate) fn by_port_1(frames: Frames) -> Packets {
        Packets { ports: vec![1; frames.len()], frames }
    }

    /// Each sender is always behind the same port: the last byte of its Ethernet address says which.
    pub(crate) fn by_sender(frames: Frames) -> Packets {
        let sender = |bytes: &[u8]| bytes.get(11).copied().unwrap_or_default();
        let ports = frames.iter().map(|frame| 1 + u16::from(sender(frame.bytes)) % PORTS).collect();
        Packets { frames, ports }
    }

    /// Puts packets from `first` on into a batch, at most `most` and only those that there are.
    #[inline]
    pub(crate) fn fill(&self, batch: &mut Batch, first: usize, most: usize) {
        batch.clear();
        let count = self.frames.fill(batch, first..first.saturating_add(most));
        batch.port[..count].copy_from_slice(&self.ports[first..first + count]);
    }
}

/// A program with its packets and the interpreter's verdicts.
pub(crate) struct DeviceWorkload {
    /// The name in reports.
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    /// Options of the program's kernel.
    pub(crate) options: KernelOptions,
    pub(crate) packets: Packets,
    /// Bytes as they are received, for programs that change them.
    pristine: Option<Vec<u8>>,
    /// The interpreter's verdicts when each packet comes first, and when it comes again.
    pub(crate) right: [Vec<Verdict>; 2],
}

impl DeviceWorkload {
    /// Lets the interpreter judge every packet.
    ///
    /// # Errors
    /// The program cannot be loaded.
    pub(crate) fn new(
        name: &'static str,
        program: Program,
        options: KernelOptions,
        packets: Packets,
    ) -> Result<DeviceWorkload, String> {
        let pristine = changes_packets(&program).then(|| packets.frames.memory().to_vec());
        let right = [Vec::new(), Vec::new()];
        let mut workload = DeviceWorkload { name, program, options, packets, pristine, right };
        workload.judge()?;
        Ok(workload)
    }

    fn judge(&mut self) -> Result<(), String> {
        let judge = exec::load(&self.program, BackendKind::Interpreter, PORTS, SEED);
        let mut judge = judge.map_err(|error| error.to_string())?;
        let (mut batch, mut outputs) = (Batch::new(), Outputs::default());
        let mut number = 0;
        for pass in 0..2 {
            while self.right[pass].len() < self.len() {
                self.fill(&mut batch, number, BATCH);
                outputs.clear();
                judge.run(self.memory(), &mut batch, &mut outputs);
                self.right[pass].extend_from_slice(batch.verdicts());
                number += batch.len as u64;
            }
        }
        Ok(())
    }

    /// How many different packets there are.
    pub(crate) fn len(&self) -> usize {
        self.packets.frames.len()
    }

    /// The memory that the frames lie in.
    pub(crate) fn memory(&mut self) -> &mut [u8] {
        self.packets.frames.memory_mut()
    }

    /// The time that packet `number` carries.
    pub(crate) fn time(number: u64) -> u64 {
        EPOCH + number * APART
    }

    /// Puts packets from `number` on into a batch, at most `most` and none beyond the last different one, as
    /// they are received.
    #[inline]
    pub(crate) fn fill(&mut self, batch: &mut Batch, number: u64, most: usize) {
        self.packets.fill(batch, (number % self.len() as u64) as usize, most);
        for (time, number) in batch.time[..batch.len].iter_mut().zip(number..) {
            *time = DeviceWorkload::time(number);
        }
        if let (Some(pristine), Some(last)) = (&self.pristine, batch.len.checked_sub(1)) {
            let bytes = batch.frame[0] as usize..batch.frame[last] as usize + batch.captured[last] as usize;
            self.packets.frames.memory_mut()[bytes.clone()].copy_from_slice(&pristine[bytes]);
        }
    }

    /// Which packet of some from `number` on, as many as there are verdicts and not beyond the last different
    /// one, has another verdict than the interpreter's.
    pub(crate) fn wrong(&self, number: u64, verdicts: &[Verdict]) -> Option<String> {
        let packets = self.len() as u64;
        let right = &self.right[usize::from(number >= packets)];
        let right = &right[(number % packets) as usize..][..verdicts.len()];
        let place = verdicts.iter().zip(right).position(|(found, right)| found != right)?;
        let (found, right) = (verdicts[place], right[place]);
        Some(format!("the verdict on packet {} is {found:?} and not {right:?}", number + place as u64))
    }
}

/// Whether a program writes to packets, so that it has to get copies.
fn changes_packets(program: &Program) -> bool {
    let changes = exec::kernel::Kernel::new(program, PORTS, &KernelOptions::default());
    // Where there is no kernel, nothing is known.
    changes.map_or(true, |kernel| kernel.plan.writes)
}
