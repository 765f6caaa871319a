//! Processes that take over frames and rings from each other, with the test in the place of the kernel; and
//! descriptions that cannot be.

use super::super::memory::{bytes_of_pages, file_of};
use super::super::ring::{Consumer, Places, Producer};
use super::super::{FIRST, TRANSMIT};
use super::*;
use crate::live::clock::{Clock, MachineClock};
use crate::live::sys::Shared;
use crate::live::{Offloads, Receiver, Sender};
use packet::{Batch, VirtioHeader};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::Ordering;

const CHUNK: u32 = 2112;

/// A ring that both sides map: its file, and how many entries it has.
struct RingFile(OwnedFd, u32);

impl RingFile {
    fn new(size: u32) -> RingFile {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(256 + 16 * u64::from(size)).expect("room");
        RingFile(file.into(), size)
    }

    fn map(&self) -> (Shared, Places) {
        let shared = Shared::map(&self.0, 256 + 16 * self.1 as usize, 0).expect("memory");
        (shared, Places { producer: 0, consumer: 64, flags: 128, entries: 256, size: self.1 })
    }

    fn producer<const LONGS: usize>(&self) -> Producer<Shared, LONGS> {
        let (shared, places) = self.map();
        Producer::new(shared, places)
    }

    fn consumer<const LONGS: usize>(&self) -> Consumer<Shared, LONGS> {
        let (shared, places) = self.map();
        Consumer::new(shared, places)
    }
}

/// What is handed over of a port with one queue, which is the only one to have frames.
struct Files {
    frames: OwnedFd,
    fill: RingFile,
    received: RingFile,
    transmit: RingFile,
    completed: RingFile,
}

impl Files {
    fn new() -> Files {
        let layout = Layout { chunk: CHUNK as usize, sharing: 1 };
        let frames = file_of(bytes_of_pages(&layout.lengths())).expect("memory");
        let [fill, received] = [FRAMES; 2].map(RingFile::new);
        let [transmit, completed] = [TRANSMIT; 2].map(RingFile::new);
        Files { frames, fill, received, transmit, completed }
    }

    /// The halves of a process that has them.
    fn process(&self, resumes: bool) -> (Incoming, Outlet) {
        let LaneFrames { pool, mut shares } = LaneFrames::map(&described_port(), &self.frames).expect("maps");
        let Share { home, receiving, copies } = shares.pop().flatten().expect("one");
        let (socket, any) = UnixDatagram::pair().expect("sockets");
        let socket = Socket {
            fd: Arc::new(socket.into()),
            fill: self.fill.producer(),
            received: self.received.consumer(),
            metadata: false,
            sending: Some((self.transmit.producer(), self.completed.consumer())),
        };
        let (entrance, exit) = port::halves(vec![socket], any.into()).expect("it sends");
        let port = Arc::new(Port::unwatched(1, Offloads::Cut, 1));
        let mut incoming = Incoming::new(entrance, receiving, home, pool.clone(), port.clone(), 0);
        let mut outlet = Outlet::new(exit, pool, copies, port, 0, 0);
        (incoming.owns_rings, outlet.owns_rings) = (!resumes, !resumes);
        (incoming, outlet)
    }
}

/// The other side of the rings.
struct Kernel {
    memory: Vec<Part>,
    fill: Consumer<Shared, 1>,
    received: Producer<Shared, 2>,
    transmit: Consumer<Shared, 2>,
    completed: Producer<Shared, 1>,
    /// Frames that hold a packet which has not left yet, or not been looked at.
    in_use: BTreeSet<u64>,
    /// How many packets have come.
    came: u64,
    /// The numbers of those that have left.
    left: Vec<u64>,
}

impl Kernel {
    fn of(files: &Files) -> Kernel {
        let layout = Layout { chunk: CHUNK as usize, sharing: 1 };
        let (_, memory) = Part::of_file(&files.frames, &layout.lengths()).expect("maps");
        Kernel {
            memory,
            fill: files.fill.consumer(),
            received: files.received.producer(),
            transmit: files.transmit.consumer(),
            completed: files.completed.producer(),
            in_use: BTreeSet::new(),
            came: 0,
            left: Vec::new(),
        }
    }

