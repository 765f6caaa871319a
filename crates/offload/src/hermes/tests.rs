//! Whatever comes in whatever order: every packet is committed once, in order of arrival, and so in order of
//! arrival of its port.

mod every;

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

/// Something that happens.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// So many packets come, of this port, so many nanoseconds after the last event.
    Arrive(u8, u8, u16),
    /// Time passes.
    Pass(u16),
    /// Up to so many tasks are issued.
    Issue(u8),
    /// A running warp, chosen by this number, is done.
    Finish(u16),
    /// A running warp comes back without results.
    Refuse(u16),
    /// A core fails.
    Fail(u16),
    /// Up to so many tasks are committed.
    Commit(u8),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..80_u8, 0..4_u8, 0..2000_u16).prop_map(|(packets, port, after)| Event::Arrive(packets, port, after)),
        2 => (0..5000_u16).prop_map(Event::Pass),
        5 => (1..6_u8).prop_map(Event::Issue),
        8 => any::<u16>().prop_map(Event::Finish),
        1 => any::<u16>().prop_map(Event::Refuse),
        4 => (1..9_u8).prop_map(Event::Commit),
    ]
}

/// Everything that happens, with failures of cores now and then.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let failing = prop_oneof![40 => event(), 1 => any::<u16>().prop_map(Event::Fail)];
    proptest::collection::vec(failing, 1..400)
}

fn settings() -> impl Strategy<Value = HermesSettings> {
    (1..5_u16, 1..5_u8, 1..=WARP, 0..4_u32, 0..5_u32, 0..20_u32).prop_map(
        |(cores, warps, warp, tasks, commits, quarters)| {
            let rate = match quarters % 3 {
                0 => Rate::Fixed { gap: 7000 },
                1 => Rate::Window { packets: 40 },
                _ => Rate::Average { shift: 3 },
            };
            let flush = Flush { quarters, rate, least: 10, most: 3000 };
            HermesSettings { cores, warps, warp, tasks: 1 << tasks, commits: 1 << commits, flush }
        },
    )
}

/// A scheduler with what it must not get wrong.
struct Judge {
    scheduler: Scheduler,
    settings: HermesSettings,
    now: u64,
    /// The port of every packet that is not committed.
    ports: VecDeque<u8>,
    /// The number of the next packet of each port, as it came and as it is committed.
    came: [u64; 4],
    left: [u64; 4],
    numbers: VecDeque<u64>,
    running: Vec<Warp>,
    failed: Vec<u16>,
    /// What was done and refused, by number of the first packet.
    next: u64,
    committed: u64,
    again: u64,
    refused: u64,
}

