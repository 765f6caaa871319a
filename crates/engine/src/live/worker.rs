//! One worker runs to completion: it takes each port in turn, runs each batch to its end before the next one,
//! and answers control between two rounds.
//!
//! A batch is what has arrived, one packet or 256: the loop never waits for more packets, unless a device
//! queue collects them. A port that always has packets gets one batch a round, as every other port does; a
//! guarded port gets a share of the time of the others. The loop sleeps only when no port has packets. It
//! wakes when a port has some, when control rings its bell, or when something is due: at a port, in the
//! program (its time passes without packets, too), or in a measurement.

use super::crossing::{Crossing, Parcel};
use super::guarded_share::GuardedShare;
use super::host_packets::{self, HostPackets};
use super::host_share::HostShare;
use super::look::Looks;
use super::observed::{Stop, Stopwatch, Subscribers, Watches};
use super::{Generation, Injected, Line, OtherPorts, PortLosses, PuntQueue, Request, Work, open_checksums};
use crate::Transmitter;
use crate::device_queue::{DeviceQueue, Run, Supply};
use crate::ordering::fragment_order;
use exec::{AsyncBackend, Outputs};
use packet::{Batch, FragmentOrder, OpenClasses, VirtioHeader};
use ports::live::clock::Clock;
use ports::live::{Lane, LiveOut, Receiver, Waiter, exchange};
use ports::{Departure, Transmit};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, TryRecvError};
use std::time::{Duration, Instant};

/// How late (ns) something that is due in the program may happen at most while no packet comes: so things
/// that are due soon after each other happen together.
const GRAIN: u64 = 1_000_000;
/// How long (ns) the loop sleeps at most: then it tests whether missing interfaces have come back.
const LONGEST: u64 = 100_000_000;

/// The loop with its lanes.
pub struct LiveWorker {
    receivers: Vec<Box<dyn Receiver>>,
    out: LiveOut,
    waiter: Waiter,
    requests: mpsc::Receiver<Request>,
    batch: Box<Batch>,
    outputs: Outputs,
    punts: Option<PuntQueue>,
    host_share: HostShare,
    watches: Watches,
    subscribers: Subscribers,
    stopwatch: Stopwatch,
    looks: Looks,
    host_packets: HostPackets,
    crossing: Crossing,
    order: Option<Box<FragmentOrder>>,
    clock: Arc<dyn Clock>,
}

impl LiveWorker {
    /// A loop over these lanes, the first of which belongs to port 1, and the connection for requests to it.
    pub(super) fn new(lanes: Vec<Lane>, clock: Arc<dyn Clock>) -> io::Result<(LiveWorker, Line)> {
        let (mut receivers, senders): (Vec<_>, Vec<_>) =
            lanes.into_iter().map(|lane| (lane.receive, lane.send)).unzip();
        receivers.iter_mut().for_each(|port| port.joins());
        let descriptors: Vec<_> = receivers.iter().map(|port| port.descriptor()).collect();
        let waiter = Waiter::new(&descriptors)?;
        let (sender, requests) = mpsc::channel();
        let line = Line { requests: sender, bell: waiter.bell() };
        let alone = Crossing::alone(waiter.bell());
        let worker = LiveWorker {
            receivers,
            out: LiveOut::new(senders),
            waiter,
            requests,
            batch: Box::new(Batch::new()),
            outputs: Outputs::default(),
            punts: None,
            host_share: HostShare::default(),
            watches: Watches::default(),
            subscribers: Subscribers::default(),
            stopwatch: Stopwatch::default(),
            looks: Looks::default(),
            host_packets: HostPackets::default(),
            crossing: alone,
            order: None,
            clock,
        };
        Ok((worker, line))
    }

    /// Has ways to other workers from now on, and they to it.
    pub(super) fn meets(&mut self, crossing: Crossing) {
        self.crossing = crossing;
    }

    /// Runs programs, one after the other, until it is told to stop, or Linux refuses to wait for packets;
    /// leaves the last one.
    pub(super) fn run(&mut self, generation: &mut Generation) -> io::Result<()> {
        loop {
            match self.rounds(generation)? {
                Some(Request::Replace(takeover)) => {
                    let lost = losses(&mut self.receivers, &self.out);
                    let LiveWorker { receivers, out, waiter, clock, .. } = self;
                    let change = |ports| change_ports(ports, receivers, out, waiter);
                    takeover.perform(generation, lost, clock.program(), change);
                }
                _ => return Ok(()),
            }
        }
    }

