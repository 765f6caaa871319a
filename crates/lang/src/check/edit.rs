//! Statements that make the packet longer or shorter: the headers they name, and the bytes that go in.

use super::hir::{Edit, Field, HeaderId, Layout, Made, Place, Program, StmtKind};
use super::types::Type;
use super::{Checker, Context};
use crate::ast::{self, PacketPart};
use crate::diagnostic::Diagnostic;
use crate::limits::MOST_PUSHED;
use ir::source::Span;

impl<'a> Checker<'a> {
    pub(super) fn edit(&mut self, edit: &'a ast::Edit, span: Span) -> Option<StmtKind> {
        self.needs_packet(word_of(edit), span);
        if self.scope.walk_depth > 0 {
            self.report(
                Diagnostic::error(
                    "E0430",
                    "the size of a packet cannot change while its headers are walked over",
                    span,
                    "this stands in a `for … in … as`",
                )
                .help("remember in a variable what was found, and change the packet behind the walk"),
            );
            return None;
        }
        let edit = match edit {
            ast::Edit::Push { packet, before, header } => {
                let id = self.header_named(header)?;
                let announces = if *before { None } else { self.program.announcement(id, packet) };
                let selector = match (before, announces) {
                    (true, _) => self.announces(packet, id),
                    (false, Some((selector, _))) => self.takes_over(id, selector, packet, header),
                    (false, None) => None,
                };
                let made = self.pushed(packet, selector)?;
                let place = if *before { Place::Before(id) } else { Place::After(id) };
                Edit::Push {
                    made: Box::new(made),
                    place,
                    announces: announces.map(|(field, value)| (id, field, value)),
                }
            }
            ast::Edit::Encapsulate(packet) => Edit::Push {
                made: Box::new(self.pushed(packet, None)?),
                place: Place::Start,
                announces: None,
            },
            ast::Edit::Pop(header) => Edit::Pop(self.header_named(header)?),
            ast::Edit::Decapsulate(header) => Edit::Decapsulate(self.header_named(header)?),
            ast::Edit::Truncate(length) => Edit::Truncate(self.number(length)),
            ast::Edit::Fragment(header, mtu) => {
                let id = self.header_named(header)?;
                let layout = self.program.layout(id);
                if !is_ipv4(layout) {
                    let (name, declared) = (layout.name.clone(), layout.span);
                    self.report(
                        Diagnostic::error(
                            "E0432",
                            format!("`{}` is no IPv4 header and cannot be fragmented", header.text),
                            header.span,
                            "fields of an IPv4 header are needed where they stand there",
                        )
                        .place(declared, format!("its layout is `{name}`"))
                        .help("IPv6 packets are not fragmented on their way: answer `packet too big`"),
                    );
                    return None;
                }
                Edit::Fragment(id, self.number(mtu))
            }
        };
        Some(StmtKind::Edit(edit))
    }

    /// A number of bytes.
    fn number(&mut self, expr: &'a ast::Expr) -> super::hir::Expr {
        let checked = self.expression(expr, Some(&Type::Uint(32)));
        if !matches!(checked.ty, Type::Uint(width) if width <= 32) && checked.ty != Type::Unknown {
            self.error(
                "E0200",
                format!("a number of bytes is wanted, not {}", checked.ty),
                expr.span,
                "an unsigned integer of at most 32 bits",
            );
        }
        checked
    }

    /// The selector of the last pushed header, if it is not given and free.
    fn open_selector(&self, packet: &ast::PacketExpr) -> Option<(&Layout, &Field)> {
        let PacketPart::Header(last, fields) = packet.parts.last()? else { return None };
        let layout = &self.program.layouts[self.names.layouts.get(&last.text)?.0];
        let selector = &layout.fields[layout.next.as_ref()?.selector];
        let free = !selector.shapes && !selector.conditional && selector.constraint.is_none();
        let given = fields.iter().any(|(field, _)| field.text == selector.name);
        (free && !given).then_some((layout, selector))
    }

