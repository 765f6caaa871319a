//! Subscriptions: control learns the events that a program raises, and gets copies of packets that it punts,
//! while the loop runs.
//!
//! Each subscription has a queue of its own, so that a subscriber takes no room from another one or from the
//! control plane. While nobody subscribes, all this costs one branch a batch.

use super::generation::Generation;
use super::tail_drop::{TailDropReceiver, TailDropSender, tail_drop};
use super::{Remote, Request};
use exec::Outputs;
use ir::Program;
use packet::{Batch, PortNumber, VerdictKind};
use std::sync::Arc;

/// The largest number of events and packets that wait for a subscriber, and their bytes together.
const WAITING: usize = 8192;
const WAITING_BYTES: usize = 4 << 20;

/// What to subscribe to, by the names in the program. A name that a program does not have never comes; with
/// another program it may.
#[derive(Clone, Debug, Default)]
pub struct SubscriptionWish {
    /// The events.
    pub events: Vec<String>,
    /// The reasons of punted packets.
    pub reasons: Vec<String>,
    /// How many bytes of each packet to copy.
    pub snap: u32,
}

/// Something that a subscriber is told.
#[derive(Debug)]
pub struct Told {
    /// The program that did it.
    pub program: Arc<Program>,
    /// How many programs had taken over then, this one included.
    pub generation: u64,
    /// The worker, from 1.
    pub worker: u16,
    /// When: the program's time, which [`Now::on_wall`](ports::live::clock::Now::on_wall) makes one for
    /// people.
    pub time: u64,
    /// What it was.
    pub what: ToldOf,
}

/// What a subscriber is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToldOf {
    /// The program raised an event.
    Event {
        /// The number of the event.
        event: u32,
        /// Nanoseconds until its handler runs.
        delay: u64,
        /// Its arguments.
        arguments: Vec<u128>,
    },
    /// The program punted a packet.
    Punt {
        /// The number of the reason.
        reason: u16,
        /// The port that the packet came in by.
        port: PortNumber,
        /// Its length.
        length: u32,
        /// Its bytes, as many as were requested.
        bytes: Vec<u8>,
    },
}

/// The receiving end of a subscription. When it is dropped, the subscription ends.
pub type Subscription = TailDropReceiver<Told>;

/// One subscriber, at one worker.
pub(super) struct Subscriber {
    wish: Arc<SubscriptionWish>,
    worker: u16,
    queue: TailDropSender<Told>,
    /// The program for which the names were looked up, which of its events are wanted, and which reasons.
    wanted: (u64, Vec<bool>, Vec<bool>),
}

impl Remote {
    /// Passes on events and punted packets from now on, until the subscription is dropped; `None` if a worker
    /// has ended.
    pub fn subscribe(&self, wish: SubscriptionWish) -> Option<Subscription> {
        let (subscribers, subscription) = subscribe(self.workers(), wish);
        let mut subscribers = subscribers.into_iter();
        self.each(|_| Some(Request::Subscribe(Box::new(subscribers.next()?)))).then_some(subscription)
    }
}

/// Makes a subscriber for each of `workers` workers, and the receiving end.
fn subscribe(workers: usize, wish: SubscriptionWish) -> (Vec<Subscriber>, Subscription) {
    let (queue, subscription) = tail_drop(WAITING, WAITING_BYTES);
    let wish = Arc::new(wish);
    let one = |worker: usize| Subscriber {
        wish: wish.clone(),
        worker: worker as u16 + 1,
        queue: queue.clone(),
        wanted: Default::default(),
    };
    ((0..workers).map(one).collect(), subscription)
}

impl Subscriber {
    /// Looks names up again if another program has taken over.
    fn look_up(&mut self, generation: &Generation) {
        if self.wanted.0 == generation.number {
            return;
        }
        let program = &generation.program;
        let events = program.events.iter().map(|event| self.wish.events.contains(&event.name)).collect();
        let reasons = program.reasons.iter().map(|reason| self.wish.reasons.contains(&reason.name)).collect();
        self.wanted = (generation.number, events, reasons);
    }

