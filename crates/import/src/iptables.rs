//! `iptables-save` and `ip6tables-save`: one chain of a table, with all that it jumps to, as rules in order.
//!
//! ```text
//! *filter                                   a table starts
//! :FORWARD DROP [0:0]                       a chain with its policy, `-` for one that others jump to
//! [12:640] -A FORWARD -s 10.0.0.0/8 -j x    a rule, with its counters or without
//! COMMIT                                    the table is whole
//! ```
//!
//! A stateless program can mean what depends on the packet alone. What asks for a connection, a rate, a
//! process or the payload is refused by its line.

mod hooks;
mod rule;
#[cfg(test)]
mod tests;

pub use crate::chains::ChainOptions;

use crate::ImportError;
use crate::address::AddressFamily;
use crate::chains::{Chain, Step, unroll};
use crate::ruleset::{ChainPolicy, ImportedRules};
use crate::text::{Line, lines, one_of, shown};
use rule::Context;
use std::collections::HashMap;

/// Reads one chain: `FORWARD`, if none is asked for.
///
/// # Errors
/// The first line of the dump that is none; a table without its `COMMIT`, as the dump may be cut; the first
/// line of the wanted chain, or of one that it leads to, that means more than a rule can say; jumps in a
/// circle or to nowhere; more rules than the limit.
pub fn read(text: &[u8], options: &ChainOptions) -> Result<ImportedRules, ImportError> {
    refuse_other_family(text, options.family)?;
    let tables = tables(text)?;
    let Some(table) = tables.iter().find(|table| table.name == options.table) else {
        return Err(ImportError::new(
            1,
            1,
            format!("there is no table `{}`", shown(&options.table)),
            one_of(tables.iter().map(|table| table.name)),
        ));
    };
    let wanted = options.chain.as_deref().unwrap_or("FORWARD");
    let Some(start) = table.number(wanted) else {
        return Err(ImportError::new(
            table.line,
            1,
            format!("the table `{}` has no chain `{}`", shown(table.name), shown(wanted)),
            one_of(table.chains.iter().map(|(chain, _)| *chain)),
        ));
    };
    let other = hooks::others_decide_nothing(&tables, table, wanted).err();
    if let (false, Some(other)) = (options.lenient, &other) {
        return Err(other.clone());
    }
    let mut context = Context::new(options);
    let mut chains = Vec::with_capacity(table.chains.len());
    for (name, policy) in &table.chains {
        chains.push(Chain { name: (*name).to_owned(), policy: *policy, steps: Vec::new() });
    }
    for line in &table.rules {
        let (chain, step) = step(*line, table, &mut context)?;
        chains[chain].steps.push(step);
    }
    let (decisions, refused) = unroll(&chains, start, options)?;
    let mut rules = ImportedRules::of(options.family, decisions, chains[start].policy);
    context.into_interfaces().tell(&mut rules);
    rules.refused = other.into_iter().chain(refused).collect();
    rules.policy = table.policies.get(start).copied().flatten().map(|line| ChainPolicy {
        line,
        words: format!(
            "the chain {} has the policy {}",
            shown(wanted),
            if rules.default == Some(true) { "ACCEPT" } else { "DROP" }
        ),
    });
    Ok(rules)
}

/// The chains with a policy: the table, then the chain, in the order of the dump.
///
/// # Errors
/// The first line of the dump that is none, and a table without its `COMMIT`.
pub fn chains(text: &[u8]) -> Result<Vec<(String, String)>, ImportError> {
    let mut all = Vec::new();
    for table in tables(text)? {
        let built_in = table.chains.iter().filter(|(_, policy)| policy.is_some());
        all.extend(built_in.map(|(chain, _)| (table.name.to_owned(), (*chain).to_owned())));
    }
    Ok(all)
}

/// Refuses a dump whose first comment says that it is of the other family: not every line of it would show
/// that.
fn refuse_other_family(text: &[u8], family: AddressFamily) -> Result<(), ImportError> {
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

struct Table<'a> {
    name: &'a str,
    line: u32,
    /// Each chain with its policy.
    chains: Vec<(&'a str, Option<bool>)>,
    /// The line of each chain's policy, where it has one.
    policies: Vec<Option<u32>>,
    numbers: HashMap<&'a str, usize>,
    /// The lines that start with `-A`, without their counters.
    rules: Vec<Line<'a>>,
    whole: bool,
}

impl Table<'_> {
    fn number(&self, chain: &str) -> Option<usize> {
        self.numbers.get(chain).copied()
    }
}

fn tables(text: &[u8]) -> Result<Vec<Table<'_>>, ImportError> {
    const SHAPE: &str = "a dump has `*table`, `:CHAIN POLICY`, `-A CHAIN …` and `COMMIT` lines";
    let mut tables: Vec<Table<'_>> = Vec::new();
    let mut last = 1;
    for line in lines(text)? {
        last = line.number;
        if line.is_blank() {
            continue;
        }
        let Some(first) = line.words().next() else { continue };
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
fn is_counters(word: &str) -> bool {
    let counts = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')?.split_once(':'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    counts.is_some_and(|(packets, bytes)| is_number(packets) && is_number(bytes))
}

/// The chain that a rule belongs to, and what it does there.
fn step(line: Line<'_>, table: &Table<'_>, context: &mut Context<'_>) -> Result<(usize, Step), ImportError> {
    const SHAPE: &str = "a rule is written `-A CHAIN match… -j TARGET`";
    let mut words = rule::words(line)?;
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
    let rule = context.rule(line, words.collect(), &|name| table.number(name));
    let column = append.column;
    Ok((chain, Step { line: line.number, column, text: line.text.trim().into(), log: false, rule }))
}
