//! Writes to tables and groups: what they put where, what happens if it is refused, and how the table stays
//! bounded.

use super::Checker;
use super::hir::{Expr, Placement, Write};
use super::operators::same;
use super::types::TableId;
use crate::ast;
use crate::diagnostic::{Diagnostic, Findings};
use ir::source::Span;
use ir::{Eviction, TableKind};

impl<'a> Checker<'a> {
    /// Reports a write that a full table may refuse where nothing says what happens then.
    pub(super) fn check_refusal(
        &mut self,
        checked: Option<&Write>,
        write: &ast::TableWrite,
        said: bool,
        span: Span,
    ) {
        let Some(checked) = checked else { return };
        let table = &self.program.tables[checked.table.0];
        if said || table.evict != Eviction::Refuse || self.bounds.evict_reported.contains(&table.name) {
            return;
        }
        let at = Span::new(span.file, span.end, span.end);
        self.report(
            Diagnostic::error(
                "E0513",
                format!("`{}` may be full", write.table.text),
                write.span,
                "what if the entry is refused?",
            )
            .place(table.span, "a full table refuses new entries: `evict refuse`")
            .help("say what becomes of the packet then: `else { … }`")
            .suggest("go on without the entry", at, " else { }"),
        );
    }

    /// Whether this names a group or a table with longest prefixes or rules: what `insert` and `remove` put
    /// in place there is not a plain key.
    pub(super) fn is_placed(&self, name: &str) -> bool {
        let table = self.names.tables.get(name).and_then(|id| self.program.tables.get(id.0));
        self.names.groups.contains_key(name)
            || table.is_some_and(|table| matches!(table.kind, TableKind::Lpm | TableKind::Rules { .. }))
    }

    /// What `insert` or `remove` names there; `write` is the whole of an `insert`.
    pub(super) fn placement(
        &mut self,
        name: &ast::Name,
        keys: &'a [ast::Expr],
        priority: Option<&ast::Expr>,
        write: Option<&'a ast::TableWrite>,
        span: Span,
    ) -> Option<Placement> {
        if let Some(&group) = self.names.groups.get(&name.text) {
            if let Some(value) = write.and_then(|write| write.value.as_ref()) {
                self.error(
                    "E0504",
                    "a group holds members, not entries",
                    value.span,
                    "no value belongs here",
                );
            }
            self.diagnostics.no_priority(&name.text, priority);
            self.no_lifetime(write);
            return self.group_member(group, &name.text, keys, span);
        }
        let table = self.table_named(name)?;
        let entry = write.map_or(span, |write| write.span);
        self.no_lifetime(write);
        let kind = self.program.tables[table.0].kind;
        let priority = self.priority(kind, &name.text, priority, entry);
        let key = self.key_parts(table, keys, span);
        let mut value = Vec::new();
        if let Some(write) = write {
            value = self.value_columns(table, write.value.as_ref(), write.span);
            self.check_bounded(table, name);
        }
        Some(Placement::Entry { table, key: key?, priority, value })
    }

    /// Reports a lifetime of its own where entries have none.
    fn no_lifetime(&mut self, write: Option<&ast::TableWrite>) {
        if let Some(time) = write.and_then(|write| write.lifetime.as_ref()) {
            self.report(
                Diagnostic::error(
                    "E0576",
                    "only entries of exact tables have a lifetime of their own",
                    time.span,
                    "no lifetime belongs here",
                )
                .help("an entry of a table of `lpm` or `rules` lives for the `age` of the table, a member of a group until it is removed"),
            );
        }
    }

    pub(super) fn write(&mut self, write: &'a ast::TableWrite) -> Option<Write> {
        let table = self.table_named(&write.table)?;
        if self.program.tables[table.0].kind != TableKind::Exact {
            let kind = self.program.tables[table.0].kind.name();
            self.report(
                Diagnostic::error(
                    "E0527",
                    format!("`{}` is a table of {kind}", write.table.text),
                    write.span,
                    "only exact tables are learned like this",
                )
                .help("entries of tables of `lpm` and `rules` are made by `insert` and taken away by `remove`; patterns do not change"),
            );
            return None;
        }
        self.diagnostics.no_priority(&write.table.text, write.priority.as_ref());
        let key = self.keys(table, &write.keys, write.span);
        let value = self.value_columns(table, write.value.as_ref(), write.span);
        let lifetime = write.lifetime.as_ref().map(|time| self.lifetime(table, time));
        self.check_bounded(table, &write.table);
        Some(Write { table, key, value, lifetime })
    }

