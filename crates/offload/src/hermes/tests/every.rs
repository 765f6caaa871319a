//! Every order of events, up to some packets, on a device that is as small as can be: two cores of one warp
//! of two packets, a FIFO and a queue of two.
//!
//! From each state that can be reached all events are tried; states that are alike are tried once. From each
//! the rest is also run to its end.

use super::super::*;
use std::collections::{BTreeMap, HashSet};

/// At most so many packets come, and so often time passes.
const PACKETS: u32 = 5;
const TICKS: u64 = 2;
/// Longer than any packet waits for others.
const TICK: u64 = 1_000;

/// The scheduler, and what is known of it from outside.
#[derive(Clone)]
struct World {
    scheduler: Scheduler,
    ticks: u64,
    arrived: u32,
    committed: u64,
    /// What runs: its core and slot, and its first packet with how many there are.
    running: BTreeMap<(u16, u8), (u64, u8)>,
    /// What has ended and is not committed: how, by the first packet.
    ended: BTreeMap<u64, (u8, WarpOutcome)>,
    failed: [bool; 2],
}

impl World {
    fn new() -> World {
        let flush = Flush { quarters: 8, rate: Rate::Fixed { gap: 1 }, least: 100, most: 100 };
        let settings = HermesSettings { cores: 2, warps: 1, warp: 2, tasks: 2, commits: 2, flush };
        World {
            scheduler: Scheduler::new(&settings).expect("it can be"),
            ticks: 0,
            arrived: 0,
            committed: 0,
            running: BTreeMap::new(),
            ended: BTreeMap::new(),
            failed: [false; 2],
        }
    }

    /// What tells states apart: everything but what is only counted.
    fn key(&self) -> String {
        let Scheduler { arrivals, fifo, cores, commits, next, given_up, .. } = &self.scheduler;
        format!("{arrivals:?}{fifo:?}{cores:?}{commits:?}{next}{given_up}{}{:?}", self.ticks, self.ended)
    }

    fn now(&self) -> u64 {
        self.ticks * TICK
    }

    fn issue(&mut self) -> bool {
        let Some(warp) = self.scheduler.issue() else { return false };
        assert!(warp.packets >= 1 && !self.failed[usize::from(warp.core)]);
        let what = (warp.first, warp.packets);
        assert!(self.running.values().all(|(first, _)| *first != warp.first), "it runs once at a time");
        assert!(!self.ended.contains_key(&warp.first), "it has ended already");
        assert_eq!(self.running.insert((warp.core, warp.slot), what), None, "the slot is taken");
        true
    }

    fn end(&mut self, place: (u16, u8), outcome: WarpOutcome) {
        let (first, packets) = self.running.remove(&place).expect("it runs");
        let told = match outcome {
            WarpOutcome::Done => self.scheduler.finish(place.0, place.1),
            WarpOutcome::Again => self.scheduler.refuse(place.0, place.1),
        };
        assert_eq!(told, Ok(()));
        let again = self.scheduler.finish(place.0, place.1);
        assert_eq!(again, Err(NotRunning { core: place.0, slot: place.1 }), "news of it comes once");
        self.ended.insert(first, (packets, outcome));
    }

    fn fail(&mut self, core: u16) {
        let before = self.running.len();
        self.running.retain(|(own, _), _| *own != core);
        assert_eq!(self.scheduler.fail(core) as usize, before - self.running.len());
        self.failed[usize::from(core)] = true;
    }

    fn commit(&mut self) -> bool {
        let Some(Committed { first, packets, outcome }) = self.scheduler.commit() else {
            let waits = self.ended.first_key_value().is_none_or(|(first, _)| *first != self.committed);
            assert!(waits, "what has ended and is the next is committed");
            return false;
        };
        assert_eq!(first, self.committed, "in order");
        match self.ended.remove(&first) {
            Some((had, how)) => assert_eq!((u64::from(had), how), (packets, outcome)),
            None => {
                assert!(
                    outcome == WarpOutcome::Again && self.failed == [true; 2],
                    "only where no core is left"
                )
            }
        }
        self.committed += packets;
        true
    }

    /// Everything that can happen next.
    fn next(&self) -> Vec<World> {
        let mut next = Vec::new();
        let mut then = |happens: &dyn Fn(&mut World)| {
            let mut world = self.clone();
            happens(&mut world);
            assert_eq!(world.scheduler.inside(), u64::from(world.arrived) - world.committed);
            next.push(world);
        };
        if self.arrived < PACKETS {
            then(&|world| {
                world.scheduler.arrive(world.now(), 1);
                world.arrived += 1;
            });
        }
        if self.ticks < TICKS {
            then(&|world| world.ticks += 1);
        }
        then(&|world| {
            world.scheduler.advance(world.now());
        });
        then(&|world| {
            world.scheduler.flush();
        });
        then(&|world| {
            world.issue();
        });
        for place in self.running.keys() {
            then(&|world| world.end(*place, WarpOutcome::Done));
            then(&|world| world.end(*place, WarpOutcome::Again));
        }
        for core in (0..2).filter(|core| !self.failed[usize::from(*core)]) {
            then(&|world| world.fail(core));
        }
        then(&|world| {
            world.commit();
        });
        next
    }

    /// Nothing more comes, and every warp is done.
    fn finish(mut self) {
        for _ in 0..4 * PACKETS {
            self.scheduler.flush();
            while self.issue() {}
            for place in self.running.keys().copied().collect::<Vec<_>>() {
                self.end(place, WarpOutcome::Done);
            }
            while self.commit() {}
        }
        assert_eq!(self.committed, u64::from(self.arrived), "{:?}", self.scheduler);
    }
}

#[test]
fn every_order_of_events_commits_every_packet_once_and_in_order() {
    let mut open = vec![World::new()];
    let mut seen = HashSet::new();
    while let Some(world) = open.pop() {
        if seen.insert(world.key()) {
            open.extend(world.next());
            world.finish();
        }
    }
    println!("{} states", seen.len());
    assert!(seen.len() > 10_000, "{} states", seen.len());
}
