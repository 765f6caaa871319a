//! Random expressions of a wanted type; what the checker must prove is made provable by masks, remainders and
//! guards.

use super::Writer;
use super::model::{FieldKind, GeneratedType, Holds};

/// What can be named at a place.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// Names, types, and whether they may be assigned to.
    pub(super) locals: Vec<(String, GeneratedType, bool)>,
    /// Decoded headers and their layouts.
    pub(super) headers: Vec<(String, usize)>,
    /// There is a packet.
    pub(super) packet: bool,
    /// Tables and the time can be read.
    pub(super) state: bool,
    /// Stages and decoders that may be gone to.
    pub(super) targets: Vec<usize>,
    /// Events from this number on may be raised at once.
    pub(super) events: usize,
    /// Functions up to this number may be called.
    pub(super) functions: usize,
    /// Inside a walk.
    pub(super) walk: bool,
}

/// How deep lookups, calls and choices stand in each other at most.
const DEPTH: u32 = 3;

impl Writer {
    /// An expression of this type.
    pub(super) fn value(&mut self, scope: &Scope, ty: &GeneratedType) -> String {
        let depth = self.random.below(u64::from(DEPTH) + 1) as u32;
        self.expression(scope, ty, depth, false)
    }

    /// A key: often one of few values, so that keys meet again.
    pub(super) fn key(&mut self, scope: &Scope, ty: &GeneratedType) -> String {
        match self.random.below(6) {
            0 => self.value(scope, ty),
            1 => self.literal(ty),
            2 | 3 if ty.is_number() && ty.width() > 2 => {
                let inner = self.expression(scope, ty, 0, true);
                format!("({inner} & 3)")
            }
            _ => self.expression(scope, ty, 0, false),
        }
    }

    /// An expression; `alone` if nothing around it tells literals their type.
    pub(super) fn expression(
        &mut self,
        scope: &Scope,
        ty: &GeneratedType,
        depth: u32,
        alone: bool,
    ) -> String {
        if depth == 0 {
            return self.atom(scope, ty, alone);
        }
        let depth = depth - 1;
        match self.random.below(12) {
            0 => self.if_expression(scope, ty, depth, alone),
            1 => self.match_expression(scope, ty, depth, alone),
            2 if scope.functions > 0 => self.call(scope, ty, depth, alone),
            3 if scope.state => self.lookup_expression(scope, ty, depth, alone),
            4 => self.cast(scope, ty, depth),
            _ if *ty == GeneratedType::Bool => self.condition(scope, depth),
            _ if ty.is_number() => self.arithmetic(scope, ty, depth, alone),
            _ => self.atom(scope, ty, alone),
        }
    }

    /// A condition.
    pub(super) fn condition(&mut self, scope: &Scope, depth: u32) -> String {
        let inner = depth.saturating_sub(1);
        match self.random.below(8) {
            0 => format!("!({})", self.expression(scope, &GeneratedType::Bool, inner, false)),
            1 | 2 => {
                let op = *self.random.pick(&["&&", "||", "&&", "||", "&", "|", "^"]);
                let (a, b) = (
                    self.expression(scope, &GeneratedType::Bool, inner, false),
                    self.expression(scope, &GeneratedType::Bool, inner, false),
                );
                format!("(({a}) {op} ({b}))")
            }
            3 => self.range(scope, inner),
            4 if scope.packet => {
                let own = self.checksums(scope, |covers| covers.starts_with("header"));
                if own.is_empty() {
                    return self.range(scope, inner);
                }
                self.saw("valid");
                format!("valid({})", self.random.pick(&own))
            }
            _ => {
                self.saw("comparison");
                let ty = GeneratedType::any(&mut self.random);
                let op = *self.random.pick(&["==", "!=", "<", "<=", ">", ">="]);
                let (a, b) =
                    (self.expression(scope, &ty, inner, true), self.expression(scope, &ty, inner, false));
                format!("({a} {op} {b})")
            }
        }
    }

