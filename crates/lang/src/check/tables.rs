//! Tables: keys, what entries hold, how much and how long they keep; entries of the program text.

use super::hir::{self, Expr, ExprKind, Program, TableValue};
use super::types::{TableId, Type};
use super::{Checker, constants::fold, counted, expressions::error};
use crate::ast::{self, Property};
use crate::diagnostic::{Diagnostic, Findings};
use crate::limits::LARGEST_TABLE;
use ir::limits::LARGEST_WORDS;
use ir::source::Span;
use ir::{Answer, Eviction, PREFIX_LENGTH, TableKind};

impl Checker<'_> {
    /// A table by its name; reports unknown ones.
    pub(crate) fn table_named(&mut self, name: &ast::Name) -> Option<TableId> {
        self.named("table", name, |names| &names.tables)
    }

    /// Checks a key against a table.
    pub(crate) fn keys(&mut self, table: TableId, keys: &[ast::Expr], span: Span) -> Vec<Expr> {
        let types: Vec<Type> = self.program.tables[table.0].keys.iter().map(|(_, ty)| ty.clone()).collect();
        if !self.diagnostics.key_parts(&self.program.tables[table.0], keys.len(), span) {
            return types.iter().map(|_| error(span)).collect();
        }
        self.all_typed(keys, &types)
    }

    /// Checks a value against a table and takes it apart into columns.
    pub(crate) fn value_columns(
        &mut self,
        table: TableId,
        value: Option<&ast::Expr>,
        span: Span,
    ) -> Vec<Expr> {
        let declared = &self.program.tables[table.0];
        let (name, entry, at) = (declared.name.clone(), declared.entry_type(table), declared.span);
        let columns: Vec<Type> = declared.value_columns().into_iter().map(|(_, ty)| ty).collect();
        match value {
            None if columns.is_empty() => Vec::new(),
            None => {
                self.report(
                    Diagnostic::error(
                        "E0504",
                        format!("an entry of `{name}` holds a value"),
                        span,
                        format!("{entry} is missing: `= …`"),
                    )
                    .place(at, "declared here"),
                );
                columns.iter().map(|_| error(span)).collect()
            }
            Some(value) if columns.is_empty() => {
                self.report(
                    Diagnostic::error(
                        "E0504",
                        format!("`{name}` is a set: its entries hold nothing"),
                        value.span,
                        "no value belongs here",
                    )
                    .place(at, "declared here"),
                );
                Vec::new()
            }
            Some(value) => {
                let value = self.expression(value, Some(&entry));
                if !self.diagnostics.expect_type(&value, &entry) {
                    return columns.iter().map(|_| error(span)).collect();
                }
                self.split(table, value, &columns)
            }
        }
    }

    fn split(&mut self, table: TableId, value: Expr, columns: &[Type]) -> Vec<Expr> {
        let span = value.span;
        match value.kind {
            ExprKind::Variant(variant, args) => {
                let first = self.program.tables[table.0].variant_column(variant);
                let mut parts: Vec<Expr> = columns
                    .iter()
                    .map(|ty| Expr { kind: ExprKind::Const(0), ty: ty.clone(), span })
                    .collect();
                parts[0].kind = ExprKind::Const(variant as u128);
                for (offset, arg) in args.into_iter().enumerate() {
                    parts[first + offset] = arg;
                }
                parts
            }
            ExprKind::Tuple(parts) if columns.len() > 1 => parts,
            _ if columns.len() == 1 => vec![value],
            ExprKind::Error => columns.iter().map(|_| error(span)).collect(),
            _ => {
                self.error(
                    "E0505",
                    "write the parts of the value out",
                    span,
                    "a value of several parts is written `(a, b)` or as a variant",
                );
                columns.iter().map(|_| error(span)).collect()
            }
        }
    }

    /// A variant with its parameters.
    pub(crate) fn variant(&mut self, table: TableId, variant: usize, args: &[ast::Expr], span: Span) -> Expr {
        let params = self.program.variant_params(table, variant);
        if !self.diagnostics.takes("this variant", params.len(), args.len(), span) {
            return error(span);
        }
        let checked = self.all_typed(args, &params);
        let name = self.program.tables[table.0].name.clone();
        Expr { kind: ExprKind::Variant(variant, checked), ty: Type::Variants(table, name), span }
    }

    /// Defines a table; its entries are checked against its own types.
    pub(crate) fn define_table(&mut self, item: &ast::Table) -> hir::Table {
        let id = TableId(self.program.tables.len());
        let kind = super::entries::table_kind(item);
        let keys = self.key_columns(item, kind);
        let value = match &item.value {
            ast::TableValue::Nothing => TableValue::Data(Vec::new()),
            ast::TableValue::Data(types) => {
                TableValue::Data(types.iter().map(|ty| self.resolve_type(ty)).collect())
            }
            ast::TableValue::Variants(variants) => {
                let mut checked: Vec<(String, Vec<(String, Type)>)> = Vec::new();
                for (name, params) in variants {
                    if checked.iter().any(|(other, _)| *other == name.text) {
                        self.diagnostics.declared_twice("variant", name, None);
                        continue;
                    }
                    let params = params
                        .iter()
                        .map(|param| (param.name.text.clone(), self.resolve_type(&param.ty)))
                        .collect();
                    checked.push((name.text.clone(), params));
                }
                TableValue::Variants(checked)
            }
        };
        let mut table = hir::Table {
            name: item.name.text.clone(),
            kind,
            keys,
            value,
            capacity: 0,
            idle: None,
            age: None,
            evict: Eviction::Refuse,
            counted: false,
            times: false,
            secret: false,
            releases: None,
            expires: None,
            file: None,
            entries: Vec::new(),
            entry_spans: Vec::new(),
            default: None,
            span: item.name.span,
        };
        if table.kind == TableKind::Patterns(Answer::Set)
            && !matches!(table.value_columns().as_slice(), [(_, ty)] if ty.width().is_some_and(|width| width <= 7))
        {
            self.error(
                "E0518",
                format!("the entries of `{}` are no members of a set", table.name),
                item.name.span,
                "an answer that is a set has 128 bits: entries hold one number of up to 7 bits, `-> u7`",
            );
        }
        let key_words = words(table.keys.iter().map(|(_, ty)| ty));
        let value_columns = table.value_columns();
        let most = kind.most_key_words();
        if key_words > most || words(value_columns.iter().map(|(_, ty)| ty)) > LARGEST_WORDS {
            self.error(
                "E0506",
                format!("an entry of `{}` is too wide", table.name),
                item.name.span,
                format!(
                    "the key has at most {most} words of 64 bits and the value {LARGEST_WORDS}: of a table of rules each column of the key takes one, or two beyond 64 bits"
                ),
            );
        }
        self.program.tables.push(table.clone());
        self.properties(&mut table, item, id);
        self.program.tables.pop();
        table
    }

    fn properties(&mut self, table: &mut hir::Table, item: &ast::Table, id: TableId) {
        let (mut bounds, mut seen) = (Bounds::default(), Vec::new());
        for property in &item.properties {
            let (word, span) = written(property, item);
            if seen.contains(&word) {
                self.diagnostics.given_twice(format!("`{word}` is given twice for `{}`", table.name), span);
            }
            seen.push(word);
            self.diagnostics.check_property(table, word, span);
            self.property(table, property, id, &mut bounds);
        }
        self.settle_bounds(table, item, &bounds);
    }

    fn property(&mut self, table: &mut hir::Table, property: &Property, id: TableId, bounds: &mut Bounds) {
        match property {
            Property::Choose(_) | Property::Answer(_) => {}
            Property::Counted(counted) => (table.counted, table.times) = (true, counted.times),
            Property::Secret(_) => table.secret = true,
            Property::Releases(name) => table.releases = self.released_pool(table, name),
            // Events are declared behind tables.
            Property::Expires(_) => {}
            Property::From(file) => table.file = self.entry_file(file),
            Property::Capacity(expr) => {
                let value = self.constant(expr, &Type::Uint(64)).unwrap_or(1);
                if !(1..=LARGEST_TABLE).contains(&value) {
                    self.error(
                        "E0507",
                        "a table holds between 1 and 67,108,864 entries",
                        expr.span,
                        format!("this is {value}"),
                    );
                }
                bounds.capacity = Some(value.clamp(1, LARGEST_TABLE) as u32);
            }
            // A time that is wrong was reported; the table is not unbounded for that.
            Property::Age(expr) => table.age = self.positive_time(expr).or(Some(1)),
            Property::Idle(expr) => table.idle = self.positive_time(expr).or(Some(1)),
            Property::Evict(name) => match name.text.as_str() {
                "lru" => bounds.evict = Some(Eviction::Lru),
                "refuse" => bounds.evict = Some(Eviction::Refuse),
                other => self.unknown("way to evict", other, name.span, ["lru", "refuse"].into_iter()),
            },
            Property::Entries(entries) => self.entries(table, entries, id),
            Property::Default(expr) => {
                let columns = self.value_columns(id, Some(expr), expr.span);
                table.default = self.diagnostics.constant_columns(&columns);
            }
        }
    }

    /// Gives a table its capacity and its way to evict, and reports what does not go together.
    fn settle_bounds(&mut self, table: &mut hir::Table, item: &ast::Table, bounds: &Bounds) {
        let &Bounds { capacity, evict } = bounds;
        if capacity.is_none() && table.file.is_some() {
            self.report(
                Diagnostic::error(
                    "E0519",
                    format!("`{}` does not say how many entries it holds", table.name),
                    item.name.span,
                    "the file is read later: how large may it be?",
                )
                .help("for example `capacity 1M`"),
            );
        }
        table.capacity = capacity.unwrap_or(table.entries.len().max(1) as u32);
        // Only exact tables know which entry was used last; the others always refuse.
        let exact = table.kind == TableKind::Exact;
        table.evict = evict.unwrap_or(Eviction::Refuse);
        if table.releases.is_some() && table.evict == Eviction::Lru {
            self.error(
                "E0522",
                format!("`{}` gives back to a pool and evicts", table.name),
                item.name.span,
                "an entry that still holds its item must not make room: `evict refuse`",
            );
        }
        if table.entries.len() > table.capacity as usize {
            self.error(
                "E0508",
                format!(
                    "`{}` has {} entries and room for {}",
                    table.name,
                    table.entries.len(),
                    table.capacity
                ),
                item.name.span,
                "raise its capacity",
            );
            table.capacity = table.entries.len() as u32 + 1;
        }
        if capacity.is_none() || exact && evict.is_none() {
            let missing = (capacity.is_none(), exact && evict.is_none());
            self.bounds.missing.insert(item.name.text.clone(), missing);
        }
    }

    /// The number of the event that the entries of a table raise when their time is up; reports one that does
    /// not suit.
    pub(super) fn expiry_event(&mut self, id: TableId, name: &ast::Name) -> Option<u32> {
        let event = self.named("event", name, |names| &names.events)?;
        let table = &self.program.tables[id.0];
        // A table of another kind was reported.
        if !matches!(table.kind, TableKind::Exact | TableKind::Lpm) {
            return None;
        }
        let mut wanted: Vec<Type> = table.keys.iter().map(|(_, ty)| ty.clone()).collect();
        let mut parts = "key and value";
        if table.kind == TableKind::Lpm {
            wanted.push(Type::Uint(PREFIX_LENGTH));
            parts = "key, of the length of the prefix, and of the value";
        }
        let plain = match &table.value {
            TableValue::Data(types) => {
                wanted.extend(types.iter().cloned());
                true
            }
            TableValue::Variants(_) => false,
        };
        let given = &self.program.events[event].params;
        let given: Vec<Type> = given.iter().map(|local| self.program.locals[local.0].ty.clone()).collect();
        let (table_name, declared) = (table.name.clone(), table.span);
        let lasting = table.idle.is_none() && table.age.is_none();
        let secret = table.secret;
        let event_span = self.program.events[event].span;
        let fault = if lasting {
            "its entries have neither `age` nor `idle`, so none ends by its time".to_string()
        } else if secret {
            "its entries are `secret`, and whoever listens is told events".to_string()
        } else if !plain {
            "its entries hold variants, which no event can have".to_string()
        } else if given != wanted && !given.contains(&Type::Unknown) && !wanted.contains(&Type::Unknown) {
            format!("its arguments must be those of {parts}: {}", Type::Tuple(wanted))
        } else {
            return Some(event as u32);
        };
        let headline = format!("an entry of `{table_name}` cannot raise `{}`", name.text);
        let diagnostic = Diagnostic::error("E0531", headline, name.span, fault);
        self.report(diagnostic.place(declared, "the table").place(event_span, "the event"));
        None
    }

    fn positive_time(&mut self, expr: &ast::Expr) -> Option<u64> {
        self.diagnostics.check_unit(expr);
        let value = self.constant(expr, &Type::Time)? as u64;
        if value == 0 {
            self.error(
                "E0509",
                "entries would be gone at once",
                expr.span,
                "the time must be longer than zero",
            );
            return None;
        }
        Some(value)
    }
}

