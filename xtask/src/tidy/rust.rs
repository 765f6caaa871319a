//! Rust source reduced to what the rules look at: code without comments and literals, lines without inline
//! tests.

/// The same text with the contents of comments, strings and character literals blanked. Line breaks stay, so
/// line numbers do too.
pub(crate) fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        if end == at {
            at += 1;
            continue;
        }
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Positions at which `word` stands alone in `text`: no letter, digit or underscore beside it.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let inside = |byte: Option<u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = at.checked_sub(1).map(|i| text.as_bytes()[i]);
        let after = text.as_bytes().get(at + word.len()).copied();
        !inside(before) && !inside(after)
    })
}

/// The line, from 1, in which a byte stands.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// True if `code` (from [`code_only`]) defines a function of this name.
pub(super) fn defines_function(code: &str, name: &str) -> bool {
    words(code, name).any(|at| {
        let before = code[..at].trim_end();
        before.ends_with("fn") && before.len() < at && words(before, "fn").last() == Some(before.len() - 2)
    })
}

/// The text up to an inline test module (`#[cfg(test)]` before `mod … {`).
pub(crate) fn without_tests(text: &str) -> &str {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let next = text[at + line.len()..].lines().next().unwrap_or("");
        if line.trim_end() == "#[cfg(test)]" && next.contains("mod ") && next.trim_end().ends_with('{') {
            return &text[..at];
        }
        at += line.len();
    }
    text
}

/// True for files that hold nothing but tests or measurements.
pub(crate) fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.contains("/benches/")
}

/// Where the comment or literal that begins at `at` ends; `at` if none begins there.
fn literal_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return rest.iter().position(|&b| b == b'\n').map_or(bytes.len(), |n| at + n);
    }
    if rest.starts_with(b"/*") {
        return block_comment_end(bytes, at);
    }
    match rest[0] {
        b'"' => string_end(bytes, at),
        b'r' if at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() && bytes[at - 1] != b'b') => {
            raw_string_end(bytes, at)
        }
        b'\'' => character_end(rest).map_or(at, |n| at + n),
        _ => at,
    }
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_string_end(bytes: &[u8], start: usize) -> usize {
    let hashes = bytes[start + 1..].iter().take_while(|&&b| b == b'#').count();
    if bytes.get(start + 1 + hashes) != Some(&b'"') {
        return start;
    }
    let closing: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let body = start + 2 + hashes;
    bytes[body..]
        .windows(closing.len())
        .position(|w| w == closing)
        .map_or(bytes.len(), |n| body + n + closing.len())
}

/// The length of a character literal; none for a lifetime, which looks alike at its start.
fn character_end(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return rest.get(3..)?.iter().take(12).position(|&b| b == b'\'').map(|n| n + 4);
    }
    let length = match rest.get(1)? {
        first if *first < 0x80 => 1,
        first if *first < 0xe0 => 2,
        first if *first < 0xf0 => 3,
        _ => 4,
    };
    (rest.get(1 + length) == Some(&b'\'')).then_some(length + 2)
}
