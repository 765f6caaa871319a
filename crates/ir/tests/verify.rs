//! The verifier: each fault is found where it is, sound programs pass, and accepted programs keep their
//! promises on random walks.

use ir::read::read;
use ir::verify::{Fault, derive_manifest, verify};
use ir::*;

/// Declarations that most cases use.
const DECLARATIONS: &str = r#"program "case"
slots 2
reason r0 "no_such_port" "the port does not exist"
table t0 "hosts" { key ("ip" ip4:32) value ("at" port:16) capacity 4 age 1000 lifetimes entry (1) = (2) default (7) }
table t1 "fixed" { key ("a" uint:8, "b" uint:4) value () capacity 1 }
counter c0 "hits" size 1
counter c1 "cells" size 3 indexed
ports g0 (1, 2)
event e0 "seen" ("ip" ip4:32) handler f1
every 1000 handler f2
template p0 "0000000000000000" (0:32, 40:12)
stage s0 "frame"
layout l0 "ethernet" { field "dst" mac bit 0 width 48 }
"#;

const HANDLERS: &str = r#"
function f1 "seen" { b0(%0:32): done }
function f2 "tick" { b0: %0:64 = now done }
"#;

/// A program around a packet function, its manifest as small as can be.
fn program_of(packet: &str) -> Program {
    let text = format!("{DECLARATIONS}\nfunction f0 \"packet\" {{ {packet} }}\n{HANDLERS}");
    let mut program = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    program.manifest = derive_manifest(&program);
    program
}

/// The faults of a program with their places as `f0 b1 2`.
fn faults(program: &Program) -> Vec<(String, Fault)> {
    let errors = verify(program).err().unwrap_or_default();
    let place = |error: &ir::verify::VerifyError| {
        let block = error.place.block.map(|block| format!(" {block}")).unwrap_or_default();
        let step = error.place.instruction.map(|step| format!(" {step}")).unwrap_or_default();
        error.place.function.map(|function| format!("f{function}{block}{step}")).unwrap_or_default()
    };
    errors.iter().map(|error| (place(error), error.fault.clone())).collect()
}

#[track_caller]
fn fails(packet: &str, place: &str, fault: Fault) {
    assert_eq!(faults(&program_of(packet)), [(place.to_owned(), fault)], "{packet}");
}

#[track_caller]
fn passes(packet: &str) {
    assert_eq!(faults(&program_of(packet)), [], "{packet}");
}

/// A fault of declarations: a program that passes, changed.
#[track_caller]
fn fails_when(change: impl FnOnce(&mut Program), fault: Fault) {
    let mut program = program_of("b0: flood");
    change(&mut program);
    assert_eq!(faults(&program), [(String::new(), fault)]);
}

#[test]
fn every_operation_used_rightly_passes() {
    passes(
        r#"name %0 "start" uint
        b0: %0:32 = const 0  stage s0  need %0 + 14 ok b1 short b9
        b1: header l0 at %0 "eth"
            %1:48 = load %0 + 0, 6 proven 14
            %2:48 = load %0 + 6, 6 proven 14
            store %0 + 0, 6 proven 14 = %2
            %3:1 = eq %1, %2
            %4:48 = select %3, %1, %2
            %5:32 = resize %4
            %6:1, %7:16 = lookup t0[%5]
            %8:1 = has_room(t0[%5])
            %9:1 = learn t0[%5] = (%7)
            %20:64 = now  end t0[%5] after %20
            remove t0[%5]
            set_default t0 = (%7)
            clear_default t0
            count c0
            count c1[%5]
            %10:64 = now
            raise e0(%5) after %10
            %11:12 = const 4095
            emit p0(%5, %11) tail %5 limit %5 port %7
            %18:16 = checksum %0, 14 more %5
            %19:16 = checksum %0, 13
            copy %7
            %12:16 = in_port
            %13:32 = wire_length
            %14:32 = captured
            %15:32 = add_saturate %13, %14
            keep %15
            switch %12 {1 => b2, 2 => b3(%15)} else b4
        b2: multicast g0
        b3(%16:32): branch %3, b2, b9
        b4: fuel 1 cap 5 ok b5 out b9
        b5: %17:16 = const 3  send %17
        b9: drop r0"#
            .replace("b9", "b6")
            .as_str(),
    );
}

