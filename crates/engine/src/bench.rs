//! A test bench for programs: runs one packet at a time and shows its verdict, what left because of it, and
//! which events it raised.

use crate::commit::Ledger;
use crate::ordering::fragment_order;
use crate::pieces;
use exec::{Backend, BackendKind, LoadError, Outputs, load};
use ir::{FROM_HOST, Program};
use packet::{Batch, FragmentOrder, PortNumber, Verdict};
use std::convert::Infallible;

/// The outcome of a packet, or of time that passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketOutcome {
    /// The verdict; `None` for time that passed, and for a fragment that waits for the first of its packet.
    pub verdict: Option<Verdict>,
    /// What left, in order: by verdict, copy or as a made packet, with its port.
    pub left: Vec<(PortNumber, Vec<u8>)>,
    /// Events that were raised, in order, with their arguments.
    pub raised: Vec<(u32, Vec<u128>)>,
    /// Fragments that have waited and ran now, in order.
    pub waited: Vec<WaitedPacket>,
}

/// A fragment that has waited for the first of its packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitedPacket {
    /// The port it came in by.
    pub port: PortNumber,
    /// Its bytes as they came in.
    pub bytes: Vec<u8>,
    /// Its verdict.
    pub verdict: Verdict,
}

/// A program that runs single packets.
pub struct PacketBench<'a> {
    loaded: LoadedProgram<'a>,
    order: Option<Box<FragmentOrder>>,
}

/// A loaded program with its ledger.
struct LoadedProgram<'a> {
    program: &'a Program,
    backend: Box<dyn Backend>,
    ledger: Ledger,
    outputs: Outputs,
}

impl<'a> PacketBench<'a> {
    /// Loads the program for a gateway with `ports` ports.
    ///
    /// # Errors
    /// If the back end cannot load it.
    pub fn new(
        program: &'a Program,
        back_end: BackendKind,
        ports: u16,
        seed: u64,
    ) -> Result<PacketBench<'a>, LoadError> {
        Ok(PacketBench::with(program, load(program, back_end, ports, seed)?, ports))
    }

    /// Takes a back end that `program` was loaded into.
    pub fn with(program: &'a Program, backend: Box<dyn Backend>, ports: u16) -> PacketBench<'a> {
        let (ledger, outputs) = (Ledger::new(program, ports), Outputs::default());
        let loaded = LoadedProgram { program, backend, ledger, outputs };
        PacketBench { loaded, order: fragment_order(program, 0) }
    }

    /// Runs a packet that was captured whole and came in by `port` at `time`, in nanoseconds.
    pub fn packet(&mut self, port: PortNumber, bytes: &[u8], time: u64) -> PacketOutcome {
        self.packet_of(port, false, bytes, time)
    }

    /// As [`packet`](PacketBench::packet); with `from_host`, of the machine, for a program that decides about
    /// its packets.
    pub fn packet_of(&mut self, port: PortNumber, from_host: bool, bytes: &[u8], time: u64) -> PacketOutcome {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let mark = if from_host && self.loaded.program.manifest.judges_host { FROM_HOST } else { 0 };
        let mut batch = Batch::new();
        let mut memory = batch.hold_one(bytes, length, port | mark, time);
        let mut outcome = PacketOutcome::default();
        let PacketBench { loaded, order } = self;
        let Some(order) = order else {
            outcome.verdict = Some(loaded.single(&mut memory, &mut batch, &mut outcome));
            return outcome;
        };
        let Ok(()) = order.advance(time, |memory, batch| loaded.waited(memory, batch, &mut outcome));
        // Nothing is due now, so what runs first is the packet, unless it waits.
        let mut verdict = None;
        let Ok(()) = order.run(&mut memory, &mut batch, |memory, batch| match verdict {
            None => {
                verdict = Some(loaded.single(memory, batch, &mut outcome));
                Ok(())
            }
            Some(_) => loaded.waited(memory, batch, &mut outcome),
        });
        outcome.verdict = verdict;
        outcome
    }

    /// Lets time pass to `now`, in nanoseconds, without a packet.
    pub fn advance(&mut self, now: u64) -> PacketOutcome {
        let mut outcome = PacketOutcome::default();
        let PacketBench { loaded, order } = self;
        if let Some(order) = order {
            let Ok(()) = order.advance(now, |memory, batch| loaded.waited(memory, batch, &mut outcome));
        }
        loaded.outputs.clear();
        loaded.backend.advance(now, &mut loaded.outputs);
        loaded.ledger.commit_outputs(&loaded.outputs);
        loaded.add_outputs(&mut outcome);
        outcome
    }

    /// Runs what waits for the first fragment of its packet: no more packets come.
    pub fn finish(&mut self) -> PacketOutcome {
        let mut outcome = PacketOutcome::default();
        let PacketBench { loaded, order } = self;
        if let Some(order) = order {
            let Ok(()) = order.finish(|memory, batch| loaded.waited(memory, batch, &mut outcome));
        }
        outcome
    }

    /// The ports that a verdict on a packet from `arrival` reaches, in ascending order.
    pub fn reaches(&self, verdict: Verdict, arrival: PortNumber) -> Vec<PortNumber> {
        self.loaded.ledger.reaches(verdict, arrival).collect()
    }

    /// The program's state.
    pub fn backend(&self) -> &dyn Backend {
        self.loaded.backend.as_ref()
    }

    /// The program's back end, for changes as the control plane makes them.
    pub fn processor_mut(&mut self) -> &mut dyn Backend {
        self.loaded.backend.as_mut()
    }
}

