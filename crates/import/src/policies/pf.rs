//! Configurations of pf, the packet filter of OpenBSD and FreeBSD (pf.conf(5)): the rules that filter.
//!
//! A packet meets the rules when it comes in, and again when it goes out. The last rule that matches decides,
//! or the first one that says `quick`; without one the packet passes. The rules of an anchor in braces stand
//! where the anchor stands. A rule that lets pass keeps the connection unless it says `no state`: then its
//! packets pass, in the direction in which the rule saw the first one, and its answers in the other.
//!
//! ```text
//! In  ─► last match: rules, [what the anchor asks] jump "ANCHOR in", rules
//! Out ─► the same for the way out
//! ```
//!
//! OpenBSD's pf puts fragments together before it compares them. Here a later fragment is a packet without
//! ports, types and flags, which matches no rule that asks for these.

mod groups;
mod hosts;
mod icmp;
mod lists;
mod rule;

use super::endpoints::{Answers, GIVE_TABLE, Ranges};
use super::imported::{ImportedPolicy, PolicyOptions};
use super::limits::{DEEPEST_ANCHORS, MOST_WORDS};
use super::words::{FilterWord, Kind, Statement, words};
use crate::ImportError;
use crate::text::{lines, refuse_cut, shown, utf8};
use groups::{Block, Item};
use hosts::Table;
use lists::each;
use policy::{MOST_RULES, Reject, Remembers, RulePlace};
use rule::unknown;
use std::collections::BTreeMap;

/// Settings of pf's engine that decide about no packet.
const SETTINGS: [&str; 9] = [
    "limit",
    "timeout",
    "optimization",
    "ruleset-optimization",
    "loginterface",
    "debug",
    "hostid",
    "require-order",
    "fingerprints",
];

/// What is read so far.
#[derive(Debug)]
struct Reader<'a> {
    text: &'a str,
    bound: &'a [(String, u16)],
    contents: &'a [(String, String)],
    /// What macros stand for; `None` for one whose line is refused.
    macros: BTreeMap<&'a str, Option<Vec<FilterWord<'a>>>>,
    /// How many words macros have stood for.
    words: usize,
    /// What each table holds, or why that is not known.
    tables: BTreeMap<&'a str, Result<Table, String>>,
    ranges: Ranges,
    block_policy: Answers,
    remembers: Remembers,
    keeps: bool,
    /// Ports at which nothing is compared, and where that is said.
    skipped: Vec<(u16, RulePlace)>,
    rules: usize,
    kept: usize,
    refused: Vec<ImportError>,
}

/// Reads a configuration.
///
/// # Errors
/// A text that does not end in its line, a list or an anchor that does not end, a last line without an end.
pub(super) fn read(text: &[u8], options: &PolicyOptions) -> Result<ImportedPolicy, ImportError> {
    refuse_cut(text)?;
    let text = utf8(text)?;
    let words = words(text, 0)?;
    let mut reader = Reader {
        text,
        bound: &options.interfaces,
        contents: &options.tables,
        macros: BTreeMap::new(),
        words: 0,
        tables: BTreeMap::new(),
        ranges: Ranges::default(),
        block_policy: Answers::default(),
        remembers: Remembers::KeptByDirection,
        keeps: false,
        skipped: Vec::new(),
        rules: 0,
        kept: 0,
        refused: Vec::new(),
    };
    let mut rest = &words[..];
    let mut block = Block::default();
    while !rest.is_empty() {
        rest = reader.block(rest, &mut block, 0)?;
        if let Some(close) = rest.first() {
            reader.refused.push(close.error("this `}` closes nothing", "remove it"));
            rest = &rest[1..];
        }
    }
    Ok(reader.policy(&block))
}

/// The words before the end of a line that stands in no list, and whether the last of them opens an anchor.
fn statement<'t, 'a>(words: &'t [FilterWord<'a>]) -> Result<(&'t [FilterWord<'a>], bool), ImportError> {
    let is_anchor = words[0].is("anchor");
    let (mut open, mut depth) = (words[0], 0usize);
    for (at, word) in words.iter().enumerate() {
        if word.is_mark("{") {
            if is_anchor && words.get(at + 1).is_some_and(|next| next.kind == Kind::End) {
                return Ok((&words[..=at], true));
            }
            if depth == 0 {
                open = *word;
            }
            depth += 1;
        } else if (word.is_mark("}") || word.kind == Kind::End) && depth == 0 {
            return Ok((&words[..at], false));
        } else if word.is_mark("}") {
            depth -= 1;
        }
    }
    Err(open.error("this list does not end", "close it with `}`"))
}

