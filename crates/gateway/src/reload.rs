//! Reload: a thread of its own reads and loads the new program, and all workers then change over to it. A
//! reload that takes too long is given up.
//!
//! ```text
//! asked ──► wait for the one before ──► read, load, compare ──► open new ports ──► fill its tables
//!           └──────────── until the deadline ───────┘                             ▼
//!                              close ports that went ◄── all workers change over, or none
//! ```
//!
//! Ports come and go one by one, and those that stay keep their numbers. A worker changes its ports together
//! with its program, between two batches, when everything that it sent has been handed over.
//!
//! No thread can end another thread. The thread of a reload that was given up runs on until its work ends,
//! and its result is then thrown away. The number of such threads is limited.

use crate::config::{Config, ConfigError};
use crate::control::ControlAnswer;
use crate::control_server::{ConfigReader, ControlServer, ended};
use crate::limits::{OVERDUE, RELOAD};
use crate::names::{self, PacketTables};
use crate::open_ports::{self, OpenPort, Opened};
use crate::review::{self, Policies, PolicyReview, ReloadWish, ReviewedProgram, Takeover};
use crate::routing::NewHosts;
use engine::live::look::Counted;
use engine::live::{Generation, Loaded, OtherPorts};
use engine::{Imbalance, Report};
use exec::replace::TakeoverReport;
use ir::Program;
use packet::PortNumber;
use ports::live::clock::{Clock, MachineClock};
use ports::live::tunnel::TunnelChange;
use ports::live::{Lane, exchange};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

/// How often a waiting reload tests whether it is its turn, or whether the gateway ends.
const LOOK: Duration = Duration::from_millis(20);

/// The state that all reloads share.
pub(crate) struct Reloading {
    /// How many programs have taken over. A reload locks this before it reads, so the program that was read
    /// last is the one that runs in the end.
    generations: Mutex<u64>,
    /// The number of threads that read or load.
    under_way: Arc<AtomicUsize>,
    /// How long a reload may take to read and load.
    pub(crate) limit: Duration,
    earlier: Mutex<Earlier>,
}

/// The programs that were replaced.
#[derive(Default)]
struct Earlier {
    programs: u64,
    /// The account of all their packets.
    report: Report,
}

/// A thread that reads or loads, until it ends.
struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Reloading {
    /// The state at the start, when one program runs.
    pub(crate) fn new() -> Reloading {
        Reloading {
            generations: Mutex::new(1),
            under_way: Arc::default(),
            limit: RELOAD,
            earlier: Mutex::default(),
        }
    }

    /// Does something while no reload is under way; `None` if one does not come to its end.
    pub(crate) fn between<T>(&self, what: impl FnOnce() -> T) -> Option<T> {
        let turn = self.turn(Instant::now() + self.limit)?;
        let done = what();
        drop(turn);
        Some(done)
    }

    /// Waits until it is this reload's turn, at most until `end`.
    fn turn(&self, end: Instant) -> Option<MutexGuard<'_, u64>> {
        loop {
            match self.generations.try_lock() {
                Ok(turn) => return Some(turn),
                Err(TryLockError::Poisoned(turn)) => return Some(turn.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(LOOK),
                Err(TryLockError::WouldBlock) => return None,
            }
        }
    }
}

/// What a reload read.
struct Read {
    config: Config,
    /// The program that the file names.
    loaded: Loaded,
    policies: Policies,
    /// Of each port, whether it is opened anew.
    anew: Vec<bool>,
    review: PolicyReview,
}

/// What runs while a reload reads.
struct Before {
    config: Config,
    program: ReviewedProgram,
    held: Vec<u64>,
}

/// Reads the gateway's file again, loads the program that it names, and compares it with the one that runs.
fn read(reader: &ConfigReader, running: &Before, wish: &ReloadWish) -> Result<Read, String> {
    let config = (reader.config)()?;
    let anew = running.config.takes(&config).map_err(|error| error.to_string())?;
    let (loaded, policies) = (reader.load)(&config)?;
    config.workers.suit(&loaded.program).map_err(|error| error.to_string())?;
    config.check_keys().map_err(|error| error.to_string())?;
    let ports_change = anew.contains(&true) || anew.len() != running.config.ports.len();
    let file_changes = [
        (ports_change, "ports come or go"),
        (running.config.settings.values() != config.settings.values(), "values in `[set]` change"),
    ];
    let (program, sources) = (loaded.program.clone(), loaded.sources.clone());
    let review = (reader.review)(&Takeover {
        old: &running.program,
        held: &running.held,
        new: &ReviewedProgram { program, sources, policies: policies.clone() },
        file_changes: file_changes.into_iter().filter(|(is, _)| *is).map(|(_, words)| words).collect(),
        wish,
    });
    Ok(Read { config, loaded, policies, anew, review })
}

