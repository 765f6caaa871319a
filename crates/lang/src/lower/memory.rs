//! Meters, registers, pools, groups, tables of patterns, and entries with prefixes.

use super::Lowering;
use super::env::Range;
use super::expressions::{Shape, scalar};
use crate::check::hir::{self, Block, Expr, Placement};
use crate::check::types::{TableId, Type};
use crate::diagnostic::Diagnostic;
use ir::source::Span;
use ir::{Answer, BinaryOp, Op, TableKind, Terminator, Value};

/// The multiplier of `hash`: two to the 64 divided by the golden ratio, odd (Knuth, The Art of Computer
/// Programming 3, 6.4).
const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Lowering<'_> {
    /// The index of a cell that must exist.
    pub(super) fn proven_cell(&mut self, what: &str, name: &str, size: u32, index: &Expr) -> Value {
        let (value, range) = self.value(index);
        if range.high >= u128::from(size) {
            self.report(
                Diagnostic::error(
                    "E0219",
                    format!("`{name}` may not have this cell"),
                    index.span,
                    format!("it can be as large as {}, and there are {size} cells", range.high),
                )
                .help(format!("check it first, or give the {what} more cells")),
            );
        }
        self.code.resized(value, 32, index.span)
    }

    /// The index of a group; a group that does not exist has no members.
    fn group_index(&mut self, index: Option<&Expr>) -> Option<Value> {
        let index = index?;
        let (value, _) = self.value(index);
        Some(self.code.resized(value, 32, index.span))
    }

    pub(super) fn mark(
        &mut self,
        meter: u32,
        index: Option<&Expr>,
        before: Option<&Expr>,
        span: Span,
    ) -> Shape {
        let declared = &self.source.meters[meter as usize];
        let index = index.map(|index| self.proven_cell("meter", &declared.name, declared.size, index));
        let before = before.map(|before| self.value(before).0);
        scalar(self.code.emit(2, Op::Mark { meter, index, before }, span), Range::new(0, 2))
    }

    pub(super) fn read_register(
        &mut self,
        register: u32,
        index: Option<&Expr>,
        ty: &Type,
        span: Span,
    ) -> Shape {
        let declared = &self.source.registers[register as usize].0;
        let index = index.map(|index| self.proven_cell("register", &declared.name, declared.size, index));
        let width = ty.width().unwrap_or(1);
        let value = self.code.emit(width, Op::ReadRegister { register, index }, span);
        self.code.name_value(value, &declared.name, ty);
        scalar(value, Range::new(0, ty.largest()))
    }

    pub(super) fn write_register(&mut self, register: u32, index: Option<&Expr>, value: &Expr, span: Span) {
        let declared = &self.source.registers[register as usize].0;
        let index = index.map(|index| self.proven_cell("register", &declared.name, declared.size, index));
        let (value, _) = self.value(value);
        self.code.effect(Op::WriteRegister { register, index, value }, span);
    }

    /// What may be there, with several columns.
    fn optional(&mut self, types: &[Type], name: &str, op: Op, span: Span) -> Shape {
        let present = self.code.new_value(1);
        let mut results = vec![present];
        let mut parts = Vec::new();
        for ty in types {
            let value = self.code.new_value(ty.width().unwrap_or(1));
            self.code.name_value(value, name, ty);
            results.push(value);
            parts.push(scalar(value, Range::new(0, ty.largest())));
        }
        self.code.push(results, op, span);
        self.code.name_value(present, &format!("{name} found"), &Type::Bool);
        let inner = if parts.len() == 1 { parts.remove(0) } else { Shape::Tuple(parts) };
        Shape::Option { present, inner: Box::new(inner) }
    }

    pub(super) fn take(&mut self, pool: u32, hint: Option<&Expr>, span: Span) -> Shape {
        let hint = match hint {
            Some(hint) => {
                let (value, _) = self.value(hint);
                self.code.resized(value, 32, span)
            }
            None => self.code.constant(0, 32, span),
        };
        let (declared, types) = &self.source.pools[pool as usize];
        self.optional(types, &format!("{} item", declared.name), Op::Take { pool, hint }, span)
    }

    pub(super) fn choose(&mut self, group: u32, index: Option<&Expr>, hash: &Expr, span: Span) -> Shape {
        let index = self.group_index(index);
        let (hash, _) = self.value(hash);
        let (declared, types) = &self.source.groups[group as usize];
        self.optional(types, &format!("{} member", declared.name), Op::Choose { group, index, hash }, span)
    }

    /// A packet to all members of a group, by ascending port: a copy to each but the last, and the verdict is
    /// to send it to that one.
    pub(super) fn send_to_members(&mut self, group: u32, index: Option<&Expr>, span: Span) {
        let index = self.group_index(index);
        self.write_checksums(span);
        let ir::Group { name, capacity, .. } = &self.source.groups[group as usize].0;
        let reason = self.reason(&format!("no_member({name})"), "the group has no member to send to");
        let mut before = None;
        for place in 0..*capacity {
            let (present, port) = (self.code.new_value(1), self.code.new_value(16));
            self.code.push(vec![present, port], Op::Member { group, index, place }, span);
            self.code.name_value(port, &format!("{name} member"), &Type::Port);
            let (yes, no) = self.code.fork(present, span);
            if let Some(exit) = no {
                self.code.resume(exit);
                self.code.terminate(before.map_or(Terminator::Drop(reason), Terminator::Send), span);
            }
            let Some(exit) = yes else { return };
            self.code.resume(exit);
            if let Some(before) = before.replace(port) {
                self.code.effect(Op::Copy(before), span);
            }
        }
        self.code.terminate(before.map_or(Terminator::Drop(reason), Terminator::Send), span);
    }

    /// The hash of values: every value is cut into words of 64 bits, the more significant first, and mixed in
    /// by exclusive or, a multiplication modulo two to the 64 and a folding of the upper half onto the lower;
    /// the upper half of a last round is the hash.
    pub(super) fn hash(&mut self, values: &[Expr], span: Span) -> Shape {
        let mut state = self.code.constant(u128::from(HASH_MULTIPLIER), 64, span);
        for value in values {
            let (value, _) = self.value(value);
            let width = self.code.function.width(value);
            let mut words = Vec::new();
            if width > 64 {
                let high = self.code.shifted_down(value, 64, span);
                words.push(self.code.resized(high, 64, span));
            }
            words.push(self.code.resized(value, 64, span));
            for word in words {
                state = self.code.emit(64, Op::Binary(BinaryOp::Xor, state, word), span);
                state = self.mixed(state, span);
            }
        }
        let state = self.mixed(state, span);
        let upper = self.code.shifted_down(state, 32, span);
        scalar(self.code.resized(upper, 32, span), Range::new(0, u128::from(u32::MAX)))
    }

    fn mixed(&mut self, state: Value, span: Span) -> Value {
        let multiplier = self.code.constant(u128::from(HASH_MULTIPLIER), 64, span);
        let product = self.code.emit(64, Op::Binary(BinaryOp::Mul, state, multiplier), span);
        let upper = self.code.shifted_down(product, 32, span);
        self.code.emit(64, Op::Binary(BinaryOp::Xor, product, upper), span)
    }

    /// A view that ends after so many bytes, or where it ended before.
    pub(super) fn clip(&mut self, view: &Expr, length: &Expr, span: Span) -> Shape {
        let Shape::View { start, end } = self.shape(view) else {
            return scalar(self.code.constant(0, 32, span), Range::one(0));
        };
        let (length, _) = self.value(length);
        let cut = self.code.emit(32, Op::Binary(BinaryOp::AddSaturate, start, length), span);
        let shorter = self.code.emit(1, Op::Compare(ir::CompareOp::Lt, cut, end), span);
        let end = self.code.emit(32, Op::Select(shorter, cut, end), span);
        Shape::View { start, end }
    }

    /// A search in bytes; `inner` makes the shape of an entry from the value columns.
    pub(super) fn search(&mut self, table: TableId, bytes: &Expr, span: Span) -> Shape {
        let Shape::View { start, end } = self.shape(bytes) else {
            return scalar(self.code.constant(0, 1, span), Range::one(0));
        };
        let op = Op::Scan { table: table.0 as u32, start, end };
        match self.source.tables[table.0].kind {
            TableKind::Patterns(Answer::All) => {
                scalar(self.code.emit(32, op, span), Range::new(0, u128::from(u32::MAX)))
            }
            TableKind::Patterns(Answer::Set) => {
                scalar(self.code.emit(128, op, span), Range::new(0, u128::MAX))
            }
            _ => self.entry_of(table, op, span),
        }
    }

    fn key_parts(&mut self, key: &[hir::KeyPart]) -> Vec<ir::KeyPart> {
        let part = |part: &hir::KeyPart| match part {
            hir::KeyPart::Fixed(fixed) => ir::KeyPart::Fixed(fixed.clone()),
            hir::KeyPart::Exact(value) => ir::KeyPart::Exact(self.value(value).0),
            hir::KeyPart::Prefix(value, length) => ir::KeyPart::Prefix(self.value(value).0, *length),
        };
        key.iter().map(part).collect()
    }

    /// An entry or member is put in place; where it is refused the block is done.
    pub(super) fn place_in(&mut self, placement: &Placement, otherwise: Option<&Block>, span: Span) {
        let op = match placement {
            Placement::Entry { table, key, priority, value } => {
                let (key, value) = (self.key_parts(key), self.values(value));
                Op::Insert { table: table.0 as u32, key, priority: *priority, value }
            }
            Placement::Member { group, index, member } => {
                let index = self.group_index(index.as_ref());
                Op::Join { group: *group, index, member: self.values(member) }
            }
        };
        let accepted = self.code.emit(1, op, span);
        let Some(otherwise) = otherwise else { return };
        let ways = self.code.fork(accepted, span);
        self.meet_ways(ways, span, |lowering, accepted| {
            if !accepted {
                lowering.block(otherwise);
            }
        });
    }

    pub(super) fn displace(&mut self, placement: &Placement, span: Span) {
        let op = match placement {
            Placement::Entry { table, key, priority, .. } => {
                Op::Withdraw { table: table.0 as u32, key: self.key_parts(key), priority: *priority }
            }
            Placement::Member { group, index, member } => {
                let index = self.group_index(index.as_ref());
                Op::Leave { group: *group, index, member: self.values(member) }
            }
        };
        self.code.effect(op, span);
    }
}
