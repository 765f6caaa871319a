//! What `ravelin check` tells of a program's memory, beside what is really allocated. One test, since an
//! allocator counts for all of a process.

mod counted;

use exec::{Backend, BackendKind, load};
use ir::footprint::{footprint, total};
use ir::{Entry, GroupMember, Match, Program};
use lang::pipeline::{CompileOptions, compile};

fn program(declaration: &str) -> Program {
    let text = format!("{declaration}\nstart stage all() {{ flood }}\n");
    let compiled = compile("case.rav", &text, &|_| None, &CompileOptions::default());
    compiled.program.unwrap_or_else(|| panic!("{declaration}: {:?}", compiled.diagnostics))
}

fn entry(key: Vec<Match>, number: u128) -> Entry {
    Entry { key, value: vec![number % 5 + 1], priority: 0 }
}

/// Bytes that a program and what it remembers take beyond one that remembers nothing; a running gateway keeps
/// both.
fn taken(program: &Program, nothing: i64) -> (Box<dyn Backend>, i64) {
    let (made, bytes) = counted::held(|| {
        let kept = program.clone();
        (load(&kept, BackendKind::Native, 64, 1).expect("it loads"), kept)
    });
    (made.0, bytes - nothing)
}

#[test]
fn the_memory_that_is_told_is_what_is_taken() {
    // What is made once in a process is made before anything is counted.
    drop(load(&program(""), BackendKind::Native, 64, 1));
    let (empty, nothing) =
        counted::held(|| load(&program(""), BackendKind::Native, 64, 1).expect("it loads"));
    drop(empty);
    let mut wrong = Vec::new();
    let mut compare = |declaration: &str, program: &Program, bytes: i64| {
        let told = total(&footprint(program)) as f64;
        let ratio = told / bytes as f64;
        println!("{ratio:5.2}  {told:>12} told  {bytes:>12} taken  {declaration}");
        // Names, code and the like are a few kilobytes that nobody adds up.
        if bytes as f64 - told > 8192.0 || ratio > 1.1 {
            wrong.push(format!("{declaration}: {told} bytes are told and {bytes} are taken"));
        }
    };
    for size in ["20k", "300k"] {
        for declaration in [
            format!("table t: exact(u32) -> port {{ capacity {size} age 300s evict lru }}"),
            format!("table t: exact(u32) -> port {{ capacity {size} idle 300s evict refuse }}"),
            format!("table t: exact(u128, u16) -> (u64, u64) {{ capacity {size} age 5s idle 3s evict lru }}"),
            format!("table t: exact(mac) -> port {{ capacity {size} evict lru age 1s }}"),
            format!(
                "pool p: u32 {{ 1..100000 }} table t: exact(mac) -> u32 {{ capacity {size} evict refuse releases p age 1s }}"
            ),
            format!("counter c[{size}]"),
            format!("meter m[{size}]: bytes {{ committed 125k burst 64k }}"),
            format!("register r[{size}]: u8"),
            format!("register r[{size}]: time"),
            format!("group g[{size}]: port {{ buckets 16 capacity 4 }}"),
        ] {
            let program = program(&declaration);
            let (made, bytes) = taken(&program, nothing);
            // Groups are told with all of their members.
            if !declaration.starts_with("group") {
                compare(&declaration, &program, bytes);
            }
            drop(made);
        }
    }
    // What an event takes is not a matter of the table that raises it.
    for (event, table) in [
        ("event e(key: mac, at: port) {}", "exact(mac) -> port { capacity 300k evict lru age 1s expires e }"),
        (
            "event e(a: ip6, b: u16) {}",
            "exact(ip6, u16) -> () { capacity 20k evict refuse idle 1s expires e }",
        ),
    ] {
        let (alone, nothing) = taken(&program(event), 0);
        drop(alone);
        let declaration = format!("{event} table t: {table}");
        let program = program(&declaration);
        let (made, bytes) = taken(&program, nothing);
        compare(&declaration, &program, bytes);
        drop(made);
    }
    for declaration in ["pool p: u32 { 0..0x3ffffff }", "pool p: (ip4, u16) { 10.0.0.0/22, 1024..65535 }"] {
        let program = program(declaration);
        let (made, bytes) = taken(&program, nothing);
        compare(declaration, &program, bytes);
        drop(made);
    }
    for declaration in [
        "group g[4096]: port { buckets 64 capacity 64 }",
        "group g[8192]: (mac, port) { buckets 256 capacity 16 }",
        "group g[256]: u128 { buckets 256 capacity 256 }",
    ] {
        let mut program = program(declaration);
        let group = &mut program.groups[0];
        let member = |index, number: u128| -> GroupMember { (index, vec![number; group.columns.len()], 1) };
        group.members = (0..group.size)
            .flat_map(|index| (1..=u128::from(group.capacity)).map(move |number| (index, number)))
            .map(|(index, number)| member(index, number))
            .collect();
        let (made, bytes) = taken(&program, nothing);
        compare(declaration, &program, bytes);
        drop(made);
    }
    let mut listed = program("table t: exact(u32) -> port { capacity 20k evict refuse age 1s }");
    listed.tables[0].entries = (0..20_000).map(|number| entry(vec![Match::Exact(number)], number)).collect();
    let (made, bytes) = taken(&listed, nothing);
    compare("20,000 entries", &listed, bytes);
    drop(made);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
