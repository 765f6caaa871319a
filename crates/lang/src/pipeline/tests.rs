//! Tests of what holds for whole programs: how many faults are told, how long names are, how many files there
//! may be.

use super::*;
use crate::limits::{LONGEST_NAME, MOST_FAULTS, MOST_FILES};
use std::fmt::Write;

fn compiled(text: &str, load: &dyn Fn(&str) -> Option<String>) -> Compiled {
    compile("main.rav", text, load, &CompileOptions::default())
}

fn codes(text: &str, load: &dyn Fn(&str) -> Option<String>) -> Vec<&'static str> {
    compiled(text, load).diagnostics.iter().map(|diagnostic| diagnostic.code).collect()
}

#[test]
fn of_many_faults_so_many_are_told_and_that_there_are_more() {
    let with = |count: usize, line: &dyn Fn(usize) -> String| {
        let lines: String = (0..count).map(line).collect();
        codes(&format!("{lines}start stage all() {{ flood }}\n"), &|_| None)
    };
    // Found by the lexer, the parser and the checker.
    let kinds: [(&str, &dyn Fn(usize) -> String); 3] = [
        ("E0001", &|number| format!("const A{number}: u8 = 1 $\n")),
        ("E0050", &|number| format!("const A{number} u8 = 1\n")),
        ("E0100", &|number| format!("const A{number}: u8 = nothing{number}\n")),
    ];
    for (code, line) in kinds {
        assert_eq!(with(MOST_FAULTS, line), vec![code; MOST_FAULTS]);
        for count in [MOST_FAULTS + 1, 10 * MOST_FAULTS] {
            let mut told = with(count, line);
            assert_eq!(told.pop(), Some("E0109"));
            assert_eq!(told, vec![code; MOST_FAULTS]);
        }
    }
}

#[test]
fn warnings_take_no_room_from_errors() {
    let mut text = "start stage all() { flood }\n".to_string();
    for number in 0..2 * MOST_FAULTS {
        writeln!(text, "stage s{number}() {{ flood }}").expect("a text takes it");
    }
    let told = codes(&text, &|_| None);
    assert_eq!((told.len(), told.last()), (MOST_FAULTS + 1, Some(&"E0109")));
    assert!(compiled(&text, &|_| None).program.is_some());
    text.push_str("const A: u8 = 300\n");
    let told = codes(&text, &|_| None);
    assert!(told.contains(&"E0202") || told.contains(&"E0201"), "{:?}", told.first());
}

#[test]
fn a_name_has_a_longest_length_wherever_it_stands() {
    let long =
        |length: usize| format!("const {}: u8 = 1\nstart stage all() {{ flood }}\n", "a".repeat(length));
    assert_eq!(codes(&long(LONGEST_NAME), &|_| None), Vec::<&str>::new());
    assert_eq!(codes(&long(LONGEST_NAME + 1), &|_| None), ["E0016"]);
    let compiled = compiled(&format!("start stage all() {{ goto {} }}\n", "a".repeat(1 << 20)), &|_| None);
    let words = format!("{:?}", compiled.diagnostics);
    assert!(words.len() < 8 * LONGEST_NAME, "{} bytes of words", words.len());
}

/// A module that declares a constant of its own name and imports those of others.
fn module_of(name: &str, others: &[&str], rest: &str) -> Option<String> {
    let imports: String = others.iter().map(|other| format!("import {other}.{{{other}}}\n")).collect();
    Some(format!("{imports}const {name}: u8 = 1 //{rest}\n"))
}

#[test]
fn a_program_is_made_of_so_many_files() {
    let main = "import m0.{m0}\nstart stage all() { flood }\n";
    let chain = |files: usize| {
        move |name: &str| -> Option<String> {
            let number: usize = name.strip_prefix('m')?.strip_suffix(".rav")?.parse().ok()?;
            let next = format!("m{}", number + 1);
            let others = if number + 2 < files { &[next.as_str()][..] } else { &[] };
            module_of(&format!("m{number}"), others, "")
        }
    };
    assert_eq!(codes(main, &chain(MOST_FILES)), Vec::<&str>::new());
    assert_eq!(codes(main, &chain(MOST_FILES + 1)), ["E0108"]);
    let large = |name: &str| {
        let name = name.trim_end_matches(".rav");
        module_of(name, &[&format!("{name}0")], &" ".repeat(9 << 20))
    };
    assert_eq!(codes(main, &large), ["E0108"]);
}

