//! A guarded port beside another one: who has which turn.

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
        if !batch.is_empty() {
            self.clock.0.lock().unwrap().program += BATCH_TAKES;
            self.turns.lock().unwrap().push(port);
        }
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

/// The ports that had turns, of two that have as many packets waiting at the beginning.
fn turns(is_guarded: bool) -> Vec<PortNumber> {
    let clock = Arc::new(Hand(Mutex::new(Now { program: SECOND, wall: SECOND })));
    let turns = Arc::<Mutex<Vec<PortNumber>>>::default();
    let come = [Cable::default(), Cable::default()];
    let lane = |port: PortNumber, come: &Cable| {
        let silent = UnixStream::pair().unwrap();
        let inner = In { cable: come.clone(), port, memory: Vec::new(), silent };
        let (clock, turns) = (clock.clone(), turns.clone());
        let receive = Noted { inner, is_guarded: is_guarded && port == 1, clock, turns };
        Lane { receive: Box::new(receive), send: Box::new(Out(Cable::default())) }
    };
    let lanes = vec![vec![lane(1, &come[0]), lane(2, &come[1])]];
    for cable in &come {
        cable.lock().unwrap().extend(vec![vec![2; 60]; WAITING * packet::BATCH]);
    }
    let as_clock: Arc<dyn Clock> = clock.clone();
    let (crew, remote) = super::workers(lanes, &as_clock).unwrap();
    let generations = loaded(FLOOD, 1).generations(PORTS, 1);
    let for_crew = remote.clone();
    let running = thread::spawn(move || run(crew, generations, &for_crew, &[]));
    while come.iter().any(|cable| !cable.lock().unwrap().is_empty()) {
        assert!(!running.is_finished(), "the worker has ended, and packets wait");
        thread::yield_now();
    }
    remote.stop();
    running.join().unwrap();
    let turns = turns.lock().unwrap();
    turns.clone()
}

#[test]
fn beside_another_port_a_guarded_one_waits_and_alone_it_does_not() {
    let had = turns(false);
    assert!(had.chunks(2).all(|two| two == [1, 2]), "{had:?}");
    let had = turns(true);
    let last = had.iter().rposition(|port| *port == 2).expect("it had turns");
    let beside = had[..last].iter().filter(|port| **port == 1).count();
    assert_eq!(beside, WAITING.div_ceil(16), "{had:?}");
    // Then all that waits, one batch behind the other.
    assert_eq!(had.len(), 2 * WAITING);
}
