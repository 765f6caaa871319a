//! Random statements: everything a stage, decoder or handler may do, and how it ends.

use super::Writer;
use super::expressions::Scope;
use super::model::{FieldKind, GeneratedType};

/// Reasons that every program declares.
pub(super) const REASONS: u64 = 3;

/// Counters that every program declares: one of a single cell and one of so many.
pub(super) const CELLS: u64 = 5;

impl Writer {
    /// Some statements; names they declare end with the caller's scope.
    pub(super) fn statements(&mut self, scope: &mut Scope, count: u64, depth: u32) {
        for _ in 0..count {
            self.statement(scope, depth);
        }
    }

    fn statement(&mut self, scope: &mut Scope, depth: u32) {
        match self.random.below(35) {
            26..=28 => self.assign(scope),
            0..=2 => self.declare(scope),
            3 => self.assign(scope),
            4 | 5 if scope.packet => self.set(scope),
            6 | 7 if depth > 0 => self.branch(scope, depth),
            8 if depth > 0 => self.choose(scope, depth),
            9 if depth > 0 => self.repeat(scope, depth),
            10 if depth > 0 && scope.packet => self.walk(scope, depth),
            11 | 12 if depth > 0 => self.lookup(scope, depth),
            13..=16 => self.write(scope, depth),
            17 => self.together(scope),
            18 => self.unwrite(scope),
            19 => self.count(scope),
            20 | 21 => self.raise(scope),
            22 => self.emit(scope),
            23 if scope.packet => {
                self.saw("copy");
                let port = self.port(scope);
                self.line(&format!("copy to {port}"));
            }
            24 if depth > 0 && scope.packet => self.leave(scope),
            25 if depth > 0 && scope.packet => self.optional_field(scope, depth),
            32 | 33 => self.change_group(scope),
            34 if depth > 0 => self.choose_member(scope, depth),
            29..=31 if scope.packet && !scope.walk => self.edit(scope),
            _ => self.count(scope),
        }
    }

    fn declare(&mut self, scope: &mut Scope) {
        let ty = GeneratedType::any(&mut self.random);
        let value = self.value(scope, &ty);
        let mutable = self.random.one_in(2);
        let name = self.name("x");
        self.saw(if mutable { "var" } else { "let" });
        self.line(&format!("{} {name}: {} = {value}", if mutable { "var" } else { "let" }, ty.text()));
        scope.locals.push((name, ty, mutable));
    }

    fn assign(&mut self, scope: &mut Scope) {
        let mutable: Vec<_> = scope.locals.iter().filter(|local| local.2).cloned().collect();
        if mutable.is_empty() {
            return self.declare(scope);
        }
        self.saw("assign");
        let (name, ty, _) = self.random.pick(&mutable).clone();
        let value = self.value(scope, &ty);
        self.line(&format!("{name} = {value}"));
    }

    fn set(&mut self, scope: &mut Scope) {
        let mut fields = Vec::new();
        for (header, layout) in &scope.headers {
            for field in &self.layouts[*layout].fields {
                let free = !field.shapes && field.constraint.is_none() && field.covers.is_none();
                if let (Some(ty), true) = (field.plain(), free) {
                    fields.push((format!("{header}.{}", field.name), ty));
                }
            }
        }
        if fields.is_empty() {
            return self.count(scope);
        }
        self.saw("set");
        let (name, ty) = self.random.pick(&fields).clone();
        let value = self.value(scope, &ty);
        self.line(&format!("set {name} = {value}"));
        if self.random.one_in(8) {
            let absent = self.checksums(scope, |covers| covers.ends_with('0'));
            if !absent.is_empty() {
                self.saw("no checksum");
                let name = self.random.pick(&absent).clone();
                self.line(&format!("set {name} = 0"));
            }
        }
    }

    /// Checksums of the headers that are known, of which this holds.
    pub(super) fn checksums(&self, scope: &Scope, which: impl Fn(&str) -> bool) -> Vec<String> {
        let mut found = Vec::new();
        for (header, layout) in &scope.headers {
            let fields = self.layouts[*layout].fields.iter();
            let checksums = fields.filter(|field| field.covers.is_some_and(&which));
            found.extend(checksums.map(|field| format!("{header}.{}", field.name)));
        }
        found
    }