impl LoadedProgram<'_> {
    /// Runs a batch of one packet and adds what came of it; its verdict.
    fn single(&mut self, memory: &mut [u8], batch: &mut Batch, outcome: &mut PacketOutcome) -> Verdict {
        let mark = if self.program.manifest.judges_host { FROM_HOST } else { 0 };
        let port = batch.port[0] & !mark;
        self.outputs.clear();
        self.backend.run(memory, batch, &mut self.outputs);
        batch.port[0] = port;
        self.ledger.commit(memory, batch, &self.outputs);
        let verdict = batch.verdict[0];
        self.add_outputs(outcome);
        let left = pieces::leaving(memory, batch, &self.outputs, 0);
        for reached in self.ledger.reaches(verdict, port) {
            outcome.left.extend(left.iter().map(|(bytes, _)| (reached, bytes.clone())));
        }
        verdict
    }

    /// Runs packets that have waited, one by one, and adds what came of them.
    fn waited(
        &mut self,
        memory: &mut [u8],
        batch: &mut Batch,
        outcome: &mut PacketOutcome,
    ) -> Result<(), Infallible> {
        let mark = if self.program.manifest.judges_host { FROM_HOST } else { 0 };
        for index in 0..batch.len {
            let bytes = batch.bytes(memory, index).unwrap_or_default().to_vec();
            let (wire, port, time) = (batch.wire[index], batch.port[index], batch.time[index]);
            let mut alone = Batch::new();
            let mut memory = alone.hold_one(&bytes, wire, port, time);
            let verdict = self.single(&mut memory, &mut alone, outcome);
            outcome.waited.push(WaitedPacket { port: port & !mark, bytes, verdict });
        }
        Ok(())
    }

    /// Adds what the program sent and raised itself.
    fn add_outputs(&self, outcome: &mut PacketOutcome) {
        let made = self.outputs.packets.iter();
        let made = made.filter(|output| (1..=self.ledger.ports()).contains(&output.port));
        outcome.left.extend(made.map(|output| (output.port, self.outputs.bytes_of(output).to_vec())));
        outcome.raised.extend(self.outputs.raised.iter().map(|raised| {
            let arguments =
                self.program.events.get(raised.event as usize).map_or(0, |event| event.params.len());
            let first = raised.first as usize;
            let end = (first + arguments).min(self.outputs.arguments.len());
            (raised.event, self.outputs.arguments[first.min(end)..end].to_vec())
        }));
    }
}
