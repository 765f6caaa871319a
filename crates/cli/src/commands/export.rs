//! `ravelin export`: writes the rules of a program, or of a file, in the formats of other programs.

use super::policy::source::Source;
use super::table::files::{import_failure, read};
use super::table::source::{self, recognise};
use crate::arguments::export::{ExportKind, NftArguments};
use crate::arguments::policy::PolicySource;
use crate::arguments::table::{RuleFormat, RuleSource};
use crate::failure::Failure;
use crate::program::ready;
use crate::render;
use import::address::AddressFamily;
use import::nft::{ExportLayout, PORTS_OF_PROGRAMS, write_json, write_text};
use import::{ImportError, ImportedRule, ImportedRules, RuleColumn, policies};
use ir::{ColumnKind, Match, TableKind};
use lang::pipeline::CompileOptions;
use policy::Policy;
use std::path::Path;
use tables::rules::{Rule, RuleField};

/// Runs the command.
pub(crate) fn run(kind: &ExportKind, json: bool) -> Result<(), Failure> {
    if json {
        let what = "what is written is for nft or NPF; for nft there is --as-json instead of --json";
        return Err(Failure::Usage(what.into()));
    }
    let lenient = match kind {
        ExportKind::Nft(arguments) => arguments.source.lenient,
        ExportKind::Ruleset(arguments) => arguments.source.lenient,
        ExportKind::Npf(arguments) => arguments.source.lenient,
    };
    if lenient {
        let what = "what is written without lines of the file lets other packets pass than the file does; leave --lenient out, and take the refused lines out of the file";
        return Err(Failure::Usage(what.into()));
    }
    match kind {
        ExportKind::Nft(arguments) => nft(arguments, json),
        ExportKind::Ruleset(arguments) => {
            let write = if arguments.as_json { policies::write_nft_json } else { policies::write_nft };
            whole(&arguments.file, &arguments.source, write)
        }
        ExportKind::Npf(arguments) => whole(&arguments.file, &arguments.source, policies::write_npf),
    }
}

/// Writes all that a file says.
fn whole(
    file: &str,
    source: &PolicySource,
    write: fn(&Policy) -> Result<String, ImportError>,
) -> Result<(), Failure> {
    let source = Source::load(file, source, 0)?;
    let text = write(&source.policy).map_err(|error| import_failure(file, &error))?;
    Ok(render::text(&text)?)
}

fn nft(arguments: &NftArguments, json: bool) -> Result<(), Failure> {
    let mut layout = ExportLayout::default();
    let mut rules = if arguments.file.ends_with(".rav") {
        let program = ready(Path::new(&arguments.file), &CompileOptions::default(), json)?;
        layout.with_ports = PORTS_OF_PROGRAMS;
        of_table(table(&program.program, arguments)?, arguments)?
    } else {
        let file = read(&arguments.file)?;
        let hook = hook(&file, &arguments.file, &arguments.source)?;
        (layout.chain, layout.hook) = (hook.to_owned(), hook.to_owned());
        source::load(&file, &arguments.file, &arguments.source)?
    };
    if let (Some(own), Some(asked)) = (rules.default, arguments.default)
        && own != asked
    {
        let own = if own { "may pass" } else { "may not pass" };
        return Err(Failure::Usage(format!(
            "{}: packets that no rule fits {own}, as the file says; leave --default out",
            arguments.file
        )));
    }
    rules.default = rules.default.or(arguments.default);
    for rule in &mut rules.rules {
        rule.allow = rule.allow.or(arguments.decision);
    }
    let write = if arguments.as_json { write_json } else { write_text };
    let text = write(&rules, &layout).map_err(|error| import_failure(&arguments.file, &error))?;
    Ok(render::text(&text)?)
}

/// Where the rules of a file are asked: a chain of a dump at its own place, other rules about packets that
/// are forwarded.
fn hook(text: &[u8], file: &str, source: &RuleSource) -> Result<&'static str, Failure> {
    let whole = |what: &str| {
        Failure::Usage(format!("{file}: {what}; `ravelin export ruleset` writes all that the file says"))
    };
    match (source.format.unwrap_or_else(|| recognise(text)), source.chain.as_deref()) {
        (RuleFormat::Nft, _) => Err(whole(
            "one chain of nftables is not written back by itself: it may be about both families, and about payload of later fragments",
        )),
        (RuleFormat::Iptables, _) if source.table != "filter" => {
            Err(whole("only chains of the table `filter` are written by themselves"))
        }
        (RuleFormat::Iptables, None | Some("FORWARD")) => Ok("forward"),
        (RuleFormat::Iptables, Some("INPUT")) => Ok("input"),
        (RuleFormat::Iptables, Some("OUTPUT")) => Ok("output"),
        (RuleFormat::Iptables, Some(_)) => {
            Err(whole("only the chains FORWARD, INPUT and OUTPUT are written by themselves"))
        }
        (RuleFormat::Classbench | RuleFormat::Ios, _) => Ok("forward"),
    }
}

