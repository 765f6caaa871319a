//! Limits of rules that come from a file count alike on every back end: interpreter, machine code, and a
//! device, whatever packets run together.

use exec::kernel::KernelOptions;
use exec::{Backend, BackendKind, QueueDepth};
use import::policies::RULES_READER;
use ir::Program;
use lang::pipeline::{CompileOptions, compile};
use offload::device_queue::Supply;
use offload::policy::BatchingPolicy;
use offload::{Offload, Offloaded};
use packet::BATCH;
use suite::device::PATIENCE;
use suite::outcome::{SEED, see, see_held};
use suite::packet_generator::Arrivals;
use suite::random::SuiteRandom;

const PORTS: u16 = 2;

const RULES: &str = "*filter
:FORWARD DROP [0:0]
:many - [0:0]
:few - [0:0]
-A FORWARD -p tcp -m limit --limit 50/sec --limit-burst 7 -m tcp --dport 2 -j LOG
-A FORWARD -p tcp -m tcp --dport 0:3 -j many
-A FORWARD -m limit --limit 3/sec --limit-burst 4 -j few
-A FORWARD -p udp -j few
-A FORWARD -p tcp -m limit --limit 100/min --limit-burst 3 -m tcp --dport 4:5 -m limit --limit 50/sec --limit-burst 7 -j ACCEPT
-A many -m limit --limit 100/sec --limit-burst 9 -j RETURN
-A many -p tcp -m tcp --dport 1 -g few
-A many -j ACCEPT
-A few -m limit --limit 50/sec --limit-burst 2 -j ACCEPT
COMMIT
";

const TEXT: &str = r#"
layout probe { proto: u8 dport: u16 }
reason blocked "a rule"
counter logged
counter lines[64]
policy edge(family: u8, proto: u8, dport: u16 absent, fragment: u1) {
    from "rules" as iptables
    hook forward
    pass => { count lines[rule & 63] send 2 }
    block => { count lines[rule & 63] drop blocked }
    log => count logged
}
start decoder frame(p: probe) { goto edge.forward(4, p.proto, p.dport, p.proto == 6 || p.proto == 17, 0) }
"#;

fn program() -> Program {
    let load = |path: &str| (path == "rules").then(|| RULES.to_owned());
    let options = CompileOptions { rules_reader: Some(RULES_READER), ..CompileOptions::default() };
    let compiled = compile("limits.rav", TEXT, &load, &options);
    compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
}

/// Packets of three protocols, some a microsecond apart and some a second.
fn arrivals(count: usize) -> Arrivals {
    let (mut random, mut arrivals, mut now) = (SuiteRandom::new(7), Arrivals::default(), 0);
    for _ in 0..count {
        now += [1_000, 1_000, 1_000_000, 10_000_000, 1_000_000_000][random.below(5) as usize];
        let (proto, port) = ([6, 6, 17, 47][random.below(4) as usize], random.below(8) as u8);
        arrivals.push(&[proto, 0, port], 3, now, 1);
    }
    arrivals
}

#[test]
fn limits_of_a_file_count_alike_on_every_back_end() {
    let (program, arrivals) = (program(), arrivals(6_000));
    let judge = see(&program, BackendKind::Interpreter, &arrivals, PORTS, BATCH).expect("it loads");
    for size in [1, 7, BATCH] {
        for kind in BackendKind::ALL {
            let seen = see(&program, kind, &arrivals, PORTS, size).expect("it loads");
            assert_eq!(seen.difference(&judge), None, "{kind:?}, {size} together");
        }
    }
    let depth = QueueDepth { packets: 600, device_batches: 2 };
    let offload = Offload::new(&program, PORTS, SEED, &KernelOptions::default()).expect("it has a kernel");
    let offloaded = Offloaded::on_host(offload, &program, PORTS, depth).expect("there are threads");
    let mut offloaded = offloaded.with_patience(PATIENCE);
    let policy = BatchingPolicy::FixedBatch { packets: 600 };
    let seen = see_held(&program, &mut offloaded, &arrivals, policy.into(), Supply::Plenty);
    assert_eq!(seen.difference(&judge), None);
    let tally = offloaded.on_device().expect("it is on a device").tally;
    assert_eq!(tally.device + tally.again + tally.changed + tally.host, 6_000, "{tally:?}");
    // Each limit lets some packets through, and stops others.
    let [logged, lines, ..] = &judge.counters[..] else { panic!("{:?}", judge.counters) };
    assert!([logged[0].0, lines[9].0, lines[13].0, lines[0].0].iter().all(|count| *count > 100));
    assert!(logged[0].0 < 600 && lines[9].0 < 600, "{logged:?} {lines:?}");
}
