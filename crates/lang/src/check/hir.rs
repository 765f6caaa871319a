//! The checked program: names resolved, types known, constants computed. What is left to prove depends on
//! paths and is proven while lowering.

use super::types::{TableId, Type};
use crate::ir::{Answer, Entry, EntryFile, Match, TableKind};
use crate::source::Span;

/// Index of a local: a parameter, `let`, `var`, loop variable or a name in a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalId(pub usize);

/// Index of a header name in the program: each stands for one layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeaderId(pub usize);

/// Index of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    pub counters: Vec<crate::ir::Counter>,
    /// Meters.
    pub meters: Vec<crate::ir::Meter>,
    /// Registers with the types of their cells.
    pub registers: Vec<(crate::ir::Register, Type)>,
    /// Pools with the types of their items.
    pub pools: Vec<(crate::ir::Pool, Vec<Type>)>,
    /// Groups with the types of their members.
    pub groups: Vec<(crate::ir::Group, Vec<Type>)>,
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

/// A layout with computed places.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Its name.
    pub name: String,
    /// Its fields.
    pub fields: Vec<Field>,
    /// Runs of fields: each begins where its predecessor ends.
    pub groups: Vec<Group>,
    /// What follows.
    pub next: Option<Next>,
    /// The field that holds a checksum.
    pub checksum: Option<Checksum>,
    /// What checksums of headers behind cover of this one.
    pub pseudo: Option<Pseudo>,
    /// Size of the smallest header in bytes.
    pub smallest: u32,
    /// Its declaration.
    pub span: Span,
}

/// The checksum of a header: 16 bits at an even byte of the header's first run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// Index of the field.
    pub field: usize,
    /// Bytes of the header before it.
    pub offset: u32,
    /// It covers what a header before this one says in its `pseudo`.
    pub pseudo: bool,
    /// It covers all that follows the header.
    pub payload: bool,
    /// Zero says that there is none.
    pub unless_zero: bool,
}

/// What checksums of headers behind one cover of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pseudo {
    /// Indexes of fields: whole bytes, an even number of them, always there.
    pub fields: Vec<usize>,
    /// The number that announces the header behind.
    pub kind: bool,
    /// The number of bytes from that header on.
    pub length: bool,
}

/// A run of fields of a layout.
#[derive(Clone, Debug)]
pub enum Group {
    /// Always so many bytes; these fields lie at fixed bits from its start.
    Fixed {
        /// Its size.
        bytes: u32,
        /// Indexes of its fields.
        fields: Vec<usize>,
    },
    /// A field of computed length; the expression is a 32-bit number of bytes over the header's own fields.
    Variable {
        /// Index of the field.
        field: usize,
        /// Its length.
        length: Expr,
    },
    /// A field that is there only if the condition holds.
    Conditional {
        /// Index of the field.
        field: usize,
        /// The condition over the header's own fields.
        when: Expr,
        /// Its size if it is there; a `bytes` field has a length instead.
        size: ConditionalSize,
    },
}

/// The size of a conditional field.
#[derive(Clone, Debug)]
pub enum ConditionalSize {
    /// So many bytes.
    Fixed(u32),
    /// Computed.
    Variable(Expr),
}

/// A field.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type; [`Type::View`] for `bytes`.
    pub ty: Type,
    /// Names of its bits, the most significant first.
    pub flags: Vec<String>,
    /// The group it lies in.
    pub group: usize,
    /// Its first bit in the group.
    pub bit: u32,
    /// The range the decoder demands.
    pub constraint: Option<(u128, u128)>,
    /// True if it is there only under a condition.
    pub conditional: bool,
    /// True if sizes or conditions depend on it.
    pub shapes: bool,
    /// It holds a length in bytes.
    pub length_of: Option<crate::ast::LengthOf>,
    /// Its place.
    pub span: Span,
}

/// What follows a header.
#[derive(Clone, Debug)]
pub struct Next {
    /// The selecting field.
    pub selector: usize,
    /// The condition over the header's own fields.
    pub when: Option<Expr>,
    /// Values and the name of the layout that follows.
    pub targets: Vec<(Vec<u128>, String)>,
    /// The clause.
    pub span: Span,
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
    pub evict: crate::ir::Eviction,
    /// As the IR holds it.
    pub counted: bool,
    /// The pool that gets an entry's value back.
    pub releases: Option<u32>,
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

/// Statements.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The statements.
    pub statements: Vec<Stmt>,
    /// True if no path falls out of its end.
    pub ends: bool,
    /// From brace to brace.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Its place.
    pub span: Span,
}

