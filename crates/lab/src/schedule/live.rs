//! Packets in memory fall due by the clock, and the engine's own hold and its own program on a device carry
//! them.
//!
//! The loop is that of a worker between live interfaces (`engine::live`): it takes what has come, has the
//! hold run what is ready, and sleeps in the kernel while there is nothing to do. A packet's delay is from
//! when it was due until it is in the account, whoever ran it and whatever held the loop up. Every packet is
//! known by the time that it carries, so that one that is lost, or out of turn, is found; every verdict is
//! held against the interpreter's. That, putting packets into memory and keeping delays are the laboratory's
//! own work within the loop, the same a packet for all schedules; it is measured by itself.

use super::due::Due;
use super::processors;
use super::used::Used;
use super::waiting::Waiting;
use crate::device_run::ProgramCode;
use crate::device_workload::{DeviceWorkload, PORTS};
use crate::experiment::Figure;
use crate::load_result::LoadResult;
use crate::measure::SEED;
use cpu_time::ThreadTime;
use engine::Ledger;
use exec::kernel::Kernel;
use exec::{AsyncBackend, Backend, Outputs, QueueDepth};
use gpu::{DeviceError, Geometry};
use offload::Offload;
use offload::Offloaded;
use offload::device_queue::{DeviceQueue, Run, Schedule, Supply};
use packet::{BATCH, Batch};
use std::time::{Duration, Instant};

/// So many batches say how long the laboratory's own work takes.
const OWN_BATCHES: usize = 101;

/// Why a device is not measured.
pub(crate) enum Refusal {
    /// It does not have what it is asked for.
    Absent(String),
    /// It fails, or does something wrong.
    Failed(String),
}

impl From<DeviceError> for Refusal {
    fn from(error: DeviceError) -> Refusal {
        match error {
            DeviceError::Missing { .. } => Refusal::Absent(error.to_string()),
            _ => Refusal::Failed(error.to_string()),
        }
    }
}

/// Nanoseconds of a batch alone: taking it, handing it over, what passed on the device and on the way there
/// and back, and committing it.
pub(crate) type Single = [f64; 4];

/// A program on a device, with its accounting.
pub(crate) struct Station {
    backend: Offloaded,
    /// What the device works on side by side.
    pub(crate) workers: usize,
    ledger: Ledger,
    outputs: Outputs,
    /// The number of the next packet.
    next: u64,
}

impl Station {
    /// Loads the program with so much room on a device, and lets the processor run every packet once.
    pub(crate) fn open(
        used: &Used<'_>,
        workload: &mut DeviceWorkload,
        depth: QueueDepth,
    ) -> Result<Station, Refusal> {
        let offload = Offload::new(&workload.program, PORTS, SEED, &workload.options);
        let offload = offload.map_err(|error| Refusal::Failed(error.to_string()))?;
        let mut workers = 1;
        let open = |kernel: &Kernel, geometry: Geometry| {
            let code = ProgramCode { kernel, program: &workload.program };
            let device = used.device_source.open(&code, geometry, used.setup)?;
            workers = device.workers();
            Ok(device)
        };
        let backend = processors::beside(|| Offloaded::new(offload, depth, open))?;
        let ledger = Ledger::new(&workload.program, PORTS);
        let mut station = Station { backend, workers, ledger, outputs: Outputs::default(), next: 0 };
        while station.next < workload.len() as u64 {
            station.here(workload, BATCH).map_err(Refusal::Failed)?;
        }
        Ok(station)
    }

    /// A hold for a schedule over it.
    pub(crate) fn hold(&mut self, schedule: Schedule) -> Result<DeviceQueue, String> {
        let device_queue = DeviceQueue::new(&mut self.backend, schedule, Instant::now());
        device_queue.ok_or_else(|| self.failure().unwrap_or_else(|| "the device takes no packets".to_owned()))
    }

