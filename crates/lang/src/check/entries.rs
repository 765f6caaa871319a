//! Kinds of tables: which columns and properties each has, and what the keys of its entries may be.

use super::Checker;
use super::constants::fold;
use super::hir;
use super::types::{TableId, Type};
use crate::ast::{self, EntryKey, FileOption};
use crate::diagnostic::{Diagnostic, DiagnosticKind, Findings};
use crate::limits::WIDEST_PREFIX_KEY;
use ir::source::Span;
use ir::{Answer, BytePattern, Entry, EntryFile, FileOptions, Match, TableKind, prefix_mask};
use std::collections::{HashMap, HashSet};

/// Formats of files with entries, besides the language's own.
pub const FORMATS: [&str; 7] = ["routes", "mrt", "classbench", "iptables", "nft", "snort", "literals"];

/// Those of them that have chains, and name interfaces.
pub const WITH_CHAINS: [&str; 2] = ["iptables", "nft"];

impl Checker<'_> {
    pub(super) fn key_columns(&mut self, item: &ast::Table, kind: TableKind) -> Vec<(String, Type)> {
        if let TableKind::Patterns(_) = kind {
            let bytes = |ty: &ast::Type| matches!(&ty.kind, ast::TypeKind::Named(name) if name == "bytes");
            if !matches!(item.keys.as_slice(), [(_, ty)] if bytes(ty)) {
                self.error(
                    "E0518",
                    "patterns are searched for in bytes",
                    item.name.span,
                    "its key is written `patterns(bytes)`",
                );
            }
            return Vec::new();
        }
        let mut columns = Vec::new();
        for (name, ty) in &item.keys {
            let name = name.as_ref().map(|name| name.text.clone()).unwrap_or_default();
            columns.push((name, self.resolve_type(ty)));
        }
        let bits: u32 = columns.iter().map(|(_, ty)| u32::from(ty.width().unwrap_or(0))).sum();
        if kind == TableKind::Lpm && bits > WIDEST_PREFIX_KEY {
            self.error(
                "E0518",
                format!("the key of `{}` has {bits} bits", item.name.text),
                item.name.span,
                "the key of a table with longest prefixes has at most 128",
            );
        }
        columns
    }

    /// The pool that an entry of the table gives its value back to.
    pub(super) fn released_pool(&mut self, table: &hir::Table, name: &ast::Name) -> Option<u32> {
        let pool = self.pool_named(name)?;
        let types = &self.program.pools[pool as usize].1;
        let held: Vec<Type> = table.value_columns().into_iter().map(|(_, ty)| ty).collect();
        if *types != held {
            let wanted = Type::Tuple(types.clone());
            self.error(
                "E0522",
                format!("an entry of `{}` is no item of `{}`", table.name, name.text),
                name.span,
                format!("the table must hold {wanted} and nothing else"),
            );
            return None;
        }
        Some(pool)
    }

    /// The ports that names of interfaces in a file stand for.
    pub(super) fn bound_interfaces(&mut self, bindings: &[ast::Binding]) -> Vec<(String, u16)> {
        let mut bound: Vec<(String, u16)> = Vec::with_capacity(bindings.len());
        let mut names = HashSet::new();
        for ast::Binding { interface, port } in bindings {
            let Some(number) = self.constant(port, &Type::Port) else { continue };
            if number == 0 {
                self.error("E0535", "there is no port 0", port.span, "ports are numbered from 1");
            } else if !names.insert(&interface.text) {
                let headline = format!("the interface `{}` is bound twice", interface.text);
                self.error("E0535", headline, interface.span, "it has a port already");
            } else {
                bound.push((interface.text.clone(), number as u16));
            }
        }
        bound
    }

    /// What to read of a file of chains.
    fn file_options(&mut self, format: &str, options: &[FileOption]) -> FileOptions {
        let mut read = FileOptions::default();
        for (index, option) in options.iter().enumerate() {
            let word = option.word();
            if !WITH_CHAINS.contains(&format) {
                let headline = format!("a file of this format has no `{word}`");
                self.error("E0537", headline, option.span(), "only `iptables` and `nft` do");
                break;
            }
            if options[..index].iter().any(|before| before.word() == word) {
                let headline = format!("`{word}` is said twice");
                self.error("E0537", headline, option.span(), "it is said before");
                continue;
            }
            match option {
                FileOption::Family(name) => match name.text.as_str() {
                    "ip4" => read.family = Some(4),
                    "ip6" => read.family = Some(6),
                    other => self.unknown("family", other, name.span, ["ip4", "ip6"].into_iter()),
                },
                FileOption::Table(name) => read.table = Some(name.text.clone()),
                FileOption::Chain(name) => read.chain = Some(name.text.clone()),
                FileOption::FirstPackets(_) => read.first_packets = true,
                FileOption::SkipTitle(span)
                | FileOption::SkipNat(span)
                | FileOption::SkipMarks(span)
                | FileOption::Tables(_, span) => {
                    self.error("E0537", format!("a table has no `{word}`"), *span, "only policies do");
                }
                FileOption::Interfaces(bindings, _) => read.interfaces = self.bound_interfaces(bindings),
            }
        }
        read
    }

    /// The path of a file, which must not be empty.
    pub(super) fn named_file(&mut self, path: &str, span: Span) -> Option<String> {
        if path.is_empty() {
            self.error("E0521", "this names no file", span, "the path is empty");
            return None;
        }
        Some(path.to_owned())
    }

    pub(super) fn entry_file(&mut self, file: &ast::EntryFile) -> Option<EntryFile> {
        let path = self.named_file(&file.path, file.span)?;
        if let Some(format) = &file.format
            && !FORMATS.contains(&format.text.as_str())
        {
            self.unknown("format", &format.text, format.span, FORMATS.into_iter());
            return None;
        }
        let format = file.format.as_ref().map(|format| format.text.clone()).unwrap_or_default();
        let options = self.file_options(&format, &file.options);
        Some(EntryFile { path, format, options })
    }

    pub(super) fn entries(&mut self, table: &mut hir::Table, entries: &[ast::Entry], id: TableId) {
        let mut seen: HashMap<(Vec<Match>, u32), Span> = HashMap::new();
        for entry in entries {
            let key = self.entry_keys(table, &entry.keys, entry.span);
            let priority = self.priority(table.kind, &table.name, entry.priority.as_ref(), entry.span);
            let values = self.value_columns(id, entry.value.as_ref(), entry.span);
            let (Some(key), Some(value)) = (key, self.diagnostics.constant_columns(&values)) else {
                continue;
            };
            // Equal rules are found among the rules that are never reached.
            let rules = matches!(table.kind, TableKind::Rules { .. });
            if !rules && let Some(first) = seen.insert((key.clone(), priority), entry.span) {
                self.report(
                    Diagnostic::error(
                        "E0510",
                        format!("`{}` has two entries for one key", table.name),
                        entry.span,
                        "this key stands above already",
                    )
                    .place(first, "the first entry"),
                );
                continue;
            }
            table.entries.push(Entry { key, value, priority });
            table.entry_spans.push(entry.span);
        }
    }

    /// The priority of an entry, which stands exactly where the table chooses by priority; `span` is the
    /// whole entry.
    pub(super) fn priority(
        &mut self,
        kind: TableKind,
        table: &str,
        priority: Option<&ast::Expr>,
        span: Span,
    ) -> u32 {
        if kind != (TableKind::Rules { by_priority: true }) {
            self.diagnostics.no_priority(table, priority);
            return 0;
        }
        let Some(priority) = priority else {
            self.error(
                "E0523",
                format!("an entry of `{table}` has a priority"),
                span,
                "it is missing: `priority 10`",
            );
            return 0;
        };
        self.constant(priority, &Type::Uint(32)).unwrap_or(0) as u32
    }

    /// What the key columns of an entry must be like.
    fn entry_keys(&mut self, table: &hir::Table, keys: &[EntryKey], span: Span) -> Option<Vec<Match>> {
        if let TableKind::Patterns(_) = table.kind {
            let [EntryKey::Bytes { bytes, nocase, offset, depth, span }] = keys else {
                self.error(
                    "E0518",
                    format!("an entry of `{}` is bytes to search for", table.name),
                    span,
                    "write a text in quotes or `hex \"…\"`",
                );
                return None;
            };
            return self.byte_pattern(bytes, *nocase, offset.as_ref(), depth.as_ref(), *span);
        }
        let types: Vec<Type> = table.keys.iter().map(|(_, ty)| ty.clone()).collect();
        if !self.diagnostics.key_parts(table, keys.len(), span) {
            return None;
        }
        let mut checked = Vec::new();
        for (index, (key, ty)) in keys.iter().zip(&types).enumerate() {
            let part = self.entry_key(key, ty)?;
            let last = index + 1 == types.len();
            if !table.kind.takes_part(&part, last) {
                let what = match table.kind {
                    TableKind::Lpm if last => "a value or a prefix is wanted here",
                    _ => "one value is wanted here",
                };
                self.error(
                    "E0518",
                    format!("a table of {} cannot hold this key", table.kind.name()),
                    key.span(),
                    what,
                );
                return None;
            }
            checked.push(part);
        }
        Some(checked)
    }

    pub(super) fn entry_key(&mut self, key: &EntryKey, ty: &Type) -> Option<Match> {
        let width = ty.width()?;
        match key {
            EntryKey::Any(_) => Some(Match::Any),
            EntryKey::Value(value) => {
                let prefix = match &value.kind {
                    // `0x0a00 / 8` in a column of numbers: a number and how many of its bits count.
                    ast::ExprKind::Binary(ast::BinaryOp::Div, value, length) => {
                        let length = self.constant(length, &Type::Uint(8))?;
                        if length > u128::from(width) {
                            self.error(
                                "E0518",
                                format!("a prefix of {ty} has at most {width} bits"),
                                key.span(),
                                format!("this has {length}"),
                            );
                            return None;
                        }
                        Some((self.constant(value, ty)?, length as u8))
                    }
                    _ => {
                        self.prefix(value).filter(|(of, ..)| of == ty).map(|(_, bits, length)| (bits, length))
                    }
                };
                let Some((bits, length)) = prefix else {
                    return Some(Match::Exact(self.constant(value, ty)?));
                };
                let mask = prefix_mask(width, length);
                if bits & !mask != 0 {
                    let headline = "a prefix has bits behind its length";
                    let fault = Diagnostic::error("E0010", headline, key.span(), "they are never compared");
                    self.report(fault.of_kind(DiagnosticKind::Syntax));
                    return None;
                }
                Some(Match::Prefix { value: bits, length })
            }
            EntryKey::Range(low, high) => {
                let low = self.constant(low, ty)?;
                let high = match high {
                    Some(high) => self.constant(high, ty)?,
                    None => ty.largest(),
                };
                if low > high {
                    self.error("E0224", "this range is empty", key.span(), "it ends before it begins");
                    return None;
                }
                Some(Match::Range { low, high })
            }
            EntryKey::Masked(value, mask) => {
                let (value_bits, bits) = (self.constant(value, ty)?, self.constant(mask, ty)?);
                if value_bits & !bits != 0 {
                    self.error(
                        "E0518",
                        "this never matches",
                        key.span(),
                        "the value has bits that the mask does not have",
                    );
                    return None;
                }
                Some(Match::Masked { value: value_bits, mask: bits })
            }
            EntryKey::Bytes { span, .. } => {
                self.error("E0518", "bytes cannot be matched here", *span, format!("{ty} is wanted"));
                None
            }
        }
    }

    fn byte_pattern(
        &mut self,
        bytes: &[u8],
        nocase: bool,
        offset: Option<&ast::Expr>,
        depth: Option<&ast::Expr>,
        span: Span,
    ) -> Option<Vec<Match>> {
        let mut number = |expr: &ast::Expr| self.constant(expr, &Type::Uint(32)).map(|number| number as u32);
        let offset = match offset {
            Some(offset) => number(offset)?,
            None => 0,
        };
        let depth = match depth {
            Some(depth) => Some(number(depth)?),
            None => None,
        };
        if bytes.is_empty() || depth.is_some_and(|depth| (depth as usize) < bytes.len()) {
            self.error(
                "E0518",
                "this is never found",
                span,
                if bytes.is_empty() { "there are no bytes" } else { "it is longer than its `depth`" },
            );
            return None;
        }
        Some(vec![Match::Bytes(Box::new(BytePattern { bytes: bytes.to_vec(), nocase, offset, depth }))])
    }

    /// The key of an entry that a packet makes: a value, `value / bits`, or a prefix written out.
    pub(super) fn key_parts(
        &mut self,
        id: TableId,
        keys: &[ast::Expr],
        span: Span,
    ) -> Option<Vec<hir::KeyPart>> {
        let table = self.program.tables[id.0].clone();
        if keys.len() != table.keys.len() {
            self.keys(id, keys, span);
            return None;
        }
        let mut parts = Vec::new();
        for (index, (key, (_, ty))) in keys.iter().zip(&table.keys).enumerate() {
            let last = index + 1 == keys.len();
            let prefixes = last || matches!(table.kind, TableKind::Rules { .. });
            let part = match &key.kind {
                _ if prefixes && self.is_prefix(key) => {
                    hir::KeyPart::Fixed(self.entry_key(&EntryKey::Value(key.clone()), ty)?)
                }
                ast::ExprKind::Binary(ast::BinaryOp::Div, value, length) if prefixes => {
                    let length = self.constant(length, &Type::Uint(8))?;
                    let value = self.typed(value, ty);
                    if length > u128::from(ty.width().unwrap_or(128)) {
                        self.error(
                            "E0518",
                            format!("{ty} has fewer bits"),
                            key.span,
                            format!("{length} are too many"),
                        );
                        return None;
                    }
                    hir::KeyPart::Prefix(value, length as u8)
                }
                _ => {
                    let value = self.typed(key, ty);
                    match fold(&value) {
                        Some(number) => hir::KeyPart::Fixed(Match::Exact(number)),
                        None => hir::KeyPart::Exact(value),
                    }
                }
            };
            parts.push(part);
        }
        Some(parts)
    }
}

