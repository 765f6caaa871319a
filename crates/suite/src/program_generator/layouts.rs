//! Random layouts: fields of every width at every place in a byte, sizes and conditions from fields before
//! them.

use super::Writer;
use super::model::{ENUMS, FieldKind, GeneratedField, GeneratedLayout, GeneratedType};

/// A field touches at most so many bits, counted from the byte it begins in.
const WIDEST: u64 = 128;

impl Writer {
    /// Declares a layout; `others` is how many there will be.
    pub(super) fn layout(&mut self, index: usize, others: usize) {
        self.saw("layout");
        let mut layout = GeneratedLayout { name: format!("l{index}"), fields: Vec::new(), pseudo: None };
        // With a condition on `next`, whatever is decoded behind the header needs it to be certain.
        let conditional = self.random.one_in(6);
        let certain = conditional.then_some((0, 150));
        self.field(&mut layout, FieldKind::Scalar(GeneratedType::Uint(8), false), certain, None);
        self.checksum(&mut layout);
        let runs = self.random.between(1, 3);
        for run in 0..runs {
            self.run(&mut layout);
            if run + 1 < runs || self.random.one_in(2) {
                self.shaped(&mut layout);
            }
        }
        self.write_layout(&layout, others, conditional);
        self.layouts.push(layout);
    }

    /// In some layouts a checksum, and a field that a pseudo header may be made of.
    fn checksum(&mut self, layout: &mut GeneratedLayout) {
        if self.random.one_in(3) {
            self.field(layout, FieldKind::Scalar(GeneratedType::Uint(8), false), None, None);
            let covers = *self.random.pick(&[
                "header",
                "header",
                "header unless 0",
                "(header + payload)",
                "(pseudo + header + payload)",
                "(pseudo + header + payload) unless 0",
            ]);
            self.saw(match covers {
                "header" | "header unless 0" => "checksum",
                "(header + payload)" => "checksum over payload",
                _ => "checksum over pseudo",
            });
            self.field(layout, FieldKind::Scalar(GeneratedType::Uint(16), false), None, None);
            if let Some(field) = layout.fields.last_mut() {
                field.covers = Some(covers);
            }
        }
        if self.random.one_in(3) {
            layout.pseudo = Some(layout.fields.len());
            let ty = self
                .random
                .pick(&[
                    GeneratedType::Ip4,
                    GeneratedType::Ip6,
                    GeneratedType::Uint(16),
                    GeneratedType::Uint(48),
                ])
                .clone();
            self.field(layout, FieldKind::Scalar(ty, false), None, None);
        }
    }

    /// Fields that fill whole bytes.
    fn run(&mut self, layout: &mut GeneratedLayout) {
        let mut bits = 0;
        for _ in 0..self.random.between(1, 6) {
            let room = WIDEST - bits % 8;
            let kind = match self.random.below(12) {
                0 if bits % 8 == 0 => {
                    self.saw("length of");
                    FieldKind::Scalar(GeneratedType::Uint(16), true)
                }
                1 | 2 => {
                    self.saw("flags");
                    let count = self.random.between(1, 9);
                    FieldKind::Flags((0..count).map(|bit| format!("b{bit}")).collect())
                }
                3 => FieldKind::Scalar(GeneratedType::Enum(self.random.below(ENUMS as u64) as usize), false),
                4..=6 => {
                    let width = if self.random.one_in(3) {
                        self.random.between(1, room)
                    } else {
                        self.random.between(1, 15)
                    };
                    FieldKind::Scalar(GeneratedType::Uint(width as u8), false)
                }
                _ => FieldKind::Scalar(GeneratedType::any(&mut self.random), false),
            };
            let width = match &kind {
                FieldKind::Scalar(ty, _) => u64::from(ty.width()),
                FieldKind::Flags(names) => names.len() as u64,
                FieldKind::Bytes(..) => 0,
            };
            if width > room {
                continue;
            }
            if width % 8 != 0 {
                self.saw("sub-byte field");
            }
            if width > 64 {
                self.saw("wide field");
            }
            let plain = matches!(kind, FieldKind::Scalar(GeneratedType::Uint(_), false));
            let constraint = (plain && self.random.one_in(8)).then(|| self.constraint(width as u8));
            self.field(layout, kind, constraint, None);
            bits += width;
        }
        let missing = (8 - bits % 8) % 8;
        if missing > 0 {
            self.field(layout, FieldKind::Scalar(GeneratedType::Uint(missing as u8), false), None, None);
        }
    }