    /// Lets the processor run the next packets, at most a batch; how many, and how long that took.
    pub(crate) fn here(
        &mut self,
        workload: &mut DeviceWorkload,
        packets: usize,
    ) -> Result<(usize, Duration), String> {
        // With nothing begun on the device, the processor runs them.
        self.backend.asynchronous();
        let mut batch = Batch::new();
        workload.fill(&mut batch, self.next, packets);
        let begin = Instant::now();
        self.outputs.clear();
        self.backend.run(workload.memory(), &mut batch, &mut self.outputs);
        let took = begin.elapsed();
        check(workload, self.next, &batch)?;
        self.next += batch.len as u64;
        Ok((batch.len, took))
    }

    /// Nanoseconds a packet of the laboratory's own work: putting it into memory, holding it against the
    /// interpreter's, and keeping its delay.
    pub(crate) fn laboratory(&mut self, workload: &mut DeviceWorkload) -> Result<[f64; 3], String> {
        let mut carried = LoadResult::new()?;
        let mut parts: [Vec<f64>; 3] = Default::default();
        let mut batch = Batch::new();
        self.backend.asynchronous();
        for _ in 0..OWN_BATCHES {
            let begin = Instant::now();
            workload.fill(&mut batch, self.next, BATCH);
            let filled = Instant::now();
            self.outputs.clear();
            self.backend.run(workload.memory(), &mut batch, &mut self.outputs);
            let ran = Instant::now();
            check(workload, self.next, &batch)?;
            let checked = Instant::now();
            (0..batch.len).for_each(|packet| carried.delay(10_000 + 100 * packet as u64));
            let kept = checked.elapsed();
            self.next += batch.len as u64;
            for (part, took) in parts.iter_mut().zip([filled - begin, checked - ran, kept]) {
                part.push(took.as_nanos() as f64 / batch.len.max(1) as f64);
            }
        }
        Ok(parts.map(|part| Figure::of(part).map_or(0.0, |figure| figure.median)))
    }

    /// Carries packets that fall due, until all are done.
    pub(crate) fn carry(
        &mut self,
        workload: &mut DeviceWorkload,
        device_queue: &mut DeviceQueue,
        due: Due<'_>,
    ) -> Result<LoadResult, String> {
        let before = self.on_device();
        let mut carried = LoadResult::new()?;
        let first = self.next;
        let (mut batch, mut done) = (Batch::new(), 0);
        let mut rest = Waiting::new().map_err(|error| format!("a timer: {error}"))?;
        let start = Instant::now();
        let mut taken = 0;
        loop {
            let now = nanoseconds(start);
            let waiting = if device_queue.has_room() { due.waiting(taken, now, BATCH) } else { 0 };
            if waiting > 0 {
                workload.fill(&mut batch, self.next, waiting);
                taken += batch.len;
                self.next += batch.len as u64;
            }
            let mut way =
                Way { station: self, workload, due, first, start, done: &mut done, carried: &mut carried };
            if waiting > 0 {
                device_queue.take(&mut way, workload.packets.frames.memory(), &batch)?;
            }
            let ran = device_queue.run(&mut way, Supply::Unknown)?;
            if due.is_over(taken, nanoseconds(start)) {
                device_queue.run(&mut way, Supply::Ended)?;
                break;
            }
            if waiting == 0 && !ran {
                if device_queue.is_under_way() {
                    // The device has packets: it is asked again soon.
                    std::thread::yield_now();
                } else {
                    let next = due.time(taken).map_or(0, |time| time.saturating_sub(nanoseconds(start)));
                    let schedule = device_queue.due(Instant::now());
                    let waited = rest.wait(Duration::from_nanos(next), schedule);
                    waited.map_err(|error| format!("waiting: {error}"))?;
                }
            }
        }
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        if !device_queue.is_empty() || done != taken as u64 {
            return Err(format!("of {taken} packets {done} were done"));
        }
        carried.end(done, self.on_device() - before, nanoseconds(start));
        Ok(carried)
    }

