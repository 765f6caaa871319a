//! A test bench for programs: runs one packet at a time and shows its verdict, what left because of it, and
//! which events it raised.

use crate::commit::Ledger;
use crate::pieces;
use exec::{Backend, BackendKind, LoadError, Outputs, load};
use lang::ir::{FROM_HOST, Program};
use packet::{Batch, PortNumber, Verdict};

/// The outcome of a packet, or of time that passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketOutcome {
    /// The verdict; `None` for time that passed.
    pub verdict: Option<Verdict>,
    /// What left, in order: by verdict, copy or as a made packet, with its port.
    pub left: Vec<(PortNumber, Vec<u8>)>,
    /// Events that were raised, in order, with their arguments.
    pub raised: Vec<(u32, Vec<u128>)>,
}

/// A program that runs single packets.
pub struct PacketBench<'a> {
    program: &'a Program,
    backend: Box<dyn Backend>,
    ledger: Ledger,
    outputs: Outputs,
    batch: Batch,
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
        PacketBench {
            program,
            backend,
            ledger: Ledger::new(program, ports),
            outputs: Outputs::default(),
            batch: Batch::new(),
        }
    }

    /// Runs a packet that was captured whole and came in by `port` at `time`, in nanoseconds.
    pub fn packet(&mut self, port: PortNumber, bytes: &[u8], time: u64) -> PacketOutcome {
        self.packet_of(port, false, bytes, time)
    }

    /// As [`packet`](PacketBench::packet); with `from_host`, of the machine, for a program that decides about
    /// its packets.
    pub fn packet_of(&mut self, port: PortNumber, from_host: bool, bytes: &[u8], time: u64) -> PacketOutcome {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let mark = if from_host && self.program.manifest.judges_host { FROM_HOST } else { 0 };
        let mut memory = self.batch.hold_one(bytes, length, port | mark, time);
        self.outputs.clear();
        self.backend.run(&mut memory, &mut self.batch, &mut self.outputs);
        self.batch.port[0] = port;
        self.ledger.commit(&memory, &mut self.batch, &self.outputs);
        let verdict = self.batch.verdict[0];
        let mut outcome = self.outcome();
        outcome.verdict = Some(verdict);
        let left = pieces::leaving(&memory, &self.batch, &self.outputs, 0);
        for reached in self.ledger.reaches(verdict, port) {
            outcome.left.extend(left.iter().map(|(bytes, _)| (reached, bytes.clone())));
        }
        outcome
    }

    /// Lets time pass to `now`, in nanoseconds, without a packet.
    pub fn advance(&mut self, now: u64) -> PacketOutcome {
        self.outputs.clear();
        self.backend.advance(now, &mut self.outputs);
        self.ledger.commit_outputs(&self.outputs);
        self.outcome()
    }

    /// The ports that a verdict on a packet from `arrival` reaches, in ascending order.
    pub fn reaches(&self, verdict: Verdict, arrival: PortNumber) -> Vec<PortNumber> {
        self.ledger.reaches(verdict, arrival).collect()
    }

    /// The program's state.
    pub fn backend(&self) -> &dyn Backend {
        self.backend.as_ref()
    }

    /// The program's back end, for changes as the control plane makes them.
    pub fn processor_mut(&mut self) -> &mut dyn Backend {
        self.backend.as_mut()
    }

    /// What the program sent and raised itself.
    fn outcome(&self) -> PacketOutcome {
        let left = self
            .outputs
            .packets
            .iter()
            .filter(|output| (1..=self.ledger.ports()).contains(&output.port))
            .map(|output| (output.port, self.outputs.bytes_of(output).to_vec()))
            .collect();
        let raised = self
            .outputs
            .raised
            .iter()
            .map(|raised| {
                let arguments =
                    self.program.events.get(raised.event as usize).map_or(0, |event| event.params.len());
                let first = raised.first as usize;
                let end = (first + arguments).min(self.outputs.arguments.len());
                (raised.event, self.outputs.arguments[first.min(end)..end].to_vec())
            })
            .collect();
        PacketOutcome { verdict: None, left, raised }
    }
}
