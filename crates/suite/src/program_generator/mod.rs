//! Random well-typed programs as text: a seed gives a program that uses any construct of the language.

mod edits;
mod entries;
mod expressions;
mod groups;
mod layouts;
pub mod model;
mod statements;
mod tables;

use crate::coverage::Coverage;
use crate::random::SuiteRandom;
use expressions::Scope;
use model::{ENUMS, GeneratedLayout, GeneratedType, Node, Table};
use statements::{CELLS, REASONS};

/// A random program and what packets for it should look like.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The program: one statement a line, blocks closed by a line that begins with `}`.
    pub text: String,
    /// Its layouts.
    pub layouts: Vec<GeneratedLayout>,
    /// Its decoders and stages; packets begin at the first.
    pub nodes: Vec<Node>,
    /// Numbers that stand in the program, with their widths.
    pub values: Vec<(u8, u128)>,
    /// The constructs it contains.
    pub coverage: Coverage,
}

/// Writes the program of this seed.
pub fn generate(seed: u64) -> Generated {
    let mut writer = Writer {
        random: SuiteRandom::new(seed),
        coverage: Coverage::default(),
        text: String::new(),
        indent: 0,
        names: 0,
        layouts: Vec::new(),
        tables: Vec::new(),
        constants: Vec::new(),
        functions: Vec::new(),
        events: Vec::new(),
        nodes: Vec::new(),
        values: Vec::new(),
    };
    writer.program();
    Generated {
        text: writer.text,
        layouts: writer.layouts,
        nodes: writer.nodes,
        values: writer.values,
        coverage: writer.coverage,
    }
}

/// A program that is being written.
struct Writer {
    random: SuiteRandom,
    coverage: Coverage,
    text: String,
    indent: usize,
    names: usize,
    layouts: Vec<GeneratedLayout>,
    tables: Vec<Table>,
    constants: Vec<(String, GeneratedType)>,
    /// Types of the parameters and of the value.
    functions: Vec<(Vec<GeneratedType>, GeneratedType)>,
    events: Vec<Vec<GeneratedType>>,
    nodes: Vec<Node>,
    values: Vec<(u8, u128)>,
}

impl Writer {
    fn program(&mut self) {
        self.declarations();
        self.graph();
        for index in 0..self.nodes.len() {
            self.node(index);
        }
        for index in 0..self.events.len() {
            self.event(index);
        }
        for _ in 0..self.random.below(3) {
            self.saw("every");
            let period = self.random.between(1, 30);
            self.open(&format!("every {period}ms {{"));
            let mut scope = Scope { state: true, functions: self.functions.len(), ..Scope::default() };
            let count = self.random.between(1, 3);
            self.statements(&mut scope, count, 1);
            self.close("}");
        }
    }

    fn declarations(&mut self) {
        for index in 0..ENUMS {
            self.saw("enum");
            self.line(&format!("enum e{index}: u8 {{ m0 = 1, m1 = 2, m2 = {} }}", 7 + index));
        }
        for index in 0..REASONS {
            self.line(&format!("reason r{index} \"reason {index}\""));
        }
        self.line(&format!("counter one counter many[{CELLS}]"));
        self.groups();
        for index in 0..self.random.below(4) {
            self.saw("const");
            let ty = GeneratedType::any(&mut self.random);
            let value = self.literal(&ty);
            self.line(&format!("const C{index}: {} = {value}", ty.text()));
            self.constants.push((format!("C{index}"), ty));
        }
        let layouts = self.random.between(1, 4) as usize;
        for index in 0..layouts {
            self.layout(index, layouts);
        }
        for index in 0..self.random.between(2, 5) as usize {
            self.table(index);
        }
        if self.tables.iter().all(|table| !table.dynamic) {
            self.line("table t9: exact(u8) -> u8 { capacity 2 age 9ms evict lru }");
            let (keys, holds) =
                (vec![GeneratedType::Uint(8)], model::Holds::Values(vec![GeneratedType::Uint(8)]));
            self.tables.push(Table {
                name: "t9".to_string(),
                keys,
                holds,
                dynamic: true,
                refuses: false,
                age: None,
            });
        }
        for index in 0..self.random.below(4) as usize {
            self.function(index);
        }
        for _ in 0..self.random.between(1, 3) {
            let params = self.types(3);
            self.events.push(params);
        }
    }

