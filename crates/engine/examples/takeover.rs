//! For how long a worker takes no packets while another program takes over, by what its tables hold; beside
//! it the same loop without.
//!
//! `cargo run --release -p engine --example takeover -- [ROUNDS]`

use engine::live::{Loaded, Remote, run, workers};
use exec::{BackendKind, load_measurable};
use ir::{Entry, Match};
use lang::pipeline::{CompileOptions, compile};
use packet::region::{HEADROOM, SLACK};
use packet::{Batch, VirtioHeader};
use ports::live::clock::{Clock, MachineClock, Now};
use ports::live::{Lane, ReceiveLosses, Receiver, SendLosses, Sender};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const TEXT: &str = r#"
import std.net.ethernet
reason refused "no rule allows it"
table hosts: exact(mac) -> port { capacity 1100000  idle 1h  evict lru }
table acl: rules(to: mac, kind: u16) -> bool { capacity 200000 }
start decoder frame(eth: ethernet) {
    learn hosts[eth.src] = in_port
    match acl[eth.dst, eth.type] { some _ => { send 2 } none => { drop refused } }
}
"#;
/// Bytes from one frame to the next, and of a frame.
const ROOM: usize = 256;
const LENGTH: usize = 60;
/// Packets of a batch.
const BATCH: usize = 64;
/// From one takeover to the next.
const REST: Duration = Duration::from_millis(200);
/// The same where entries of a million move meanwhile.
const LONG_REST: Duration = Duration::from_secs(4);
/// Times of each kind that are taken if nobody says how many.
const ROUNDS: usize = 20;

/// The longest time between two questions for packets, ns.
#[derive(Clone, Default)]
struct Longest {
    /// By the clock on the wall.
    passed: Arc<AtomicU64>,
    /// By that of the thread, which stands while others have its backend.
    worked: Arc<AtomicU64>,
}

impl Longest {
    fn take(&self) -> [u64; 2] {
        [&self.passed, &self.worked].map(|one| one.swap(0, Ordering::Relaxed))
    }
}

/// Always has packets, and notes when it is asked for some.
struct Source {
    memory: Vec<u8>,
    last: Option<(Instant, Duration)>,
    longest: Longest,
    silent: (UnixStream, UnixStream),
    /// One that has none.
    is_empty: bool,
}

impl Receiver for Source {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        batch.clear();
        if self.is_empty {
            return &mut self.memory;
        }
        let worked = clock_gettime(ClockId::ThreadCPUTime);
        let worked = Duration::new(worked.tv_sec as u64, worked.tv_nsec as u32);
        let asked = Instant::now();
        if let Some((last, before)) = self.last.replace((asked, worked)) {
            let Longest { passed, worked: longest } = &self.longest;
            passed.fetch_max(asked.duration_since(last).as_nanos() as u64, Ordering::Relaxed);
            longest.fetch_max(worked.saturating_sub(before).as_nanos() as u64, Ordering::Relaxed);
        }
        batch.headroom = HEADROOM as u32;
        for index in 0..BATCH {
            let start = index * ROOM + HEADROOM;
            batch.push(start as u64, LENGTH as u32, LENGTH as u32, 1, now.program);
        }
        &mut self.memory
    }

    fn descriptor(&self) -> RawFd {
        self.silent.0.as_raw_fd()
    }

    fn losses(&mut self) -> ReceiveLosses {
        ReceiveLosses::default()
    }
}

/// Where packets end.
struct Sink;

impl Sender for Sink {
    fn send(&mut self, _frame: &[u8], _offload: VirtioHeader) {}

    fn flush(&mut self) {}

    fn losses(&self) -> SendLosses {
        SendLosses::default()
    }
}

/// A lane that has packets, or none.
fn lane(longest: &Longest, is_empty: bool) -> Result<Lane, Box<dyn Error>> {
    let mut memory = vec![0; BATCH * ROOM + SLACK];
    for (number, frame) in (0_u8..).zip(memory.chunks_exact_mut(ROOM)) {
        frame[HEADROOM..][..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, number, 8, 0]);
    }
    let (longest, silent) = (longest.clone(), UnixStream::pair()?);
    let receive = Box::new(Source { memory, last: None, longest, silent, is_empty });
    Ok(Lane { receive, send: Box::new(Sink) })
}

/// A program with so many rules.
fn loaded(text: &str, rules: u128) -> Result<Loaded, Box<dyn Error>> {
    let compiled = compile("takeover.rav", text, &|_| None, &CompileOptions::default());
    let program = Arc::new(compiled.program.ok_or_else(|| format!("{:?}", compiled.diagnostics))?);
    let mut backend = load_measurable(&program, BackendKind::Native, 2, 0)?;
    let acl = program.tables.iter().position(|table| table.name == "acl").ok_or("no rules")? as u32;
    let rule = |number| {
        let key = vec![Match::Exact(0x0200_0000_0001 + number), Match::Any];
        Entry { key, value: vec![1], priority: 0 }
    };
    backend.replace(acl, (0..rules).map(rule).collect())?;
    Ok(Loaded {
        program,
        sources: Arc::new(compiled.sources),
        backends: vec![backend],
        schedule: None,
        steering: Vec::new(),
    })
}