    fn range(&mut self, scope: &Scope, depth: u32) -> String {
        self.saw("in");
        match self.random.below(4) {
            0 => {
                let value = self.expression(scope, &GeneratedType::Ip4, depth, true);
                let prefix = *self.random.pick(&["0.0.0.0/0", "10.0.0.0/8", "0.0.0.0/30", "192.168.1.1/32"]);
                format!("({value} in {prefix})")
            }
            1 => {
                let value = self.expression(scope, &GeneratedType::Ip6, depth, true);
                let prefix = *self.random.pick(&["::/0", "2001:db8::/32", "::/126", "::1/128"]);
                format!("({value} in {prefix})")
            }
            _ => {
                let width = *self.random.pick(&[3, 8, 16, 64, 128]);
                let value = self.expression(scope, &GeneratedType::Uint(width), depth, true);
                let (a, b) = (self.random.value(width), self.random.value(width));
                if self.random.one_in(3) {
                    format!("({value} in {a}..)")
                } else {
                    format!("({value} in {}..{})", a.min(b), a.max(b))
                }
            }
        }
    }

    fn if_expression(&mut self, scope: &Scope, ty: &GeneratedType, depth: u32, alone: bool) -> String {
        self.saw("if expression");
        let condition = self.condition(scope, depth);
        let (yes, no) = (self.expression(scope, ty, depth, alone), self.expression(scope, ty, depth, alone));
        format!("(if {condition} {{ {yes} }} else {{ {no} }})")
    }

    fn match_expression(&mut self, scope: &Scope, ty: &GeneratedType, depth: u32, alone: bool) -> String {
        self.saw("match expression");
        let width = *self.random.pick(&[2, 8, 8, 16, 128]);
        let value = self.expression(scope, &GeneratedType::Uint(width), depth, true);
        let values: Vec<String> = (0..3).map(|_| self.expression(scope, ty, depth, alone)).collect();
        let (a, b) = (self.random.value(width), self.random.value(width));
        format!(
            "(match {value} {{ 0 | 1 => {}, {}..{} => {}, else => {} }})",
            values[0],
            a.min(b),
            a.max(b),
            values[1],
            values[2]
        )
    }

    fn call(&mut self, scope: &Scope, ty: &GeneratedType, depth: u32, alone: bool) -> String {
        let fitting: Vec<usize> =
            (0..scope.functions).filter(|&function| self.functions[function].1 == *ty).collect();
        if fitting.is_empty() {
            return self.expression(scope, ty, depth, alone);
        }
        self.saw("call");
        let function = *self.random.pick(&fitting);
        let params = self.functions[function].0.clone();
        let args: Vec<String> = params.iter().map(|ty| self.expression(scope, ty, depth, false)).collect();
        format!("fn{function}({})", args.join(", "))
    }

    /// A lookup as a value: it happens only if the place is reached.
    fn lookup_expression(&mut self, scope: &Scope, ty: &GeneratedType, depth: u32, alone: bool) -> String {
        let fitting = self.tables.iter().filter(|table| matches!(&table.holds, Holds::Values(types) if types.as_slice() == std::slice::from_ref(ty)));
        let fitting: Vec<_> = fitting.cloned().collect();
        if fitting.is_empty() {
            return self.expression(scope, ty, depth, alone);
        }
        self.saw("lookup");
        let table = self.random.pick(&fitting).clone();
        let keys: Vec<String> = table.keys.iter().map(|ty| self.key(scope, ty)).collect();
        let name = self.name("x");
        let other = self.expression(scope, ty, depth, true);
        format!("(match {}[{}] {{ some {name} => {name}, none => {other} }})", table.name, keys.join(", "))
    }