    /// How long an entry of a table lives that gets a lifetime of its own.
    fn lifetime(&mut self, table: TableId, time: &'a ast::Expr) -> Expr {
        let declared = &self.program.tables[table.0];
        if declared.age.is_none() {
            self.diagnostics.report(
                Diagnostic::error(
                    "E0576",
                    format!("`{}` does not say how long an entry lives at most", declared.name),
                    time.span,
                    "a lifetime of its own is at most the `age` of the table",
                )
                .place(declared.span, "`age` is missing")
                .help("declare the longest time that an entry may have, for example `age 300s`"),
            );
        }
        self.time(time)
    }

    /// Reports a table that packets write and that does not say how it stays bounded.
    pub(super) fn check_bounded(&mut self, id: TableId, name: &ast::Name) {
        let table = &self.program.tables[id.0];
        if table.evict == Eviction::Lru && table.entries.len() >= table.capacity as usize {
            let diagnostic = Diagnostic::error(
                "E0517",
                format!("`{}` has no room to learn", table.name),
                table.span,
                format!(
                    "all {} places belong to the entries written here, which are never evicted",
                    table.capacity
                ),
            );
            let told = |other: &Diagnostic| other.code == "E0517" && other.primary == diagnostic.primary;
            if !self.diagnostics.list().iter().any(told) {
                self.report(diagnostic.place(name.span, "packets write to it here"));
            }
        }
        let table = &self.program.tables[id.0];
        let (capacity, evict) = self.bounds.missing.get(&table.name).copied().unwrap_or_default();
        let ageless = table.age.is_none() && table.idle.is_none();
        if !(capacity || evict || ageless) {
            return;
        }
        let exact = table.kind == TableKind::Exact;
        let aging = if exact { "age or idle" } else { "age" };
        let missing: Vec<&str> = [(capacity, "capacity"), (ageless, aging), (evict, "evict")]
            .iter()
            .filter_map(|&(missing, word)| missing.then_some(word))
            .collect();
        let (declared, text) = (table.span, table.name.clone());
        self.report(
            Diagnostic::error(
                "E0512",
                format!("`{text}` grows with the traffic and does not say how it stays bounded"),
                declared,
                format!("missing: {}", missing.join(", ")),
            )
            .place(name.span, "packets write to it here")
            .help(if exact {
                "for example `{ capacity 64k  age 300s  evict lru }`"
            } else {
                "for example `{ capacity 64k  age 300s }`"
            }),
        );
        if evict {
            self.bounds.evict_reported.insert(text.clone());
        }
        self.bounds.missing.remove(&text);
        self.program.tables[id.0].age = Some(1);
    }
}

impl Findings {
    /// Reports two writes of one `learn together` to the same entry.
    pub(super) fn check_apart(&mut self, writes: &[ast::TableWrite]) {
        for (index, write) in writes.iter().enumerate() {
            let twin = writes[..index].iter().find(|other| {
                other.table.text == write.table.text
                    && other.keys.len() == write.keys.len()
                    && other.keys.iter().zip(&write.keys).all(|(a, b)| same(a, b))
            });
            if let Some(twin) = twin {
                self.report(
                    Diagnostic::error(
                        "E0516",
                        format!("one entry of `{}` is written twice at once", write.table.text),
                        write.span,
                        "the same key again",
                    )
                    .place(twin.span, "written first here"),
                );
            }
        }
    }

    /// Reports an insert that may be refused and does not say what happens then.
    pub(super) fn refusal_unsaid(&mut self, name: &ast::Name, span: Span) {
        let at = Span::new(span.file, span.end, span.end);
        self.report(
            Diagnostic::error(
                "E0513",
                format!("`{}` may be full", name.text),
                span,
                "what if it is refused?",
            )
            .help("say what becomes of the packet then: `else { … }`")
            .suggest("go on without it", at, " else { }"),
        );
    }
}