impl Findings {
    /// Reports a key with a wrong number of parts; true if it is right.
    pub(super) fn key_parts(&mut self, table: &hir::Table, given: usize, span: Span) -> bool {
        let wanted = table.keys.len();
        if given != wanted {
            let parts = counted(wanted, "part");
            let headline = format!("the key of `{}` has {parts}, not {given}", table.name);
            let fault = Diagnostic::error("E0503", headline, span, "wrong number of parts");
            self.report(fault.place(table.span, "declared here"));
        }
        given == wanted
    }

    pub(crate) fn constant_columns(&mut self, columns: &[Expr]) -> Option<Vec<u128>> {
        let mut values = Vec::new();
        for column in columns {
            match fold(column) {
                Some(value) => values.push(value),
                None => {
                    if column.ty != Type::Unknown {
                        self.error(
                            "E0208",
                            "this must be a constant",
                            column.span,
                            "entries of the program text are known before any packet",
                        );
                    }
                    return None;
                }
            }
        }
        Some(values)
    }
}

impl Program {
    /// The number of a variant of a table.
    pub(crate) fn variant_named(&self, table: TableId, name: &str) -> Option<usize> {
        match &self.tables.get(table.0)?.value {
            TableValue::Variants(variants) => variants.iter().position(|(variant, _)| variant == name),
            TableValue::Data(_) => None,
        }
    }