    fn cast(&mut self, scope: &Scope, ty: &GeneratedType, depth: u32) -> String {
        self.saw("cast");
        let wanted = ty.width();
        if !ty.is_number() {
            let inner = self.expression(scope, &GeneratedType::Uint(wanted), depth, true);
            return format!("({inner} as {})", ty.text());
        }
        let from = if self.random.one_in(2) {
            GeneratedType::any(&mut self.random)
        } else {
            GeneratedType::Uint(self.random.between(1, 128) as u8)
        };
        let inner = self.expression(scope, &from, depth, true);
        let number = format!("({inner} as u{})", from.width());
        if from.width() <= wanted && self.random.one_in(2) {
            return format!("({inner} as {})", ty.text());
        }
        let way = match self.random.below(3) {
            0 if from.width() > 4 && wanted >= 4 => return format!("(({number} & 15) as {})", ty.text()),
            1 => "as|",
            _ => "as%",
        };
        format!("({number} {way} {})", ty.text())
    }

    fn arithmetic(&mut self, scope: &Scope, ty: &GeneratedType, depth: u32, alone: bool) -> String {
        let a = self.expression(scope, ty, depth, true);
        let b = self.expression(scope, ty, depth, false);
        let width = u64::from(ty.width());
        if width < 2 {
            self.saw("bits");
            let op = *self.random.pick(&["&", "|", "^", "+%", "-|", "*%"]);
            return format!("({a} {op} {b})");
        }
        match self.random.below(10) {
            0 | 1 => {
                self.saw("wrapping arithmetic");
                format!("({a} {} {b})", self.random.pick(&["+%", "-%", "*%"]))
            }
            2 | 3 => {
                self.saw("saturating arithmetic");
                format!("({a} {} {b})", self.random.pick(&["+|", "-|", "*|"]))
            }
            4 => {
                self.saw("division");
                let op = *self.random.pick(&["/", "%"]);
                if self.random.one_in(2) { format!("({a} {op} ({b} | 1))") } else { format!("({a} {op} 3)") }
            }
            5 => {
                self.saw("bits");
                format!("({a} {} {b})", self.random.pick(&["&", "|", "^"]))
            }
            6 => {
                self.saw("shift");
                let op = *self.random.pick(&["<<", ">>"]);
                if self.random.one_in(2) {
                    let distance = self.random.below(width);
                    format!("({a} {op} {distance})")
                } else {
                    let b = self.expression(scope, ty, depth, true);
                    format!("({a} {op} ({b} % {width}))")
                }
            }
            7 => {
                self.saw("complement");
                format!("(~{a})")
            }
            _ => self.exact(scope, ty, &a, alone),
        }
    }

    /// `+`, `-` and `*` with a proof.
    fn exact(&mut self, scope: &Scope, ty: &GeneratedType, a: &str, alone: bool) -> String {
        self.saw("exact arithmetic");
        let b = self.atom(scope, ty, true);
        let width = u64::from(ty.width());
        match self.random.below(3) {
            0 => format!("(({a} / 2) + ({b} / 2))"),
            1 => {
                let split = self.random.between(1, width - 1);
                format!("(({a} >> {split}) * ({b} >> {}))", width - split)
            }
            _ => {
                let names = self.named(scope, ty);
                let (Some(x), Some(y)) = (names.first(), names.last()) else {
                    return format!("(({a} | 1) - 1)");
                };
                let zero = if alone { format!("(0 as {})", ty.text()) } else { "0".to_string() };
                match (self.random.below(3), ty) {
                    (0, GeneratedType::Uint(_)) => {
                        format!("(if {x} >= {y} {{ {x} - {y} }} else {{ {zero} }})")
                    }
                    (1, GeneratedType::Uint(_)) => format!("(if {x} > 1 {{ {x} - 1 }} else {{ {zero} }})"),
                    _ => format!("(({a} | 1) - 1)"),
                }
            }
        }
    }

    /// Everything of this type that has a name here.
    pub(super) fn named(&self, scope: &Scope, ty: &GeneratedType) -> Vec<String> {
        let mut names: Vec<String> = scope
            .locals
            .iter()
            .filter(|(_, local, _)| local == ty)
            .map(|(name, _, _)| name.clone())
            .collect();
        for (header, layout) in &scope.headers {
            let fields =
                self.layouts[*layout].fields.iter().filter(|field| field.plain().as_ref() == Some(ty));
            names.extend(fields.map(|field| format!("{header}.{}", field.name)));
        }
        names
    }

