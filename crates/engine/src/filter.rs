//! Filters: which packets somebody wants to see, in expressions of the language or as pcap-filter spells them
//! ([docs/filters.md](../../../docs/filters.md)).
//!
//! A filter becomes a program of the language that is compiled and run over a batch, so its words mean what
//! they mean in programs. What became of a packet is not known before it has been run: then a first program
//! chooses those that may be wanted, and a second one decides.

#[cfg(feature = "language")]
mod read;
#[cfg(feature = "offline")]
pub mod selection;
#[cfg(test)]
mod tests;

#[cfg(feature = "language")]
pub use read::FilterError;

use exec::{Backend, Outputs};
use packet::region::SLACK;
use packet::{Batch, Verdict, VerdictKind};

/// What a packet is preceded by where its verdict is known: kind and argument of the verdict, the way out,
/// and its length.
const SEEN: usize = 16;

/// A packet with what became of it.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    /// Its bytes as they came in.
    pub bytes: &'a [u8],
    /// Its length on the wire then.
    pub wire: u32,
    /// The port it came in by.
    pub port: u16,
    /// Its verdict.
    pub verdict: Verdict,
    /// The name of the reason for it, where it was dropped or punted.
    pub reason: Option<&'a str>,
}

/// A filter, ready to run.
pub struct Filter {
    text: String,
    /// Over packets that have not been run.
    first: Box<dyn Backend>,
    /// Over packets with what became of them; none where that does not matter.
    second: Option<Box<dyn Backend>>,
    /// Names of the reasons that it knows, by number less one.
    reasons: Vec<String>,
    /// The number of the reason of what is certainly not chosen.
    refused: u16,
    outputs: Outputs,
    batch: Box<Batch>,
    memory: Vec<u8>,
}

impl Filter {
    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it asks what became of a packet.
    pub fn reads_outcome(&self) -> bool {
        self.second.is_some()
    }

    /// Puts the numbers of those packets of a batch into `chosen` that the filter may hold for. The packets
    /// have not been run, and have no verdicts afterwards either.
    pub fn choose(&mut self, memory: &mut [u8], batch: &mut Batch, chosen: &mut Vec<u16>) {
        chosen.clear();
        self.outputs.clear();
        self.first.run(memory, batch, &mut self.outputs);
        let refused = Verdict::drop(self.refused);
        for (index, verdict) in batch.verdicts_mut().iter_mut().enumerate() {
            // A packet whose headers cannot be read may be wanted for what became of it.
            let may = verdict.kind() == VerdictKind::Send || self.second.is_some() && *verdict != refused;
            if may {
                chosen.push(index as u16);
            }
            *verdict = Verdict::PENDING;
        }
    }

    /// Whether the filter holds for a packet that it [may hold](Filter::choose) for.
    pub fn holds(&mut self, packet: &Decided<'_>) -> bool {
        let Some(second) = &mut self.second else { return true };
        let number = packet.reason.and_then(|name| self.reasons.iter().position(|reason| reason == name));
        let out = if packet.verdict.kind() == VerdictKind::Send { packet.verdict.argument() } else { 0 };
        let mut seen = [0; SEEN];
        seen[0] = packet.verdict.kind() as u8;
        seen[2..4].copy_from_slice(&number.map_or(0, |index| index as u16 + 1).to_be_bytes());
        seen[4..6].copy_from_slice(&out.to_be_bytes());
        seen[8..12].copy_from_slice(&packet.wire.to_be_bytes());
        self.memory.clear();
        self.memory.extend_from_slice(&seen);
        self.memory.extend_from_slice(packet.bytes);
        let length = self.memory.len() as u32;
        self.memory.resize(self.memory.len() + SLACK, 0);
        self.batch.clear();
        self.batch.push(0, length, length.max(packet.wire.saturating_add(SEEN as u32)), packet.port, 0);
        self.outputs.clear();
        second.run(&mut self.memory, &mut self.batch, &mut self.outputs);
        self.batch.verdict[0].kind() == VerdictKind::Send
    }
}