    /// The parameters of a variant.
    pub(crate) fn variant_params(&self, table: TableId, variant: usize) -> Vec<Type> {
        match &self.tables[table.0].value {
            TableValue::Variants(variants) => variants[variant].1.iter().map(|(_, ty)| ty.clone()).collect(),
            TableValue::Data(_) => Vec::new(),
        }
    }
}

/// What a table says about its size.
#[derive(Default)]
struct Bounds {
    /// In entries.
    capacity: Option<u32>,
    evict: Option<Eviction>,
}

/// The word with which a property is written, and its place.
fn written(property: &Property, item: &ast::Table) -> (&'static str, Span) {
    match property {
        Property::Capacity(expr) => ("capacity", expr.span),
        Property::Age(expr) => ("age", expr.span),
        Property::Idle(expr) => ("idle", expr.span),
        Property::Evict(name) => ("evict", name.span),
        Property::Choose(name) => ("choose", name.span),
        Property::Answer(name) => ("answer", name.span),
        Property::Counted(counted) => ("counted", counted.span),
        Property::Secret(span) => ("secret", *span),
        Property::Releases(name) => ("releases", name.span),
        Property::Expires(name) => ("expires", name.span),
        Property::From(file) => ("from", file.span),
        Property::Entries(_) => ("entries", item.span),
        Property::Default(expr) => ("default", expr.span),
    }
}

/// How many 64-bit words the columns take if every one is packed after the other.
fn words<'t>(types: impl Iterator<Item = &'t Type>) -> usize {
    types.map(|ty| usize::from(ty.width().unwrap_or(0)).div_ceil(64)).sum()
}