    /// Closes its ports, and returns its ways to other workers, with what nobody has taken there.
    pub(super) fn leave(mut self) -> Crossing {
        self.crossing.leaves();
        self.crossing
    }

    /// The loop. Runs one program until a request ends it; `None` if no more requests can come.
    fn rounds(&mut self, generation: &mut Generation) -> io::Result<Option<Request>> {
        let LiveWorker {
            receivers,
            out,
            waiter,
            requests,
            batch,
            outputs,
            punts,
            host_share,
            watches,
            subscribers,
            stopwatch,
            looks,
            host_packets,
            crossing,
            order,
            clock,
        } = self;
        let clock = &**clock;
        crossing.prepare(generation);
        // Nothing waits now. It stays known which first fragments came: the new program may know them, too.
        let known = order.take().filter(|_| generation.program.orders_fragments);
        *order = known.or_else(|| fragment_order(&generation.program, RandomState::new().hash_one(0)));
        let leave_open = !generation.open.classes.is_empty();
        for port in receivers.iter_mut() {
            port.leave_checksums_open(leave_open);
            port.leave_segments_whole(OpenClasses::NONE);
        }
        let take_open = out.take_open_checksums();
        let transmitter = Transmitter::new(&generation.program.clone(), out);
        let mut device_queue = generation.device_queue.take();
        let mut pass = LivePass {
            generation,
            outputs,
            punts,
            host_share,
            guarded_share: GuardedShare::of(receivers),
            watches,
            subscribers,
            stopwatch,
            crossing,
            order,
            transmitter,
            take_open,
            whole: OpenClasses::NONE,
            clock,
        };
        // The port whose turn it was when the device queue had no more room.
        let mut first = 0;
        let mut idle = false;
        // What is being worked on a part at a time.
        let mut work: Option<Work> = None;
        let asked = loop {
            if let Some(memory) = host_packets.next(clock, batch) {
                // A batch of the machine, and then one of each port: requests wait until its turn is over.
                pass.received(memory, batch, device_queue.as_deref_mut())?;
                // The machine waits for its own packets, and for no share.
                pass.host_share.over(false);
            } else if let Some(step) = &mut work {
                if step(pass.generation) {
                    work = None;
                }
                pass.stopwatch.lap(Stop::Control);
            } else {
                // Before packets, so that what was asked for at the beginning sees the first of them.
                match requests.try_recv() {
                    Err(TryRecvError::Empty) if idle => {
                        pass.idle(receivers, waiter, device_queue.as_deref())?;
                    }
                    Err(TryRecvError::Empty) => pass.stopwatch.lap(Stop::Control),
                    Err(TryRecvError::Disconnected) => break None,
                    Ok(Request::FromHost { frames, cut, sent })
                        if pass.generation.program.manifest.judges_host =>
                    {
                        host_packets.begin(frames, cut, sent);
                    }
                    Ok(Request::Rest(rest)) => {
                        pass.rest(rest, receivers, batch, device_queue.as_deref_mut())?;
                        // What was asked for meanwhile comes before the next packet.
                        continue;
                    }
                    Ok(request) => {
                        if let Some(last) = pass.answer(request, receivers, looks, &mut work)? {
                            break Some(last);
                        }
                    }
                }
            }
            idle = !pass.receive(receivers, batch, &mut first, device_queue.as_deref_mut())?;
            idle &= !pass.take_over(idle, device_queue.as_deref_mut())?;
            pass.run_due(device_queue.as_deref_mut())?;
            if let Some(device_queue) = &mut device_queue {
                idle &= !device_queue.run(&mut pass, Supply::Unknown)?;
                pass.stopwatch.lap(Stop::Run);
            }
            pass.turn_of_punts(idle);
            if !looks.is_empty() {
                idle = false;
                let out = pass.transmitter.sink();
                looks.step(pass.generation, |generation| since(losses(receivers, out), generation));
                pass.stopwatch.lap(Stop::Control);
            }
        };
        if !matches!(asked, Some(Request::Replace(_))) {
            // All workers end together: what is on its way between them is run by its worker.
            while !pass.crossing.ends() {
                if !pass.take_over(true, device_queue.as_deref_mut())? {
                    std::thread::yield_now();
                }
                if let Some(device_queue) = &mut device_queue {
                    device_queue.run(&mut pass, Supply::Unknown)?;
                }
            }
        }
        pass.in_order(device_queue.as_deref_mut(), |order, run| order.finish(run))?;
        if let Some(device_queue) = &mut device_queue {
            device_queue.run(&mut pass, Supply::Ended)?;
        }
        pass.turn_of_punts(true);
        looks.interrupt(pass.generation);
        pass.generation.device_queue = device_queue;
        Ok(asked)
    }
}

