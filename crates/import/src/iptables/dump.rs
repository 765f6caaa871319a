//! The lines of a dump: its tables, their chains with their policies, and the words of each rule.

use super::sets::{AddressSets, is_about_sets};
use super::words::{self, Argument};
use crate::ImportError;
use crate::address::AddressFamily;
use crate::text::{Line, lines, shown};
use std::collections::HashMap;

/// Refuses a dump whose first comment says that it is of the other family: not every line of it would show
/// that.
pub(crate) fn refuse_other_family(text: &[u8], family: AddressFamily) -> Result<(), ImportError> {
    for line in lines(text)?.filter(|line| line.is_blank()) {
        let mut words = line.words();
        if !words.by_ref().take(3).map(|word| word.text).eq(["#", "Generated", "by"]) {
            continue;
        }
        let Some(program) = words.next() else { continue };
        let name = program.text.rsplit('/').next().unwrap_or_default();
        let written = match name {
            _ if name.starts_with("ip6tables") => AddressFamily::V6,
            _ if name.starts_with("iptables") => AddressFamily::V4,
            _ => continue,
        };
        if written != family {
            let what =
                format!("the dump is of {}, and rules for {} are wanted", written.name(), family.name());
            return Err(
                program.error(what, "name the dump of the other family, or ask for the other packets")
            );
        }
    }
    Ok(())
}

/// A table of a dump.
pub(crate) struct Table<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: u32,
    /// Each chain with its policy.
    pub(crate) chains: Vec<(&'a str, Option<bool>)>,
    /// The line of each chain's policy, where it has one.
    pub(crate) policies: Vec<Option<u32>>,
    numbers: HashMap<&'a str, usize>,
    /// The lines that start with `-A`, without their counters.
    pub(crate) rules: Vec<Line<'a>>,
    whole: bool,
}

impl Table<'_> {
    /// The number of a chain.
    pub(crate) fn number(&self, chain: &str) -> Option<usize> {
        self.numbers.get(chain).copied()
    }
}

/// The tables of a dump, each with its `COMMIT`. Lines about sets may stand before them, if `sets` takes
/// them.
pub(crate) fn tables<'a>(
    text: &'a [u8],
    mut sets: Option<&mut AddressSets>,
) -> Result<Vec<Table<'a>>, ImportError> {
    const SHAPE: &str = "a dump has `*table`, `:CHAIN POLICY`, `-A CHAIN …` and `COMMIT` lines";
    let mut tables: Vec<Table<'a>> = Vec::new();
    let mut last = 1;
    for line in lines(text)? {
        last = line.number;
        if line.is_blank() {
            continue;
        }
        let Some(first) = line.words().next() else { continue };
        if let (true, true, Some(sets)) = (tables.is_empty(), is_about_sets(line), sets.as_mut()) {
            sets.line(line)?;
            continue;
        }
        let open = tables.last_mut().filter(|table| !table.whole);
        match (first.text.as_bytes()[0], open) {
            (b'*', Some(table)) => {
                let what = format!("the table `{}` has no `COMMIT`", shown(table.name));
                return Err(first.error(what, "end it before the next one"));
            }
            (b'*', None) => {
                let name = &first.text[1..];
                if let Some(before) = tables.iter().find(|table| table.name == name) {
                    let what = format!("the table `{}` starts on line {} already", shown(name), before.line);
                    return Err(first.error(what, "put both into one"));
                }
                nothing_more(line, 1, SHAPE)?;
                let (numbers, line) = (HashMap::new(), line.number);
                tables.push(Table {
                    name,
                    line,
                    chains: Vec::new(),
                    policies: Vec::new(),
                    numbers,
                    rules: Vec::new(),
                    whole: false,
                });
            }
            (_, None) => {
                return Err(first.error(format!("`{}` stands in no table", shown(first.text)), SHAPE));
            }
            (b':', Some(table)) => chain(line, table)?,
            (b'-' | b'[', Some(table)) => table.rules.push(line),
            (_, Some(table)) if first.text == "COMMIT" => {
                nothing_more(line, 1, SHAPE)?;
                table.whole = true;
            }
            (_, Some(_)) => {
                return Err(first.error(format!("`{}` starts no line of a dump", shown(first.text)), SHAPE));
            }
        }
    }
    match tables.last().filter(|table| !table.whole) {
        Some(table) => Err(ImportError::new(
            last,
            1,
            format!("the table `{}` has no `COMMIT`: the dump may be cut off here", shown(table.name)),
            "end the table with `COMMIT` if it is whole",
        )),
        None => Ok(tables),
    }
}