#[test]
fn declarations() {
    fails_when(|program| program.reasons.clear(), Fault::NoReasons);
    fails_when(
        |program| program.reasons.push(program.reasons[0].clone()),
        Fault::ReasonTwice("no_such_port".into()),
    );
    fails_when(|program| program.tables[1].keys.clear(), Fault::NoKey(1));
    fails_when(|program| program.tables[1].keys[0].width = 129, Fault::ColumnWidth(1));
    fails_when(|program| program.tables[1].keys[1].width = 0, Fault::ColumnWidth(1));
    fails_when(|program| program.tables[1].capacity = 0, Fault::Capacity(1));
    fails_when(
        |program| program.tables[1].entries = vec![Entry::exact(&[1, 1], &[]), Entry::exact(&[2, 1], &[])],
        Fault::Capacity(1),
    );
    fails_when(|program| program.tables[1].entries = vec![Entry::exact(&[1], &[])], Fault::Entry(1, 0));
    fails_when(|program| program.tables[1].entries = vec![Entry::exact(&[1, 16], &[])], Fault::Entry(1, 0));
    fails_when(|program| program.tables[0].entries.push(Entry::exact(&[1], &[1 << 16])), Fault::Entry(0, 1));
    fails_when(|program| program.tables[1].lifetimes = true, Fault::KindProperty(1));
    fails_when(|program| program.tables[0].default = Some(vec![]), Fault::Default(0));
    fails_when(|program| program.tables[0].default = Some(vec![65536]), Fault::Default(0));
    fails_when(|program| program.counters[0].size = 0, Fault::EmptyCounter(0));
    fails_when(|program| program.templates[0].holes[1].bit = 53, Fault::HoleOutside(0));
    fails_when(|program| program.templates[0].holes[1].bit = u32::MAX, Fault::HoleOutside(0));
    fails_when(|program| program.templates[0].holes[1].width = 0, Fault::HoleOutside(0));
    fails_when(|program| program.templates[0].holes[1].bit = 31, Fault::HolesOverlap(0));
    let sum = Sum { at: 4, from: 2, end: None, besides: vec![(0, 3)], ..Sum::default() };
    let mut sound = program_of("b0: flood");
    assert!(sound.templates[0].bytes.len() >= 6);
    sound.templates[0].sums = vec![sum.clone(), Sum { end: Some(6), ..sum.clone() }];
    assert_eq!(faults(&sound), []);
    let length = sound.templates[0].bytes.len() as u32;
    for wrong in [
        Sum { at: length - 1, ..sum.clone() },
        Sum { at: u32::MAX, ..sum.clone() },
        Sum { from: length + 1, ..sum.clone() },
        Sum { end: Some(1), ..sum.clone() },
        Sum { end: Some(length + 1), ..sum.clone() },
        Sum { besides: vec![(0, 2), (1, length)], ..sum.clone() },
        Sum { besides: vec![(u32::MAX, u32::MAX)], ..sum },
    ] {
        fails_when(|program| program.templates[0].sums = vec![wrong], Fault::SumOutside(0));
    }
    fails_when(|program| program.events[0].handler = 0, Fault::NoSuchHandler(0));
    fails_when(|program| program.events[0].handler = 3, Fault::NoSuchHandler(3));
    fails_when(|program| program.events[0].handler = 2, Fault::HandlerParams(0));
    fails_when(|program| program.events[0].params[0].width = 31, Fault::HandlerParams(0));
    fails_when(|program| program.every[0].handler = 9, Fault::NoSuchHandler(9));
    fails_when(|program| program.every[0].handler = 1, Fault::TimerParams(1));
    fails_when(|program| program.every[0].period = 0, Fault::NoPeriod);
    assert_eq!(
        faults(&read("program \"empty\" reason r0 \"a\" \"b\"").expect("reads")),
        [(String::new(), Fault::NoPacketFunction)]
    );
}

#[test]
fn rights() {
    let packet = "b0: %0:32 = const 0 need %0 + 4 ok b1 short b1
        b1: %1:16 = const 9 %2:1, %3:16 = lookup t0[%0] send %1";
    let without = |packet: &str, change: fn(&mut Manifest)| {
        let mut program = program_of(packet);
        change(&mut program.manifest);
        faults(&program)
    };
    let right = |what: &str| vec![(String::new(), Fault::Right(what.to_owned()))];
    assert_eq!(without(packet, |_| ()), []);
    assert_eq!(without(packet, |manifest| manifest.ports.clear()), right("to send to port 9"));
    assert_eq!(
        without("b0: multicast g0", |manifest| manifest.ports.retain(|port| *port != 2)),
        right("to send to port 2")
    );
    assert_eq!(
        without("b0: %0:16 = in_port send %0", |manifest| manifest.any_port = false),
        right("to send to any port")
    );
    assert_eq!(
        without("b0: %0:32 = const 5 remove t0[%0] flood", |manifest| manifest.writes_tables.clear()),
        right("to write table t0")
    );
    assert_eq!(
        without(packet, |manifest| manifest.writes_tables.push(2)),
        right("to write table t2, which does not exist")
    );
    let emit = "b0: %0:32 = const 5 %1:12 = const 1 %2:16 = const 1 emit p0(%0, %1) tail %0 port %2 flood";
    assert_eq!(without(emit, |manifest| manifest.makes_packets = false), right("to make packets"));
    assert_eq!(without(emit, |manifest| manifest.reads_payload = false), right("to read payload"));
    assert_eq!(without(emit, |manifest| manifest.ports.clear()), right("to send to port 1"));
    let store = "b0: %0:32 = const 0 %1:8 = const 1 need %0 + 1 ok b1 short b2
        b1: store %0 + 0, 1 proven 1 = %1 flood b2: flood";
    assert_eq!(without(store, |manifest| manifest.writes_packet = false), right("to write packets"));
    for edit in
        ["pop %0 at %0", "truncate %0", "fragment %0 at %0", "%1:12 = const 1 %2:1 = push p0(%0, %1) at %0"]
    {
        let edit = format!("b0: %0:32 = const 5 {edit} flood");
        let lacks = without(&edit, |manifest| manifest.resizes_packet = false);
        assert_eq!(lacks, right("to change sizes of packets"), "{edit}");
        assert_eq!(without(&edit, |manifest| manifest.writes_packet = false), right("to write packets"));
    }
    assert_eq!(without(store, |manifest| manifest.ports.push(77)), [], "more rights than needed are allowed");
}

