//! Packets that come by a UDP socket one at a time and leave by another, as in the original's iterations 1
//! to 3.
//!
//! A thread plays the original's packet generator: it sends the packets in order, as fast as they are taken,
//! and never so far ahead that the kernel drops one. A batch is received whole, gets its verdicts, and what
//! they let pass is sent to a socket that nobody reads. In the original the generator read it.

use super::device::Loaded;
use super::functions::{FunctionData, PACKETS};
use super::naive::Naive;
use super::original::Of;
use super::spans::{Delays, Spans, delays};
use super::ways::{Contender, Way};
use super::{Iteration, LabClock};
use crate::device_run::DeviceSource;
use crate::device_workload::Packets;
use gpu::Parts;
use packet::{BATCH, Batch, Verdict, VerdictKind};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Packets that may be on their way to us, which the kernel's usual buffer of a socket holds.
const AHEAD: u64 = 128;
/// How long a packet is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Packets that one call is to have at least.
const STRETCH: usize = 1024;

/// The iterations that had packets by sockets.
const ITERATIONS: [Iteration; 3] = [Iteration::Naive, Iteration::Headers, Iteration::Mapped];

/// One core and the first three iterations, with packets by sockets.
pub(super) fn contenders<'a>(
    data: &FunctionData,
    naive: &Arc<Naive>,
    loaded: &Loaded,
    device: &dyn DeviceSource,
    clock: &'a dyn LabClock,
    batch: usize,
) -> Vec<Contender<'a>> {
    let sockets = |processing| -> Result<Box<dyn Way + 'a>, String> {
        let sockets = Sockets::open(data, processing);
        Ok(Box::new(sockets.map_err(|error| format!("there are no sockets: {error}"))?))
    };
    let core = sockets(Processing::Core(Arc::clone(naive)));
    let mut contenders = vec![Contender::new("sockets: one core", Some(Of::Host(1)), core)];
    for (place, iteration) in ITERATIONS.into_iter().enumerate() {
        let way = loaded.on(device, clock, iteration.setting(), batch);
        let way = way.and_then(|way| sockets(Processing::Device(way)));
        let name = format!("sockets: {}", iteration.name());
        contenders.push(Contender::new(name, Some(Of::Device(place + 1)), way));
    }
    contenders
}

/// What gives a batch its verdicts when it has come.
enum Processing<'a> {
    /// The original's algorithms, packet by packet.
    Core(Arc<Naive>),
    /// A device.
    Device(Box<dyn Way + 'a>),
}

struct Sockets<'a> {
    processing: Processing<'a>,
    /// Where packets are received, each at its own place.
    packets: Packets,
    batch: Box<Batch>,
    incoming: UdpSocket,
    outgoing: UdpSocket,
    /// What leaves goes here; it must live.
    _sink: UdpSocket,
    generator: Generator,
    /// When each packet of a batch came.
    came: Vec<Instant>,
    /// Delays that the device's way notes, of which nothing is told.
    within: Delays,
}

/// The thread that sends packets.
struct Generator {
    /// How many packets have been received.
    received: Arc<AtomicU64>,
    /// From which packet on, and how many.
    orders: Option<Sender<(usize, usize)>>,
    thread: Option<JoinHandle<()>>,
}

impl Generator {
    fn start(packets: Packets, to: UdpSocket) -> io::Result<Generator> {
        let received = Arc::new(AtomicU64::new(0));
        let (orders, ordered) = channel();
        let seen = Arc::clone(&received);
        let thread = thread::Builder::new()
            .name("generator".to_owned())
            .spawn(move || generate(&packets, &to, &ordered, &seen))?;
        Ok(Generator { received, orders: Some(orders), thread: Some(thread) })
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.orders = None;
        // So that it waits for no packet any more.
        self.received.store(u64::MAX - AHEAD, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It ends whatever it met; a socket that failed is noticed where packets are received.
            thread.join().unwrap_or(());
        }
    }
}

fn generate(packets: &Packets, to: &UdpSocket, ordered: &Receiver<(usize, usize)>, received: &AtomicU64) {
    let frames: Vec<&[u8]> = packets.frames.iter().map(|frame| frame.bytes).collect();
    let mut sent = 0;
    for (first, count) in ordered {
        for frame in frames.iter().cycle().skip(first).take(count) {
            while sent >= received.load(Ordering::Acquire) + AHEAD {
                thread::yield_now();
            }
            if to.send(frame).is_err() {
                return;
            }
            sent += 1;
        }
    }
}

