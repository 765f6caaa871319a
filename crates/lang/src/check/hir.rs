//! The checked program: names resolved, types known, constants computed. What is left to prove depends on
//! paths and is proven while lowering.

mod expression;
mod layout;
mod statement;

use super::types::{TableId, Type};
use crate::policy_model::CheckedPolicy;
use ir::source::Span;
use ir::{Answer, Entry, EntryFile, TableKind};

pub use expression::{Arm, Expr, ExprKind, Pattern};
pub use layout::{Checksum, ConditionalSize, Field, GoverningStep, Group, Layout, Next, Pseudo};
pub use statement::{
    Block, Carrier, Edit, KeyPart, Lead, Made, MadeField, Place, Placement, Stmt, StmtKind, Tail, TailFrom,
    Write,
};

/// Index of a local: a parameter, `let`, `var`, loop variable or a name in a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalId(pub usize);

/// Index of a header name in the program: each stands for one layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeaderId(pub usize);

/// Index of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayoutId(pub usize);

/// Index of a stage or decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StageId(pub usize);

/// A checked program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Layouts.
    pub layouts: Vec<Layout>,
    /// So many of them belong to the program; the rest are for tests.
    pub visible_layouts: usize,
    /// Header names with their layout.
    pub headers: Vec<Header>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Counters.
    pub counters: Vec<ir::Counter>,
    /// Meters.
    pub meters: Vec<ir::Meter>,
    /// Registers with the types of their cells.
    pub registers: Vec<(ir::Register, Type)>,
    /// Pools with the types of their items.
    pub pools: Vec<(ir::Pool, Vec<Type>)>,
    /// Groups with the types of their members.
    pub groups: Vec<(ir::Group, Vec<Type>)>,
    /// Policies, as what they decide.
    pub policies: Vec<CheckedPolicy>,
    /// Reasons the program declares, with help.
    pub reasons: Vec<(String, String)>,
    /// Stages and decoders.
    pub stages: Vec<Stage>,
    /// The stage packets begin in.
    pub start: Option<StageId>,
    /// Events.
    pub events: Vec<Event>,
    /// Periodic handlers: period in nanoseconds, what is done.
    pub every: Vec<(u64, Block)>,
    /// All locals.
    pub locals: Vec<Local>,
    /// The word `from_host` stands in a stage that packets reach; or the program steers, so that ports of
    /// packets are read without the mark of the machine's packets.
    pub names_host: bool,
}

impl Program {
    /// The layout of a header. Headers that the program does not name are numbered behind those it does, in
    /// the order of layouts.
    pub fn layout(&self, header: HeaderId) -> &Layout {
        match self.headers.get(header.0) {
            Some(header) => &self.layouts[header.layout.0],
            None => &self.layouts[header.0 - self.headers.len()],
        }
    }

    /// The index of the layout with this name.
    pub fn layout_named(&self, name: &str) -> Option<usize> {
        self.layouts.iter().position(|layout| layout.name == name)
    }

    /// The name of a header; one without a name is called like its layout.
    pub fn header_name(&self, header: HeaderId) -> &str {
        self.headers.get(header.0).map_or(&self.layout(header).name, |header| &header.name)
    }

    /// The types of locals.
    pub fn types_of(&self, locals: &[LocalId]) -> Vec<Type> {
        locals.iter().map(|local| self.locals[local.0].ty.clone()).collect()
    }

    /// Makes a header of a layout known by a name.
    pub(crate) fn new_header(&mut self, name: &crate::ast::Name, layout: LayoutId) -> HeaderId {
        self.headers.push(Header { name: name.text.clone(), layout });
        HeaderId(self.headers.len() - 1)
    }

    /// A stage decodes the header.
    pub fn is_decoded(&self, header: HeaderId) -> bool {
        self.stages.iter().any(|stage| stage.header == Some(header))
    }
}

/// A local.
#[derive(Clone, Debug)]
pub struct Local {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Declared by `var`.
    pub mutable: bool,
}

