//! Configurations of NPF, the packet filter of NetBSD (npf.conf(5), and NPF's own sources for what it means).
//!
//! A packet meets the groups when it comes in, and again when it goes out. Of the groups that its interface
//! and direction fit, in the order of the file with `group default` at the end, the first one decides in
//! which a rule matches: there the last rule that does, or the first that says `final`. A packet that no rule
//! matches is blocked.
//!
//! A group becomes one group of the policy for the way in and one for the way out:
//!
//! ```text
//! In  ─► first match: [in_port = IF] jump "NAME in", …, jump "default in"    each of them: last match
//! Out ─► first match: [out_port = IF] jump "NAME out", …, jump "default out"
//! ```
//!
//! NPF puts fragments together before it compares them. Here a later fragment is a packet without ports,
//! types and flags, which matches no rule that asks for these.

mod groups;
mod rule;
mod variables;
mod write;

use super::endpoints::{Addresses, GIVE_TABLE, Ranges, table_text};
use super::imported::{ImportedPolicy, PolicyOptions};
use super::words::{FilterWord, Kind, Statement, words};
use crate::ImportError;
use crate::text::{shown, utf8};
use groups::{FilterGroup, GroupInterface};
use policy::{MOST_RULES, Remembers, RulePlace};
use rule::Direction;
use std::collections::BTreeMap;
use variables::Variables;

pub use write::write_npf;

/// The words that statements begin with outside of groups.
const STATEMENTS: [&str; 7] = ["group", "table", "procedure", "map", "alg", "set", "ruleset"];

/// What is read so far.
#[derive(Debug)]
struct Reader<'a> {
    text: &'a str,
    bound: &'a [(String, u16)],
    contents: &'a [(String, String)],
    variables: Variables<'a>,
    /// The addresses of each table, or why they are not known.
    tables: BTreeMap<&'a str, Result<Addresses, String>>,
    /// Whether a procedure logs; `None` for one that is refused.
    procedures: BTreeMap<&'a str, Option<bool>>,
    ranges: Ranges,
    remembers: Remembers,
    follows_icmp: bool,
    groups: Vec<FilterGroup<'a>>,
    rules: usize,
    refused: Vec<ImportError>,
}

/// Reads a configuration.
///
/// # Errors
/// A text that does not end in its line, a group or a procedure that does not end.
pub(super) fn read(text: &[u8], options: &PolicyOptions) -> Result<ImportedPolicy, ImportError> {
    let text = utf8(text)?;
    let title = if options.skip_first_line { title(text) } else { None };
    let words = words(text, title.map_or(0, |title| (title.len() + 1).min(text.len())))?;
    let mut reader = Reader {
        text,
        bound: &options.interfaces,
        contents: &options.tables,
        variables: Variables::default(),
        tables: BTreeMap::new(),
        procedures: BTreeMap::new(),
        ranges: Ranges::default(),
        remembers: Remembers::Nothing,
        follows_icmp: false,
        groups: Vec::new(),
        rules: 0,
        refused: Vec::new(),
    };
    let mut rest = &words[..];
    while let Some(word) = rest.first() {
        rest = if word.is("group") || word.is("procedure") {
            reader.block(rest)?
        } else {
            let (statement, behind) = statement(rest);
            if let Err(error) = reader.line(statement, behind[0]) {
                reader.refused.push(error);
            }
            &behind[1..]
        };
    }
    if !reader.groups.iter().any(|group| group.is_default) {
        let end = words[words.len() - 1];
        reader.refused.push(end.error(
            "there is no `group default`, which NPF wants",
            "write what happens to all other packets: `group default { block all }`",
        ));
    }
    Ok(reader.policy(title))
}

/// The first line, if it is none of NPF.
fn title(text: &str) -> Option<&str> {
    let line = text.split('\n').next()?;
    let first = line.split_ascii_whitespace().next()?;
    let is_npf = STATEMENTS.contains(&first) || first.starts_with(['$', '#']);
    (!is_npf).then_some(line)
}

