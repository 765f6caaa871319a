//! Random statements that read and write tables: lookups, learning, removal, default entries.

use super::Writer;
use super::expressions::Scope;
use super::model::{GeneratedType, Holds, Table};

impl Writer {
    pub(super) fn lookup(&mut self, scope: &Scope, depth: u32) {
        self.saw("lookup");
        let table = self.any_table();
        let key = self.keys(scope, &table);
        self.open(&format!("match {}[{key}] {{", table.name));
        match &table.holds {
            Holds::Nothing => {
                self.open("some _ => {");
                self.inside(scope, 2, depth - 1);
                self.close("}");
            }
            Holds::Values(types) => self.lookup_values(scope, types, depth),
            Holds::Variants(variants) => {
                for (variant, params) in variants {
                    self.saw("variant pattern");
                    let (pattern, inner) = self.bind(scope, params);
                    let pattern = match params.len() {
                        0 => String::new(),
                        1 => format!("({pattern})"),
                        _ => pattern,
                    };
                    self.open(&format!("some {variant}{pattern} => {{"));
                    self.inside(&inner, 2, depth - 1);
                    self.close("}");
                }
            }
        }
        self.open("none => {");
        self.inside(scope, 2, depth - 1);
        self.close("}");
        self.close("}");
    }

    fn lookup_values(&mut self, scope: &Scope, types: &[GeneratedType], depth: u32) {
        if self.random.one_in(2) {
            self.saw("match guard");
            let (pattern, inner) = self.bind(scope, types);
            let guard = self.condition(&inner, 1);
            self.open(&format!("some {pattern} if {guard} => {{"));
            self.inside(&inner, 2, depth - 1);
            self.close("}");
        }
        if types.len() > 1 {
            self.saw("tuple pattern");
            let first = self.literal(&types[0]);
            self.open(&format!("some ({first}{}) => {{", ", _".repeat(types.len() - 1)));
            self.inside(scope, 1, depth - 1);
            self.close("}");
        }
        let (pattern, inner) = self.bind(scope, types);
        self.open(&format!("some {pattern} => {{"));
        self.inside(&inner, 2, depth - 1);
        self.close("}");
    }

    /// A pattern that gives every value a name, and the scope with them.
    pub(super) fn bind(&mut self, scope: &Scope, types: &[GeneratedType]) -> (String, Scope) {
        let mut inner = scope.clone();
        let names: Vec<String> = types.iter().map(|_| self.name("x")).collect();
        inner.locals.extend(names.iter().zip(types).map(|(name, ty)| (name.clone(), ty.clone(), false)));
        let pattern =
            if let [name] = names.as_slice() { name.clone() } else { format!("({})", names.join(", ")) };
        (pattern, inner)
    }

    fn any_table(&mut self) -> Table {
        self.random.pick(&self.tables).clone()
    }

    /// A table that packets may write; every program has one.
    fn dynamic_table(&mut self) -> Table {
        let dynamic: Vec<Table> = self.tables.iter().filter(|table| table.dynamic).cloned().collect();
        self.random.pick(&dynamic).clone()
    }

    /// A key; one in three is a constant that other statements use too, so that they meet.
    fn keys(&mut self, scope: &Scope, table: &Table) -> String {
        let familiar = self.random.one_in(3);
        let column = |ty: &GeneratedType| if familiar { meeting(ty) } else { self.key(scope, ty) };
        table.keys.iter().map(column).collect::<Vec<_>>().join(", ")
    }

    fn entry(&mut self, scope: &Scope, holds: &Holds) -> String {
        let list = |writer: &mut Writer, types: &[GeneratedType]| {
            types.iter().map(|ty| writer.value(scope, ty)).collect::<Vec<_>>().join(", ")
        };
        match holds {
            Holds::Nothing => String::new(),
            Holds::Values(types) if types.len() == 1 => self.value(scope, &types[0]),
            Holds::Values(types) => format!("({})", list(self, types)),
            Holds::Variants(variants) => {
                let (name, params) = self.random.pick(variants).clone();
                if params.is_empty() { name } else { format!("{name}({})", list(self, &params)) }
            }
        }
    }

    /// What is written, and the key with its table.
    fn one_write(&mut self, scope: &Scope, table: &Table) -> (String, String) {
        let key = format!("{}[{}]", table.name, self.keys(scope, table));
        let write = match &table.holds {
            Holds::Nothing => key.clone(),
            holds => format!("{key} = {}", self.entry(scope, holds)),
        };
        let write = match table.age.filter(|_| self.random.one_in(3)) {
            Some(age) => {
                self.saw("learn for");
                format!("{write} for {}", self.lifetime(age))
            }
            None => write,
        };
        (write, key)
    }

    /// A lifetime of an entry in a table of this age, in milliseconds: a constant, or one that follows from
    /// the time.
    fn lifetime(&mut self, age: u64) -> String {
        let most = self.random.between(0, age);
        match self.random.below(3) {
            0 => format!("(now as u64 % {}) as time * 1ms", most + 1),
            1 => format!("{}us", most * 1000),
            _ => format!("{most}ms"),
        }
    }

    pub(super) fn write(&mut self, scope: &Scope, depth: u32) {
        let table = self.dynamic_table();
        let word = *self.random.pick(&["learn", "learn", "insert"]);
        self.saw(word);
        let (write, _) = self.one_write(scope, &table);
        if table.refuses || self.random.one_in(5) {
            self.open(&format!("{word} {write} else {{"));
            if depth > 0 {
                self.inside(scope, 1, depth - 1);
            }
            self.close("}");
        } else {
            self.line(&format!("{word} {write}"));
        }
    }

    pub(super) fn together(&mut self, scope: &Scope) {
        self.saw("together");
        let first = self.dynamic_table();
        let mut writes = vec![self.one_write(scope, &first)];
        for _ in 0..self.random.below(3) {
            let table = self.dynamic_table();
            let write = self.one_write(scope, &table);
            if writes.iter().all(|(_, key)| *key != write.1) {
                writes.push(write);
            }
        }
        self.open("learn together {");
        for (write, _) in writes {
            self.line(&write);
        }
        self.between("} else {");
        self.line("count one");
        self.close("}");
    }

    pub(super) fn unwrite(&mut self, scope: &Scope) {
        let table = self.dynamic_table();
        let with_default = !matches!(table.holds, Holds::Nothing);
        match self.random.below(4) {
            0 if with_default => {
                self.saw("insert default");
                let entry = self.entry(scope, &table.holds);
                self.line(&format!("insert {}[default] = {entry}", table.name));
            }
            1 if with_default => {
                self.saw("remove default");
                self.line(&format!("remove {}[default]", table.name));
            }
            _ => {
                self.saw("remove");
                let key = self.keys(scope, &table);
                self.line(&format!("remove {}[{key}]", table.name));
            }
        }
    }
}

/// The one constant of a type that keys meet at.
fn meeting(ty: &GeneratedType) -> String {
    match ty {
        GeneratedType::Uint(_) | GeneratedType::Port => "1".to_string(),
        GeneratedType::Bool => "true".to_string(),
        GeneratedType::Ip4 => "10.0.0.1".to_string(),
        GeneratedType::Ip6 => "2001:db8::1".to_string(),
        GeneratedType::Mac => "02:00:00:00:00:01".to_string(),
        GeneratedType::Time => "1ms".to_string(),
        GeneratedType::Enum(number) => format!("e{number}.m0"),
    }
}
