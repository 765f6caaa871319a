//! Statements of the checked program, and packets that statements make.

use super::{Arm, Expr, HeaderId, LayoutId, LocalId, StageId};
use crate::check::types::TableId;
use ir::Match;
use ir::source::Span;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// How long the entry lives at most, if not as long as others; nanoseconds.
    pub lifetime: Option<Expr>,
}

impl Write {
    /// Its expressions in the order in which they are computed.
    fn expressions(&self) -> impl Iterator<Item = &Expr> {
        self.key.iter().chain(&self.value).chain(&self.lifetime)
    }
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
    pub sums: Vec<ir::Sum>,
    /// The end of the received packet follows.
    pub tail: Option<Tail>,
    /// What its headers are on the way to a checksum behind them.
    pub lead: Lead,
}

/// What headers that are made are on the way from a pseudo header to a checksum in the received bytes behind
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lead {
    /// The way ends in them.
    #[default]
    End,
    /// They are passed.
    Passed,
    /// The way begins in them.
    Carrier(Carrier),
}

/// A header with a pseudo header in a packet that is made, before bytes of the received one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

impl StmtKind {
    /// The expressions of the statement in the order in which they are computed, without those of blocks
    /// inside of it.
    pub fn expressions(&self) -> Vec<&Expr> {
        match self {
            StmtKind::Assign(_, value)
            | StmtKind::Set(_, _, value)
            | StmtKind::If(value, ..)
            | StmtKind::Walk(_, value, _)
            | StmtKind::Copy(value)
            | StmtKind::Send(value)
            | StmtKind::Edit(Edit::Truncate(value) | Edit::Fragment(_, value)) => vec![value],
            StmtKind::Match(value, arms) => {
                [value].into_iter().chain(arms.iter().filter_map(|arm| arm.guard.as_ref())).collect()
            }
            StmtKind::Learn(writes, _) => writes.iter().flat_map(Write::expressions).collect(),
            StmtKind::Place(placement, _) | StmtKind::Displace(placement) => placement.expressions(),
            StmtKind::SetRegister(_, index, value) => index.iter().chain([value]).collect(),
            StmtKind::Give(_, values)
            | StmtKind::Remove(_, values)
            | StmtKind::SetDefault(_, values)
            | StmtKind::Goto(_, values) => values.iter().collect(),
            StmtKind::Count(_, index) | StmtKind::MulticastGroup(_, index) => index.iter().collect(),
            StmtKind::Raise(delay, _, args) => delay.iter().chain(args).collect(),
            StmtKind::Emit(made, port) => {
                let take = made.tail.iter().filter_map(|tail| tail.take.as_ref());
                made.holes.iter().map(|hole| &hole.value).chain(take).chain([port]).collect()
            }
            StmtKind::Edit(Edit::Push { made, .. }) => made.holes.iter().map(|hole| &hole.value).collect(),
            StmtKind::Edit(Edit::Pop(_) | Edit::Decapsulate(_))
            | StmtKind::For(..)
            | StmtKind::Break
            | StmtKind::Extract(..)
            | StmtKind::ClearDefault(_)
            | StmtKind::Flood
            | StmtKind::Multicast(_)
            | StmtKind::Drop(_)
            | StmtKind::Punt(_)
            | StmtKind::Recirculate(_) => Vec::new(),
        }
    }

    /// The blocks directly inside of the statement, in source order.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        let (blocks, arms): ([Option<&Block>; 2], &[Arm<Block>]) = match self {
            StmtKind::If(_, yes, no) => ([Some(yes), Some(no)], &[]),
            StmtKind::Match(_, arms) => ([None, None], arms),
            StmtKind::For(_, _, _, body) | StmtKind::Walk(_, _, body) => ([Some(body), None], &[]),
            StmtKind::Learn(_, otherwise) | StmtKind::Place(_, otherwise) => {
                ([otherwise.as_ref(), None], &[])
            }
            _ => ([None, None], &[]),
        };
        blocks.into_iter().flatten().chain(arms.iter().map(|arm| &arm.body))
    }
}

impl Block {
    /// Calls a function for every statement of the block and of the blocks inside of it.
    pub fn each_statement(&self, visit: &mut dyn FnMut(&Stmt)) {
        for statement in &self.statements {
            visit(statement);
            statement.kind.blocks().for_each(|block| block.each_statement(visit));
        }
    }

    /// Some packet leaves for good inside of the block.
    pub fn leaves(&self) -> bool {
        self.ends || self.statements.iter().any(|statement| statement.kind.blocks().any(Block::leaves))
    }
}
