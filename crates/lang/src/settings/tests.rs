//! Tests of values from outside: what is wrong is told at its place, and what is right gives the same program
//! as a value in the text.

use super::*;
use crate::pipeline::{CompileOptions, Compiled, compile};
use ir::print::print;

const PROGRAM: &str = "import std.net.{ethernet, ipv4}
settable const LIMIT: u32 in 1..1000 = 100
settable const IDLE: time = 60s
settable const INSIDE: prefix4 = 192.168.0.0/16
settable const SIX: prefix6 = 2001:db8::/32
settable const OPEN: bool = false
settable pool outside: (ip4, u16) { 198.51.100.1, 1024..65535 }
const FIXED: u32 = LIMIT * 2
const NEAR: prefix4 = INSIDE
table flows: exact(ip4) -> (ip4, u16) { capacity LIMIT as u64 idle IDLE evict refuse releases outside }
table zones: lpm(ip4) -> u8 { capacity 8 entries { INSIDE => 1 } }
start decoder frame(eth: ethernet) { match eth.type { 0x0800 => packet, else => drop other } }
decoder packet(ip: ipv4) {
    if OPEN { flood }
    if ip.src in INSIDE && length < FIXED {
        match take(outside) { some (a, p) => { learn flows[ip.src] = (a, p) else {} }, none => {} }
    }
    match ip.dst { NEAR => send 1, 10.0.0.1 => send 3, else => send 2 }
}
";

/// Settings as a file has them: `NAME = value` a line; parts of a value are separated by `;`.
fn settings(lines: &[(&str, &str)]) -> Settings {
    let (mut text, mut values) = (String::from("[set]\n"), Vec::new());
    for (name, value) in lines {
        let place = text.len()..text.len() + name.len();
        text += &format!("{name} = ");
        let mut parts = Vec::new();
        for part in value.split(';') {
            parts.push(text.len()..text.len() + part.len());
            text += &format!("{part};");
        }
        text.push('\n');
        values.push(SetValue { name: (*name).to_string(), place, parts });
    }
    Settings { name: "gateway.toml".to_string(), text, values }
}

fn compiled(text: &str, lines: &[(&str, &str)]) -> Compiled {
    let options = CompileOptions { settings: settings(lines), ..CompileOptions::default() };
    compile("main.rav", text, &|_| None, &options)
}

/// The diagnostics: place, code, headline, the places of the remarks, and what can be set instead.
fn told(text: &str, lines: &[(&str, &str)]) -> Vec<String> {
    let compiled = compiled(text, lines);
    let sources = &compiled.sources;
    let one = |found: &Diagnostic| {
        let remarks =
            found.path.iter().map(|label| format!(" [{}: {}]", sources.place(label.span), label.text));
        let remarks: String = remarks.collect();
        let place = sources.place(found.primary.span);
        let help = found
            .help
            .as_ref()
            .filter(|_| found.code.starts_with("E011"))
            .map(|help| format!(" ({help})"))
            .unwrap_or_default();
        format!("{place}: {}: {}{remarks}{help}", found.code, found.headline)
    };
    compiled.diagnostics.iter().map(one).collect()
}

#[test]
fn a_value_from_outside_gives_the_program_that_the_same_value_in_the_text_gives() {
    let set = [
        ("LIMIT", "500", "= 100", "= 500"),
        ("IDLE", "5min", "= 60s", "= 5min"),
        ("INSIDE", "10.0.0.0/8", "= 192.168.0.0/16", "= 10.0.0.0/8"),
        ("OPEN", "1 == 1", "= false", "= 1 == 1"),
        ("outside", "192.0.2.0/30, 5000..5999", "198.51.100.1, 1024..65535", "192.0.2.0/30, 5000..5999"),
        ("outside", "192.0.2.0/30;5000..5999", "198.51.100.1, 1024..65535", "192.0.2.0/30, 5000..5999"),
    ];
    let printed = |compiled: &Compiled| {
        let text = print(compiled.program.as_ref().expect("it compiles"));
        text.lines().map(|line| line.split("  @").next().unwrap_or(line).to_string()).collect::<Vec<_>>()
    };
    let usual = printed(&compiled(PROGRAM, &[]));
    for (name, value, from, to) in set {
        let outside = printed(&compiled(PROGRAM, &[(name, value)]));
        let inside = printed(&compiled(&PROGRAM.replacen(from, to, 1), &[]));
        assert_eq!(outside, inside, "{name}");
        assert_ne!(outside, usual, "{name} means something");
    }
}

