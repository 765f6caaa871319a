//! Comments of files with rules, in which tests of the rules stand.

/// What a line says that is a comment in some format of rules: behind `#`, `!`, `;` or `//`.
pub fn comment(line: &str) -> Option<&str> {
    let words = line.trim();
    let marks = |letter: char| letter.is_whitespace() || matches!(letter, '#' | '!' | '/' | ';');
    let is_comment = words.starts_with(['#', '!', ';']) || words.starts_with("//");
    is_comment.then(|| words.trim_start_matches(marks))
}

/// The test of a line that has a rule before it: `expect …` behind ` #` or ` //` that stand in no text.
fn trailing_test(line: &str) -> Option<&str> {
    let mut starts = line.match_indices(['#', '/']).map(|(at, _)| line.split_at(at));
    starts.find_map(|(before, behind)| {
        let words = behind.strip_prefix("//").or(behind.strip_prefix('#'))?.trim();
        let is_comment = before.ends_with([' ', '\t']) && before.matches('"').count() % 2 == 0;
        (is_comment && words.starts_with("expect ")).then_some(words)
    })
}

/// The comments of a text, each with its line, from 1. Of those behind a rule only tests are among them.
pub fn comments(text: &str) -> impl Iterator<Item = (u32, &str)> {
    (1..)
        .zip(text.lines())
        .filter_map(|(line, words)| Some((line, comment(words).or_else(|| trailing_test(words))?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_stand_on_lines_of_their_own_or_behind_rules() {
        let text = "# expect a\npass all # expect b\npass // expect c\n! d\npass \" # expect no\"\npass # words\n\
                    pass all#expect no\n -m comment --comment \"it is #1\" # expect e\n";
        let found: Vec<(u32, &str)> = comments(text).collect();
        assert_eq!(found, [(1, "expect a"), (2, "expect b"), (3, "expect c"), (4, "d"), (8, "expect e")]);
    }
}