impl Judge {
    fn new(settings: HermesSettings) -> Judge {
        let scheduler = Scheduler::new(&settings).expect("settings that can be");
        Judge {
            scheduler,
            settings,
            now: 0,
            ports: VecDeque::new(),
            came: [0; 4],
            left: [0; 4],
            numbers: VecDeque::new(),
            running: Vec::new(),
            failed: Vec::new(),
            next: 0,
            committed: 0,
            again: 0,
            refused: 0,
        }
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Arrive(packets, port, after) => {
                self.now += u64::from(after);
                self.scheduler.arrive(self.now, packets.into());
                for _ in 0..packets {
                    self.ports.push_back(port);
                    self.numbers.push_back(self.came[usize::from(port)]);
                    self.came[usize::from(port)] += 1;
                }
                self.scheduler.advance(self.now);
            }
            Event::Pass(time) => {
                self.now += u64::from(time);
                self.scheduler.advance(self.now);
            }
            Event::Issue(many) => {
                for _ in 0..many {
                    self.issue();
                }
            }
            Event::Finish(which) | Event::Refuse(which) if !self.running.is_empty() => {
                let warp = self.running.swap_remove(usize::from(which) % self.running.len());
                if let Event::Refuse(_) = event {
                    self.scheduler.refuse(warp.core, warp.slot).expect("it runs");
                    self.refused += u64::from(warp.packets);
                } else {
                    self.scheduler.finish(warp.core, warp.slot).expect("it runs");
                }
                let late = self.scheduler.finish(warp.core, warp.slot);
                assert_eq!(late, Err(NotRunning { core: warp.core, slot: warp.slot }), "it has ended before");
            }
            Event::Fail(core) => {
                let core = core % self.settings.cores;
                let ran = self.running.iter().filter(|warp| warp.core == core).count();
                let told = self.scheduler.fail(core);
                assert_eq!(told as usize, if self.failed.contains(&core) { 0 } else { ran });
                for warp in self.running.extract_if(.., |warp| warp.core == core) {
                    assert!(
                        self.scheduler.finish(core, warp.slot).is_err(),
                        "late news of a core that failed"
                    );
                }
                self.failed.push(core);
            }
            Event::Commit(many) => {
                for _ in 0..many {
                    self.commit();
                }
            }
            Event::Finish(_) | Event::Refuse(_) => {}
        }
        assert_eq!(self.scheduler.inside(), self.ports.len() as u64);
    }

    fn issue(&mut self) -> bool {
        let Some(warp) = self.scheduler.issue() else { return false };
        assert!(!self.failed.contains(&warp.core), "a core that failed got a warp");
        assert!((1..=self.settings.warp).contains(&warp.packets));
        let named = self.running.iter().any(|other| (other.core, other.slot) == (warp.core, warp.slot));
        assert!(!named, "two warps run under one name");
        if warp.first >= self.next {
            assert_eq!(warp.first, self.next, "tasks are issued in order");
            self.next += u64::from(warp.packets);
        }
        assert!(warp.first >= self.committed, "what is committed is not run again");
        self.running.push(warp);
        true
    }

    fn commit(&mut self) -> bool {
        let Some(Committed { first, packets, outcome }) = self.scheduler.commit() else { return false };
        assert_eq!(first, self.committed, "packets are committed in order of arrival");
        let runs = self.running.iter().any(|warp| (first..first + packets).contains(&warp.first));
        assert!(!runs, "it was committed before it was done");
        self.committed += packets;
        self.again += if outcome == WarpOutcome::Again { packets } else { 0 };
        for _ in 0..packets {
            let port = usize::from(self.ports.pop_front().expect("a packet that came"));
            assert_eq!(self.numbers.pop_front(), Some(self.left[port]), "in order of arrival of the port");
            self.left[port] += 1;
        }
        true
    }

    /// Lets everything end.
    fn drain(&mut self) {
        while self.scheduler.inside() > 0 {
            let before = self.scheduler.inside();
            let mut moved = self.scheduler.flush() > 0;
            while self.issue() {
                moved = true;
            }
            while let Some(warp) = self.running.pop() {
                self.scheduler.finish(warp.core, warp.slot).expect("it runs");
                moved = true;
            }
            while self.commit() {}
            assert!(moved || self.scheduler.inside() < before, "nothing moves, and packets are inside");
        }
        let statistics = self.scheduler.statistics();
        assert_eq!(statistics.arrived, self.came.iter().sum::<u64>());
        assert_eq!((statistics.committed, statistics.again), (statistics.arrived, self.again));
        assert!(statistics.again >= self.refused);
        let given_up = (0..self.settings.cores).all(|core| self.failed.contains(&core));
        assert!(
            given_up || statistics.again == self.refused,
            "a core works, so only what came back is run again"
        );
        assert_eq!(self.came, self.left);
        assert!(
            statistics.fifo_most <= self.settings.tasks && statistics.commits_most <= self.settings.commits
        );
    }
}

proptest! {
    #[test]
    fn every_packet_is_committed_once_and_in_order(settings in settings(), events in events()) {
        let mut judge = Judge::new(settings);
        for event in events {
            judge.step(event);
        }
        judge.drain();
    }

    #[test]
    fn what_is_due_is_taken_then_and_not_before(settings in settings(), packets in 1..WARP as u32) {
        let mut scheduler = Scheduler::new(&settings).expect("settings that can be");
        scheduler.arrive(50, packets);
        let due = scheduler.due().expect("packets wait");
        if packets < settings.warp.into() && due > 50 {
            prop_assert_eq!(scheduler.advance(due - 1), 0);
        }
        prop_assert!(scheduler.advance(due) > 0);
    }
}

/// Positions of 16 bits wrap several times, in queues of every size, while warps finish in another order than
/// they were issued.
#[test]
fn every_index_wraps() {
    for entries in [1, 8, 1024, 1 << 15] {
        let flush = Flush { quarters: 0, rate: Rate::Fixed { gap: 1 }, least: 0, most: 0 };
        let settings =
            HermesSettings { cores: 3, warps: 7, warp: 2, tasks: entries, commits: entries, flush };
        let mut judge = Judge::new(settings);
        let mut word = 1_u32;
        while judge.committed < 250_000 {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let choice = (word >> 16) as u16;
            judge.step(Event::Arrive((choice % 5) as u8, (choice % 4) as u8, 0));
            judge.step(Event::Issue(3));
            judge.step(Event::Finish(choice));
            judge.step(Event::Finish(choice.rotate_left(3)));
            judge.step(Event::Commit(4));
        }
        judge.drain();
    }
}

