//! Packets in the program text: headers written by their fields become bytes with holes.
//!
//! A field that is not written gets the smallest value its constraint allows; a selector the value for the
//! header that follows; a length the length; a checksum what it should be, computed here where every byte is
//! constant and else when the packet is made. Sizes must be known, so fields that shape a header are
//! constants; `bytes` fields are zero.

use super::constants::fold_with;
use super::hir::{
    Carrier, ConditionalSize, Expr, Field, GoverningStep, Group, Layout, LayoutId, Lead, Made, MadeField,
    Program, Tail, TailFrom,
};
use super::layouts::smallest_allowed;
use super::types::Type;
use super::{Checker, Context, constants::fold};
use crate::ast::{self, LengthOf, PacketPart, RestFrom};
use crate::diagnostic::{Diagnostic, Findings};
use crate::limits::LARGEST_MADE;
use ir::Sum;
use ir::limits::MOST_HOLES;
use ir::source::Span;

/// A part with its bytes placed.
struct Placed {
    layout: LayoutId,
    start: usize,
    /// Behind its last byte.
    end: usize,
    /// First byte of each group.
    groups: Vec<usize>,
    /// The number that announces the next header.
    announces: Option<u128>,
    /// The value of its selector, if it is known.
    selects: Option<u128>,
    /// The program gives the checksum.
    checked: bool,
    /// Fields with `length of`: first bit, width, what they count, place.
    lengths: Vec<(u32, u8, LengthOf, Span)>,
}

/// A header as it is written in a packet; values and numbers stand in the order of the layout's fields.
struct MadeHeader<'h> {
    name: &'h ast::Name,
    layout: &'h Layout,
    values: &'h [Option<Expr>],
    /// What is known while checking.
    numbers: &'h [Option<u128>],
}

