//! "Did you mean": the words of the grammar, and the one nearest to a misspelt word.

/// Words that begin a declaration.
pub(super) const ITEMS: [&str; 23] = [
    "import", "settable", "const", "enum", "layout", "table", "counter", "meter", "register", "pool",
    "group", "reason", "fn", "decoder", "stage", "start", "steer", "extern", "policy", "event", "every",
    "order", "test",
];

/// Words that begin a statement.
pub(super) const STATEMENTS: [&str; 31] = [
    "let",
    "var",
    "set",
    "if",
    "match",
    "for",
    "break",
    "extract",
    "learn",
    "insert",
    "remove",
    "give",
    "count",
    "after",
    "raise",
    "emit",
    "copy",
    "push",
    "pop",
    "encapsulate",
    "decapsulate",
    "truncate",
    "fragment",
    "goto",
    "send",
    "flood",
    "multicast",
    "drop",
    "punt",
    "recirculate",
    "steer",
];

/// Words that begin a property of a table.
pub(super) const PROPERTIES: [&str; 13] = [
    "capacity", "age", "idle", "evict", "choose", "answer", "counted", "releases", "expires", "secret",
    "from", "entries", "default",
];

/// Words that begin a property of a group.
pub(super) const GROUP_PROPERTIES: [&str; 4] = ["buckets", "capacity", "from", "members"];

/// Words that begin a part of a policy.
pub(super) const POLICY_PARTS: [&str; 10] =
    ["capacity", "counted", "from", "hook", "group", "pass", "keep", "block", "reject", "log"];

/// What a rule of a policy decides.
pub(super) const DECISIONS: [&str; 4] = ["pass", "keep", "block", "reject"];

/// Words that begin a rule of a policy.
pub(super) const RULE_WORDS: [&str; 9] =
    ["pass", "keep", "block", "reject", "jump", "return", "count", "log", "limit"];

/// Words of a meter.
pub(super) const RATES: [&str; 5] = ["committed", "burst", "excess", "peak", "peak_burst"];

/// Kinds of tables.
pub(super) const KINDS: [&str; 4] = ["exact", "lpm", "rules", "patterns"];

/// Words that begin a step of a test.
pub(super) const STEPS: [&str; 4] = ["ports", "packet", "after", "expect"];

/// Words behind `expect`.
pub(super) const OUTCOMES: [&str; 9] =
    ["send", "flood", "multicast", "drop", "punt", "out", "entries", "count", "event"];

/// Words of other languages, and ours for the same thing.
const SYNONYMS: [(&str, &str); 19] = [
    ("function", "fn"),
    ("func", "fn"),
    ("def", "fn"),
    ("header", "layout"),
    ("struct", "layout"),
    ("use", "import"),
    ("include", "import"),
    ("action", "stage"),
    ("control", "stage"),
    ("parser", "decoder"),
    ("switch", "match"),
    ("case", "match"),
    ("forward", "send"),
    ("output", "send"),
    ("discard", "drop"),
    ("broadcast", "flood"),
    ("delete", "remove"),
    ("clone", "copy"),
    ("resubmit", "recirculate"),
];

/// The word of `known` that was probably meant: a synonym, or one within an edit or two.
pub(super) fn nearest(word: &str, known: &[&'static str]) -> Option<&'static str> {
    if word.is_empty() || word.len() > 32 {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    if let Some((_, ours)) = SYNONYMS.iter().find(|(theirs, ours)| *theirs == lower && known.contains(ours)) {
        return Some(ours);
    }
    let allowed = if word.len() <= 4 { 1 } else { 2 };
    known
        .iter()
        .map(|candidate| (distance(lower.as_bytes(), candidate.as_bytes()), *candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The number of insertions, deletions, replacements and swaps of neighbours between two words (Damerau 1964,
/// restricted).
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=other.len()).collect();
    for i in 1..=one.len() {
        for j in 1..=other.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[one.len()][other.len()]
}
