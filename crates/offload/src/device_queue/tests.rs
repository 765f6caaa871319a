//! Whatever comes, and whatever a device makes of it: packets that are held are run once each, in order of
//! arrival.

use super::*;
use exec::SubmitOutcome;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::convert::Infallible;

/// Says of a device whatever numbers say that were drawn, and remembers what it is given.
struct Drawn {
    draws: Vec<u8>,
    next: usize,
    depth: QueueDepth,
    workers: usize,
    /// Numbers of packets that it began with, and those that were run.
    begun: VecDeque<Vec<u64>>,
    run: Vec<u64>,
    gone: bool,
    /// The most that it had begun with at once, and how often something behind the first was done before
    /// that.
    most: usize,
    overtaken: usize,
}

impl Drawn {
    /// The device is gone, with all that it had.
    fn lose(&mut self) {
        self.gone = true;
        self.begun.clear();
    }

    fn draw(&mut self) -> u8 {
        self.next += 1;
        self.draws[self.next % self.draws.len()]
    }
}

fn numbers(memory: &[u8], batch: &Batch) -> Vec<u64> {
    let number = |index| {
        let bytes = batch.bytes(memory, index).expect("its frame is there");
        u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"))
    };
    (0..batch.len).map(number).collect()
}

impl AsyncBackend for Drawn {
    fn depth(&self) -> QueueDepth {
        self.depth
    }

    fn submit(&mut self, memory: &[u8], batches: &[Batch]) -> SubmitOutcome {
        if self.gone {
            return SubmitOutcome::Refused;
        }
        let all: Vec<u64> = batches.iter().flat_map(|batch| numbers(memory, batch)).collect();
        assert!(
            !all.is_empty()
                && all.len() <= self.depth.packets
                && self.begun.len() < self.depth.device_batches
        );
        let last = self.begun.back().map_or_else(|| self.run.len() as u64, |last| last[last.len() - 1] + 1);
        assert_eq!(all[0], last, "it is behind all those before, and nothing between them is run without");
        match self.draw() {
            0..20 => SubmitOutcome::Refused,
            20..40 if !self.begun.is_empty() => SubmitOutcome::Busy,
            40..42 => {
                self.lose();
                SubmitOutcome::Refused
            }
            _ => {
                self.begun.push_back(all);
                self.most = self.most.max(self.begun.len());
                SubmitOutcome::Accepted
            }
        }
    }

    fn is_complete(&mut self, nth: usize) -> bool {
        assert!(self.gone || nth < self.begun.len());
        let drawn = self.draw();
        if drawn == 255 {
            self.lose();
        }
        let done = self.gone || drawn.is_multiple_of(4);
        self.overtaken += usize::from(done && nth > 0);
        done
    }

    fn workers(&self) -> usize {
        self.workers
    }
}

impl Run for Drawn {
    type Error = Infallible;