#[test]
fn a_full_fifo_and_a_full_queue_hold_packets_up_and_lose_none() {
    let flush = Flush { quarters: 8, rate: Rate::Fixed { gap: 1000 }, least: 0, most: 1000 };
    let settings = HermesSettings { cores: 1, warps: 4, warp: 32, tasks: 2, commits: 4, flush };
    let mut scheduler = Scheduler::new(&settings).expect("settings that can be");
    scheduler.arrive(0, 32 * 10);
    assert_eq!((scheduler.advance(0), scheduler.due()), (2, None), "the FIFO has two entries");
    let first = scheduler.issue().expect("a slot");
    scheduler.issue().expect("a slot");
    assert_eq!(scheduler.advance(0), 2);
    scheduler.issue().expect("a slot");
    let last = scheduler.issue().expect("a slot");
    assert_eq!(scheduler.issue(), None, "no task");
    assert_eq!(scheduler.advance(0), 2);
    scheduler.finish(last.core, last.slot).expect("it runs");
    assert_eq!(scheduler.issue(), None, "a free slot, but the first of four is not committed");
    assert_eq!(scheduler.commit(), None);
    scheduler.finish(first.core, first.slot).expect("it runs");
    assert_eq!(scheduler.commit(), Some(Committed { first: 0, packets: 32, outcome: WarpOutcome::Done }));
    let next = scheduler.issue().expect("a slot and a place");
    assert_eq!((next.first, scheduler.inside()), (128, 288));
    let counted = scheduler.statistics();
    assert!(counted.fifo_full > 0 && counted.commits_full > 0 && counted.commits_most == 4);
}

#[test]
fn warps_are_issued_to_cores_in_turn() {
    let mut scheduler =
        Scheduler::new(&HermesSettings { cores: 3, warps: 2, ..HermesSettings::default() }).expect("can be");
    scheduler.arrive(0, 32 * 9);
    scheduler.advance(0);
    let mut issue = || scheduler.issue().map(|warp| (warp.core, warp.slot));
    let issued: Vec<_> = std::iter::from_fn(&mut issue).collect();
    assert_eq!(issued, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]);
    scheduler.finish(1, 0).expect("it runs");
    scheduler.finish(0, 1).expect("it runs");
    assert_eq!(scheduler.issue().map(|warp| (warp.core, warp.slot)), Some((0, 1)));
}

#[test]
fn a_name_is_used_again_before_its_first_task_is_committed() {
    let mut scheduler =
        Scheduler::new(&HermesSettings { cores: 2, warps: 1, ..HermesSettings::default() }).expect("can be");
    scheduler.arrive(0, 32 * 20);
    scheduler.advance(0);
    let slow = scheduler.issue().expect("a slot");
    for number in 1..20 {
        let quick = scheduler.issue().expect("the other core's slot");
        assert_eq!((quick.core, quick.first), (1, 32 * number));
        scheduler.finish(1, 0).expect("it runs");
        assert_eq!(scheduler.commit(), None, "the first is not done");
    }
    scheduler.finish(slow.core, slow.slot).expect("it runs");
    let committed: Vec<u64> = std::iter::from_fn(|| scheduler.commit()).map(|task| task.first).collect();
    assert_eq!(committed, (0..20).map(|number| 32 * number).collect::<Vec<_>>());
}

#[test]
fn what_ran_on_a_core_that_fails_is_issued_again_first_and_the_last_core_leaves_all_to_the_processor() {
    let mut scheduler =
        Scheduler::new(&HermesSettings { cores: 2, warps: 2, ..HermesSettings::default() }).expect("can be");
    scheduler.arrive(0, 32 * 6 + 5);
    scheduler.advance(0);
    while scheduler.issue().is_some() {}
    assert_eq!(scheduler.fail(0), 2, "packets 0 and 64 ran on it");
    scheduler.finish(1, 0).expect("it runs");
    let again = scheduler.issue().expect("a slot of the other core");
    assert_eq!((again.core, again.first), (1, 0));
    scheduler.finish(1, 0).expect("it runs");
    assert_eq!(scheduler.commit().map(|task| task.first), Some(0));
    assert_eq!(scheduler.commit().map(|task| task.first), Some(32));
    assert_eq!(scheduler.fail(1), 1);
    let rest: Vec<Committed> = std::iter::from_fn(|| scheduler.commit()).collect();
    assert!(rest.iter().all(|task| task.outcome == WarpOutcome::Again), "{rest:?}");
    assert_eq!(rest.iter().map(|task| task.packets).collect::<Vec<_>>(), [32, 32, 32, 32, 5]);
    scheduler.arrive(1000, 3);
    assert_eq!((scheduler.advance(1_000_000), scheduler.issue()), (0, None));
    assert_eq!(scheduler.commit().map(|task| (task.first, task.packets)), Some((197, 3)));
    assert_eq!(
        (scheduler.inside(), scheduler.statistics().again, scheduler.statistics().reissued),
        (0, 136, 1)
    );
}