    fn branch(&mut self, scope: &Scope, depth: u32) {
        self.saw("if");
        let condition = self.condition(scope, 2);
        self.open(&format!("if {condition} {{"));
        self.inside(scope, 2, depth - 1);
        if self.random.one_in(2) {
            self.saw("else");
            self.between("} else {");
            self.inside(scope, 2, depth - 1);
        }
        self.close("}");
    }

    /// Statements in a scope of their own.
    pub(super) fn inside(&mut self, scope: &Scope, most: u64, depth: u32) {
        let mut inner = scope.clone();
        let count = self.random.between(1, most);
        self.statements(&mut inner, count, depth);
    }

    fn choose(&mut self, scope: &Scope, depth: u32) {
        self.saw("match");
        let width = *self.random.pick(&[3, 8, 16, 48, 128]);
        let value = self.expression(scope, &GeneratedType::Uint(width), 1, true);
        self.open(&format!("match {value} {{"));
        let (a, b) = (self.random.value(width), self.random.value(width));
        self.saw("either pattern");
        let low = self.random.value(2);
        self.open(&format!("{low} | {a} => {{"));
        self.inside(scope, 2, depth - 1);
        self.close("}");
        self.saw("range pattern");
        self.saw("match guard");
        let guard = self.condition(scope, 1);
        self.open(&format!("{}..{} if {guard} => {{", a.min(b), a.max(b)));
        self.inside(scope, 2, depth - 1);
        self.close("}");
        self.line("else => { }");
        self.close("}");
    }

    fn repeat(&mut self, scope: &Scope, depth: u32) {
        self.saw("for");
        let first = self.random.below(3);
        let name = self.name("i");
        let last = first + self.random.below(4);
        self.open(&format!("for {name} in {first}..{last} {{"));
        let mut inner = scope.clone();
        inner.locals.push((name.clone(), GeneratedType::Uint(32), false));
        if self.random.one_in(2) {
            self.saw("count cell");
            self.line(&format!("count many[{name} % {CELLS}]"));
        }
        self.statements(&mut inner, 1, depth.min(2) - 1);
        self.close("}");
    }

    fn walk(&mut self, scope: &Scope, depth: u32) {
        if scope.walk {
            return self.branch(scope, depth);
        }
        let mut views = vec!["payload".to_string()];
        for (header, layout) in &scope.headers {
            for field in &self.layouts[*layout].fields {
                if matches!(field.kind, FieldKind::Bytes(..)) && field.when.is_none() {
                    views.extend(vec![format!("{header}.{}", field.name); 3]);
                }
            }
        }
        let view = self.random.pick(&views).clone();
        self.saw(if view == "payload" { "walk payload" } else { "walk" });
        let layout = self.random.below(self.layouts.len() as u64) as usize;
        let name = self.name("w");
        self.open(&format!("for {name} in {view} as l{layout} {{"));
        let mut inner = scope.clone();
        inner.headers.push((name, layout));
        inner.walk = true;
        let count = self.random.between(1, 3);
        self.statements(&mut inner, count, depth - 1);
        if self.random.one_in(2) {
            self.saw("break");
            let condition = self.condition(&inner, 1);
            self.open(&format!("if {condition} {{"));
            self.line("break");
            self.close("}");
        }
        self.close("}");
    }

    fn count(&mut self, scope: &Scope) {
        if self.random.one_in(2) {
            self.saw("count");
            return self.line("count one");
        }
        self.saw("count cell");
        let ty = GeneratedType::Uint(*self.random.pick(&[3, 8, 16, 32]));
        let index = self.expression(scope, &ty, 1, true);
        self.line(&format!("count many[{index} % {CELLS}]"));
    }

    fn raise(&mut self, scope: &Scope) {
        let later = self.random.one_in(2) || scope.events >= self.events.len();
        let from = if later { 0 } else { scope.events };
        let event = self.random.between(from as u64, self.events.len() as u64 - 1) as usize;
        let params = self.events[event].clone();
        let args: Vec<String> = params.iter().map(|ty| self.value(scope, ty)).collect();
        let delay = if later {
            self.saw("after");
            let random = self.random.between(1, 20);
            // An event that may come round to itself needs a delay that anyone can see.
            if scope.packet && self.random.one_in(3) {
                let more = self.expression(scope, &GeneratedType::Uint(16), 0, true);
                format!("after ({random}us + ({more} as time)) ")
            } else {
                format!("after {random}ms ")
            }
        } else {
            String::new()
        };
        self.saw("raise");
        self.line(&format!("{delay}raise ev{event}({})", args.join(", ")));
    }