/// The wanted table of rules, or the only one.
fn table<'a>(program: &'a ir::Program, arguments: &NftArguments) -> Result<&'a ir::Table, Failure> {
    let is_rules = |table: &&ir::Table| matches!(table.kind, TableKind::Rules { .. });
    let tables: Vec<&ir::Table> = program.tables.iter().filter(is_rules).collect();
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    let wanted = match (&arguments.rules, &tables[..]) {
        (Some(name), _) => tables.iter().copied().find(|table| table.name == *name),
        (None, [only]) => Some(*only),
        (None, _) => None,
    };
    let among = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let name = &arguments.file;
    wanted.ok_or_else(|| {
        Failure::Usage(format!("{name}: name one table with --rules; of the kind `rules` there are: {among}"))
    })
}

/// The entries of a table as rules; an entry's line is its place in the table, from 1.
fn of_table(table: &ir::Table, arguments: &NftArguments) -> Result<ImportedRules, Failure> {
    let refuse =
        |what: String| Failure::Finding(format!("{}: table `{}`: {what}", arguments.file, table.name));
    let is_wide = |column: &ir::Column| matches!(column.name.as_str(), "src" | "dst") && column.width == 128;
    let family = if table.keys.iter().any(is_wide) { AddressFamily::V6 } else { AddressFamily::V4 };
    let mut columns = Vec::new();
    for name in RuleColumn::names() {
        let key = table.keys.iter().position(|key| key.name == name);
        if key.is_some() || columns.len() < 5 {
            columns.extend(RuleColumn::named(name, family).map(|column| (column, key)));
        }
    }
    for (index, key) in table.keys.iter().enumerate() {
        if !columns.iter().any(|(column, own)| *own == Some(index) && column.width == key.width) {
            let names: Vec<&str> = RuleColumn::names().filter(|name| *name != "flags").collect();
            let (place, names) = (index + 1, names.join(", "));
            return Err(refuse(format!(
                "column {place}, `{}` of {} bits, is none that nftables has; name columns {names}, each with its own width",
                key.name, key.width
            )));
        }
    }
    let mut entries: Vec<(usize, &ir::Entry)> = table.entries.iter().enumerate().collect();
    entries.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.priority));
    let mut rules = Vec::new();
    for (index, entry) in entries {
        let field = |key: &Option<usize>| match key.map(|key| &entry.key[key]) {
            None | Some(Match::Any | Match::Bytes(_)) => RuleField::Any,
            Some(Match::Exact(value)) => RuleField::Exact(*value),
            Some(Match::Prefix { value, length }) => RuleField::Prefix { value: *value, length: *length },
            Some(Match::Masked { value, mask }) => RuleField::Ternary { value: *value, mask: *mask },
            Some(Match::Range { low, high }) => RuleField::Range { low: *low, high: *high },
        };
        let fields = columns.iter().map(|(_, key)| field(key)).collect();
        let line = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let allow = decision(table, &entry.value).map_err(|name| {
            refuse(format!("entry {line} answers `{name}`, which is neither to accept nor to drop"))
        })?;
        rules.push(ImportedRule { rule: Rule { fields }, allow, log: false, line, text: "".into() });
    }
    let default = match &table.default {
        Some(value) => decision(table, value).map_err(|name| {
            refuse(format!("the default answers `{name}`, which is neither to accept nor to drop"))
        })?,
        None => None,
    };
    let columns = columns.into_iter().map(|(column, _)| column).collect();
    // Ports of the gateway have no names; their numbers name them.
    let interfaces = (1..=MOST_PORTS).map(|port| (format!("port{port}"), port)).collect();
    Ok(ImportedRules { columns, rules, default, interfaces, bound: true, ..ImportedRules::default() })
}

/// Ports that rules may name.
const MOST_PORTS: u16 = 256;

/// What a value decides, by its name; the name if that says nothing.
fn decision(table: &ir::Table, value: &[u128]) -> Result<Option<bool>, String> {
    let (Some(column), Some(value)) = (table.values.first(), value.first()) else { return Ok(None) };
    let name = match &column.kind {
        ColumnKind::Bool => (if *value == 0 { "deny" } else { "permit" }).to_owned(),
        ColumnKind::Names(names) => {
            let name = names.iter().find(|(own, _)| own == value).map(|(_, name)| name.clone());
            name.unwrap_or_else(|| value.to_string())
        }
        _ => return Ok(None),
    };
    match name.as_str() {
        "permit" | "accept" | "pass" | "allow" => Ok(Some(true)),
        "deny" | "drop" | "reject" | "block" => Ok(Some(false)),
        _ => Err(name),
    }
}
