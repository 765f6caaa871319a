//! Random changes of a packet's size. What takes headers out stands where nothing comes behind it, so that no
//! read of them follows.

use super::Writer;
use super::expressions::Scope;
use super::model::{FieldKind, GeneratedLayout, GeneratedType};

impl Writer {
    /// A change of size; the scope has a packet, and is no walk.
    pub(super) fn edit(&mut self, scope: &mut Scope) {
        match self.random.below(6) {
            0 | 1 => self.push(scope),
            2 => {
                self.saw("encapsulate");
                let part = self.written(scope);
                self.line(&format!("encapsulate {{ {part} }}"));
            }
            3 => {
                self.saw("truncate");
                let length = match self.random.below(3) {
                    0 => self.value(scope, &GeneratedType::Uint(32)),
                    _ => self.random.below(60).to_string(),
                };
                self.line(&format!("truncate to {length}"));
            }
            _ => self.take_out(scope),
        }
    }

    fn push(&mut self, scope: &Scope) {
        let after = self.random.one_in(2);
        let Some((header, _)) = self.edge(scope) else { return };
        self.saw("push");
        let mut parts = vec![self.written(scope)];
        if self.random.one_in(4) {
            parts.push("hex \"de ad be\"".to_string());
        }
        let side = if after { "after" } else { "before" };
        self.line(&format!("push {} {side} {header}", parts.join(" / ")));
    }

    /// Takes headers out under a condition; what is left may be read, and then comes an end.
    fn take_out(&mut self, scope: &Scope) {
        let popped = if self.random.one_in(2) { self.edge(scope) } else { None };
        let Some((header, layout)) = popped.clone().or_else(|| scope.headers.last().cloned()) else { return };
        let condition = self.condition(scope, 1);
        self.open(&format!("if {condition} {{"));
        let mut left = Scope { targets: Vec::new(), ..scope.clone() };
        if popped.is_some() {
            self.saw("pop");
            self.line(&format!("pop {header}"));
            left.headers.retain(|(other, _)| *other != header);
        } else {
            self.saw("decapsulate");
            self.line(&format!("decapsulate to {header}"));
            left.headers = vec![(header, layout)];
        }
        let count = self.random.below(3);
        self.statements(&mut left, count, 1);
        self.end(&left, 0);
        self.close("}");
    }

    /// A header beside which the size may change: nowhere in the program does a header count or sum up what
    /// is around it.
    fn edge(&mut self, scope: &Scope) -> Option<(String, usize)> {
        let minds = |layout: &GeneratedLayout| {
            layout.fields.iter().any(|field| {
                let covers = field.covers.is_some_and(|covers| covers.contains("payload"));
                covers || matches!(field.kind, FieldKind::Scalar(_, true))
            })
        };
        let mut decoded = self.nodes.iter().filter_map(|node| node.header.as_ref());
        let minded = decoded.any(|(_, layout)| minds(&self.layouts[*layout]));
        (!minded && !scope.headers.is_empty()).then(|| self.random.pick(&scope.headers).clone())
    }

    /// A header with some of its fields.
    pub(super) fn written(&mut self, scope: &Scope) -> String {
        let layout = self.random.below(self.layouts.len() as u64) as usize;
        let mut fields = Vec::new();
        for field in self.layouts[layout].fields.clone() {
            let free = !field.shapes
                && field.constraint.is_none()
                && !matches!(field.kind, FieldKind::Scalar(_, true));
            if let (Some(ty), true) = (field.plain(), free && self.random.one_in(2)) {
                fields.push(format!("{} {}", field.name, self.value(scope, &ty)));
            }
        }
        if fields.is_empty() { format!("l{layout}") } else { format!("l{layout}({})", fields.join(", ")) }
    }
}
