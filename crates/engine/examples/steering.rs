//! Packets a second of `programs/stateful.rav` on one worker and on two, in memory: packets that come in at
//! their own worker, and packets that come in at random ones and cross over rings.
//! `cargo run --release -p engine --example steering -- CONNECTIONS [ROUNDS]`
//!
//! The three take turns of a second. A rate is told by the clock, and by the time that the workers have been
//! on a processor: what each of them would do on a processor of its own.

use captures::generate::TcpStep;
use engine::live::{Ended, Loaded, Remote, load_steering, run, worker_of, workers};
use exec::{BackendKind, Outputs, load};
use ir::Program;
use lang::pipeline::{CompileOptions, compile};
use packet::{BATCH, Batch, Frames, VirtioHeader};
use ports::live::clock::{Clock, MachineClock, Now};
use ports::live::{Lane, ReceiveLosses, Receiver, SendLosses, Sender};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tables::generate::Random;

const INSIDE: u16 = 1;
const OUTSIDE: u16 = 2;
/// Segments of data, which come again and again.
const SEGMENTS: usize = 1 << 18;
/// How many packets are between lanes in and lanes out at most.
const UNDER_WAY: u64 = 4096;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What all lanes of a crew know.
#[derive(Default)]
struct Meter {
    /// How many packets may be given out in all.
    wanted: AtomicU64,
    given: AtomicU64,
    sent: AtomicU64,
}

/// Packets of one lane: first those that open connections, step by step, then data again and again.
struct In {
    frames: Frames,
    ports: Vec<u16>,
    /// Where the data begins.
    data: usize,
    next: usize,
    /// How many of the opening packets may come by now.
    open: Arc<AtomicU64>,
    meter: Arc<Meter>,
    silent: (UnixStream, UnixStream),
}

impl Receiver for In {
    fn receive<'a>(&'a mut self, batch: &mut Batch, _: Now) -> &'a mut [u8] {
        batch.clear();
        let Meter { wanted, given, sent } = &*self.meter;
        let given = given.load(Ordering::Relaxed);
        let busy = given.saturating_sub(sent.load(Ordering::Relaxed)) > UNDER_WAY;
        let end = if self.next < self.data {
            if busy { self.next } else { self.open.load(Ordering::Acquire) as usize }
        } else if busy || given >= wanted.load(Ordering::Relaxed) {
            self.next
        } else {
            self.ports.len()
        };
        let first = self.next;
        let filled = self.frames.fill(batch, first..end.min(first + BATCH));
        batch.port[..filled].copy_from_slice(&self.ports[first..first + filled]);
        self.meter.given.fetch_add(filled as u64, Ordering::Relaxed);
        self.next += filled;
        if self.next == self.ports.len() {
            self.next = self.data;
        }
        self.frames.memory_mut()
    }

    fn descriptor(&self) -> RawFd {
        self.silent.0.as_raw_fd()
    }

    fn due(&self) -> Option<u64> {
        let runs = self.meter.given.load(Ordering::Relaxed) < self.meter.wanted.load(Ordering::Relaxed);
        Some(if runs { 0 } else { MachineClock.program() + 1_000_000 })
    }

    fn losses(&mut self) -> ReceiveLosses {
        ReceiveLosses::default()
    }
}

/// Counts what leaves.
struct Out {
    count: u64,
    meter: Arc<Meter>,
}

impl Sender for Out {
    fn send(&mut self, _: &[u8], _: VirtioHeader) {
        self.count += 1;
    }

    fn flush(&mut self) {
        self.meter.sent.fetch_add(std::mem::take(&mut self.count), Ordering::Relaxed);
    }

    fn losses(&self) -> SendLosses {
        SendLosses::default()
    }
}

struct Crew {
    remote: Remote,
    running: thread::JoinHandle<Ended>,
    meter: Arc<Meter>,
}

impl Crew {
    /// Workers whose connections are open. `lane` says where a packet comes in.
    fn open(
        program: &Arc<Program>,
        count: usize,
        traffic: &[Vec<(u16, [u8; 60])>],
        mut lane: impl FnMut(&[u8; 60]) -> usize,
    ) -> Result<Crew> {
        let meter = Arc::new(Meter::default());
        let mut lanes: Vec<(Frames, Vec<u16>)> = (0..count).map(|_| Default::default()).collect();
        let mut ends = vec![Vec::new(); count];
        for step in traffic {
            for (port, bytes) in step {
                let (frames, ports) = &mut lanes[lane(bytes)];
                frames.push(bytes, 60, MachineClock.program());
                ports.push(*port);
            }
            ends.iter_mut().zip(&lanes).for_each(|(ends, (_, ports))| ends.push(ports.len()));
        }
        let open: Vec<_> = (0..count).map(|_| Arc::new(AtomicU64::new(0))).collect();
        let mut parts = Vec::new();
        for (at, (frames, ports)) in lanes.into_iter().enumerate() {
            let (data, meter, open) = (ends[at][traffic.len() - 2], meter.clone(), open[at].clone());
            let out = || Box::new(Out { count: 0, meter: meter.clone() });
            let (inside, outside) = (out(), out());
            let silent = (UnixStream::pair()?, UnixStream::pair()?);
            let receive = Box::new(In { frames, ports, data, next: 0, open, meter, silent: silent.0 });
            parts.push(vec![
                Lane { receive, send: inside },
                Lane { receive: Box::new(Nothing(silent.1)), send: outside },
            ]);
        }
        let clock: Arc<dyn Clock> = Arc::new(MachineClock);
        let (crew, remote) = workers(parts, &clock)?;
        let backend = |_| load(program, BackendKind::Native, 2, 1);
        let loaded = Loaded {
            program: program.clone(),
            sources: Arc::default(),
            backends: (0..count).map(backend).collect::<std::result::Result<_, _>>()?,
            schedule: None,
            steering: load_steering(program, BackendKind::Native, count as u16)?,
        };
        let (generations, for_crew) = (loaded.generations(2, 1), remote.clone());
        let running = thread::spawn(move || run(crew, generations, &for_crew, &[]));
        let mut all = 0;
        for (step, packets) in traffic[..traffic.len() - 1].iter().enumerate() {
            open.iter().zip(&ends).for_each(|(open, ends)| open.store(ends[step] as u64, Ordering::Release));
            all += packets.len() as u64;
            while meter.sent.load(Ordering::Relaxed) < all {
                thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(Crew { remote, running, meter })
    }

    /// Millions of packets a second for a second: by the clock, and by the time on a processor.
    fn turn(&self, workers: f64) -> Result<(f64, f64)> {
        let (begun, busy, before) =
            (Instant::now(), on_processor()?, self.meter.sent.load(Ordering::Relaxed));
        self.meter.wanted.store(u64::MAX, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(1));
        self.meter.wanted.store(0, Ordering::Relaxed);
        let sent = (self.meter.sent.load(Ordering::Relaxed) - before) as f64 / 1e6;
        Ok((sent / begun.elapsed().as_secs_f64(), sent / (on_processor()? - busy) * workers))
    }
}

/// A port by which nothing comes.
struct Nothing((UnixStream, UnixStream));

impl Receiver for Nothing {
    fn receive<'a>(&'a mut self, batch: &mut Batch, _: Now) -> &'a mut [u8] {
        batch.clear();
        &mut []
    }

