//! Ownership of frames against a model that keeps a place for each, and under every order of the halves'
//! steps.

use super::*;
use proptest::prelude::*;
use std::sync::atomic::AtomicU32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Free,
    Kernel,
    Program,
    OnItsWay,
}

#[derive(Clone, Debug)]
enum Step {
    Fill,
    Lend(u32),
    Take(u32),
    GiveBack(u32),
    GiveAllBack,
    Settle,
    PutBack(u32),
    Reclaim,
    TakeOver,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let frame = || 0..7u32;
    let step = prop_oneof![
        3 => Just(Step::Fill),
        3 => frame().prop_map(Step::Lend),
        3 => frame().prop_map(Step::Take),
        3 => frame().prop_map(Step::GiveBack),
        1 => Just(Step::GiveAllBack),
        1 => Just(Step::Settle),
        1 => frame().prop_map(Step::PutBack),
        1 => Just(Step::Reclaim),
        1 => Just(Step::TakeOver),
    ];
    proptest::collection::vec(step, 0..300)
}

proptest! {
    #[test]
    fn every_frame_is_in_one_place(steps in steps()) {
        const FRAMES: u32 = 5;
        let mut home = Home::<AtomicU32>::new(FRAMES);
        let mut marks = home.marks();
        let mut places = [Place::Free; FRAMES as usize];
        // Frames that were given back are free once the home looks.
        let mut given_back = Vec::new();
        for step in steps {
            let place = |frame: u32| places.get(frame as usize).copied();
            match step {
                Step::Fill => match home.next_free() {
                    Some(frame) => {
                        prop_assert_eq!(place(frame), Some(Place::Free));
                        prop_assert!(!given_back.contains(&frame));
                        places[frame as usize] = Place::Kernel;
                    }
                    None => {
                        let free = (0..FRAMES).filter(|&frame| place(frame) == Some(Place::Free));
                        prop_assert_eq!(free.count(), given_back.len());
                    }
                },
                Step::Lend(frame) => {
                    let kernel = place(frame) == Some(Place::Kernel);
                    prop_assert_eq!(home.lend(frame), kernel, "only what the kernel has can be lent");
                    if kernel {
                        places[frame as usize] = Place::Program;
                    }
                }
                Step::Take(frame) => {
                    let program = place(frame) == Some(Place::Program);
                    prop_assert_eq!(marks.take(frame, 1), program);
                    if program {
                        places[frame as usize] = Place::OnItsWay;
                    }
                }
                Step::GiveBack(frame) => {
                    prop_assert!(!marks.give_back(frame, 0), "another half has taken none");
                    let on_its_way = place(frame) == Some(Place::OnItsWay);
                    prop_assert_eq!(marks.give_back(frame, 1), on_its_way);
                    if on_its_way {
                        places[frame as usize] = Place::Free;
                        given_back.push(frame);
                    }
                }
                Step::GiveAllBack => {
                    marks.give_back_all(0);
                    marks.give_back_all(1);
                    for frame in (0..FRAMES).filter(|&frame| place(frame) == Some(Place::OnItsWay)) {
                        given_back.push(frame);
                    }
                    for place in places.iter_mut().filter(|place| **place == Place::OnItsWay) {
                        *place = Place::Free;
                    }
                }
                Step::PutBack(frame) => {
                    home.put_back(frame);
                    if place(frame) == Some(Place::Kernel) {
                        places[frame as usize] = Place::Free;
                    }
                }
                Step::Reclaim => {
                    home.reclaim();
                    for place in places.iter_mut().filter(|place| **place == Place::Kernel) {
                        *place = Place::Free;
                    }
                }
                Step::TakeOver => {
                    let told = home.checkpoint();
                    home = Home::new(FRAMES);
                    let of_kernel = places.iter().filter(|place| **place == Place::Kernel).count();
                    prop_assert!(!home.resume(&told[1..], of_kernel, 2));
                    prop_assert!(!home.resume(&told, of_kernel + 1, 2) && home.resume(&told, of_kernel, 2));
                    marks = home.marks();
                    let on_their_way = places.iter().filter(|place| **place == Place::OnItsWay).count();
                    prop_assert_eq!((marks.taken_by(0), marks.taken_by(1)), (0, on_their_way as u32));
                    given_back.clear();
                    for place in places.iter_mut().filter(|place| **place == Place::Program) {
                        *place = Place::Free;
                    }
                }
                Step::Settle => {
                    home.settle();
                    given_back.clear();
                    for place in places.iter_mut().filter(|place| **place == Place::Program) {
                        *place = Place::Free;
                    }
                }
            }
        }
    }
}

/// Two senders give frames back while the home looks for them: each comes home once.
#[test]
fn frames_that_are_given_back_come_home_once() {
    loom::model(|| {
        let mut home = Home::<loom::sync::atomic::AtomicU32>::new(2);
        for _ in 0..2 {
            let frame = home.next_free().expect("free");
            home.lend(frame);
        }
        let senders: Vec<_> = [0, 1]
            .into_iter()
            .map(|frame| {
                let marks = home.marks();
                loom::thread::spawn(move || {
                    if marks.take(frame, frame) {
                        marks.give_back(frame, frame);
                    }
                })
            })
            .collect();
        let mut seen = [false; 2];
        let mut look = |home: &mut Home<loom::sync::atomic::AtomicU32>| {
            home.settle();
            while let Some(frame) = home.next_free() {
                assert!(!std::mem::replace(&mut seen[frame as usize], true), "frame {frame} twice");
            }
        };
        look(&mut home);
        for sender in senders {
            sender.join().expect("ends");
        }
        look(&mut home);
        assert_eq!(seen, [true; 2]);
    });
}

impl Word for loom::sync::atomic::AtomicU32 {
    fn new(value: u32) -> Self {
        loom::sync::atomic::AtomicU32::new(value)
    }
    fn load(&self, order: Ordering) -> u32 {
        loom::sync::atomic::AtomicU32::load(self, order)
    }
    fn store(&self, value: u32, order: Ordering) {
        loom::sync::atomic::AtomicU32::store(self, value, order);
    }
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        loom::sync::atomic::AtomicU32::swap(self, value, order)
    }
    fn replace(&self, old: u32, new: u32, order: Ordering) -> bool {
        self.compare_exchange(old, new, order, Ordering::Relaxed).is_ok()
    }
}