impl ControlServer {
    /// Reloads: the program that the gateway's file names now takes over, unless the tests beside the rules
    /// of its policies or what the client wishes speak against it.
    pub(crate) fn reload(
        &self,
        wish: &ReloadWish,
        say: &mut dyn FnMut(&ControlAnswer) -> io::Result<()>,
    ) -> ControlAnswer {
        let begun = Instant::now();
        let end = begun + self.reloading.limit;
        let Some(mut generations) = self.reloading.turn(end) else {
            return ControlAnswer::Error(
                "another reload is under way and has not come to its end; nothing has changed".to_owned(),
            );
        };
        let Read { config, mut loaded, policies, anew, review } = match self.read(end, wish) {
            Ok(Some(read)) => read,
            Ok(None) => return ended(),
            Err(error) => return ControlAnswer::Error(format!("{error}\nnothing has changed")),
        };
        let refused = |error: String| ControlAnswer::Error(format!("{error}\nnothing has changed"));
        if wish.diff && say(&ControlAnswer::Review(Box::new(review.told))).is_err() {
            return refused("the client went away".to_owned());
        }
        if let Some(refusal) = review.refusal {
            return refused(refusal);
        }
        let tunnels = match self.tunnel_changes(&config, &anew) {
            Ok(tunnels) => tunnels,
            Err(error) => return refused(error.to_string()),
        };
        let read_again = self.names.clone().zip(config.names.clone());
        if let Some(Err(error)) = read_again.as_ref().map(|(names, file)| names.can_follow(file)) {
            return refused(error);
        }
        if wish.check {
            return ControlAnswer::Done("the program could take over; nothing has changed".to_owned());
        }
        // New ports would lose packets while the system clears memory.
        if self.remote.make_ready(&mut loaded, (self.reader.provides)()).is_none() {
            return ended();
        }
        let (new_hosts, opened) = match self.new_ports(&config, &anew) {
            Ok(new) => new,
            Err(error) => return refused(error.to_string()),
        };
        // From here on nothing changes routes or neighbours until the program has taken over or not.
        let staged = self.routing.stage(&loaded.program, &config.routing);
        let staged = staged.map_err(|error| config.explain(error).to_string()).and_then(|staged| {
            loaded.backends.iter_mut().try_for_each(|backend| staged.fill(backend.as_mut()))?;
            Ok(staged)
        });
        let staged = match staged {
            Ok(staged) => staged,
            Err(error) => return refused(error),
        };
        // The names of the process follow when the program has taken over. Nothing is promised until it has
        // or not.
        let waypoint = self.names.as_ref().and_then(|names| names.waypoint());
        let mut waypoint =
            waypoint.as_ref().filter(|_| self.table_access.fillers.waypoint).map(names::locked);
        let followed = match &waypoint {
            Some(waypoint) => {
                let tables = self.carried(&config, &loaded.program);
                let tables = tables.and_then(|tables| {
                    let mut backends = loaded.backends.iter_mut();
                    backends.try_for_each(|backend| waypoint.fill(&tables, backend.as_mut()))?;
                    Ok(tables)
                });
                match tables {
                    Ok(tables) => Some(tables),
                    Err(error) => return refused(error),
                }
            }
            None => None,
        };
        let (count, before) = (config.ports.len() as u16, self.ports().len());
        let Opened { ports: new_ports, lanes } = opened;
        let other = |lanes: Vec<Lane>| {
            let mut lanes = lanes.into_iter();
            OtherPorts(anew.iter().map(|anew| if *anew { lanes.next() } else { None }).collect())
        };
        let other = if usize::from(count) == before && new_ports.is_empty() {
            Vec::new()
        } else {
            lanes.into_iter().map(other).collect()
        };
        // Nor does a client change a table: a change that some workers have made could not be undone.
        let turn = self.table_access.turn();
        let generation = loaded.generations(count, *generations + 1);
        let replaced = self.remote.replace_with_ports(generation, Vec::new(), other);
        drop(turn);
        let Some(replaced) = replaced else { return ended() };
        match replaced.outcome {
            Ok(carried) => {
                let mut ports = self.change_ports(&anew, new_ports, replaced.lanes);
                for (number, change) in tunnels {
                    if let Err(error) = change.make() {
                        ports += &format!("; peers of port {number} are not all changed: {error}");
                    }
                }
                staged.commit(&config.routing, new_hosts);
                *generations += 1;
                if let (Some(waypoint), Some(tables)) = (&mut waypoint, followed) {
                    waypoint.took_over(tables, *generations, MachineClock.program());
                }
                // Names that change, and a registration that ends, take the waypoint for themselves.
                drop(waypoint);
                *self.config() = config;
                *self.policies() = policies;
                if let Some((names, file)) = read_again {
                    let told = names.follow(&file, followed.as_ref());
                    told.iter().for_each(|words| ports += &format!("; {words}"));
                }
                if let Err(error) = self.speak() {
                    ports += &format!("; nothing is said over new tunnels: {error}");
                }
                let entries: u64 =
                    carried.iter().flat_map(|part| &part.tables).map(|(_, entries)| entries).sum();
                let packets = match self.retire(&replaced.retired) {
                    Ok(packets) => packets,
                    Err(error) => return ControlAnswer::Error(format!("the program took over, but {error}")),
                };
                let pause = replaced.pause.as_micros();
                let less = less(&carried);
                ControlAnswer::Done(format!(
                    "the program took over after {packets} packets of the one before, in {pause} µs; {entries} entries went over{less}{ports}"
                ))
            }
            Err(error) => ControlAnswer::Error(format!("{error}; nothing has changed")),
        }
    }