    fn constraint(&mut self, width: u8) -> (u128, u128) {
        let top = u128::MAX >> (128 - u32::from(width));
        match self.random.below(3) {
            0 => {
                self.saw("constraint =");
                let value = self.random.value(width);
                (value, value)
            }
            1 => {
                self.saw("constraint in");
                (1, top)
            }
            _ => {
                self.saw("constraint in");
                let (a, b) = (self.random.value(width), self.random.value(width));
                (a.min(b), a.max(b))
            }
        }
    }

    /// A size or condition and what depends on it.
    fn shaped(&mut self, layout: &mut GeneratedLayout) {
        let size = layout.fields.len();
        match self.random.below(4) {
            0 => {
                self.field(layout, FieldKind::Scalar(GeneratedType::Uint(8), false), None, None);
                let ty = self
                    .random
                    .pick(&[
                        GeneratedType::Uint(8),
                        GeneratedType::Uint(16),
                        GeneratedType::Ip4,
                        GeneratedType::Uint(72),
                    ])
                    .clone();
                self.saw("conditional field");
                let over = self.random.value(3);
                self.field(layout, FieldKind::Scalar(ty, false), None, Some((size, over)));
            }
            1 => {
                self.field(layout, FieldKind::Scalar(GeneratedType::Uint(8), false), Some((0, 9)), None);
                self.saw("conditional bytes");
                self.field(layout, FieldKind::Bytes(size, 1, 0), None, Some((size, 2)));
            }
            2 => {
                let factor = self.random.between(1, 4).into();
                self.field(layout, FieldKind::Scalar(GeneratedType::Uint(4), false), None, None);
                self.field(layout, FieldKind::Scalar(GeneratedType::Uint(4), false), None, None);
                self.saw("bytes");
                self.field(layout, FieldKind::Bytes(size, factor, 0), None, None);
            }
            _ => {
                self.field(layout, FieldKind::Scalar(GeneratedType::Uint(8), false), Some((2, 12)), None);
                self.saw("bytes");
                self.field(layout, FieldKind::Bytes(size, 3, 6), None, None);
            }
        }
        if let Some(field) = layout.fields.get_mut(size) {
            field.shapes = true;
        }
    }

    fn field(
        &mut self,
        layout: &mut GeneratedLayout,
        kind: FieldKind,
        constraint: Option<(u128, u128)>,
        when: Option<(usize, u128)>,
    ) {
        let name = format!("f{}", layout.fields.len());
        layout.fields.push(GeneratedField { name, kind, constraint, when, shapes: false, covers: None });
    }

    fn write_layout(&mut self, layout: &GeneratedLayout, others: usize, conditional: bool) {
        self.open(&format!("layout {} {{", layout.name));
        for field in &layout.fields {
            let mut text = match &field.kind {
                FieldKind::Scalar(ty, _) => match field.covers {
                    Some(covers) => format!("{}: inet16 over {covers}", field.name),
                    None => format!("{}: {}", field.name, ty.text()),
                },
                FieldKind::Flags(names) => {
                    format!("{}: u{} {{ {} }}", field.name, names.len(), names.join(", "))
                }
                FieldKind::Bytes(size, factor, 0) => format!("{}: bytes[f{size} * {factor}]", field.name),
                FieldKind::Bytes(size, factor, less) => {
                    format!("{}: bytes[f{size} * {factor} - {less}]", field.name)
                }
            };
            match field.constraint {
                Some((low, high)) if low == high => text += &format!(" = {low}"),
                Some((low, high)) if high == u128::MAX >> (128 - u32::from(field.width().unwrap_or(128))) => {
                    text += &format!(" in {low}..");
                }
                Some((low, high)) => text += &format!(" in {low}..{high}"),
                None => {}
            }
            if matches!(field.kind, FieldKind::Scalar(_, true)) {
                text += *self.random.pick(&[
                    " length of (header + payload)",
                    " length of (header)",
                    " length of (payload)",
                ]);
            }
            if let Some((on, over)) = field.when {
                text += &format!(" when f{on} > {over}");
            }
            self.line(&text);
        }
        if !conditional && layout.pseudo.is_none() && !self.random.one_in(4) {
            return self.close("}");
        }
        self.saw("next");
        let condition = if conditional {
            self.saw("next when");
            " when f0 < 200"
        } else {
            ""
        };
        let (first, second) = (self.random.below(others as u64), self.random.below(others as u64));
        // Packets announce by 1, 2, … which of a decoder's targets comes next.
        let next = format!("next f0{condition} {{ 1 | 78 => l{first} 2 => l{second} }}");
        let pseudo = match layout.pseudo {
            None => String::new(),
            Some(field) => {
                self.saw("pseudo");
                let rest = *self.random.pick(&[
                    "",
                    " + kind of payload",
                    " + length of payload",
                    " + kind of payload + length of payload",
                ]);
                format!(" pseudo (f{field}{rest})")
            }
        };
        self.close(&format!("}} {next}{pseudo}"));
    }
}
