//! Watches: control sees chosen packets while the loop runs. The loop copies these packets as they came in,
//! with what became of them.
//!
//! Before a batch runs, the loop copies the packets that a filter may choose; after the batch, their verdicts
//! decide. Where
//! control also wants the steps of a packet, the interpreter runs its batch, on the same tables and with the
//! same outcome, for at most a tenth of the time. A watcher that wants steps does not see the packets that
//! arrive in the rest of the time. While nobody watches, all this costs one branch a batch.

use super::generation::Generation;
use super::host_packets;
use super::measure::Stopwatch;
use super::tail_drop::{Held, LoopEnded, TailDropReceiver, TailDropSender, tail_drop};
use super::{Remote, Request};
use crate::filter::{Decided, Filter};
use crate::steps::{Moment, Recorder};
use exec::Outputs;
use ir::Program;
use ir::source::Sources;
use packet::{Batch, PortNumber, Verdict};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The largest number of packets that wait for a watcher, and their bytes together.
const WAITING: usize = 4096;
const WAITING_BYTES: usize = 16 << 20;
/// The least number of bytes of a packet that are copied, since the filter is applied to the copy.
const HEADERS: usize = 256;

/// A packet that was watched.
#[derive(Debug)]
pub struct Seen {
    /// The port that it came in by.
    pub port: PortNumber,
    /// When it came in: the program's time, which [`Now::on_wall`](ports::live::clock::Now::on_wall) makes
    /// one for people.
    pub time: u64,
    /// Its bytes as they came in, as many as were requested.
    pub bytes: Vec<u8>,
    /// Its length on the wire then.
    pub wire: u32,
    /// Its verdict.
    pub verdict: Verdict,
    /// The name of the reason, if the packet was dropped or punted.
    pub reason: Option<Arc<str>>,
    /// The ports that it left by.
    pub out: Vec<PortNumber>,
    /// The steps of its run, if they were requested.
    pub steps: Option<Vec<Moment>>,
    /// The program that ran it.
    pub program: Arc<Program>,
    /// The text of that program.
    pub sources: Arc<Sources>,
}

/// What to show of the packets that match a filter.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// How many bytes of each packet to show.
    pub snap: u32,
    /// The duration of the watch.
    pub duration: Duration,
    /// Whether to show steps, and for how many packets at each worker.
    pub steps: Option<u32>,
}

/// The receiving end of a watch. When it is dropped, the watch ends.
pub struct Watching {
    packets: TailDropReceiver<Seen>,
    end: Instant,
}

impl Watching {
    /// The next packet; `None` if none came within `patience`.
    ///
    /// # Errors
    /// The time is over, or the loop has ended.
    pub fn next(&self, patience: Duration) -> Result<Option<Seen>, WatchEnded> {
        let left = self.end.saturating_duration_since(Instant::now());
        match self.packets.next(patience.min(left)) {
            Ok(None) if left == Duration::ZERO => Err(WatchEnded),
            Err(LoopEnded) => Err(WatchEnded),
            Ok(next) => Ok(next),
        }
    }

    /// How many packets found no room.
    pub fn lost(&self) -> u64 {
        self.packets.lost()
    }
}

/// The error after the end of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is nothing more to be seen")]
pub struct WatchEnded;

/// One watcher, at one worker.
pub(super) struct Watcher {
    filter: Filter,
    wish: Wish,
    queue: TailDropSender<Seen>,
    end: Instant,
    /// For how many more packets steps are recorded.
    steps_left: u32,
    copies: Vec<Copied>,
}

/// A packet as it came in.
struct Copied {
    index: usize,
    bytes: Vec<u8>,
    wire: u32,
    time: u64,
    held: Held,
}

impl Remote {
    /// Watches packets that match a filter, from now on. There is one copy of the same filter for each
    /// worker. `None` if a worker has ended.
    pub fn watch(&self, filters: Vec<Filter>, wish: Wish) -> Option<Watching> {
        let (watchers, watching) = watch(filters, wish);
        let mut watchers = watchers.into_iter();
        self.each(|_| Some(Request::Watch(Box::new(watchers.next()?)))).then_some(watching)
    }
}

