//! Workers that stand still for another process: they take no packet, whatever they had taken is run, and
//! what is asked for meanwhile comes before the next one.

use super::*;

const STEERED: &str = "
steer decoder which(eth: ethernet) { match eth.type { 0x88b5 => by_flow, else => steer 0 } }
decoder by_flow(p: probe) { steer p.flow / 3 }
";

#[test]
fn workers_that_stand_still_take_no_packet_and_another_program_begins_with_the_next() {
    const FLOWS: u16 = 9;
    const CHUNK: u32 = 200;
    let text = IN_ORDER.to_owned() + STEERED;
    for workers in [1, 3] {
        let bench = Bench::running(workers, loaded(&text, workers));
        let (mut received, mut forwarded, mut played) = (0, 0, 0);
        for chunk in 0..10 {
            bench.play(FLOWS, chunk * CHUNK..(chunk + 1) * CHUNK - 1);
            let mut resting = bench.remote.rest();
            let held =
                || resting.each(vec![(); workers], |generation, _, ()| generation.ledger.received().packets);
            let before = held().expect("all run");
            bench.play(FLOWS, (chunk + 1) * CHUNK - 1..(chunk + 1) * CHUNK);
            played += u64::from(FLOWS) * u64::from(CHUNK);
            let waiting: usize = bench.come.iter().map(|cable| cable.lock().unwrap().len()).sum();
            assert!(waiting >= usize::from(FLOWS), "those of now are still there");
            assert_eq!(held().expect("all run"), before, "nothing is run");
            assert_eq!(received + before.iter().sum::<u64>() + waiting as u64, played, "nothing is held");
            if chunk % 2 == 0 {
                // As where another process does not take over after all.
                drop(resting);
                continue;
            }
            // As where the ports are another process's until then.
            resting.stay();
            let new = loaded(&text, workers).generations(PORTS, u64::from(chunk) + 2);
            let replaced = resting.replace(new).expect("all run");
            assert!(replaced.outcome.is_ok());
            assert_eq!(
                replaced.retired.iter().map(|part| part.ledger.received().packets).collect::<Vec<_>>(),
                before
            );
            let (in_, out) = account(&replaced.retired);
            (received, forwarded) = (received + in_, forwarded + out);
        }
        bench.settle();
        let end = Instant::now() + Duration::from_secs(120);
        while bench.left.iter().map(|cable| cable.lock().unwrap().len() as u64).sum::<u64>() < played {
            assert!(Instant::now() < end, "not all leave");
            bench.wait();
        }
        let (in_, out) = account(&bench.stop());
        assert_eq!((received + in_, forwarded + out), (played, played), "{workers} workers");
    }
}

#[test]
fn workers_that_are_to_stay_take_no_packet_whatever_becomes_of_who_let_them_rest() {
    const FLOWS: u16 = 4;
    let workers = 2;
    let bench = Bench::running(workers, loaded(IN_ORDER, workers));
    let mut resting = bench.remote.rest();
    resting.stay();
    assert!(resting.each(vec![(); workers], |_, _, ()| ()).is_some(), "they stand still");
    drop(resting);
    bench.play(FLOWS, 0..50);
    // Those that go on take them at once.
    (0..100).for_each(|_| bench.wait());
    let waiting: usize = bench.come.iter().map(|cable| cable.lock().unwrap().len()).sum();
    assert_eq!(waiting, 50 * usize::from(FLOWS));
}
