//! Transmit: passes packets that leave to a [`Transmit`], in the order in which they leave, and dropped
//! packets with their reason to no port.

use crate::commit::Ledger;
use crate::pieces;
use exec::{Output, Outputs, Resized};
use ir::Program;
use packet::{Batch, NO_PORT, VerdictKind, VirtioHeader};
use ports::{Departure, Transmit};
use std::io;

/// Sends packets by their verdicts.
pub struct Transmitter<'a, S: Transmit + ?Sized = dyn Transmit> {
    sink: &'a mut S,
    /// The comment on a dropped packet, by reason.
    comments: Vec<String>,
    now: u64,
    /// Room for a fragment.
    piece: Vec<u8>,
}

impl<'a, S: Transmit + ?Sized> Transmitter<'a, S> {
    /// Sends to `sink`. Dropped packets go to port [`NO_PORT`] with the reason as comment, and punted ones
    /// are only counted.
    pub fn new(program: &Program, sink: &'a mut S) -> Transmitter<'a, S> {
        let comments = program
            .reasons
            .iter()
            .map(|reason| {
                if reason.help.is_empty() {
                    reason.name.clone()
                } else {
                    format!("{}: {}", reason.name, reason.help)
                }
            })
            .collect();
        Transmitter { sink, comments, now: 0, piece: Vec::new() }
    }

    /// The sink.
    pub fn sink(&mut self) -> &mut S {
        self.sink
    }

    /// Sends everything that leaves because of a batch, packet by packet in the order of arrival: what the
    /// program sent itself, then what the verdict says, then what handlers sent after it.
    ///
    /// # Errors
    /// What the sink says.
    pub fn transmit(
        &mut self,
        ledger: &Ledger,
        memory: &[u8],
        batch: &Batch,
        outputs: &Outputs,
    ) -> io::Result<()> {
        let mut left = outputs.packets.as_slice();
        let mut resized = outputs.resized.iter().peekable();
        for index in 0..batch.len {
            let time = batch.time[index].max(self.now);
            self.now = time;
            left = self.send_while(ledger, outputs, left, |output| {
                output.cause == index as u32 || output.cause == Output::BETWEEN && output.time < time
            })?;
            let change = resized.next_if(|change| change.packet as usize == index);
            self.send_verdict(ledger, memory, batch, index, change)?;
            left = self.send_while(ledger, outputs, left, |output| {
                output.cause == Output::BETWEEN && output.time <= time
            })?;
        }
        self.send_while(ledger, outputs, left, |_| true)?;
        self.sink.flush();
        Ok(())
    }

    /// Sends what a program sent while time passed without a packet.
    ///
    /// # Errors
    /// What the sink says.
    pub fn transmit_made(&mut self, ledger: &Ledger, outputs: &Outputs) -> io::Result<()> {
        self.send_while(ledger, outputs, &outputs.packets, |_| true)?;
        self.sink.flush();
        Ok(())
    }

    /// Sends the first of `left` as long as they fit, and returns the rest.
    fn send_while<'o>(
        &mut self,
        ledger: &Ledger,
        outputs: &Outputs,
        left: &'o [Output],
        fits: impl Fn(&Output) -> bool,
    ) -> io::Result<&'o [Output]> {
        let end = left.iter().position(|output| !fits(output)).unwrap_or(left.len());
        let (now, later) = left.split_at(end);
        for output in now {
            if (1..=ledger.ports()).contains(&output.port) {
                self.sink.transmit(&Departure {
                    port: output.port,
                    bytes: outputs.bytes_of(output),
                    wire: output.wire,
                    time: output.time,
                    virtio: VirtioHeader::NONE,
                    comment: None,
                })?;
            }
        }
        Ok(later)
    }

    fn send_verdict(
        &mut self,
        ledger: &Ledger,
        memory: &[u8],
        batch: &Batch,
        index: usize,
        change: Option<&Resized>,
    ) -> io::Result<()> {
        let verdict = batch.verdict[index];
        let bytes = batch.bytes(memory, index).unwrap_or_default();
        let pieces = change.and_then(|change| pieces::of(memory, batch, change));
        let (wire, time) = (batch.wire[index], batch.time[index]);
        let virtio = if pieces.is_some() { VirtioHeader::NONE } else { batch.virtio(index) };
        let whole = Departure { port: NO_PORT, bytes, wire, time, virtio, comment: None };
        if verdict.kind() == VerdictKind::Drop {
            let comment = self.comments.get(verdict.argument() as usize).map(String::as_str);
            return self.sink.transmit(&Departure { comment, ..whole });
        }
        let Transmitter { sink, piece, .. } = self;
        for port in ledger.reaches(verdict, batch.port[index]) {
            pieces::each(bytes, wire, pieces.as_ref(), piece, |bytes, wire| {
                sink.transmit(&Departure { port, bytes, wire, ..whole })
            })?;
        }
        Ok(())
    }
}
