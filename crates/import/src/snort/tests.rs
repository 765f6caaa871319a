//! Rules read whole, left out by name, and refused by place.

use super::*;

fn one(text: &str) -> SnortPatterns {
    read(format!("{text}\n").as_bytes()).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn refused(text: &str) -> (u32, u32, String) {
    let error = read(format!("{text}\n").as_bytes()).expect_err(text);
    (error.line, error.column, error.what)
}

#[test]
fn a_rule_of_each_dialect_says_the_same() {
    let snort3 = r#"alert tcp $HOME_NET 2589 -> any [25,1024:] ( msg:"a \"b\" c"; content:"2|00 0A|x\;",depth 16,offset 3,nocase; sid:105; rev:14; )"#;
    let suricata = r#"alert tcp $HOME_NET 2589 -> any [25,1024:] (msg:"a \"b\" c"; content:"2|000a|x|3b|"; offset:3; depth:16; nocase; sid:105; rev:14;)"#;
    let (three, two) = (one(snort3), one(suricata));
    assert_eq!(three.rules, two.rules);
    assert_eq!(three.unmeant, []);
    assert_eq!(three.rules, [SnortRule { line: 1, sid: 105 }]);
    let expected =
        SearchPattern { bytes: b"2\0\nx;".to_vec(), nocase: true, offset: 3, depth: Some(16), value: 0 };
    assert_eq!(three.patterns, [expected]);
    assert_eq!(two.patterns, three.patterns);
}

#[test]
fn ports_may_be_negated_listed_and_variable_and_a_service_rule_has_none() {
    let set = one(
        "alert udp any ![80,$P] <> any [!1:2,any] (sid:1;)\nalert udp any :9 -> any any (sid:2;)\nalert http ( content:\"abc\"; sid:3; )",
    );
    assert_eq!(set.rules.iter().map(|rule| rule.sid).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn what_strings_cannot_mean_is_listed_and_refused_where_strict() {
    let text = "\n# a comment \\\nalert tcp any any -> any any (content:\"ab\"; depth:9; content:\"cd\"; distance:2; content:!\"no\"; nocase; depth:5; pcre:\"/a;b\\\"/\"; flow:established; sid:1;)\n";
    let set = one(text);
    let strings: Vec<(&[u8], bool, Option<u32>)> =
        set.patterns.iter().map(|pattern| (&pattern.bytes[..], pattern.nocase, pattern.depth)).collect();
    assert_eq!(strings, [(&b"ab"[..], false, Some(9)), (&b"cd"[..], false, None)]);
    let names: Vec<&str> =
        set.unmeant.iter().map(|left| left.what.split('`').nth(1).unwrap_or("negated")).collect();
    assert_eq!(names, ["distance", "negated", "pcre", "flow"]);
    let error = read_strictly(text.as_bytes()).unwrap_err();
    assert_eq!(
        (error.line, error.column),
        (3, text.lines().nth(2).unwrap().find("distance").unwrap() as u32 + 1)
    );
    let kept =
        "alert tcp any any -> any any (msg:\"m\"; content:\"ab\"; fast_pattern; startswith; sid:1; rev:2;)\n";
    assert_eq!(read_strictly(kept.as_bytes()).unwrap().patterns[0].depth, Some(2));
}

#[test]
fn a_place_in_a_decoded_part_is_no_place_of_the_payload() {
    let places = |options: &str| -> Vec<(u32, Option<u32>)> {
        let set = one(&format!("alert tcp any any -> any any ({options} sid:1;)"));
        assert!(!set.unmeant.is_empty());
        set.patterns.iter().map(|pattern| (pattern.offset, pattern.depth)).collect()
    };
    assert_eq!(
        places("content:\"ab\"; depth:4; http.uri; content:\"cd\"; startswith;"),
        [(0, Some(4)), (0, None)]
    );
    assert_eq!(places("content:\"ab\"; offset:1; depth:4; http_uri;"), [(0, None)]);
    assert_eq!(
        places("content:\"ab\",depth 4; http_uri; content:\"cd\",depth 3;"),
        [(0, Some(4)), (0, None)]
    );
    assert_eq!(
        places("file_data; content:\"ab\"; depth:4; pkt_data; content:\"cd\"; depth:3;"),
        [(0, None), (0, Some(3))]
    );
}

#[test]
fn a_rule_may_go_on_in_the_next_line() {
    let set = one(
        "alert tcp any any -> any any \\\n  (content:\"ab\"; \\\r\n   content:\"cd\"; sid:4;)\nalert tcp any any -> any any (content:\"e\"; sid:5;)\n",
    );
    let found: Vec<(&[u8], u32)> =
        set.patterns.iter().map(|pattern| (&pattern.bytes[..], pattern.value)).collect();
    assert_eq!(found, [(&b"ab"[..], 0), (b"cd", 0), (b"e", 1)]);
    assert_eq!(set.rules[1].line, 4);
}

#[test]
fn what_is_no_rule_is_refused_by_place_and_cause() {
    let head = "alert tcp any any -> any any (";
    for (options, column, cause) in [
        ("content:\"ab; sid:1;)", 9, "quote is not closed"),
        ("content:\"a|0\"; sid:1;)", 11, "do not end"),
        ("content:\"a|0 1|\"; sid:1;)", 13, "one digit"),
        ("content:\"a|0g|\"; sid:1;)", 13, "no digit"),
        ("content:\"a\\q\"; sid:1;)", 11, "no escape"),
        ("content:\"\"; sid:1;)", 9, "empty"),
        ("content:abc; sid:1;)", 9, "not in quotes"),
        ("content:\"abc\"; depth:2; sid:1;)", 22, "less than the 3 bytes"),
        ("content:\"abc\"; depth:x-y; sid:1;)", 22, "no depth"),
        ("content:\"abc\"; offset:70000; sid:1;)", 23, "no offset"),
        ("content:\"abc\",deep 3; sid:1;)", 15, "no modifier"),
        ("nocase; sid:1;)", 1, "no content before it"),
        ("content:\"abc\" sid:1;)", 15, "where the option `content` ends"),
        ("content:\"abc\"; sid:1;", 22, "ends within"),
        ("content:\"abc\"; sid:1", 21, "does not end"),
        ("content:\"abc\"; msg:\"x", 20, "not closed"),
        ("content:\"abc\"; pcre:\"x; sid:1;)", 21, "not closed"),
        ("content:\"abc\"; sid:one;)", 16, "no sid"),
        ("content:\"abc\"; sid:1;) alert", 24, "behind the rule's end"),
        ("; sid:1;)", 1, "no option"),
    ] {
        let (line, at, what) = refused(&format!("# first\n{head}{options}\n"));
        assert_eq!((line, at), (2, head.len() as u32 + column), "{options}: {what}");
        assert!(what.contains(cause), "{options}: {what}");
    }
    for (text, column, cause) in [
        ("alert", 6, "lacks a protocol"),
        ("alert tcp any any >> any any (sid:1;)", 19, "no direction"),
        ("alert tcp any 99999 -> any any (sid:1;)", 15, "no ports"),
        ("alert tcp any [80,90:70] -> any any (sid:1;)", 19, "no ports"),
        ("alert tcp any [80 -> any any (sid:1;)", 15, "not closed"),
        ("alert tcp any : -> any any (sid:1;)", 15, "no ports"),
        ("alert tcp any !any -> any any (sid:1;)", 16, "no ports"),
        ("alert tcp any [80,] -> any any (sid:1;)", 19, "no ports"),
        ("alert tcp any any -> any any sid:1;", 30, "where the options begin"),
        ("alert tcp any any -> any any (content:\"a\";)", 1, "no sid"),
    ] {
        let (line, at, what) = refused(text);
        assert_eq!((line, at), (1, column), "{text}: {what}");
        assert!(what.contains(cause), "{text}: {what}");
    }
    let twice = "alert tcp any any -> any any (sid:9;)\n";
    let (line, _, what) = refused(&format!("{twice}\n{twice}"));
    assert_eq!(line, 3);
    assert!(what.contains("sid 9") && what.contains("line 1"), "{what}");
    assert_eq!(refused("alert tcp any any \u{fffd} any any (sid:1;)").0, 1);
    assert!(read(b"alert \xff").is_err());
    let cut = read(twice.trim_end().as_bytes()).unwrap_err();
    assert!(cut.what.contains("cut off"), "{cut}");
}

mod any_text {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn never_panics(pieces in prop::collection::vec(prop::sample::select(vec![
            "alert tcp any any -> any any (", "content:", "\"", "|", "4", "1", "a", "\\", ";", ")", "\n", "!", ",", "nocase",
            "depth", "offset:", "sid:7", "[", "]", "$P", ":", " ", "é", "http_uri", "startswith", "\\\n", "#", "msg:", "pcre:",
        ]), 0..40)) {
            let text = pieces.concat();
            if let Err(error) = read(text.as_bytes()) {
                prop_assert!(error.line as usize <= text.lines().count().max(1), "{error}");
            }
        }
    }
}
