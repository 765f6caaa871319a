//! Packets for the machine and others: while others wait, the machine gets its share and no more.

use super::*;
use std::sync::atomic::AtomicUsize;

/// What port 1 brings is for the machine, and what port 2 brings goes on.
const BOTH: &str = r#"
reason mine "for the machine"
start stage all() { if in_port == 1 { punt mine } send 1 }
"#;
const TURNS: usize = 400;

/// The machine takes what was punted off its queue between two batches, so that this never is full.
#[derive(Default)]
struct Machine {
    punts: Mutex<Option<mpsc::Receiver<PuntedPackets>>>,
    taken: AtomicUsize,
    /// How many packets are to come by all ports.
    to_come: AtomicUsize,
}

impl Machine {
    fn takes(&self) {
        let punts = self.punts.lock().unwrap();
        let taken = punts.iter().flat_map(|punts| punts.try_iter()).map(|some| some.len()).sum();
        self.taken.fetch_add(taken, Ordering::Relaxed);
    }
}

/// Brings so many packets in each turn.
struct Bringing {
    port: PortNumber,
    each: usize,
    turns: usize,
    machine: Arc<Machine>,
    memory: Vec<u8>,
    /// Something to wait for, which never comes.
    silent: (UnixStream, UnixStream),
}

impl Receiver for Bringing {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        self.machine.takes();
        batch.clear();
        batch.headroom = HEADROOM as u32;
        if self.turns > 0 {
            self.turns -= 1;
            (0..self.each).for_each(|_| assert!(batch.push(HEADROOM as u64, 60, 60, self.port, now.program)));
            self.machine.to_come.fetch_sub(self.each, Ordering::Relaxed);
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

/// How many packets the machine takes where each port has so many in every turn, and how many go on.
fn taken_beside(for_machine: usize, others: usize) -> (usize, usize) {
    let machine = Arc::new(Machine::default());
    machine.to_come.store(TURNS * (for_machine + others), Ordering::Relaxed);
    let left = Cable::default();
    let lanes = [(1, for_machine), (2, others)].map(|(port, each)| Lane {
        receive: Box::new(Bringing {
            port,
            each,
            turns: TURNS,
            machine: machine.clone(),
            memory: vec![0; HEADROOM + 60 + SLACK],
            silent: UnixStream::pair().unwrap(),
        }),
        send: Box::new(Out(left.clone())),
    });
    let (crew, remote) = workers(vec![lanes.into()], &super::machine()).unwrap();
    *machine.punts.lock().unwrap() = Some(remote.punts(|_, _| None));
    let generations = loaded(BOTH, 1).generations(PORTS, 1);
    let for_crew = remote.clone();
    let running = thread::spawn(move || run(crew, generations, &for_crew, &[]));
    while machine.to_come.load(Ordering::Relaxed) > 0 {
        assert!(!running.is_finished());
        thread::yield_now();
    }
    remote.stop();
    let Ended { generations, failure } = running.join().unwrap();
    assert!(failure.is_none(), "{failure:?}");
    machine.takes();
    let (taken, gone_on) = (machine.taken.load(Ordering::Relaxed), left.lock().unwrap().len());
    let lost: u64 = generations[0].punts_lost.iter().sum();
    assert_eq!((taken as u64 + lost, gone_on), ((TURNS * for_machine) as u64, TURNS * others));
    (taken, gone_on)
}

#[test]
fn while_others_wait_the_machine_gets_its_share_of_packets_and_otherwise_all() {
    let (taken, others) = taken_beside(packet::BATCH, packet::BATCH);
    // What it gets at once, and an eighth and a sixty-fourth of the others; their first batch finds it
    // without any.
    let share = others / 8 + others / 64;
    assert!((share..share + 3 * packet::BATCH).contains(&taken), "{taken} beside {others}");
    for (for_machine, others) in [(packet::BATCH, packet::BATCH - 1), (packet::BATCH, 0)] {
        assert_eq!(taken_beside(for_machine, others), (TURNS * for_machine, TURNS * others));
    }
}