    /// The tables by which a new program goes on to carry the packets of the waypoint.
    fn carried(&self, config: &Config, program: &Program) -> Result<PacketTables, String> {
        let gone = || {
            "the gateway runs with `[names.waypoint]`, and the file has none any more: stop it and start it anew"
                .to_owned()
        };
        names::carried(config, program).map_err(|error| error.to_string())?.ok_or_else(gone)
    }

    /// Opens the ports that a new file has anew, with their host interfaces.
    fn new_ports(&self, config: &Config, anew: &[bool]) -> Result<(NewHosts, Opened), ConfigError> {
        let hosts = self.routing.new_hosts(&config.routing, &config.ports, anew);
        let hosts = hosts.map_err(|(port, error)| config.about_host(port, error.to_string()))?;
        let running: Vec<_> = self.ports().iter().filter_map(|port| port.divided.clone()).collect();
        let opened = open_ports::open(&config.ports, anew, config.workers.count, self.telling, &running);
        let opened = opened.map_err(|(port, error)| config.about_port(port, error.to_string()))?;
        Ok((hosts, opened))
    }

    /// What changes at the tunnels that stay, with the numbers of their ports.
    fn tunnel_changes(
        &self,
        config: &Config,
        anew: &[bool],
    ) -> Result<Vec<(PortNumber, TunnelChange)>, ConfigError> {
        let ports = self.ports();
        let mut changes = Vec::new();
        for ((number, wanted), anew) in (1..).zip(&config.ports).zip(anew) {
            let open = ports.get(usize::from(number) - 1).filter(|_| !anew);
            if let (Some(tunnel), Some(wishes)) = (open.and_then(|open| open.tunnel.as_ref()), &wanted.tunnel)
            {
                let change = tunnel.change_to(wishes);
                changes.push((number, change.map_err(|error| config.about_port(number, error.to_string()))?));
            }
        }
        Ok(changes)
    }

