//! Stages that are measured: packets and tables become what they become otherwise, every packet is in the
//! counts, and the parts are the whole.

use captures::generate::{Generator, Profile};
use exec::stages::sites;
use exec::{Backend, BackendKind, Inspect, Outputs, StageClock, load_measurable};
use ir::Program;
use lang::pipeline::{CompileOptions, compile};
use packet::region::{HEADROOM, SLACK};
use packet::{Batch, VerdictKind};
use std::cell::Cell;
use std::sync::Arc;

/// Rules that are asked for many packets at once, with packets that end before and with stages behind.
const RULES: &str = "
import std.net.{ethernet, ipv4}
reason odd \"an odd length\"
reason not_ip \"not IPv4\"
counter seen[256]
counter others
table acl: rules(src: ip4, proto: u8) -> u8 { capacity 8  counted  entries { (_, 6) => 1  (_, 17) => 2 } }
start decoder frame(eth: ethernet) { match eth.type { 0x0800 => packet, else => strange } }
decoder packet(ip: ipv4) {
    if ip.total & 1 == 1 { drop odd }
    match acl[ip.src, ip.proto] { some n => chosen(n), none => { if ip.ttl > 64 { goto chosen(9) } flood } }
}
stage chosen(n: u8) { count seen[n as u32 & 255]  goto last }
stage last() { send 1 }
stage strange() { count others  drop not_ip }
";

/// A decoder that a packet goes through again and again, and handlers.
const LOOP: &str = "
import std.net.ethernet
layout step { next: u8 }
event came(n: u32) { if n > 0 { count lengths } }
counter lengths
table hosts: exact(mac) -> port { capacity 64  age 1s  evict lru }
start decoder frame(eth: ethernet) { learn hosts[eth.src] = in_port  goto more }
decoder more(s: step) cap 9 { if s.next & 1 == 1 { goto more }  raise came(length)  send 2 }
every 1ms { count lengths }
";

fn program(name: &str, text: &str) -> Arc<Program> {
    let compiled = compile(name, text, &|_| None, &CompileOptions::default());
    let said: Vec<String> = compiled.diagnostics.iter().map(|said| format!("{said:?}")).collect();
    Arc::new(compiled.program.unwrap_or_else(|| panic!("{name}: {said:#?}")))
}

fn loaded(program: &Arc<Program>, back_end: BackendKind) -> Box<dyn Backend> {
    let mut backend = load_measurable(program, back_end, 5, 3).expect("loads");
    if let Some(draft) = shown(&mut backend).draft() {
        shown(&mut backend).adopt(draft.compile().expect("compiles"));
    }
    assert!(shown(&mut backend).draft().is_none(), "it is there");
    backend
}

fn shown(backend: &mut Box<dyn Backend>) -> &mut dyn Inspect {
    backend.inspect().expect("it shows how it runs packets")
}

fn batch(generator: &mut Generator) -> (Vec<u8>, Batch) {
    let (mut memory, mut batch, mut bytes) = (Vec::new(), Batch::new(), Vec::new());
    batch.headroom = HEADROOM as u32;
    for index in 0..150 {
        let time = generator.next(&mut bytes).expect("endless enough").time;
        memory.resize((memory.len() + HEADROOM).next_multiple_of(64), 0);
        batch.push(memory.len() as u64, bytes.len() as u32, bytes.len() as u32, 1 + index % 5, time);
        memory.extend_from_slice(&bytes);
        memory.resize(memory.len() + SLACK, 0);
    }
    (memory, batch)
}

thread_local!(static CALLS: Cell<u64> = const { Cell::new(0) });

/// A counter that goes on by one whenever it is read.
fn calls() -> u64 {
    CALLS.with(|calls| {
        calls.set(calls.get() + 1);
        calls.get()
    })
}

