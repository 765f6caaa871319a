//! Comments of files with rules, in which tests of the rules stand.

/// With this word a test begins.
const EXPECT: &str = "expect";

/// What a line says that is a comment in some format of rules: behind `#`, `!`, `;` or `//`.
pub fn comment(line: &str) -> Option<&str> {
    let words = line.trim();
    let is_comment = words.starts_with(['#', '!', ';']) || words.starts_with("//");
    is_comment.then(|| words.trim_start_matches(is_mark))
}

fn is_mark(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '#' | '!' | '/' | ';')
}

/// What tests of a text say behind `expect`, each with its line, from 1.
pub fn tests_in(text: &str) -> impl Iterator<Item = (u32, &str)> {
    (1..).zip(text.lines()).filter_map(|(line, words)| Some((line, test_of(words)?)))
}

/// What the test of a line says behind `expect`: in a comment that is all of the line, or behind a rule.
/// Formats differ in what begins a comment there, so whatever says `expect` behind a mark of a comment is a
/// test: in a text between quotation marks, or with a misspelled verdict, it fails rather than being passed
/// over.
fn test_of(line: &str) -> Option<&str> {
    match comment(line) {
        Some(comment) => behind_expect(comment),
        None => test_behind_mark(line),
    }
}

/// What words say behind `expect`, which they begin with; nothing, if they end there.
pub fn behind_expect(words: &str) -> Option<&str> {
    let test = words.strip_prefix(EXPECT)?;
    let is_whole = !test.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    is_whole.then(|| test.trim())
}

/// The same of a line of a program, where only `//` begins a comment: behind `;`, `expect` is a step of a
/// test of the program.
pub fn test_of_program(line: &str) -> Option<&str> {
    let (code, comment) = line.split_at(line.find("//")?);
    if code.trim().is_empty() { test_of(comment) } else { test_behind_mark(comment) }
}

fn test_behind_mark(line: &str) -> Option<&str> {
    let is_behind_mark = |before: &str| {
        let marks = &before[before.trim_end_matches(is_mark).len()..];
        ["#", "!", ";", "//"].into_iter().any(|mark| marks.contains(mark))
    };
    let mut places = line.match_indices(EXPECT).map(|(at, _)| line.split_at(at));
    places.find_map(|(before, words)| is_behind_mark(before).then(|| behind_expect(words)).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_stand_on_lines_of_their_own_or_behind_rules() {
        let text = "# expect a\npass all # expect b\npass // expect c\n! d\npass # words\npass all#expect d\n\
                    -m comment --comment \"it is #1\" # expect e\npass expect pass udp\n# we expect f\n";
        let found: Vec<(u32, &str)> = tests_in(text).collect();
        assert_eq!(found, [(1, "a"), (2, "b"), (3, "c"), (6, "d"), (7, "e")]);
    }

    #[test]
    fn what_reads_as_a_test_behind_a_mark_is_not_passed_over() {
        for (line, test) in [
            ("pass all#expect block udp", "block udp"),
            ("pass all#expect blcok udp", "blcok udp"),
            ("pass all ## expect block udp", "block udp"),
            ("pass label \"# expect pass udp\"", "pass udp\""),
            ("pass label \" # expect no # expect reject udp", "no # expect reject udp"),
            ("pass all # what to expect # expect pass udp", "pass udp"),
            ("permit ip any any ! expect pass udp", "pass udp"),
            ("permit ip any any ! expect pas udp", "pas udp"),
            ("pass;expect pass udp", "pass udp"),
            ("pass // # expect blcok udp", "blcok udp"),
            ("# expect\tpass udp", "pass udp"),
            ("pass all #expect", ""),
            ("! expect: pass udp", ": pass udp"),
            ("pass all # expected # expect pass udp", "pass udp"),
        ] {
            assert_eq!(test_of(line), Some(test), "{line}");
        }
    }

    #[test]
    fn in_a_program_steps_of_its_tests_are_none_of_its_policies() {
        for (line, test) in [
            ("packet 1 { hex \"00\" }; expect flood", None),
            ("; expect flood", None),
            ("packet 1 { }; expect flood // expect pass udp", Some("pass udp")),
            ("pass // words // expect pas udp", Some("pas udp")),
            ("pass // words; expect pass udp", Some("pass udp")),
            ("  // expect pass udp\n", Some("pass udp")),
            ("// pass // expect pass udp", None),
        ] {
            assert_eq!(test_of_program(line), test, "{line}");
        }
    }
}
