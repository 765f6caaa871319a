//! Reads the text of a program: the inverse of [`super::print`].
//!
//! The reader knows the form, not the rules: indexes out of range, missing definitions and wrong widths are
//! read as they stand and are the verifier's to find. Spaces and line breaks mean nothing, and `#` begins a
//! remark that ends with the line.

mod function;
mod memory;
mod tokens;

use self::tokens::{Token, Tokens};
use super::*;
use crate::source::FileId;

/// Why a text is not a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct IrReadError {
    /// Line from 1.
    pub line: u32,
    /// Column from 1, in characters.
    pub column: u32,
    /// What was wrong and what was expected.
    pub message: String,
}

/// Reads a program from its text; `read(&print(&program))` is `program`.
///
/// # Errors
/// The first place where the text departs from the form that [`super::print`] writes.
pub fn read(text: &str) -> Result<Program, IrReadError> {
    let mut tokens = Tokens::of(text)?;
    let mut program = begun(&mut tokens)?;
    while !tokens.at_end() {
        if tokens.accept_word("steering") {
            let mut steering = begun(&mut tokens)?;
            while !tokens.at_end() {
                declaration(&mut tokens, &mut steering)?;
            }
            program.steering = Some(Box::new(steering));
            break;
        }
        declaration(&mut tokens, &mut program)?;
    }
    Ok(program)
}

/// A program of which the name alone is known yet.
fn begun(tokens: &mut Tokens<'_>) -> Result<Program, IrReadError> {
    tokens.word("program")?;
    Ok(Program { name: tokens.text()?, ..Program::default() })
}

fn declaration(tokens: &mut Tokens<'_>, program: &mut Program) -> Result<(), IrReadError> {
    let Token::Word(word) = *tokens.peek() else {
        return Err(tokens.expected("a declaration such as `table` or `function`"));
    };
    tokens.advance();
    match word {
        "slots" => program.slots = tokens.number()?,
        "reason" => {
            tokens.index_is('r', program.reasons.len())?;
            program.reasons.push(Reason { name: tokens.text()?, help: tokens.text()? });
        }
        "table" => {
            tokens.index_is('t', program.tables.len())?;
            program.tables.push(table(tokens)?);
        }
        "counter" => {
            tokens.index_is('c', program.counters.len())?;
            let (name, size) = tokens.sized()?;
            program.counters.push(Counter { name, size, indexed: tokens.accept_word("indexed") });
        }
        "meter" | "register" | "pool" | "group" => memory::declaration(tokens, word, program)?,
        "ports" => {
            tokens.index_is('g', program.port_sets.len())?;
            program.port_sets.push(tokens.list("(", ")", Tokens::number)?);
        }
        "event" => {
            tokens.index_is('e', program.events.len())?;
            let name = tokens.text()?;
            let params = tokens.list("(", ")", column)?;
            tokens.word("handler")?;
            program.events.push(Event { name, params, handler: tokens.index('f')? });
        }
        "every" => {
            let period = tokens.number()?;
            tokens.word("handler")?;
            program.every.push(Every { period, handler: tokens.index('f')? });
        }
        "template" => {
            tokens.index_is('p', program.templates.len())?;
            let bytes = tokens.hexadecimal()?;
            let holes = tokens.list("(", ")", |tokens| {
                let bit = tokens.number()?;
                tokens.symbol(":")?;
                Ok(Hole { bit, width: tokens.number()? })
            })?;
            let mut sums = Vec::new();
            while tokens.accept_word("sum") {
                sums.push(sum(tokens)?);
            }
            program.templates.push(Template { bytes, holes, sums });
        }
        "stage" => {
            tokens.index_is('s', program.stages.len())?;
            program.stages.push(Stage { name: tokens.text()?, span: span(tokens)? });
        }
        "layout" => {
            tokens.index_is('l', program.layouts.len())?;
            program.layouts.push(layout(tokens)?);
        }
        "order" => {
            tokens.word("fragments")?;
            program.orders_fragments = true;
        }
        "manifest" => program.manifest = manifest(tokens)?,
        "function" => {
            tokens.index_is('f', program.functions.len())?;
            program.functions.push(function::function(tokens)?);
        }
        _ => {
            tokens.step_back();
            return Err(tokens.expected("a declaration such as `table` or `function`"));
        }
    }
    Ok(())
}

