//! Comments of files with rules, in which tests of the rules stand.

use crate::why::ExpectedVerdict;

/// What a line says that is a comment in some format of rules: behind `#`, `!`, `;` or `//`.
pub fn comment(line: &str) -> Option<&str> {
    let words = line.trim();
    let is_comment = words.starts_with(['#', '!', ';']) || words.starts_with("//");
    is_comment.then(|| words.trim_start_matches(is_mark))
}

fn is_mark(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '#' | '!' | '/' | ';')
}

/// The tests of a text, each with its line, from 1.
pub fn tests_in(text: &str) -> impl Iterator<Item = (u32, &str)> {
    (1..).zip(text.lines()).filter_map(|(line, words)| Some((line, test_of(words)?)))
}

/// The test of a line, `expect …`: in a comment that is all of the line, or behind a rule. Formats differ in
/// what begins a comment there, so whatever reads as a test behind a mark of a comment is one: in a text
/// between quotation marks, it fails rather than being passed over.
pub fn test_of(line: &str) -> Option<&str> {
    if let Some(comment) = comment(line) {
        return Some(comment).filter(|comment| comment.starts_with("expect "));
    }
    let (mut seen, mut quotes) = (0, 0);
    for (at, _) in line.match_indices("expect ") {
        let between = &line[seen..at];
        quotes += between.matches('"').count();
        seen = at;
        let marks = &between[between.trim_end_matches(is_mark).len()..];
        let has = |mark: &str| marks.contains(mark);
        let test = line[at..].trim();
        let verdict = test.split_whitespace().nth(1).unwrap_or_default();
        let is_whole =
            verdict.parse::<ExpectedVerdict>().is_ok() && ["#", "!", ";", "//"].into_iter().any(has);
        if is_whole || quotes % 2 == 0 && [" #", "\t#", " //", "\t//"].into_iter().any(has) {
            return Some(test);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_stand_on_lines_of_their_own_or_behind_rules() {
        let text = "# expect a\npass all # expect b\npass // expect c\n! d\npass \" # expect no\"\npass # words\n\
                    pass all#expect no\n -m comment --comment \"it is #1\" # expect e\npass expect pass udp\n";
        let found: Vec<(u32, &str)> = tests_in(text).collect();
        assert_eq!(found, [(1, "expect a"), (2, "expect b"), (3, "expect c"), (8, "expect e")]);
    }

    #[test]
    fn what_reads_as_a_test_behind_a_mark_is_not_passed_over() {
        for (line, test) in [
            ("pass all#expect block udp", "expect block udp"),
            ("pass all ## expect block udp", "expect block udp"),
            ("pass label \"# expect pass udp\"", "expect pass udp\""),
            ("pass label \" # expect no # expect reject udp", "expect reject udp"),
            ("permit ip any any ! expect pass udp", "expect pass udp"),
            ("pass;expect pass udp", "expect pass udp"),
            ("pass // # expect blcok udp", "expect blcok udp"),
        ] {
            assert_eq!(test_of(line), Some(test), "{line}");
        }
    }
}
