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

/// Brings the same packets in each turn.
struct Bringing {
    /// Their flows, and by which port each seems to come.
    packets: Vec<(u16, PortNumber)>,
    has_more: bool,
    turns: usize,
    machine: Arc<Machine>,
    memory: Vec<u8>,
    /// Something to wait for, which never comes.
    silent: (UnixStream, UnixStream),
}

/// Where frames of a flow begin.
const STRIDE: usize = HEADROOM + 60 + SLACK;

impl Bringing {
    fn new(packets: Vec<(u16, PortNumber)>, has_more: bool, machine: &Arc<Machine>) -> Bringing {
        machine.to_come.fetch_add(TURNS * packets.len(), Ordering::Relaxed);
        let mut memory = vec![0; 2 * STRIDE];
        for flow in 0..2 {
            memory[usize::from(flow) * STRIDE + HEADROOM..][..60].copy_from_slice(&probe(flow, 0));
        }
        let silent = UnixStream::pair().unwrap();
        Bringing { packets, has_more, turns: TURNS, machine: machine.clone(), memory, silent }
    }
}

impl Receiver for Bringing {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        self.machine.takes();
        batch.clear();
        batch.headroom = HEADROOM as u32;
        if self.turns > 0 {
            self.turns -= 1;
            for (flow, port) in &self.packets {
                let frame = usize::from(*flow) * STRIDE + HEADROOM;
                assert!(batch.push(frame as u64, 60, 60, *port, now.program));
            }
            self.machine.to_come.fetch_sub(self.packets.len(), Ordering::Relaxed);
        }
        &mut self.memory
    }

    fn has_more(&self) -> bool {
        self.has_more
    }

    fn descriptor(&self) -> RawFd {
        self.silent.0.as_raw_fd()
    }

    fn losses(&mut self) -> ReceiveLosses {
        ReceiveLosses::default()
    }
}

/// The packets that each port brings in a turn, at each worker, and whether there are more.
type Ports = Vec<Vec<(u16, PortNumber)>>;

/// How many packets the machine takes, how many go on, and how many it does not get, worker by worker and by
/// reason.
fn run_with(text: &str, has_more: bool, ports: Vec<Ports>) -> (usize, usize, Vec<Vec<u64>>) {
    let machine = Arc::new(Machine::default());
    let left = Cable::default();
    let workers_count = ports.len();
    let lane = |packets| Lane {
        receive: Box::new(Bringing::new(packets, has_more, &machine)) as Box<dyn Receiver>,
        send: Box::new(Out(left.clone())),
    };
    let lanes = ports.into_iter().map(|ports| ports.into_iter().map(lane).collect()).collect();
    let (crew, remote) = workers(lanes, &super::machine()).unwrap();
    *machine.punts.lock().unwrap() = Some(remote.punts(|_, _| None));
    let generations = loaded(text, workers_count).generations(PORTS, 1);
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
    let lost = generations.into_iter().map(|generation| generation.punts_lost).collect();
    (taken, gone_on, lost)
}

/// How many packets the machine takes where one port has so many for it in every turn, and another so many
/// others, and how many go on.
fn taken_beside(for_machine: usize, others: usize, has_more: bool) -> (usize, usize) {
    let ports = vec![vec![(0, 1); for_machine], vec![(0, 2); others]];
    let (taken, gone_on, lost) = run_with(BOTH, has_more, vec![ports]);
    let lost: u64 = lost[0].iter().sum();
    assert_eq!((taken as u64 + lost, gone_on), ((TURNS * for_machine) as u64, TURNS * others));
    (taken, gone_on)
}

#[test]
fn while_others_wait_the_machine_gets_its_share_of_packets_and_otherwise_all() {
    let (taken, others) = taken_beside(packet::BATCH, packet::BATCH, false);
    // What it gets at once, and an eighth and a sixty-fourth of the others; their first batch finds it
    // without any.
    let share = others / 8 + others / 64;
    assert!((share..share + 3 * packet::BATCH).contains(&taken), "{taken} beside {others}");
    for (for_machine, others) in [(packet::BATCH, packet::BATCH - 1), (packet::BATCH, 0)] {
        assert_eq!(taken_beside(for_machine, others, false), (TURNS * for_machine, TURNS * others));
    }
}

#[test]
fn others_of_ports_that_bring_a_few_at_a_time_wait_where_there_are_more() {
    let (taken, others) = taken_beside(32, 32, true);
    let share = others / 8 + others / 64;
    assert!((share..share + 3 * packet::BATCH).contains(&taken), "{taken} beside {others}");
    assert_eq!(taken_beside(32, 32, false), (TURNS * 32, TURNS * 32));
}

#[test]
fn others_wait_also_where_more_than_half_of_what_comes_is_for_the_machine() {
    let packets: Vec<_> = (0..packet::BATCH).map(|index| (0, if index % 8 == 0 { 2 } else { 1 })).collect();
    let (taken, gone_on, lost) = run_with(BOTH, false, vec![vec![packets, Vec::new()]]);
    let for_machine = TURNS * packet::BATCH / 8 * 7;
    let lost: u64 = lost[0].iter().sum();
    assert_eq!((taken as u64 + lost, gone_on), (for_machine as u64, TURNS * packet::BATCH / 8));
    // It is slowed down, and not stopped: it gets a part as if half were others.
    let share = TURNS * packet::BATCH / 2 / 8;
    assert!((share..2 * share).contains(&taken), "{taken} of {for_machine}");
}

#[test]
fn others_wait_also_where_half_of_a_batch_goes_to_another_worker() {
    let text = format!(
        "import std.net.ethernet
layout probe {{ flow: u16  number: u32 }}
{BOTH}
steer decoder which(eth: ethernet) {{ match eth.type {{ 0x88b5 => by_flow, else => steer 0 }} }}
decoder by_flow(p: probe) {{ steer p.flow }}
"
    );
    let packets: Vec<_> =
        (0..packet::BATCH).map(|index| (index as u16 / 2 % 2, 1 + index as u16 % 2)).collect();
    let nothing = || vec![Vec::new(), Vec::new()];
    let (taken, _, lost) = run_with(&text, false, vec![vec![packets, Vec::new()], nothing()]);
    // A quarter of all is for the machine and this worker's.
    let own = (TURNS * packet::BATCH / 4) as u64;
    let lost: u64 = lost[0].iter().sum();
    assert!(lost > own / 2 && lost < own, "{lost} of {own}, {taken} taken");
}

#[test]
fn a_flood_for_the_machine_takes_nothing_from_what_is_punted_for_another_reason() {
    const THREE: &str = r#"
import std.net.ethernet
layout probe { flow: u16  number: u32 }
reason mine "for the machine"
reason control "of a protocol between routers"
start decoder frame(eth: ethernet) { match eth.type { 0x88b5 => which, else => send 1 } }
decoder which(p: probe) {
    if in_port == 2 { send 1 }
    if p.flow == 0 { punt mine }
    punt control
}
"#;
    // Behind as much of the flood as there is in a batch.
    let mut packets = vec![(0, 1); packet::BATCH / 2 - 1];
    packets.extend(vec![(0, 2); packet::BATCH / 2]);
    packets.push((1, 1));
    let program = loaded(THREE, 1).program;
    let number = |name| program.reasons.iter().position(|reason| reason.name == name).expect("declared");
    let (.., lost) = run_with(THREE, false, vec![vec![packets, Vec::new()]]);
    let lost = &lost[0];
    assert!(lost[number("mine")] > (TURNS * packet::BATCH / 4) as u64, "{lost:?}");
    assert_eq!(lost[number("control")], 0);
}