/// The words before the end of a line, a `;`, or a `}` that closes nothing before it; and the others.
fn statement<'t, 'a>(words: &'t [FilterWord<'a>]) -> (&'t [FilterWord<'a>], &'t [FilterWord<'a>]) {
    let mut depth = 0usize;
    let end = words.iter().position(|word| {
        if word.is_mark("{") {
            depth += 1;
        }
        let closes = word.is_mark("}");
        let ends = word.kind == Kind::End || word.is_mark(";") || closes && depth == 0;
        depth -= usize::from(closes && depth > 0);
        ends
    });
    // The last word of a file is the end of a line.
    words.split_at(end.unwrap_or(words.len() - 1))
}

impl<'a> Reader<'a> {
    /// A group or a procedure with what stands in its braces. Gives the words behind it.
    fn block<'t>(&mut self, words: &'t [FilterWord<'a>]) -> Result<&'t [FilterWord<'a>], ImportError> {
        let open = words.iter().position(|word| word.is_mark("{") || word.kind == Kind::End);
        let open = open.unwrap_or(words.len() - 1);
        let (keyword, end) = (words[0], words[open]);
        if end.kind == Kind::End {
            let what = format!("{} has no `{{` in its line", keyword.shown());
            self.refused.push(keyword.error(what, "open its braces in the same line"));
            return Ok(&words[open + 1..]);
        }
        let header = Statement::new(&words[1..open], end);
        let is_group = keyword.is("group");
        let mut logs = if is_group {
            let group = self.group(header, &keyword, end);
            self.groups.push(group);
            None
        } else {
            self.name_procedure(header)
        };
        let mut rest = &words[open + 1..];
        loop {
            let Some(first) = rest.first() else {
                let what = format!("this {} does not end: the file may be cut off", keyword.text);
                return Err(keyword.error(what, "close it with `}`"));
            };
            if first.is_mark("}") {
                break;
            }
            if first.is("group") || first.is("ruleset") {
                self.refused.push(first.error(
                    format!("a {} within a group is not read", first.text),
                    "write its rules into the group, or make it a group of its own",
                ));
                rest = behind_block(rest);
                continue;
            }
            let (statement, behind) = statement(rest);
            let read = match statement {
                [] => Ok(()),
                _ if is_group => self.rule(statement, behind[0]),
                _ => call(statement).map(|()| logs = logs.map(|_| true)),
            };
            if let Err(error) = read {
                logs = None;
                self.refused.push(error);
            }
            rest = if behind[0].is_mark("}") { behind } else { &behind[1..] };
        }
        if let (false, Some(name)) = (is_group, header_name(&words[1..open])) {
            self.procedures.insert(name, logs);
        }
        let next = rest[1];
        if next.kind != Kind::End && !next.is_mark(";") {
            let what = format!("{} stands behind the `}}`", next.shown());
            self.refused.push(next.error(what, "write it in the next line"));
        }
        Ok(&rest[1..])
    }

    /// A group by its first line.
    fn group(
        &mut self,
        mut header: Statement<'_, 'a>,
        keyword: &FilterWord<'a>,
        end: FilterWord<'a>,
    ) -> FilterGroup<'a> {
        let text = self.text[keyword.span.0..end.span.0].trim_end();
        let mut group = FilterGroup {
            name: "default",
            is_default: false,
            direction: Direction { comes_in: true, goes_out: true },
            interface: GroupInterface::Any,
            place: RulePlace { line: keyword.line, column: keyword.column },
            text: text.into(),
            rules: Vec::new(),
        };
        if let Err(error) = self.header(&mut header, &mut group) {
            group.interface = GroupInterface::Refused;
            self.refused.push(error);
        }
        group
    }

    fn header(
        &mut self,
        header: &mut Statement<'_, 'a>,
        group: &mut FilterGroup<'a>,
    ) -> Result<(), ImportError> {
        const ADVICE: &str = "a group is `group \"name\" [in|out] [on IF]`, or `group default`";
        let word = header.peek();
        if header.takes("default") {
            if self.groups.iter().any(|group| group.is_default) {
                return Err(word.error("there is a `group default` already", "put the rules into that one"));
            }
            group.is_default = true;
            return header.finish(ADVICE);
        }
        let name = header.next();
        if name.kind != Kind::Quoted {
            return Err(name.error(format!("{} is no name of a group", name.shown()), ADVICE));
        }
        group.name = name.text;
        let word = header.peek();
        if word.is("forw") {
            return Err(word.error("`forw` is a hook of its own, which is not read here", "write in or out"));
        }
        group.direction = Direction::read(header);
        if header.takes("on") {
            group.interface = GroupInterface::Port(rule::on_interface(header, self)?);
        }
        header.finish(ADVICE)
    }

