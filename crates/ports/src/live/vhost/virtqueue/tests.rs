//! A virtqueue and its driver in every order of their steps.

use super::*;
use loom::sync::atomic::{AtomicU32, Ordering, fence};

/// A ring of one descriptor: where its parts lie, in words.
const AVAILABLE: usize = 4;
const USED: usize = 6;
const WORDS: usize = 9;

/// Memory of which every word is seen in every order that there may be.
struct Modelled([AtomicU32; WORDS]);

struct ModelledPart<'m> {
    memory: &'m Modelled,
    at: usize,
}

impl SharedMemory for Modelled {
    type Part<'m> = ModelledPart<'m>;

    fn part(&self, address: u64, length: u32) -> Option<ModelledPart<'_>> {
        let at = address as usize;
        (at + length as usize <= WORDS * 4).then_some(ModelledPart { memory: self, at })
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

impl SharedPart for ModelledPart<'_> {
    fn half(&self, offset: usize) -> u16 {
        let at = self.at + offset;
        (self.memory.0[at / 4].load(Ordering::Acquire) >> (at % 4 * 8)) as u16
    }

    fn set_word(&self, offset: usize, word: u32) {
        self.memory.0[(self.at + offset) / 4].store(word, Ordering::Release);
    }

    fn skip(&self, bytes: usize) -> Self {
        ModelledPart { at: self.at + bytes, ..*self }
    }

    fn read(&self, to: &mut [u8]) {
        for (word, to) in self.memory.0[self.at / 4..].iter().zip(to.chunks_exact_mut(4)) {
            to.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
    }
}

fn queue(memory: &Arc<Modelled>) -> Virtqueue<Modelled> {
    let (available, used) = (AVAILABLE as u64 * 4, USED as u64 * 4);
    Virtqueue::new(memory, RingPlace { size: 1, descriptors: 0, available, used }).expect("a ring")
}

/// What a driver does: it makes the one chain available, and says whether it has to notify.
fn offer(memory: &Modelled) -> bool {
    // A descriptor of four bytes at address 0, and its number in the ring.
    memory.0[2].store(4, Ordering::Relaxed);
    memory.0[AVAILABLE].store(1 << 16, Ordering::Release);
    fence(Ordering::SeqCst);
    memory.0[USED].load(Ordering::Acquire) & NO_NOTIFY == 0
}

fn length(queue: &mut Virtqueue<Modelled>) -> Option<u64> {
    queue.take(false, |_| ()).expect("a driver as it should be").map(|chain| chain.bytes)
}

/// Whatever the device finds when it goes to sleep: what the driver has made available is taken, or the
/// driver knows that it has to notify.
#[test]
fn no_chain_is_left_while_the_device_sleeps() {
    loom::model(|| {
        let memory = Arc::new(Modelled(std::array::from_fn(|_| AtomicU32::new(0))));
        let mut queue = queue(&memory);
        queue.listen(false).expect("a ring");
        let driver = memory.clone();
        let offers = loom::thread::spawn(move || offer(&driver));
        let mut taken = length(&mut queue);
        if taken.is_none() {
            queue.listen(true).expect("a ring");
            taken = length(&mut queue);
        }
        let notifies = offers.join().expect("offered");
        assert!(notifies || taken.is_some());
        assert!(taken.is_none_or(|bytes| bytes == 4), "with the descriptor that was written before");
    });
}

/// A driver that looks for what came back after it has said that it wants interrupts finds it, or is told.
#[test]
fn no_chain_that_comes_back_is_left_while_the_driver_sleeps() {
    loom::model(|| {
        let memory = Arc::new(Modelled(std::array::from_fn(|_| AtomicU32::new(0))));
        memory.0[2].store(4, Ordering::Relaxed);
        memory.0[AVAILABLE].store(1 << 16 | u32::from(NO_INTERRUPT), Ordering::Release);
        let mut queue = queue(&memory);
        let driver = memory.clone();
        let looks = loom::thread::spawn(move || {
            driver.0[AVAILABLE].store(1 << 16, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            driver.0[USED].load(Ordering::Acquire) >> 16 == 1
        });
        let chain = queue.take(false, |_| ()).expect("a driver as it should be").expect("a chain");
        queue.give_back(chain, 0).expect("a ring");
        let told = queue.tell().expect("a ring");
        let found = looks.join().expect("looked");
        assert!(found || told);
    });
}
