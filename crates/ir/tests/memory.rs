//! Meters, registers, pools, groups and tables that packets change, as the verifier judges them: what is
//! declared has its limits, an instruction has the widths of what it uses, and each change needs its right.

use ir::limits::{MOST_BUCKETS, MOST_COPIES, MOST_ITEMS, MOST_MEMBERS};
use ir::read::read;
use ir::verify::{Fault, derive_manifest, verify};
use ir::*;
use tables::meter::{MAX_PERIOD, MeterSpec};

const DECLARATIONS: &str = r#"program "case"
slots 0
reason r0 "no_such_port" "the port does not exist"
table t0 "rules" { rules key ("a" uint:32, "b" uint:16) value ("v" uint:9) capacity 4 }
table t1 "routes" { lpm key ("a" uint:32) value ("v" uint:9) capacity 4 age 1000 }
table t2 "first" { patterns first key () value ("v" uint:9) capacity 4 }
table t3 "all" { patterns all key () value ("v" uint:9) capacity 4 }
table t4 "set" { patterns set key () value ("v" uint:7) capacity 4 }
table t5 "exact" { key ("a" uint:32) value ("x" ip4:32, "y" port:16) capacity 4 age 1000 evict refuse }
meter m0 "one" size 1 bytes single 5 6 7
meter m1 "many" size 3 packets every 2 two 5 6 7 8
register x0 "one" size 1 "v" uint:48
register x1 "many" size 3 "v" uint:48
pool q0 "pairs" ("x" ip4:32, "y" port:16) (1 2, 10 19)
group u0 "ways" size 2 buckets 8 capacity 4 ("x" uint:9) (1 (7) 1)
group u1 "copies" size 1 buckets 64 capacity 64 multicast ("p" port:16) ()
event e0 "ended" ("a" uint:32, "x" ip4:32, "y" port:16) handler f1
"#;

/// Values of several widths, for the one instruction of a case, which is the sixth.
const VALUES: &str = "%0:32 = const 0 %1:16 = const 1 %2:2 = const 1 %3:48 = const 5 %4:9 = const 1";

fn program(code: &str) -> Program {
    let text = format!(
        "{DECLARATIONS} function f0 \"packet\" {{ b0: {VALUES} {code} flood }}
         function f1 \"ended\" {{ b0(%0:32, %1:32, %2:16): done }}"
    );
    let mut program = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    program.manifest = derive_manifest(&program);
    program
}

fn faults(program: &Program) -> Vec<Fault> {
    verify(program).err().unwrap_or_default().into_iter().map(|error| error.fault).collect()
}

#[track_caller]
fn passes(code: &str) {
    assert_eq!(faults(&program(code)), [], "{code}");
}

#[track_caller]
fn fails(code: &str, fault: Fault) {
    assert_eq!(faults(&program(code)), [fault], "{code}");
}

/// The faults of a program that was changed.
fn changed(change: impl FnOnce(&mut Program)) -> Vec<Fault> {
    let mut program = program("");
    change(&mut program);
    faults(&program)
}

fn width(value: u32, due: u8) -> Fault {
    Fault::Width { value: Value(value), due }
}

#[test]
fn instructions_that_use_memory_rightly_pass() {
    for code in [
        "%5:2 = mark m0",
        "%5:2 = mark m0 at %0 before %2",
        "%5:2 = mark m1 at %0",
        "%5:48 = read_register x0",
        "%5:48 = read_register x1 at %0",
        "write_register x0 = %3",
        "write_register x1 at %0 = %3",
        "%5:1, %6:32, %7:16 = take q0, %0",
        "give q0(%0, %1)",
        "%5:1, %6:9 = choose u0, %0 at %0",
        "%5:1, %6:16 = choose u1, %0",
        "%5:1, %6:16 = member u1, 63",
        "%5:1 = join u0(%4) at %0",
        "leave u0(%4) at %0",
        "%5:1 = join u1(%1)",
        "leave u1(%1)",
        "%5:1, %6:9 = scan t2, %0, %0",
        "%5:32 = scan t3, %0, %0",
        "%5:128 = scan t4, %0, %0",
        "%5:1 = insert t0[%0, fixed range 3 65535] priority 5 = (%4)",
        "%5:1 = insert t1[prefix %0 32] priority 0 = (%4)",
        "withdraw t0[fixed any, %1] priority 5",
        "withdraw t1[prefix %0 0] priority 0",
    ] {
        passes(code);
    }
}