/// Exchanges lanes of some ports; returns those that are not needed any more.
fn change_ports(
    OtherPorts(lanes): OtherPorts,
    receivers: &mut Vec<Box<dyn Receiver>>,
    out: &mut LiveOut,
    waiter: &mut Waiter,
) -> Vec<Lane> {
    let halves = |lane: Option<Lane>| match lane {
        Some(Lane { receive, send }) => (Some(receive), Some(send)),
        None => (None, None),
    };
    let (receive, send): (Vec<_>, Vec<_>) = lanes.into_iter().map(halves).unzip();
    let mut removed = exchange(receivers, receive);
    removed.iter_mut().for_each(|port| port.leaves());
    receivers.iter_mut().for_each(|port| port.joins());
    let descriptors: Vec<_> = receivers.iter().map(|port| port.descriptor()).collect();
    waiter.watch(&descriptors);
    let removed = removed.into_iter().zip(out.change(send));
    removed.map(|(receive, send)| Lane { receive, send }).collect()
}

/// A worker in its loop: what a batch passes after it was received.
pub(super) struct LivePass<'a, 'b> {
    pub(super) generation: &'a mut Generation,
    outputs: &'a mut Outputs,
    punts: &'a mut Option<PuntQueue>,
    host_share: &'a mut HostShare,
    guarded_share: GuardedShare,
    watches: &'a mut Watches,
    subscribers: &'a mut Subscribers,
    stopwatch: &'a mut Stopwatch,
    pub(super) crossing: &'a mut Crossing,
    /// What brings fragments into order, if the program asks for it.
    order: &'a mut Option<Box<FragmentOrder>>,
    pub(super) transmitter: Transmitter<'b, LiveOut>,
    /// Which ports take packets with an open checksum.
    take_open: Vec<bool>,
    /// The segments that ports leave whole at present.
    whole: OpenClasses,
    pub(super) clock: &'a dyn Clock,
}

impl LivePass<'_, '_> {
    /// Takes each port in turn, from `first` on, and runs or queues its packets. Returns whether there were
    /// any.
    #[inline]
    fn receive(
        &mut self,
        receivers: &mut [Box<dyn Receiver>],
        batch: &mut Batch,
        first: &mut usize,
        mut device_queue: Option<&mut DeviceQueue>,
    ) -> io::Result<bool> {
        let mut any = false;
        let begin = *first;
        // Who watches sees packets.
        let whole = if self.watches.is_empty() { self.generation.segments } else { OpenClasses::NONE };
        if whole != self.whole {
            self.whole = whole;
            receivers.iter_mut().for_each(|port| port.leave_segments_whole(whole));
        }
        for turn in 0..receivers.len() {
            let index = (begin + turn) % receivers.len();
            if device_queue.as_ref().is_some_and(|device_queue| !device_queue.has_room()) {
                *first = index;
                break;
            }
            if !self.guarded_share.admits(index) {
                continue;
            }
            let now = self.clock.now();
            let memory = receivers[index].receive(batch, now);
            if !batch.is_empty() {
                any = true;
                // Before those leave that go to other workers.
                let is_full = batch.is_full();
                self.received(memory, batch, device_queue.as_deref_mut())?;
                self.host_share.over(is_full || receivers[index].has_more());
            } else if !self.guarded_share.is_guarded(index) {
                continue;
            }
            // For a guarded port, the time to refuse frames counts, too.
            if self.guarded_share.is_needed() {
                self.guarded_share.took(index, self.clock.program().saturating_sub(now.program));
            }
        }
        self.guarded_share.turn();
        Ok(any)
    }