#[test]
fn what_can_be_set_is_listed_with_its_values() {
    let compiled = compiled(PROGRAM, &[("LIMIT", "500"), ("outside", "10.0.0.1;1..5")]);
    let text = |span: &Span| compiled.sources.text(*span).to_string();
    let listed: Vec<(&str, String, Vec<String>)> = compiled
        .settables
        .iter()
        .map(|known| (known.name.as_str(), text(&known.default), known.set.iter().map(text).collect()))
        .collect();
    let set = |values: &[&str]| values.iter().map(|value| value.to_string()).collect::<Vec<_>>();
    assert_eq!(
        listed,
        [
            ("LIMIT", "100".to_string(), set(&["500"])),
            ("IDLE", "60s".to_string(), set(&[])),
            ("INSIDE", "192.168.0.0/16".to_string(), set(&[])),
            ("SIX", "2001:db8::/32".to_string(), set(&[])),
            ("OPEN", "false".to_string(), set(&[])),
            ("outside", "198.51.100.1, 1024..65535".to_string(), set(&["10.0.0.1", "1..5"])),
        ]
    );
}

#[test]
fn a_wrong_value_is_told_at_its_place_with_the_place_of_the_declaration() {
    for (name, value, wanted) in [
        (
            "LIMIT",
            "1001",
            "gateway.toml:2:9: E0235: `LIMIT` lies outside of its range [main.rav:2:30: the range] [main.rav:2:16: declared here]",
        ),
        ("OPEN", "5", "gateway.toml:2:8: E0200: bool is wanted here, not u8 [main.rav:6:16: declared here]"),
        ("LIMIT", "now", "gateway.toml:2:9: E0208: this must be a constant [main.rav:2:16: declared here]"),
        ("LIMIT", "", "gateway.toml:2:9: E0073: A value is needed here. [main.rav:2:16: declared here]"),
        (
            "LIMIT",
            "5 5",
            "gateway.toml:2:11: E0050: The end of the value is needed here. [main.rav:2:16: declared here]",
        ),
        ("LIMIT", "1;2", "gateway.toml:2:1: E0206: `LIMIT` has one value"),
        ("IDLE", "5", "gateway.toml:2:8: E0232: a time has a unit [main.rav:3:16: declared here]"),
        (
            "INSIDE",
            "10.0.0.1",
            "gateway.toml:2:10: E0200: `INSIDE` is a prefix of IPv4 [main.rav:4:16: declared here]",
        ),
        (
            "SIX",
            "10.0.0.0/8",
            "gateway.toml:2:7: E0200: `SIX` is a prefix of IPv6 [main.rav:5:16: declared here]",
        ),
        (
            "INSIDE",
            "INSIDE",
            "main.rav:4:16: E0106: the constant `INSIDE` needs itself [gateway.toml:2:10: `INSIDE` is set here]",
        ),
        (
            "outside",
            "10.0.0.9..10.0.0.1;1",
            "gateway.toml:2:11: E0224: this range is empty [main.rav:7:15: declared here]",
        ),
        (
            "outside",
            "10.0.0.1",
            "main.rav:7:15: E0503: an item of `outside` has 2 parts [gateway.toml:2:11: `outside` is set here]",
        ),
        (
            "LIMT",
            "5",
            "gateway.toml:2:1: E0112: the program declares no `LIMT` (these can be set: `LIMIT`, `IDLE`, `INSIDE`, `SIX`, `OPEN`, `outside`)",
        ),
        (
            "FIXED",
            "5",
            "gateway.toml:2:1: E0113: the constant `FIXED` is not settable [main.rav:8:7: declared here] (write `settable` before its declaration)",
        ),
        (
            "flows",
            "5",
            "gateway.toml:2:1: E0113: the table `flows` is not settable [main.rav:10:7: declared here] (constants and pools can be declared `settable`)",
        ),
    ] {
        assert_eq!(told(PROGRAM, &[(name, value)]), [wanted], "{name} = {value}");
    }
    let large = told(PROGRAM, &[("LIMIT", "5000000000")]).remove(0);
    assert_eq!(large, "gateway.toml:2:9: E0201: 5000000000 does not fit u32 [main.rav:2:16: declared here]");
    assert_eq!(
        told(PROGRAM, &[("LIMIT", "5"), ("LIMIT", "6")]),
        ["gateway.toml:3:1: E0101: `LIMIT` is set twice"]
    );
}

