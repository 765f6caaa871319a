//! Every order of the steps of a few threads, any order of many steps with every number near its end, and
//! threads that go round many times.

use super::*;
use proptest::prelude::*;
use std::sync::Arc;

word!(loom::sync::atomic::AtomicU32);

/// Words of a ring of two slots and two entries, without those that only fill lines, and what lies in the
/// slots.
struct Small {
    words: [loom::sync::atomic::AtomicU32; 12],
    inputs: [loom::sync::atomic::AtomicU32; 2],
    results: [loom::sync::atomic::AtomicU32; 2],
}

/// Before the first ticket of the model: its third one is 0.
const BEGIN: u32 = u32::MAX - 1;
const SHAPE: RingShape = RingShape { slots: 2, entries: 2 };

impl Small {
    fn new() -> loom::sync::Arc<Small> {
        let zero = |_| loom::sync::atomic::AtomicU32::new(0);
        let small = Small { words: [0; 12].map(zero), inputs: [0; 2].map(zero), results: [0; 2].map(zero) };
        small.ring().clear(BEGIN);
        small.workers().clear(BEGIN);
        loom::sync::Arc::new(small)
    }

    fn ring(&self) -> Ring<'_, loom::sync::atomic::AtomicU32> {
        let [published, stop, begun, ..] = &self.words;
        Ring { published, stop, begun, entries: &self.words[3..5], done: &self.words[5..7] }
    }

    fn workers(&self) -> RingWorkers<'_, loom::sync::atomic::AtomicU32> {
        let [.., taken, known, closing] = &self.words;
        RingWorkers { ring: self.ring(), taken, known, closing, republished: Some(&self.words[7..9]) }
    }

    /// Workers that look at what is published themselves, as the one group of an OpenCL kernel does.
    fn without_dispatcher(&self) -> RingWorkers<'_, loom::sync::atomic::AtomicU32> {
        RingWorkers { known: &self.words[0], republished: None, ..self.workers() }
    }

    /// The host fills a slot for the `number`th time in all, and hands it over.
    fn give(&self, publisher: &mut Publisher, slot: usize, number: u32) {
        self.inputs[slot].store(10 * number, Ordering::Relaxed);
        publisher.publish(&self.ring(), slot, number as u16);
    }

    /// A worker runs a slot; the number that the host gave it.
    fn run(&self, task: &Task) -> u32 {
        let (slot, number) = (usize::from(task.slot), u32::from(task.packets));
        let found = self.inputs[slot].load(Ordering::Relaxed);
        assert_eq!(found, 10 * number, "another input than its own");
        self.results[slot].store(found + 1, Ordering::Relaxed);
        number
    }

    /// The host looks at a slot that was filled for the `number`th time.
    fn look(&self, publisher: &mut Publisher, slot: usize, number: u32) -> bool {
        let done = publisher.is_done(&self.ring(), slot);
        if done {
            let result = self.results[slot].load(Ordering::Relaxed);
            assert_eq!(result, 10 * number + 1, "another result than its own");
        }
        done
    }
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    // All orders in which a thread is interrupted at most twice in the middle; more find nothing else in a
    // time that anybody waits.
    model.preemption_bound = Some(2);
    model.check(check);
}

#[test]
fn every_slot_is_run_once_and_its_result_is_seen_whole() {
    model(|| {
        let small = Small::new();
        let mut publisher = Publisher::new(SHAPE, BEGIN);
        small.give(&mut publisher, 0, 1);
        let worker = || {
            let small = small.clone();
            loom::thread::spawn(move || {
                let workers = small.without_dispatcher();
                let mut run = Vec::new();
                // A worker that would wait ends instead: a model has no time to wait in.
                while let Some(task) = workers.claim() {
                    run.push(small.run(&task));
                    workers.finish(&task);
                }
                run
            })
        };
        let threads = [worker(), worker()];
        small.give(&mut publisher, 1, 2);
        // The entry of the first ticket is written again, even while the worker that has just taken it has
        // not begun.
        let mut last = [1, 2];
        let again = [1, 0].into_iter().find(|slot| small.look(&mut publisher, *slot, last[*slot]));
        if let Some(slot) = again {
            last[slot] = 3;
            small.give(&mut publisher, slot, 3);
        }
        let mut run: Vec<u32> = threads.into_iter().flat_map(|one| one.join().expect("it ends")).collect();
        // What nobody has taken is there for the next launch.
        let workers = small.without_dispatcher();
        while let Some(task) = workers.claim() {
            run.push(small.run(&task));
            workers.finish(&task);
        }
        run.sort_unstable();
        assert_eq!(run, [1, 2, 3][..2 + again.iter().count()], "each once");
        assert!((0..2).all(|slot| small.look(&mut publisher, slot, last[slot])));
        assert_eq!(publisher.under_way(), 0);
    });
}

