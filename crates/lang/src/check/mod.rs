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
pub mod statements;
pub mod tables;
pub mod test_cases;
pub mod types;
mod writes;

use crate::ast;
use crate::diagnostic::{Diagnostic, DiagnosticKind, Findings};
use crate::source::Span;
use crate::testcase::TestCase;
use hir::{HeaderId, LayoutId, LocalId, StageId};
use likeness::Likeness;
use std::collections::{HashMap, HashSet};
use types::{EnumId, TableId, Type};

/// How the values of a type are shown.
pub type Kinds = Box<dyn Fn(&Type) -> crate::ir::ColumnKind>;

/// Checks the files of a program, the main file first: the program, the tests of the main file, what was
/// found, how values are shown.
///
/// `test_layouts` are layouts that only tests may use without importing them.
pub fn check(
    files: &[ast::File],
    test_layouts: &ast::File,
) -> (hir::Program, Vec<TestCase>, Vec<Diagnostic>, Kinds) {
    let mut checker = Checker::default();
    let items: Vec<&ast::Item> = files.iter().flat_map(|file| &file.items).collect();
    checker.declare(&items);
    checker.define_bodies(&items);
    if let Some(main) = files.first() {
        checker.unused_reasons(main);
        checker.unreachable_entries();
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
    pub(crate) shared_when: Option<ast::Expr>,
    pub(crate) field_conditions: HashMap<(usize, usize), ast::Expr>,
    pub(crate) constant_items: HashMap<&'a str, &'a ast::Const>,
    pub(crate) constants: HashMap<String, Option<(Type, u128)>>,
    pub(crate) enum_names: HashMap<String, EnumId>,
    pub(crate) enums: Vec<Enum>,
    pub(crate) layout_names: HashMap<String, LayoutId>,
    pub(crate) test_layout_names: HashMap<String, LayoutId>,
    pub(crate) table_names: HashMap<String, TableId>,
    pub(crate) counter_names: HashMap<String, u32>,
    pub(crate) meter_names: HashMap<String, u32>,
    pub(crate) register_names: HashMap<String, u32>,
    /// Meters, registers and groups that are declared with a number of cells, be it 1: they are used with an
    /// index.
    pub(crate) indexed: HashSet<String>,
    pub(crate) pool_names: HashMap<String, u32>,
    pub(crate) group_names: HashMap<String, u32>,
    /// The colours of meters, where the program has any.
    pub(crate) colours: Option<EnumId>,
    pub(crate) reason_names: HashMap<String, Span>,
    pub(crate) reasons_used: HashSet<String>,
    pub(crate) function_items: HashMap<&'a str, &'a ast::Function>,
    pub(crate) functions: HashMap<String, Option<Function>>,
    pub(crate) stage_names: HashMap<String, StageId>,
    pub(crate) event_names: HashMap<String, usize>,
    pub(crate) header_names: HashMap<String, HeaderId>,
    pub(crate) scopes: Vec<HashMap<String, LocalId>>,
    pub(crate) walk_headers: Vec<(String, HeaderId)>,
    pub(crate) own_header: Option<HeaderId>,
    /// The decoder being checked has a header whose layout is wrong.
    pub(crate) own_header_broken: bool,
    pub(crate) context: Context,
    /// The field of a header that is being written in a packet.
    pub(crate) written_field: Option<(LayoutId, usize)>,
    pub(crate) walk_depth: usize,
    pub(crate) unrolled: u128,
    pub(crate) inlined: usize,
    /// How many expressions enclose the one being checked, through constants and functions.
    pub(crate) depth: usize,
    /// They were once too many.
    pub(crate) too_deep: bool,
    /// Tables without capacity and without a way to evict.
    pub(crate) missing_bounds: HashMap<String, (bool, bool)>,
    /// Tables that were reported for saying nothing about eviction.
    pub(crate) missing_evict: HashSet<String>,
    /// Constants that are being computed: one that needs itself is found among them.
    pub(crate) open_names: HashSet<String>,
    /// The same of functions.
    pub(crate) open_functions: HashSet<String>,
    /// Header names whose layout is wrong; what is read of them was reported where they are declared.
    pub(crate) broken_headers: HashSet<String>,
    /// What may still be spent on finding names that were meant.
    pub(crate) likeness: Likeness,
    /// Fields of the layout being described, also those that stand behind.
    pub(crate) layout_fields: HashSet<String>,
}

impl Checker<'_> {
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
        self.report(Diagnostic::error(code, headline, span, label));
    }

    /// Reports a use of a packet where there is none.
    pub(crate) fn no_packet(&mut self, span: Span, label: String) {
        if matches!(self.context, Context::Constant | Context::Layout(_)) {
            return self.error("E0208", "this must be a constant", span, label);
        }
        let place = if self.context == Context::Function {
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
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.text.clone(), local);
        }
        local
    }

    pub(crate) fn find_local(&self, name: &str) -> Option<LocalId> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name).copied())
    }

    pub(crate) fn find_header(&self, name: &str) -> Option<HeaderId> {
        let walked = self.walk_headers.iter().rev().find(|(text, _)| text == name).map(|&(_, header)| header);
        let own = self.own_header.filter(|header| self.program.headers[header.0].name == name);
        walked.or(own).or_else(|| self.header_names.get(name).copied())
    }

    /// How many names may be looked at for one that was meant: none where the fault is not told or too many
    /// were looked at before.
    pub(crate) fn candidates(&self) -> usize {
        if self.diagnostics.is_full() { 0 } else { self.likeness.left() }
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
            most => self.likeness.suggest(diagnostic, name, known.take(most)),
        };
        self.report(diagnostic);
    }

    /// Reports that no layout has this name.
    pub(crate) fn unknown_layout(&mut self, name: &ast::Name) {
        let known: Vec<String> = self.layout_names.keys().take(self.candidates()).cloned().collect();
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