#[test]
fn values_and_blocks() {
    fails("", "f0", Fault::NoBlocks);
    fails("b0: flood undefined %0:0", "f0", Fault::ValueWidth(Value(0)));
    fails("b0: flood undefined %0:129", "f0", Fault::ValueWidth(Value(0)));
    fails("name %0 \"x\" uint b0: flood", "f0", Fault::NoSuchValue(Value(0)));
    fails("b0: keep %0 flood", "f0 b0 0", Fault::NoSuchValue(Value(0)));
    fails("b0: %0:8 = const 1 %0 = const 2 flood", "f0 b0", Fault::MadeTwice(Value(0)));
    fails("b0: %0:8 = const 1 jump b1(%0) b1(%1:8): %1 = const 2 flood", "f0 b1", Fault::MadeTwice(Value(1)));
    fails("b0(%0:8): flood", "f0", Fault::PacketParams);
    fails("b0: jump b1 b1: fuel 0 cap 1 ok b0 out b2 b2: flood", "f0 b1 0", Fault::EdgeToEntry);
    fails("b0: jump b7", "f0 b0 0", Fault::NoSuchBlock(BlockId(7)));
    fails("b0: jump b1 b1(%0:8): flood", "f0 b0 0", Fault::Args(BlockId(1)));
    fails("b0: %1:9 = const 1 jump b1(%1) b1(%0:8): flood", "f0 b0 1", Fault::Args(BlockId(1)));
    fails("b0: jump b1(%4) b1(%0:8): flood", "f0 b0 0", Fault::Args(BlockId(1)));
}

#[test]
fn indexes_out_of_range() {
    let value = "b0: %0:32 = const 1 %1:16 = const 1";
    for (code, what, index) in [
        ("remove t2[%0] flood", "table", 2),
        ("clear_default t9 flood", "table", 9),
        ("count c2 flood", "counter", 2),
        ("raise e1(%0) flood", "event", 1),
        ("emit p1() port %1 flood", "template", 1),
        ("stage s1 flood", "stage", 1),
        ("header l1 at %0 \"x\" flood", "layout", 1),
    ] {
        fails(&format!("{value} {code}"), "f0 b0 2", Fault::NoSuch(what, index));
    }
    fails("b0: multicast g1", "f0 b0 0", Fault::NoSuch("set of ports", 1));
    fails("b0: drop r1", "f0 b0 0", Fault::NoSuch("reason", 1));
    fails("b0: punt r8", "f0 b0 0", Fault::NoSuch("reason", 8));
}

