//! Packets that are shown step by step have the outcome that they have without being looked at, on the same
//! tables.

use captures::generate::{Generator, Profile};
use exec::{BackendKind, Observer, Outputs};
use lang::pipeline::{CompileOptions, compile};
use packet::Batch;
use packet::region::SLACK;

/// Counts what it is shown.
#[derive(Default)]
struct Counting {
    packets: usize,
    stages: usize,
    lookups: usize,
}

impl Observer for Counting {
    fn packet(&mut self, _index: usize, _now: u64) {
        self.packets += 1;
    }

    fn stage(&mut self, _stage: u32) {
        self.stages += 1;
    }

    fn lookup(&mut self, _table: u32, _key: &[u128], _hit: Option<&[u128]>) {
        self.lookups += 1;
    }
}

#[test]
fn what_is_observed_goes_on_as_if_it_were_not() {
    let text = include_str!("../../../programs/mac_switch.rav");
    let program =
        compile("mac_switch.rav", text, &|_| None, &CompileOptions::default()).program.expect("right");
    let load = || exec::load(&program, BackendKind::Native, 5, 3).expect("loads");
    let (mut plain, mut observed) = (load(), load());
    let mut seen = Counting::default();
    let mut generator = Generator::new(&Profile::demo(), 5).expect("possible");
    let (mut bytes, mut shown) = (Vec::new(), 0);
    for round in 0..60 {
        let (mut memory, mut batch) = (Vec::new(), Batch::new());
        for index in 0..20 {
            let time = generator.next(&mut bytes).expect("endless enough");
            let start = memory.len() as u64;
            memory.extend_from_slice(&bytes);
            memory.resize((memory.len() + SLACK).next_multiple_of(64), 0);
            batch.push(start, bytes.len() as u32, bytes.len() as u32, 1 + index % 5, time.time);
        }
        let mut other = batch.clone();
        let mut outputs = Outputs::default();
        plain.run(&mut memory.clone(), &mut batch, &mut outputs);
        let mut others = Outputs::default();
        if round % 3 == 1 {
            shown += 20;
            let inspect = observed.inspect().expect("it shows its steps");
            inspect.run_observed(&program, 5, &mut seen, &mut memory, &mut other, &mut others);
        } else {
            observed.run(&mut memory, &mut other, &mut others);
        }
        assert_eq!(batch.verdicts(), other.verdicts(), "round {round}");
        assert_eq!(outputs.packets, others.packets);
    }
    assert_eq!(plain.entries(0), observed.entries(0));
    assert_eq!(plain.tables(), observed.tables());
    assert_eq!(seen.packets, shown);
    assert!(seen.stages >= shown && seen.lookups > 0, "{} stages, {} lookups", seen.stages, seen.lookups);
}
