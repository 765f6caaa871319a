//! Checksums: where they may stand in a layout, what a pseudo header is made of, and what may be done with
//! them.

use super::hir::{self, Checksum, Expr, ExprKind, Group, Layout, LayoutId};
use super::types::Type;
use super::{Checker, Context};
use crate::ast::{self, FieldType};
use crate::diagnostic::{Diagnostic, Findings};
use ir::source::Span;

impl Checker<'_> {
    /// What a pseudo header takes from a layout.
    pub(crate) fn pseudo(
        &mut self,
        clause: &ast::Pseudo,
        id: LayoutId,
        layout: &Layout,
    ) -> Option<hir::Pseudo> {
        let mut fields = Vec::new();
        for name in &clause.fields {
            let index = self.field_named(id, name)?;
            let field = &layout.fields[index];
            let fixed = matches!(layout.groups.get(field.group), Some(Group::Fixed { .. }));
            let whole = field.bit.is_multiple_of(8) && field.ty.width().is_some_and(|width| width % 16 == 0);
            if !fixed || !whole {
                self.report(
                    Diagnostic::error(
                        "E0315",
                        format!("`{}` cannot be part of a pseudo header", name.text),
                        name.span,
                        "it is not always an even number of whole bytes",
                    )
                    .place(field.span, "the field"),
                );
                return None;
            }
            fields.push(index);
        }
        if layout.next.is_none() {
            self.error(
                "E0315",
                format!("nothing follows `{}`", layout.name),
                clause.span,
                "a pseudo header belongs to the header that `next` announces",
            );
            return None;
        }
        Some(hir::Pseudo { fields, kind: clause.kind, length: clause.length })
    }

    /// `valid(ip.check)`
    pub(crate) fn valid(&mut self, args: &[ast::Expr], span: Span) -> Expr {
        if self.scope.context != Context::Packet {
            self.no_packet(span, "`valid` looks at a packet".to_string());
            return super::expressions::error(span);
        }
        if let [arg] = args {
            let checked = self.expression(arg, None);
            if checked.ty == Type::Unknown {
                return checked;
            }
            if let ExprKind::Field(header, field) = checked.kind {
                let layout = self.program.layout(header);
                if let Some(checksum) = layout.checksum.filter(|checksum| checksum.field == field) {
                    if !checksum.payload && !checksum.pseudo {
                        return Expr { kind: ExprKind::Valid(header), ty: Type::Bool, span };
                    }
                    let place = layout.fields[field].span;
                    self.report(
                        Diagnostic::error(
                            "E0318",
                            "`valid` looks at checksums over headers only",
                            span,
                            "this one covers more than its header",
                        )
                        .place(place, "the checksum"),
                    );
                    return super::expressions::error(span);
                }
            }
        }
        self.report(
            Diagnostic::error("E0318", "`valid` takes the checksum of a header", span, "this is none")
                .help("name a field with the type `inet16`, as in `valid(ip.check)`"),
        );
        super::expressions::error(span)
    }
}

impl Findings {
    /// The checksum of a layout whose fields have their places.
    pub(crate) fn checksum(&mut self, item: &ast::Layout, layout: &Layout) -> Option<Checksum> {
        let mut found: Option<Checksum> = None;
        for (index, field) in layout.fields.iter().enumerate() {
            let declared = item.fields.iter().find(|other| other.name.text == field.name);
            let Some(FieldType::Checksum(covers)) = declared.map(|declared| &declared.ty) else { continue };
            if let Some(first) = &found {
                let first = layout.fields[first.field].span;
                self.report(
                    Diagnostic::error(
                        "E0314",
                        format!("`{}` has two checksums", layout.name),
                        field.span,
                        "the second one",
                    )
                    .place(first, "the first one"),
                );
                continue;
            }
            let first_run = field.group == 0 && matches!(layout.groups.first(), Some(Group::Fixed { .. }));
            let fault = if field.conditional {
                "it is there only under a condition"
            } else if !first_run {
                "what stands before it has no fixed length"
            } else if field.bit % 16 != 0 {
                "it does not begin behind an even number of bytes"
            } else if field.constraint.is_some() {
                "it cannot be constrained"
            } else if field.shapes || layout.next.as_ref().is_some_and(|next| next.selector == index) {
                "sizes, conditions or what follows depend on it"
            } else {
                found = Some(Checksum {
                    field: index,
                    offset: field.bit / 8,
                    pseudo: covers.pseudo,
                    payload: covers.payload,
                    unless_zero: covers.unless_zero,
                });
                continue;
            };
            self.report(
                Diagnostic::error(
                    "E0314",
                    format!("the checksum `{}` cannot stand here", field.name),
                    field.span,
                    fault,
                )
                .help("a checksum is always there, in the first fields of fixed length, behind an even number of bytes"),
            );
        }
        found
    }

    /// A checksum is set by the compiler; a program may only say that there is none.
    pub(crate) fn check_checksum_set(&mut self, layout: &Layout, index: usize, value: &Expr, span: Span) {
        let Some(checksum) = layout.checksum.filter(|checksum| checksum.field == index) else { return };
        if checksum.unless_zero && matches!(value.kind, ExprKind::Const(0)) {
            return;
        }
        let field = &layout.fields[index];
        let fault = Diagnostic::error(
            "E0316",
            format!("`{}` is kept right by the compiler", field.name),
            span,
            "it cannot be set",
        )
        .place(field.span, "a checksum");
        let advice = if checksum.unless_zero {
            "leave this out: every `set` of what it covers changes it too; only 0 can be set, which says that there is none"
        } else {
            "leave this out: every `set` of what it covers changes it too"
        };
        self.report(fault.help(advice));
    }
}