#[test]
fn a_value_that_the_program_uses_wrongly_is_told_where_it_is_used_and_where_it_comes_from() {
    let program = "settable const SIZE: u64 = 4
settable const STEP: u8 = 1
counter seen[8]
table t: exact(u8) -> port { capacity SIZE entries { 1 => 1, 2 => 2 } }
start stage all() { let next = STEP + 250  count seen[STEP]  flood }
";
    assert_eq!(told(program, &[]), Vec::<String>::new());
    for (name, value, wanted) in [
        ("SIZE", "1", "main.rav:4:7: E0508: `t` has 2 entries and room for 1"),
        (
            "SIZE",
            "67108865",
            "main.rav:4:39: E0507: a table holds between 1 and 67,108,864 entries [gateway.toml:2:8: `SIZE` is set here]",
        ),
        ("STEP", "8", "E0219"),
    ] {
        let told = told(program, &[(name, value)]);
        assert!(told.iter().any(|told| told.contains(wanted)), "{name} = {value}: {told:?}");
    }
    assert!(told(program, &[("STEP", "6")])[0].contains("[gateway.toml:2:8: `STEP` is set here]"));
}

#[test]
fn a_value_is_named_where_only_a_remark_of_an_error_has_its_name() {
    let program = "settable const INSIDE: prefix4 = 10.0.0.0/8
table zones: lpm(ip4) -> u8 { capacity 8 entries { INSIDE => 1, 0.0.0.0/0 => 2 } }
start stage all() { flood }
";
    let wanted = "main.rav:2:65: E0510: `zones` has two entries for one key [main.rav:2:52: the first entry] [gateway.toml:2:10: `INSIDE` is set here]";
    assert_eq!(told(program, &[("INSIDE", "0.0.0.0/0")]), [wanted]);
}

#[test]
fn what_is_wrong_with_a_value_comes_first_and_says_what_to_write() {
    let program = "settable const SIZE: u64 in 1..9 = 4
settable const IDLE: time = 5s
table t: exact(u8) -> port { capacity SIZE idle IDLE evict lru }
start stage all() { learn t[1] = 1  flood }
";
    let found = told(program, &[("SIZE", "0")]);
    assert!(found[0].contains("gateway.toml:2:8: E0235") && found[1].contains("E0507"), "{found:?}");
    let compiled = compiled(program, &[("IDLE", "5")]);
    let help = compiled.diagnostics[0].help.as_deref();
    assert_eq!(help, Some("write seconds; units are `ns`, `us`, `ms`, `s`, `min` and `h`"));
}

#[test]
fn modules_declare_what_can_be_set() {
    let module = "settable const PORT: port = 1\nfn out() -> port { PORT }\n";
    let main = "import mine.{out}\nstart stage all() { send out() }\n";
    let load = |path: &str| (path == "mine.rav").then(|| module.to_string());
    let with = |lines: &[(&str, &str)]| {
        let options = CompileOptions { settings: settings(lines), ..CompileOptions::default() };
        compile("main.rav", main, &load, &options)
    };
    let set = with(&[("PORT", "7")]);
    assert!(print(set.program.as_ref().expect("it compiles")).contains("const 7"), "{:?}", set.program);
    assert_eq!(set.sources.place(set.settables[0].declared), "mine.rav:1:16");
}

