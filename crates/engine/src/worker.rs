//! The packet loop: receive → run → commit → transmit, one batch after the other; or receive → hold → run →, where many are begun with together.

use crate::commit::Ledger;
use crate::filter::selection::Selection;
use crate::hold::{Hold, Run, Supply};
use crate::transmit::Transmitter;
use exec::{Outputs, Processor};
use packet::Batch;
use ports::{Receive, ReceiveError};
use std::convert::Infallible;
use std::io;
use std::time::{Duration, Instant};

/// What counts as time in the packet loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Everything, receiving included: packets that lie in memory.
    Whole,
    /// All but receiving: packets that are read, and perhaps decompressed, while the program runs.
    WithoutReceive,
}

/// Why a run ended before its source did.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No further packets can be received; those before were processed.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// A packet could not be sent.
    #[error("cannot write a packet that leaves: {0}")]
    Transmit(#[from] io::Error),
}

/// How a run ended. Every packet that was received has been processed and is in the ledger.
#[derive(Debug)]
pub struct Finished {
    /// Time in the packet loop, by the [`Clock`] that was asked for.
    pub packets: Duration,
    /// What ended it, if not the end of the source.
    pub error: Option<RunError>,
}

/// One processor with its accounting and, where packets are to be kept, its transmitter.
pub struct Worker<'a> {
    /// The program.
    pub processor: &'a mut dyn Processor,
    /// The accounting.
    pub ledger: &'a mut Ledger,
    /// Where packets leave; nowhere if they are only to be counted.
    pub transmitter: Option<&'a mut Transmitter<'a>>,
    /// Which packets are kept; all without it.
    pub selection: Option<&'a mut Selection>,
    /// Where packets wait until many can be run together; without it each batch is run as it comes.
    pub hold: Option<&'a mut Hold>,
}

impl Worker<'_> {
    /// Runs every packet of the source, until it ends or something goes wrong.
    pub fn run(&mut self, source: &mut dyn Receive, clock: Clock) -> Finished {
        let mut batch = Batch::new();
        let mut inside = Duration::ZERO;
        let begin = Instant::now();
        let mut hold = self.hold.take();
        let mut pass = Pass { worker: self, outputs: Outputs::default(), failed: None };
        let error = loop {
            let (memory, end) = match source.receive(&mut batch) {
                Ok(_) if batch.is_empty() => (None, None),
                Ok(memory) => (Some(memory), None),
                Err(error) => (None, Some(error.into())),
            };
            let received = Instant::now();
            let Ok(()) = match (memory, &mut hold) {
                (Some(memory), None) => pass.batch(memory, &mut batch),
                (Some(memory), Some(hold)) => hold.take(&mut pass, memory, &batch),
                (None, _) => Ok(()),
            };
            let failed = pass.failed.take();
            let is_over = failed.is_some() || end.is_some() || batch.is_empty();
            if let (true, Some(hold)) = (is_over, &mut hold) {
                let Ok(_) = hold.run(&mut pass, Supply::Ended);
            }
            inside += received.elapsed();
            if is_over {
                break failed.or(pass.failed.take()).or(end);
            }
        };
        self.hold = hold;
        let packets = match clock {
            Clock::Whole => begin.elapsed(),
            Clock::WithoutReceive => inside,
        };
        Finished { packets, error }
    }
}

/// A worker in its loop.
struct Pass<'a, 'b> {
    worker: &'a mut Worker<'b>,
    outputs: Outputs,
    /// Why a packet could not be sent. From then on packets are only counted.
    failed: Option<RunError>,
}

impl Run for Pass<'_, '_> {
    type Error = Infallible;

    fn processor(&mut self) -> &mut dyn Processor {
        self.worker.processor
    }