/// Lowest, middle and highest, in microseconds.
fn told(mut nanoseconds: Vec<u64>) -> String {
    nanoseconds.sort_unstable();
    let at = |place: usize| nanoseconds.get(place).copied().unwrap_or_default() as f64 / 1e3;
    let last = nanoseconds.len().saturating_sub(1);
    format!("{:>8.1} {:>8.1} {:>10.1}", at(last / 2), at(last * 9 / 10), at(last))
}

/// Programs take over from a first one whose packets made so many entries; between them as many times none
/// does.
fn case(name: &str, rules: u128, learned: u128, new: &str, rounds: usize) -> Result<(), Box<dyn Error>> {
    let longest = Longest::default();
    let clock: Arc<dyn Clock> = Arc::new(MachineClock);
    let (crew, remote) = workers(vec![vec![lane(&longest, false)?, lane(&longest, true)?]], &clock)?;
    let mut first = loaded(TEXT, rules)?;
    for number in 0..learned {
        first.backends[0].learn(0, &Entry::exact(&[number], &[1]), clock.program())?;
    }
    let (first, of_crew) = (first.generations(2, 1), remote.clone());
    let running = thread::spawn(move || run(crew, first, &of_crew, &[]));
    let (mut with, mut moving, mut without, mut said) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let window = |act: &mut dyn FnMut() -> Result<(), Box<dyn Error>>| {
        longest.take();
        act()?;
        // The first packets behind it are in it, too.
        remote.ask(|_, _| ()).ok_or("it has ended")?;
        Ok::<_, Box<dyn Error>>(longest.take())
    };
    // The first batch of all takes long.
    thread::sleep(REST);
    for round in 0..rounds {
        let text = if round % 2 == 0 { new } else { TEXT };
        let mut next = loaded(text, rules)?;
        remote.make_ready(&mut next, u64::MAX).ok_or("it has ended")?;
        let mut generations = Some(next.generations(2, round as u64 + 2));
        let mut replaced = None;
        with.push(window(&mut || {
            replaced = remote.replace(generations.take().unwrap_or_default(), Vec::new());
            Ok(())
        })?);
        let replaced = replaced.ok_or("it has ended")?;
        let carried = replaced.outcome?;
        let entries: u64 = carried[0].tables.iter().map(|(_, entries)| entries).sum();
        assert!(u128::from(entries) >= learned, "{entries} of {learned} went over");
        said.push(replaced.pause.as_nanos() as u64);
        // Entries that move behind a takeover do so now.
        moving.push(window(&mut || {
            thread::sleep(if new == TEXT { REST } else { LONG_REST });
            Ok(())
        })?);
        without.push(window(&mut || look(&remote))?);
    }
    remote.stop();
    let ended = running.join().map_err(|_| "the worker broke off")?;
    ended.failure.map_or(Ok(()), Err)?;
    let told_of = |of: &[[u64; 2]], clock: usize| told(of.iter().map(|one| one[clock]).collect());
    println!("{name}, {rules} rules, {learned} learned");
    for (what, clock) in [("passed", 0), ("worked", 1)] {
        println!(
            "  {what:<8} {} {} {}",
            told_of(&with, clock),
            told_of(&moving, clock),
            told_of(&without, clock)
        );
    }
    println!("  answered {}", told(said));
    Ok(())
}

/// Asks as often as a takeover does.
fn look(remote: &Remote) -> Result<(), Box<dyn Error>> {
    remote.ask(|_, _| ()).map(|_| ()).ok_or_else(|| "it has ended".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(ROUNDS), |rounds| rounds.parse())?;
    let other_lives = TEXT.replace("capacity 1100000  idle 1h", "capacity 1200000  idle 50min");
    let other_place = TEXT.replace("table hosts", "table first: exact(u8) { entries { 1 } }\ntable hosts");
    println!(
        "Longest time between two batches in µs: median, nine of ten, longest; with a takeover, in the time behind it, and without. {rounds} rounds."
    );
    println!(
        "Passed: by the clock. Worked: by that of the worker's thread. Answered: as the answer to a reload says."
    );
    for rules in [100, 10_000, 100_000] {
        case("the same program", rules, 100, TEXT, rounds)?;
    }
    case("the same program", 100, 1_000_000, TEXT, rounds)?;
    case("with another capacity and idle time", 100, 1_000_000, &other_lives, rounds)?;
    case("with a table before", 100, 1_000_000, &other_place, rounds)?;
    for learned in [1_000, 10_000, 100_000] {
        let evicts = TEXT.replace("evict lru", "evict refuse").replace("in_port\n", "in_port else {}\n");
        case("copied: with another way to evict", 100, learned, &evicts, rounds.min(10))?;
    }
    Ok(())
}