    /// Hands punted packets over if it is time: at once where nothing came, and where a turn is long since
    /// others wait.
    #[inline]
    fn turn_of_punts(&mut self, idle: bool) {
        self.host_share.turn(idle);
        if let Some(queue) = self.punts {
            queue.turn(idle || self.host_share.is_pressed(), &mut self.generation.punts_lost);
        }
    }

    /// Runs or queues those packets of a batch that are this worker's, and hands the others over.
    #[inline]
    pub(super) fn received(
        &mut self,
        memory: &mut [u8],
        batch: &mut Batch,
        device_queue: Option<&mut DeviceQueue>,
    ) -> io::Result<()> {
        open_checksums::admit(self.generation.open, memory, batch);
        self.crossing.steer(self.generation, memory, batch);
        self.stopwatch.lap(Stop::Receive);
        if batch.is_empty() { Ok(()) } else { self.run(memory, batch, device_queue) }
    }

    /// Runs or queues packets, fragments in order if the program asks for it.
    #[inline]
    fn run(
        &mut self,
        memory: &mut [u8],
        batch: &mut Batch,
        device_queue: Option<&mut DeviceQueue>,
    ) -> io::Result<()> {
        if self.order.is_none() {
            return self.run_now(memory, batch, device_queue);
        }
        self.in_order(device_queue, |order, run| order.run(memory, batch, run))
    }

    /// Has what brings fragments into order run packets; does nothing for a program that does not ask for it.
    pub(super) fn in_order(
        &mut self,
        mut device_queue: Option<&mut DeviceQueue>,
        run: impl FnOnce(
            &mut FragmentOrder,
            &mut dyn FnMut(&mut [u8], &mut Batch) -> io::Result<()>,
        ) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(mut order) = self.order.take() else { return Ok(()) };
        let ran =
            run(&mut order, &mut |memory, batch| self.run_now(memory, batch, device_queue.as_deref_mut()));
        *self.order = Some(order);
        ran
    }

    /// Runs or queues fragments that have waited long enough for the first of their packet.
    #[inline]
    fn run_due(&mut self, device_queue: Option<&mut DeviceQueue>) -> io::Result<()> {
        if self.order.as_ref().is_none_or(|order| order.due().is_none()) {
            return Ok(());
        }
        let now = self.clock.program();
        self.in_order(device_queue, |order, run| order.advance(now, run))
    }

    #[inline]
    fn run_now(
        &mut self,
        memory: &mut [u8],
        batch: &mut Batch,
        device_queue: Option<&mut DeviceQueue>,
    ) -> io::Result<()> {
        let Some(device_queue) = device_queue else { return self.batch(memory, batch) };
        device_queue.take(self, memory, batch)?;
        self.stopwatch.lap(Stop::Run);
        Ok(())
    }

    /// Runs or queues what other workers have handed over: one parcel of each. Returns whether there was
    /// anything, or something still waits to be handed over.
    #[inline]
    pub(super) fn take_over(
        &mut self,
        idle: bool,
        mut device_queue: Option<&mut DeviceQueue>,
    ) -> io::Result<bool> {
        let (mut any, waits) = (false, self.crossing.send_waiting());
        for _ in 0..self.crossing.others() {
            if device_queue.as_ref().is_some_and(|device_queue| !device_queue.has_room()) {
                break;
            }
            let Some((from, mut parcel)) = self.crossing.arrived() else { break };
            any = true;
            if !self.generation.program.manifest.judges_host {
                // A program before this one has decided about packets of the machine.
                let marked = host_packets::take_marked(parcel.memory.bytes(), &mut parcel.batch);
                if !marked.is_empty() {
                    self.inject(marked)?;
                }
            }
            // Another program may have admitted them.
            open_checksums::admit(self.generation.open, parcel.memory.bytes_mut(), &mut parcel.batch);
            self.crossing.steer_again(self.generation, &mut parcel);
            self.stopwatch.lap(Stop::Receive);
            if !parcel.batch.is_empty() {
                let Parcel { memory, batch, .. } = &mut parcel;
                self.run(memory.bytes_mut(), batch, device_queue.as_deref_mut())?;
            }
            self.crossing.give_back(from, parcel);
            self.host_share.over(self.crossing.has_more(from));
        }
        if idle && waits && !any {
            // The other worker does not run on a core at present.
            std::thread::yield_now();
        }
        Ok(any || waits)
    }