    fn batch(&mut self, memory: &mut [u8], batch: &mut Batch) -> Result<(), Infallible> {
        let Pass { worker: Worker { processor, ledger, transmitter, selection, .. }, outputs, failed } = self;
        outputs.clear();
        if let Some(selection) = selection {
            selection.before(memory, batch);
        }
        processor.run(memory, batch, outputs);
        ledger.commit(memory, batch, outputs);
        if let Some(selection) = selection {
            selection.keep(memory, batch, outputs);
        }
        if let Some(sending) = transmitter
            && let Err(error) = sending.transmit(ledger, memory, batch, outputs)
        {
            *failed = Some(error.into());
            *transmitter = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Imbalance, Report, Setting, Times};
    use exec::{BackEnd, Output, Room};
    use gpu::placement::Policy;
    use lang::ir::{Program, Reason};
    use packet::{PortNumber, Verdict};
    use ports::{Departure, Transmit};

    /// Gives every packet the verdict its first byte stands for, and sends a copy of each to port 2.
    struct ByFirstByte;

    impl Processor for ByFirstByte {
        fn run(&mut self, memory: &mut [u8], batch: &mut Batch, outputs: &mut Outputs) {
            for index in 0..batch.len {
                let bytes = batch.bytes(memory, index).unwrap_or_default();
                let start = outputs.bytes.len() as u32;
                outputs.bytes.extend_from_slice(bytes);
                outputs.packets.push(Output {
                    port: 2,
                    cause: index as u32,
                    start,
                    captured: bytes.len() as u32,
                    wire: batch.wire[index],
                    time: batch.time[index],
                    copy: true,
                });
                batch.verdict[index] = match bytes.first() {
                    Some(0) => Verdict::FLOOD,
                    Some(1) => Verdict::send(1),
                    Some(2) => Verdict::send(77),
                    Some(3) => Verdict::punt(1),
                    Some(4) => Verdict::drop(1),
                    _ => Verdict::PENDING,
                };
            }
        }

        fn back_end(&self) -> BackEnd {
            BackEnd::Interpreter
        }
    }

    /// Batches of three packets with the first bytes given, then perhaps damage.
    struct Packets {
        memory: Vec<u8>,
        left: Vec<u8>,
        damaged: bool,
    }

    impl Packets {
        fn new(first_bytes: &[u8], damaged: bool) -> Packets {
            let left = first_bytes.iter().rev().copied().collect();
            Packets { memory: vec![0; 3 * 64], left, damaged }
        }
    }

    impl Receive for Packets {
        fn receive<'a>(&'a mut self, batch: &mut Batch) -> Result<&'a mut [u8], ReceiveError> {
            batch.clear();
            while batch.len < 3
                && let Some(first) = self.left.pop()
            {
                let frame = 64 * batch.len;
                self.memory[frame] = first;
                batch.push(frame as u64, 60, 100, 1, self.left.len() as u64);
            }
            if batch.is_empty() && self.damaged {
                let (name, link) = ("x.pcap".to_owned(), packet::LinkType::RAW);
                return Err(ReceiveError::LinkType { name, packet: 1, interface: 0, link });
            }
            Ok(&mut self.memory)
        }
    }

    /// Remembers port, first byte and comment of everything.
    #[derive(Default)]
    struct Remember(Vec<(PortNumber, u8, Option<String>)>);

    impl Transmit for Remember {
        fn transmit(&mut self, packet: &Departure<'_>) -> io::Result<()> {
            assert_eq!((packet.bytes.len(), packet.wire), (60, 100));
            self.0.push((packet.port, packet.bytes[0], packet.comment.map(str::to_owned)));
            Ok(())
        }
    }

    fn program() -> Program {
        let reason = |name: &str| Reason { name: name.into(), help: "because".into() };
        Program { reasons: vec![reason("no_such_port"), reason("not_web")], ..Program::default() }
    }

    fn run(first_bytes: &[u8], damaged: bool) -> (Result<Report, Imbalance>, Remember, Finished) {
        let program = program();
        let mut ledger = Ledger::new(&program, 3);
        let mut sink = Remember::default();
        let mut transmitter = Transmitter::new(&program, &mut sink as &mut dyn Transmit);
        let mut worker = Worker {
            processor: &mut ByFirstByte,
            ledger: &mut ledger,
            transmitter: Some(&mut transmitter),
            selection: None,
            hold: None,
        };
        let finished = worker.run(&mut Packets::new(first_bytes, damaged), Clock::WithoutReceive);
        let times = Times { packets: finished.packets, ..Times::default() };
        (Report::new(Setting::default(), &program, &ledger, &ByFirstByte, times), sink, finished)
    }

    #[test]
    fn what_is_received_is_forwarded_dropped_or_punted() {
        let (report, sink, finished) = run(&[0, 1, 2, 3, 4, 4, 0], false);
        let report = report.expect("balanced");
        assert!(finished.error.is_none());
        assert_eq!(report.received, crate::Volume { packets: 7, bytes: 700 });
        assert_eq!(report.forwarded, crate::Volume { packets: 3, bytes: 300 });
        assert_eq!((report.dropped(), report.punted()), (3, 1));
        assert_eq!(report.drops["not_web"], 2);
        assert_eq!(report.drops["no_such_port"], 1);
        assert_eq!(report.transmitted.packets, 2 + 1 + 2 + 7, "floods to two ports, a send, copies");
        assert_eq!(report.copies, 7);
        let sent = sink.0.iter().filter(|(port, ..)| *port != packet::NO_PORT).count() as u64;
        assert_eq!(sent, report.transmitted.packets, "what was counted is what was sent");
        assert!(sink.0.contains(&(0, 2, Some("no_such_port: because".into()))));
    }

    #[test]
    fn everything_before_the_damage_is_processed() {
        let (report, _, finished) = run(&[0, 1, 4, 4], true);
        assert_eq!(report.expect("balanced").received.packets, 4);
        assert!(matches!(finished.error, Some(RunError::Receive(_))));
    }

    /// Takes so many packets and no more.
    struct Narrow(usize);

    impl Transmit for Narrow {
        fn transmit(&mut self, _packet: &Departure<'_>) -> io::Result<()> {
            self.0 = self.0.checked_sub(1).ok_or_else(|| io::Error::other("no space left"))?;
            Ok(())
        }
    }

    #[test]
    fn packets_that_are_held_when_sending_fails_are_in_the_account() {
        let program = program();
        let mut ledger = Ledger::new(&program, 3);
        let mut sink = Narrow(2);
        let mut transmitter = Transmitter::new(&program, &mut sink as &mut dyn Transmit);
        let policy = Policy::FixedBatch { packets: 4 };
        let mut hold = Hold::over(Room { packets: 4, convoys: 2 }, 1, policy.into(), Instant::now());
        let mut worker = Worker {
            processor: &mut ByFirstByte,
            ledger: &mut ledger,
            transmitter: Some(&mut transmitter),
            selection: None,
            hold: Some(&mut hold),
        };
        let finished = worker.run(&mut Packets::new(&[1; 30], false), Clock::Whole);
        assert!(matches!(finished.error, Some(RunError::Transmit(_))), "{:?}", finished.error);
        assert!(hold.is_empty());
        // Three come at a time, and four are run together: the sixth was there when the fourth could not be sent.
        assert_eq!(ledger.received().packets, 6);
    }

    #[test]
    fn a_packet_without_a_verdict_is_an_imbalance() {
        let (report, ..) = run(&[0, 9], false);
        assert_eq!(report, Err(Imbalance::NoVerdict { packets: 1, back_end: "interpreter" }));
    }
}