#[test]
fn what_an_instruction_uses_exists_and_has_its_width() {
    let operands = |due, found| Fault::Operands { due, found };
    let results = |due, found| Fault::Results { due, found };
    for (code, fault) in [
        ("%5:2 = mark m2", Fault::NoSuch("meter", 2)),
        ("%5:2 = mark m1", Fault::Memory("meter", 1)),
        ("%5:2 = mark m0 at %1", width(1, 32)),
        ("%5:2 = mark m0 before %1", width(1, 2)),
        ("%5:3 = mark m0", width(5, 2)),
        ("mark m0", results(1, 0)),
        ("%5:48 = read_register x2", Fault::NoSuch("register", 2)),
        ("%5:48 = read_register x1", Fault::Memory("register", 1)),
        ("%5:48 = read_register x1 at %1", width(1, 32)),
        ("%5:47 = read_register x0", width(5, 48)),
        ("write_register x2 = %3", Fault::NoSuch("register", 2)),
        ("write_register x1 = %3", Fault::Memory("register", 1)),
        ("write_register x0 = %0", width(0, 48)),
        ("%5:48 = write_register x0 = %3", results(0, 1)),
        ("%5:1, %6:32, %7:16 = take q1, %0", Fault::NoSuch("pool", 1)),
        ("%5:1, %6:32, %7:16 = take q0, %1", width(1, 32)),
        ("%5:1, %6:32 = take q0, %0", results(3, 2)),
        ("give q1(%0, %1)", Fault::NoSuch("pool", 1)),
        ("give q0(%0)", operands(2, 1)),
        ("give q0(%0, %0)", width(0, 16)),
        ("%5:1 = give q0(%0, %1)", results(0, 1)),
        ("%5:1, %6:9 = choose u2, %0", Fault::NoSuch("group", 2)),
        ("%5:1, %6:9 = choose u0, %0", Fault::Memory("group", 0)),
        ("%5:1, %6:9 = choose u0, %1 at %0", width(1, 32)),
        ("%5:1, %6:9 = choose u0, %0 at %1", width(1, 32)),
        ("%5:1, %6:8 = choose u0, %0 at %0", width(6, 9)),
        ("%5:1, %6:9 = member u2, 0", Fault::NoSuch("group", 2)),
        ("%5:1, %6:9 = member u0, 0 at %0", Fault::Memory("group", 0)),
        ("%5:1 = member u1, 0", results(2, 1)),
        ("%5:1 = join u2(%4)", Fault::NoSuch("group", 2)),
        ("%5:1 = join u0(%0) at %0", width(0, 9)),
        ("join u0(%4) at %0", results(1, 0)),
        ("leave u2(%4)", Fault::NoSuch("group", 2)),
        ("leave u0(%0) at %0", width(0, 9)),
        ("%5:1 = leave u0(%4) at %0", results(0, 1)),
        ("%5:1, %6:9 = scan t0, %0, %0", Fault::TableKind(0)),
        ("%5:1, %6:9 = scan t2, %1, %0", width(1, 32)),
        ("%5:1, %6:9 = scan t2, %0, %1", width(1, 32)),
        ("%5:1, %6:9 = scan t3, %0, %0", results(1, 2)),
        ("%5:32 = scan t4, %0, %0", width(5, 128)),
        ("%5:32 = scan t2, %0, %0", results(2, 1)),
        ("%5:1 = insert t5[%0] priority 0 = (%0, %1)", Fault::TableKind(5)),
        ("%5:1 = insert t0[%0] priority 0 = (%4)", operands(2, 1)),
        ("%5:1 = insert t0[%0, %0] priority 0 = (%4)", width(0, 16)),
        ("%5:1 = insert t0[%0, %1] priority 0 = (%0)", width(0, 9)),
        ("%5:1 = insert t0[%0, fixed range 3 65536] priority 0 = (%4)", Fault::TableKind(0)),
        ("%5:1 = insert t1[prefix %0 33] priority 0 = (%4)", Fault::TableKind(1)),
        ("%5:1 = insert t1[prefix %1 8] priority 0 = (%4)", width(1, 32)),
        ("insert t0[%0, %1] priority 0 = (%4)", results(1, 0)),
        ("withdraw t5[%0] priority 0", Fault::TableKind(5)),
        ("withdraw t0[%0] priority 0", operands(2, 1)),
        ("%5:1 = withdraw t0[%0, %1] priority 0", results(0, 1)),
    ] {
        fails(code, fault);
    }
}

