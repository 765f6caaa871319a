//! The front as a whole: programs that parse and format to themselves, and mutated programs that must never
//! panic.

use ir::source::{FileId, Span};
use lang::diagnostic::Diagnostic;
use lang::format::format;
use lang::lexer::lex;
use lang::parser::parse;
use lang::token::TokenKind;
use lang::tree::{show_tokens, show_tree};

const FIREWALL: &str = include_str!("front/firewall.rav");
const EVERYTHING: &str = include_str!("front/everything.rav");

#[test]
fn good_programs_parse_and_format_to_themselves() {
    for text in [FIREWALL, EVERYTHING] {
        let (tree, faults) = parse(FileId::default(), text);
        assert_eq!(faults, vec![]);
        assert!(show_tree(&tree).lines().count() > 30);
        assert_eq!(format(text).as_deref(), Ok(text));
    }
}

/// Marsaglia's xorshift (2003): numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

const PIECES: [&str; 40] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "=>",
    "..",
    "::",
    "é",
    "\"",
    "\\x",
    "/",
    "//",
    "\n",
    "learn",
    "match x {",
    "1.",
    "0x",
    "10.0.0.1/",
    "as%",
    "=",
    "-",
    "in",
    "if",
    "stage a() {",
    "layout b {",
    "😀",
    "some",
    ",",
    ".",
    "5s",
    "999h",
    "else",
    ":",
    "u129",
    "drop",
    "entries {",
    "\0",
    "\r",
];

fn mutate(text: &str, numbers: &mut Numbers) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + numbers.below(4) {
        let at = numbers.below(bytes.len());
        let end = (at + 1 + numbers.below(12)).min(bytes.len());
        match numbers.below(5) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            2 => {
                let other = numbers.below(bytes.len());
                bytes.swap(at, other);
            }
            3 => bytes.truncate(at.max(1)),
            _ => {
                let piece = PIECES[numbers.below(PIECES.len())];
                bytes.splice(at..at, piece.bytes());
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn assert_inside(text: &str, span: Span) {
    assert!(
        text.get(span.start as usize..span.end as usize).is_some(),
        "{span:?} is not in the text:\n{text}"
    );
}

fn assert_places(text: &str, faults: &[Diagnostic]) {
    for fault in faults {
        assert_inside(text, fault.primary.span);
        fault.path.iter().for_each(|place| assert_inside(text, place.span));
        fault.suggestion.iter().for_each(|edit| assert_inside(text, edit.span));
    }
}

fn meanings(text: &str) -> Vec<(TokenKind, String)> {
    let (tokens, _) = lex(FileId::default(), text);
    let shown = |span: Span| text[span.start as usize..span.end as usize].trim_end().to_string();
    tokens.into_iter().map(|token| (token.kind, shown(token.span))).collect()
}

#[test]
fn mutated_programs_never_panic_and_format_keeps_their_tokens() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut good, mut bad) = (0, 0);
    for case in 0..2000 {
        let text = mutate(if case % 2 == 0 { FIREWALL } else { EVERYTHING }, &mut numbers);
        let (tokens, _) = lex(FileId::default(), &text);
        tokens.iter().for_each(|token| assert_inside(&text, token.span));
        let (tree, faults) = parse(FileId::default(), &text);
        assert_places(&text, &faults);
        match format(&text) {
            Ok(formatted) => {
                good += 1;
                assert_eq!(meanings(&formatted), meanings(&text));
                assert_eq!(format(&formatted), Ok(formatted));
            }
            Err(told) => {
                bad += 1;
                assert_eq!(told, faults);
            }
        }
        if case % 16 == 0 {
            assert!(show_tokens(&text).contains("end"));
            show_tree(&tree);
        }
    }
    assert!(good > 100 && bad > 500, "{good} good, {bad} bad");
}

#[test]
fn deep_and_long_programs_are_told_not_overrun() {
    let deep = 10_000;
    let cases = [
        format!("const A: u8 = {}1", "(".repeat(deep)),
        format!("const A: u8 = {}1", "!".repeat(deep)),
        format!("const A: u8 = {}1", "-".repeat(deep)),
        format!("const A: u8 = 1{}", " + 1".repeat(deep)),
        format!("const A: bool = 1{}", " in 1".repeat(deep)),
        format!("const A: u8 = a{}", ".a".repeat(deep)),
        format!("const A: u8 = a{}", " as u8".repeat(deep)),
        format!("const A: u8 = {}1{}", "(".repeat(90), " + 1 + 1 + 1)".repeat(90)),
        format!("const A: u8 = {}", "if a { ".repeat(deep)),
        format!("const A: u8 = {}", "a(".repeat(deep)),
        format!("stage a() {}", "{ if x ".repeat(deep)),
        format!("stage a() {{ {} }}", "if x { flood } else ".repeat(deep)),
        format!("stage a() {{ {}", "match x { else => ".repeat(deep)),
        format!("stage a() {{ match x {{ {}", "some ".repeat(deep)),
        format!("stage a() {{ match x {{ {}", "(".repeat(deep)),
        format!("stage a() {{ match x {{ {}", "v(".repeat(deep)),
        "}".repeat(deep),
        "a::".repeat(deep),
        "1.".repeat(deep),
        "1..".repeat(deep),
        "a.".repeat(deep),
    ];
    for text in cases {
        let (_, faults) = parse(FileId::default(), &text);
        assert_places(&text, &faults);
        assert!(!faults.is_empty(), "{} …", &text[..text.len().min(60)]);
    }
}