    /// Passes something on, or counts that it found no room; `bytes` is the memory that it takes.
    fn tell(&self, generation: &Generation, time: u64, bytes: usize, what: impl FnOnce() -> ToldOf) {
        let Some(held) = self.queue.take(bytes + size_of::<Told>()) else { return };
        let (program, generation) = (generation.program.clone(), generation.number);
        let told = Told { program, generation, worker: self.worker, time, what: what() };
        self.queue.send(told, held);
    }
}

/// All subscribers at one worker.
#[derive(Default)]
pub(super) struct Subscribers(Vec<Subscriber>);

impl Subscribers {
    pub(super) fn add(&mut self, subscriber: Subscriber) {
        self.leave_out_gone();
        self.0.push(subscriber);
    }

    fn leave_out_gone(&mut self) {
        self.0.retain(|subscriber| !subscriber.queue.is_closed());
    }

    /// Tells of events that were raised.
    #[inline]
    pub(super) fn raised(&mut self, generation: &Generation, outputs: &Outputs) {
        if !self.0.is_empty() && !outputs.raised.is_empty() {
            self.tell_raised(generation, outputs);
        }
    }

    /// Tells of packets of a batch that were punted.
    #[inline]
    pub(super) fn punted(&mut self, generation: &Generation, memory: &[u8], batch: &Batch) {
        if !self.0.is_empty() {
            self.tell_punted(generation, memory, batch);
        }
    }

    #[cold]
    fn tell_raised(&mut self, generation: &Generation, outputs: &Outputs) {
        self.leave_out_gone();
        for subscriber in &mut self.0 {
            subscriber.look_up(generation);
            for raised in &outputs.raised {
                let event = raised.event as usize;
                if subscriber.wanted.1.get(event) != Some(&true) {
                    continue;
                }
                let count = generation.program.events.get(event).map_or(0, |event| event.params.len());
                let arguments = outputs.arguments.get(raised.first as usize..).unwrap_or_default();
                let arguments = &arguments[..count.min(arguments.len())];
                subscriber.tell(generation, raised.time, size_of_val(arguments), || ToldOf::Event {
                    event: raised.event,
                    delay: raised.delay,
                    arguments: arguments.to_vec(),
                });
            }
        }
    }