/// What a statement is.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// A local gets a value: `let`, `var` and assignment.
    Assign(LocalId, Expr),
    /// A field of a header gets a value.
    Set(HeaderId, usize, Expr),
    /// `if`
    If(Expr, Block, Block),
    /// `match`
    Match(Expr, Vec<Arm<Block>>),
    /// `for`, unrolled.
    For(LocalId, u128, u128, Block),
    /// A walk over headers in a view.
    Walk(HeaderId, Expr, Block),
    /// Leaves the walk.
    Break,
    /// Fields to be decoded now.
    Extract(HeaderId, Vec<usize>),
    /// `learn` and `insert`; together if there are several. The block is done if they are refused.
    Learn(Vec<Write>, Option<Block>),
    /// `insert` into a table with longest prefixes or rules, or into a group. The block is done if it is
    /// refused.
    Place(Placement, Option<Block>),
    /// `remove` from a table with longest prefixes or rules, or from a group; values do not count.
    Displace(Placement),
    /// `set` of a register.
    SetRegister(u32, Option<Expr>, Expr),
    /// `give`
    Give(u32, Vec<Expr>),
    /// `remove`
    Remove(TableId, Vec<Expr>),
    /// `insert t[default] = v`: value columns.
    SetDefault(TableId, Vec<Expr>),
    /// `remove t[default]`
    ClearDefault(TableId),
    /// `count`
    Count(u32, Option<Expr>),
    /// `raise`, perhaps `after` a delay.
    Raise(Option<Expr>, usize, Vec<Expr>),
    /// `emit`
    Emit(Made, Expr),
    /// `copy to`
    Copy(Expr),
    /// A change of the packet's size.
    Edit(Edit),
    /// `goto`
    Goto(StageId, Vec<Expr>),
    /// `send`
    Send(Expr),
    /// `flood`
    Flood,
    /// `multicast`: sorted ports.
    Multicast(Vec<u16>),
    /// `multicast` to the members of a group.
    MulticastGroup(u32, Option<Expr>),
    /// `drop`
    Drop(String),
    /// `punt`
    Punt(String),
    /// `recirculate`
    Recirculate(u32),
}

/// A change of the packet's size.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Bytes go in; what follows them in the packet is their payload.
    Push {
        /// The bytes.
        made: Box<Made>,
        /// Where.
        place: Place,
        /// The field of the header before them that announces them, and its value.
        announces: Option<(HeaderId, usize, u128)>,
    },
    /// A header goes.
    Pop(HeaderId),
    /// Everything before a header goes.
    Decapsulate(HeaderId),
    /// Everything behind so many bytes goes.
    Truncate(Expr),
    /// The packet leaves in IPv4 fragments of at most so many bytes.
    Fragment(HeaderId, Expr),
}

/// Where bytes go in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before the first byte.
    Start,
    /// Before a header.
    Before(HeaderId),
    /// Behind a header.
    After(HeaderId),
}

impl Edit {
    /// The header that it names.
    pub fn header(&self) -> Option<HeaderId> {
        match self {
            Edit::Push { place: Place::Before(header) | Place::After(header), .. }
            | Edit::Pop(header)
            | Edit::Decapsulate(header)
            | Edit::Fragment(header, _) => Some(*header),
            Edit::Push { place: Place::Start, .. } | Edit::Truncate(_) => None,
        }
    }
}

/// A write to a table.
#[derive(Clone, Debug)]
pub struct Write {
    /// The table.
    pub table: TableId,
    /// Key columns.
    pub key: Vec<Expr>,
    /// Value columns.
    pub value: Vec<Expr>,
}

/// What is put somewhere or taken away.
#[derive(Clone, Debug)]
pub enum Placement {
    /// An entry of a table with longest prefixes or rules.
    Entry {
        /// The table.
        table: TableId,
        /// One part a key column.
        key: Vec<KeyPart>,
        /// Its priority; zero unless priorities decide.
        priority: u32,
        /// Value columns.
        value: Vec<Expr>,
    },
    /// A member of a group.
    Member {
        /// The group's declaration.
        group: u32,
        /// Which of them.
        index: Option<Expr>,
        /// Its columns.
        member: Vec<Expr>,
    },
}

impl Placement {
    /// The expressions it is made of.
    pub fn expressions(&self) -> Vec<&Expr> {
        match self {
            Placement::Entry { key, value, .. } => {
                let key = key.iter().filter_map(|part| match part {
                    KeyPart::Exact(value) | KeyPart::Prefix(value, _) => Some(value),
                    KeyPart::Fixed(_) => None,
                });
                key.chain(value).collect()
            }
            Placement::Member { index, member, .. } => index.iter().chain(member).collect(),
        }
    }
}

/// A part of the key of an entry that a packet makes.
#[derive(Clone, Debug)]
pub enum KeyPart {
    /// A match known beforehand.
    Fixed(Match),
    /// This value.
    Exact(Expr),
    /// The first bits of this value.
    Prefix(Expr, u8),
}

