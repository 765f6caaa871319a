//! Expressions and patterns of the checked program.

use super::{HeaderId, LocalId};
use crate::ast::{BinaryOp, CastMode};
use crate::check::types::{TableId, Type};
use ir::source::Span;

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
    /// The machine sent the packet, as a host at the port.
    FromHost,
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
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// Comparison of two scalars.
    Compare(BinaryOp, Box<Expr>, Box<Expr>),
    /// `&&` if true, else `||`
    Logic(bool, Box<Expr>, Box<Expr>),
    /// `as`
    Cast(Box<Expr>, CastMode),
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

impl Expr {
    /// Calls a function for every direct part of the expression.
    pub fn children(&self, visit: &mut dyn FnMut(&Expr)) {
        match &self.kind {
            ExprKind::Bit(inner, _)
            | ExprKind::ViewLength(inner)
            | ExprKind::Not(inner)
            | ExprKind::Complement(inner)
            | ExprKind::Cast(inner, _)
            | ExprKind::Masked(inner, _, _) => visit(inner),
            ExprKind::Binary(_, a, b) | ExprKind::Compare(_, a, b) | ExprKind::Logic(_, a, b) => {
                visit(a);
                visit(b);
            }
            ExprKind::If(a, b, c) => {
                visit(a);
                visit(b);
                visit(c);
            }
            ExprKind::Lookup(_, parts)
            | ExprKind::Variant(_, parts)
            | ExprKind::Tuple(parts)
            | ExprKind::Hash(parts) => parts.iter().for_each(visit),
            ExprKind::Mark(_, index, before) => {
                index.iter().chain(before).for_each(|part| visit(part));
            }
            ExprKind::Register(_, part) | ExprKind::Take(_, part) => part.iter().for_each(|part| visit(part)),
            ExprKind::Choose(_, index, hash) => {
                index.iter().chain([hash]).for_each(|part| visit(part));
            }
            ExprKind::Clip(view, length) => {
                visit(view);
                visit(length);
            }
            ExprKind::Match(value, arms) => {
                visit(value);
                for arm in arms {
                    arm.guard.iter().for_each(&mut *visit);
                    visit(&arm.body);
                }
            }
            ExprKind::Inline(bindings, body) => {
                bindings.iter().for_each(|(_, value)| visit(value));
                visit(body);
            }
            ExprKind::Const(_)
            | ExprKind::Local(_)
            | ExprKind::Field(..)
            | ExprKind::Own(_)
            | ExprKind::Payload
            | ExprKind::Valid(_)
            | ExprKind::InPort
            | ExprKind::FromHost
            | ExprKind::Now
            | ExprKind::Length
            | ExprKind::Error => {}
        }
    }

    /// The header that the expression is a field of.
    pub fn header(&self) -> Option<HeaderId> {
        if let ExprKind::Field(header, _) = self.kind { Some(header) } else { None }
    }

    /// The fields of the described layout that the expression names.
    pub fn own_fields(&self) -> Vec<usize> {
        let mut found = Vec::new();
        if let ExprKind::Own(field) = self.kind {
            found.push(field);
        }
        self.children(&mut |child| found.extend(child.own_fields()));
        found
    }

    /// The height of the expression's tree.
    pub fn height(&self) -> usize {
        let mut tallest = 0;
        self.children(&mut |child| tallest = tallest.max(child.height()));
        tallest + 1
    }
}