impl<'a> Reader<'a> {
    /// The lines before a `}` that closes nothing in them, or before the end. Gives the words from there on.
    fn block<'t>(
        &mut self,
        words: &'t [FilterWord<'a>],
        block: &mut Block,
        depth: usize,
    ) -> Result<&'t [FilterWord<'a>], ImportError> {
        let mut rest = words;
        while let Some(first) = rest.first() {
            if first.kind == Kind::End {
                rest = &rest[1..];
                continue;
            }
            if first.is_mark("}") {
                return Ok(rest);
            }
            let (line, opens) = statement(rest)?;
            if !opens {
                if let Err(error) = self.line(line, rest[line.len()], block) {
                    self.refused.push(error);
                }
                rest = &rest[line.len()..];
                continue;
            }
            if depth == DEEPEST_ANCHORS {
                let what = format!("anchors stand in more than {DEEPEST_ANCHORS} anchors");
                return Err(first.error(what, "write some of their rules where the anchor stands"));
            }
            let header = &line[..line.len() - 1];
            let (read, mut inner) = (self.rule(header, line[line.len() - 1]), Block::default());
            rest = self.block(&rest[line.len()..], &mut inner, depth + 1)?;
            if rest.is_empty() {
                return Err(first.error("this anchor does not end", "close it with `}`"));
            }
            rest = &rest[1..];
            match read {
                Ok((place, text, rule)) => block.items.push(Item { place, text, rule, inner: Some(inner) }),
                Err(error) => self.refused.push(error),
            }
        }
        Ok(rest)
    }

    /// The words with what macros stand for.
    fn expanded(&mut self, words: &[FilterWord<'a>]) -> Result<Vec<FilterWord<'a>>, ImportError> {
        let mut expanded = Vec::with_capacity(words.len());
        for word in words {
            let Some(name) = word.variable() else {
                if word.kind != Kind::End {
                    expanded.push(*word);
                }
                continue;
            };
            let value = self.macros.get(name).ok_or_else(|| {
                word.error(
                    format!("the macro `${}` has no value yet", shown(name)),
                    "give it one above this line",
                )
            })?;
            let value = value.as_ref().ok_or_else(|| {
                word.error(format!("the line of the macro `${}` is refused", shown(name)), "mend that line")
            })?;
            self.words += value.len();
            if self.words > MOST_WORDS {
                let what = format!("macros stand for more than {MOST_WORDS} words up to here");
                return Err(word.error(what, "name long lists less often, or use a table"));
            }
            expanded.extend(value.iter().map(|part| part.at(word)));
        }
        Ok(expanded)
    }

    /// A line that opens no anchor.
    fn line(
        &mut self,
        line: &[FilterWord<'a>],
        end: FilterWord<'a>,
        block: &mut Block,
    ) -> Result<(), ImportError> {
        let first = line[0];
        if line.get(1).is_some_and(|word| word.is_mark("=")) {
            return self.define_macro(&first, &line[2..]);
        }
        let (what, advice) = match first.text {
            "pass" | "block" | "match" => {
                let (place, text, rule) = self.rule(line, end)?;
                self.kept += 1;
                block.items.push(Item { place, text, rule, inner: None });
                return Ok(());
            }
            "set" => {
                let line = self.expanded(&line[1..])?;
                return self.set(&mut Statement::new(&line, end));
            }
            "table" => {
                let line = self.expanded(&line[1..])?;
                return self.define_table(&mut Statement::new(&line, end));
            }
            "anchor" if line.iter().any(|word| word.is_mark("{")) => (
                "the rules of this anchor begin in its line",
                "write the first one in the next line, behind the `{`",
            ),
            "anchor" => (
                "the rules of this anchor stand outside of the file",
                "write them in braces: `anchor \"name\" {` and the rules in the next lines",
            ),
            "nat" | "rdr" | "binat" | "no" | "nat-anchor" | "rdr-anchor" | "binat-anchor" => (
                "this translates addresses; not yet: the edge router does NAT",
                "translate in the program of the gateway, and remove the line",
            ),
            "scrub" => ("`scrub` changes packets", "remove the line"),
            "altq" | "queue" => ("this is about queues", "remove the line"),
            "antispoof" => (
                "`antispoof` asks for the addresses of interfaces, which are not known here",
                "write the rules: block what comes in at other interfaces from the network of this one",
            ),
            "load" | "include" => ("this reads another file", "write what stands there"),
            _ => {
                let what = format!("{} begins no line of pf", first.shown());
                return Err(
                    first.error(what, "lines begin with pass, block, match, anchor, table, set or a macro")
                );
            }
        };
        Err(first.error(what, advice))
    }

    fn rule(
        &mut self,
        line: &[FilterWord<'a>],
        end: FilterWord<'a>,
    ) -> Result<(RulePlace, std::sync::Arc<str>, rule::FilterRule), ImportError> {
        let (first, last) = (line[0], line[line.len() - 1]);
        self.rules += 1;
        if self.rules > MOST_RULES {
            let what = format!("there are more than {MOST_RULES} rules");
            return Err(first.error(what, "put addresses into tables"));
        }
        let text = self.text[first.span.0..last.span.1].into();
        let line = self.expanded(line)?;
        let rule = rule::read(&mut Statement::new(&line, end), self)?;
        Ok((RulePlace { line: first.line, column: first.column }, text, rule))
    }

    /// `name = value`: texts in quotation marks are read where the macro is used.
    fn define_macro(&mut self, name: &FilterWord<'a>, value: &[FilterWord<'a>]) -> Result<(), ImportError> {
        self.macros.insert(name.text, None);
        let mut read = Vec::new();
        for word in self.expanded(value)? {
            if word.kind != Kind::Quoted {
                read.push(word);
                continue;
            }
            let inner = words(word.text, 0).map_err(|error| word.error(error.what, error.advice))?;
            if inner.iter().any(|part| part.variable().is_some()) {
                let what = "a macro stands in quotation marks, where pf does not replace it";
                return Err(word.error(what, "close the quotation marks before it: \"{\" $a $b \"}\""));
            }
            read.extend(inner.into_iter().filter(|part| part.kind != Kind::End));
        }
        self.macros.insert(name.text, Some(read));
        Ok(())
    }

    fn set(&mut self, statement: &mut Statement<'_, 'a>) -> Result<(), ImportError> {
        let word = statement.next();
        let value = statement.peek();
        match word.text {
            "skip" => {
                if !statement.takes("on") {
                    return Err(value.error("`on` is due here", "write `set skip on IF`"));
                }
                let (bound, skipped) = (self.bound, &mut self.skipped);
                each(statement, |statement| {
                    let name = statement.name("interface")?;
                    let place = RulePlace { line: name.line, column: name.column };
                    let port = rule::port_of(&name, bound)?;
                    if skipped.iter().all(|(known, _)| *known != port) {
                        skipped.push((port, place));
                    }
                    Ok(())
                })?;
            }
            "block-policy" => {
                self.block_policy = match statement.next().text {
                    "drop" => Answers::default(),
                    "return" => Answers::same(Reject::ByProtocol),
                    _ => {
                        return Err(
                            value.error(format!("{} is no policy", value.shown()), "write drop or return")
                        );
                    }
                };
            }
            "state-policy" => {
                self.remembers = match statement.next().text {
                    "floating" => Remembers::KeptByDirection,
                    "if-bound" => Remembers::KeptAtPort,
                    _ => {
                        let what = format!("{} is no policy of states", value.shown());
                        return Err(value.error(what, "write floating or if-bound"));
                    }
                };
            }
            "reassemble" if value.is("yes") => {
                statement.next();
            }
            setting if SETTINGS.contains(&setting) => return Ok(()),
            _ => {
                let what = format!("`set {}` is not done here", shown(word.text));
                return Err(word.error(what, "remove the line, if it does not matter which packets pass"));
            }
        }
        statement.finish("nothing stands behind the value")
    }

    /// `table <name> [persist] [const] [counters] [{ … }] [file "F"]`.
    fn define_table(&mut self, statement: &mut Statement<'_, 'a>) -> Result<(), ImportError> {
        const ADVICE: &str = "a table is `table <name> [persist] [const] { addresses }`";
        let name = statement.next();
        if name.kind != Kind::Table {
            return Err(name.error(format!("{} is no name of a table", name.shown()), ADVICE));
        }
        if self.tables.insert(name.text, Err("its line is refused".to_owned())).is_some() {
            return Err(name.error(format!("the table {} is there twice", name.shown()), "remove one"));
        }
        let (mut table, mut has_list, mut has_file) = (Table::default(), false, false);
        while !statement.is_done() {
            let word = statement.peek();
            if word.is_mark("{") {
                has_list = true;
                each(statement, |statement| {
                    let not = statement.takes_mark("!");
                    table.add(&statement.name("address")?, not)
                })?;
            } else if statement.takes("file") {
                has_file = true;
                statement.name("file")?;
            } else if !["persist", "const", "counters"].iter().any(|word| statement.takes(word)) {
                return Err(unknown(&word));
            }
        }
        let given = self.contents.iter().find(|(own, _)| own == name.text);
        let addresses = match given {
            Some((_, text)) => table.append(&name, text),
            None if has_list && !has_file => Ok(()),
            None => Err(format!("what is in the table `{}` is not known", shown(name.text))),
        };
        self.tables.insert(name.text, addresses.map(|()| table));
        Ok(())
    }

    /// What a table holds.
    fn table(&self, word: &FilterWord<'a>) -> Result<&Table, ImportError> {
        let table = self.tables.get(word.text).ok_or_else(|| {
            word.error(format!("there is no table {}", word.shown()), "declare it above this line")
        })?;
        table.as_ref().map_err(|what| word.error(what.as_str(), GIVE_TABLE))
    }
}

impl Table {
    /// Adds the addresses of a text, one or a prefix a line.
    fn append(&mut self, name: &FilterWord<'_>, text: &str) -> Result<(), String> {
        for line in lines(text.as_bytes()).map_err(|error| error.to_string())? {
            if line.is_blank() {
                continue;
            }
            let entry = line.text.trim();
            let not = entry.starts_with('!');
            let word = FilterWord { text: entry.trim_start_matches('!').trim(), ..*name };
            self.add(&word, not)
                .map_err(|error| format!("line {} of the table: {}", line.number, error.what))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