#[test]
fn shapes_of_instructions() {
    let start = "b0: %0:32 = const 1 %1:16 = const 1 %2:8 = const 1 %3:1 = const 1";
    let wide = |value, due| Fault::Width { value: Value(value), due };
    for (code, fault) in [
        ("%4:3 = const 8", Fault::Constant(8)),
        ("%4:32 = add %0, %1", wide(1, 32)),
        ("%4:8 = shift_left %0, %2", wide(0, 8)),
        ("%4:1 = lt %0, %1", wide(1, 32)),
        ("%4:2 = lt %0, %0", wide(4, 1)),
        ("%4:32 = select %2, %0, %0", wide(2, 1)),
        ("%4:32 = select %3, %0, %1", wide(1, 32)),
        ("%4:32, %5:32 = resize %0", Fault::Results { due: 1, found: 2 }),
        ("keep %0 %4:1 = keep %0", Fault::Results { due: 0, found: 1 }),
        ("const 4", Fault::Results { due: 1, found: 0 }),
        ("%4:8 = in_port", wide(4, 16)),
        ("%4:31 = captured", wide(4, 32)),
        ("%4:32 = now", wide(4, 64)),
        ("%4:1 = lookup t0[%0]", Fault::Results { due: 2, found: 1 }),
        ("%4:1, %5:8 = lookup t0[%0]", wide(5, 16)),
        ("%4:1, %5:16 = lookup t0[%1]", wide(1, 32)),
        ("%4:1, %5:16 = lookup t0[]", Fault::Operands { due: 1, found: 0 }),
        ("%4:1 = learn t0[%0] = (%0)", wide(0, 16)),
        ("%4:1 = learn t0[%0] = ()", Fault::Operands { due: 1, found: 0 }),
        ("%4:4 = const 1 %5:1 = learn t1[%2, %4] = ()", Fault::NoExpiry(1)),
        ("%4:1 = has_room(t0[%0], t1[%2])", Fault::Operands { due: 2, found: 1 }),
        ("remove t0[%2]", wide(2, 32)),
        ("end t0[%0] after %1", wide(1, 64)),
        ("%4:64 = now end t0[%2] after %4", wide(2, 32)),
        ("%4:64 = now %5:4 = const 1 end t1[%2, %5] after %4", Fault::NoLifetimes(1)),
        ("set_default t0 = (%2)", wide(2, 16)),
        ("count c1", Fault::NoIndex(1)),
        ("count c1[%1]", wide(1, 32)),
        ("raise e0(%1)", wide(1, 32)),
        ("raise e0()", Fault::Operands { due: 1, found: 0 }),
        ("raise e0(%0) after %0", wide(0, 64)),
        ("copy %0", wide(0, 16)),
        ("emit p0(%0) port %1", Fault::Operands { due: 2, found: 1 }),
        ("emit p0(%0, %1) port %1", wide(1, 12)),
        ("%4:12 = const 1 emit p0(%0, %4) port %0", wide(0, 16)),
        ("%4:12 = const 1 emit p0(%0, %4) tail %1 port %1", wide(1, 32)),
        ("%4:12 = const 1 emit p0(%0, %4) limit %1 port %1", wide(1, 32)),
        ("%4:16 = checksum %1, 0", wide(1, 32)),
        ("%4:16 = checksum %0, 0 more %1", wide(1, 32)),
        ("%4:32 = checksum %0, 0", wide(4, 16)),
        ("header l0 at %1 \"x\"", wide(1, 32)),
        ("%4:8 = load %0 + 0, 0 proven 1", Fault::AccessSize(0)),
        ("%4:16 = load %1 + 0, 2 proven 2", wide(1, 32)),
        ("%4:16 = load %0 + 0, 1 proven 1", wide(4, 8)),
        ("store %0 + 0, 1 proven 1 = %1", wide(1, 8)),
        ("branch %0, b1, b1 b1:", wide(0, 1)),
        ("switch %2 {256 => b1} else b1 b1:", Fault::Case(256)),
        ("switch %2 {3 => b1, 3 => b1} else b1 b1:", Fault::Case(3)),
        ("need %1 + 1 ok b1 short b1 b1:", wide(1, 32)),
        ("need %0 + 1 more %1 ok b1 short b1 b1:", wide(1, 32)),
        ("need %0 + 1 limit %2 ok b1 short b1 b1:", wide(2, 32)),
        ("fuel 2 cap 1 ok b1 out b1 b1:", Fault::Slot(2)),
        ("fuel 1 cap 1048577 ok b1 out b1 b1:", Fault::Cap(1_048_577)),
        ("send %0 b1:", wide(0, 16)),
    ] {
        let found = faults(&program_of(&format!("{start} {code} flood")));
        let found: Vec<&Fault> = found.iter().map(|(_, fault)| fault).collect();
        match fault {
            Fault::AccessSize(_) => assert!(found.contains(&&fault), "{code}: {found:?}"),
            _ => assert_eq!(found, [&fault], "{code}"),
        }
    }
}

#[test]
fn handlers_know_no_packet() {
    for (code, step) in [
        ("%1:16 = in_port done", 0),
        ("%1:32 = wire_length done", 0),
        ("%1:32 = captured done", 0),
        ("%1:16 = checksum %0, 0 done", 0),
        ("header l0 at %0 \"x\" done", 0),
        ("%1:16 = const 1 copy %1 done", 1),
        ("%1:16 = const 1 %2:12 = const 1 emit p0(%0, %2) tail %0 port %1 done", 2),
        ("pop %0 at %0 done", 0),
        ("truncate %0 done", 0),
        ("fragment %0 at %0 done", 0),
        ("%1:12 = const 1 %2:1 = push p0(%0, %1) at %0 done", 1),
        ("need %0 + 1 ok b1 short b1 b1: done", 0),
        ("%1:8 = load %0 + 0, 1 proven 0 done", 0),
    ] {
        let mut program = program_of("b0: flood");
        let text = format!("program \"x\" function f0 \"seen\" {{ b0(%0:32): {code} }}");
        program.functions[1] = read(&text).expect(code).functions.remove(0);
        program.manifest = derive_manifest(&program);
        assert_eq!(faults(&program), [(format!("f1 b0 {step}"), Fault::PacketOnly)], "{code}");
    }
    fails("b0: done", "f0 b0 0", Fault::WrongEnd);
    for verdict in [Terminator::Flood, Terminator::Drop(0), Terminator::Punt(0), Terminator::Multicast(0)] {
        let mut program = program_of("b0: flood");
        program.functions[1].blocks[0].terminator = verdict;
        program.manifest = derive_manifest(&program);
        assert_eq!(faults(&program), [("f1 b0 0".to_owned(), Fault::WrongEnd)]);
    }
}