/// Makes a watcher for each worker, with a copy of the same filter for each, and the receiving end.
fn watch(filters: Vec<Filter>, wish: Wish) -> (Vec<Watcher>, Watching) {
    let (queue, packets) = tail_drop(WAITING, WAITING_BYTES);
    let end = Instant::now() + wish.duration;
    let one = |filter| Watcher {
        filter,
        wish,
        queue: queue.clone(),
        end,
        steps_left: wish.steps.unwrap_or(0),
        copies: Vec::new(),
    };
    let watchers = filters.into_iter().map(one).collect();
    (watchers, Watching { packets, end })
}

impl Watcher {
    fn is_over(&self) -> bool {
        let had = self.wish.steps.is_some() && self.steps_left == 0;
        had || self.queue.is_closed() || Instant::now() >= self.end
    }

    /// Copies the packets that the filter may choose.
    fn copy(&mut self, memory: &mut [u8], batch: &mut Batch, chosen: &mut Vec<u16>) {
        self.copies.clear();
        self.filter.choose(memory, batch, chosen);
        if self.wish.steps.is_some() && !self.filter.reads_outcome() {
            chosen.truncate(self.steps_left as usize);
        }
        for &index in chosen.iter() {
            let index = usize::from(index);
            let bytes = batch.bytes(memory, index).unwrap_or_default();
            // The descriptions of steps read headers from the copy.
            let enough =
                if self.wish.steps.is_some() { bytes.len() } else { HEADERS.max(self.wish.snap as usize) };
            let bytes = &bytes[..bytes.len().min(enough)];
            let Some(held) = self.queue.take(bytes.len()) else { continue };
            let (wire, time) = (batch.wire[index], batch.time[index]);
            self.copies.push(Copied { index, bytes: bytes.to_vec(), wire, time, held });
        }
    }

    /// Sends the copies that match the filter.
    fn tell(&mut self, generation: &Generation, batch: &Batch, recorded: &[(usize, Vec<Moment>)]) {
        for Copied { index, mut bytes, wire, time, held } in self.copies.drain(..) {
            let (verdict, port) = (batch.verdict[index], batch.port[index]);
            let reason = verdict.reason().and_then(|number| generation.reasons.get(usize::from(number)));
            let name = reason.map(|reason| &**reason);
            if !self.filter.holds(&Decided { bytes: &bytes, wire, port, verdict, reason: name }) {
                continue;
            }
            let steps = self.wish.steps.map(|_| {
                self.steps_left = self.steps_left.saturating_sub(1);
                let place = recorded.iter().position(|(recorded, _)| *recorded == index);
                place.map_or_else(Vec::new, |place| recorded[place].1.clone())
            });
            bytes.truncate(self.wish.snap as usize);
            let seen = Seen {
                port,
                time,
                bytes,
                wire,
                verdict,
                reason: reason.cloned(),
                out: generation.ledger.reaches(verdict, port).collect(),
                steps,
                program: generation.program.clone(),
                sources: generation.sources.clone(),
            };
            self.queue.send(seen, held);
        }
    }
}

/// All watchers at one worker.
#[derive(Default)]
pub(super) struct Watches {
    watchers: Vec<Watcher>,
    recorder: Recorder,
    chosen: Vec<u16>,
    /// Until this time, the interpreter runs no batch.
    rest: Option<Instant>,
}

/// After a batch in the interpreter, the next batches run as usual for this many times as long.
const REST: u32 = 9;

impl Watches {
    /// Whether nobody watches.
    pub(super) fn is_empty(&self) -> bool {
        self.watchers.is_empty()
    }

    pub(super) fn add(&mut self, watcher: Watcher) {
        // Ended watchers are removed here, too, so that they do not pile up while no packet comes.
        self.watchers.retain(|watcher| !watcher.is_over());
        self.watchers.push(watcher);
    }

