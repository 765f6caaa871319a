//! Crooked texts and their canonical form.

use super::format;

#[test]
fn blanks_become_canonical_and_line_breaks_stay() {
    let cases = [
        ("stage  a( x :u8 ){send  x}\n", "stage a(x: u8) { send x }\n"),
        (
            "stage a() {\n\n\n\nflood // out\n  // own line\n}",
            "stage a() {\n\n    flood  // out\n    // own line\n}\n",
        ),
        (
            "stage a() {\nlet x = 1\n+ 2\nlet y = (\n1\n)\nflood }",
            "stage a() {\n    let x = 1\n        + 2\n    let y = (\n        1\n    )\n    flood }\n",
        ),
        ("import std.net.{ tcp ,udp }", "import std.net.{tcp, udp}\n"),
        (
            "stage a() { if! x&&~ y==( 1 ) { multicast { 1,2 } } }",
            "stage a() { if !x && ~y == (1) { multicast {1, 2} } }\n",
        ),
        ("layout l {\na:   u8   // one\n}", "layout l {\n    a:   u8   // one\n}\n"),
        ("const a:   u8 = 1   // one\r\n", "const a: u8 = 1  // one\n"),
        ("\n\n// only\n", "// only\n"),
        ("", ""),
    ];
    for (text, canonical) in cases {
        assert_eq!(format(text).as_deref(), Ok(canonical), "{text}");
        assert_eq!(format(canonical).as_deref(), Ok(canonical));
    }
}

#[test]
fn a_text_that_does_not_parse_is_refused() {
    let faults = format("stage a() { sned 3 }").expect_err("a misspelt word");
    assert_eq!(faults[0].code, "E0052");
}
