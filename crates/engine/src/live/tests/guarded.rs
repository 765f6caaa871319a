//! Guarded ports beside another one: who has which turn.

use super::*;

const FLOOD: &str = "start stage all() { flood }";
/// Batches that wait at either port.
const WAITING: usize = 64;
/// How long a batch takes, in nanoseconds.
const BATCH_TAKES: u64 = 100_000;

/// A port whose batches take time by a clock that is moved by hand, and are noted.
struct Noted {
    inner: In,
    is_guarded: bool,
    clock: Arc<Hand>,
    turns: Arc<Mutex<Vec<PortNumber>>>,
}

impl Receiver for Noted {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        let port = self.inner.port;
        let memory = self.inner.receive(batch, now);
        // An empty one takes a little, too.
        self.clock.0.lock().unwrap().program += if batch.is_empty() { 300 } else { BATCH_TAKES };
        self.turns.lock().unwrap().push(if batch.is_empty() { 0 } else { port });
        memory
    }

    fn descriptor(&self) -> RawFd {
        self.inner.descriptor()
    }

    fn due(&self) -> Option<u64> {
        self.inner.due()
    }

    fn is_guarded(&self) -> bool {
        self.is_guarded
    }

    fn losses(&mut self) -> ReceiveLosses {
        self.inner.losses()
    }
}

/// The ports that had turns, 0 for one by which nothing came, where so many batches wait at each port at the
/// beginning, of which some are guarded.
fn turns(ports: &[(usize, bool)]) -> Vec<PortNumber> {
    let clock = Arc::new(Hand(Mutex::new(Now { program: SECOND, wall: SECOND })));
    let turns = Arc::<Mutex<Vec<PortNumber>>>::default();
    let come: Vec<Cable> = ports.iter().map(|_| Cable::default()).collect();
    let lane = |port: PortNumber, come: &Cable, is_guarded: bool| {
        let silent = UnixStream::pair().unwrap();
        let inner = In { cable: come.clone(), port, memory: Vec::new(), silent };
        let receive = Noted { inner, is_guarded, clock: clock.clone(), turns: turns.clone() };
        Lane { receive: Box::new(receive), send: Box::new(Out(Cable::default())) }
    };
    let all = (1..).zip(&come).zip(ports);
    let lanes = vec![all.map(|((port, come), (_, is_guarded))| lane(port, come, *is_guarded)).collect()];
    for (cable, (waiting, _)) in come.iter().zip(ports) {
        cable.lock().unwrap().extend(vec![vec![2; 60]; waiting * packet::BATCH]);
    }
    let as_clock: Arc<dyn Clock> = clock.clone();
    let (crew, remote) = super::workers(lanes, &as_clock).unwrap();
    let generations = loaded(FLOOD, 1).generations(ports.len() as u16, 1);
    let for_crew = remote.clone();
    let running = thread::spawn(move || run(crew, generations, &for_crew, &[]));
    let begun = std::time::Instant::now();
    while come.iter().any(|cable| !cable.lock().unwrap().is_empty()) {
        assert!(!running.is_finished(), "the worker has ended, and packets wait");
        assert!(begun.elapsed().as_secs() < 60, "packets wait at a port that gets no turn");
        thread::yield_now();
    }
    remote.stop();
    running.join().unwrap();
    let turns = turns.lock().unwrap();
    turns.clone()
}

#[test]
fn beside_another_port_a_guarded_one_waits_and_alone_it_does_not() {
    let had = turns(&[(WAITING, false), (WAITING, false)]);
    assert!(had.chunks(2).take(WAITING).all(|two| two == [1, 2]), "{had:?}");
    let had = turns(&[(WAITING, true), (WAITING, false)]);
    let last = had.iter().rposition(|port| *port == 2).expect("it had turns");
    let beside = had[..last].iter().filter(|port| **port == 1).count();
    assert_eq!(beside, WAITING.div_ceil(16), "{had:?}");
    // Then every turn is its own: the other port is looked at once in between.
    let alone: Vec<_> = had[last + 1..].iter().skip_while(|port| **port != 1).collect();
    assert!(alone.chunks(2).take(WAITING - beside).all(|two| *two[0] == 1), "{had:?}");
}

#[test]
fn each_of_several_guarded_ports_has_its_turns_though_the_one_before_it_has_nothing() {
    let had = turns(&[(0, false), (0, true), (WAITING, true)]);
    assert_eq!(had.iter().filter(|port| **port == 3).count(), WAITING);
    let had = turns(&[(WAITING, false), (4, true), (4, true)]);
    let of_guarded: Vec<_> = had.iter().filter(|port| **port > 1).collect();
    assert!(of_guarded.chunks(2).all(|two| *two == [&2, &3]), "{had:?}");
}