    /// Runs the program over a batch, and copies chosen packets for the watchers before anything leaves.
    #[inline]
    pub(super) fn run(
        &mut self,
        stopwatch: &mut Stopwatch,
        generation: &mut Generation,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) {
        if self.watchers.is_empty() {
            stopwatch.run(generation, memory, batch, outputs);
        } else {
            self.run_watched(stopwatch, generation, memory, batch, outputs);
        }
    }

    /// Tells the watchers what became of their packets, after the batch was committed.
    #[inline]
    pub(super) fn told(&mut self, generation: &Generation, batch: &Batch) {
        if !self.watchers.is_empty() {
            self.tell(generation, batch);
        }
    }

    #[cold]
    fn run_watched(
        &mut self,
        stopwatch: &mut Stopwatch,
        generation: &mut Generation,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) {
        self.watchers.retain(|watcher| !watcher.is_over());
        let mut wanted = false;
        let begun = Instant::now();
        let rests = self.rest.is_some_and(|end| begun < end);
        // Filters ask for ports, and know nothing of packets of the machine.
        let marked = batch.port;
        if generation.program.manifest.judges_host {
            host_packets::forget(batch);
        }
        for watcher in &mut self.watchers {
            if watcher.wish.steps.is_some() && rests {
                continue;
            }
            watcher.copy(memory, batch, &mut self.chosen);
            if watcher.wish.steps.is_some() {
                for copied in &watcher.copies {
                    wanted = true;
                    self.recorder.want(copied.index, copied.bytes.clone());
                }
            }
        }
        batch.port = marked;
        if let Some(inspect) = generation.backend.inspect().filter(|_| wanted) {
            let (program, ports) = (&generation.program, generation.ledger.ports());
            inspect.run_observed(program, ports, &mut self.recorder, memory, batch, outputs);
            self.rest = Some(Instant::now() + begun.elapsed() * REST);
        } else {
            stopwatch.run(generation, memory, batch, outputs);
        }
    }

