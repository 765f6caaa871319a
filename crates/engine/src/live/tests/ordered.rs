//! Fragments that come before the first of their packet, on workers: they leave behind it, and none is lost
//! when time passes, a program takes over, or the workers end.

use super::*;

/// A later fragment whose first one has not run before it is dropped.
const BEHIND_FIRST: &str = r#"
import std.net.{ethernet, ipv4}
order fragments
reason other "no IPv4"
reason no_first "a later fragment, and its first did not run before it"
table firsts: exact(u16) { capacity 64  age 30s  evict lru }
start decoder frame(eth: ethernet) { match eth.type { 0x0800 => check, else => drop other } }
decoder check(ip: ipv4) {
    if ip.frag == 0 { learn firsts[ip.id]  send 2 }
    match firsts[ip.id] { some _ => send 2, none => drop no_first }
}
"#;

const FIRST: u16 = 0x2000;

fn fragment(id: u16, place: u16) -> Vec<u8> {
    let mut frame = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0\x45\0\0\x2e".to_vec();
    frame.extend(id.to_be_bytes());
    frame.extend(place.to_be_bytes());
    frame.extend([64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 9]);
    frame.resize(60, 0);
    frame
}

/// By a clock that stands still until it is moved.
fn still() -> Arc<Hand> {
    Arc::new(Hand(Mutex::new(Now { program: 1_000 * SECOND, wall: 1_700_000_000 * SECOND })))
}

fn begun(clock: &Arc<Hand>, text: &str) -> Bench {
    let clock: Arc<dyn Clock> = clock.clone();
    Bench::by(&clock, 1, loaded(text, 1))
}

fn put(bench: &Bench, frames: &[Vec<u8>]) {
    bench.come[0].lock().unwrap().extend(frames.iter().cloned());
    bench.settle();
}

fn received(bench: &Bench) -> u64 {
    bench.remote.ask(|generation, _| generation.ledger.received().packets).expect("runs").iter().sum()
}

fn left(bench: &Bench) -> Vec<Vec<u8>> {
    std::mem::take(&mut *bench.left[0].lock().unwrap()).into()
}

#[test]
fn later_fragments_leave_behind_their_first_whichever_batch_they_came_in() {
    let bench = begun(&still(), BEHIND_FIRST);
    let (third, second, first) = (fragment(7, 50), fragment(7, 0x2019), fragment(7, FIRST));
    put(&bench, std::slice::from_ref(&third));
    put(&bench, std::slice::from_ref(&second));
    assert_eq!((received(&bench), left(&bench)), (0, vec![]));
    put(&bench, &[fragment(8, FIRST), first.clone(), fragment(8, 3)]);
    assert_eq!(left(&bench), [fragment(8, FIRST), first, third, second, fragment(8, 3)]);
    assert_eq!(account(&bench.stop()), (5, 5));
}

#[test]
fn a_fragment_whose_first_does_not_come_runs_after_a_second_without_another_packet() {
    let clock = still();
    let bench = begun(&clock, BEHIND_FIRST);
    put(&bench, &[fragment(7, 50)]);
    clock.0.lock().unwrap().program += SECOND - 1;
    // A request is answered between two rounds, and each round sees what is due.
    (0..3).for_each(|_| assert_eq!(received(&bench), 0));
    clock.0.lock().unwrap().program += 1;
    while received(&bench) == 0 {
        bench.wait();
    }
    assert_eq!(account(&bench.stop()), (1, 0));
}

#[test]
fn what_waits_is_run_by_the_program_that_is_replaced_or_ends() {
    let bench = begun(&still(), BEHIND_FIRST);
    put(&bench, &[fragment(7, 50), fragment(9, FIRST)]);
    let replaced = bench.remote.replace(loaded(BEHIND_FIRST, 1).generations(PORTS, 2), Vec::new());
    let replaced = replaced.expect("all workers run");
    assert_eq!(account(&replaced.retired), (2, 1));
    // The new program still knows which first fragments have come.
    put(&bench, &[fragment(9, 3), fragment(7, 51)]);
    assert_eq!(left(&bench), [fragment(9, FIRST), fragment(9, 3)]);
    assert_eq!(received(&bench), 1);
    assert_eq!(account(&bench.stop()), (2, 1));
}

#[test]
fn a_program_that_does_not_ask_for_order_has_packets_as_they_come() {
    let text = BEHIND_FIRST.replace("order fragments\n", "");
    let bench = begun(&still(), &text);
    put(&bench, &[fragment(7, 50), fragment(7, FIRST), fragment(7, 60)]);
    assert_eq!(left(&bench), [fragment(7, FIRST), fragment(7, 60)]);
    assert_eq!(account(&bench.stop()), (3, 2));
}
