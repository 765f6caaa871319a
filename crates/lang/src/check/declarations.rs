//! Declarations: first every name gets its number, then what stands behind the names is defined.

use super::hir::{self, HeaderId, LayoutId, StageId};
use super::meant::HeaderUse;
use super::state::Scope;
use super::types::{EnumId, TableId, Type};
use super::{Checker, Context, Enum};
use crate::ast::{self, Item, Name};
use crate::diagnostic::{Diagnostic, DiagnosticKind, Findings};
use ir::limits::MOST_ARGUMENTS;
use ir::source::Span;
use std::collections::HashMap;

impl<'a> Checker<'a> {
    /// Gives every declared name its number and reports names declared twice.
    pub(crate) fn declare(&mut self, items: &[&'a Item]) {
        let fresh = self.diagnostics.declared_once(items);
        for &item in &fresh {
            match item {
                Item::Const(item) => {
                    self.names.constants.insert(&item.name.text, item);
                }
                Item::Function(item) => {
                    self.names.functions.insert(&item.name.text, item);
                }
                Item::Reason(item) => {
                    self.names.reasons.insert(item.name.text.clone(), item.name.span);
                    self.program.reasons.push((item.name.text.clone(), item.help.clone()));
                }
                _ => {}
            }
        }
        if fresh.iter().any(|item| matches!(item, Item::Meter(_))) {
            self.declare_colours();
        }
        for &item in &fresh {
            if let Item::Enum(item) = item {
                self.define_enum(item);
            }
        }
        self.define_layouts(&fresh);
        for &item in &fresh {
            match item {
                Item::Meter(item) => self.define_meter(item),
                Item::Register(item) => self.define_register(item),
                Item::Pool(item) => self.define_pool(item),
                Item::Group(item) => self.define_group(item),
                _ => {}
            }
        }
        for &item in &fresh {
            match item {
                Item::Counter(item) => self.define_counter(item),
                Item::Table(item) => {
                    self.names.tables.insert(item.name.text.clone(), TableId(self.program.tables.len()));
                    let table = self.define_table(item);
                    self.program.tables.push(table);
                }
                Item::Stage(item) => self.declare_stage(item),
                Item::Event(item) => self.declare_event(item),
                _ => {}
            }
        }
        self.define_expiry(&fresh);
        for &item in &fresh {
            if let Item::Policy(item) = item {
                self.define_policy(item);
            }
        }
    }

    /// Gives each table the event that its entries raise when their time is up.
    fn define_expiry(&mut self, items: &[&'a Item]) {
        for &item in items {
            let Item::Table(item) = item else { continue };
            for property in &item.properties {
                if let ast::Property::Expires(event) = property {
                    let table = self.names.tables[&item.name.text];
                    self.program.tables[table.0].expires = self.expiry_event(table, event);
                }
            }
        }
    }

    /// Defines the layouts; all of their names are known before, as layouts name each other.
    fn define_layouts(&mut self, items: &[&'a Item]) {
        let layouts: Vec<&ast::Layout> = items
            .iter()
            .filter_map(|item| if let Item::Layout(layout) = item { Some(layout) } else { None })
            .collect();
        for (index, layout) in layouts.iter().enumerate() {
            self.names.layouts.insert(layout.name.text.clone(), LayoutId(index));
        }
        for layout in layouts {
            let layout = self.define_layout(layout);
            self.program.layouts.push(layout);
        }
    }

    fn declare_event(&mut self, item: &'a ast::Event) {
        if let Some(beyond) = item.params.get(MOST_ARGUMENTS) {
            self.error(
                "E0530",
                format!("an event has at most {MOST_ARGUMENTS} arguments"),
                beyond.name.span,
                "no room is left for this",
            );
        }
        let params = self.declare_params(&item.params);
        self.names.events.insert(item.name.text.clone(), self.program.events.len());
        self.program.events.push(hir::Event {
            name: item.name.text.clone(),
            span: item.name.span,
            params,
            body: hir::Block::default(),
        });
    }

    /// Adds layouts that only tests may name, behind those of the program.
    pub(crate) fn declare_test_layouts(&mut self, file: &'a ast::File) {
        self.program.visible_layouts = self.program.layouts.len();
        for item in &file.items {
            if let Item::Layout(item) = item
                && !self.names.layouts.contains_key(&item.name.text)
            {
                self.names.test_layouts.insert(item.name.text.clone(), LayoutId(self.program.layouts.len()));
                let layout = self.define_layout(item);
                self.program.layouts.push(layout);
            }
        }
    }

    /// Checks what stands in stages, events and periodic handlers, and the constants and functions that
    /// nothing used.
    pub(crate) fn define_bodies(&mut self, items: &[&'a Item]) {
        let mut done_stages = vec![false; self.program.stages.len()];
        let mut done_events = vec![false; self.program.events.len()];
        for &item in items {
            match item {
                Item::Const(item) if self.is_prefix_constant(&item.name.text) => {
                    self.prefix_constant(&item.name.text);
                }
                Item::Const(item) => {
                    self.constant_named(&item.name.text);
                }
                Item::Function(item) => {
                    self.function_named(&item.name.text);
                }
                Item::Stage(item) => {
                    let id = self.names.stages[&item.name.text];
                    if !std::mem::replace(&mut done_stages[id.0], true) {
                        self.define_stage(item, id);
                    }
                }
                Item::Event(item) => {
                    let id = self.names.events[&item.name.text];
                    if !std::mem::replace(&mut done_events[id], true) {
                        let params = self.program.events[id].params.clone();
                        self.program.events[id].body = self.handler_body(&item.body, &params);
                    }
                }
                Item::Every(item) => {
                    self.diagnostics.check_unit(&item.period);
                    let period = self.constant(&item.period, &Type::Time).unwrap_or(1) as u64;
                    if period == 0 {
                        self.error(
                            "E0601",
                            "the period of `every` is zero",
                            item.period.span,
                            "must be longer than zero",
                        );
                    }
                    let body = self.handler_body(&item.body, &[]);
                    self.program.every.push((period.max(1), body));
                }
                _ => {}
            }
        }
    }

    /// Warns of reasons of the main file that no drop or punt names.
    pub(crate) fn unused_reasons(&mut self, main: &'a ast::File) {
        for item in &main.items {
            if let Item::Reason(item) = item
                && !self.names.reasons_used.contains(&item.name.text)
            {
                let warning = Diagnostic::warning(
                    "W0408",
                    format!("nothing is dropped or punted for `{}`", item.name.text),
                    item.name.span,
                    "declared here and never named",
                );
                self.report(warning.of_kind(DiagnosticKind::Unused));
            }
        }
    }

    fn define_enum(&mut self, item: &ast::Enum) {
        let ty = self.resolve_type(&item.ty);
        let width = match ty {
            Type::Uint(width) => width,
            _ => {
                self.error(
                    "E0200",
                    "an enum stands on an unsigned integer",
                    item.ty.span,
                    format!("this is {ty}"),
                );
                16
            }
        };
        let mut members: Vec<(String, u128)> = Vec::new();
        for (name, value) in &item.members {
            let value = self.constant(value, &Type::Uint(width)).unwrap_or(0);
            if let Some((twin, _)) =
                members.iter().find(|(other, known)| *known == value && *other != name.text)
            {
                let twin = twin.clone();
                self.error(
                    "E0107",
                    format!("`{twin}` and `{}` stand for one value", name.text),
                    name.span,
                    format!("{value} is `{twin}` already"),
                );
            }
            if members.iter().any(|(other, _)| *other == name.text) {
                self.diagnostics.declared_twice("member", name, None);
            }
            members.push((name.text.clone(), value));
        }
        self.names.enums.insert(item.name.text.clone(), EnumId(self.enums.len()));
        self.enums.push(Enum { name: item.name.text.clone(), width, members });
    }

    fn define_counter(&mut self, item: &ast::Counter) {
        let cells =
            |expr| self.number_within(expr, 1..=1 << 20, "E0501", "a counter has 1 to 1,048,576 cells");
        let size = item.size.as_ref().and_then(cells).unwrap_or(1);
        self.names.counters.insert(item.name.text.clone(), self.program.counters.len() as u32);
        self.program.counters.push(ir::Counter {
            name: item.name.text.clone(),
            size,
            indexed: item.size.is_some(),
        });
    }

    fn declare_params(&mut self, params: &[ast::Param]) -> Vec<hir::LocalId> {
        let mut locals = Vec::new();
        for (index, param) in params.iter().enumerate() {
            let ty = self.resolve_type(&param.ty);
            if params[..index].iter().any(|other| other.name.text == param.name.text) {
                self.diagnostics.declared_twice("parameter", &param.name, None);
            }
            locals.push(self.new_local(&param.name.text, ty, false));
        }
        locals
    }

    fn declare_stage(&mut self, item: &'a ast::Stage) {
        let id = StageId(self.program.stages.len());
        let header = item.header.as_ref().and_then(|(name, layout)| self.declare_header(name, layout));
        let params = self.declare_params(&item.params);
        if item.start {
            if !params.is_empty() {
                self.error(
                    "E0206",
                    "the start takes no parameters",
                    item.name.span,
                    "nothing hands values to it",
                );
            }
            if let Some(first) = self.program.start {
                let first = self.program.stages[first.0].name_span;
                let (headline, label) = if self.steering {
                    ("packets are steered from one decoder or stage", "a second one")
                } else {
                    ("a program has one start", "a second start")
                };
                self.report(
                    Diagnostic::error("E0402", headline, item.name.span, label)
                        .place(first, if self.steering { "the first one" } else { "the first start" }),
                );
            } else {
                self.program.start = Some(id);
            }
        }
        let cap = item.cap.as_ref().map(|expr| {
            self.number_within(expr, 1..=1 << 16, "E0502", "a cap lies between 1 and 65,536").unwrap_or(1)
        });
        self.names.stages.insert(item.name.text.clone(), id);
        self.program.stages.push(hir::Stage {
            name: item.name.text.clone(),
            name_span: item.name.span,
            header,
            params,
            cap,
            requires: Vec::new(),
            body: hir::Block::default(),
            span: item.span,
        });
    }

    fn declare_header(&mut self, name: &Name, layout: &Name) -> Option<HeaderId> {
        let Some(layout_id) = self.layout_named(layout) else {
            self.names.broken_headers.insert(name.text.clone());
            return None;
        };
        if let Some(&header) = self.names.headers.get(&name.text) {
            let other = self.program.headers[header.0].layout;
            if other != layout_id {
                let other = self.program.layouts[other.0].name.clone();
                self.report(
                    Diagnostic::error(
                        "E0414",
                        format!("the header name `{}` stands for two layouts", name.text),
                        name.span,
                        format!("here for {}, elsewhere for {other}", layout.text),
                    )
                    .help("give the headers different names: later stages know a header by its name"),
                );
                // Within its own decoder the name means this layout, so that nothing there is reported
                // besides.
                return Some(self.program.new_header(name, layout_id));
            }
            return Some(header);
        }
        let header = self.program.new_header(name, layout_id);
        self.names.headers.insert(name.text.clone(), header);
        Some(header)
    }

    fn define_stage(&mut self, item: &'a ast::Stage, id: StageId) {
        self.scope.context = Context::Packet;
        let (params, header) = (self.program.stages[id.0].params.clone(), self.program.stages[id.0].header);
        self.scope.bind_all(&self.program, &params);
        self.scope.own_header = header;
        self.scope.own_header_broken = item.header.is_some() && header.is_none();
        self.spent.unrolled = 1;
        let mut requires = Vec::new();
        for name in &item.requires {
            match self.names.headers.get(&name.text) {
                Some(&header) => requires.push((header, name.span)),
                None if self.names.broken_headers.contains(&name.text) => {}
                None => {
                    self.unknown_header(HeaderUse::Header, &name.text, None, name.span);
                }
            }
        }
        let body = self.block(&item.body);
        if !body.ends {
            let Span { file, end, .. } = item.body.span;
            let end = Span::new(file, end.saturating_sub(1), end);
            self.report(
                Diagnostic::error(
                    "E0403",
                    format!("a packet can reach the end of `{}` without a verdict", item.name.text),
                    end,
                    "nothing says what becomes of it here",
                )
                .place(item.name.span, "it comes in here")
                .help("end every path with send, flood, multicast, drop, punt, recirculate or goto"),
            );
        }
        self.program.stages[id.0].requires = requires;
        self.program.stages[id.0].body = body;
        self.scope.own_header = None;
        self.scope.locals.clear();
        self.scope.context = Context::Constant;
    }

    fn handler_body(&mut self, body: &'a ast::Block, params: &[hir::LocalId]) -> hir::Block {
        self.scope.context = Context::Handler;
        self.spent.unrolled = 1;
        self.scope.bind_all(&self.program, params);
        let body = self.block(body);
        self.scope.locals.clear();
        self.scope.context = Context::Constant;
        body
    }

    /// The type behind its text.
    pub(crate) fn resolve_type(&mut self, ty: &ast::Type) -> Type {
        match &ty.kind {
            ast::TypeKind::Uint(width @ 1..=128) => Type::Uint(*width as u8),
            // Other widths were reported where they were read.
            ast::TypeKind::Uint(_) => Type::Unknown,
            ast::TypeKind::Named(name) => match name.as_str() {
                "bool" => Type::Bool,
                "ip4" => Type::Ip4,
                "ip6" => Type::Ip6,
                "mac" => Type::Mac,
                "port" => Type::Port,
                "time" => Type::Time,
                "prefix4" | "prefix6" => {
                    self.error("E0209", "a prefix is no value", ty.span, "only constants have this type");
                    Type::Unknown
                }
                _ => match self.names.enums.get(name) {
                    Some(&id) => Type::Enum(id, name.clone(), self.enums[id.0].width),
                    None => {
                        let words = ["bool", "ip4", "ip6", "mac", "port", "time", "u8", "u16", "u32", "u64"];
                        let mut known: Vec<String> = words.iter().map(|word| word.to_string()).collect();
                        let enums = self.names.enums.keys().take(self.candidates());
                        if self.spent.likeness.nearest(name, enums.map(String::as_str)).is_some() {
                            known.extend(self.names.enums.keys().cloned());
                        }
                        self.unknown("type", name, ty.span, known.iter().map(String::as_str));
                        Type::Unknown
                    }
                },
            },
        }
    }
}

impl Findings {
    /// The items without those whose name another item of their sort has; reports these. Of a module and the
    /// main file the module's counts, since the rest of the module is written for it.
    fn declared_once<'a>(&mut self, items: &[&'a Item]) -> Vec<&'a Item> {
        let main = ir::source::FileId::default();
        let mut seen: HashMap<(&'static str, &str), (&Name, usize)> = HashMap::new();
        let mut fresh = Vec::new();
        for &item in items {
            let Some((kind, name)) = item.declared() else {
                fresh.push(item);
                continue;
            };
            match seen.get_mut(&(kind, name.text.as_str())) {
                Some((first, at)) if first.span.file == main && name.span.file != main => {
                    self.declared_by_module(kind, first, name.span);
                    (*first, fresh[*at]) = (name, item);
                }
                Some((first, _)) => self.declared_twice(kind, name, Some(first.span)),
                None => {
                    seen.insert((kind, &name.text), (name, fresh.len()));
                    fresh.push(item);
                }
            }
        }
        fresh
    }

    /// Reports a name of the main file that a module declares.
    fn declared_by_module(&mut self, what: &str, name: &Name, module: Span) {
        let headline = format!("the {what} `{}` is declared twice", name.text);
        let fault = Diagnostic::error("E0101", headline, name.span, "a module has this name, too");
        self.report(fault.place(module, "declared here").help("give the declaration here another name"));
    }

    /// Reports what is given again.
    pub(super) fn given_twice(&mut self, headline: String, span: Span) {
        self.error("E0101", headline, span, "given again here");
    }

    /// Reports a name that is declared again.
    pub(super) fn declared_twice(&mut self, what: &str, name: &Name, first: Option<Span>) {
        let headline = format!("the {what} `{}` is declared twice", name.text);
        let fault = Diagnostic::error("E0101", headline, name.span, "declared again here");
        self.report(match first {
            Some(first) => fault.place(first, "declared first here"),
            None => fault,
        });
    }
}

impl Scope {
    /// Begins a body with its parameters.
    fn bind_all(&mut self, program: &hir::Program, params: &[hir::LocalId]) {
        let named = |local: &hir::LocalId| (program.locals[local.0].name.clone(), *local);
        self.locals = vec![params.iter().map(named).collect()];
    }
}

/// How values of a type are shown.
pub(crate) fn kind_of(enums: &[Enum], ty: &Type) -> ir::ColumnKind {
    use ir::ColumnKind;
    match ty {
        Type::Bool => ColumnKind::Bool,
        Type::Ip4 => ColumnKind::Ip4,
        Type::Ip6 => ColumnKind::Ip6,
        Type::Mac => ColumnKind::Mac,
        Type::Port => ColumnKind::Port,
        Type::Time => ColumnKind::Time,
        Type::Enum(id, ..) => ColumnKind::Names(
            enums[id.0].members.iter().map(|(name, value)| (*value, name.clone())).collect(),
        ),
        _ => ColumnKind::Uint,
    }
}
