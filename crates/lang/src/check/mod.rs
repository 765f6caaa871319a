//! From syntax trees to a checked program: names, types, widths, layouts, tables. Reports every independent
//! fault of a program.

pub mod constants;
mod coverage;
pub mod covered;
pub mod declarations;
mod edit;
pub mod entries;
pub mod expressions;
pub mod hir;
pub mod hygiene;
pub mod layouts;
pub mod likeness;
mod meant;
mod memory;
pub mod operators;
pub mod packets;
mod patterns;
pub(crate) mod policies;
mod prefixes;
mod state;
pub mod statements;
pub mod tables;
pub mod test_cases;
pub mod types;
mod writes;

use crate::ast;
use crate::diagnostic::{Diagnostic, DiagnosticKind, Findings};
use crate::flow::host;
use crate::rules_file::RulesFileReader;
use crate::testcase::TestCase;
use hir::{HeaderId, LayoutId, LocalId};
use ir::source::Span;
use state::{Computed, DescribedLayout, Names, Scope, Spent, TableBounds};
use std::collections::HashMap;
use types::{EnumId, Type};

/// How the values of a type are shown.
pub type Kinds = Box<dyn Fn(&Type) -> ir::ColumnKind>;

/// Checks the files of a program, the main file first: the program, the tests of the main file, what was
/// found, how values are shown.
///
/// `test_layouts` are layouts that only tests may use without importing them; `rules_reader` reads the files
/// that policies take their rules from.
pub fn check(
    files: &[ast::File],
    test_layouts: &ast::File,
    rules_reader: Option<RulesFileReader>,
) -> (hir::Program, Vec<TestCase>, Vec<Diagnostic>, Kinds) {
    let mut checker = Checker { rules_reader, ..Checker::default() };
    let items: Vec<&ast::Item> = files.iter().flat_map(|file| &file.items).collect();
    checker.steering = items.iter().any(|item| matches!(item, ast::Item::Stage(it) if it.start && it.steers));
    // Packets of the machine are steered, too: their port is read without the mark.
    checker.program.names_host = checker.steering;
    checker.declare(&items);
    checker.define_bodies(&items);
    if let Some(main) = files.first() {
        checker.unused_reasons(main);
        checker.unreachable_entries();
    }
    if checker.program.names_host && !checker.steering && !checker.failed() {
        checker.program.names_host = host::asks_host(&checker.program);
    }
    checker.declare_test_layouts(test_layouts);
    let tests = match files.first() {
        Some(main) if !checker.failed() => checker.tests(main),
        _ => Vec::new(),
    };
    let enums = std::mem::take(&mut checker.enums);
    let kinds = Box::new(move |ty: &Type| declarations::kind_of(&enums, ty));
    (checker.program, tests, checker.diagnostics.into_list(), kinds)
}

/// Where the checker stands: decides which words mean something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Context {
    /// Only constants.
    #[default]
    Constant,
    /// In a stage or decoder.
    Packet,
    /// In an event or periodic handler.
    Handler,
    /// In a function.
    Function,
    /// In the description of a layout.
    Layout(LayoutId),
}

/// An enum.
#[derive(Clone, Debug)]
pub(crate) struct Enum {
    pub(crate) name: String,
    pub(crate) width: u8,
    pub(crate) members: Vec<(String, u128)>,
}

/// A function: checked when it is first needed.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) params: Vec<LocalId>,
    pub(crate) result: Type,
    pub(crate) value: hir::Expr,
    pub(crate) size: usize,
}

/// The state of checking.
#[derive(Default)]
pub(crate) struct Checker<'a> {
    pub(crate) program: hir::Program,
    pub(crate) diagnostics: Findings,
    pub(crate) enums: Vec<Enum>,
    /// The colours of meters, where the program has any.
    pub(crate) colours: Option<EnumId>,
    pub(crate) names: Names<'a>,
    pub(crate) computed: Computed,
    pub(crate) scope: Scope,
    pub(crate) described: DescribedLayout,
    pub(crate) bounds: TableBounds,
    pub(crate) spent: Spent,
    /// The program says where packets are steered.
    pub(crate) steering: bool,
    pub(crate) rules_reader: Option<RulesFileReader>,
}