    #[cold]
    fn tell_punted(&mut self, generation: &Generation, memory: &[u8], batch: &Batch) {
        self.leave_out_gone();
        for subscriber in &mut self.0 {
            subscriber.look_up(generation);
            for (index, verdict) in batch.verdicts().iter().enumerate() {
                let reason = verdict.argument();
                let wanted = verdict.kind() == VerdictKind::Punt
                    && subscriber.wanted.2.get(usize::from(reason)) == Some(&true);
                if !wanted {
                    continue;
                }
                let bytes = batch.bytes(memory, index).unwrap_or_default();
                let bytes = &bytes[..bytes.len().min(subscriber.wish.snap as usize)];
                subscriber.tell(generation, batch.time[index], bytes.len(), || ToldOf::Punt {
                    reason,
                    port: batch.port[index],
                    length: batch.wire[index],
                    bytes: bytes.to_vec(),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Loaded;
    use exec::{BackendKind, load};
    use lang::pipeline::{CompileOptions, compile};
    use packet::region::SLACK;
    use std::time::Duration;

    /// Raises an event for each packet, and punts every second one.
    const PROGRAM: &str = "import std.net.{ethernet}
reason odd \"an odd type\"
event seen(kind: u16, at: port) {}
event other() {}
start decoder frame(eth: ethernet) {
    raise seen(eth.type, in_port)
    if eth.type & 1 == 1 { punt odd }
    flood
}
";

    fn generation(number: u64) -> Generation {
        let compiled = compile("p.rav", PROGRAM, &|_| None, &CompileOptions::default());
        let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
        let backends = vec![load(&program, BackendKind::Interpreter, 4, 0).expect("loads")];
        let (program, sources) = (Arc::new(program), Arc::new(compiled.sources));
        Loaded { program, sources, backends, schedule: None, steering: Vec::new() }
            .generations(4, number)
            .remove(0)
    }

    /// Runs a batch of packets of these types, and tells the subscribers.
    fn run(subscribers: &mut Subscribers, generation: &mut Generation, types: impl Iterator<Item = u16>) {
        let (mut memory, mut batch) = (Vec::new(), Batch::new());
        for kind in types {
            batch.push(memory.len() as u64, 60, 60, 2, 5);
            memory.extend([0; 12].into_iter().chain(kind.to_be_bytes()).chain([7; 46]));
        }
        memory.resize(memory.len() + SLACK, 0);
        let mut outputs = Outputs::default();
        generation.backend.run(&mut memory, &mut batch, &mut outputs);
        subscribers.raised(generation, &outputs);
        subscribers.punted(generation, &memory, &batch);
    }

    fn wish(events: &[&str], reasons: &[&str]) -> SubscriptionWish {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        SubscriptionWish { events: names(events), reasons: names(reasons), snap: 20 }
    }

    fn one(subscribers: &mut Subscribers, wish: SubscriptionWish) -> Subscription {
        let (mut all, subscription) = subscribe(1, wish);
        subscribers.add(all.remove(0));
        subscription
    }

    fn all(subscription: &Subscription) -> Vec<ToldOf> {
        std::iter::from_fn(|| subscription.next(Duration::ZERO).ok().flatten())
            .map(|told| told.what)
            .collect()
    }

    #[test]
    fn each_subscriber_is_told_what_it_asked_for_also_of_the_next_program() {
        let mut subscribers = Subscribers::default();
        let events = one(&mut subscribers, wish(&["seen"], &[]));
        let punts = one(&mut subscribers, wish(&["other"], &["odd"]));
        for number in [1, 2] {
            run(&mut subscribers, &mut generation(number), 0x800..0x803);
            let seen = |kind: u128| ToldOf::Event { event: 0, delay: 0, arguments: vec![kind, 2] };
            assert_eq!(all(&events), [seen(0x800), seen(0x801), seen(0x802)]);
            let [ToldOf::Punt { reason, port, length, bytes }] = &all(&punts)[..] else {
                panic!("one packet")
            };
            assert_eq!((*port, *length, bytes.len(), &bytes[12..14]), (2, 60, 20, &[8, 1][..]));
            let name = &generation(1).program.reasons[usize::from(*reason)].name;
            assert_eq!(name, "odd");
        }
    }

    #[test]
    fn who_does_not_read_loses_by_count_and_takes_nothing_from_others() {
        let (mut subscribers, mut generation) = (Subscribers::default(), generation(1));
        let idle = one(&mut subscribers, wish(&["seen"], &[]));
        let reader = one(&mut subscribers, wish(&["seen"], &[]));
        let (mut read, batches) = (0, WAITING as u64 / 256 + 10);
        for _ in 0..batches {
            run(&mut subscribers, &mut generation, 0..256);
            read += all(&reader).len() as u64;
        }
        assert_eq!((read, reader.lost()), (batches * 256, 0));
        let waiting = all(&idle).len() as u64;
        assert!(waiting <= WAITING as u64 && waiting > 0);
        assert_eq!(waiting + idle.lost(), batches * 256);
        // What was read makes room again.
        run(&mut subscribers, &mut generation, 0..256);
        assert_eq!(all(&idle).len(), 256);
        drop(idle);
        run(&mut subscribers, &mut generation, 0..1);
        assert_eq!(subscribers.0.len(), 1);
    }
}
