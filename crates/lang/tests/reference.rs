//! The examples of `docs/language.md`: every block marked `rav` compiles, and every bad one gives exactly the
//! code that stands beside it.
//!
//! The words behind the three backquotes say how a block is read:
//!
//! - `rav`: a whole program;
//! - `rav declarations`: declarations; the imports and, if there is none, a start are added;
//! - `rav statements`: statements of a decoder behind Ethernet, IPv4 and TCP (see [`AROUND_STATEMENTS`]);
//! - `rav module PATH`: a module that the other blocks may import;
//! - `… error CODE` or `… warning CODE` at the end: what the compiler says of it, and nothing else.

use lang::diagnostic::{Diagnostic, Severity};
use lang::pipeline::{CompileOptions, Compiled, compile};
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../docs/language.md");

const IMPORTS: &str = "import std.net.{ethernet, vlan, arp, ipv4, ipv6, tcp, tcp_option, udp, icmp}\n";

const START: &str = "\nstart stage added_start() { flood }\n";

/// What surrounds a block of statements: `BODY` is the place of the statements.
const AROUND_STATEMENTS: &str = "
reason refused \"for the examples\"
table hosts: exact(ip4) -> port { capacity 64k age 300s evict lru }
table members: exact(ip4) { capacity 1k idle 60s evict refuse }
table blocked: rules(ip4) -> u8 { capacity 1k age 60s choose priority }
group listeners[256]: port { buckets 8 capacity 8 }
counter packets
counter by_class[8]
event seen(who: ip4, at: port) { count packets }
start decoder frame(eth: ethernet) { match eth.type { 0x0800 => packet, else => drop refused } }
decoder packet(ip: ipv4) {
    if ip.frag != 0 { drop refused }
    match ip.proto { 6 => segment, else => drop refused }
}
decoder segment(t: tcp) {
    if in_port != 9 {
BODY
    }
    flood
}
stage web(to: u16) { if to == 80 { send 1 } flood }
";

struct Block {
    line: usize,
    words: Vec<String>,
    text: String,
}

fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in PAGE.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(info), None) => {
                let words = info.split_whitespace().map(str::to_string).collect();
                open = Some(Block { line: index + 1, words, text: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block of the page is not closed");
    blocks.retain(|block| block.words.first().is_some_and(|word| word == "rav"));
    blocks
}

/// The program that a block stands for; nothing for a module.
fn whole(block: &Block) -> Option<String> {
    let text = &block.text;
    match block.words.get(1).map(String::as_str) {
        None | Some("error" | "warning") => Some(text.clone()),
        Some("declarations") => {
            let start = if text.contains("start ") { "" } else { START };
            Some(format!("{IMPORTS}{text}{start}"))
        }
        Some("statements") => Some(format!("{IMPORTS}{}", AROUND_STATEMENTS.replace("BODY", text))),
        Some("module") => None,
        Some(word) => panic!("line {}: `{word}` is no way to read a block", block.line),
    }
}

/// What the compiler should say of a block: severity and code.
fn wanted(block: &Block) -> Option<(Severity, &str)> {
    let at = block.words.iter().position(|word| word == "error" || word == "warning")?;
    let severity = if block.words[at] == "error" { Severity::Error } else { Severity::Warning };
    Some((severity, block.words.get(at + 1).map_or("", String::as_str)))
}

/// Parts that nothing uses are usual in an excerpt.
fn is_about_an_excerpt(block: &Block, diagnostic: &Diagnostic) -> bool {
    let excerpt = matches!(block.words.get(1).map(String::as_str), Some("declarations" | "statements"));
    excerpt && matches!(diagnostic.code, "W0406" | "W0408")
}

fn compiled(text: &str, modules: &BTreeMap<String, String>) -> Compiled {
    compile("example.rav", text, &|path| modules.get(path).cloned(), &CompileOptions::default())
}

#[test]
fn every_example_of_the_reference_is_what_the_page_says() {
    let blocks = blocks();
    let modules: BTreeMap<String, String> = blocks
        .iter()
        .filter(|block| block.words.get(1).is_some_and(|word| word == "module"))
        .map(|block| (block.words[2].clone(), block.text.clone()))
        .collect();
    let mut wrong = String::new();
    let mut seen = 0;
    for block in &blocks {
        let Some(text) = whole(block) else { continue };
        seen += 1;
        let compiled = compiled(&text, &modules);
        let found: Vec<(Severity, &str)> = compiled
            .diagnostics
            .iter()
            .filter(|diagnostic| !is_about_an_excerpt(block, diagnostic))
            .map(|diagnostic| (diagnostic.severity, diagnostic.code))
            .collect();
        let expected: Vec<(Severity, &str)> = wanted(block).into_iter().collect();
        if found != expected {
            let said: Vec<String> = compiled
                .diagnostics
                .iter()
                .map(|diagnostic| {
                    let place = compiled.sources.text(diagnostic.primary.span);
                    format!("  {} {} at `{place}`\n", diagnostic.code, diagnostic.headline)
                })
                .collect();
            wrong += &format!(
                "docs/language.md, line {}: expected {expected:?}, found\n{}",
                block.line,
                said.concat()
            );
        }
    }
    assert!(seen >= 30, "only {seen} examples were found");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_link_of_the_reference_leads_somewhere() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut links = 0;
    for rest in PAGE.split("](").skip(1) {
        let target = rest.split(')').next().unwrap_or("");
        let (file, part) = target.split_once('#').unwrap_or((target, ""));
        links += 1;
        if file.is_empty() {
            let anchor = |line: &str| {
                let title = line.trim_start_matches('#').trim().to_lowercase();
                title.replace(' ', "-").replace(['`', ',', ':', '/', '(', ')', '.'], "")
            };
            let found = PAGE.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == part);
            assert!(found, "no part of the page is called #{part}");
        } else {
            assert!(page.join(file).exists(), "{target} does not exist");
        }
    }
    assert!(links >= 10, "only {links} links were found");
}

#[test]
fn the_reference_names_every_standard_layout_enum_and_function() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../std/net");
    let mut declared = 0;
    for entry in std::fs::read_dir(folder).expect("std/net is there") {
        let path = entry.expect("its entries can be listed").path();
        let text = std::fs::read_to_string(&path).expect("modules are text");
        for line in text.lines() {
            let Some((word, rest)) = line.split_once(' ') else { continue };
            if !matches!(word, "layout" | "enum" | "fn") {
                continue;
            }
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            declared += 1;
            let named = PAGE.contains(&format!("`{name}`")) || PAGE.contains(&format!("`{name}("));
            assert!(named, "docs/language.md does not name `{name}` of {}", path.display());
        }
    }
    assert!(declared >= 20, "only {declared} declarations were found");
}
