//! Looks at what all workers have counted, while programs take over.

use super::*;

#[test]
fn a_look_is_of_one_program_at_all_workers() {
    // A worker copies so many counters in many turns, between which another program takes over.
    let text = format!("{IN_ORDER}\ncounter many[60000]\n").replace("send 2", "count many[0]\n    send 2");
    let bench = Bench::running(4, loaded(&text, 4));
    let looks = thread::scope(|scope| {
        let taking_over = scope.spawn(|| {
            for number in 2..200 {
                let new = loaded(&text, 4).generations(PORTS, number);
                bench.remote.replace(new, Vec::new()).expect("all workers run").outcome.expect("it fits");
            }
        });
        let mut looks = 0;
        while !taking_over.is_finished() {
            let parts = bench.remote.look().expect("all workers run");
            let numbers: Vec<u64> = parts.iter().map(|part| part.number).collect();
            assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
            looks += 1;
        }
        taking_over.join().expect("no panic");
        looks
    });
    assert!(looks > 10, "{looks} looks");
    bench.stop();
}