    /// So many numbered packets come, if there are frames for them.
    fn receives(&mut self, count: usize) {
        for _ in 0..count {
            let Some([frame]) = self.fill.pop() else { break };
            assert!(self.in_use.insert(frame / u64::from(CHUNK)), "frame {frame} has a packet already");
            let at = frame as usize + FIRST;
            self.memory[0].bytes()[at..at + 64].fill(0);
            self.memory[0].bytes()[at + 14..at + 22].copy_from_slice(&self.came.to_be_bytes());
            assert!(self.received.push([at as u64, 64]));
            self.came += 1;
        }
        self.fill.free();
        self.received.publish();
    }

    /// So many packets leave.
    fn transmits(&mut self, count: usize) {
        for _ in 0..count {
            let Some([at, length]) = self.transmit.pop() else { break };
            assert_eq!(length, 64);
            let copies = self.memory[1].start();
            let part = &mut self.memory[usize::from(at as usize >= copies)];
            let at_part = at as usize - part.start();
            let mut number = [0; 8];
            number.copy_from_slice(&part.bytes()[at_part + 14..at_part + 22]);
            self.left.push(u64::from_be_bytes(number));
            if (at as usize) < copies {
                self.in_use.remove(&(at / u64::from(CHUNK)));
            }
            assert!(self.completed.push([at]));
        }
        self.transmit.free();
        self.completed.publish();
    }
}

/// What a program does with a packet.
#[derive(Clone, Copy, Debug)]
enum Done {
    Drop,
    Send,
    SendCopy,
}

#[derive(Clone, Debug)]
enum Step {
    Receive(usize),
    Run(Vec<Done>),
    Transmit(usize),
    TakeOver,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let done = prop_oneof![Just(Done::Drop), Just(Done::Send), Just(Done::SendCopy)];
    let step = prop_oneof![
        3 => (0..300usize).prop_map(Step::Receive),
        4 => prop::collection::vec(done, 1..8).prop_map(Step::Run),
        3 => (0..300usize).prop_map(Step::Transmit),
        2 => Just(Step::TakeOver),
    ];
    prop::collection::vec(step, 0..60)
}

/// Runs a batch; adds the numbers of the packets that are to leave.
fn run(
    (incoming, outlet): &mut (Incoming, Outlet),
    kernel: &mut Kernel,
    does: &[Done],
    leave: &mut VecDeque<u64>,
) {
    let mut batch = Batch::new();
    let memory = incoming.receive(&mut batch, MachineClock.now());
    let start = memory.as_ptr().addr();
    for index in 0..batch.len {
        let bytes = batch.bytes(memory, index).expect("it is there");
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[14..22]);
        let frame = ((bytes.as_ptr().addr() - start) / CHUNK as usize) as u64;
        let done = does[index % does.len()];
        if !matches!(done, Done::Drop) {
            leave.push_back(u64::from_be_bytes(number));
        }
        match done {
            Done::Drop => {}
            Done::Send => outlet.send(bytes, VirtioHeader::NONE),
            Done::SendCopy => {
                let copy = bytes.to_vec();
                outlet.send(&copy, VirtioHeader::NONE);
            }
        }
        if !matches!(done, Done::Send) {
            kernel.in_use.remove(&frame);
        }
    }
    outlet.flush();
}

fn described_port() -> XdpPort {
    XdpPort { chunk: CHUNK, sharing: 1, index: 0, queues: vec![1], metadata: false }
}

proptest! {
    /// Whoever has the frames and whenever another process takes them over: each packet leaves once, in order
    /// and as it came, and no frame is in two places.
    #[test]
    fn another_process_goes_on_where_the_one_before_it_stood(steps in steps()) {
        let files = Files::new();
        let (mut kernel, mut process, mut leave) = (Kernel::of(&files), files.process(false), VecDeque::new());
        for step in steps {
            match step {
                Step::Receive(count) => kernel.receives(count),
                Step::Run(does) => run(&mut process, &mut kernel, &does, &mut leave),
                Step::Transmit(count) => kernel.transmits(count),
                Step::TakeOver => {
                    let mut next = files.process(true);
                    // Whatever its workers do meanwhile, nothing of the other one changes.
                    let words = || {
                        [&files.fill, &files.received, &files.transmit, &files.completed]
                            .map(|ring| [0, 64].map(|at| ring.map().0.word(at).load(Ordering::Acquire)))
                    };
                    let before = words();
                    run(&mut next, &mut kernel, &[Done::Send], &mut leave);
                    prop_assert_eq!(words(), before);
                    let (send, receive) = (process.1.checkpoint(), process.0.checkpoint());
                    prop_assert!(next.0.resume(&receive) && next.1.resume(&send));
                    // The one before ends, and closes nothing that others have.
                    process = next;
                }
            }
        }
        run(&mut process, &mut kernel, &[Done::Drop], &mut leave);
        kernel.transmits(usize::MAX);
        prop_assert_eq!(&kernel.left, &Vec::from(leave));
        prop_assert_eq!(process.1.losses(), Default::default());
        run(&mut process, &mut kernel, &[Done::Drop], &mut VecDeque::new());
        prop_assert_eq!(process.1.checkpoint().len(), TRANSMIT as usize, "all copies are free");
        let [held, frames @ ..] = &process.0.checkpoint()[..] else { panic!("a queue") };
        let of_kernel = frames.iter().filter(|mark| **mark == 1).count();
        prop_assert_eq!((*held as usize, of_kernel, frames.len()), (of_kernel, of_kernel, FRAMES as usize));
        prop_assert!(frames.iter().all(|mark| *mark <= 1), "none is on its way");
    }
}