impl Checker<'_> {
    /// The bytes and holes of a packet.
    pub(crate) fn made_packet(&mut self, packet: &ast::PacketExpr) -> Option<Made> {
        let mut made = Made::default();
        let mut placed: Vec<Placed> = Vec::new();
        let mut right = true;
        for (index, part) in packet.parts.iter().enumerate() {
            if made.tail.is_some() {
                self.error(
                    "E0610",
                    "nothing can follow the rest of a received packet",
                    packet.span,
                    "the rest of the received packet ends the new one",
                );
                return None;
            }
            match part {
                PacketPart::Text(text, _) => made.bytes.extend(text.as_bytes()),
                PacketPart::Hex(bytes, _) => made.bytes.extend(bytes),
                PacketPart::Zero(count, span) => {
                    let count = self.constant(count, &Type::Uint(32)).unwrap_or(0) as usize;
                    if count > LARGEST_MADE {
                        self.diagnostics.too_long(*span);
                        return None;
                    }
                    made.bytes.resize(made.bytes.len() + count, 0);
                }
                PacketPart::Rest { from, take, span } => match self.tail(from, take.as_ref(), *span) {
                    Some(tail) => made.tail = Some(tail),
                    None => right = false,
                },
                PacketPart::Header(name, fields) => {
                    let next = packet.parts.get(index + 1);
                    match self.made_header(name, fields, next, &mut made) {
                        Some(part) => placed.push(part),
                        None => right = false,
                    }
                }
            }
        }
        if made.bytes.len() > LARGEST_MADE {
            self.diagnostics.too_long(packet.span);
            return None;
        }
        let computed = made.holes.len() + placed.iter().map(|part| part.lengths.len()).sum::<usize>();
        if computed > MOST_HOLES {
            self.report(
                Diagnostic::error(
                    "E0615",
                    "too many fields of the packet are computed",
                    packet.span,
                    format!("{computed} fields, and at most {MOST_HOLES} are possible"),
                )
                .help("write constants where the value does not depend on a packet, or join narrow fields to wider ones"),
            );
            return None;
        }
        right &= self.diagnostics.write_lengths(&placed, &mut made);
        made.sums = self.program.sums(&placed);
        made.lead = self.program.lead(packet, &placed);
        if made.holes.is_empty() && made.tail.is_none() {
            let Made { bytes, sums, .. } = &mut made;
            sums.drain(..).for_each(|one| one.write(bytes));
        }
        right.then_some(made)
    }

    /// The end of the received packet.
    fn tail(&mut self, from: &RestFrom, take: Option<&ast::Expr>, span: Span) -> Option<Tail> {
        if self.scope.context != Context::Packet {
            self.error(
                "E0415",
                "there is no packet whose bytes could be used here",
                span,
                "this is the rest of a received packet",
            );
            return None;
        }
        let from = match from {
            RestFrom::Payload => TailFrom::Payload,
            RestFrom::Packet => TailFrom::Packet,
            RestFrom::Header(name) => TailFrom::Header(self.header_named(name)?),
        };
        let take = match take {
            Some(take) => {
                let take = self.expression(take, Some(&Type::Uint(32)));
                if !self.diagnostics.expect_type(&take, &Type::Uint(32)) {
                    return None;
                }
                Some(take)
            }
            None => None,
        };
        Some(Tail { from, take })
    }

    fn made_header(
        &mut self,
        name: &ast::Name,
        written: &[(ast::Name, ast::Expr)],
        next: Option<&PacketPart>,
        made: &mut Made,
    ) -> Option<Placed> {
        let for_tests = if self.scope.context == Context::Constant {
            self.names.test_layouts.get(&name.text)
        } else {
            None
        };
        let Some(&id) = self.names.layouts.get(&name.text).or(for_tests) else {
            self.unknown_layout(name);
            return None;
        };
        let layout = self.program.layouts[id.0].clone();
        let (values, right) = self.header_values(id, &layout, written)?;
        let numbers = self.header_numbers(&layout, &values, next)?;
        if !right {
            return None;
        }
        let follower = next.and_then(|next| match next {
            PacketPart::Header(name, _) => Some(&name.text),
            _ => None,
        });
        let clause = layout.next.as_ref();
        let announces = clause.zip(follower).and_then(|(clause, follower)| {
            let target = clause.targets.iter().find(|(_, target)| target == follower);
            numbers[clause.selector].or(target.and_then(|(values, _)| values.first().copied()))
        });
        let mut placed = Placed {
            layout: id,
            start: made.bytes.len(),
            end: made.bytes.len(),
            groups: Vec::new(),
            announces,
            selects: clause.and_then(|clause| numbers[clause.selector]),
            checked: layout.checksum.is_some_and(|checksum| values[checksum.field].is_some()),
            lengths: Vec::new(),
        };
        let header = MadeHeader { name, layout: &layout, values: &values, numbers: &numbers };
        self.write_header(&header, made, &mut placed)?;
        placed.end = made.bytes.len();
        Some(placed)
    }

    /// The values that are written for the fields of a header, and whether all of them are right.
    fn header_values(
        &mut self,
        id: LayoutId,
        layout: &Layout,
        written: &[(ast::Name, ast::Expr)],
    ) -> Option<(Vec<Option<Expr>>, bool)> {
        let mut values: Vec<Option<Expr>> = vec![None; layout.fields.len()];
        let mut right = true;
        for (field, value) in written {
            let Some(index) = layout.field_named(&field.text) else {
                if !self.flag_for_field(id, field, value, written) {
                    self.field_named(id, field);
                }
                right = false;
                continue;
            };
            if layout.fields[index].ty == Type::View {
                self.error(
                    "E0612",
                    format!("`{}` cannot be written here", field.text),
                    field.span,
                    "bytes are zero; write the header as `hex \"…\"` instead",
                );
                right = false;
                continue;
            }
            if values[index].is_some() {
                self.diagnostics.given_twice(format!("`{}` is given twice", field.text), field.span);
            }
            let outer = self.scope.written_field.replace((id, index));
            let (value, fits) = self.header_value(&layout.fields[index], value);
            self.scope.written_field = outer;
            right &= fits;
            values[index] = Some(value?);
        }
        Some((values, right))
    }

    /// The value that is written for one field, and whether it fits; without a value nothing more can be said
    /// of the header.
    fn header_value(&mut self, field: &Field, value: &ast::Expr) -> (Option<Expr>, bool) {
        if self.scope.context == Context::Constant {
            let number = self.constant(value, &field.ty);
            let constant = |number| super::expressions::constant(number, field.ty.clone(), value.span);
            return (number.map(constant), true);
        }
        let value = self.expression(value, Some(&field.ty));
        let mut right = self.diagnostics.expect_type(&value, &field.ty);
        if let Some((low, high)) = field.constraint
            && let Some(number) = fold(&value)
            && !(low..=high).contains(&number)
        {
            self.error(
                "E0312",
                format!("`{}` must be {}", field.name, range_in_words(low, high)),
                value.span,
                format!("this is {number}"),
            );
            right = false;
        }
        (Some(value), right)
    }

    /// Appends the bytes of a header to a packet, and notes the fields that are known only later.
    fn write_header(&mut self, header: &MadeHeader, made: &mut Made, placed: &mut Placed) -> Option<()> {
        let &MadeHeader { name, layout, values, numbers } = header;
        let own = |field: usize| numbers[field];
        for group in &layout.groups {
            let base = made.bytes.len();
            placed.groups.push(base);
            let (size, fields): (usize, Vec<usize>) = match group {
                Group::Fixed { bytes, fields } => (*bytes as usize, fields.clone()),
                Group::Variable { length, field } => {
                    (self.diagnostics.known_size(length, &own, *field, layout, name)?, Vec::new())
                }
                Group::Conditional { when, .. } if fold_with(when, &own) == Some(0) => (0, Vec::new()),
                Group::Conditional { field, size: ConditionalSize::Fixed(bytes), .. } => {
                    (*bytes as usize, vec![*field])
                }
                Group::Conditional { field, size: ConditionalSize::Variable(length), .. } => {
                    (self.diagnostics.known_size(length, &own, *field, layout, name)?, Vec::new())
                }
            };
            if made.bytes.len() + size > LARGEST_MADE {
                self.diagnostics.too_long(name.span);
                return None;
            }
            made.bytes.resize(base + size, 0);
            for field in fields {
                let (bit, width) = (
                    base as u32 * 8 + layout.fields[field].bit,
                    layout.fields[field].ty.width().unwrap_or(0),
                );
                match (&values[field], numbers[field], layout.fields[field].length_of) {
                    (None, _, Some(counted)) => placed.lengths.push((bit, width, counted, name.span)),
                    (_, Some(number), _) => put(&mut made.bytes, bit, width, number),
                    (Some(value), None, _) => {
                        let described = &layout.fields[field];
                        let constraint = described.constraint.map(|range| (described.name.clone(), range));
                        made.holes.push(MadeField { bit, width, value: value.clone(), constraint });
                    }
                    (None, None, _) => {}
                }
            }
        }
        Some(())
    }

    /// The number of every field that is known while checking; reports fields that shape the header and are
    /// not known.
    fn header_numbers(
        &mut self,
        layout: &Layout,
        values: &[Option<Expr>],
        next: Option<&PacketPart>,
    ) -> Option<Vec<Option<u128>>> {
        let mut numbers = Vec::new();
        for (index, field) in layout.fields.iter().enumerate() {
            let number = match &values[index] {
                Some(value) => fold(value),
                None if field.ty == Type::View => None,
                None => Some(selector(layout, index, next).unwrap_or_else(|| smallest_allowed(field))),
            };
            if field.shapes && number.is_none() {
                let span = values[index].as_ref().map_or(field.span, |value| value.span);
                self.report(
                    Diagnostic::error(
                        "E0613",
                        format!("`{}` shapes the header and must be a constant here", field.name),
                        span,
                        "known only when a packet is there",
                    )
                    .place(field.span, "sizes or conditions depend on it"),
                );
                return None;
            }
            numbers.push(number);
        }
        Some(numbers)
    }
}