    /// Sleeps until packets may have come or something is due, and lets the program's time pass.
    fn idle(
        &mut self,
        receivers: &[Box<dyn Receiver>],
        waiter: &mut Waiter,
        device_queue: Option<&DeviceQueue>,
    ) -> io::Result<()> {
        self.stopwatch.lap(Stop::Receive);
        // For packets in the device queue the program's time is still that of their arrival.
        let time_passes = device_queue.is_none_or(DeviceQueue::is_empty);
        if device_queue.is_some_and(DeviceQueue::is_under_way) {
            // A device has packets, so the loop polls it again soon.
            std::thread::yield_now();
        } else {
            let sink = self.transmitter.sink();
            let ports = receivers.iter().filter_map(|port| port.due()).chain(sink.due()).min();
            let held = device_queue.and_then(|device_queue| device_queue.due(Instant::now()));
            let left = held.into_iter().chain(self.stopwatch.left()).min();
            let waiting = self.order.as_ref().and_then(|order| order.due());
            let program = self.generation.backend.due().filter(|_| time_passes);
            let program = program.into_iter().chain(waiting).min();
            if self.crossing.may_sleep() {
                waiter.wait(Dues { ports, program, left }.patience(self.clock.program()))?;
                self.crossing.wakes();
            }
        }
        if time_passes {
            self.pass_time()?;
        }
        self.stopwatch.lap(Stop::Idle);
        Ok(())
    }

    /// Handles a request; returns it if it ends the loop.
    fn answer(
        &mut self,
        request: Request,
        receivers: &mut [Box<dyn Receiver>],
        looks: &mut Looks,
        work: &mut Option<Work>,
    ) -> io::Result<Option<Request>> {
        match request {
            Request::Ask(question) => {
                let since = since(losses(receivers, self.transmitter.sink()), self.generation);
                question(self.generation, &since);
            }
            Request::Send(frames) => self.inject(frames)?,
            Request::FromHost { frames, sent, .. } => {
                self.inject(frames)?;
                drop(sent);
            }
            Request::Punts(queue) => {
                self.turn_of_punts(true);
                *self.punts = Some(queue);
            }
            #[cfg(feature = "observe")]
            Request::Watch(watcher) => self.watches.add(*watcher),
            #[cfg(feature = "observe")]
            Request::Subscribe(subscriber) => self.subscribers.add(*subscriber),
            #[cfg(feature = "observe")]
            Request::Measure(measuring) => self.stopwatch.start(*measuring, self.generation),
            Request::Look(look) => looks.add(look),
            Request::Work(step) => *work = Some(step),
            // The loop sees to a rest itself.
            Request::Rest(_) => {}
            Request::Replace(_) | Request::Stop => return Ok(Some(request)),
        }
        Ok(None)
    }

    /// Sends frames past the program.
    fn inject(&mut self, frames: Vec<Injected>) -> io::Result<()> {
        let (ledger, out) = (&mut self.generation.ledger, self.transmitter.sink());
        for Injected { port, mut bytes, virtio } in frames {
            let virtio = if virtio.restart(&mut bytes) { virtio } else { VirtioHeader::NONE };
            let (wire, time) = (bytes.len() as u32, self.clock.program());
            ledger.commit_injected(port, wire);
            out.transmit(&Departure { port, bytes: &bytes, wire, time, virtio, comment: None })?;
        }
        out.flush();
        Ok(())
    }

    /// Lets the program's time go on without packets.
    fn pass_time(&mut self) -> io::Result<()> {
        let LivePass { generation, outputs, subscribers, transmitter, clock, .. } = self;
        outputs.clear();
        generation.backend.advance(clock.program(), outputs);
        generation.ledger.commit_outputs(outputs);
        subscribers.raised(generation, outputs);
        transmitter.transmit_made(&generation.ledger, outputs)
    }
}

impl Run for LivePass<'_, '_> {
    type Error = io::Error;