    /// The last pushed header takes over the value of the selector that then announces the first: it
    /// announces what that did.
    fn takes_over(
        &self,
        header: HeaderId,
        announcing: usize,
        packet: &ast::PacketExpr,
        name: &ast::Name,
    ) -> Option<(String, ast::ExprKind)> {
        let (_, selector) = self.open_selector(packet)?;
        let before = &self.program.layout(header).fields[announcing];
        let owner = ast::Expr { kind: ast::ExprKind::Word(name.text.clone()), span: name.span };
        let field = ast::Name { text: before.name.clone(), span: name.span };
        let value = ast::ExprKind::Field(Box::new(owner), field);
        (selector.ty == before.ty).then(|| (selector.name.clone(), value))
    }

    /// The last pushed header announces the header that follows it.
    fn announces(&self, packet: &ast::PacketExpr, header: HeaderId) -> Option<(String, ast::ExprKind)> {
        let (layout, selector) = self.open_selector(packet)?;
        let follower = &self.program.layout(header).name;
        let targets = &layout.next.as_ref()?.targets;
        let (values, _) = targets.iter().find(|(_, target)| target == follower)?;
        Some((selector.name.clone(), ast::ExprKind::Int(*values.first()?)))
    }

    /// What goes in. The rest of the packet follows it, so lengths and checksums count that too.
    fn pushed(
        &mut self,
        packet: &ast::PacketExpr,
        selector: Option<(String, ast::ExprKind)>,
    ) -> Option<Made> {
        let mut whole = packet.clone();
        if let (Some((text, kind)), Some(PacketPart::Header(name, fields))) =
            (selector, whole.parts.last_mut())
        {
            let span = name.span;
            fields.push((ast::Name { text, span }, ast::Expr { kind, span }));
        }
        if self.scope.context != Context::Packet {
            return None;
        }
        whole.parts.push(PacketPart::Rest { from: ast::RestFrom::Packet, take: None, span: packet.span });
        let made = self.made_packet(&whole)?;
        if made.bytes.len() > MOST_PUSHED {
            self.report(
                Diagnostic::error(
                    "E0434",
                    "there is no room for so many bytes",
                    packet.span,
                    format!("these are {}, and before a packet there are {MOST_PUSHED}", made.bytes.len()),
                )
                .help("send a new packet instead: `emit … / payload to …`"),
            );
            return None;
        }
        Some(made)
    }
}

impl Program {
    /// The field of a header that announces what follows, and its value for what is pushed behind it.
    fn announcement(&self, header: HeaderId, packet: &ast::PacketExpr) -> Option<(usize, u128)> {
        let PacketPart::Header(first, _) = packet.parts.first()? else { return None };
        let layout = self.layout(header);
        let next = layout.next.as_ref()?;
        let selector = &layout.fields[next.selector];
        let (values, _) = next.targets.iter().find(|(_, target)| *target == first.text)?;
        let fits = |value: &u128| selector.constraint.is_none_or(|(low, high)| (low..=high).contains(value));
        let value = *values.first().filter(|value| fits(value))?;
        (!selector.shapes && !selector.conditional).then_some((next.selector, value))
    }
}

fn word_of(edit: &ast::Edit) -> &'static str {
    match edit {
        ast::Edit::Push { .. } => "push",
        ast::Edit::Encapsulate(_) => "encapsulate",
        ast::Edit::Pop(_) => "pop",
        ast::Edit::Decapsulate(_) => "decapsulate",
        ast::Edit::Truncate(_) => "truncate",
        ast::Edit::Fragment(..) => "fragment",
    }
}

/// Does a layout describe an IPv4 header? Fragments are made of the fields named here, wherever the layout
/// comes from.
fn is_ipv4(layout: &Layout) -> bool {
    let fields: [(&str, u32, u8); 7] = [
        ("version", 0, 4),
        ("ihl", 4, 4),
        ("total", 16, 16),
        ("flags", 48, 3),
        ("frag", 51, 13),
        ("check", 80, 16),
        ("dst", 128, 32),
    ];
    fields.iter().all(|(name, bit, width)| {
        layout.fields.iter().any(|field| {
            field.name == *name && field.group == 0 && field.bit == *bit && field.ty.width() == Some(*width)
        })
    })
}