#[test]
fn measured_packets_and_tables_become_what_they_become_otherwise() {
    let programs = [
        ("rules.rav", RULES),
        ("loop.rav", LOOP),
        ("mac_switch.rav", include_str!("../../../programs/mac_switch.rav")),
        ("firewall.rav", include_str!("../../../programs/firewall.rav")),
        ("learning_log.rav", include_str!("../../../programs/learning_log.rav")),
        ("vxlan_gateway.rav", include_str!("../../../programs/vxlan_gateway.rav")),
    ];
    for (name, text) in programs {
        let program = program(name, text);
        let mut counts = Vec::new();
        for back_end in [BackendKind::Interpreter, BackendKind::Native] {
            let (mut plain, mut measured) = (loaded(&program, back_end), loaded(&program, back_end));
            let mut clock = StageClock::new(&program, calls);
            let mut generator = Generator::new(&Profile::demo(), 7).expect("possible");
            let (mut packets, mut reads) = (0, 0);
            for round in 0..13 {
                let (mut memory, mut left) = batch(&mut generator);
                let (mut others, mut right) = (memory.clone(), left.clone());
                let (mut outputs, mut other_outputs) = (Outputs::default(), Outputs::default());
                plain.run(&mut memory, &mut left, &mut outputs);
                // On and off: what one variant has learned, the other one finds.
                if round % 3 > 0 {
                    let before = CALLS.get();
                    let measured = shown(&mut measured);
                    assert!(measured.run_measured(&mut clock, &mut others, &mut right, &mut other_outputs));
                    // The first read begins.
                    reads += CALLS.get() - before - 1;
                    packets += right.len as u64;
                } else {
                    measured.run(&mut others, &mut right, &mut other_outputs);
                }
                assert_eq!(left.verdicts(), right.verdicts(), "{name} {round}");
                assert_eq!(outputs.packets, other_outputs.packets);
                assert_eq!(outputs.resized, other_outputs.resized);
                assert!(memory == others, "{name} {round}: the bytes differ");
            }
            for table in 0..program.tables.len() as u32 {
                assert_eq!(plain.entries(table), measured.entries(table), "{name}");
            }
            assert_eq!(plain.events(), measured.events());
            for counter in 0..program.counters.len() as u32 {
                assert_eq!(plain.counter(counter), measured.counter(counter), "{name}");
            }
            let costs = clock.costs();
            assert_eq!((clock.packets(), costs.len()), (packets, sites(&program).len()));
            let whole: u64 = costs.iter().map(|cost| cost.cycles).sum::<u64>() + clock.spent();
            assert_eq!(whole, reads, "{name}: everything that passed is somewhere");
            let entered: Vec<u64> = costs.iter().map(|cost| cost.entered).collect();
            assert!(entered.contains(&packets), "{name}: every packet began at one place: {entered:?}");
            counts.push(entered);
        }
        assert_eq!(counts[0], counts[1], "{name}: both back ends enter the same stages as often");
    }
}

#[test]
fn packets_are_where_their_way_leads_them() {
    let program = program("rules.rav", RULES);
    let mut backend = loaded(&program, BackendKind::Native);
    let mut clock = StageClock::new(&program, calls);
    let mut generator = Generator::new(&Profile::demo(), 7).expect("possible");
    let (mut sent, mut all) = (0, 0);
    for _ in 0..13 {
        let (mut memory, mut batch) = batch(&mut generator);
        let mut outputs = Outputs::default();
        assert!(shown(&mut backend).run_measured(&mut clock, &mut memory, &mut batch, &mut outputs));
        sent += batch.verdicts().iter().filter(|verdict| verdict.kind() == VerdictKind::Send).count() as u64;
        all += batch.len as u64;
    }
    let sites = sites(&program);
    let entered = |name: &str| {
        let site = sites.iter().position(|site| site.name.as_deref() == Some(name)).expect(name);
        clock.costs()[site].entered
    };
    assert!(sent > 0 && entered("strange") > 0);
    assert_eq!((entered("frame"), entered("chosen"), entered("last")), (all, sent, sent));
    assert_eq!(
        backend.counter(1)[0].0,
        entered("strange"),
        "each of them once, although some are tried before"
    );
}

#[test]
fn code_of_another_program_is_not_taken() {
    let program = program("loop.rav", LOOP);
    let (mut first, mut second) = (loaded_plain(&program), loaded_plain(&program));
    let draft = shown(&mut first).draft().expect("missing");
    let second = shown(&mut second);
    second.adopt(draft.compile().expect("compiles"));
    let mut clock = StageClock::new(&program, calls);
    let mut nothing = Batch::new();
    assert!(!second.run_measured(&mut clock, &mut [], &mut nothing, &mut Outputs::default()));
    let mut unasked = exec::load(&program, BackendKind::Native, 5, 3).expect("loads");
    let unasked = shown(&mut unasked);
    assert!(unasked.draft().is_none());
    assert!(!unasked.run_measured(&mut clock, &mut [], &mut nothing, &mut Outputs::default()));
}

fn loaded_plain(program: &Arc<Program>) -> Box<dyn Backend> {
    load_measurable(program, BackendKind::Native, 5, 3).expect("loads")
}
