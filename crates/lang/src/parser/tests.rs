//! Faulty programs with the codes they are told, and the words that may be names.

use super::parse;
use super::spelling::ITEMS;
use crate::ast::{Item, StmtKind};
use ir::source::FileId;

fn codes(text: &str) -> Vec<&'static str> {
    parse(FileId::default(), text).1.iter().map(|fault| fault.code).collect()
}

#[test]
fn each_fault_of_a_declaration_is_told_once() {
    let cases = [
        ("const a u8 = 1", "E0050"),
        ("decodre packet(ip: ipv4) { flood }", "E0051"),
        ("const match: u8 = 3", "E0053"),
        ("stage a() { flood", "E0054"),
        ("stage a() { if x { flood }\nstage b() { flood }", "E0054"),
        ("stage a() { flood } }", "E0055"),
        ("const a: u8 = 1\nimport std.net.tcp", "E0056"),
        ("table t: exact(u8) { capcity 1 }", "E0057"),
        ("table t: rules(u8) { choose last }", "E0082"),
        ("policy p(a: u8) { counted }", "E0084"),
        ("policy p(a: u8) { counted times counted times }", "E0084"),
        ("policy p(a: u8) { counted 8 }", "E0084"),
        ("table t: hash(ip4) -> { a, b } { capacity 1 }", "E0059"),
        ("meter m { rate 5 }", "E0050"),
        ("meter m: bytes { rate 5 }", "E0083"),
        ("group g: port { size 5 }", "E0081"),
        ("layout l { check: u16 over header }", "E0080"),
        ("layout l { check: inet16 }", "E0050"),
        ("layout l { check: inet16 over (payload) }", "E0050"),
        ("layout l { check: inet16 over header unless 1 }", "E0050"),
        ("test \"a\" { expect dorp x }", "E0068"),
        ("test \"a\" { packet 1 { hex \"0\" } }", "E0067"),
        ("test \"a\" { packet 1 { ip(ttl = 3) } }", "E0079"),
        ("layout l { a: u129 }", "E0070"),
        ("stage a(x: 16) { flood }", "E0074"),
        ("decoder a() { flood }", "E0075"),
        ("layout l { a: u8 = 1 = 2 }", "E0076"),
        ("table t: exact(u8) { evict oldest }", "E0077"),
    ];
    for (text, code) in cases {
        assert_eq!(codes(text), vec![code], "{text}");
    }
}

#[test]
fn each_fault_of_a_statement_is_told_once() {
    let cases = [
        ("let x 3", "E0050"),
        ("sned 3", "E0052"),
        ("x += 1", "E0052"),
        ("web(3)", "E0052"),
        ("hosts[1] = 2", "E0052"),
        ("push vlan", "E0050"),
        ("ip.ttl = 3", "E0061"),
        ("if 1 < x < 5 { flood }", "E0062"),
        ("drop", "E0063"),
        ("match x { else => drop }", "E0063"),
        ("x = a + -1", "E0064"),
        ("if x = 3 { flood }", "E0065"),
        ("set ip.flags.df = 1", "E0069"),
        ("let x = if a { 1 }", "E0071"),
        ("if a and b { flood }", "E0072"),
        ("let x =\nsend 3", "E0073"),
        ("x = ()", "E0073"),
        ("match x { => flood }", "E0078"),
        ("x = 64K + 1", "E0005"),
        ("x = \"text", "E0002"),
    ];
    for (statement, code) in cases {
        let text = format!("stage a() {{\n{statement}\n}}\nstage b() {{ flood }}\n");
        assert_eq!(codes(&text), vec![code], "{text}");
        let (tree, _) = parse(FileId::default(), &text);
        assert!(matches!(tree.items.last(), Some(Item::Stage(stage)) if stage.name.text == "b"), "{text}");
    }
}

#[test]
fn independent_faults_are_all_told() {
    let text = "import std..net\nconst a u8 = 1\nlayout l {\n a: u8 =\n b: u8\n c u8\n}\nstage s() {\n  sned 3\n  let x 3\n  \
                match x {\n    1 => drop\n    => flood\n    else => sned\n  }\n  send -1\n}\ntable t: trie(u8) { capacity 3 }\n";
    assert_eq!(
        codes(text),
        ["E0050", "E0050", "E0073", "E0050", "E0052", "E0050", "E0063", "E0078", "E0064", "E0059"]
    );
}

#[test]
fn every_declaration_ends_an_open_block_before_it() {
    let declarations = [
        "import std.net.tcp",
        "settable const a: u8 = 1",
        "const a: u8 = 1",
        "enum a: u8 { b = 1 }",
        "layout a { b: u8 }",
        "table a: exact(u8) { capacity 1 }",
        "counter a",
        "meter a: packets { rate 1 }",
        "register a: u8",
        "pool a: u8 { 1..2 }",
        "group a[4]: u8 { }",
        "reason a \"b\"",
        "fn a() -> u8 { 1 }",
        "decoder a(b: c) { flood }",
        "stage a() { flood }",
        "start stage a() { flood }",
        "steer stage a() { steer 1 }",
        "extern stage a() { flood }",
        "policy a(b: u8) { }",
        "event a() { }",
        "every 1s { }",
        "order fragments",
        "test \"a\" { }",
    ];
    let words: Vec<&str> = declarations.iter().filter_map(|text| text.split(' ').next()).collect();
    assert_eq!(words, ITEMS);
    for declaration in declarations {
        let before = "stage first() {\n    if b { flood }";
        let (tree, faults) = parse(FileId::default(), &format!("{before}\n{declaration}\n"));
        assert_eq!(faults[0].code, "E0054", "{declaration}: {faults:?}");
        let edit = faults[0].suggestion.as_ref().expect("a suggestion");
        assert_eq!(edit.span.start as usize, before.len(), "{declaration}");
        assert_eq!(tree.items.len() + tree.imports.len(), 1, "{declaration}");
    }
}

#[test]
fn words_of_the_grammar_may_be_names() {
    let text = "layout l { type: u8 length: u8 next: u8 when: u8 over: u8 data: bytes[length] }\n\
                stage count(port: u8, age: u8) { count = port + age\n set l.type = l.next\n count count\n \
                match age { 1 => count, 2 => set, 3 => count hits } }";
    let (tree, faults) = parse(FileId::default(), text);
    assert_eq!(faults, vec![]);
    let Some(Item::Stage(stage)) = tree.items.last() else { panic!("no stage") };
    assert!(matches!(stage.body.statements[0].kind, StmtKind::Assign(..)));
    assert!(matches!(stage.body.statements[2].kind, StmtKind::Count(..)));
}

#[test]
fn applied_suggestions_mend_the_program() {
    let cases = [
        ("stage a() { sned 3 }", "stage a() { send 3 }"),
        ("stage a() { ip.ttl = 3 }", "stage a() { set ip.ttl = 3 }"),
        ("stage a() { if x = 3 { flood } }", "stage a() { if x == 3 { flood } }"),
        ("const a: u8 = 64K", "const a: u8 = 64k"),
        ("const a u8 = 1", "const a: u8 = 1"),
        ("stage a() { flood", "stage a() { flood\n}"),
        ("import std::net.tcp", "import std.net.tcp"),
    ];
    for (text, mended) in cases {
        let (_, faults) = parse(FileId::default(), text);
        let edit = faults[0].suggestion.as_ref().expect("a suggestion");
        let mut now = text.to_string();
        now.replace_range(edit.span.start as usize..edit.span.end as usize, &edit.replacement);
        assert_eq!(now, mended);
        assert_eq!(codes(&now), Vec::<&str>::new(), "{now}");
    }
}