#[test]
fn of_many_names_that_can_be_set_some_are_told() {
    let declared: String = (0..100).map(|at| format!("settable const C{at}: u8 = 1\n")).collect();
    let program = format!("{declared}start stage all() {{ flood }}\n");
    let told = told(&program, &[("D", "1")]);
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("100 can be set, among them `C0`, ") && told[0].ends_with("`C19`)"), "{told:?}");
}

#[test]
fn places_that_the_text_does_not_have_are_empty_values() {
    let wrong = SetValue { name: "outside".to_string(), place: 90..99, parts: vec![0..900, 7..900] };
    let settings = Settings { name: "s".to_string(), text: "é".to_string(), values: vec![wrong] };
    let options = CompileOptions { settings, ..CompileOptions::default() };
    let compiled = compile("main.rav", PROGRAM, &|_| None, &options);
    assert_eq!(compiled.diagnostics.iter().map(|found| found.code).collect::<Vec<_>>(), ["E0073"]);
}

/// A program that imports `std.translate`, with other values of its pool, from outside or in its own text.
#[test]
fn what_cannot_work_in_a_translation_is_refused_at_its_place() {
    let program = |constants: &str| {
        format!(
            "import std.net.{{ethernet, ipv4}}
import std.translate.{{translate_out, translate_in}}
{constants}
start decoder frame(eth: ethernet) {{ match eth.type {{ 0x0800 => packet, else => flood }} }}
decoder packet(ip: ipv4) {{
    if in_port == 1 {{ goto translate_out }}
    goto translate_in
}}
stage translated_out() {{ send 2 }}
stage translated_in() {{ send 1 }}
"
        )
    };
    let first = |place: &str, lines: &[(&str, &str)]| {
        let set = compiled(&program(""), lines);
        let found = set.diagnostics.first().map(|found| {
            let at = set.sources.place(found.primary.span).to_string();
            (found.code, at)
        });
        match (found, place) {
            (None, "") => {}
            (Some((code, at)), place) => assert!(code == "E0235" && at == place, "{lines:?}: {code} {at}"),
            (None, place) => panic!("{lines:?} should be refused at {place}"),
        }
        // The same values in the text of the program are refused, too, and the same are taken.
        let ty = |name: &str| if name == "FIRST_ADDRESS" { "ip4" } else { "u32" };
        let constants: String =
            lines.iter().map(|(name, value)| format!("const {name}: {} = {value}\n", ty(name))).collect();
        let declared = compiled(&program(&constants), &[]);
        assert_eq!(declared.program.is_some(), place.is_empty(), "{lines:?}: {:?}", declared.diagnostics);
    };
    first("", &[("ADDRESSES", "1"), ("PARTS", "64512")]);
    first("gateway.toml:3:9", &[("ADDRESSES", "1"), ("PARTS", "64513")]);
    first("", &[("ADDRESSES", "2"), ("PARTS", "65536")]);
    first("gateway.toml:2:13", &[("ADDRESSES", "129")]);
    first("gateway.toml:2:13", &[("ADDRESSES", "0")]);
    first("", &[("ADDRESSES", "2"), ("FIRST_ADDRESS", "223.255.255.254")]);
    first("gateway.toml:3:17", &[("ADDRESSES", "2"), ("FIRST_ADDRESS", "223.255.255.255")]);
    first("gateway.toml:2:17", &[("FIRST_ADDRESS", "255.255.255.254")]);
    first("gateway.toml:2:17", &[("FIRST_ADDRESS", "0.0.0.1")]);
    first("gateway.toml:2:22", &[("FRAGMENTED_OF_PART", "16385")]);
    assert!(compiled(&program(""), &[("FRAGMENTED_OF_PART", "65")]).program.is_none());
}
