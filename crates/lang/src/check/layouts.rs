//! Layouts: where every field lies, what the decoder checks, what follows.

use super::hir::{self, ConditionalSize, Field, Group};
use super::types::{Type, largest};
use super::{Checker, Context};
use crate::ast::{self, Constraint, FieldType};
use crate::limits::LARGEST_FIXED;
use hir::LayoutId;
use ir::source::Span;
use std::collections::HashMap;

impl Checker<'_> {
    /// Computes the places of a layout's fields.
    pub(crate) fn define_layout(&mut self, item: &ast::Layout) -> hir::Layout {
        let id = LayoutId(self.program.layouts.len());
        let layout = hir::Layout {
            name: item.name.text.clone(),
            fields: Vec::new(),
            groups: Vec::new(),
            next: None,
            checksum: None,
            pseudo: None,
            smallest: 0,
            span: item.name.span,
        };
        // Sizes and conditions name fields before them, so the layout grows in the program while it is being
        // defined.
        self.program.layouts.push(layout);
        let mut places = Places { id, bits: 0, run: Vec::new(), misplaced: false };
        let mut declared: HashMap<&str, Span> = HashMap::new();
        self.described.fields = item.fields.iter().map(|field| field.name.text.clone()).collect();
        if item.fields.is_empty() {
            self.error(
                "E0313",
                format!("the layout `{}` has no fields", item.name.text),
                item.name.span,
                "a header has at least one field",
            );
        }
        for field in &item.fields {
            if let Some(&first) = declared.get(field.name.text.as_str()) {
                self.diagnostics.declared_twice("field", &field.name, Some(first));
                continue;
            }
            declared.insert(&field.name.text, field.span);
            self.place_field(item, field, &mut places);
        }
        if !places.bits.is_multiple_of(8) && !places.misplaced {
            self.error(
                "E0305",
                format!("the layout `{}` does not end at a whole byte", item.name.text),
                item.name.span,
                format!("{} bits are missing", 8 - places.bits % 8),
            );
        }
        let layout = &mut self.program.layouts[id.0];
        places.close_run(layout);
        layout.smallest = layout
            .groups
            .iter()
            .map(|group| if let Group::Fixed { bytes, .. } = group { *bytes } else { 0 })
            .sum();
        let mut layout = layout.clone();
        if let Some(next) = &item.next {
            layout.next = self.next(next, &layout, id);
        }
        layout.checksum = self.diagnostics.checksum(item, &layout);
        layout.pseudo = item.pseudo.as_ref().and_then(|pseudo| self.pseudo(pseudo, id, &layout));
        self.program.layouts.pop();
        self.described.fields.clear();
        layout
    }

    /// Checks a field and adds it to the layout that is being defined.
    fn place_field(&mut self, item: &ast::Layout, field: &ast::Field, places: &mut Places) {
        let id = places.id;
        let index = self.program.layouts[id.0].fields.len();
        let mut checked = self.field(field);
        places.misplaced |= checked.ty == Type::Unknown;
        self.scope.context = Context::Layout(id);
        let when = field.when.as_ref().map(|when| self.typed(when, &Type::Bool));
        self.described.shared_when = field.when.clone();
        let length = match &field.ty {
            FieldType::Bytes(expr) => Some(self.typed(expr, &Type::Uint(32))),
            _ => None,
        };
        self.described.shared_when = None;
        if let Some(when) = &field.when {
            self.described.conditions.insert((id.0, index), when.clone());
        }
        self.scope.context = Context::Constant;
        checked.conditional = when.is_some();
        match (when, length) {
            (None, None) => self.place_fixed(item, field, &mut checked, places),
            (None, Some(length)) => {
                self.place_apart(field, &mut checked, Group::Variable { field: index, length }, places);
            }
            (Some(when), length) => {
                let width = u32::from(checked.ty.width().unwrap_or(0));
                let size = length.map_or(ConditionalSize::Fixed(width / 8), ConditionalSize::Variable);
                let group = Group::Conditional { field: index, when, size };
                self.place_apart(field, &mut checked, group, places);
            }
        }
        self.program.layouts[id.0].fields.push(checked);
    }

    /// Gives a field whose place or presence is known only with the packet a group of its own.
    fn place_apart(&mut self, field: &ast::Field, checked: &mut Field, group: Group, places: &mut Places) {
        let begins_inside = !places.bits.is_multiple_of(8);
        if begins_inside {
            places.misplaced = true;
            self.error(
                "E0301",
                format!("`{}` does not begin at a whole byte", field.name.text),
                field.span,
                format!("it begins at bit {} of a byte", places.bits % 8),
            );
        }
        places.close_run(&mut self.program.layouts[places.id.0]);
        checked.group = self.program.layouts[places.id.0].groups.len();
        let width = checked.ty.width().unwrap_or(0);
        let fixed = matches!(&group, Group::Conditional { size: ConditionalSize::Fixed(_), .. });
        if fixed && !width.is_multiple_of(8) && !begins_inside && checked.ty != Type::Unknown {
            places.misplaced = true;
            self.error(
                "E0302",
                format!("`{}` is there only under a condition and must be whole bytes", field.name.text),
                field.span,
                format!("it has {width} bits"),
            );
        }
        let layout = &mut self.program.layouts[places.id.0];
        for used in own_fields(&group) {
            layout.fields[used].shapes = true;
        }
        layout.groups.push(group);
    }

    /// Puts a field of fixed width behind the one before it.
    fn place_fixed(
        &mut self,
        item: &ast::Layout,
        field: &ast::Field,
        checked: &mut Field,
        places: &mut Places,
    ) {
        let width = u32::from(checked.ty.width().unwrap_or(0));
        let layout = &self.program.layouts[places.id.0];
        let index = layout.fields.len();
        checked.group = layout.groups.len();
        checked.bit = places.bits;
        let covering = (places.bits % 8 + width).div_ceil(8);
        if covering > 16 {
            self.error(
                "E0303",
                format!("`{}` spreads over {covering} bytes", field.name.text),
                field.span,
                "a field may touch at most 16 bytes",
            );
        }
        places.bits += width;
        if places.bits > LARGEST_FIXED * 8 {
            self.error(
                "E0304",
                format!("the layout `{}` is too long", item.name.text),
                field.span,
                "its fixed part may have at most 4,096 bytes",
            );
            places.bits = 0;
        }
        places.run.push(index);
    }

    fn field(&mut self, field: &ast::Field) -> Field {
        let (ty, flags) = match &field.ty {
            FieldType::Scalar(ty) => (self.resolve_type(ty), Vec::new()),
            FieldType::Flags(ty, names) => {
                let resolved = self.resolve_type(ty);
                if resolved.width().map(usize::from) != Some(names.len()) && resolved != Type::Unknown {
                    self.error(
                        "E0306",
                        format!("`{}` has {} names for {resolved}", field.name.text, names.len()),
                        field.span,
                        "every bit has one name, the most significant first",
                    );
                }
                (resolved, names.iter().map(|name| name.text.clone()).collect())
            }
            FieldType::Bytes(_) => (Type::View, Vec::new()),
            FieldType::Checksum(_) => (Type::Uint(16), Vec::new()),
        };
        let constraint = field.constraint.as_ref().and_then(|constraint| {
            if ty == Type::View {
                self.error(
                    "E0307",
                    "bytes cannot be constrained",
                    field.span,
                    "constrain the field that says how long they are",
                );
                return None;
            }
            let range = match constraint {
                Constraint::Equal(value) => {
                    let value = self.constant(value, &ty)?;
                    (value, value)
                }
                Constraint::Range(from, to) => {
                    let from = self.constant(from, &ty)?;
                    let to = match to {
                        Some(to) => self.constant(to, &ty)?,
                        None => ty.largest(),
                    };
                    (from, to)
                }
            };
            if range.0 > range.1 {
                self.error(
                    "E0308",
                    format!("no value satisfies the constraint of `{}`", field.name.text),
                    field.span,
                    "the range is empty",
                );
                return None;
            }
            Some(range)
        });
        if field.length_of.is_some() && !matches!(ty, Type::Uint(_) | Type::Unknown) {
            self.error("E0200", "a length is an unsigned integer", field.span, format!("this is {ty}"));
        }
        Field {
            name: field.name.text.clone(),
            ty,
            flags,
            group: 0,
            bit: 0,
            constraint,
            conditional: false,
            shapes: false,
            length_of: field.length_of,
            span: field.span,
        }
    }

    fn next(&mut self, next: &ast::Next, layout: &hir::Layout, id: LayoutId) -> Option<hir::Next> {
        let Some(selector) = layout.field_named(&next.selector.text) else {
            let known: Vec<String> =
                layout.fields.iter().map(|field| field.name.clone()).take(self.candidates()).collect();
            self.unknown("field", &next.selector.text, next.selector.span, known.iter().map(String::as_str));
            return None;
        };
        let ty = layout.fields[selector].ty.clone();
        self.scope.context = Context::Layout(id);
        let when = next.when.as_ref().map(|when| self.typed(when, &Type::Bool));
        self.scope.context = Context::Constant;
        let mut targets = Vec::new();
        for (values, target) in &next.targets {
            let values = values.iter().filter_map(|value| self.constant(value, &ty)).collect();
            targets.push((values, target.text.clone()));
        }
        Some(hir::Next { selector, when, targets, span: next.span })
    }
}

/// Where the next field of a layout goes.
struct Places {
    id: LayoutId,
    /// Bits of the fields that lie one behind the other.
    bits: u32,
    /// These fields, which become one group.
    run: Vec<usize>,
    /// A field was refused for its place, so that no other place can be judged.
    misplaced: bool,
}

impl Places {
    fn close_run(&mut self, layout: &mut hir::Layout) {
        if !self.run.is_empty() {
            let fields = std::mem::take(&mut self.run);
            layout.groups.push(Group::Fixed { bytes: self.bits.div_ceil(8), fields });
        }
        self.bits = 0;
    }
}

/// The fields that the size of a group depends on.
fn own_fields(group: &Group) -> Vec<usize> {
    match group {
        Group::Fixed { .. } => Vec::new(),
        Group::Variable { length, .. } => length.own_fields(),
        Group::Conditional { when, size, .. } => {
            let mut found = when.own_fields();
            if let ConditionalSize::Variable(length) = size {
                found.extend(length.own_fields());
            }
            found
        }
    }
}

/// The smallest number that fits a field's constraint.
pub(crate) fn smallest_allowed(field: &Field) -> u128 {
    field.constraint.map_or(0, |(from, _)| from & largest(field.ty.width().unwrap_or(128)))
}