#[test]
fn what_the_dispatcher_tells_is_all_that_workers_need_and_a_stop_leaves_nothing() {
    model(|| {
        let small = Small::new();
        let mut publisher = Publisher::new(SHAPE, BEGIN);
        small.give(&mut publisher, 0, 1);
        assert!(!small.ring().has_begun(1));
        let dispatcher = small.clone();
        let dispatcher = loom::thread::spawn(move || {
            let workers = dispatcher.workers();
            workers.begin(1);
            let stopped = workers.dispatch();
            workers.close(1);
            stopped
        });
        let worker = small.clone();
        let worker = loom::thread::spawn(move || {
            let (workers, mut run) = (worker.workers(), Vec::new());
            workers.work(1, |task| run.push(worker.run(task)), loom::thread::yield_now);
            run
        });
        small.give(&mut publisher, 1, 2);
        small.ring().stop(true);
        let stopped = dispatcher.join().expect("it ends");
        assert!(small.ring().has_begun(1), "its dispatcher has said so");
        let mut run = worker.join().expect("it ends");
        if stopped {
            assert_eq!(run, [1, 2], "what was published before the stop is run before the end");
        }
        let workers = small.workers();
        assert!(workers.dispatch());
        while let Some(task) = workers.claim() {
            run.push(small.run(&task));
            workers.finish(&task);
        }
        assert_eq!(run, [1, 2], "each once, over two launches");
        assert!(small.look(&mut publisher, 0, 1) && small.look(&mut publisher, 1, 2));
    });
}

/// Words in memory, as a device has them.
struct Words {
    shape: RingShape,
    shared: Vec<AtomicU32>,
    own: Vec<AtomicU32>,
}

impl Words {
    fn new(shape: RingShape, first: u32) -> Words {
        let words = |count| (0..count).map(|_| AtomicU32::new(0x5555)).collect();
        let words = Words { shape, shared: words(shape.words()), own: words(shape.republishing_words()) };
        words.ring().clear(first);
        words.workers().clear(first);
        words
    }

    fn ring(&self) -> Ring<'_> {
        Ring::new(self.shape, &self.shared)
    }

    fn workers(&self) -> RingWorkers<'_> {
        RingWorkers::republishing(self.ring(), &self.own)
    }
}

proptest! {
    /// Any order of the steps of four workers, a dispatcher and a host; a worker can rest for as long as it
    /// likes between looking and taking.
    #[test]
    fn any_order_of_steps_runs_every_slot_once(
        slots in 1_usize..6, before_the_end in 0_u32..40, steps in prop::collection::vec((0_u8..6, 0_usize..4, 1_u16..33), 0..400)
    ) {
        let first = 0_u32.wrapping_sub(before_the_end);
        // Without lines between them, entries come round soon.
        let shape = RingShape { slots, entries: slots.next_power_of_two() };
        let words = Words::new(shape, first);
        let (ring, workers) = (words.ring(), words.workers());
        let mut publisher = Publisher::new(shape, first);
        let mut looked: [Option<Task>; 4] = [None; 4];
        let mut holds: [Option<Task>; 4] = [None; 4];
        // Of each slot: its packets, and whether it was run.
        let mut given: Vec<Option<(u16, bool)>> = vec![None; slots];
        let mut next = first;
        for (step, who, packets) in steps {
            let slot = who * 7 % slots;
            match step {
                0 if given[slot].is_none() => {
                    publisher.publish(&ring, slot, packets);
                    given[slot] = Some((packets, false));
                }
                1 => prop_assert!(!workers.dispatch()),
                2 => looked[who] = workers.look(),
                3 => {
                    // A worker with a slot looks for no other.
                    let Some(task) = looked[who].take().filter(|_| holds[who].is_none()) else { continue };
                    if workers.take(&task) {
                        prop_assert_eq!(task.ticket, next, "tickets go in order");
                        next = next.wrapping_add(1);
                        prop_assert_eq!(given[usize::from(task.slot)], Some((task.packets, false)));
                        holds[who] = Some(task);
                    }
                }
                4 => {
                    let Some(task) = holds[who].take() else { continue };
                    workers.finish(&task);
                    given[usize::from(task.slot)] = Some((task.packets, true));
                }
                _ => {
                    let done = publisher.is_done(&ring, slot);
                    prop_assert_eq!(done, given[slot].is_none_or(|(_, run)| run), "slot {}", slot);
                    if done {
                        given[slot] = None;
                    }
                }
            }
            prop_assert_eq!(publisher.under_way(), given.iter().flatten().count());
        }
    }
}

