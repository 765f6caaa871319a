//! The packets of a capture in the order in which a program sees them.

use crate::failure::Failure;
use engine::ordering::fragment_order;
use ir::Program;
use packet::{Batch, FragmentOrder};
use ports::{CaptureSource, Receive};
use std::collections::{HashMap, VecDeque};

/// A packet to be followed.
pub(super) struct Subject {
    /// Its number in the capture.
    pub(super) number: Option<u64>,
    pub(super) bytes: Vec<u8>,
    pub(super) wire: u32,
    pub(super) port: u16,
    /// When it runs, in nanoseconds.
    pub(super) time: u64,
    /// How long it has waited for the first fragment of its packet, in nanoseconds.
    pub(super) waited: Option<u64>,
}

impl Subject {
    /// A batch of this packet alone, and its memory.
    pub(super) fn alone(&self) -> (Vec<u8>, Batch) {
        let mut batch = Batch::new();
        let memory = batch.hold_one(&self.bytes, self.wire, self.port, self.time);
        (memory, batch)
    }
}

/// The packets of a capture, later fragments behind their first one if the program asks for it.
pub(super) struct Sequence {
    source: CaptureSource,
    batch: Batch,
    fragments: Option<Fragments>,
    /// How many packets of the capture were received.
    seen: u64,
    /// What runs next.
    next: VecDeque<Subject>,
}

/// What waits for its first fragment. The order holds the bytes; what else is known of them is found again by
/// bytes and port, and packets that have both in common run in the order in which they came.
struct Fragments {
    order: Box<FragmentOrder>,
    waiting: HashMap<(u16, Vec<u8>), VecDeque<Arrival>>,
}

/// The number of a packet in the capture, and when it came, in nanoseconds.
struct Arrival {
    number: u64,
    time: u64,
}

impl Sequence {
    /// The packets of `source` as `program` sees them.
    pub(super) fn new(source: CaptureSource, program: &Program) -> Sequence {
        let fragments = fragment_order(program, 0).map(|order| Fragments { order, waiting: HashMap::new() });
        Sequence { source, batch: Batch::new(), fragments, seen: 0, next: VecDeque::new() }
    }

    /// How many packets of the capture were received so far.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// The next packet that runs; `None` behind the last one.
    pub(super) fn next(&mut self) -> Result<Option<Subject>, Failure> {
        while self.next.is_empty() {
            let Sequence { source, batch, fragments, seen, next } = self;
            let memory = source.receive(batch).map_err(|error| Failure::Finding(error.to_string()))?;
            if batch.is_empty() {
                if let Some(Fragments { order, waiting }) = fragments {
                    let Ok(()) = order.finish(|memory, batch| released(waiting, memory, batch, next, None));
                }
                break;
            }
            for index in 0..batch.len {
                *seen += 1;
                let bytes = batch.bytes(memory, index).unwrap_or_default().to_vec();
                let (wire, port, time) = (batch.wire[index], batch.port[index], batch.time[index]);
                let subject = Subject { number: Some(*seen), bytes, wire, port, time, waited: None };
                match fragments {
                    None => next.push_back(subject),
                    Some(fragments) => fragments.take(&subject, *seen, next),
                }
            }
        }
        Ok(self.next.pop_front())
    }
}

impl Fragments {
    /// Puts a packet that came, and what it lets run, into `next`.
    fn take(&mut self, subject: &Subject, number: u64, next: &mut VecDeque<Subject>) {
        let Fragments { order, waiting } = self;
        let same = waiting.entry((subject.port, subject.bytes.clone())).or_default();
        same.push_back(Arrival { number, time: subject.time });
        let (mut memory, mut batch) = subject.alone();
        let run = |memory: &mut [u8], batch: &mut Batch| released(waiting, memory, batch, next, Some(number));
        let Ok(()) = order.run(&mut memory, &mut batch, run);
    }
}

/// Puts the packets of a batch that run into `next`. `came` is the number of the one that came now.
fn released(
    waiting: &mut HashMap<(u16, Vec<u8>), VecDeque<Arrival>>,
    memory: &[u8],
    batch: &Batch,
    next: &mut VecDeque<Subject>,
    came: Option<u64>,
) -> Result<(), std::convert::Infallible> {
    for index in 0..batch.len {
        let (wire, port, time) = (batch.wire[index], batch.port[index], batch.time[index]);
        let key = (port, batch.bytes(memory, index).unwrap_or_default().to_vec());
        let arrival = waiting.get_mut(&key).and_then(VecDeque::pop_front);
        if waiting.get(&key).is_some_and(VecDeque::is_empty) {
            waiting.remove(&key);
        }
        let number = arrival.as_ref().map(|arrival| arrival.number);
        let waited = arrival.filter(|_| number != came).map(|arrival| time.saturating_sub(arrival.time));
        next.push_back(Subject { number, bytes: key.1, wire, port, time, waited });
    }
    Ok(())
}
