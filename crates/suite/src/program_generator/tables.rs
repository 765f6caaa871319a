//! Random tables: keys and values of every type, tiny capacities, times of milliseconds.

use super::Writer;
use super::model::{GeneratedType, Holds, Table};

/// Keys and values have at most so many 64-bit words.
const MOST_WORDS: usize = 8;

impl Writer {
    /// Declares a table.
    pub(super) fn table(&mut self, index: usize) {
        let keys = self.columns(1, 4);
        let holds = match self.random.below(8) {
            0 | 1 => {
                self.saw("set table");
                Holds::Nothing
            }
            2 | 3 => {
                self.saw("tuple table");
                Holds::Values(self.columns(2, 4))
            }
            4 => {
                self.saw("variant table");
                let count = self.random.between(1, 3);
                let variants = (0..count)
                    .map(|variant| {
                        let params = if self.random.one_in(3) { Vec::new() } else { self.columns(1, 2) };
                        (format!("v{variant}"), params)
                    })
                    .collect();
                Holds::Variants(variants)
            }
            _ => Holds::Values(self.columns(1, 1)),
        };
        let dynamic = !self.random.one_in(6);
        let refuses = dynamic && self.random.one_in(3);
        let age = (dynamic && !self.random.one_in(3)).then(|| self.random.between(1, 40));
        let table = Table { name: format!("t{index}"), keys, holds, dynamic, refuses, age };
        self.write_table(&table);
        self.tables.push(table);
    }

    /// Types that fit a key or value together.
    fn columns(&mut self, least: u64, most: u64) -> Vec<GeneratedType> {
        let count = self.random.between(least, most);
        let mut columns: Vec<GeneratedType> = Vec::new();
        let mut words = 0;
        while (columns.len() as u64) < count {
            let ty = if self.random.one_in(3) {
                GeneratedType::Uint(8)
            } else {
                GeneratedType::any(&mut self.random)
            };
            words += usize::from(ty.width()).div_ceil(64);
            if words > MOST_WORDS / 2 + 1 && !columns.is_empty() {
                columns.push(GeneratedType::Uint(4));
                words = words.min(MOST_WORDS / 2) + 1;
            } else {
                columns.push(ty);
            }
        }
        columns
    }

    fn write_table(&mut self, table: &Table) {
        let keys: Vec<String> = table
            .keys
            .iter()
            .enumerate()
            .map(|(index, ty)| if index % 2 == 0 { format!("k{index}: {}", ty.text()) } else { ty.text() })
            .collect();
        let list =
            |types: &[GeneratedType]| types.iter().map(GeneratedType::text).collect::<Vec<_>>().join(", ");
        let holds = match &table.holds {
            Holds::Nothing => String::new(),
            Holds::Values(types) if types.len() == 1 => format!(" -> {}", types[0].text()),
            Holds::Values(types) => format!(" -> ({})", list(types)),
            Holds::Variants(variants) => {
                let variants: Vec<String> = variants
                    .iter()
                    .map(|(name, params)| {
                        let params: Vec<String> = params
                            .iter()
                            .enumerate()
                            .map(|(at, ty)| format!("p{at}: {}", ty.text()))
                            .collect();
                        if params.is_empty() {
                            name.clone()
                        } else {
                            format!("{name}({})", params.join(", "))
                        }
                    })
                    .collect();
                format!(" -> {{ {} }}", variants.join(", "))
            }
        };
        self.open(&format!("table {}: exact({}){holds} {{", table.name, keys.join(", ")));
        let mut entries = if !table.dynamic || self.random.one_in(3) { self.random.between(1, 3) } else { 0 };
        if table.dynamic {
            let capacity = *self.random.pick(&[1, 2, 3, 5, 8, 64]);
            // The compiler wants room for what is learned.
            entries = entries.min(capacity - 1);
            self.line(&format!("capacity {capacity}"));
            self.times(table.age);
            self.saw(if table.refuses { "evict refuse" } else { "evict lru" });
            self.line(if table.refuses { "evict refuse" } else { "evict lru" });
            self.expiry(table);
        } else {
            self.saw("static table");
        }
        self.write_entries(table, entries);
        if !matches!(table.holds, Holds::Nothing) && self.random.one_in(3) {
            self.saw("default");
            let value = self.constant_entry(&table.holds);
            self.line(&format!("default => {value}"));
        }
        self.close("}");
    }

    /// Lets entries that end by their time raise an event, whose arguments are those of key and value.
    fn expiry(&mut self, table: &Table) {
        let value = match &table.holds {
            Holds::Nothing => &[][..],
            Holds::Values(types) => types,
            Holds::Variants(_) => return,
        };
        if self.random.one_in(2) {
            self.saw("expires");
            self.line(&format!("expires ev{}", self.events.len()));
            self.events.push(table.keys.iter().chain(value).cloned().collect());
        }
    }

    fn times(&mut self, age: Option<u64>) {
        if let Some(age) = age {
            self.saw("age");
            self.line(&format!("age {age}ms"));
        }
        if age.is_none() || self.random.one_in(2) {
            self.saw("idle");
            let idle = self.random.between(1, 20);
            self.line(&format!("idle {idle}ms"));
        }
    }

    fn write_entries(&mut self, table: &Table, count: u64) {
        if count == 0 {
            return;
        }
        self.saw("entries");
        self.open("entries {");
        for entry in 0..count {
            // The first column tells entries apart.
            let mut keys: Vec<String> = table.keys.iter().map(|ty| self.literal(ty)).collect();
            match (&table.keys[0], entry) {
                (_, 0) => {}
                (GeneratedType::Uint(width), _) if *width >= 8 => keys[0] = (200 + entry).to_string(),
                _ => break,
            }
            let key = if keys.len() == 1 { keys[0].clone() } else { format!("({})", keys.join(", ")) };
            let text = match &table.holds {
                Holds::Nothing => key.clone(),
                holds => format!("{key} => {}", self.constant_entry(holds)),
            };
            self.line(&text);
        }
        self.close("}");
    }

    fn constant_entry(&mut self, holds: &Holds) -> String {
        let list = |writer: &mut Writer, types: &[GeneratedType]| {
            types.iter().map(|ty| writer.literal(ty)).collect::<Vec<_>>().join(", ")
        };
        match holds {
            Holds::Nothing => String::new(),
            Holds::Values(types) if types.len() == 1 => self.literal(&types[0]),
            Holds::Values(types) => format!("({})", list(self, types)),
            Holds::Variants(variants) => {
                let (name, params) = self.random.pick(variants).clone();
                if params.is_empty() { name } else { format!("{name}({})", list(self, &params)) }
            }
        }
    }
}
