//! Writes instructions as kernel text, and decides what each of them stores in a packet's record.

use super::names::{Type, constant, convert, cut, name};
use super::plan::{Effect, KernelPlan};
use super::refusal::{learning_marks, marks};
use super::results::{ResultPlace, Size, bits_of};
use super::searches::{DEFAULT, KernelSearch, rules_name};
use super::{CopiedPart, packed};
use crate::arithmetic::largest;
use crate::pack::Packing;
use ir::{Answer, BinaryOp, BlockId, CompareOp, Function, Instruction, Op, Program, TableKind, Value};
use std::collections::BTreeMap;
use std::fmt::Write;
use tables::device::exact;

/// The table that an instruction searches.
pub(super) fn table(op: &Op) -> Option<u32> {
    match op {
        Op::Lookup { table, .. }
        | Op::Learn { table, .. }
        | Op::Remove { table, .. }
        | Op::Scan { table, .. } => Some(*table),
        _ => None,
    }
}

/// The effect that an instruction leaves for commit, and how much data this effect needs; its place in the
/// result is not known yet.
pub(super) fn effect(program: &Program, op: &Op) -> Option<(Effect, Size)> {
    let place = ResultPlace::record(0);
    let table = |index: u32| &program.tables[index as usize];
    // The size of a number below `end`.
    let below = |end: u32| Size::Bits(bits_of(end.saturating_sub(1)).max(1));
    Some(match op {
        Op::Count { counter, index } => {
            let cells = below(program.counters[*counter as usize].size);
            let size = if index.is_some() { cells } else { Size::Nothing };
            (Effect::Count { counter: *counter, cell: index.map(|_| place) }, size)
        }
        Op::Lookup { table: index, .. } if marks(table(*index)) => {
            let key = Packing::new(&table(*index).keys);
            let size = key_bits(&key).map_or(Size::Words(2 * key.words as u32), Size::Bits);
            (Effect::Ask { table: *index, key: place }, size)
        }
        Op::Lookup { table: index, .. } | Op::Scan { table: index, .. } if table(*index).counted => {
            (Effect::Row { table: *index, row: place }, below(table(*index).capacity))
        }
        Op::Learn { table: index, .. } if learning_marks(table(*index)) => {
            let slots = table(*index).capacity.saturating_mul(2).max(2).checked_next_power_of_two();
            (Effect::Confirm { table: *index, entry: place }, below(slots.unwrap_or(0)))
        }
        _ => return None,
    })
}

/// The number of bits of a key, if it is at most 32.
pub fn key_bits(key: &Packing) -> Option<u32> {
    let bits = key.places.iter().map(|place| u32::from(place.width)).sum();
    (1..=32).contains(&bits).then_some(bits)
}

/// Whether the effects of a function's instructions report every key that they look up in an exact table.
pub(super) fn tells_keys<'a>(
    program: &Program,
    table: u32,
    mut instructions: impl Iterator<Item = &'a Instruction>,
) -> bool {
    let declared = &program.tables[table as usize];
    declared.kind == TableKind::Exact
        && instructions.all(|instruction| match instruction.op {
            Op::Lookup { table: asked, .. } => asked != table || marks(declared),
            Op::Learn { table: taught, .. } => taught != table || learning_marks(declared),
            Op::Remove { table: emptied, .. } => emptied != table,
            _ => true,
        })
}