#[test]
fn a_process_does_not_begin_at_a_place_that_cannot_be() {
    let files = Files::new();
    let (mut incoming, mut outlet) = files.process(true);
    let receive = |held: u32, frames: &[u32]| [&[held], frames].concat();
    let free = vec![0; FRAMES as usize];
    for wrong in [
        vec![],
        free.clone(),
        receive(FRAMES + 1, &free),
        receive(0, &[free.as_slice(), &[0]].concat()),
        // One that the kernel has, and nobody counts; lent to a program; taken by a port that is not there.
        receive(0, &[&free[1..], &[1]].concat()),
        receive(1, &free),
        receive(0, &[&free[1..], &[2]].concat()),
        receive(0, &[&free[1..], &[4]].concat()),
    ] {
        assert!(!incoming.resume(&wrong), "{} numbers", wrong.len());
    }
    assert!(incoming.resume(&receive(0, &free)));
    for wrong in [&[TRANSMIT][..], &[1, 2, 1], &[u32::MAX]] {
        assert!(!outlet.resume(wrong), "{wrong:?}");
    }
    assert!(outlet.resume(&[0, TRANSMIT - 1]));
}

#[test]
fn what_does_not_suit_its_description_is_refused() {
    let descriptors = |count: usize| -> Vec<OwnedFd> {
        (0..count).map(|_| File::open("/dev/null").expect("it opens").into()).collect()
    };
    let handed = |xdp: &XdpPort| HandedOver {
        interface: "none".to_owned(),
        way: PortWay::AfXdp(xdp.clone()),
        offloads: Offloads::Cut,
        promiscuous: false,
        keeps_tags: false,
        mode: String::new(),
    };
    let refused = |xdp: XdpPort, count: usize| {
        let adopted = adopt(&xdp, &handed(&xdp), 1, descriptors(count), (&mut Vec::new(), false));
        adopted.err().expect("refused").to_string()
    };
    for chunk in [0, LONGEST_CHUNK as u32 + 1] {
        let xdp = XdpPort { chunk, ..described_port() };
        assert!(refused(xdp, 3).contains("so long"), "{chunk}");
    }
    for (queues, count) in [(vec![], 0), (vec![0], 2), (vec![1], 2), (vec![1], 4), (vec![1, 1], 5)] {
        let xdp = XdpPort { queues: queues.clone(), ..described_port() };
        assert!(refused(xdp, count).contains("each lane needs"), "{queues:?} {count}");
    }
    let frames = file_of(4096).expect("memory");
    let many = XdpPort { sharing: MOST_SHARING as u16 + 1, ..described_port() };
    assert!(refused(many, 3).contains("so many ports"));
    for sharing in [1, 2, MOST_SHARING as u16] {
        let mapped = LaneFrames::map(&XdpPort { sharing, ..described_port() }, &frames);
        assert!(mapped.is_err_and(|error| error.to_string().contains("length")), "{sharing}");
    }
    // Nobody has the frames of another port.
    let all =
        file_of(bytes_of_pages(&Layout { chunk: CHUNK as usize, sharing: 1 }.lengths())).expect("memory");
    let mut lane = LaneFrames::map(&described_port(), &all).expect("maps");
    assert!(lane.take(&XdpPort { chunk: CHUNK - 64, ..described_port() }).is_none());
    assert!(lane.take(&XdpPort { sharing: 2, ..described_port() }).is_none());
    assert!(lane.take(&XdpPort { index: 1, ..described_port() }).is_none());
    assert!(lane.take(&described_port()).is_some() && lane.take(&described_port()).is_none());
}