fn chain<'a>(line: Line<'a>, table: &mut Table<'a>) -> Result<(), ImportError> {
    const SHAPE: &str = "a chain is written `:NAME POLICY [packets:bytes]`";
    let mut words = line.words();
    let Some(name) = words.next().map(|word| word.from(1)) else { return Ok(()) };
    let policy = match words.next().map(|word| (word, word.text)) {
        Some((_, "ACCEPT")) => Some(true),
        Some((_, "DROP")) => Some(false),
        Some((_, "-")) => None,
        Some((word, text)) => {
            return Err(
                word.error(format!("`{}` is no policy", shown(text)), "a policy is ACCEPT, DROP or -")
            );
        }
        None => return Err(line.error_at_end("the policy is missing", SHAPE)),
    };
    if let Some(counters) = words.next()
        && !is_counters(counters.text)
    {
        return Err(counters.error(format!("`{}` are no counters", shown(counters.text)), SHAPE));
    }
    nothing_more(line, 3, SHAPE)?;
    table.policies.push(policy.map(|_| line.number));
    if table.numbers.insert(name.text, table.chains.len()).is_some() {
        return Err(name.error(format!("the chain `{}` is there twice", shown(name.text)), "remove one"));
    }
    table.chains.push((name.text, policy));
    Ok(())
}

/// Refuses words behind those that a line has.
fn nothing_more(line: Line<'_>, words: usize, advice: &str) -> Result<(), ImportError> {
    match line.words().nth(words) {
        Some(word) => Err(word.too_many(advice)),
        None => Ok(()),
    }
}

/// Whether a word is written `[packets:bytes]`.
pub(super) fn is_counters(word: &str) -> bool {
    let counts = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')?.split_once(':'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    counts.is_some_and(|(packets, bytes)| is_number(packets) && is_number(bytes))
}

/// A rule as its words.
pub(crate) struct RuleLine<'a> {
    /// The `-A`.
    pub(crate) append: Argument<'a>,
    /// The number of its chain.
    pub(crate) chain: usize,
    /// The words behind the chain's name.
    pub(crate) words: Vec<Argument<'a>>,
}

/// The words of a rule of a table.
pub(crate) fn rule_line<'a>(line: Line<'a>, table: &Table<'_>) -> Result<RuleLine<'a>, ImportError> {
    const SHAPE: &str = "a rule is written `-A CHAIN match… -j TARGET`";
    let mut words = words::words(line)?;
    if words.first().is_some_and(|word| is_counters(&word.text)) {
        words.remove(0);
    }
    let mut words = words.into_iter();
    let Some(append) = words.next() else { return Err(line.error_at_end("`-A` is missing", SHAPE)) };
    if append.text != "-A" {
        return Err(append.error(format!("`{}` is not `-A`", shown(&append.text)), SHAPE));
    }
    let Some(name) = words.next() else { return Err(line.error_at_end("the chain is missing", SHAPE)) };
    let Some(chain) = table.number(&name.text) else {
        let what = format!("there is no chain `{}`", shown(&name.text));
        return Err(name.error(what, "declare it with a line `:NAME - [0:0]`"));
    };
    Ok(RuleLine { append, chain, words: words.collect() })
}