impl Findings {
    /// Reports a property that tables of this kind do not have.
    pub(super) fn check_property(&mut self, table: &hir::Table, word: &str, span: Span) {
        let kinds: &[&str] = match word {
            "idle" | "evict" | "releases" => &["exact"],
            "expires" => &["exact", "lpm"],
            "age" => &["exact", "lpm", "rules"],
            "choose" => &["rules"],
            "answer" => &["patterns"],
            "counted" => &["lpm", "rules", "patterns"],
            "default" => &["exact", "lpm", "rules"],
            _ => return,
        };
        let kind = table.kind.name();
        if kinds.contains(&kind) {
            return;
        }
        let headline = format!("`{}` is a table of {kind}, which has no `{word}`", table.name);
        let only = format!("only tables of the kind {} have it", kinds.join(" or "));
        let mut found = Diagnostic::error("E0520", headline, span, only).place(table.span, "declared here");
        if word == "expires" && kind == "rules" {
            found = found.help("a rule is made of ranges and masks, which no argument of an event can hold");
        }
        self.report(found);
    }

    /// Reports a priority where none belongs.
    pub(super) fn no_priority(&mut self, table: &str, priority: Option<&ast::Expr>) {
        if let Some(priority) = priority {
            self.error(
                "E0523",
                format!("entries of `{table}` have no priority"),
                priority.span,
                "only rules with `choose priority` have one",
            );
        }
    }
}

pub(super) fn table_kind(item: &ast::Table) -> TableKind {
    let word = |wanted: &str| {
        item.properties.iter().find_map(|property| match property {
            ast::Property::Choose(name) if wanted == "choose" => Some(name.text.as_str()),
            ast::Property::Answer(name) if wanted == "answer" => Some(name.text.as_str()),
            _ => None,
        })
    };
    match item.kind.text.as_str() {
        "lpm" => TableKind::Lpm,
        "rules" => TableKind::Rules { by_priority: word("choose") == Some("priority") },
        "patterns" => TableKind::Patterns(match word("answer") {
            Some("all") => Answer::All,
            Some("set") => Answer::Set,
            _ => Answer::First,
        }),
        _ => TableKind::Exact,
    }
}
