//! Bounds and graphs of small programs, by hand, and bounds against counted runs.

use ir::read::read;
use ir::*;
use lang::cost::{Bound, cost};
use lang::graph::{dot, graph};

const SWITCH: &str = r#"program "switch"
slots 1
reason r0 "no_such_port" "the port does not exist"
reason r1 "short(ethernet)" "the frame is cut"
table t0 "hosts" { key ("mac" mac:48) value ("at" port:16) capacity 1000 age 300 }
counter c0 "hits" size 1
event e0 "seen" ("mac" mac:48) handler f1
template p0 "00000000" ()
stage s0 "frame"
stage s1 "forward"
layout l0 "ethernet" { field "dst" mac bit 0 width 48 }
function f0 "packet" {
  name %3 "to" port
b0: %0:32 = const 0 stage s0 need %0 + 14 ok b1 short b2
b1: header l0 at %0 "eth" %1:48 = load %0 + 0, 6 proven 14 count c0 jump b3
b2: drop r1
b3: stage s1 %2:1, %3:16 = lookup t0[%1] branch %2, b4, b5
b4: send %3
b5: raise e0(%1) emit p0() port %3 flood
}
function f1 "on seen" {
b0(%0:48): %1:16 = const 1 %2:1 = learn t0[%0] = (%1) done
}
"#;

#[track_caller]
fn bound_of(blocks: &str) -> Bound {
    let text = format!("program \"x\" slots 9 function f0 \"packet\" {{ {blocks} }}");
    cost(&read(&text).unwrap_or_else(|error| panic!("{error}"))).functions[0].bound
}

#[test]
fn each_figure_is_the_dearest_path() {
    let cost = cost(&read(SWITCH).expect("reads"));
    assert_eq!(
        cost.functions[0].bound,
        Bound {
            instructions: 10,
            lookups: 1,
            table_writes: 0,
            packets_made: 1,
            events: 1,
            bytes_touched: 10
        }
    );
    assert_eq!(cost.functions[1].bound, Bound { instructions: 3, table_writes: 1, ..Bound::default() });
    // 2,048 slots of 4 words, their tags, and two orders of a word for 8 slots, for 8 of these, and so on;
    // the first two begin at a cache line.
    let memory = 2048 * 32 + 64 + (2048 + 64) + 64 + 2 * (256 + 32 + 4 + 1) * 8;
    assert_eq!((cost.footprint[0].bytes, cost.memory), (memory, memory + 16));
    assert_eq!(
        cost.to_string(),
        "for each packet at most:
  instructions                10
  lookups                      1
  table writes                 0
  packets made                 1
  events                       1
  bytes touched               10
for each run of on seen at most:
  instructions                 3
  lookups                      0
  table writes                 1
  packets made                 0
  events                       0
  bytes touched                0
memory at most:
  hosts                 70.8 KiB  (a table, entries: 1,000)
  hits                      16 B  (a counter, cells: 1)
  total                 70.8 KiB
"
    );
}

#[test]
fn loops_count_as_often_as_their_fuel_and_once_more() {
    // b1 is passed 5 times with fuel and once without, b2 5 times: the bound takes the whole loop 6 times.
    let around = "b0: jump b1 b1: fuel 0 cap 5 ok b2 out b3 b2: %0:64 = now jump b1 b3: flood";
    assert_eq!(bound_of(around).instructions, 1 + 6 * 3 + 1);
    // Two fuels of one slot share it: the larger cap bounds both.
    let shared = "b0: jump b1 b1: fuel 0 cap 5 ok b2 out b3 b2: fuel 0 cap 7 ok b1 out b3 b3: flood";
    assert_eq!(bound_of(shared).instructions, 1 + 8 + 1);
    let nested = "b0: jump b1 b1: fuel 0 cap 3 ok b2 out b3 b2: fuel 1 cap 4 ok b2 out b1 b3: flood";
    assert_eq!(bound_of(nested).instructions, 1 + 8 * 2 + 1);
    assert_eq!(bound_of("b0: jump b1 b1: jump b1").instructions, u64::MAX, "no fuel, no bound");
    let text = format!("program \"x\" slots 1 function f0 \"packet\" {{ {around} }}");
    let shown = cost(&read(&text).expect("reads")).to_string();
    assert!(shown.contains("  loop at b1 (2 blocks), at most 6 rounds of: 3 instructions\n"), "{shown}");
    assert!(shown.ends_with("nothing is remembered\n"), "{shown}");
}