#[test]
fn uses_need_definitions_on_every_path() {
    let late = |value| Fault::NotDominated(Value(value));
    fails("b0: keep %0 %0:8 = const 1 flood", "f0 b0 0", late(0));
    fails("b0: keep %0 flood undefined %0:8", "f0 b0 0", late(0));
    // No instruction uses what it makes itself, not even the first.
    fails("b0: %0:32 = resize %0 flood", "f0 b0 0", late(0));
    fails("b0: %1:8 = const 0 %0:32 = resize %0 flood", "f0 b0 1", late(0));
    fails(
        "b0: %0:1 = const 1 branch %0, b1, b2 b1: %1:8 = const 1 jump b2 b2: keep %1 flood",
        "f0 b2 0",
        late(1),
    );
    fails(
        "b0: %0:1 = const 1 branch %0, b1, b2 b1: %1:8 = const 1 jump b3(%1) b2: jump b3(%1) b3(%2:8): flood",
        "f0 b2 0",
        late(1),
    );
    fails(
        "b0: jump b1 b1: fuel 0 cap 3 ok b2 out b3 b2: %0:8 = const 1 jump b1 b3: keep %0 flood",
        "f0 b3 0",
        late(0),
    );
    fails("b0: keep %0 flood b1: %0:8 = const 1 flood", "f0 b0 0", late(0));
    passes(
        "b0: %0:1 = const 1 branch %0, b1, b2 b1: %1:8 = const 1 jump b3(%1) b2: jump b4 b3(%2:8): keep %1 flood b4: keep %0 flood",
    );
    passes("b0: flood b1: keep %0 flood undefined %0:8");
}

#[test]
fn cycles_need_fuel() {
    fails("b0: jump b1 b1: jump b1", "f0 b1", Fault::Endless);
    fails("b0: %0:1 = const 0 jump b1 b1: jump b2 b2: branch %0, b1, b3 b3: flood", "f0 b2", Fault::Endless);
    // Running out of fuel again and again is no end.
    fails("b0: jump b1 b1: fuel 0 cap 3 ok b2 out b1 b2: flood", "f0 b1", Fault::Endless);
    fails("b0: jump b1 b1: fuel 0 cap 3 ok b2 out b2 b2: jump b1", "f0 b1", Fault::Endless);
    passes("b0: jump b1 b1: fuel 0 cap 3 ok b1 out b2 b2: flood");
    passes(
        "b0: jump b1 b1: fuel 0 cap 1048576 ok b2 out b4 b2: fuel 1 cap 3 ok b2 out b1 b4: flood"
            .replace("b4", "b3")
            .as_str(),
    );
}

fn not_proven(bytes: u64, shown: u32) -> Fault {
    Fault::NotProven { base: Value(0), bytes, shown }
}

#[test]
fn accesses_need_proof() {
    let begin = "b0: %0:32 = const 0 %9:1 = const 1 %8:32 = const 4";
    let rest = "undefined %2:1 undefined %3:1 undefined %4:1 undefined %5:1 undefined %6:1 undefined %7:1";
    let load = "%1:16 = load %0 + 12, 2 proven 14 flood";
    let case = |code: &str| format!("{begin} {code} {rest}").replace("LOAD", load);
    // The need itself.
    passes(&case("need %0 + 14 ok b1 short b2 b1: LOAD b2: flood"));
    passes(&case("need %0 + 99 more %8 limit %8 ok b1 short b2 b1: LOAD b2: flood"));
    fails(&case("LOAD"), "f0 b0 3", not_proven(14, 0));
    fails(&case("need %0 + 13 ok b1 short b2 b1: LOAD b2: flood"), "f0 b1 0", not_proven(14, 13));
    fails(&case("need %0 + 14 ok b1 short b2 b1: flood b2: LOAD"), "f0 b2 0", not_proven(14, 0));
    fails(&case("need %8 + 14 ok b1 short b2 b1: LOAD b2: flood"), "f0 b1 0", not_proven(14, 0));
    fails(&case("need %0 + 14 ok b1 short b1 b1: LOAD"), "f0 b1 0", not_proven(14, 0));
    // An access must not reach behind its own proof, at its last byte.
    fails(
        &case("need %0 + 99 ok b1 short b2 b1: %1:16 = load %0 + 13, 2 proven 14 flood b2: flood"),
        "f0 b1 0",
        not_proven(15, 14),
    );
    fails(
        &case("need %0 + 99 ok b1 short b2 b1: %1:16 = load %0 + 4294967295, 2 proven 99 flood b2: flood"),
        "f0 b1 0",
        not_proven(4_294_967_297, 99),
    );
    // A sum needs proof of all its known bytes, and those behind them begin with a new pair.
    passes(&case("need %0 + 14 ok b1 short b2 b1: %1:16 = checksum %0, 14 more %8 flood b2: flood"));
    fails(
        &case("need %0 + 14 ok b1 short b2 b1: %1:16 = checksum %0, 15 flood b2: flood"),
        "f0 b1 0",
        not_proven(15, 14),
    );
    fails(
        &case("need %0 + 14 ok b1 short b2 b1: %1:16 = checksum %0, 13 more %8 flood b2: flood"),
        "f0 b1 0",
        Fault::OddSum(13),
    );
    // Facts hold further on, and the larger of two holds.
    passes(&case(
        "need %0 + 14 ok b1 short b4 b1: jump b2 b2: need %0 + 2 ok b3 short b4 b3: LOAD b4: flood",
    ));
    // Joins take the smaller.
    passes(&case(
        "branch %9, b1, b2 b1: need %0 + 14 ok b3 short b4 b2: need %0 + 20 ok b3 short b4 b3: LOAD b4: flood",
    ));
    fails(
        &case(
            "branch %9, b1, b2 b1: need %0 + 14 ok b3 short b4 b2: need %0 + 13 ok b3 short b4 b3: LOAD b4: flood",
        ),
        "f0 b3 0",
        not_proven(14, 13),
    );
    fails(
        &case("branch %9, b1, b2 b1: need %0 + 14 ok b3 short b4 b2: jump b3 b3: LOAD b4: flood"),
        "f0 b3 0",
        not_proven(14, 0),
    );
    // One that was shown for another place counts for that place alone.
    for (one, other) in [("%0", "%8"), ("%8", "%0")] {
        fails(
            &case(&format!(
                "branch %9, b1, b2 b1: need {one} + 14 ok b3 short b4 b2: need {other} + 20 ok b3 short b4 b3: LOAD b4: flood"
            )),
            "f0 b3 0",
            not_proven(14, 0),
        );
    }
    passes(&case(
        "branch %9, b1, b2 b1: need %0 + 14 ok b5 short b4 b2: need %0 + 20 ok b6 short b4 b3: LOAD b4: flood b5: jump b3 b6: jump b3",
    ));
    // The way a known original failed: a branch that never looked.
    fails(
        &case("branch %9, b1, b3 b1: need %0 + 14 ok b3 short b2 b2: flood b3: LOAD"),
        "f0 b3 0",
        not_proven(14, 0),
    );
}