#[test]
fn a_slot_that_rests_for_as_many_tickets_as_there_are_does_not_look_done() {
    let shape = RingShape::new(2).expect("there are two");
    let words = Words::new(shape, 7);
    let (ring, workers) = (words.ring(), words.workers());
    let mut publisher = Publisher::new(shape, 7);
    publisher.publish(&ring, 0, 1);
    workers.dispatch();
    let task = workers.claim().expect("it is known");
    workers.finish(&task);
    assert!(publisher.is_done(&ring, 0));
    // 2^32 - 1 tickets of slot 1 later.
    publisher.next = 7;
    publisher.publish(&ring, 0, 1);
    assert!(!publisher.is_done(&ring, 0) && publisher.is_under_way(0));
}

#[test]
fn a_slot_that_a_launch_has_taken_and_left_is_found() {
    let shape = RingShape::new(3).expect("there are three");
    let first = u32::MAX;
    let words = Words::new(shape, first);
    let (ring, workers) = (words.ring(), words.workers());
    let mut publisher = Publisher::new(shape, first);
    publisher.publish(&ring, 2, 1);
    publisher.publish(&ring, 1, 1);
    let known = publisher.next();
    publisher.publish(&ring, 0, 1);
    assert_eq!(publisher.lost(&ring, first), None, "nothing was known");
    workers.dispatch();
    let tasks: Vec<Task> = std::iter::from_fn(|| workers.claim()).collect();
    workers.finish(&tasks[0]);
    assert_eq!(publisher.lost(&ring, known), Some(1), "before it has been asked for");
    assert!(publisher.is_done(&ring, 2));
    assert_eq!(publisher.lost(&ring, known), Some(1));
    workers.finish(&tasks[1]);
    assert_eq!((publisher.lost(&ring, known), publisher.lost(&ring, publisher.next())), (None, Some(0)));
}

#[test]
fn a_ring_has_room_for_its_slots_and_names_no_more_than_it_can() {
    for (slots, entries) in [(1, 32), (32, 32), (33, 64), (1024, 1024), (65_536, 65_536)] {
        let shape = RingShape::new(slots).expect("it can be");
        assert_eq!((shape.entries(), shape.words()), (entries, 32 + entries + slots));
    }
    assert_eq!(RingShape::new(0).or(RingShape::new(65_537)), None);
}

#[test]
fn threads_go_round_many_times_and_over_the_end_of_the_numbers() {
    const TICKETS: u32 = 40_000;
    const SLOTS: usize = 8;
    let first = u32::MAX - TICKETS / 2;
    let shape = RingShape { slots: SLOTS, entries: SLOTS };
    let words = Arc::new(Words::new(shape, first));
    let memory: Arc<Vec<AtomicU32>> = Arc::new((0..SLOTS as u32).map(AtomicU32::new).collect());
    let worker = || {
        let (words, memory) = (words.clone(), memory.clone());
        std::thread::spawn(move || {
            let run = |task: &Task| {
                let place = &memory[usize::from(task.slot)];
                place.store(place.load(Ordering::Relaxed) ^ 0x5555, Ordering::Relaxed);
            };
            words.workers().work(1, run, std::thread::yield_now);
        })
    };
    let workers = [worker(), worker(), worker()];
    let dispatcher = {
        let words = words.clone();
        std::thread::spawn(move || {
            words.workers().begin(1);
            while !words.workers().dispatch() {
                std::thread::yield_now();
            }
            words.workers().close(1);
        })
    };
    let (ring, mut publisher) = (words.ring(), Publisher::new(shape, first));
    let mut holds = [0_u32; SLOTS];
    let (mut given, mut seen) = (0, 0);
    while seen < TICKETS {
        for (slot, number) in holds.iter_mut().enumerate() {
            if publisher.is_under_way(slot) {
                if !publisher.is_done(&ring, slot) {
                    continue;
                }
                assert_eq!(memory[slot].load(Ordering::Relaxed), *number ^ 0x5555);
                seen += 1;
            }
            if given < TICKETS {
                *number = given;
                memory[slot].store(given, Ordering::Relaxed);
                publisher.publish(&ring, slot, 32);
                given += 1;
            }
        }
        std::thread::yield_now();
    }
    ring.stop(true);
    workers.into_iter().chain([dispatcher]).for_each(|thread| thread.join().expect("it ends"));
    assert_eq!(words.workers().claim(), None, "nothing is left");
}