impl<'a> Checker<'a> {
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.report(diagnostic);
    }

    pub(crate) fn error(
        &mut self,
        code: &'static str,
        headline: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) {
        self.diagnostics.error(code, headline, span, label);
    }

    /// Reports a use of a packet where there is none.
    pub(crate) fn no_packet(&mut self, span: Span, label: String) {
        if matches!(self.scope.context, Context::Constant | Context::Layout(_)) {
            return self.error("E0208", "this must be a constant", span, label);
        }
        let place = if self.scope.context == Context::Function {
            "in a function"
        } else {
            "in an event or periodic handler"
        };
        self.report(
            Diagnostic::error("E0415", format!("there is no packet {place}"), span, label)
                .help("hand over what is needed as an argument"),
        );
    }

    pub(crate) fn failed(&self) -> bool {
        self.diagnostics.failed()
    }

    pub(crate) fn new_local(&mut self, name: &str, ty: Type, mutable: bool) -> LocalId {
        self.program.locals.push(hir::Local { name: name.to_string(), ty, mutable });
        LocalId(self.program.locals.len() - 1)
    }

    pub(crate) fn bind_local(&mut self, name: &ast::Name, ty: Type, mutable: bool) -> LocalId {
        let local = self.new_local(&name.text, ty, mutable);
        self.scope.bind(&name.text, local);
        local
    }

    pub(crate) fn find_header(&self, name: &str) -> Option<HeaderId> {
        let walked =
            self.scope.walk_headers.iter().rev().find(|(text, _)| text == name).map(|&(_, header)| header);
        let own = self.scope.own_header.filter(|header| self.program.headers[header.0].name == name);
        walked.or(own).or_else(|| self.names.headers.get(name).copied())
    }

    /// How many names may be looked at for one that was meant: none where the fault is not told or too many
    /// were looked at before.
    pub(crate) fn candidates(&self) -> usize {
        if self.diagnostics.is_full() { 0 } else { self.spent.likeness.left() }
    }

    /// What a name stands for; reports a name that nothing of its sort has.
    pub(crate) fn named<T: Copy>(
        &mut self,
        what: &str,
        name: &ast::Name,
        sort: impl for<'n> Fn(&'n Names<'a>) -> &'n HashMap<String, T>,
    ) -> Option<T> {
        let found = sort(&self.names).get(&name.text).copied();
        if found.is_none() {
            let known: Vec<String> = sort(&self.names).keys().take(self.candidates()).cloned().collect();
            self.unknown(what, &name.text, name.span, known.iter().map(String::as_str));
        }
        found
    }

    /// The index of a field in its layout; reports a name that no field has.
    pub(crate) fn field_named(&mut self, layout: LayoutId, name: &ast::Name) -> Option<usize> {
        let layout = &self.program.layouts[layout.0];
        let found = layout.field_named(&name.text);
        if found.is_none() {
            let known = layout.fields.iter().map(|field| field.name.clone());
            let known: Vec<String> = known.take(self.candidates()).collect();
            let what = format!("field of {}", layout.name);
            self.unknown(&what, &name.text, name.span, known.iter().map(String::as_str));
        }
        found
    }

    /// Reports a name that nothing has, with the nearest one that something has.
    pub(crate) fn unknown<'n>(
        &mut self,
        what: &str,
        name: &str,
        span: Span,
        known: impl Iterator<Item = &'n str>,
    ) {
        let diagnostic = unknown_name(what, name, span, format!("no {what} has this name"));
        self.report_unknown(diagnostic, name, known);
    }

    /// Reports a name that nothing has, with what it is like.
    fn report_unknown<'n>(
        &mut self,
        diagnostic: Diagnostic,
        name: &str,
        known: impl Iterator<Item = &'n str>,
    ) {
        let diagnostic = match self.candidates() {
            0 => diagnostic,
            most => self.spent.likeness.suggest(diagnostic, name, known.take(most)),
        };
        self.report(diagnostic);
    }

    /// A layout by its name; reports unknown ones.
    pub(crate) fn layout_named(&mut self, name: &ast::Name) -> Option<LayoutId> {
        let found = self.names.layouts.get(&name.text).copied();
        if found.is_none() {
            self.unknown_layout(name);
        }
        found
    }

    /// Reports that no layout has this name.
    pub(crate) fn unknown_layout(&mut self, name: &ast::Name) {
        let known: Vec<String> = self.names.layouts.keys().take(self.candidates()).cloned().collect();
        let diagnostic = unknown_name("layout", &name.text, name.span, "no layout has this name");
        let diagnostic = diagnostic.of_kind(DiagnosticKind::UnknownLayout);
        self.report_unknown(diagnostic, &name.text, known.iter().map(String::as_str));
    }
}

/// The diagnostic of a name that nothing of its sort has.
fn unknown_name(what: &str, name: &str, span: Span, label: impl Into<String>) -> Diagnostic {
    Diagnostic::error("E0100", format!("there is no {what} `{name}`"), span, label)
        .of_kind(DiagnosticKind::UnknownName)
}

/// `1 value`, `2 values`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