    fn types(&mut self, most: u64) -> Vec<GeneratedType> {
        (0..self.random.below(most + 1)).map(|_| GeneratedType::any(&mut self.random)).collect()
    }

    fn function(&mut self, index: usize) {
        self.saw("fn");
        let params = self.types(3);
        let result = GeneratedType::any(&mut self.random);
        let locals =
            params.iter().enumerate().map(|(at, ty)| (format!("a{at}"), ty.clone(), false)).collect();
        let scope = Scope { locals, functions: index, ..Scope::default() };
        let value = self.expression(&scope, &result, 2, false);
        let listed = list(&scope.locals);
        self.open(&format!("fn fn{index}({listed}) -> {} {{", result.text()));
        self.line(&value);
        self.close("}");
        self.functions.push((params, result));
    }

    /// Decides which stages and decoders there are and who goes where: forward, and back to what consumes
    /// bytes or has a cap.
    fn graph(&mut self) {
        let count = self.random.between(2, 7) as usize;
        for index in 0..count {
            let decoder = index == 0 && !self.random.one_in(8) || self.random.one_in(2);
            let layout = self.random.below(self.layouts.len() as u64) as usize;
            let mut node = Node::default();
            if decoder {
                node.name = format!("d{index}");
                node.header = Some((format!("h{index}"), layout));
            } else {
                node.name = format!("s{index}");
            }
            if index > 0 && self.random.one_in(2) {
                self.saw(if decoder { "decoder parameter" } else { "stage parameter" });
                node.params =
                    self.types(2).into_iter().enumerate().map(|(at, ty)| (format!("p{at}"), ty)).collect();
            }
            if self.random.one_in(4) {
                self.saw("cap");
                node.cap = Some(self.random.between(1, 4));
            }
            self.nodes.push(node);
        }
        for index in 0..count {
            let mut targets: Vec<usize> = (index + 1..count).filter(|_| !self.random.one_in(3)).collect();
            if targets.is_empty() && index + 1 < count {
                targets.push(index + 1);
            }
            let back: Vec<usize> = (1..=index)
                .filter(|&to| self.nodes[to].cap.is_some() || self.nodes[to].header.is_some())
                .filter(|_| self.random.one_in(3))
                .collect();
            if back.iter().any(|&to| self.nodes[to].header.is_some()) {
                self.saw("decoder loop");
            }
            targets.extend(back);
            self.nodes[index].targets = targets;
        }
        self.settle();
    }

    /// Which headers are decoded on every way to a node.
    fn settle(&mut self) {
        self.nodes[0].known = Some(Vec::new());
        let mut changed = true;
        while changed {
            changed = false;
            for index in 0..self.nodes.len() {
                let Some(mut out) = self.nodes[index].known.clone() else { continue };
                if let Some(header) = &self.nodes[index].header
                    && !out.contains(header)
                {
                    out.push(header.clone());
                }
                for target in self.nodes[index].targets.clone() {
                    let met = match &self.nodes[target].known {
                        None => out.clone(),
                        Some(known) => known.iter().filter(|header| out.contains(header)).cloned().collect(),
                    };
                    if self.nodes[target].known.as_ref() != Some(&met) {
                        self.nodes[target].known = Some(met);
                        changed = true;
                    }
                }
            }
        }
    }