    fn emit(&mut self, scope: &Scope) {
        self.saw("emit");
        let mut parts = Vec::new();
        for _ in 0..self.random.between(1, 2) {
            parts.push(self.written(scope));
        }
        match self.random.below(4) {
            0 => parts.push("\"text\"".to_string()),
            1 => parts.push("hex \"de ad\"".to_string()),
            2 => parts.push("zero[3]".to_string()),
            _ => {}
        }
        if scope.packet && self.random.one_in(2) {
            self.saw("emit payload");
            let mut tail = match self.random.below(4) {
                0 => "packet".to_string(),
                1 if !scope.headers.is_empty() => {
                    format!("from {}", self.random.pick(&scope.headers).0)
                }
                _ => "payload".to_string(),
            };
            if self.random.one_in(3) {
                self.saw("take");
                let most = self.expression(scope, &GeneratedType::Uint(32), 0, true);
                tail = format!("{tail} take ({most} & 63)");
            }
            parts.push(tail);
        }
        let port = self.port(scope);
        self.line(&format!("emit {} to {port}", parts.join(" / ")));
    }

    /// A port: named, of the packet, or computed (perhaps one that does not exist).
    pub(super) fn port(&mut self, scope: &Scope) -> String {
        if self.random.one_in(2) {
            return self.random.between(1, 5).to_string();
        }
        self.value(scope, &GeneratedType::Port)
    }

    /// An end under a condition.
    fn leave(&mut self, scope: &Scope) {
        let condition = self.condition(scope, 1);
        self.open(&format!("if {condition} {{"));
        self.end(scope, 0);
        self.close("}");
    }

    fn optional_field(&mut self, scope: &Scope, depth: u32) {
        let mut fields = Vec::new();
        for (header, layout) in &scope.headers {
            for field in &self.layouts[*layout].fields {
                if let (FieldKind::Scalar(ty, _), Some(_)) = (&field.kind, &field.when) {
                    fields.push((format!("{header}.{}", field.name), ty.clone()));
                }
            }
        }
        if fields.is_empty() {
            return self.branch(scope, depth);
        }
        let (name, ty) = self.random.pick(&fields).clone();
        let (pattern, inner) = self.bind(scope, &[ty]);
        self.open(&format!("match {name} {{"));
        self.open(&format!("some {pattern} => {{"));
        self.inside(&inner, 2, depth - 1);
        self.close("}");
        self.line("none => { }");
        self.close("}");
    }

    /// A statement behind which nothing comes.
    pub(super) fn end(&mut self, scope: &Scope, depth: u32) {
        match self.random.below(15) {
            0 | 1 if depth > 0 => {
                let condition = self.condition(scope, 2);
                self.open(&format!("if {condition} {{"));
                self.end(scope, depth - 1);
                self.between("} else {");
                self.end(scope, depth - 1);
                self.close("}");
            }
            2..=7 if !scope.targets.is_empty() => {
                self.saw("goto");
                let target = *self.random.pick(&scope.targets);
                let call = self.goto(scope, target);
                self.line(&format!("goto {call}"));
            }
            8 => {
                self.saw("flood");
                self.line("flood");
            }
            9 => {
                self.saw("multicast");
                let first = self.random.between(1, 3);
                let second = first + self.random.between(1, 2);
                self.line(&format!("multicast {{{first}, {second}}}"));
            }
            14 => self.send_to_members(scope),
            10 => {
                self.saw("drop");
                let number = self.random.below(REASONS);
                self.line(&format!("drop r{number}"));
            }
            11 => {
                self.saw("punt");
                let number = self.random.below(REASONS);
                self.line(&format!("punt r{number}"));
            }
            12 => {
                self.saw("recirculate");
                let number = self.random.between(1, 3);
                self.line(&format!("recirculate {number}"));
            }
            _ => {
                self.saw("send");
                let port = self.port(scope);
                self.line(&format!("send {port}"));
            }
        }
    }

    /// A node with values for its parameters.
    pub(super) fn goto(&mut self, scope: &Scope, target: usize) -> String {
        let params = self.nodes[target].params.clone();
        let args: Vec<String> = params.iter().map(|(_, ty)| self.value(scope, ty)).collect();
        let name = &self.nodes[target].name;
        if args.is_empty() { name.clone() } else { format!("{name}({})", args.join(", ")) }
    }
}