impl<'a> Sockets<'a> {
    fn open(data: &FunctionData, processing: Processing<'a>) -> io::Result<Sockets<'a>> {
        let socket = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
        let (incoming, outgoing, sink, sender) = (socket()?, socket()?, socket()?, socket()?);
        incoming.set_read_timeout(Some(PATIENCE))?;
        sender.connect(incoming.local_addr()?)?;
        incoming.connect(sender.local_addr()?)?;
        outgoing.connect(sink.local_addr()?)?;
        let packets = data.whole.packets.clone();
        let generator = Generator::start(packets.clone(), sender)?;
        let (batch, came, within) = (Box::default(), Vec::new(), delays());
        Ok(Sockets { processing, packets, batch, incoming, outgoing, _sink: sink, generator, came, within })
    }

    /// Receives packets to their places.
    fn receive(&mut self, first: usize, count: usize) -> Result<(), String> {
        self.came.clear();
        for place in (0..count).step_by(BATCH) {
            self.packets.fill(&mut self.batch, first + place, BATCH.min(count - place));
            for packet in 0..self.batch.len {
                let (start, length) =
                    (self.batch.frame[packet] as usize, self.batch.captured[packet] as usize);
                let room = &mut self.packets.frames.memory_mut()[start..start + length];
                let got = self.incoming.recv(room);
                let got = got.map_err(|error| format!("no packet came by the socket: {error}"))?;
                if got != length {
                    return Err(format!(
                        "packet {} came with {got} of {length} bytes",
                        first + place + packet
                    ));
                }
                self.came.push(Instant::now());
                self.generator.received.fetch_add(1, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Sends what has a verdict to be sent, and notes the delay of every packet; gives those of the first and
    /// of the last.
    fn send(
        &mut self,
        first: usize,
        found: &[Verdict],
        delays: &mut Delays,
    ) -> Result<[Duration; 2], String> {
        let mut ends = [Duration::ZERO; 2];
        for place in (0..found.len()).step_by(BATCH) {
            self.packets.fill(&mut self.batch, first + place, BATCH.min(found.len() - place));
            for packet in 0..self.batch.len {
                if found[place + packet].kind() == VerdictKind::Send {
                    let bytes = self.batch.bytes(self.packets.frames.memory(), packet).unwrap_or_default();
                    let sent = self.outgoing.send(bytes);
                    sent.map_err(|error| format!("a packet cannot leave by the socket: {error}"))?;
                }
                let delay = self.came[place + packet].elapsed();
                delays.saturating_record(delay.as_nanos() as u64);
                if place + packet == 0 {
                    ends[0] = delay;
                }
                ends[1] = delay;
            }
        }
        Ok(ends)
    }

    /// The verdicts on packets that have come.
    fn process(&mut self, first: usize, found: &mut [Verdict]) -> Result<Spans, String> {
        match &mut self.processing {
            Processing::Device(way) => {
                self.within.reset();
                way.run(&self.packets, first, found.len(), found, &mut self.within)
            }
            Processing::Core(naive) => {
                let begin = Instant::now();
                for (place, found) in found.chunks_mut(BATCH).enumerate() {
                    self.packets.fill(&mut self.batch, first + place * BATCH, found.len());
                    let memory = self.packets.frames.memory();
                    for (packet, found) in found.iter_mut().enumerate() {
                        *found = naive.verdict(self.batch.bytes(memory, packet).unwrap_or_default());
                    }
                }
                let work = begin.elapsed();
                let parts = Parts { kernel: work, ..Parts::default() };
                Ok(Spans { parts, wall: work, kernel: work, processing: work, ..Spans::default() })
            }
        }
    }
}

impl Way for Sockets<'_> {
    fn stretch(&self) -> usize {
        STRETCH
    }

    fn run(
        &mut self,
        _: &Packets,
        first: usize,
        batch: usize,
        found: &mut [Verdict],
        delays: &mut Delays,
    ) -> Result<Spans, String> {
        let order = self.generator.orders.as_ref().map(|orders| orders.send((first, found.len())));
        if !matches!(order, Some(Ok(()))) {
            return Err("the thread that sends packets has ended".to_owned());
        }
        let mut all = Spans::default();
        for (number, found) in found.chunks_mut(batch).enumerate() {
            let first = (first + number * batch) % PACKETS;
            let begin = Instant::now();
            self.receive(first, found.len())?;
            let received = Instant::now();
            let mut spans = self.process(first, found)?;
            let processed = Instant::now();
            spans.ends = Some(self.send(first, found, delays)?);
            let end = Instant::now();
            spans.driver += (processed - received).saturating_sub(spans.wall);
            spans.gather += received - begin;
            spans.scatter += end - processed;
            spans.wall = end - begin;
            all.add(&spans);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Length;
    use crate::transfer::functions::Function;
    use crate::transfer::ways::run;

    #[test]
    fn packets_come_in_order_and_have_the_verdicts_of_the_interpreter() {
        let data = FunctionData::new(Function::Firewall, 10).expect("rules and packets");
        let naive = Arc::new(Naive::new(&data));
        for batch in [8, 512, 4096] {
            let mut sockets = Sockets::open(&data, Processing::Core(Arc::clone(&naive))).expect("sockets");
            // What came by the socket is what is judged, not what lay there.
            sockets.packets.frames.memory_mut().fill(0);
            let run = run(&mut sockets, &data, batch, Length::Repeat(5)).expect("right verdicts");
            assert_eq!(
                sockets.packets.frames.iter().take(batch).filter(|frame| frame.bytes == [0; 60]).count(),
                0
            );
            let Spans { ends, wall, gather, scatter, .. } = run.spans;
            let [first, last] = ends.expect("packets come one by one");
            assert!(!first.is_zero() && !last.is_zero());
            assert_eq!(run.delays.len(), run.batches * batch as u64, "every packet has a delay");
            assert!(gather + scatter < wall && run.spans.sum() <= wall);
        }
    }

    #[test]
    fn a_packet_that_does_not_come_takes_the_figures_away() {
        let data = FunctionData::new(Function::Firewall, 10).expect("rules and packets");
        let naive = Arc::new(Naive::new(&data));
        let mut sockets = Sockets::open(&data, Processing::Core(naive)).expect("sockets");
        sockets.incoming.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
        sockets.generator.orders = None;
        let mut found = [Verdict::PENDING; 8];
        let why =
            sockets.run(&data.whole.packets, 0, 8, &mut found, &mut delays()).expect_err("nobody sends");
        assert!(why.contains("has ended"), "{why}");
        let why = sockets.receive(0, 8).expect_err("nobody sends");
        assert!(why.contains("no packet came"), "{why}");
    }
}