    fn atom(&mut self, scope: &Scope, ty: &GeneratedType, alone: bool) -> String {
        let mut atoms = self.named(scope, ty);
        match ty {
            GeneratedType::Port if scope.packet => atoms.push("in_port".to_string()),
            GeneratedType::Uint(32) if scope.packet => atoms.push("length".to_string()),
            GeneratedType::Time if scope.state => atoms.push("now".to_string()),
            GeneratedType::Bool => {
                if scope.packet && self.random.one_in(8) {
                    atoms.push("from_host".to_string());
                }
                for (header, layout) in &scope.headers {
                    for field in &self.layouts[*layout].fields {
                        if let FieldKind::Flags(names) = &field.kind {
                            atoms.extend(names.iter().map(|name| format!("{header}.{}.{name}", field.name)));
                        }
                    }
                }
            }
            _ => {}
        }
        if let GeneratedType::Uint(32) = ty {
            for (header, layout) in &scope.headers {
                let fields = self.layouts[*layout].fields.iter();
                let bytes =
                    fields.filter(|field| matches!(field.kind, FieldKind::Bytes(..)) && field.when.is_none());
                atoms.extend(bytes.map(|field| format!("{header}.{}.length", field.name)));
            }
        }
        atoms.extend(self.constants.iter().filter(|(_, other)| other == ty).map(|(name, _)| name.clone()));
        if !atoms.is_empty() && !self.random.one_in(4) {
            return self.random.pick(&atoms).clone();
        }
        let wider: Vec<(String, GeneratedType)> =
            scope.locals.iter().map(|(name, ty, _)| (name.clone(), ty.clone())).collect();
        let mut fields = wider;
        for (header, layout) in &scope.headers {
            let plain = self.layouts[*layout].fields.iter();
            fields
                .extend(plain.filter_map(|field| Some((format!("{header}.{}", field.name), field.plain()?))));
        }
        fields.retain(|(_, other)| matches!(other, GeneratedType::Uint(_)) && other.width() != ty.width());
        if !fields.is_empty() && !self.random.one_in(4) {
            let (name, _) = self.random.pick(&fields).clone();
            let number = format!("({name} as% u{})", ty.width());
            return if matches!(ty, GeneratedType::Uint(_)) {
                number
            } else {
                format!("({number} as {})", ty.text())
            };
        }
        let literal = self.literal(ty);
        match ty {
            GeneratedType::Uint(_) | GeneratedType::Port if alone => format!("({literal} as% {})", ty.text()),
            _ => literal,
        }
    }

    /// A literal of this type.
    pub(super) fn literal(&mut self, ty: &GeneratedType) -> String {
        let value = self.random.value(ty.width());
        match ty {
            GeneratedType::Uint(width) => {
                self.values.push((*width, value));
                if self.random.one_in(2) { format!("{value}") } else { format!("{value:#x}") }
            }
            GeneratedType::Bool => if value == 0 { "false" } else { "true" }.to_string(),
            GeneratedType::Ip4 => {
                self.values.push((32, value));
                std::net::Ipv4Addr::from(value as u32).to_string()
            }
            GeneratedType::Ip6 => {
                self.values.push((128, value));
                let groups = std::net::Ipv6Addr::from(value).segments().map(|group| format!("{group:x}"));
                groups.join(":")
            }
            GeneratedType::Mac => {
                self.values.push((48, value));
                let bytes = (value as u64).to_be_bytes();
                bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
            }
            GeneratedType::Port => self.random.between(1, 6).to_string(),
            GeneratedType::Time => {
                format!("{}{}", self.random.below(30), self.random.pick(&["ns", "us", "ms", "s"]))
            }
            GeneratedType::Enum(number) => format!("e{number}.m{}", self.random.below(3)),
        }
    }
}