#[test]
fn a_circle_of_modules_is_told_once_with_its_way() {
    let load = |name: &str| {
        let name = name.trim_end_matches(".rav");
        match name {
            "lead" => module_of(name, &["one"], ""),
            "one" => module_of(name, &["two", "end"], ""),
            "two" => module_of(name, &["three", "one"], ""),
            "three" => module_of(name, &["one"], ""),
            "end" => module_of(name, &[], ""),
            _ => None,
        }
    };
    let compiled = compiled("import lead.{lead}\nstart stage all() { flood }\n", &load);
    let told: Vec<(&str, &str, usize)> = compiled
        .diagnostics
        .iter()
        .map(|found| (found.code, found.headline.as_str(), found.path.len()))
        .collect();
    assert_eq!(told, [("E0104", "the module `one` imports itself", 1)]);
}

/// Every limit of one declaration holds, and together they would take 4 TiB.
#[test]
fn a_program_that_would_take_too_much_memory_is_refused_where_it_takes_the_most() {
    let group = |size: &str| {
        format!(
            "register r[1M]: u64\ngroup g[{size}]: port {{ buckets 1M capacity 8 }}\nstart stage all() {{ flood }}\n"
        )
    };
    // A register may have the name of a group.
    for text in [group("1M"), group("1M").replace("r[", "g[")] {
        let compiled = compiled(&text, &|_| None);
        let [found] = &compiled.diagnostics[..] else { panic!("{:?}", compiled.diagnostics) };
        assert_eq!((found.code, compiled.sources.text(found.primary.span)), ("E0540", "g"));
        assert_eq!(Some(found.primary.span.start as usize), text.find("g[1M]: port"));
        assert!(found.headline.contains("4096"), "{}", found.headline);
    }
    assert_eq!(codes(&group("1k"), &|_| None), Vec::<&str>::new());
}

#[test]
fn what_steers_is_a_program_of_its_own_and_the_other_one_is_as_without_it() {
    let plain = "import std.net.ethernet
const KEY: u16 = 7
fn key(to: mac) -> u16 { (to as u64 as% u16) ^ KEY }
table hosts: exact(mac) -> port { capacity 1k  idle 1s  evict lru }
start decoder frame(eth: ethernet) { learn hosts[eth.src] = in_port  goto next }
stage next() requires eth { if key(eth.dst) == 1 { flood } drop other }
";
    let steers = "steer decoder which(eth: ethernet) { if in_port == 1 { steer 3 } goto by_address }
stage by_address() requires eth { steer key(eth.src) }
";
    let nothing = |_: &str| None;
    let without = compiled(plain, &nothing).program.expect("it is right");
    let with = compiled(&format!("{plain}{steers}"), &nothing);
    assert_eq!(with.diagnostics, [], "nothing is unused");
    let mut with = with.program.expect("it is right");
    let steering = with.steering.take().expect("it steers");
    assert_eq!(with.reasons.pop().map(|reason| reason.name).as_deref(), Some("worker_busy"));
    assert_eq!(with, without);
    let stages: Vec<&str> = steering.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(
        (stages, steering.tables.len(), steering.functions.len()),
        (vec!["which", "by_address"], 0, 1)
    );
    with.steering = Some(steering);
    assert_eq!(ir::read::read(&ir::print::print(&with)).as_ref(), Ok(&with));
    assert_eq!(ir::verify::verify(&with), Ok(()));
    // What steers may not be more than a function of the packet, whoever made it.
    with.steering = Some(Box::new(without));
    assert!(ir::verify::verify(&with).is_err());
}

#[test]
fn a_program_has_fragments_in_order_if_it_or_one_of_its_modules_says_so() {
    let plain = "import std.net.ethernet\nstart decoder frame(eth: ethernet) { flood }
steer stage which() { steer 0 }\n";
    let module = |path: &str| (path == "mine.rav").then(|| "order fragments\nconst A: u8 = 1\n".to_string());
    for (text, orders) in [
        (plain.to_string(), false),
        (format!("{plain}order fragments\n"), true),
        (format!("import mine.A\n{plain}"), true),
        (format!("import std.fragments.{{fragments}}\n{plain}"), true),
    ] {
        let program = compiled(&text, &module).program.expect("it is right");
        assert_eq!(program.orders_fragments, orders, "{text}");
        assert!(!program.steering.as_ref().expect("it steers").orders_fragments);
        assert_eq!(ir::read::read(&ir::print::print(&program)).as_ref(), Ok(&program));
        let told =
            footprint(&program).iter().any(|part| (part.what, part.name.as_str()) == ("order", "fragments"));
        assert_eq!(told, orders, "its memory is told");
    }
}

#[test]
fn a_fault_of_both_programs_is_told_once_and_one_of_the_steering_at_its_place() {
    let nothing = |_: &str| None;
    let shared = "const A: u8 = 300
start stage all() { flood }
steer stage which() { steer 0 }
";
    assert_eq!(codes(shared, &nothing), ["E0201"]);
    assert_eq!(codes("start stage all() { flood }\nsteer stage which() { steer x }\n", &nothing), ["E0100"]);
    assert_eq!(codes("steer stage which() { steer 1 }\n", &nothing), ["E0401"]);
}