/// A packet the program makes.
#[derive(Clone, Debug, Default)]
pub struct Made {
    /// Constant bytes, holes zero.
    pub bytes: Vec<u8>,
    /// Fields whose value is known only at run time.
    pub holes: Vec<MadeField>,
    /// Fields whose value is a constant plus the length of the payload: first bit, width, constant.
    pub lengths: Vec<(u32, u8, u32)>,
    /// Its checksums, without what a constant packet has already.
    pub sums: Vec<crate::ir::Sum>,
    /// The end of the received packet follows.
    pub tail: Option<Tail>,
    /// Of what stands before that end, the last header with a pseudo header, if only headers stand between
    /// that a checksum over it may follow.
    pub carrier: Option<Carrier>,
}

/// A header with a pseudo header in a packet that is made, before bytes of the received one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// What it is.
    pub layout: LayoutId,
    /// Its first byte.
    pub start: u32,
    /// The number that says what follows it, where that is known.
    pub announces: Option<u128>,
}

/// The end of a received packet, behind the bytes of one that is made.
#[derive(Clone, Debug)]
pub struct Tail {
    /// Where it begins.
    pub from: TailFrom,
    /// At most so many bytes, 32 bits.
    pub take: Option<Expr>,
}

/// Where the end of a received packet begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailFrom {
    /// Behind the last header.
    Payload,
    /// At the first byte.
    Packet,
    /// At the first byte of a header.
    Header(HeaderId),
}

/// A field of a packet the program makes.
#[derive(Clone, Debug)]
pub struct MadeField {
    /// Its first bit in the packet.
    pub bit: u32,
    /// Its width in bits.
    pub width: u8,
    /// Its value.
    pub value: Expr,
    /// Its name and the range it must lie in.
    pub constraint: Option<(String, (u128, u128))>,
}

/// An arm.
#[derive(Clone, Debug)]
pub struct Arm<B> {
    /// The pattern.
    pub pattern: Pattern,
    /// A further condition.
    pub guard: Option<Expr>,
    /// What then.
    pub body: B,
    /// The pattern's place.
    pub span: Span,
}

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Fits everything.
    Any,
    /// Fits everything and names it.
    Bind(LocalId),
    /// From the first to the last value.
    Range(u128, u128),
    /// One of these.
    Either(Vec<Pattern>),
    /// Part by part.
    Tuple(Vec<Pattern>),
    /// There is a value, and it fits.
    Some(Box<Pattern>),
    /// There is none.
    None,
    /// The variant of this number with fitting parameters.
    Variant(usize, Vec<Pattern>),
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Type,
    /// Its place.
    pub span: Span,
}

/// What an expression is.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A number of the type's width.
    Const(u128),
    /// A local.
    Local(LocalId),
    /// A field of a header; a conditional field reads as an option, a `bytes` field as a view.
    Field(HeaderId, usize),
    /// A field of the layout that is being described (in sizes and conditions).
    Own(usize),
    /// A bit of a value, counted from the least significant.
    Bit(Box<Expr>, u8),
    /// What follows the last header.
    Payload,
    /// The checksum of a header is right.
    Valid(HeaderId),
    /// The length of a view in bytes.
    ViewLength(Box<Expr>),
    /// The port the packet came in by.
    InPort,
    /// The time.
    Now,
    /// The packet's length on the wire.
    Length,
    /// The entry of a table; of a table of patterns its answer, the bytes being the key.
    Lookup(TableId, Vec<Expr>),
    /// The colour a meter gives: its cell, and the colour before.
    Mark(u32, Option<Box<Expr>>, Option<Box<Expr>>),
    /// A cell of a register.
    Register(u32, Option<Box<Expr>>),
    /// A free item of a pool, the search beginning at the hint.
    Take(u32, Option<Box<Expr>>),
    /// The member of a group that a hash belongs to.
    Choose(u32, Option<Box<Expr>>, Box<Expr>),
    /// A hash of values.
    Hash(Vec<Expr>),
    /// The first bytes of a view, as many as there are at most.
    Clip(Box<Expr>, Box<Expr>),
    /// A variant with its parameters.
    Variant(usize, Vec<Expr>),
    /// `!`
    Not(Box<Expr>),
    /// `~`
    Complement(Box<Expr>),
    /// Arithmetic and bit operations.
    Binary(crate::ast::BinaryOp, Box<Expr>, Box<Expr>),
    /// Comparison of two scalars.
    Compare(crate::ast::BinaryOp, Box<Expr>, Box<Expr>),
    /// `&&` if true, else `||`
    Logic(bool, Box<Expr>, Box<Expr>),
    /// `as`
    Cast(Box<Expr>, crate::ast::CastMode),
    /// Bits under the mask equal the value: a prefix.
    Masked(Box<Expr>, u128, u128),
    /// Several values.
    Tuple(Vec<Expr>),
    /// `if`
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `match`
    Match(Box<Expr>, Vec<Arm<Expr>>),
    /// Locals get values, then the expression: a call of a function.
    Inline(Vec<(LocalId, Expr)>, Box<Expr>),
    /// Stands for an expression with an error.
    Error,
}