#[test]
fn proof_goes_through_parameters_and_loops() {
    passes(
        "b0: %0:32 = const 0 need %0 + 14 ok b1(%0) short b2 b1(%1:32): %2:8 = load %1 + 13, 1 proven 14 flood b2: flood",
    );
    let join = |second: u32| {
        format!(
            "b0: %1:32 = const 0 %2:32 = const 4 %3:1 = const 1 branch %3, b1, b2
             b1: need %1 + 20 ok b3(%1) short b4
             b2: need %2 + {second} ok b3(%2) short b4
             b3(%0:32): %4:8 = load %0 + 19, 1 proven 20 flood b4: flood"
        )
    };
    passes(&join(20));
    fails(&join(19), "f0 b3 0", not_proven(20, 19));
    // A loop that carries the same position round keeps the fact; one that advances loses it.
    let around = |back: &str| {
        format!(
            "b0: %1:32 = const 0 %2:32 = const 4 need %1 + 4 ok b1(%1) short b3
             b1(%0:32): %3:8 = load %0 + 3, 1 proven 4 %4:32 = add %0, %2 fuel 0 cap 9 ok b2 out b3
             b2: jump b1({back}) b3: flood"
        )
    };
    passes(&around("%0"));
    fails(&around("%4"), "f0 b1 0", not_proven(4, 0));
    // A block that goes back to itself, and to which only long ways lead, which all have looked.
    passes(
        "b0: %0:32 = const 0 %1:1 = const 1 branch %1, b1, b3
         b1: jump b2
         b2: need %0 + 4 ok b5 short b6
         b3: jump b4
         b4: need %0 + 9 ok b5 short b6
         b5: %2:8 = load %0 + 3, 1 proven 4 fuel 0 cap 9 ok b5 out b6
         b6: flood",
    );
    // Two loops deep, the inner one advancing.
    fails(
        "b0: %1:32 = const 0 %2:32 = const 4 %9:1 = const 0 need %1 + 4 ok b1(%1) short b5
         b1(%0:32): %3:8 = load %0 + 3, 1 proven 4 fuel 0 cap 9 ok b2(%0) out b5
         b2(%4:32): fuel 1 cap 9 ok b3 out b4
         b3: %5:32 = add %4, %2 branch %9, b2(%5), b2(%4)
         b4: jump b1(%4)
         b5: flood undefined %6:1 undefined %7:1 undefined %8:1",
        "f0 b1 0",
        not_proven(4, 0),
    );
    // A value made anew in each round keeps nothing from the round before.
    fails(
        "b0: jump b1
         b1: fuel 0 cap 9 ok b2 out b5
         b2: %0:32 = captured %1:1 = const 1 branch %1, b3, b4
         b3: need %0 + 4 ok b1 short b5
         b4: %2:8 = load %0 + 0, 1 proven 4 flood
         b5: flood",
        "f0 b4 0",
        not_proven(4, 0),
    );
}

#[test]
fn large_programs_take_little_time() {
    // A ladder of needs with one shared way out, then a load that needs the first: quadratic or recursive
    // work would show.
    let count = 100_000_u32;
    let mut text = String::from("b0: %0:32 = const 0 need %0 + 14 ok b2 short b1 b1: flood\n");
    for block in 2..count {
        text += &format!(
            "b{block}: %{}:16 = load %0 + 12, 2 proven 14 need %0 + 15 ok b{} short b1\n",
            block - 1,
            block + 1
        );
    }
    text += &format!("b{count}: flood");
    let program = program_of(&text);
    let start = std::time::Instant::now();
    assert_eq!(faults(&program), []);
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
    assert!(lang::cost::cost(&program).functions[0].bound.bytes_touched >= 2 * (u64::from(count) - 2));
}