    #[cold]
    fn tell(&mut self, generation: &Generation, batch: &Batch) {
        let recorded = self.recorder.take();
        for watcher in &mut self.watchers {
            watcher.tell(generation, batch, &recorded);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ledger;
    use crate::live::Loaded;
    use lang::pipeline::{CompileOptions, compile};
    use packet::region::SLACK;

    const PROGRAM: &str = "import std.net.{ethernet}
reason odd \"an odd type\"
table hosts: exact(mac) -> port { capacity 64  age 300s  evict lru }
start decoder frame(eth: ethernet) {
    if eth.type == 1 { drop odd }
    learn hosts[eth.src] = in_port
    set eth.type = 7
    match hosts[eth.dst] { some p => send p, none => flood }
}
";

    fn generation() -> Generation {
        let compiled = compile("odd.rav", PROGRAM, &|_| None, &CompileOptions::default());
        let program = compiled.program.expect("right");
        let backends = vec![exec::load(&program, exec::BackendKind::Native, 3, 0).expect("loads")];
        let (program, sources) = (Arc::new(program), Arc::new(compiled.sources));
        let loaded = Loaded { program, sources, backends, schedule: None, steering: Vec::new() };
        loaded.generations(3, 1).remove(0)
    }

    /// Runs packets of these types through the loop's part of this file.
    fn run(watches: &mut Watches, generation: &mut Generation, types: &[u16]) {
        let (mut memory, mut batch) = (vec![0; 64 * types.len() + SLACK], Batch::new());
        for (index, kind) in types.iter().enumerate() {
            let start = 64 * index;
            memory[start..start + 12].copy_from_slice(&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, index as u8]);
            memory[start + 12..start + 14].copy_from_slice(&kind.to_be_bytes());
            batch.push(start as u64, 60, 60, 1 + index as u16 % 3, 5);
        }
        let mut outputs = Outputs::default();
        watches.run(&mut Stopwatch::default(), generation, &mut memory, &mut batch, &mut outputs);
        generation.ledger.commit(&memory, &mut batch, &outputs);
        watches.told(generation, &batch);
    }

    fn watching(watches: &mut Watches, filter: &str, steps: Option<u32>) -> Watching {
        let wish = Wish { snap: 20, duration: Duration::from_secs(60), steps };
        let (watchers, watching) = watch(vec![Filter::new(filter).expect(filter)], wish);
        watchers.into_iter().for_each(|watcher| watches.add(watcher));
        watching
    }

    fn all(watching: &Watching) -> Vec<Seen> {
        std::iter::from_fn(|| watching.next(Duration::ZERO).ok().flatten()).collect()
    }

    #[test]
    fn packets_are_seen_as_they_came_with_what_became_of_them() {
        let (mut watches, mut generation) = (Watches::default(), generation());
        let dropped = watching(&mut watches, "reason == odd", None);
        let by_port = watching(&mut watches, "port == 2 && ethernet.type == 3", None);
        run(&mut watches, &mut generation, &[1, 3, 1]);
        let dropped = all(&dropped);
        assert_eq!(dropped.iter().map(|seen| seen.port).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(dropped[0].reason.as_deref(), Some("odd"));
        assert!(dropped[0].out.is_empty() && dropped[0].bytes.len() == 20 && dropped[0].wire == 60);
        let sent = all(&by_port);
        assert_eq!((sent.len(), sent[0].out.as_slice()), (1, &[1, 3][..]));
        assert_eq!(sent[0].bytes[12..14], [0, 3], "before the program changed it");
    }

    #[test]
    fn who_has_gone_is_forgotten_without_a_packet() {
        let mut watches = Watches::default();
        for _ in 0..5 {
            drop(watching(&mut watches, "arp", None));
        }
        let stays = watching(&mut watches, "arp", None);
        assert_eq!(watches.watchers.len(), 1);
        drop(stays);
    }

    #[test]
    fn steps_are_those_of_the_run_itself() {
        let (mut watches, mut generation) = (Watches::default(), generation());
        let watching = watching(&mut watches, "port == 2", Some(1));
        run(&mut watches, &mut generation, &[3, 4, 1, 3, 4]);
        let seen = all(&watching);
        assert_eq!(seen.len(), 1);
        let told = crate::steps::told(
            &generation.program,
            &generation.sources,
            seen[0].steps.as_ref().expect("asked"),
        );
        let text: Vec<String> = told.iter().map(|step| format!("{} {}", step.place, step.step)).collect();
        assert!(
            text.iter().any(|line| line.contains("learn hosts[02:00:00:00:00:01] = port 2 (new)")),
            "{text:#?}"
        );
        assert!(
            text.iter().any(|line| line.starts_with("odd.rav:8") && line.contains("is not there")),
            "{text:#?}"
        );
        assert_eq!(generation.backend.tables()[0].entries, 4, "every packet was run once");
        run(&mut watches, &mut generation, &[3, 4]);
        assert!(all(&watching).is_empty() && watches.watchers.is_empty(), "one was asked for");
    }

    #[test]
    fn who_goes_away_is_forgotten_and_what_finds_no_room_is_counted() {
        let (mut watches, mut generation) = (Watches::default(), generation());
        let watching = watching(&mut watches, "", None);
        for _ in 0..WAITING / 4 + 1 {
            run(&mut watches, &mut generation, &[3, 3, 3, 3]);
        }
        assert_eq!(watching.lost(), 4);
        assert_eq!(all(&watching).len(), WAITING);
        let all_room = watches.watchers[0].queue.take(WAITING_BYTES);
        assert!(all_room.is_some(), "every byte came back");
        drop(watching);
        run(&mut watches, &mut generation, &[3]);
        assert!(watches.watchers.is_empty());
        let ledger: &Ledger = &generation.ledger;
        assert_eq!(ledger.received().packets, WAITING as u64 + 5);
    }
}
