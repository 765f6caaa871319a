//! Ports that come and go together with a program, while packets come by the others.

use super::*;

/// A lane of port 3 at each worker, over these cables.
fn lanes(come: &[Cable], left: &[Cable]) -> Vec<OtherPorts> {
    let lane = |(come, left): (&Cable, &Cable)| Lane {
        receive: Box::new(In {
            cable: come.clone(),
            port: 3,
            memory: Vec::new(),
            silent: UnixStream::pair().unwrap(),
        }),
        send: Box::new(Out(left.clone())),
    };
    come.iter().zip(left).map(|cables| OtherPorts(vec![None, None, Some(lane(cables))])).collect()
}

/// Nothing comes behind the first two ports.
fn none(workers: usize) -> Vec<OtherPorts> {
    (0..workers).map(|_| OtherPorts(vec![None, None])).collect()
}

#[test]
fn ports_come_and_go_with_a_takeover_or_not_at_all() {
    const FLOWS: u16 = 10;
    const NUMBERS: u32 = 3_000;
    for workers in [1, 3] {
        let bench = Bench::new(workers);
        let cables = || (0..workers).map(|_| Cable::default()).collect::<Vec<_>>();
        let (come, left) = (cables(), cables());
        let (mut received, mut forwarded, mut programs, mut by_third) = (0, 0, 1, 0);
        thread::scope(|scope| {
            let player = scope.spawn(|| bench.play(FLOWS, 0..NUMBERS));
            let mut there = false;
            while !player.is_finished() || there {
                programs += 1;
                // A program that does not fit brings no ports either.
                let other =
                    IN_ORDER.replace("table last: exact(u16) -> u32", "table last: exact(u32) -> u32");
                let other = other.replace("last[p.flow]", "last[p.flow as u32]");
                let change = |there| if there { none(workers) } else { lanes(&come, &left) };
                let ports = if there { PORTS } else { PORTS + 1 };
                let unfit = loaded(&other, workers).generations(ports, programs);
                let replaced = bench.remote.replace_with_ports(unfit, Vec::new(), change(there));
                let replaced = replaced.expect("all workers run");
                assert!(matches!(replaced.outcome, Err(ReplaceError::Misfit { .. })));
                assert_eq!(replaced.lanes.len(), if there { 0 } else { workers }, "what was to come is back");
                let new = loaded(IN_ORDER, workers).generations(ports, programs);
                let replaced = bench.remote.replace_with_ports(new, Vec::new(), change(there));
                let replaced = replaced.expect("all workers run");
                assert_eq!(replaced.outcome.expect("the shape is the same").len(), workers);
                assert_eq!(replaced.lanes.len(), if there { workers } else { 0 }, "what went is back");
                let (in_, out) = account(&replaced.retired);
                (received, forwarded) = (received + in_, forwarded + out);
                there = !there;
                let seen = bench.remote.ask(|generation, lost| (generation.ledger.ports(), lost.len()));
                let now = if there { PORTS + 1 } else { PORTS };
                assert_eq!(seen, Some(vec![(now, usize::from(now)); workers]));
                if there {
                    // What comes by the new port meets the program.
                    for cable in &come {
                        cable.lock().unwrap().push_back(vec![0; 60]);
                        by_third += 1;
                    }
                    while come.iter().any(|cable| !cable.lock().unwrap().is_empty()) {
                        bench.wait();
                    }
                }
            }
        });
        bench.settle();
        let mut sequences: HashMap<u16, Vec<u32>> = HashMap::new();
        for frame in bench.left.iter().flat_map(|cable| cable.lock().unwrap().clone()) {
            let flow = u16::from_be_bytes([frame[14], frame[15]]);
            let number = u32::from_be_bytes([frame[16], frame[17], frame[18], frame[19]]);
            sequences.entry(flow).or_default().push(number);
        }
        let (in_, out) = account(&bench.stop());
        let all = u64::from(FLOWS) * u64::from(NUMBERS);
        let (received, forwarded) = (received + in_, forwarded + out);
        assert_eq!((received, forwarded), (all + by_third, all), "{workers} workers, {programs} programs");
        let whole: Vec<u32> = (0..NUMBERS).collect();
        assert!(sequences.values().all(|numbers| *numbers == whole), "in order within every flow");
    }
}