/// A small generator of repeatable random numbers (Steele, Lea, Flood: SplitMix, 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % limit as u64) as usize
    }
}

#[test]
fn proof_ends_where_the_packet_changes_its_size() {
    for edit in ["pop %0 at %0", "truncate %0", "%3:12 = const 1 %4:1 = push p0(%0, %3) at %0"] {
        let steps = edit.matches('=').count().max(1);
        fails(
            &format!(
                "b0: %0:32 = const 0 need %0 + 4 ok b1 short b2
                 b1: %1:8 = load %0 + 3, 1 proven 4 {edit} %2:8 = load %0 + 3, 1 proven 4 flood
                 b2: flood"
            ),
            &format!("f0 b1 {}", steps + 1),
            not_proven(4, 0),
        );
        passes(&format!(
            "b0: %0:32 = const 0 need %0 + 4 ok b1 short b3
             b1: %1:8 = load %0 + 3, 1 proven 4 {edit} need %0 + 4 ok b2 short b3
             b2: %2:8 = load %0 + 3, 1 proven 4 flood
             b3: flood"
        ));
        // A fact that began above does not hold in a block below it that one way reaches past an edit.
        let joined = format!(
            "b0: %0:32 = const 0 %1:1 = const 0 need %0 + 4 ok b1 short b4
             b1: branch %1, b2, b3
             b2: {edit} jump b3
             b3: %2:8 = load %0 + 3, 1 proven 4 flood b4: flood"
        );
        fails(&joined, "f0 b3 0", not_proven(4, 0));
        passes(&joined.replace(edit, "fragment %0 at %0"));
        // Nor round a loop.
        let looped = format!(
            "b0: %0:32 = const 0 %1:8 = const 0 need %0 + 4 ok b1 short b2
             b1: %2:8 = load %0 + 3, 1 proven 4 {edit} fuel 0 cap 9 ok b1 out b2
             b2: flood"
        );
        fails(&looped, "f0 b1 0", not_proven(4, 0));
        // Nor in a block that follows the one to which the loop goes back.
        let behind = format!(
            "b0: %0:32 = const 0 %1:8 = const 0 need %0 + 4 ok b1 short b3
             b1: fuel 0 cap 9 ok b2 out b3
             b2: %2:8 = load %0 + 3, 1 proven 4 {edit} jump b1
             b3: flood"
        );
        fails(&behind, "f0 b2 0", not_proven(4, 0));
        passes(&behind.replace(edit, "fragment %0 at %0"));
        // Nor before a loop within a loop, which two ways back lie between.
        let before = format!(
            "b0: %0:32 = const 0 %1:8 = const 0 need %0 + 4 ok b1 short b6
             b1: fuel 0 cap 9 ok b2 out b6
             b2: %2:8 = load %0 + 3, 1 proven 4 jump b3
             b3: fuel 1 cap 9 ok b4 out b5
             b4: {edit} jump b3
             b5: jump b1
             b6: flood"
        );
        fails(&before, "f0 b2 0", not_proven(4, 0));
        passes(&before.replace(edit, "fragment %0 at %0"));
    }
}

/// A random packet function over positions: needs, loads, joins, loops, parameters. Many break a rule.
fn random_function(random: &mut Random) -> Function {
    let count = 2 + random.below(7);
    let mut function = Function::default();
    let fresh = |function: &mut Function, width: u8| {
        function.widths.push(width);
        Value(function.widths.len() as u32 - 1)
    };
    for index in 0..count {
        let params =
            (0..if index == 0 { 0 } else { random.below(2) }).map(|_| fresh(&mut function, 32)).collect();
        let mut instructions = Vec::new();
        if index == 0 || random.below(3) == 0 {
            instructions.push(Instruction {
                results: vec![fresh(&mut function, 32)],
                op: Op::Captured,
                span: Default::default(),
            });
        }
        function.blocks.push(Block {
            params,
            instructions,
            terminator: Terminator::Flood,
            span: Default::default(),
        });
    }
    let positions = function.widths.len();
    let value = |random: &mut Random| {
        let limit = 1 + random.below(positions);
        Value(random.below(limit) as u32)
    };
    for index in 0..count {
        for _ in 0..random.below(3) {
            if random.below(8) == 0 {
                let op = match random.below(3) {
                    0 => Op::PopBytes { at: value(random), bytes: value(random) },
                    1 => Op::Truncate(value(random)),
                    _ => Op::Fragment { at: value(random), mtu: value(random) },
                };
                let results = Vec::new();
                function.blocks[index].instructions.push(Instruction {
                    results,
                    op,
                    span: Default::default(),
                });
            }
            let bytes = 1 + random.below(4) as u32;
            let op = Op::Load { base: value(random), offset: bytes - 1, bytes: 1, proven: bytes };
            let results = vec![fresh(&mut function, 8)];
            function.blocks[index].instructions.push(Instruction { results, op, span: Default::default() });
        }
        let target = |random: &mut Random| {
            let backward = random.below(6) == 0;
            let first = if backward { 1 } else { (index + 1).min(count - 1) };
            let block = first + random.below(count - first);
            Target {
                block: BlockId(block as u32),
                args: function.blocks[block].params.iter().map(|_| value(random)).collect(),
            }
        };
        let terminator = match random.below(8) {
            0 => Terminator::Jump(target(random)),
            1 => Terminator::Fuel { slot: 0, cap: 3, ok: target(random), out: target(random) },
            2 => Terminator::Flood,
            _ => Terminator::Need {
                base: value(random),
                bytes: 1 + random.below(5) as u32,
                more: None,
                limit: None,
                ok: target(random),
                short: target(random),
            },
        };
        function.blocks[index].terminator = terminator;
    }
    function
}

