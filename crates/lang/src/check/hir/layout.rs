//! Layouts of the checked program, and what follows from a layout alone.

use super::Expr;
use crate::ast::LengthOf;
use crate::check::types::Type;
use ir::source::Span;

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
    pub length_of: Option<LengthOf>,
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

/// What a layout is on the way from a header with a pseudo header to the checksum that covers that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoverningStep {
    /// It has a checksum over the pseudo header.
    Found,
    /// Something may follow.
    Passed,
    /// The way ends.
    End,
}

impl Layout {
    /// The index of the field with this name.
    pub fn field_named(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// Fields that are always there and count what follows the header.
    pub fn counting(&self) -> impl Iterator<Item = usize> + '_ {
        let counts = |field: &Field| {
            !field.conditional && matches!(field.length_of, Some(LengthOf::Both | LengthOf::Payload))
        };
        self.fields.iter().enumerate().filter(move |(_, field)| counts(field)).map(|(index, _)| index)
    }

    /// What the layout is on the way from a header with a pseudo header to the checksum that covers that.
    pub fn governing_step(&self) -> GoverningStep {
        let conditional = self.groups.iter().any(|group| matches!(group, Group::Conditional { .. }));
        match self.checksum {
            Some(checksum) if checksum.pseudo => GoverningStep::Found,
            None if self.next.is_some() && self.pseudo.is_none() && !conditional && self.smallest > 0 => {
                GoverningStep::Passed
            }
            _ => GoverningStep::End,
        }
    }
}