    fn node(&mut self, index: usize) {
        let node = self.nodes[index].clone();
        let mut scope = Scope {
            locals: node.params.iter().map(|(name, ty)| (name.clone(), ty.clone(), false)).collect(),
            headers: node.known.clone().unwrap_or_default(),
            packet: true,
            state: true,
            targets: node.targets.clone(),
            functions: self.functions.len(),
            ..Scope::default()
        };
        let mut text = if index == 0 { "start ".to_string() } else { String::new() };
        match &node.header {
            Some((header, layout)) => {
                let params = list(&scope.locals);
                let comma = if params.is_empty() { "" } else { ", " };
                text += &format!("decoder {}({header}: l{layout}{comma}{params})", node.name);
                scope.headers.retain(|(other, _)| other != header);
            }
            None => {
                self.saw("stage");
                text += &format!("stage {}({})", node.name, list(&scope.locals));
            }
        }
        if let Some(cap) = node.cap {
            text += &format!(" cap {cap}");
        }
        if !scope.headers.is_empty() && self.random.one_in(2) {
            self.saw("requires");
            let names: Vec<&str> = scope.headers.iter().map(|(name, _)| name.as_str()).collect();
            text += &format!(" requires {}", names.join(", "));
        }
        scope.headers.extend(node.header.clone());
        self.open(&format!("{text} {{"));
        if let Some((_, layout)) = node.header {
            self.extract(layout);
        }
        let count = self.random.between(1, 5);
        self.statements(&mut scope, count, 2);
        match &node.header {
            Some((header, _)) if !node.targets.is_empty() && !self.random.one_in(4) => {
                self.dispatch(&scope, header, &node)
            }
            _ => self.end(&scope, 2),
        }
        self.close("}");
    }

    fn extract(&mut self, layout: usize) {
        match self.random.below(4) {
            0 => {
                self.saw("extract all");
                self.line("extract all");
            }
            1 => {
                self.saw("extract");
                let last = self.random.below(self.layouts[layout].fields.len() as u64);
                self.line(&if last == 0 { "extract f0".to_string() } else { format!("extract f0, f{last}") });
            }
            _ => {}
        }
    }

    /// Goes by the first field of a decoder's header, as [`Node::targets`] says.
    fn dispatch(&mut self, scope: &Scope, header: &str, node: &Node) {
        self.saw("match");
        self.open(&format!("match {header}.f0 {{"));
        for (value, &target) in (1..).zip(&node.targets) {
            self.saw("goto");
            let call = self.goto(scope, target);
            self.line(&format!("{value} => {call}"));
        }
        self.open("else => {");
        self.end(scope, 1);
        self.close("}");
        self.close("}");
    }

    fn event(&mut self, index: usize) {
        self.saw("event");
        let locals = self.events[index]
            .iter()
            .enumerate()
            .map(|(at, ty)| (format!("a{at}"), ty.clone(), false))
            .collect();
        let mut scope = Scope {
            locals,
            state: true,
            events: index + 1,
            functions: self.functions.len(),
            ..Scope::default()
        };
        let listed = list(&scope.locals);
        self.open(&format!("event ev{index}({listed}) {{"));
        let count = self.random.below(4);
        self.statements(&mut scope, count, 1);
        self.close("}");
    }

    fn saw(&mut self, construct: &'static str) {
        self.coverage.saw(construct);
    }

    /// A name that nothing else has.
    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(&"    ".repeat(self.indent));
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn open(&mut self, text: &str) {
        self.line(text);
        self.indent += 1;
    }

    fn close(&mut self, text: &str) {
        self.indent -= 1;
        self.line(text);
    }

    /// Closes a block and opens the next on the same line.
    fn between(&mut self, text: &str) {
        self.close(text);
        self.indent += 1;
    }
}

/// Parameters as programs write them.
fn list(params: &[(String, GeneratedType, bool)]) -> String {
    params.iter().map(|(name, ty, _)| format!("{name}: {}", ty.text())).collect::<Vec<_>>().join(", ")
}