#[test]
fn each_change_needs_its_right() {
    let without = |code: &str, change: fn(&mut Manifest)| {
        let mut program = program(code);
        change(&mut program.manifest);
        faults(&program)
    };
    let right = |what: &str| vec![Fault::Right(what.to_owned())];
    for code in [
        "%5:2 = mark m0",
        "write_register x0 = %3",
        "%5:1, %6:32, %7:16 = take q0, %0",
        "give q0(%0, %1)",
        "%5:1 = join u1(%1)",
        "leave u1(%1)",
    ] {
        let found = without(code, |manifest| manifest.writes_memory = false);
        assert_eq!(found, right("to write meters, registers, pools or groups"), "{code}");
    }
    for code in ["%5:48 = read_register x0", "%5:1, %6:16 = choose u1, %0", "%5:1, %6:16 = member u1, 0"] {
        assert_eq!(without(code, |manifest| *manifest = Manifest::default()), [], "{code} changes nothing");
    }
    for code in ["%5:1 = insert t1[prefix %0 9] priority 0 = (%4)", "withdraw t1[prefix %0 9] priority 0"] {
        let found = without(code, |manifest| manifest.writes_tables.clear());
        assert_eq!(found, right("to write table t1"), "{code}");
    }
    let scan = "%5:32 = scan t3, %0, %0";
    assert_eq!(without(scan, |manifest| manifest.reads_payload = false), right("to read payload"));
    assert_eq!(without("copy %1", |manifest| manifest.makes_packets = false), right("to make packets"));
    assert_eq!(without("copy %1", |manifest| manifest.ports.clear()), right("to send to port 1"));
}

#[test]
fn meters_have_rates_bursts_and_periods_that_can_be_counted() {
    let judged = |period, rates| {
        changed(|program| {
            (program.meters[0].period, program.meters[0].rates) = (period, rates);
        })
    };
    let single = |committed, burst, excess| Rates::Single { committed, burst, excess };
    let two = |committed, burst, peak, peak_burst| Rates::Two { committed, burst, peak, peak_burst };
    let (largest, longest) = (MeterSpec::largest_burst(1), MAX_PERIOD);
    let slow = MeterSpec::largest_burst(longest);
    for (period, rates) in [
        (1, single(1, 1, 0)),
        (1, single(1, 0, 1)),
        (1, single(1, largest, largest)),
        (longest, single(1, slow, 0)),
        (1, two(5, 1, 5, 1)),
        (1, two(5, largest, 6, largest)),
    ] {
        assert_eq!(judged(period, rates), [], "{period}, {rates:?}");
    }
    for (period, rates) in [
        (1, single(0, 1, 1)),
        (1, single(1, 0, 0)),
        (1, single(1, largest + 1, 0)),
        (1, single(1, 0, largest + 1)),
        (0, single(1, 1, 1)),
        (longest + 1, single(1, 1, 1)),
        (longest, single(1, slow + 1, 0)),
        (1, two(0, 1, 5, 1)),
        (1, two(5, 1, 4, 1)),
        (1, two(5, 0, 5, 1)),
        (1, two(5, 1, 5, 0)),
        (1, two(5, largest + 1, 5, 1)),
        (1, two(5, 1, 5, largest + 1)),
    ] {
        assert_eq!(judged(period, rates), [Fault::Memory("meter", 0)], "{period}, {rates:?}");
    }
    assert_eq!(changed(|program| program.meters[1].size = 0), [Fault::Memory("meter", 1)]);
}

#[test]
fn registers_and_pools_have_limits() {
    for (size, width, good) in [(1, 1, true), (1, 64, true), (0, 48, false), (1, 0, false), (1, 65, false)] {
        let found = changed(|program| {
            (program.registers[0].size, program.registers[0].column.width) = (size, width);
        });
        let due: &[Fault] = if good { &[] } else { &[Fault::Memory("register", 0)] };
        assert_eq!(found, due, "{size}, {width}");
    }
    let pool = |widths: &[u8], ranges: &[(u128, u128)]| {
        changed(|program| {
            let column = program.pools[0].columns[0].clone();
            program.pools[0].columns =
                widths.iter().map(|width| Column { width: *width, ..column.clone() }).collect();
            program.pools[0].ranges = ranges.to_vec();
        })
    };
    let most = u128::from(MOST_ITEMS);
    for (widths, ranges) in [
        (&[32][..], &[(5, 5)][..]),
        (&[32], &[(0, most - 1)]),
        (&[1, 128], &[(0, 1), (7, 7)]),
        (&[8; 8], &[(0, 1); 8]),
    ] {
        assert_eq!(pool(widths, ranges), [], "{widths:?}, {ranges:?}");
    }
    for (widths, ranges) in [
        (&[][..], &[][..]),
        (&[32], &[(0, 1), (0, 1)]),
        (&[32, 32], &[(0, 1)]),
        (&[0], &[(0, 0)]),
        (&[129], &[(0, 1)]),
        (&[32], &[(6, 5)]),
        (&[8], &[(0, 256)]),
        (&[32], &[(0, most)]),
        (&[32, 32], &[(0, most - 1), (0, 1)]),
        (&[8; 9], &[(0, 1); 9]),
    ] {
        assert_eq!(pool(widths, ranges), [Fault::Memory("pool", 0)], "{widths:?}, {ranges:?}");
    }
}