/// Runs a function with random positions; says what rule of the IR the run broke, if one.
fn run(function: &Function, random: &mut Random) -> Result<(), &'static str> {
    let mut captured = random.below(6) as u64;
    let mut values: Vec<Option<u64>> = vec![None; function.widths.len()];
    let (mut block, mut fuel) = (0, 0);
    for _ in 0..1000 {
        let code = &function.blocks[block];
        for instruction in &code.instructions {
            match instruction.op {
                Op::Captured => values[instruction.results[0].0 as usize] = Some(random.below(4) as u64),
                Op::Load { base, proven, .. } => {
                    let base = values[base.0 as usize].ok_or("use before definition")?;
                    if base + u64::from(proven) > captured {
                        return Err("load behind the captured bytes");
                    }
                    values[instruction.results[0].0 as usize] = Some(0);
                }
                Op::PopBytes { at, bytes } => {
                    let at = values[at.0 as usize].ok_or("use before definition")?.min(captured);
                    captured -= values[bytes.0 as usize].ok_or("use before definition")?.min(captured - at);
                }
                Op::Truncate(length) => {
                    captured = captured.min(values[length.0 as usize].ok_or("use before definition")?);
                }
                Op::Fragment { at, mtu } => {
                    values[at.0 as usize].and(values[mtu.0 as usize]).ok_or("use before definition")?;
                }
                _ => unreachable!("not generated"),
            }
        }
        let target = match &code.terminator {
            Terminator::Jump(target) => target,
            Terminator::Fuel { cap, ok, out, .. } => {
                fuel += 1;
                if fuel > *cap { out } else { ok }
            }
            Terminator::Need { base, bytes, ok, short, .. } => {
                let base = values[base.0 as usize].ok_or("use before definition")?;
                if base + u64::from(*bytes) <= captured { ok } else { short }
            }
            _ => return Ok(()),
        };
        block = target.block.0 as usize;
        let mut args = Vec::new();
        for arg in &target.args {
            args.push(values[arg.0 as usize].ok_or("use before definition")?);
        }
        for (param, arg) in function.blocks[block].params.iter().zip(args) {
            values[param.0 as usize] = Some(arg);
        }
    }
    Err("no end")
}

#[test]
fn accepted_programs_keep_their_promises() {
    let mut random = Random(1);
    let mut program = program_of("b0: flood");
    let (mut accepted, mut loads, mut broken) = (0, 0, 0);
    for _ in 0..20_000 {
        program.functions[0] = random_function(&mut random);
        let sound = verify(&program).is_ok();
        let function = &program.functions[0];
        let outcomes: Vec<_> = (0..20).map(|_| run(function, &mut random)).collect();
        let broke = outcomes.iter().find(|outcome| outcome.is_err());
        if sound {
            accepted += 1;
            loads += function
                .blocks
                .iter()
                .flat_map(|block| &block.instructions)
                .filter(|step| matches!(step.op, Op::Load { .. }))
                .count();
            assert_eq!(broke, None, "{program}");
        } else if broke.is_some() {
            broken += 1;
        }
    }
    assert!(
        accepted > 500 && loads > 500 && broken > 500,
        "{accepted} accepted, {loads} loads, {broken} broken"
    );
}

#[test]
fn a_multicast_group_is_of_ports_and_bounded() {
    let group = |capacity, kind, width| Group {
        name: "listeners".into(),
        size: 1,
        buckets: 128,
        capacity,
        multicast: true,
        columns: vec![Column { name: String::new(), kind, width }],
        members: Vec::new(),
        file: None,
    };
    let mut program = program_of("b0: flood");
    program.groups.push(group(64, ColumnKind::Port, 16));
    assert_eq!(faults(&program), []);
    fails_when(|program| program.groups.push(group(65, ColumnKind::Port, 16)), Fault::Memory("group", 0));
    fails_when(|program| program.groups.push(group(64, ColumnKind::Mac, 48)), Fault::Memory("group", 0));
}

#[test]
fn tables_of_patterns_have_no_default_to_set() {
    for packet in
        ["b0: %0:16 = const 1 set_default t0 = (%0) flood", "b0: %0:16 = const 1 clear_default t0 flood"]
    {
        let mut program = program_of(packet);
        let table = &mut program.tables[0];
        (table.kind, table.keys, table.entries) =
            (TableKind::Patterns(Answer::First), Vec::new(), Vec::new());
        (table.age, table.lifetimes, table.default) = (None, false, None);
        assert_eq!(faults(&program), [("f0 b0 1".to_string(), Fault::TableKind(0))]);
    }
}