/// Writes the steps of one function.
pub(super) struct Writer<'a> {
    pub(super) function: &'a Function,
    program: &'a Program,
    sites: &'a BTreeMap<(BlockId, usize), usize>,
    pub(super) plan: &'a KernelPlan,
    known: &'a [Option<u128>],
    text: String,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        program: &'a Program,
        sites: &'a BTreeMap<(BlockId, usize), usize>,
        plan: &'a KernelPlan,
        known: &'a [Option<u128>],
    ) -> Writer<'a> {
        Writer { function: &program.functions[0], program, sites, plan, known, text: String::new() }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    pub(super) fn line(&mut self, line: &str) {
        let indent = if line.ends_with(": ;") { "" } else { "    " };
        let _ = writeln!(self.text, "{indent}{line}");
    }

    fn kind(&self, value: Value) -> Type {
        Type::of(self.function.width(value))
    }

    /// A value as a 64-bit expression; the less significant half of a wide one.
    fn long(&self, value: Value) -> String {
        convert(&name(value), self.kind(value), Type::Long)
    }

    fn assign(&mut self, result: Value, expression: &str) {
        self.line(&format!("{} = {expression};", name(result)));
    }

    /// If only a part of each packet is copied to the device: gives a packet to the host if its program reads
    /// further.
    fn check_reach(&mut self, end: &str) {
        if self.plan.checks_reach() {
            self.line(&format!("if ({end} > {}u) goto again;", self.plan.stride));
        }
    }

    /// The place of a byte of the packet.
    fn at(&self, base: Value, offset: u32) -> String {
        match packed::position(base, offset, self.known) {
            Some(position) if self.plan.over == CopiedPart::Packed => {
                format!("frame + {}u", packed::place(&self.plan.ranges, position).unwrap_or(0))
            }
            Some(position) => format!("frame + {position}u"),
            None => format!("frame + ({} + {offset}u)", name(base)),
        }
    }

    pub(super) fn instruction(&mut self, instruction: &Instruction, site: (BlockId, usize)) {
        let first = instruction.results.first().copied();
        match (&instruction.op, first) {
            (Op::Const(number), Some(result)) => {
                let number = constant(self.function.width(result), *number);
                self.assign(result, &number);
            }
            (Op::Binary(op, a, b), Some(result)) => {
                let expression = binary(*op, self.function.width(*a), &name(*a), &name(*b));
                self.assign(result, &expression);
            }
            (Op::Compare(op, a, b), Some(result)) => {
                let expression = compare(*op, self.kind(*a), &name(*a), &name(*b));
                self.assign(result, &expression);
            }
            (Op::Select(condition, yes, no), Some(result)) => {
                self.assign(result, &format!("{} ? {} : {}", name(*condition), name(*yes), name(*no)));
            }
            (Op::Resize(value), Some(result)) => {
                let (from, to) = (self.function.width(*value), self.function.width(result));
                let converted = convert(&name(*value), Type::of(from), Type::of(to));
                let expression = if to < from { cut(&converted, to) } else { converted };
                self.assign(result, &expression);
            }
            (Op::Load { base, offset, bytes, .. }, Some(result)) => {
                self.check_reach(&format!("(u64){} + {}u", name(*base), offset + u32::from(*bytes)));
                let at = |more: u32| self.at(*base, offset + more);
                let expression = match bytes {
                    1..=8 => format!("load{bytes}({})", at(0)),
                    _ => {
                        format!("wide_of(load{}({}), load8({}))", bytes - 8, at(0), at(u32::from(*bytes) - 8))
                    }
                };
                self.assign(result, &expression);
            }
            (Op::Store { base, offset, bytes, value, .. }, _) => self.store(*base, *offset, *bytes, *value),
            (Op::Checksum { base, bytes, more }, Some(result)) => {
                let more = more.map(|more| format!(" + {}", name(more))).unwrap_or_default();
                let end = format!("(u64){} + {bytes}u{more}", name(*base));
                let end = format!("({end} < captured ? (u32)({end}) : captured)");
                self.check_reach(&end);
                self.assign(result, &format!("sum_bytes(frame, {}, {end})", name(*base)));
            }
            (Op::InPort, Some(result)) => self.assign(result, "port"),
            (Op::WireLength, Some(result)) => self.assign(result, "wire"),
            (Op::Captured, Some(result)) => self.assign(result, "captured"),
            (Op::Now, Some(result)) => self.assign(result, "(u64)time_high << 32 | time_low"),
            (Op::Lookup { table, key }, _) => self.lookup(*table, key, &instruction.results, site),
            (Op::Learn { table, key, value }, Some(result)) => self.learn(*table, key, value, result, site),
            (Op::Remove { table, key }, _) => {
                self.line("{");
                self.find_exact(*table, key);
                self.line("    if (at != 0xffffffffu) goto again;");
                self.line("}");
            }
            (Op::Scan { table, start, end }, _) => {
                self.scan(*table, *start, *end, &instruction.results, site)
            }
            (Op::Count { counter, index }, _) => self.count(*counter, *index, site),
            _ => {}
        }
    }

    fn store(&mut self, base: Value, offset: u32, bytes: u8, value: Value) {
        self.check_reach(&format!("(u64){} + {}u", name(base), offset + u32::from(bytes)));
        let at = |more: u32| self.at(base, offset + more);
        if bytes <= 8 {
            let value = self.long(value);
            let at = at(0);
            return self.line(&format!("store_bytes({at}, {bytes}u, {value});"));
        }
        let (high, low) = (bytes - 8, name(value));
        let (first, second) = (at(0), at(u32::from(high)));
        self.line(&format!("store_bytes({first}, {high}u, {low}.high);"));
        self.line(&format!("store_bytes({second}, 8u, {low}.low);"));
    }

    /// Notes that the effect of this instruction happened.
    fn done(&self, site: (BlockId, usize)) -> Option<(String, &'a Effect)> {
        let index = *self.sites.get(&site)?;
        let place = self.plan.done[index];
        let into = place.word.map_or("marks".to_owned(), |word| format!("done{word}"));
        Some((format!("{into} |= {:#x}u;", 1_u32 << place.shift), &self.plan.effects[index]))
    }

    /// Stores a number at a place. If the number has no room there, the host runs the packet again.
    fn put(place: &ResultPlace, number: &str) -> String {
        match place.word {
            Some(word) => format!("records[{word}u * packets + packet] = {number};"),
            None => format!(
                "if ({number} > {:#x}u) {{ goto again; }} marks |= {number} << {};",
                place.most(),
                place.shift
            ),
        }
    }

    fn count(&mut self, counter: u32, index: Option<Value>, site: (BlockId, usize)) {
        let Some((done, effect)) = self.done(site) else { return };
        match (index, effect) {
            (Some(index), Effect::Count { cell: Some(place), .. }) => {
                let size = self.program.counters[counter as usize].size;
                let index = name(index);
                let put = Self::put(place, &index);
                self.line(&format!("if ({index} < {size}u) {{ {done} {put} }}"));
            }
            _ => self.line(&done),
        }
    }

    /// Declares an array of the packed words of a key or value.
    fn packed(&mut self, array: &str, packing: &Packing, columns: &[Value]) {
        let mut words = vec![Vec::new(); packing.words];
        for (place, column) in packing.places.iter().zip(columns) {
            if place.is_wide() {
                words[place.word].push(format!("{}.high", name(*column)));
                words[place.word + 1].push(format!("{}.low", name(*column)));
            } else {
                words[place.word].push(format!("{} << {}", self.long(*column), place.shift));
            }
        }
        let words: Vec<String> = words.iter().map(|parts| parts.join(" | ")).collect();
        self.line(&format!("    const u64 {array}[{}] = {{ {} }};", packing.words, words.join(", ")));
    }

    /// The name of the kernel's argument for a table.
    fn argument(&self, table: u32) -> String {
        format!("t{}", self.place(table))
    }

    /// The number of a table among those of the kernel.
    fn place(&self, table: u32) -> usize {
        self.plan.tables.iter().position(|one| *one == table).unwrap_or_default()
    }

    /// Declares `key` and `at`, where the value words of the entry are in the image.
    fn find_exact(&mut self, table: u32, key: &[Value]) {
        let packing = Packing::new(&self.program.tables[table as usize].keys);
        self.packed("key", &packing, key);
        let argument = self.argument(table);
        self.line(&format!(
            "    const u32 at = exact_find({argument} + {argument}[1], key, {}u);",
            packing.words
        ));
    }

    fn lookup(&mut self, table: u32, key: &[Value], results: &[Value], site: (BlockId, usize)) {
        let declared = &self.program.tables[table as usize];
        let argument = self.argument(table);
        let value = Packing::new(&declared.values);
        self.line("{");
        match declared.kind {
            TableKind::Exact => self.find_exact(table, key),
            TableKind::Lpm => {
                self.line(&format!("    wide address = {};", Type::Wide.zero()));
                for column in key {
                    let width = self.function.width(*column);
                    let bits = convert(&name(*column), Type::of(width), Type::Wide);
                    match width {
                        128 => self.line(&format!("    address = {bits};")),
                        _ => {
                            self.line(&format!("    address = wide_or(wide_shl(address, {width}u), {bits});"))
                        }
                    }
                }
                self.line(&format!(
                    "    const u32 at = lpm_find({argument} + {argument}[1], address.high, address.low);"
                ));
            }
            _ => {
                self.packed("key", &Packing::apart(&declared.keys), key);
                let place = self.place(table);
                let linear = self.plan.searches[place] == KernelSearch::RulesLinear;
                let find = rules_name(place) + if linear { "_linear" } else { "" };
                self.line(&format!("    const u32 at = {find}({argument} + {argument}[1], key);"));
            }
        }
        let row = match declared.kind {
            TableKind::Exact => format!("{argument}[1] + at"),
            _ => format!("{argument}[2] + at * {}u", 2 * value.words),
        };
        self.line(&format!("    const u32 hit = at != 0xffffffffu, found = hit || {argument}[0];"));
        self.line(&format!("    GLOBAL const u32 *row = {argument} + (hit ? {row} : {DEFAULT}u);"));
        if let Some((done, effect)) = self.done(site) {
            match effect {
                Effect::Ask { key, .. } => {
                    self.line(&format!("    {done}"));
                    let packing = Packing::new(&declared.keys);
                    match key_bits(&packing) {
                        Some(_) => self.line(&format!("    {}", Self::put(key, "(u32)key[0]"))),
                        None => self.record_words("key", key.word.unwrap_or(0), packing.words),
                    }
                }
                Effect::Row { row, .. } => {
                    self.line(&format!("    if (hit) {{ {done} {} }}", Self::put(row, "at")))
                }
                _ => {}
            }
        }
        self.unpack(&value, results);
        self.line("}");
    }

    /// Assigns the results of a search, from `found` and `row`.
    fn unpack(&mut self, value: &Packing, results: &[Value]) {
        let [found, columns @ ..] = results else { return };
        self.line(&format!("    {} = found;", name(*found)));
        for (place, column) in value.places.iter().zip(columns) {
            let word = |word: usize| format!("((u64)row[{}] << 32 | row[{}])", 2 * word + 1, 2 * word);
            let expression = if place.is_wide() {
                format!("wide_of({}, {})", word(place.word), word(place.word + 1))
            } else {
                let shifted = format!("({} >> {})", word(place.word), place.shift);
                cut(&convert(&shifted, Type::Long, Type::of(place.width)), place.width)
            };
            let zero = self.kind(*column).zero();
            // If nothing is found, there is no row to read.
            self.line(&format!("    if (found) {} = {expression}; else {0} = {zero};", name(*column)));
        }
    }

    /// A search for patterns in the captured bytes from one position to another.
    fn scan(&mut self, table: u32, start: Value, end: Value, results: &[Value], site: (BlockId, usize)) {
        let declared = &self.program.tables[table as usize];
        let argument = self.argument(table);
        let bloom = if self.plan.searches[self.place(table)] == KernelSearch::Bloom { "_bloom" } else { "" };
        let (start, end) = (name(start), name(end));
        self.line("{");
        self.line(&format!("    const u32 last = {end} < captured ? {end} : captured;"));
        self.line(&format!("    const u32 length = {start} < last ? last - {start} : 0;"));
        self.line(&format!("    GLOBAL const u8 *searched = frame + (length ? {start} : 0);"));
        let arguments = format!("{argument} + {argument}[1], searched, length");
        match (declared.kind, results) {
            (TableKind::Patterns(Answer::All), [result]) => {
                self.line(&format!("    {} = patterns_all{bloom}({arguments});", name(*result)));
            }
            (TableKind::Patterns(Answer::Set), [result]) => {
                self.line("    u64 set[2] = { 0, 0 };");
                self.line(&format!("    patterns_set{bloom}({arguments}, set);"));
                self.line(&format!("    {} = wide_of(set[1], set[0]);", name(*result)));
            }
            _ => {
                let value = Packing::new(&declared.values);
                self.line(&format!("    const u32 pattern = patterns_first{bloom}({arguments});"));
                self.line("    const u32 found = pattern != 0xffffffffu;");
                self.line(&format!(
                    "    const u32 at = found ? patterns_value({argument} + {argument}[1], pattern) : 0;"
                ));
                let row = format!("{argument} + ({argument}[2] + at * {}u)", 2 * value.words);
                self.line(&format!("    GLOBAL const u32 *row = {row};"));
                if let Some((done, Effect::Row { row, .. })) = self.done(site) {
                    self.line(&format!("    if (found) {{ {done} {} }}", Self::put(row, "at")));
                }
                self.unpack(&value, results);
            }
        }
        self.line("}");
    }

    /// Writes 64-bit words into the record, each the less significant half first.
    fn record_words(&mut self, array: &str, first: u32, words: usize) {
        for word in 0..words as u32 {
            let (low, high) = (first + 2 * word, first + 2 * word + 1);
            self.line(&format!("        records[{low}u * packets + packet] = (u32){array}[{word}];"));
            self.line(&format!(
                "        records[{high}u * packets + packet] = (u32)({array}[{word}] >> 32);"
            ));
        }
    }

    fn learn(&mut self, table: u32, key: &[Value], value: &[Value], result: Value, site: (BlockId, usize)) {
        let declared = &self.program.tables[table as usize];
        let packing = Packing::new(&declared.values);
        self.line("{");
        self.find_exact(table, key);
        self.line("    if (at == 0xffffffffu) goto again;");
        let argument = self.argument(table);
        if packing.words > 0 {
            self.packed("value", &packing, value);
            self.line(&format!("    GLOBAL const u32 *row = {argument} + ({argument}[1] + at);"));
            for word in 0..packing.words {
                let held = format!("((u64)row[{}] << 32 | row[{}])", 2 * word + 1, 2 * word);
                self.line(&format!("    if ({held} != value[{word}]) goto again;"));
            }
        }
        if let Some((done, Effect::Confirm { entry, .. })) = self.done(site) {
            let keys = Packing::new(&declared.keys).words;
            let (first, size) = (exact::first_value(keys), exact::slot_words(keys, packing.words));
            self.line(&format!("    const u32 entry = (at - {first}u) / {size}u;"));
            self.line(&format!("    {done} {}", Self::put(entry, "entry")));
        }
        self.assign(result, "1");
        self.line("}");
    }
}