    fn device(&mut self) -> Option<&mut dyn AsyncBackend> {
        self.generation.backend.asynchronous()
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    #[inline]
    fn batch(&mut self, memory: &mut [u8], batch: &mut Batch) -> io::Result<()> {
        let LivePass {
            generation,
            outputs,
            punts,
            host_share,
            watches,
            subscribers,
            stopwatch,
            transmitter,
            take_open,
            clock,
            ..
        } = self;
        outputs.clear();
        if !watches.is_empty() {
            batch.finish_checksums(memory);
        }
        open_checksums::tell(generation.open, batch, outputs);
        watches.run(stopwatch, generation, memory, batch, outputs);
        stopwatch.lap(Stop::Run);
        if generation.program.manifest.judges_host {
            host_packets::forget(batch);
        }
        generation.ledger.commit(memory, batch, outputs);
        generation.left_open += open_checksums::settle(&generation.ledger, take_open, memory, batch, outputs);
        generation.recent.keep(memory, batch);
        watches.told(generation, batch);
        subscribers.raised(generation, outputs);
        subscribers.punted(generation, memory, batch);
        if let Some(queue) = punts {
            let Generation { reasons, punts_lost, .. } = &mut **generation;
            let punted = queue.copy(memory, batch, reasons, host_share, punts_lost);
            host_share.passed(batch.len, punted);
        }
        stopwatch.lap(Stop::Commit);
        open_checksums::restart(memory, batch, outputs);
        transmitter.transmit(&generation.ledger, memory, batch, outputs)?;
        stopwatch.sent(batch, *clock);
        Ok(())
    }
}

/// The times at which a sleep ends without a packet or a bell, in the program's time.
struct Dues {
    /// When a port must be polled again.
    ports: Option<u64>,
    /// When something is due in the program.
    program: Option<u64>,
    /// How long it is until something is due for packets that are held, or a measurement ends.
    left: Option<Duration>,
}

impl Dues {
    /// For how many nanoseconds the loop may sleep.
    fn patience(&self, now: u64) -> u64 {
        let ports = self.ports.map_or(LONGEST, |due| due.saturating_sub(now));
        let program = self.program.map_or(LONGEST, |due| due.saturating_sub(now).max(GRAIN));
        let left = self.left.map_or(LONGEST, |left| u64::try_from(left.as_nanos()).unwrap_or(LONGEST));
        ports.min(program).min(left).min(LONGEST)
    }
}

/// What was lost since the program took over, of what has been lost.
fn since(now: Vec<PortLosses>, generation: &Generation) -> Vec<PortLosses> {
    now.into_iter().zip(generation.lost_before()).map(|(now, &then)| now - then).collect()
}

fn losses(receivers: &mut [Box<dyn Receiver>], out: &LiveOut) -> Vec<PortLosses> {
    receivers
        .iter_mut()
        .zip(out.losses())
        .map(|(port, send)| PortLosses { receive: port.losses(), send })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use exec::{BackendKind, load};
    use lang::pipeline::{CompileOptions, compile};
    use packet::{BATCH, Frames};

    const SECOND: u64 = 1_000_000_000;

    /// How often an idle loop wakes within so many seconds on a clock that is moved by hand, and what the
    /// program sent meanwhile.
    fn woken(program: &str, seconds: u64) -> (u64, usize) {
        let program =
            compile("p.rav", program, &|_| None, &CompileOptions::default()).program.expect("compiles");
        let mut backend = load(&program, BackendKind::Interpreter, 2, 0).expect("loads");
        let (mut now, mut wakes, mut made) = (SECOND, 0, 0);
        let mut outputs = Outputs::default();
        while now < (1 + seconds) * SECOND {
            now += Dues { ports: None, program: backend.due(), left: None }.patience(now);
            wakes += 1;
            outputs.clear();
            backend.advance(now, &mut outputs);
            made += outputs.packets.len();
        }
        (wakes, made)
    }

    #[test]
    fn a_loop_without_packets_wakes_when_something_is_due_and_seldom_otherwise() {
        let per_second = SECOND / LONGEST;
        let (wakes, made) = woken("start stage all() { flood }", 10);
        assert!(wakes <= 10 * per_second + 2, "{wakes}");
        assert_eq!(made, 0);
        let ageing = "import std.net.ethernet\ntable hosts: exact(mac) -> port { capacity 1k  idle 30s  evict lru }\nstart decoder d(eth: ethernet) { learn hosts[eth.src] = in_port  flood }";
        assert!(woken(ageing, 10).0 <= 10 * per_second + 2);
        let beacon = |every: &str| {
            format!(
                "import std.net.ethernet\nstart stage all() {{ flood }}\nevery {every} {{ emit ethernet(dst ff:ff:ff:ff:ff:ff, type 0x88b5) / \"alive\" to 1 }}"
            )
        };
        let (wakes, made) = woken(&beacon("1s"), 10);
        assert!(wakes <= 10 * (per_second + 2) && (9..=10).contains(&made), "{wakes}, {made}");
        // What comes more often than a loop may wake comes late by the grain, and none is left out.
        let (wakes, made) = woken(&beacon("100us"), 1);
        assert!(wakes <= SECOND / GRAIN + 2 && made >= 9_900, "{wakes}, {made}");
    }

    /// How many entries are left of 4,096 that live for a second, after a gap of so many milliseconds: at its
    /// end, and after the packet that follows it.
    fn left_by_a_gap(milliseconds: u64, is_idle: bool) -> (u64, u64) {
        let program = "import std.net.ethernet\ntable hosts: exact(mac) -> port { capacity 8k  idle 1s  evict lru  expires gone }\nevent gone(who: mac, at: port) {}\nstart decoder d(eth: ethernet) { learn hosts[eth.src] = in_port  flood }";
        let program =
            compile("p.rav", program, &|_| None, &CompileOptions::default()).program.expect("compiles");
        let mut backend = load(&program, BackendKind::Interpreter, 2, 0).expect("loads");
        let (mut frames, mut batch, mut outputs) = (Frames::default(), Batch::new(), Outputs::default());
        for number in 0..=4_096u16 {
            let frame = [&[2; 10][..], &number.to_be_bytes(), &[0x88, 0xb5], &[0; 46]].concat();
            // The last one comes behind the gap.
            let gap = if number == 4_096 { milliseconds * 1_000_000 } else { 0 };
            frames.push(&frame, 60, SECOND + u64::from(number) * 1_000 + gap);
        }
        let mut run = |backend: &mut dyn exec::Backend, range| {
            let filled = frames.fill(&mut batch, range);
            batch.port[..filled].fill(1);
            outputs.clear();
            backend.run(frames.memory_mut(), &mut batch, &mut outputs);
        };
        for first in (0..4_096).step_by(BATCH) {
            run(backend.as_mut(), first..first + BATCH);
        }
        let (mut now, end) = (SECOND + 4_095_000, SECOND + 4_096_000 + milliseconds * 1_000_000);
        loop {
            now += Dues { ports: None, program: backend.due(), left: None }.patience(now);
            if now >= end || !is_idle {
                break;
            }
            backend.advance(now, &mut Outputs::default());
        }
        let left = |backend: &dyn exec::Backend| backend.tables()[0].entries;
        let before = left(backend.as_ref());
        run(backend.as_mut(), 4_096..4_097);
        (before, left(backend.as_ref()))
    }

    #[test]
    fn what_ends_in_a_gap_is_handled_by_the_idle_loop_and_not_by_the_packet_behind_it() {
        assert_eq!(left_by_a_gap(900, true), (4_096, 4_097), "nothing has ended yet");
        // The packet itself is learnt.
        assert_eq!(left_by_a_gap(1_100, true), (0, 1));
        let (before, after) = left_by_a_gap(1_100, false);
        assert!(before == 4_096 && after < 4_096, "{after}");
    }

    #[test]
    fn a_sleep_ends_with_whatever_is_due_first() {
        let patience = |ports, program, left: Option<u64>| {
            Dues { ports, program, left: left.map(Duration::from_nanos) }.patience(SECOND)
        };
        assert_eq!(patience(None, None, None), LONGEST);
        assert_eq!(patience(Some(SECOND - 5), None, None), 0, "a port has something already");
        assert_eq!(patience(Some(SECOND + 5), None, None), 5);
        assert_eq!(patience(None, Some(0), None), GRAIN);
        assert_eq!(patience(None, Some(SECOND + 2 * GRAIN), None), 2 * GRAIN);
        assert_eq!(patience(None, Some(u64::MAX), Some(7)), 7);
    }
}