impl Findings {
    /// Reports a packet of more bytes than there can be.
    fn too_long(&mut self, span: Span) {
        self.error("E0611", "the packet is too long", span, "a packet has at most 65,535 bytes");
    }

    /// Writes the fields with `length of`, or notes those that depend on the rest of a received packet; false
    /// if one does not hold its length.
    fn write_lengths(&mut self, placed: &[Placed], made: &mut Made) -> bool {
        let mut right = true;
        for part in placed {
            for &(bit, width, counted, span) in &part.lengths {
                let length = match counted {
                    LengthOf::Header => part.end - part.start,
                    LengthOf::Both => made.bytes.len() - part.start,
                    LengthOf::Payload => made.bytes.len() - part.end,
                } as u32;
                if u128::from(length) > super::types::largest(width) {
                    self.error(
                        "E0201",
                        format!("the length {length} does not fit u{width}"),
                        span,
                        "the packet is too long for this header",
                    );
                    right = false;
                } else if counted != LengthOf::Header && made.tail.is_some() {
                    made.lengths.push((bit, width, length));
                } else {
                    put(&mut made.bytes, bit, width, u128::from(length));
                }
            }
        }
        right
    }

    fn known_size(
        &mut self,
        length: &Expr,
        own: &dyn Fn(usize) -> Option<u128>,
        field: usize,
        layout: &Layout,
        name: &ast::Name,
    ) -> Option<usize> {
        match fold_with(length, own) {
            Some(size) if size <= LARGEST_MADE as u128 => Some(size as usize),
            _ => {
                let field = layout.fields[field].name.clone();
                self.error(
                    "E0614",
                    format!("the length of `{field}` cannot be computed"),
                    name.span,
                    "with these fields it is negative or too large",
                );
                None
            }
        }
    }
}