    /// One batch alone, of so many packets: nanoseconds of this thread to take it, to hand it over and to
    /// commit it, and all that passed besides until it could be committed. What this thread did not run is no
    /// part of its own work.
    pub(crate) fn single(
        &mut self,
        workload: &mut DeviceWorkload,
        device_queue: &mut DeviceQueue,
        packets: usize,
        carried: &mut LoadResult,
    ) -> Result<Single, String> {
        let mut batch = Batch::new();
        workload.fill(&mut batch, self.next, packets);
        let (first, mut done) = (self.next, 0);
        self.next += batch.len as u64;
        let way = Way {
            station: self,
            workload,
            due: Due::Always(0),
            first,
            start: Instant::now(),
            done: &mut done,
            carried,
        };
        let mut alone = SingleBatch { way, committing: None };
        let bare = Timestamp::now();
        let start = Timestamp::now();
        device_queue.take(&mut alone, workload.packets.frames.memory(), &batch)?;
        let taken = Timestamp::now();
        let mut begun = None;
        // A batch that comes behind the last different packet is shorter than was asked for; nobody waits for
        // the rest.
        let supply = if batch.len == packets { Supply::Unknown } else { Supply::Ended };
        loop {
            device_queue.run(&mut alone, supply)?;
            begun.get_or_insert_with(Timestamp::now);
            if device_queue.is_empty() {
                break;
            }
            std::thread::yield_now();
        }
        let end = Timestamp::now();
        let (Some(back), Some(begun)) = (alone.committing, begun) else {
            return Err("a batch was not run".to_owned());
        };
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        // What was ready at once was committed before the hold came back.
        let begun = if back.clock < begun.clock { back } else { begun };
        // Looking at the clocks is no work of the loop.
        let look = bare.work_until(start);
        let work = |from: Timestamp, to: Timestamp| from.work_until(to).saturating_sub(look);
        let [take, begin, commit] = [work(start, taken), work(taken, begun), work(back, end)];
        let away = (back.clock - start.clock).saturating_sub(take + begin + 2 * look);
        Ok([take, begin, away, commit].map(|part| part.as_nanos() as f64))
    }

    fn on_device(&self) -> u64 {
        self.backend.on_device().map_or(0, |device| device.tally.device)
    }

    fn failure(&self) -> Option<String> {
        self.backend.on_device()?.failure
    }
}

/// What a packet passes after it was held.
struct Way<'a> {
    station: &'a mut Station,
    workload: &'a DeviceWorkload,
    due: Due<'a>,
    /// The number of the first packet of the run.
    first: u64,
    start: Instant,
    done: &'a mut u64,
    carried: &'a mut LoadResult,
}

impl Run for Way<'_> {
    type Error = String;

    fn device(&mut self) -> Option<&mut dyn AsyncBackend> {
        self.station.backend.asynchronous()
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn batch(&mut self, memory: &mut [u8], batch: &mut Batch) -> Result<(), String> {
        let Station { backend, ledger, outputs, .. } = &mut *self.station;
        outputs.clear();
        backend.run(memory, batch, outputs);
        ledger.commit(memory, batch, outputs);
        let now = nanoseconds(self.start);
        let number = *self.done as usize;
        for time in (number..number + batch.len).map_while(|number| self.due.time(number)) {
            self.carried.delay(now.saturating_sub(time));
        }
        check(self.workload, self.first + *self.done, batch)?;
        *self.done += batch.len as u64;
        Ok(())
    }
}

/// The way of one batch, with when it began to be committed.
struct SingleBatch<'a> {
    way: Way<'a>,
    committing: Option<Timestamp>,
}

/// A time by the clock, and by the work of this thread.
#[derive(Clone, Copy)]
struct Timestamp {
    clock: Instant,
    work: ThreadTime,
}

impl Timestamp {
    fn now() -> Timestamp {
        Timestamp { clock: Instant::now(), work: ThreadTime::now() }
    }