fn table(tokens: &mut Tokens<'_>) -> Result<Table, IrReadError> {
    let mut table = Table {
        name: tokens.text()?,
        kind: TableKind::Exact,
        keys: Vec::new(),
        values: Vec::new(),
        capacity: 0,
        idle: None,
        age: None,
        lifetimes: false,
        evict: Eviction::Lru,
        counted: false,
        times: false,
        secret: false,
        releases: None,
        expires: None,
        entries: Vec::new(),
        file: None,
        default: None,
        span: Span::default(),
    };
    tokens.symbol("{")?;
    while !tokens.accept("}") {
        let Token::Word(word) = *tokens.peek() else {
            return Err(tokens.expected("a property of a table, or `}`"));
        };
        tokens.advance();
        match word {
            "key" => table.keys = tokens.list("(", ")", column)?,
            "value" => table.values = tokens.list("(", ")", column)?,
            "capacity" => table.capacity = tokens.number()?,
            "idle" => table.idle = Some(tokens.number()?),
            "age" => table.age = Some(tokens.number()?),
            "lifetimes" => table.lifetimes = true,
            "evict" if tokens.accept_word("refuse") => table.evict = Eviction::Refuse,
            "evict" => tokens.word("lru")?,
            "lpm" => table.kind = TableKind::Lpm,
            "rules" => table.kind = TableKind::Rules { by_priority: tokens.accept_word("by_priority") },
            "patterns" => table.kind = TableKind::Patterns(memory::answer(tokens)?),
            "counted" => (table.counted, table.times) = (true, tokens.accept_word("times")),
            "secret" => table.secret = true,
            "expires" => table.expires = Some(tokens.index('e')?),
            "releases" => table.releases = Some(tokens.index('q')?),
            "file" => {
                let (path, format) = (tokens.text()?, tokens.text()?);
                let interfaces = tokens.list("(", ")", |tokens| Ok((tokens.text()?, tokens.number()?)))?;
                let family = tokens.number_after("family")?;
                let table_there = if tokens.accept_word("table") { Some(tokens.text()?) } else { None };
                let chain = if tokens.accept_word("chain") { Some(tokens.text()?) } else { None };
                let first_packets = tokens.accept_word("first_packets");
                let options = FileOptions { family, table: table_there, chain, first_packets, interfaces };
                table.file = Some(EntryFile { path, format, options });
            }
            "entry" => {
                let key = tokens.list("(", ")", memory::key_match)?;
                let priority = tokens.number_after("priority")?.unwrap_or(0);
                tokens.symbol("=")?;
                table.entries.push(Entry { key, value: tokens.list("(", ")", Tokens::number)?, priority });
            }
            "default" => table.default = Some(tokens.list("(", ")", Tokens::number)?),
            _ => {
                tokens.step_back();
                return Err(tokens.expected("a property of a table, or `}`"));
            }
        }
    }
    table.span = span(tokens)?;
    Ok(table)
}

fn sum(tokens: &mut Tokens<'_>) -> Result<Sum, IrReadError> {
    let at = tokens.number()?;
    tokens.word("from")?;
    let from = tokens.number()?;
    let end = tokens.number_after("end")?;
    let besides = tokens.list("(", ")", |tokens| {
        let first = tokens.number()?;
        tokens.symbol(":")?;
        Ok((first, tokens.number()?))
    })?;
    tokens.word("plus")?;
    let plus = tokens.number()?;
    let length = tokens.accept_word("length");
    Ok(Sum { at, from, end, besides, plus, length, never_zero: tokens.accept_word("never_zero") })
}

fn layout(tokens: &mut Tokens<'_>) -> Result<Layout, IrReadError> {
    let name = tokens.text()?;
    let mut fields = Vec::new();
    tokens.symbol("{")?;
    while !tokens.accept("}") {
        tokens.word("field")?;
        let name = tokens.text()?;
        let kind = kind(tokens)?;
        let bit = tokens.number_after("bit")?;
        let width = tokens.number_after("width")?;
        fields.push(LayoutField { name, kind, bit, width });
    }
    Ok(Layout { name, fields })
}

fn manifest(tokens: &mut Tokens<'_>) -> Result<Manifest, IrReadError> {
    let mut manifest = Manifest::default();
    tokens.symbol("{")?;
    while !tokens.accept("}") {
        if tokens.accept_word("writes_tables") {
            manifest.writes_tables = tokens.list("(", ")", |tokens| tokens.index('t'))?;
        } else if tokens.accept_word("ports") {
            manifest.ports = tokens.list("(", ")", Tokens::number)?;
        } else {
            let right = manifest.rights().into_iter().find(|(word, _)| tokens.accept_word(word));
            let Some((_, right)) = right else {
                return Err(tokens.expected("a right of the manifest, or `}`"));
            };
            *right = true;
        }
    }
    Ok(manifest)
}

fn column(tokens: &mut Tokens<'_>) -> Result<Column, IrReadError> {
    let name = tokens.text()?;
    let kind = kind(tokens)?;
    tokens.symbol(":")?;
    Ok(Column { name, kind, width: tokens.number()? })
}

fn kind(tokens: &mut Tokens<'_>) -> Result<ColumnKind, IrReadError> {
    if tokens.accept_word("names") {
        let names = tokens.list("{", "}", |tokens| Ok((tokens.number()?, tokens.text()?)))?;
        return Ok(ColumnKind::Names(names));
    }
    let known = ColumnKind::NAMES.into_iter().find(|(_, word)| tokens.accept_word(word));
    known.map(|(kind, _)| kind).ok_or_else(|| tokens.expected("a kind such as `uint` or `ip4`"))
}

fn span(tokens: &mut Tokens<'_>) -> Result<Span, IrReadError> {
    if !tokens.accept("@") {
        return Ok(Span::default());
    }
    let file = FileId(tokens.number()?);
    tokens.symbol(":")?;
    let start = tokens.number()?;
    tokens.symbol("..")?;
    Ok(Span { file, start, end: tokens.number()? })
}