/// A header name.
#[derive(Clone, Debug)]
pub struct Header {
    /// The name.
    pub name: String,
    /// Its layout.
    pub layout: LayoutId,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// As the IR holds it.
    pub kind: TableKind,
    /// Types of its key with names; none where bytes are searched.
    pub keys: Vec<(String, Type)>,
    /// What an entry holds.
    pub value: TableValue,
    /// As the IR holds it.
    pub capacity: u32,
    /// Nanoseconds.
    pub idle: Option<u64>,
    /// Nanoseconds.
    pub age: Option<u64>,
    /// As the IR holds it.
    pub evict: ir::Eviction,
    /// As the IR holds it.
    pub counted: bool,
    /// As the IR holds it.
    pub times: bool,
    /// As the IR holds it.
    pub secret: bool,
    /// The pool that gets an entry's value back.
    pub releases: Option<u32>,
    /// The event that an entry whose time is up raises.
    pub expires: Option<u32>,
    /// The file with further entries.
    pub file: Option<EntryFile>,
    /// Initial entries.
    pub entries: Vec<Entry>,
    /// The places of the initial entries.
    pub entry_spans: Vec<Span>,
    /// Initial default entry.
    pub default: Option<Vec<u128>>,
    /// Its declaration.
    pub span: Span,
}

/// What an entry holds.
#[derive(Clone, Debug)]
pub enum TableValue {
    /// Columns; none for a set.
    Data(Vec<Type>),
    /// One of these: name and types of its parameters. Columns: the number of the variant (8 bits), then
    /// every variant's parameters.
    Variants(Vec<(String, Vec<(String, Type)>)>),
}

impl Table {
    /// The type of what a lookup gives.
    pub fn answer_type(&self, id: TableId) -> Type {
        match self.kind {
            TableKind::Patterns(Answer::All) => Type::Uint(32),
            TableKind::Patterns(Answer::Set) => Type::Uint(128),
            _ => Type::Option(Box::new(self.entry_type(id))),
        }
    }

    /// The type of an entry.
    pub fn entry_type(&self, id: TableId) -> Type {
        match &self.value {
            TableValue::Data(types) if types.len() == 1 => types[0].clone(),
            TableValue::Data(types) => Type::Tuple(types.clone()),
            TableValue::Variants(_) => Type::Variants(id, self.name.clone()),
        }
    }

    /// The types of the value's columns.
    pub fn value_columns(&self) -> Vec<(String, Type)> {
        match &self.value {
            TableValue::Data(types) => types.iter().map(|ty| (String::new(), ty.clone())).collect(),
            TableValue::Variants(variants) => {
                let mut columns = vec![("variant".to_string(), Type::Uint(8))];
                for (variant, params) in variants {
                    columns.extend(params.iter().map(|(name, ty)| (format!("{variant}.{name}"), ty.clone())));
                }
                columns
            }
        }
    }

    /// Whether it holds the rules of a policy: no declaration has a dot in its name.
    pub fn is_of_policy(&self) -> bool {
        self.name.contains('.')
    }

    /// The first value column of a variant's parameters.
    pub fn variant_column(&self, variant: usize) -> usize {
        match &self.value {
            TableValue::Data(_) => 0,
            TableValue::Variants(variants) => {
                1 + variants[..variant].iter().map(|(_, params)| params.len()).sum::<usize>()
            }
        }
    }
}

/// A stage or decoder.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// The place of its name.
    pub name_span: Span,
    /// For a decoder: the header it decodes.
    pub header: Option<HeaderId>,
    /// Parameters.
    pub params: Vec<LocalId>,
    /// How often a packet may pass.
    pub cap: Option<u32>,
    /// Headers it says it needs.
    pub requires: Vec<(HeaderId, Span)>,
    /// What it does.
    pub body: Block,
    /// Its declaration.
    pub span: Span,
}

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// The place of its name.
    pub span: Span,
    /// Its arguments.
    pub params: Vec<LocalId>,
    /// What happens.
    pub body: Block,
}