/// Steps of a run in which every fuel is passed by its rules and every branch is taken as `choose` says.
fn steps(function: &Function, mut choose: impl FnMut(usize) -> usize) -> u64 {
    let (mut block, mut count, mut slots) = (0, 0, vec![0; 9]);
    loop {
        let code = &function.blocks[block];
        count += code.instructions.len() as u64 + 1;
        let targets = code.terminator.targets();
        let taken = match &code.terminator {
            Terminator::Fuel { slot, cap, .. } => {
                slots[*slot as usize] += 1;
                usize::from(slots[*slot as usize] > *cap)
            }
            _ if targets.is_empty() => return count,
            _ => choose(targets.len()),
        };
        block = targets[taken].block.0 as usize;
    }
}

#[test]
fn no_run_exceeds_the_bound() {
    let mut state = 5_u64;
    let mut random = move |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit as u64) as usize
    };
    let (mut tight, mut looping) = (0, 0);
    for _ in 0..3000 {
        let count = 3 + random(6);
        let mut function = Function { widths: vec![64, 1], ..Function::default() };
        for index in 0..count {
            let now = Instruction { results: vec![Value(0)], op: Op::Now, span: Default::default() };
            let mut target = |any: bool| {
                let first = if any { 1 } else { index + 1 };
                let block = BlockId((first + random(count - first)) as u32);
                Target { block, args: Vec::new() }
            };
            let terminator = match index + 1 == count {
                true => Terminator::Flood,
                false if index % 2 == 1 => {
                    Terminator::Fuel { slot: index as u32 % 3, cap: 4, ok: target(true), out: target(false) }
                }
                false => Terminator::Branch(Value(1), target(false), target(false)),
            };
            let instructions = vec![now; random(3)];
            function.blocks.push(Block {
                params: Vec::new(),
                instructions,
                terminator,
                span: Default::default(),
            });
        }
        let program = Program { functions: vec![function], slots: 9, ..Program::default() };
        let found = &cost(&program).functions[0];
        let most = (0..30).map(|_| steps(&program.functions[0], &mut random)).max().unwrap_or(0);
        assert!(most <= found.bound.instructions, "{most} > {}\n{program}", found.bound.instructions);
        tight += usize::from(most == found.bound.instructions);
        looping += usize::from(!found.loops.is_empty());
    }
    assert!(tight > 300 && looping > 300, "{tight} tight, {looping} looping");
}

#[test]
fn the_graph_shows_stages_tables_and_ends() {
    let program = read(SWITCH).expect("reads");
    assert_eq!(
        graph(&program),
        "start
    goes to  frame
handler on seen
    writes   hosts
frame
    decodes  eth: ethernet
    does     counts hits
    goes to  forward
    ends in  drop short(ethernet)
forward
    reads    hosts
    does     makes packets, raises seen
    ends in  flood, send to
"
    );
    assert_eq!(
        dot(&program),
        r#"digraph "switch" {
    rankdir=LR;
    node [shape=box, fontname="sans-serif"];
    function0 [label="start"];
    function0 -> stage0;
    function1 [label="handler on seen\nwrites hosts"];
    stage0 [label="frame\ndecodes eth: ethernet\ncounts hits"];
    stage0 -> stage1;
    stage0 -> "drop short(ethernet)";
    stage1 [label="forward\nreads hosts\nmakes packets\nraises seen"];
    stage1 -> "flood";
    stage1 -> "send to";
    "drop short(ethernet)" [shape=plaintext];
    "flood" [shape=plaintext];
    "send to" [shape=plaintext];
}
"#
    );
}
