//! The state of checking by what it is about: names, computed values, the place being checked, limits.

use super::hir::{HeaderId, LayoutId, LocalId, StageId};
use super::likeness::Likeness;
use super::types::{EnumId, Prefix, TableId, Type};
use super::{Context, Function};
use crate::ast;
use ir::source::Span;
use std::collections::{HashMap, HashSet};

/// What the declared names stand for.
#[derive(Default)]
pub(crate) struct Names<'a> {
    pub(crate) constants: HashMap<&'a str, &'a ast::Const>,
    pub(crate) functions: HashMap<&'a str, &'a ast::Function>,
    pub(crate) enums: HashMap<String, EnumId>,
    pub(crate) layouts: HashMap<String, LayoutId>,
    /// Layouts that only tests may name.
    pub(crate) test_layouts: HashMap<String, LayoutId>,
    pub(crate) tables: HashMap<String, TableId>,
    pub(crate) counters: HashMap<String, u32>,
    pub(crate) meters: HashMap<String, u32>,
    pub(crate) registers: HashMap<String, u32>,
    /// Meters, registers and groups that are declared with a number of cells, be it 1: a use of them has an
    /// index.
    pub(crate) indexed: HashSet<String>,
    pub(crate) pools: HashMap<String, u32>,
    pub(crate) groups: HashMap<String, u32>,
    pub(crate) reasons: HashMap<String, Span>,
    /// Reasons that a drop or punt names.
    pub(crate) reasons_used: HashSet<String>,
    pub(crate) stages: HashMap<String, StageId>,
    pub(crate) events: HashMap<String, usize>,
    pub(crate) headers: HashMap<String, HeaderId>,
    /// Header names whose layout is wrong. The declaration was reported, so reads of the header are not.
    pub(crate) broken_headers: HashSet<String>,
}

/// Constants and functions, which are computed when they are first needed; `None` after an error.
#[derive(Default)]
pub(crate) struct Computed {
    pub(crate) constants: HashMap<String, Option<(Type, u128)>>,
    /// Constants that are prefixes.
    pub(crate) prefixes: HashMap<String, Option<Prefix>>,
    pub(crate) functions: HashMap<String, Option<Function>>,
    /// Constants that are being computed. A constant that needs itself is found among them.
    pub(crate) open_constants: HashSet<String>,
    /// Functions that are being computed.
    pub(crate) open_functions: HashSet<String>,
}

/// The place that is being checked: which words mean something there.
#[derive(Default)]
pub(crate) struct Scope {
    pub(crate) context: Context,
    /// Local names, the innermost block last.
    pub(crate) locals: Vec<HashMap<String, LocalId>>,
    /// Headers of the walks that enclose the place, the innermost last.
    pub(crate) walk_headers: Vec<(String, HeaderId)>,
    /// How many walks enclose the place.
    pub(crate) walk_depth: usize,
    /// The header of the decoder that is being checked.
    pub(crate) own_header: Option<HeaderId>,
    /// The layout of that header is wrong.
    pub(crate) own_header_broken: bool,
    /// A pattern names a constant whose value was reported.
    pub(crate) broken_pattern: bool,
    /// The field of a header that is being written in a packet.
    pub(crate) written_field: Option<(LayoutId, usize)>,
}

impl Scope {
    /// Begins a block: the names that it binds end with it.
    pub(crate) fn enter(&mut self) {
        self.locals.push(HashMap::new());
    }

    /// Ends the innermost block.
    pub(crate) fn leave(&mut self) {
        self.locals.pop();
    }

    pub(crate) fn bind(&mut self, name: &str, local: LocalId) {
        if let Some(block) = self.locals.last_mut() {
            block.insert(name.to_string(), local);
        }
    }

    pub(crate) fn find_local(&self, name: &str) -> Option<LocalId> {
        self.locals.iter().rev().find_map(|block| block.get(name).copied())
    }
}

/// The layout that is being defined.
#[derive(Default)]
pub(crate) struct DescribedLayout {
    /// All of its fields, also those behind the field that is being checked.
    pub(crate) fields: HashSet<String>,
    /// The condition of the field whose length is being checked.
    pub(crate) shared_when: Option<ast::Expr>,
    /// By layout and field: the condition under which the field is there.
    pub(crate) conditions: HashMap<(usize, usize), ast::Expr>,
}

/// Tables that do not say how many entries they hold or what they do when they are full.
#[derive(Default)]
pub(crate) struct TableBounds {
    /// By name: whether the capacity is missing, and whether the way to evict is.
    pub(crate) missing: HashMap<String, (bool, bool)>,
    /// Tables that were reported for saying nothing about eviction.
    pub(crate) evict_reported: HashSet<String>,
}

/// What was spent of the limits of a program.
#[derive(Default)]
pub(crate) struct Spent {
    /// Rounds of the loops that enclose the place being checked, multiplied.
    pub(crate) unrolled: u128,
    /// Size of the functions that were written out in the value being checked.
    pub(crate) inlined: usize,
    /// How many expressions enclose the one being checked, through constants and functions.
    pub(crate) depth: usize,
    /// They were once too many.
    pub(crate) too_deep: bool,
    /// What may still be spent on finding names that were meant.
    pub(crate) likeness: Likeness,
}