    /// How long this thread worked from then on.
    fn work_until(self, then: Timestamp) -> Duration {
        then.work.duration_since(self.work)
    }
}

impl Run for SingleBatch<'_> {
    type Error = String;

    fn device(&mut self) -> Option<&mut dyn AsyncBackend> {
        self.way.device()
    }

    fn now(&self) -> Instant {
        self.way.now()
    }

    fn batch(&mut self, memory: &mut [u8], batch: &mut Batch) -> Result<(), String> {
        self.committing.get_or_insert_with(Timestamp::now);
        self.way.batch(memory, batch)
    }
}

/// Whether these are the packets from `number` on, with the interpreter's verdicts.
fn check(workload: &DeviceWorkload, number: u64, batch: &Batch) -> Result<(), String> {
    for (place, time) in batch.time[..batch.len].iter().enumerate() {
        if *time != DeviceWorkload::time(number + place as u64) {
            return Err(format!("packet {} was not the next one to be done", number + place as u64));
        }
    }
    let packets = workload.len() as u64;
    let round = (packets - number % packets) as usize;
    let (these, next) = batch.verdicts().split_at(batch.len.min(round));
    let wrong = workload.wrong(number, these).or_else(|| workload.wrong(number + these.len() as u64, next));
    wrong.map_or(Ok(()), Err)
}

fn nanoseconds(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crossover::cases::{CASES, Contents};
    use crate::device_run::find;
    use crate::plan::Length;
    use crate::{DeviceChoice, LabPlan, TablesPlan};
    use gpu::Setup;
    use packet::Verdict;

    #[test]
    fn a_packet_out_of_turn_and_a_wrong_verdict_are_found() {
        let plan = LabPlan {
            kinds: Vec::new(),
            captures: Vec::new(),
            runs: 1,
            length: Length::Repeat(1),
            quick: true,
            tables: TablesPlan::default(),
            gateways: Vec::new(),
            prefixes: Vec::new(),
            guest: None,
            simulated: Vec::new(),
            device: DeviceChoice::Host,
            until: None,
        };
        let contents = Contents::new(&plan).expect("tables can be made");
        let mut workload = CASES[0].workload(&contents).expect("a program");
        let device_source = find(DeviceChoice::Host).expect("threads");
        let (device_source, setup) = (device_source.as_ref(), Setup::default());
        let used = Used { name: String::new(), device_source, setup, most: BATCH, wanted: false };
        let depth = QueueDepth { packets: BATCH, device_batches: 2 };
        let Ok(mut station) = Station::open(&used, &mut workload, depth) else { panic!("threads refuse it") };
        let mut batch = Batch::new();
        workload.fill(&mut batch, 7, 20);
        let mut outputs = Outputs::default();
        station.backend.run(workload.memory(), &mut batch, &mut outputs);
        assert_eq!(check(&workload, 7, &batch), Ok(()));
        let error = check(&workload, 8, &batch).expect_err("it is the one before");
        assert_eq!(error, "packet 8 was not the next one to be done");
        batch.verdict[19] = Verdict::drop(9);
        let error = check(&workload, 7, &batch).expect_err("it is wrong");
        assert!(error.starts_with("the verdict on packet 26 is"), "{error}");
        // Numbers go on where packets begin again.
        let last = workload.len() as u64 - 1;
        workload.fill(&mut batch, last, 1);
        station.backend.run(workload.memory(), &mut batch, &mut outputs);
        let mut next = Batch::new();
        workload.fill(&mut next, last + 1, 1);
        station.backend.run(workload.memory(), &mut next, &mut outputs);
        batch.push(next.frame[0], next.captured[0], next.wire[0], next.port[0], next.time[0]);
        batch.verdict[1] = next.verdict[0];
        assert_eq!(check(&workload, last, &batch), Ok(()));
        batch.verdict[1] = Verdict::drop(9);
        assert!(check(&workload, last, &batch).is_err());
    }
}
