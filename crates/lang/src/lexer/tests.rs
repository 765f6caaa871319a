//! Literals and signs, good and bad.

use super::lex;
use crate::token::{Sign, TokenKind};
use ir::source::FileId;

fn kinds(text: &str) -> Vec<TokenKind> {
    let (tokens, faults) = lex(FileId::default(), text);
    assert_eq!(faults, vec![], "{text}");
    tokens.into_iter().map(|token| token.kind).filter(|kind| *kind != TokenKind::End).collect()
}

fn codes(text: &str) -> Vec<&'static str> {
    lex(FileId::default(), text).1.iter().map(|fault| fault.code).collect()
}

#[test]
fn literals_carry_their_value() {
    let cases = [
        ("0", TokenKind::Int(0)),
        ("1_000", TokenKind::Int(1000)),
        ("0x08_00", TokenKind::Int(0x800)),
        ("0b101", TokenKind::Int(5)),
        ("64k", TokenKind::Int(65_536)),
        ("2M", TokenKind::Int(2 << 20)),
        ("340282366920938463463374607431768211455", TokenKind::Int(u128::MAX)),
        ("300s", TokenKind::Duration(300_000_000_000)),
        ("5min", TokenKind::Duration(300_000_000_000)),
        ("2h", TokenKind::Duration(7_200_000_000_000)),
        ("7ns", TokenKind::Duration(7)),
        ("7us", TokenKind::Duration(7_000)),
        ("7ms", TokenKind::Duration(7_000_000)),
        ("10.0.0.1", TokenKind::Ip4(0x0a00_0001)),
        ("10.0.0.0/8", TokenKind::Prefix4(0x0a00_0000, 8)),
        ("0.0.0.0/0", TokenKind::Prefix4(0, 0)),
        ("255.255.255.255/32", TokenKind::Prefix4(u32::MAX, 32)),
        ("2001:db8::1", TokenKind::Ip6(0x2001_0db8 << 96 | 1)),
        ("::", TokenKind::Ip6(0)),
        ("::1", TokenKind::Ip6(1)),
        ("fe80::/10", TokenKind::Prefix6(0xfe80 << 112, 10)),
        ("::/0", TokenKind::Prefix6(0, 0)),
        ("1:2:3:4:5:6:7:8", TokenKind::Ip6(0x0001_0002_0003_0004_0005_0006_0007_0008)),
        ("::ffff:10.0.0.1", TokenKind::Ip6(0xffff_0a00_0001)),
        ("02:00:00:00:00:ff", TokenKind::Mac(0x0200_0000_00ff)),
        ("aa:bb:cc:dd:ee:ff", TokenKind::Mac(0xaabb_ccdd_eeff)),
        (r#""a\n\t\\\"\x41é""#, TokenKind::Text("a\n\t\\\"Aé".to_string())),
    ];
    for (text, kind) in cases {
        assert_eq!(kinds(text), vec![kind], "{text}");
    }
}

#[test]
fn ranges_names_and_operators_are_split() {
    let sign = TokenKind::Sign;
    assert_eq!(kinds("5..15"), vec![TokenKind::Int(5), sign(Sign::Range), TokenKind::Int(15)]);
    assert_eq!(kinds("5.. x"), vec![TokenKind::Int(5), sign(Sign::Range), TokenKind::Word]);
    assert_eq!(
        kinds("10.0.0.1..10.0.0.2"),
        vec![TokenKind::Ip4(0x0a00_0001), sign(Sign::Range), TokenKind::Ip4(0x0a00_0002)]
    );
    assert_eq!(kinds("::1..::2"), vec![TokenKind::Ip6(1), sign(Sign::Range), TokenKind::Ip6(2)]);
    assert_eq!(
        kinds("(a:bool"),
        vec![sign(Sign::ParenOpen), TokenKind::Word, sign(Sign::Colon), TokenKind::Word]
    );
    assert_eq!(kinds("ab.cd"), vec![TokenKind::Word, sign(Sign::Dot), TokenKind::Word]);
    let operators = "+% +| -% -| *% *| as% as| => -> .. << >> <= >= == != && || ~ ! ^ ; %";
    let shown: Vec<&str> = kinds(operators)
        .iter()
        .map(|kind| match kind {
            TokenKind::Sign(sign) => sign.text(),
            other => panic!("{other:?} is not a sign"),
        })
        .collect();
    assert_eq!(shown.join(" "), operators);
    assert_eq!(kinds("a // b\nas8"), vec![TokenKind::Word, TokenKind::Comment, TokenKind::Word]);
}

#[test]
fn faulty_literals_are_told_once() {
    let cases = [
        ("a § b", "E0001"),
        ("\"abc", "E0002"),
        (r#""\q""#, "E0003"),
        (r#""\xg0""#, "E0003"),
        (r#""\xff""#, "E0003"),
        ("340282366920938463463374607431768211456", "E0004"),
        ("9999999999999h", "E0004"),
        ("64K", "E0005"),
        ("5sec", "E0005"),
        ("0x", "E0005"),
        ("0b12", "E0005"),
        ("1.5", "E0006"),
        ("1.5s", "E0006"),
        ("10.0.0", "E0007"),
        ("10.0.0.256", "E0007"),
        ("10.0.0.256/8", "E0007"),
        ("1.2.3.4.5", "E0007"),
        ("1::2::3", "E0008"),
        ("1:2:3:4:5:6:7:88888", "E0008"),
        ("1::xyz", "E0008"),
        ("2:0:0:0:0:1", "E0009"),
        ("10.0.0.1/8", "E0010"),
        ("2001:db8::1/32", "E0010"),
        ("10.0.0.0/33", "E0011"),
        ("::/129", "E0011"),
        ("# hello", "E0013"),
        ("/* a\n b */ c", "E0013"),
        ("1..=5", "E0014"),
        ("std::net", "E0015"),
    ];
    for (text, code) in cases {
        assert_eq!(codes(text), vec![code], "{text}");
    }
}

#[test]
fn a_text_that_is_too_long_is_refused() {
    assert_eq!(codes(&" ".repeat(super::LONGEST_TEXT + 1)), vec!["E0012"]);
}

#[test]
fn a_suggested_prefix_is_right() {
    let (_, faults) = lex(FileId::default(), "10.1.2.3/12");
    let edit = faults[0].suggestion.as_ref().expect("the network can be computed");
    assert_eq!(edit.replacement, "10.0.0.0/12");
}