    fn device(&mut self) -> Option<&mut dyn AsyncBackend> {
        (!self.gone).then_some(self as &mut dyn AsyncBackend)
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn batch(&mut self, memory: &mut [u8], batch: &mut Batch) -> Result<(), Infallible> {
        let all = numbers(memory, batch);
        if self.draw() == 254 {
            self.lose();
        }
        if let Some(front) = self.begun.front_mut() {
            assert_eq!(front[..all.len()], all, "what was begun with first is run first");
            front.drain(..all.len());
            if front.is_empty() {
                self.begun.pop_front();
            }
        }
        self.run.extend(all);
        Ok(())
    }
}

/// A packet's frame, which begins with its number.
fn frame(number: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Holds packets of such lengths, so many at a time, and gives what the device saw.
fn pass(mut drawn: Drawn, schedule: Schedule, batches: &[(u8, usize, Supply)]) -> Drawn {
    let mut device_queue = DeviceQueue::over(drawn.depth, drawn.workers, schedule, Instant::now());
    let all = fill(&mut device_queue, &mut drawn, batches);
    let Ok(_) = device_queue.run(&mut drawn, Supply::Ended);
    assert!(device_queue.is_empty() && device_queue.due(Instant::now()).is_none());
    assert!(drawn.run.iter().copied().eq(0..all), "{:?}", drawn.run);
    drawn
}

/// Holds packets without an end, and says how many.
fn fill(device_queue: &mut DeviceQueue, drawn: &mut Drawn, batches: &[(u8, usize, Supply)]) -> u64 {
    let mut number = 0;
    for &(packets, length, supply) in batches {
        let mut arena = packet::Arena::sized(usize::from(packets) * (length + 1024));
        let mut batch = Batch::new();
        for _ in 0..packets {
            assert!(arena.push(&mut batch, &frame(number, length), length as u32, number));
            number += 1;
        }
        let Ok(()) = device_queue.take(drawn, arena.memory(), &batch);
        if supply != Supply::Ended {
            let Ok(_) = device_queue.run(drawn, supply);
        }
        let held = number - drawn.run.len() as u64;
        assert_eq!(device_queue.is_empty(), held == 0);
        assert!(device_queue.has_room() || held > 0);
    }
    number
}

fn drawn(draws: Vec<u8>, depth: QueueDepth, workers: usize) -> Drawn {
    Drawn {
        draws,
        next: 0,
        depth,
        workers,
        begun: VecDeque::new(),
        run: Vec::new(),
        gone: false,
        most: 0,
        overtaken: 0,
    }
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let short = Duration::from_micros(1);
    prop_oneof![
        4 => (0_u32..9).prop_map(|quarters| Schedule::Hermes { quarters }),
        1 => (1_usize..400).prop_map(|packets| BatchingPolicy::FixedBatch { packets }.into()),
        1 => (1_usize..400).prop_map(move |packets| BatchingPolicy::BatchOrTimeout { packets, timeout: short }.into()),
        1 => (1_usize..400).prop_map(|packets| BatchingPolicy::CostModel { packets }.into()),
    ]
}

fn batches() -> impl Strategy<Value = Vec<(u8, usize, Supply)>> {
    let lengths = prop_oneof![12 => Just(64_usize), 3 => Just(1500), 1 => Just(200_000)];
    let supplies = prop_oneof![Just(Supply::Unknown), Just(Supply::Plenty), Just(Supply::Ended)];
    let batch = (prop_oneof![3 => 1_u8..=255, 1 => Just(32), 1 => 1_u8..4], lengths, supplies);
    prop::collection::vec(
        batch.prop_map(|(n, length, supply)| (if length > 9000 { n % 4 + 1 } else { n }, length, supply)),
        1..30,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn packets_are_run_once_each_and_in_order(
        schedule in schedule(),
        batches in batches(),
        draws in prop::collection::vec(any::<u8>(), 1..200),
        (packets, device_batches, workers) in (1_usize..300, 1_usize..70, 1_usize..9),
    ) {
        // A device for which nothing is ever done, and that always wants to wait, is none.
        let draws = [&draws[..], &[0, 44, 99]].concat();
        pass(drawn(draws, QueueDepth { packets, device_batches }, workers), schedule, &batches);
    }
}

#[test]
fn warps_fill_the_device_and_those_that_are_done_make_room_before_their_turn() {
    // 99 begins; of what is under way the first is never done, and every fourth of the others is.
    let draws = vec![99, 99, 100, 99, 99];
    let all: Vec<_> = (0..40).map(|_| (200, 64, Supply::Unknown)).collect();
    let one = QueueDepth { packets: 32, device_batches: 256 };
    let seen = pass(drawn(draws, one, 1), Schedule::Hermes { quarters: 8 }, &all);
    // 24 at once, and more only since some that are done wait for their turn.
    assert!(seen.most > 24 && seen.overtaken > 0, "{} and {}", seen.most, seen.overtaken);
    let never = pass(drawn(vec![99], one, 1), Schedule::Hermes { quarters: 8 }, &all);
    assert_eq!(never.most, 24);
    let few = pass(
        drawn(vec![99], QueueDepth { packets: 32, device_batches: 64 }, 4),
        Schedule::Hermes { quarters: 8 },
        &all[..1],
    );
    // 200 packets are six warps, and eight packets that nobody follows.
    assert_eq!(few.most, 7);
}

#[test]
fn a_full_line_waits_for_one_warp_and_not_for_all() {
    let mut drawn = drawn(vec![99], QueueDepth { packets: 32, device_batches: 64 }, 4);
    let schedule = Schedule::Hermes { quarters: 8 };
    let mut device_queue = DeviceQueue::over(drawn.depth, drawn.workers, schedule, Instant::now());
    // More than there is room for, but not twice as many.
    let batches: Vec<_> = (0..22).map(|_| (200, 64, Supply::Unknown)).collect();
    fill(&mut device_queue, &mut drawn, &batches);
    assert!(!drawn.run.is_empty());
    assert_eq!((drawn.begun.len(), device_queue.has_room()), (64, false));
}

#[test]
fn packets_that_nobody_follows_are_due_soon() {
    let mut drawn = drawn(vec![99], QueueDepth { packets: 32, device_batches: 64 }, 4);
    let schedule = Schedule::Hermes { quarters: 8 };
    let mut device_queue = DeviceQueue::over(drawn.depth, drawn.workers, schedule, Instant::now());
    fill(&mut device_queue, &mut drawn, &[(3, 64, Supply::Unknown)]);
    let mut due = device_queue.due(Instant::now());
    while drawn.begun.is_empty() {
        assert!(due.is_some_and(|due| due <= Duration::from_micros(100)), "{due:?}");
        let Ok(_) = device_queue.run(&mut drawn, Supply::Unknown);
        due = device_queue.due(Instant::now());
    }
    assert_eq!((due, device_queue.is_under_way()), (None, true));
}