    fn descriptor(&self) -> RawFd {
        self.0.0.as_raw_fd()
    }

    fn losses(&mut self) -> ReceiveLosses {
        ReceiveLosses::default()
    }
}

fn main() -> Result<()> {
    let argument = |at| std::env::args().nth(at);
    let count: u32 = argument(1).as_deref().unwrap_or("100000").parse()?;
    let rounds: usize = argument(2).as_deref().unwrap_or("7").parse()?;
    let text = include_str!("../../../programs/stateful.rav");
    let text = format!("{text}\nconst MOST_ASSURED: u64 = {0}\nconst MOST_UNASSURED: u64 = {0}\n", count * 2);
    let compiled = compile("stateful.rav", &text, &|_| None, &CompileOptions::default());
    let program = Arc::new(compiled.program.ok_or("the program compiles")?);
    let mut random = Random::new(1);
    let step = |reply, sequence, acknowledgement, flags| TcpStep { reply, sequence, acknowledgement, flags };
    let open = [step(false, 1000, 0, 0x02), step(true, 5000, 1001, 0x12), step(false, 1001, 5001, 0x10)];
    let then = [step(true, 5001, 1001, 0x10), step(false, 1001, 5001, 0x10)];
    let frame =
        |step: &TcpStep, number| (if step.reply { OUTSIDE } else { INSIDE }, step.of_connection(number));
    let all = |step: &TcpStep| (0..count).map(|number| frame(step, number)).collect::<Vec<_>>();
    let mut traffic: Vec<_> = open.iter().map(all).collect();
    let data = (0..SEGMENTS).map(|at| frame(&then[at % 2], random.below(count.into()) as u32));
    traffic.push(data.collect());
    let steering = program.steering.as_deref().ok_or("it steers")?;
    let mut steering = load(steering, BackendKind::Native, u16::MAX, 0)?;
    let owner = |bytes: &[u8; 60]| {
        let mut batch = Batch::new();
        let mut memory = batch.hold_one(bytes, 60, 1, 0);
        steering.run(&mut memory, &mut batch, &mut Outputs::default());
        worker_of(batch.verdict[0], 2)
    };
    let crews = [
        ("one worker", 1.0, Crew::open(&program, 1, &traffic, |_| 0)?),
        ("two, at their own", 2.0, Crew::open(&program, 2, &traffic, owner)?),
        ("two, at random", 2.0, Crew::open(&program, 2, &traffic, |_| random.below(2) as usize)?),
    ];
    let mut rates = vec![(Vec::new(), Vec::new()); crews.len()];
    for _ in 0..rounds {
        for ((_, workers, crew), rates) in crews.iter().zip(&mut rates) {
            let (wall, own) = crew.turn(*workers)?;
            rates.0.push(wall);
            rates.1.push(own);
        }
    }
    let told = |rates: &mut Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        format!("{:.2} ({:.2} to {:.2})", rates[rates.len() / 2], rates[0], rates[rates.len() - 1])
    };
    println!("{count} connections, M packets a second: by the clock; by time on a processor");
    for ((what, _, crew), rates) in crews.into_iter().zip(&mut rates) {
        println!("{what}: {}; {}", told(&mut rates.0), told(&mut rates.1));
        crew.remote.stop();
        let ended = crew.running.join().map_err(|_| "a worker has broken off")?;
        if let Some(failure) = ended.failure {
            return Err(failure.into());
        }
        let dropped: u64 = ended
            .generations
            .iter()
            .map(|part| part.ledger.received().packets - part.ledger.forwarded().packets)
            .sum();
        println!("  dropped: {dropped}");
    }
    Ok(())
}

/// Seconds that all threads of this process have been on a processor.
fn on_processor() -> Result<f64> {
    let mut all = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        all += text.split_whitespace().next().ok_or("it has a time")?.parse::<u64>()?;
    }
    Ok(all as f64 / 1e9)
}