impl Program {
    /// What the headers are on the way to a checksum behind all that is written.
    fn lead(&self, packet: &ast::PacketExpr, placed: &[Placed]) -> Lead {
        let mut parts = packet.parts.iter().rev().peekable();
        if parts.next_if(|part| matches!(part, PacketPart::Rest { .. })).is_none() {
            return Lead::End;
        }
        for (part, placed) in parts.zip(placed.iter().rev()) {
            let layout = &self.layouts[placed.layout.0];
            match part {
                PacketPart::Header(..) if layout.pseudo.is_some() => {
                    let (layout, start) = (placed.layout, placed.start as u32);
                    return Lead::Carrier(Carrier { layout, start, announces: placed.selects });
                }
                PacketPart::Header(..) if layout.governing_step() == GoverningStep::Passed => {}
                _ => return Lead::End,
            }
        }
        Lead::Passed
    }

    /// The checksums of headers that do not give theirs, inner ones first, since outer ones may cover them.
    fn sums(&self, placed: &[Placed]) -> Vec<Sum> {
        let mut sums = Vec::new();
        for (index, part) in placed.iter().enumerate().rev() {
            let Some(checksum) = self.layouts[part.layout.0].checksum.filter(|_| !part.checked) else {
                continue;
            };
            let mut sum = Sum {
                at: part.start as u32 + checksum.offset,
                from: part.start as u32,
                end: (!checksum.payload).then_some(part.end as u32),
                never_zero: checksum.unless_zero,
                ..Sum::default()
            };
            if checksum.pseudo {
                let before = &placed[..index];
                let carrier = before.iter().rev().find_map(|part| {
                    let layout = &self.layouts[part.layout.0];
                    Some((part, layout, layout.pseudo.as_ref()?))
                });
                // Without the header that says what is covered nothing can be computed.
                let Some((carrier, layout, pseudo)) = carrier else { continue };
                for &field in &pseudo.fields {
                    let field = &layout.fields[field];
                    let first = carrier.groups[field.group] as u32 + field.bit / 8;
                    sum.besides.push((first, u32::from(field.ty.width().unwrap_or(0)) / 8));
                }
                let kind = before.last().and_then(|part| part.announces).unwrap_or(0);
                sum.plus = if pseudo.kind { u32::from(ir::checksum::folded(kind as u64)) } else { 0 };
                sum.length = pseudo.length;
            }
            sums.push(sum);
        }
        sums
    }
}

fn selector(layout: &Layout, field: usize, next: Option<&PacketPart>) -> Option<u128> {
    let clause = layout.next.as_ref().filter(|clause| clause.selector == field)?;
    let Some(PacketPart::Header(follower, _)) = next else { return None };
    let (values, _) = clause.targets.iter().find(|(_, target)| *target == follower.text)?;
    values.first().copied()
}

/// Writes a number into bits, the most significant first.
pub(crate) fn put(bytes: &mut [u8], bit: u32, width: u8, value: u128) {
    for offset in 0..u32::from(width) {
        let at = bit + offset;
        let one = value >> (u32::from(width) - 1 - offset) & 1;
        let mask = 0x80u8 >> (at % 8);
        let byte = &mut bytes[at as usize / 8];
        *byte = if one == 1 { *byte | mask } else { *byte & !mask };
    }
}

/// A range as people say it.
pub(crate) fn range_in_words(low: u128, high: u128) -> String {
    if low == high { low.to_string() } else { format!("between {low} and {high}") }
}
