//! Comments of files with rules, in which tests of the rules stand.

/// What a line says that is a comment in some format of rules: behind `#`, `!`, `;` or `//`.
pub fn comment(line: &str) -> Option<&str> {
    let words = line.trim();
    let marks = |letter: char| letter.is_whitespace() || matches!(letter, '#' | '!' | '/' | ';');
    let is_comment = words.starts_with(['#', '!', ';']) || words.starts_with("//");
    is_comment.then(|| words.trim_start_matches(marks))
}

/// The comments of a text, each with its line, from 1.
pub fn comments(text: &str) -> impl Iterator<Item = (u32, &str)> {
    (1..).zip(text.lines()).filter_map(|(line, words)| Some((line, comment(words)?)))
}