#[test]
fn groups_have_limits() {
    type Change = fn(&mut Group);
    let judged = |number: usize, change: Change| changed(|program| change(&mut program.groups[number]));
    let sound: [(usize, Change); 5] = [
        (0, |group| (group.capacity, group.buckets) = (8, 8)),
        (0, |group| (group.capacity, group.buckets) = (MOST_MEMBERS, MOST_BUCKETS)),
        (0, |group| group.members = vec![(0, vec![0], 1), (1, vec![511], 9)]),
        (1, |group| (group.capacity, group.buckets) = (MOST_COPIES, 64)),
        (0, |group| (group.capacity, group.buckets) = (1, 1)),
    ];
    for (number, change) in sound {
        assert_eq!(judged(number, change), []);
    }
    let wrong: [(usize, Change); 15] = [
        (1, |group| group.size = 0),
        (1, |group| group.columns.clear()),
        (0, |group| group.columns[0].width = 129),
        (0, |group| (group.capacity, group.buckets) = (0, 1)),
        (0, |group| (group.capacity, group.buckets) = (MOST_MEMBERS + 1, MOST_BUCKETS)),
        (0, |group| group.buckets = 12),
        (0, |group| group.buckets = 2),
        (0, |group| group.buckets = 2 * MOST_BUCKETS),
        (0, |group| group.members = vec![(2, vec![7], 1)]),
        (0, |group| group.members = vec![(0, vec![7], 0)]),
        (0, |group| group.members = vec![(0, vec![], 1)]),
        (0, |group| group.members = vec![(0, vec![512], 1)]),
        (1, |group| (group.capacity, group.buckets) = (MOST_COPIES + 1, 128)),
        (1, |group| group.columns[0].width = 15),
        (1, |group| group.columns[0].kind = ColumnKind::Uint),
    ];
    for (case, (number, change)) in wrong.into_iter().enumerate() {
        assert_eq!(judged(number, change), [Fault::Memory("group", number as u32)], "case {case}");
    }
}

#[test]
fn entries_that_end_raise_events_of_their_columns_and_give_items_back() {
    type Change = fn(&mut Program);
    const EXACT: usize = 5;
    let judged = |change: Change| changed(change);
    let sound: [Change; 5] = [
        |program| program.tables[EXACT].expires = Some(0),
        |program| {
            let table = &mut program.tables[EXACT];
            (table.expires, table.age, table.idle) = (Some(0), None, Some(9));
        },
        |program| program.tables[EXACT].releases = Some(0),
        |program| program.tables[EXACT].lifetimes = true,
        |program| {
            let table = &mut program.tables[1];
            table.expires = Some(0);
            // The key, the length of its prefix, and the value.
            let column = |width| Column { width, ..table.values[0].clone() };
            program.events[0].params = vec![column(32), column(8), column(9)];
            program.functions[1].widths = vec![32, 8, 9];
        },
    ];
    for (case, change) in sound.into_iter().enumerate() {
        assert_eq!(judged(change), [], "case {case}");
    }
    let exact = Fault::KindProperty(EXACT as u32);
    let wrong: [(Change, Fault); 10] = [
        (|program| program.tables[EXACT].expires = Some(1), Fault::NoSuch("event", 1)),
        (|program| program.tables[EXACT].releases = Some(1), Fault::NoSuch("pool", 1)),
        (
            |program| (program.tables[EXACT].expires, program.tables[EXACT].age) = (Some(0), None),
            exact.clone(),
        ),
        (
            |program| (program.tables[EXACT].expires, program.tables[EXACT].secret) = (Some(0), true),
            exact.clone(),
        ),
        (
            |program| {
                program.tables[EXACT].expires = Some(0);
                program.tables[EXACT].values.pop();
            },
            exact.clone(),
        ),
        (|program| program.tables[1].expires = Some(0), Fault::KindProperty(1)),
        (
            |program| {
                (program.tables[EXACT].releases, program.tables[EXACT].evict) = (Some(0), Eviction::Lru)
            },
            exact.clone(),
        ),
        (
            |program| {
                program.tables[EXACT].releases = Some(0);
                program.tables[EXACT].values.pop();
            },
            exact.clone(),
        ),
        (
            |program| (program.tables[EXACT].lifetimes, program.tables[EXACT].age) = (true, None),
            exact.clone(),
        ),
        (|program| program.tables[1].lifetimes = true, Fault::KindProperty(1)),
    ];
    for (case, (change, fault)) in wrong.into_iter().enumerate() {
        assert_eq!(judged(change), [fault], "case {case}");
    }
}