fn compare(op: CompareOp, kind: Type, a: &str, b: &str) -> String {
    if kind == Type::Wide {
        return match op {
            CompareOp::Eq => format!("wide_eq({a}, {b})"),
            CompareOp::Ne => format!("!wide_eq({a}, {b})"),
            CompareOp::Lt => format!("wide_lt({a}, {b})"),
            CompareOp::Le => format!("!wide_lt({b}, {a})"),
        };
    }
    let sign = match op {
        CompareOp::Eq => "==",
        CompareOp::Ne => "!=",
        CompareOp::Lt => "<",
        CompareOp::Le => "<=",
    };
    format!("{a} {sign} {b}")
}

fn binary(op: BinaryOp, width: u8, a: &str, b: &str) -> String {
    let most = constant(width, largest(width));
    let kind = Type::of(width);
    if kind == Type::Wide {
        return match op {
            BinaryOp::Add => cut(&format!("wide_add({a}, {b})"), width),
            BinaryOp::Sub => cut(&format!("wide_sub({a}, {b})"), width),
            BinaryOp::Mul => cut(&format!("wide_mul({a}, {b})"), width),
            BinaryOp::AddSaturate => format!("wide_add_saturate({a}, {b}, {most})"),
            BinaryOp::SubSaturate => format!("wide_sub_saturate({a}, {b})"),
            BinaryOp::MulSaturate => format!("wide_mul_saturate({a}, {b}, {most})"),
            BinaryOp::Div => format!("wide_quotient({a}, {b}, 0)"),
            BinaryOp::Rem => format!("wide_quotient({a}, {b}, 1)"),
            BinaryOp::And => format!("wide_and({a}, {b})"),
            BinaryOp::Or => format!("wide_or({a}, {b})"),
            BinaryOp::Xor => format!("wide_xor({a}, {b})"),
            BinaryOp::ShiftLeft => format!("wide_shift_left({a}, {b}, {width}u, {most})"),
            BinaryOp::ShiftRight => format!("wide_shift_right({a}, {b}, {width}u)"),
        };
    }
    let bits = if kind == Type::Word { 32 } else { 64 };
    match op {
        BinaryOp::Add => cut(&format!("{a} + {b}"), width),
        BinaryOp::Sub => cut(&format!("{a} - {b}"), width),
        BinaryOp::Mul => cut(&format!("{a} * {b}"), width),
        BinaryOp::AddSaturate => format!("add_saturate{bits}({a}, {b}, {most})"),
        BinaryOp::SubSaturate => format!("{a} > {b} ? {a} - {b} : 0"),
        BinaryOp::MulSaturate => format!("mul_saturate{bits}({a}, {b}, {most})"),
        BinaryOp::Div => format!("{b} ? {a} / {b} : 0"),
        BinaryOp::Rem => format!("{b} ? {a} % {b} : 0"),
        BinaryOp::And => format!("{a} & {b}"),
        BinaryOp::Or => format!("{a} | {b}"),
        BinaryOp::Xor => format!("{a} ^ {b}"),
        BinaryOp::ShiftLeft => format!("{b} < {width} ? {} : 0", cut(&format!("{a} << {b}"), width)),
        BinaryOp::ShiftRight => format!("{b} < {width} ? {a} >> {b} : 0"),
    }
}