    /// Ports have come and gone at the workers: closes those that went, and says so in words.
    fn change_ports(&self, anew: &[bool], new: Vec<OpenPort>, mut lanes: Vec<Lane>) -> String {
        let waiting = |lane: &mut Lane| lane.receive.losses().waiting + lane.send.losses().waiting;
        let lost: u64 = lanes.iter_mut().map(waiting).sum();
        drop(lanes);
        let mut ports = self.ports();
        let mut text = String::new();
        let stays = |number: usize| anew.get(number - 1) == Some(&false);
        for (number, port) in
            (1..).zip(ports.iter()).filter(|(number, port)| !stays(*number) && port.exists())
        {
            text += &format!("; port {number} ({}) went", port.name);
        }
        let mut new = new.into_iter();
        let new = anew.iter().map(|anew| if *anew { new.next() } else { None }).collect();
        drop(exchange(&mut ports, new));
        if lost > 0 {
            text += &format!("; {lost} packets that waited there are lost");
        }
        for (number, port) in
            (1..).zip(ports.iter()).filter(|(number, port)| !stays(*number) && port.exists())
        {
            text += &format!("; port {number} ({}) came: {}", port.name, port.mode);
        }
        text
    }

    /// Keeps the account of a replaced program, and returns the number of its packets.
    fn retire(&self, parts: &[Generation]) -> Result<u64, Imbalance> {
        let Some(whole) = Counted::whole(parts.iter().map(Counted::of)) else { return Ok(0) };
        let report = whole.report(&self.program())?;
        let packets = report.received.packets;
        let mut earlier = self.earlier();
        let before = std::mem::replace(&mut earlier.report, report);
        earlier.report.add_earlier(&before);
        earlier.programs += 1;
        Ok(packets)
    }

    /// The account of all programs together, made from that of the last one, and the number of programs.
    pub(crate) fn total(&self, mut last: Report) -> (Report, u64) {
        let earlier = self.earlier();
        last.add_earlier(&earlier.report);
        (last, earlier.programs + 1)
    }

    fn earlier(&self) -> MutexGuard<'_, Earlier> {
        self.reloading.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads and loads on a thread of its own, at most until `end`; `None` if the gateway ends meanwhile.
    fn read(&self, end: Instant, wish: &ReloadWish) -> Result<Option<Read>, String> {
        let Some((program, held)) = review::running(&self.remote, self.policies().clone()) else {
            return Ok(None);
        };
        let under_way = self.reloading.under_way.clone();
        if under_way.fetch_add(1, Ordering::Relaxed) >= OVERDUE {
            under_way.fetch_sub(1, Ordering::Relaxed);
            return Err(format!(
                "{OVERDUE} reloads that were given up are still being read: see whether each file that the gateway's file and the program name can be read to its end"
            ));
        }
        let under_way = UnderWay(under_way);
        let (reader, wish) = (self.reader.clone(), wish.clone());
        let running = Before { config: self.config().clone(), program, held };
        let (answer, answers) = sync_channel(1);
        let load = move || {
            let loaded = read(&reader, &running, &wish);
            drop(under_way);
            // The reload may have been given up meanwhile.
            let _ = answer.send(loaded);
        };
        let started = thread::Builder::new().name("reload".to_owned()).spawn(load);
        started.map_err(|error| format!("no thread to read it on: {error}"))?;
        loop {
            match answers.recv_timeout(LOOK) {
                Ok(read) => return read.map(Some),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("reading it broke off, which is a defect of Ravelin".to_owned());
                }
                Err(RecvTimeoutError::Timeout) if self.ended.load(Ordering::SeqCst) => return Ok(None),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= end => {
                    return Err(format!(
                        "reading and compiling it took longer than {} s and was given up: see whether each file that the gateway's file and the program name can be read to its end",
                        self.reloading.limit.as_secs_f64()
                    ));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// A sentence about the state that some workers could not take over.
fn less(carried: &[TakeoverReport]) -> String {
    let mut ended: BTreeMap<&str, u64> = BTreeMap::new();
    for (table, entries) in carried.iter().flat_map(|part| &part.ended) {
        *ended.entry(table).or_default() += entries;
    }
    let mut text = String::new();
    for (table, entries) in ended {
        text += &format!("; {entries} of `{table}` ended, since the pool does not have their item any more");
    }
    for (kind, name, old, new) in carried.iter().take(1).flat_map(|part| &part.anew) {
        text += &format!("; {kind} `{name}` begins anew: it was {old}, it is {new}");
    }
    match carried.iter().map(|part| part.events_given_up).sum() {
        0_u64 => text,
        events => text + &format!("; {events} events that were to come are given up"),
    }
}
