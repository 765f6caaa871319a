//! Rings against a queue of the standard library, and under every order of two threads' steps that the memory
//! model allows.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::rc::Rc;

/// Memory of a ring in one thread: words, then entries of 64 bits from byte 16 on.
struct Local {
    words: [std::cell::Cell<u32>; 3],
    longs: Vec<std::cell::Cell<u64>>,
}

impl Words for Rc<Local> {
    fn word(&self, at: usize, _: Ordering) -> u32 {
        self.words[at / 4].get()
    }
    fn set_word(&self, at: usize, value: u32, _: Ordering) {
        self.words[at / 4].set(value);
    }
    fn long(&self, at: usize) -> u64 {
        self.longs[(at - 16) / 8].get()
    }
    fn set_long(&self, at: usize, value: u64) {
        self.longs[(at - 16) / 8].set(value);
    }
}

fn places(size: u32) -> Places {
    Places { producer: 0, consumer: 4, flags: 8, entries: 16, size }
}

#[derive(Clone, Debug)]
enum Step {
    Push(u64),
    Publish,
    Pop,
    Free,
    Resume,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => any::<u64>().prop_map(Step::Push),
        2 => Just(Step::Publish),
        3 => Just(Step::Pop),
        2 => Just(Step::Free),
        1 => Just(Step::Resume),
    ];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    /// What is published comes out in order, once; a ring is full when as many entries as it has were written
    /// and not freed.
    #[test]
    fn as_a_queue(steps in steps(), size in prop_oneof![Just(1u32), Just(2), Just(8)], start in any::<u32>()) {
        let memory = Rc::new(Local {
            words: [const { std::cell::Cell::new(0) }; 3],
            longs: (0..2 * size).map(|_| std::cell::Cell::new(0)).collect(),
        });
        memory.words[0].set(start);
        memory.words[1].set(start);
        let mut producer = Producer::<_, 2>::new(memory.clone(), places(size));
        let mut consumer = Consumer::<_, 2>::new(memory.clone(), places(size));
        (producer.next, producer.published, producer.taken) = (start, start, start);
        (consumer.next, consumer.freed, consumer.written) = (start, start, start);
        let (mut written, mut published) = (VecDeque::new(), VecDeque::new());
        let (mut taken, mut occupied) = (0, 0);
        for step in steps {
            match step {
                Step::Push(value) => {
                    let room = occupied < size;
                    prop_assert_eq!(producer.has_room(), room);
                    prop_assert_eq!(producer.push([value, !value]), room);
                    if room {
                        written.push_back(value);
                        occupied += 1;
                    }
                }
                Step::Publish => {
                    producer.publish();
                    published.append(&mut written);
                }
                Step::Pop => {
                    let wanted = published.pop_front();
                    taken += u32::from(wanted.is_some());
                    prop_assert_eq!(consumer.pop(), wanted.map(|value| [value, !value]));
                }
                // Once nothing is kept to itself by either side.
                Step::Resume if written.is_empty() && taken == 0 => {
                    producer = Producer::new(memory.clone(), places(size));
                    producer.resume();
                    consumer = Consumer::new(memory.clone(), places(size));
                    consumer.resume();
                    prop_assert_eq!(producer.waiting(), occupied);
                }
                Step::Resume => {}
                Step::Free => {
                    consumer.free();
                    occupied -= taken;
                    taken = 0;
                    prop_assert_eq!(producer.waiting(), occupied);
                }
            }
        }
    }
}

struct Modelled {
    words: [loom::sync::atomic::AtomicU32; 3],
    longs: Vec<loom::sync::atomic::AtomicU64>,
}

impl Words for loom::sync::Arc<Modelled> {
    fn word(&self, at: usize, order: Ordering) -> u32 {
        self.words[at / 4].load(order)
    }
    fn set_word(&self, at: usize, value: u32, order: Ordering) {
        self.words[at / 4].store(value, order);
    }
    fn long(&self, at: usize) -> u64 {
        self.longs[(at - 16) / 8].load(Ordering::Relaxed)
    }
    fn set_long(&self, at: usize, value: u64) {
        self.longs[(at - 16) / 8].store(value, Ordering::Relaxed);
    }
}

/// Two sides on threads of their own, in a ring that is smaller than what goes through it: every entry
/// arrives whole and in order.
#[test]
fn entries_arrive_whole_and_in_order() {
    loom::model(|| {
        let memory = loom::sync::Arc::new(Modelled {
            words: std::array::from_fn(|_| loom::sync::atomic::AtomicU32::new(0)),
            longs: (0..2).map(|_| loom::sync::atomic::AtomicU64::new(0)).collect(),
        });
        let mut producer = Producer::<_, 1>::new(memory.clone(), places(2));
        let mut consumer = Consumer::<_, 1>::new(memory, places(2));
        let writer = loom::thread::spawn(move || {
            let mut next = 10;
            while next < 13 {
                if producer.push([next]) {
                    next += 1;
                } else {
                    loom::thread::yield_now();
                }
                producer.publish();
            }
        });
        let mut wanted = 10;
        while wanted < 13 {
            match consumer.pop() {
                Some([value]) => {
                    assert_eq!(value, wanted);
                    wanted += 1;
                    consumer.free();
                }
                None => loom::thread::yield_now(),
            }
        }
        writer.join().expect("ends");
    });
}