    /// A rule of the last group.
    fn rule(&mut self, words: &[FilterWord<'a>], end: FilterWord<'a>) -> Result<(), ImportError> {
        let (first, last) = (words[0], words[words.len() - 1]);
        self.rules += 1;
        if self.rules > MOST_RULES {
            let what = format!("there are more than {MOST_RULES} rules");
            return Err(first.error(what, "put addresses into tables"));
        }
        if !first.is("pass") && !first.is("block") {
            let what = format!("{} begins no rule", first.shown());
            return Err(first.error(what, "a rule begins with pass or block"));
        }
        let rule = rule::read(&mut Statement::new(words, end), self)?;
        let place = RulePlace { line: first.line, column: first.column };
        let text = self.text[first.span.0..last.span.1].into();
        if let Some(group) = self.groups.last_mut() {
            group.rules.push((place, text, rule));
        }
        Ok(())
    }

    /// A line outside of groups and procedures.
    fn line(&mut self, words: &[FilterWord<'a>], end: FilterWord<'a>) -> Result<(), ImportError> {
        let Some(first) = words.first() else {
            if end.is_mark("}") {
                return Err(end.error("this `}` closes nothing", "remove it"));
            }
            return Ok(());
        };
        let mut statement = Statement::new(&words[1..], end);
        if first.variable().is_some() {
            return self.variables.define(first, &mut statement);
        }
        let (what, advice) = match first.text {
            "table" => return self.define_table(&mut statement),
            // Without it NPF knows no connections of ICMP, and no errors about others.
            "alg" if statement.peek().text == "icmp" && words.len() == 2 => {
                self.follows_icmp = true;
                return Ok(());
            }
            "alg" => (
                "`alg` follows what a protocol says in its payload, which is not done here",
                "remove the line",
            ),
            "map" => (
                "`map` translates addresses; not yet: the edge router does NAT",
                "translate in the program of the gateway, and remove the line",
            ),
            "set" => ("`set` is about NPF's own engine", "remove the line"),
            "ruleset" => ("`ruleset` is filled from outside while NPF runs", "write the rules into a group"),
            "pass" | "block" => ("a rule stands outside of a group", "put it into a group"),
            _ => {
                let what = format!("{} begins no statement of NPF", first.shown());
                let advice = if first.line == 1 {
                    "if the line is a title, ask that the first line is skipped"
                } else {
                    "statements are group, table, procedure, and variables with `$`"
                };
                return Err(first.error(what, advice));
            }
        };
        Err(first.error(what, advice))
    }

    /// `table <name> type T [file "F"|dynamic]`; its addresses come from outside.
    fn define_table(&mut self, statement: &mut Statement<'_, 'a>) -> Result<(), ImportError> {
        const ADVICE: &str = "a table is `table <name> type ipset|lpm|const [file \"F\"]`";
        let name = statement.next();
        if name.kind != Kind::Table {
            return Err(name.error(format!("{} is no name of a table", name.shown()), ADVICE));
        }
        if self.tables.insert(name.text, Err("its line is refused".to_owned())).is_some() {
            return Err(name.error(format!("the table {} is there twice", name.shown()), "remove one"));
        }
        let (keyword, kind) = (statement.next(), statement.next());
        let kinds = ["ipset", "lpm", "const", "hash", "tree", "cdb"];
        if !keyword.is("type") || !kinds.iter().any(|own| kind.is(own)) {
            return Err(kind.error(format!("{} is no type of a table", kind.shown()), ADVICE));
        }
        if statement.takes("file") {
            statement.name("file")?;
        } else {
            statement.takes("dynamic");
        }
        statement.finish(ADVICE)?;
        let given = self.contents.iter().find(|(own, _)| own == name.text);
        let unknown = || format!("what is in the table `{}` is not known", shown(name.text));
        let mut addresses = given.map_or_else(|| Err(unknown()), |(own, text)| table_text(own, text));
        let has_prefixes = addresses.as_ref().is_ok_and(|addresses| !addresses.are_single());
        if has_prefixes && !kind.is("lpm") && !kind.is("tree") {
            let (name, kind) = (shown(name.text), shown(kind.text));
            addresses = Err(format!("the table `{name}` has prefixes, which none of type {kind} has"));
        }
        self.tables.insert(name.text, addresses);
        Ok(())
    }

    /// The addresses of a table.
    fn table(&mut self, word: &FilterWord<'a>) -> Result<Addresses, ImportError> {
        let addresses = self.tables.get(word.text).ok_or_else(|| {
            word.error(format!("there is no table {}", word.shown()), "declare it above this line")
        })?;
        let addresses = addresses.as_ref().map_err(|what| word.error(what.as_str(), GIVE_TABLE))?;
        self.ranges.take(addresses.len(), word)?;
        Ok(addresses.clone())
    }

    /// The procedure behind `apply`: whether it logs.
    fn procedure(&mut self, statement: &mut Statement<'_, 'a>) -> Result<bool, ImportError> {
        let word = statement.next();
        match self.procedures.get(word.text).filter(|_| word.kind == Kind::Quoted) {
            Some(Some(logs)) => Ok(*logs),
            Some(None) => {
                Err(word.error(format!("the procedure {} is refused", word.shown()), "mend it above"))
            }
            None => Err(word.error(
                format!("there is no procedure {}", word.shown()),
                "declare it above this line: `procedure \"log\" { log: npflog0 }`",
            )),
        }
    }

    /// Whether a procedure may have this name: then that it does not log yet.
    fn name_procedure(&mut self, mut header: Statement<'_, 'a>) -> Option<bool> {
        let name = header.next();
        let twice = self.procedures.contains_key(name.text);
        if name.kind == Kind::Quoted && !twice && header.is_done() {
            return Some(false);
        }
        let what = if twice {
            format!("the procedure {} is there twice", name.shown())
        } else {
            format!("{} is no name of a procedure", name.shown())
        };
        self.refused.push(name.error(what, "a procedure is `procedure \"name\" { log: npflog0 }`"));
        None
    }

    /// A rule lets connections be remembered.
    fn remember(&mut self, remembers: Remembers, word: &FilterWord<'_>) -> Result<(), ImportError> {
        if self.remembers != Remembers::Nothing && self.remembers != remembers {
            return Err(word.error(
                "there are `stateful` and `stateful-all` in one file: some connections would be remembered at \
                 their interface and others everywhere",
                "write one of them in all rules",
            ));
        }
        self.remembers = remembers;
        Ok(())
    }
}

/// The words behind the braces of a block.
fn behind_block<'t, 'a>(words: &'t [FilterWord<'a>]) -> &'t [FilterWord<'a>] {
    let mut depth = 0usize;
    let end = words.iter().position(|word| {
        depth += usize::from(word.is_mark("{"));
        let closes = word.is_mark("}");
        depth = depth.saturating_sub(usize::from(closes));
        (closes || word.kind == Kind::End) && depth == 0
    });
    end.map_or(&[], |end| &words[end + 1..])
}

/// The name behind `procedure`.
fn header_name<'a>(words: &[FilterWord<'a>]) -> Option<&'a str> {
    words.first().map(|word| word.text)
}

/// A call in a procedure, which must be that of a log: `log: npflog0`.
fn call(words: &[FilterWord<'_>]) -> Result<(), ImportError> {
    let [first, rest @ ..] = words else { return Ok(()) };
    if !first.is("log:") {
        let what = format!("{} in a procedure does more than to log", first.shown());
        return Err(first.error(what, "remove it, or do it in the program of the gateway"));
    }
    let is_name =
        |word: &FilterWord<'_>| word.variable().is_none() && matches!(word.kind, Kind::Plain | Kind::Quoted);
    match rest {
        [] => Err(first.error("`log:` names no interface", "write `log: npflog0`")),
        [name, ..] if !is_name(name) => {
            Err(name.error(format!("{} is no name of an interface", name.shown()), "write `log: npflog0`"))
        }
        [_] => Ok(()),
        [_, next, ..] => Err(next.error(
            format!("{} stands behind the interface to which the procedure logs", next.shown()),
            "write `log: npflog0` alone in its line",
        )),
    }
}

#[cfg(test)]
mod tests;
