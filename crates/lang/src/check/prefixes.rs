//! Prefixes: written out, or named by a constant of the type `prefix4` or `prefix6`. A prefix is no value: it
//! stands in patterns, in entries, in pools and behind `in`.

use super::Checker;
use super::types::{Prefix, Type};
use crate::ast::{self, ExprKind};
use crate::diagnostic::Diagnostic;
use crate::limits::DEEPEST_VALUE;

impl Checker<'_> {
    /// Whether an expression is a prefix that is written out, or names a constant that is one.
    pub(super) fn is_prefix(&self, expr: &ast::Expr) -> bool {
        match &expr.kind {
            ExprKind::Prefix4(..) | ExprKind::Prefix6(..) => true,
            ExprKind::Word(name) => self.scope.find_local(name).is_none() && self.is_prefix_constant(name),
            _ => false,
        }
    }

    /// Whether a constant is declared as a prefix.
    pub(super) fn is_prefix_constant(&self, name: &str) -> bool {
        self.names.constants.get(name).is_some_and(|item| addresses(&item.ty).is_some())
    }

    /// The prefix that an expression is; `None` if it is none or was reported.
    pub(super) fn prefix(&mut self, expr: &ast::Expr) -> Option<Prefix> {
        match &expr.kind {
            ExprKind::Prefix4(address, length) => Some((Type::Ip4, u128::from(*address), *length)),
            ExprKind::Prefix6(address, length) => Some((Type::Ip6, *address, *length)),
            ExprKind::Word(name) if self.is_prefix(expr) => self.prefix_constant(name),
            _ => None,
        }
    }

    /// The value of a constant that is declared as a prefix, computed when first asked for.
    pub(super) fn prefix_constant(&mut self, name: &str) -> Option<Prefix> {
        if let Some(known) = self.computed.prefixes.get(name) {
            return known.clone();
        }
        let item = *self.names.constants.get(name)?;
        if !self.open_constant(name) {
            return None;
        }
        let known = self.checked_prefix(item);
        self.computed.open_constants.remove(name);
        self.computed.prefixes.insert(name.to_string(), known.clone());
        known
    }

    fn checked_prefix(&mut self, item: &ast::Const) -> Option<Prefix> {
        let wanted = addresses(&item.ty)?;
        if let Some((low, _)) = &item.range {
            self.error(
                "E0209",
                "a prefix has no range",
                low.span,
                "only a constant that is a number has one",
            );
        }
        if self.spent.depth >= DEEPEST_VALUE {
            self.too_deep(item.value.span);
            return None;
        }
        self.spent.depth += 1;
        let scopes = std::mem::take(&mut self.scope.locals);
        let (written, found) = (self.is_prefix(&item.value), self.prefix(&item.value));
        self.scope.locals = scopes;
        self.spent.depth -= 1;
        match found {
            Some((ty, bits, length)) if ty == wanted => Some((ty, bits, length)),
            // What the name stands for was reported.
            None if written => None,
            _ => {
                let (kind, example) =
                    if wanted == Type::Ip4 { ("IPv4", "10.0.0.0/8") } else { ("IPv6", "2001:db8::/32") };
                let headline = format!("`{}` is a prefix of {kind}", item.name.text);
                let fault = Diagnostic::error("E0200", headline, item.value.span, "this is none");
                self.report(fault.help(format!("write it out, as in {example}")));
                None
            }
        }
    }
}

/// The type of the addresses of a prefix, if a type is one of prefixes.
pub(super) fn addresses(ty: &ast::Type) -> Option<Type> {
    match &ty.kind {
        ast::TypeKind::Named(name) if name == "prefix4" => Some(Type::Ip4),
        ast::TypeKind::Named(name) if name == "prefix6" => Some(Type::Ip6),
        _ => None,
    }
}
