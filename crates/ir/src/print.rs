//! A program as text: complete, readable by a person, and read back by [`super::read`].
//!
//! ```text
//! program "firewall"
//! reason r0 "no_such_port" "the program sent to a port that the gateway does not have"
//! function f0 "packet" {
//! b0:
//!   %0:32 = const 0
//!   need %0 + 14 ok b1 short b2
//! b1:
//!   %1:16 = load %0 + 12, 2 proven 14  @0:120..128
//! ```

mod memory;

use std::fmt::{self, Display, Formatter, Write};

use super::*;

/// The whole program as text; the same as its `Display`.
pub fn print(program: &Program) -> String {
    program.to_string()
}

impl Display for Target {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.block)?;
        if self.args.is_empty() { Ok(()) } else { write!(out, "({})", list(&self.args)) }
    }
}

impl Display for ColumnKind {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if let ColumnKind::Names(names) = self {
            let names = names.iter().map(|(number, name)| format!("{} {}", Number(*number), Quoted(name)));
            return write!(out, "names{{{}}}", list(names));
        }
        out.write_str(name_in(&Self::NAMES, self))
    }
}

impl Display for Column {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}:{}", Quoted(&self.name), self.kind, self.width)
    }
}

impl TableKind {
    /// All kinds but exact tables, which have no words, with the words the text uses.
    const NAMES: [(TableKind, &'static str); 6] = [
        (TableKind::Lpm, "lpm"),
        (TableKind::Rules { by_priority: true }, "rules by_priority"),
        (TableKind::Rules { by_priority: false }, "rules"),
        (TableKind::Patterns(Answer::First), "patterns first"),
        (TableKind::Patterns(Answer::All), "patterns all"),
        (TableKind::Patterns(Answer::Set), "patterns set"),
    ];
}

impl Display for BinaryOp {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(name_in(&Self::NAMES, self))
    }
}

impl Display for CompareOp {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(name_in(&Self::NAMES, self))
    }
}

impl Display for Op {
    // Longer than 80 lines: one flat match over all instructions.
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Op::Const(number) => write!(out, "const {}", Number(*number)),
            Op::Binary(op, left, right) => write!(out, "{op} {left}, {right}"),
            Op::Compare(op, left, right) => write!(out, "{op} {left}, {right}"),
            Op::Select(condition, yes, no) => write!(out, "select {condition}, {yes}, {no}"),
            Op::Resize(value) => write!(out, "resize {value}"),
            Op::Load { base, offset, bytes, proven } => {
                write!(out, "load {base} + {offset}, {bytes} proven {proven}")
            }
            Op::Store { base, offset, bytes, value, proven } => {
                write!(out, "store {base} + {offset}, {bytes} proven {proven} = {value}")
            }
            Op::Checksum { base, bytes, more } => {
                write!(out, "checksum {base}, {bytes}")?;
                option(out, " more ", more)
            }
            Op::InPort => out.write_str("in_port"),
            Op::WireLength => out.write_str("wire_length"),
            Op::Captured => out.write_str("captured"),
            Op::Now => out.write_str("now"),
            Op::Lookup { table, key } => write!(out, "lookup t{table}[{}]", list(key)),
            Op::Scan { table, start, end } => write!(out, "scan t{table}, {start}, {end}"),
            Op::Insert { table, key, priority, value } => {
                write!(out, "insert t{table}[{}] priority {priority} = ({})", list(key), list(value))
            }
            Op::Withdraw { table, key, priority } => {
                write!(out, "withdraw t{table}[{}] priority {priority}", list(key))
            }
            Op::Mark { meter, index, before } => {
                write!(out, "mark m{meter}")?;
                option(out, " at ", index)?;
                option(out, " before ", before)
            }
            Op::ReadRegister { register, index } => {
                write!(out, "read_register x{register}")?;
                option(out, " at ", index)
            }
            Op::WriteRegister { register, index, value } => {
                write!(out, "write_register x{register}")?;
                option(out, " at ", index)?;
                write!(out, " = {value}")
            }
            Op::Take { pool, hint } => write!(out, "take q{pool}, {hint}"),
            Op::Give { pool, item } => write!(out, "give q{pool}({})", list(item)),
            Op::Choose { group, index, hash } => {
                write!(out, "choose u{group}, {hash}")?;
                option(out, " at ", index)
            }
            Op::Member { group, index, place } => {
                write!(out, "member u{group}, {place}")?;
                option(out, " at ", index)
            }
            Op::Join { group, index, member } => {
                write!(out, "join u{group}({})", list(member))?;
                option(out, " at ", index)
            }
            Op::Leave { group, index, member } => {
                write!(out, "leave u{group}({})", list(member))?;
                option(out, " at ", index)
            }
            Op::Learn { table, key, value } => {
                write!(out, "learn t{table}[{}] = ({})", list(key), list(value))
            }
            Op::HasRoom(keys) => {
                let keys = keys.iter().map(|(table, key)| format!("t{table}[{}]", list(key)));
                write!(out, "has_room({})", list(keys))
            }
            Op::Remove { table, key } => write!(out, "remove t{table}[{}]", list(key)),
            Op::EndAfter { table, key, after } => write!(out, "end t{table}[{}] after {after}", list(key)),
            Op::SetDefault { table, value } => write!(out, "set_default t{table} = ({})", list(value)),
            Op::ClearDefault(table) => write!(out, "clear_default t{table}"),
            Op::Count { counter, index: None } => write!(out, "count c{counter}"),
            Op::Count { counter, index: Some(index) } => write!(out, "count c{counter}[{index}]"),
            Op::Raise { event, args, delay } => {
                write!(out, "raise e{event}({})", list(args))?;
                option(out, " after ", delay)
            }
            Op::Copy(port) => write!(out, "copy {port}"),
            Op::Emit { template, values, tail, limit, port } => {
                write!(out, "emit p{template}({})", list(values))?;
                option(out, " tail ", tail)?;
                option(out, " limit ", limit)?;
                write!(out, " port {port}")
            }
            Op::PushBytes { at, template, values } => {
                write!(out, "push p{template}({}) at {at}", list(values))
            }
            Op::PopBytes { at, bytes } => write!(out, "pop {bytes} at {at}"),
            Op::Truncate(length) => write!(out, "truncate {length}"),
            Op::Fragment { at, mtu } => write!(out, "fragment {mtu} at {at}"),
            Op::Keep(value) => write!(out, "keep {value}"),
            Op::EnterStage(stage) => write!(out, "stage s{stage}"),
            Op::Header { layout, base, name } => write!(out, "header l{layout} at {base} {}", Quoted(name)),
        }
    }
}

impl Display for Sum {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, " sum {} from {}", self.at, self.from)?;
        option(out, " end ", &self.end)?;
        let besides = self.besides.iter().map(|(first, count)| format!("{first}:{count}"));
        write!(out, " ({}) plus {}", list(besides), self.plus)?;
        let words = [(self.length, " length"), (self.never_zero, " never_zero")];
        words.iter().filter(|(said, _)| *said).try_for_each(|(_, word)| out.write_str(word))
    }
}

impl Display for Terminator {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Terminator::Jump(target) => write!(out, "jump {target}"),
            Terminator::Branch(value, yes, no) => write!(out, "branch {value}, {yes}, {no}"),
            Terminator::Switch(value, cases, default) => {
                let cases = cases.iter().map(|(case, target)| format!("{} => {target}", Number(*case)));
                write!(out, "switch {value} {{{}}} else {default}", list(cases))
            }
            Terminator::Need { base, bytes, more, limit, ok, short } => {
                write!(out, "need {base} + {bytes}")?;
                option(out, " more ", more)?;
                option(out, " limit ", limit)?;
                write!(out, " ok {ok} short {short}")
            }
            Terminator::Fuel { slot, cap, ok, out: exhausted } => {
                write!(out, "fuel {slot} cap {cap} ok {ok} out {exhausted}")
            }
            Terminator::Send(port) => write!(out, "send {port}"),
            Terminator::Flood => out.write_str("flood"),
            Terminator::Multicast(set) => write!(out, "multicast g{set}"),
            Terminator::Drop(reason) => write!(out, "drop r{reason}"),
            Terminator::Punt(reason) => write!(out, "punt r{reason}"),
            Terminator::Done => out.write_str("done"),
        }
    }
}

impl Display for Program {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        writeln!(out, "program {}", Quoted(&self.name))?;
        writeln!(out, "slots {}", self.slots)?;
        for (index, reason) in self.reasons.iter().enumerate() {
            writeln!(out, "reason r{index} {} {}", Quoted(&reason.name), Quoted(&reason.help))?;
        }
        for (index, table) in self.tables.iter().enumerate() {
            write_table(out, index, table)?;
        }
        for (index, counter) in self.counters.iter().enumerate() {
            let indexed = if counter.indexed { " indexed" } else { "" };
            writeln!(out, "counter c{index} {} size {}{indexed}", Quoted(&counter.name), counter.size)?;
        }
        memory::write_memory(out, self)?;
        for (index, ports) in self.port_sets.iter().enumerate() {
            writeln!(out, "ports g{index} ({})", list(ports))?;
        }
        for (index, event) in self.events.iter().enumerate() {
            let Event { name, params, handler } = event;
            writeln!(out, "event e{index} {} ({}) handler f{handler}", Quoted(name), list(params))?;
        }
        for every in &self.every {
            writeln!(out, "every {} handler f{}", every.period, every.handler)?;
        }
        for (index, template) in self.templates.iter().enumerate() {
            write!(out, "template p{index} \"")?;
            template.bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
            let holes = template.holes.iter().map(|hole| format!("{}:{}", hole.bit, hole.width));
            write!(out, "\" ({})", list(holes))?;
            template.sums.iter().try_for_each(|one| write!(out, "{one}"))?;
            writeln!(out)?;
        }
        for (index, stage) in self.stages.iter().enumerate() {
            writeln!(out, "stage s{index} {}{}", Quoted(&stage.name), Place(stage.span))?;
        }
        for (index, layout) in self.layouts.iter().enumerate() {
            writeln!(out, "layout l{index} {} {{", Quoted(&layout.name))?;
            for field in &layout.fields {
                write!(out, "  field {} {}", Quoted(&field.name), field.kind)?;
                option(out, " bit ", &field.bit)?;
                option(out, " width ", &field.width)?;
                out.write_char('\n')?;
            }
            writeln!(out, "}}")?;
        }
        if self.orders_fragments {
            writeln!(out, "order fragments")?;
        }
        write_manifest(out, &self.manifest)?;
        self.functions
            .iter()
            .enumerate()
            .try_for_each(|(index, function)| write_function(out, index, function))?;
        // The last part, as its reader reads on to the end.
        self.steering.iter().try_for_each(|steering| write!(out, "steering {steering}"))
    }
}

impl Display for Match {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Match::Any => out.write_str("any"),
            Match::Exact(number) => write!(out, "{}", Number(*number)),
            Match::Prefix { value, length } => write!(out, "prefix {} {length}", Number(*value)),
            Match::Masked { value, mask } => write!(out, "masked {} {}", Number(*value), Number(*mask)),
            Match::Range { low, high } => write!(out, "range {} {}", Number(*low), Number(*high)),
            Match::Bytes(pattern) => {
                write!(out, "bytes \"")?;
                pattern.bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
                write!(out, "\"{} offset {}", if pattern.nocase { " nocase" } else { "" }, pattern.offset)?;
                option(out, " depth ", &pattern.depth)
            }
        }
    }
}

impl Display for KeyPart {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            KeyPart::Fixed(fixed) => write!(out, "fixed {fixed}"),
            KeyPart::Exact(value) => write!(out, "{value}"),
            KeyPart::Prefix(value, length) => write!(out, "prefix {value} {length}"),
        }
    }
}

fn write_table(out: &mut Formatter<'_>, index: usize, table: &Table) -> fmt::Result {
    writeln!(out, "table t{index} {} {{", Quoted(&table.name))?;
    if table.kind != TableKind::Exact {
        writeln!(out, "  {}", name_in(&TableKind::NAMES, &table.kind))?;
    }
    writeln!(out, "  key ({})", list(&table.keys))?;
    writeln!(out, "  value ({})", list(&table.values))?;
    writeln!(out, "  capacity {}", table.capacity)?;
    for (word, nanoseconds) in [("idle", table.idle), ("age", table.age)] {
        if let Some(nanoseconds) = nanoseconds {
            writeln!(out, "  {word} {nanoseconds}")?;
        }
    }
    if table.lifetimes {
        writeln!(out, "  lifetimes")?;
    }
    writeln!(out, "  evict {}", if table.evict == Eviction::Lru { "lru" } else { "refuse" })?;
    let numbers = |columns: &[u128]| list(columns.iter().map(|&number| Number(number)));
    if table.counted {
        writeln!(out, "  counted{}", if table.times { " times" } else { "" })?;
    }
    if table.secret {
        writeln!(out, "  secret")?;
    }
    option(out, "  releases q", &table.releases)?;
    if table.releases.is_some() {
        out.write_char('\n')?;
    }
    option(out, "  expires e", &table.expires)?;
    if table.expires.is_some() {
        out.write_char('\n')?;
    }
    if let Some(EntryFile { path, format, options }) = &table.file {
        let FileOptions { family, table, chain, first_packets, interfaces } = options;
        write!(out, "  file {} {} (", Quoted(path), Quoted(format))?;
        for (index, (name, port)) in interfaces.iter().enumerate() {
            write!(out, "{}{} {port}", if index > 0 { ", " } else { "" }, Quoted(name))?;
        }
        out.write_char(')')?;
        option(out, " family ", family)?;
        for (word, name) in [("table", table), ("chain", chain)] {
            if let Some(name) = name {
                write!(out, " {word} {}", Quoted(name))?;
            }
        }
        writeln!(out, "{}", if *first_packets { " first_packets" } else { "" })?;
    }
    for Entry { key, value, priority } in &table.entries {
        write!(out, "  entry ({})", list(key))?;
        if *priority > 0 {
            write!(out, " priority {priority}")?;
        }
        writeln!(out, " = ({})", numbers(value))?;
    }
    if let Some(value) = &table.default {
        writeln!(out, "  default ({})", numbers(value))?;
    }
    writeln!(out, "}}{}", Place(table.span))
}

fn write_manifest(out: &mut Formatter<'_>, manifest: &Manifest) -> fmt::Result {
    writeln!(out, "manifest {{")?;
    if !manifest.writes_tables.is_empty() {
        let tables = manifest.writes_tables.iter().map(|table| format!("t{table}"));
        writeln!(out, "  writes_tables ({})", list(tables))?;
    }
    if !manifest.ports.is_empty() {
        writeln!(out, "  ports ({})", list(&manifest.ports))?;
    }
    for (word, right) in manifest.clone().rights() {
        if *right {
            writeln!(out, "  {word}")?;
        }
    }
    writeln!(out, "}}")
}

/// The width stands where a value is made; values that nothing makes follow as `undefined`, so that no width
/// is lost.
fn write_function(out: &mut Formatter<'_>, index: usize, function: &Function) -> fmt::Result {
    writeln!(out, "\nfunction f{index} {} {{", Quoted(&function.name))?;
    for (value, name, kind) in &function.names {
        writeln!(out, "  name {value} {} {kind}", Quoted(name))?;
    }
    let mut made = vec![false; function.widths.len()];
    let mut definition = |value: &Value| match function.widths.get(value.0 as usize) {
        Some(width) => {
            made[value.0 as usize] = true;
            format!("{value}:{width}")
        }
        None => value.to_string(),
    };
    for (index, block) in function.blocks.iter().enumerate() {
        write!(out, "b{index}")?;
        if !block.params.is_empty() {
            write!(out, "({})", list(block.params.iter().map(&mut definition)))?;
        }
        writeln!(out, ":")?;
        for instruction in &block.instructions {
            write!(out, "  ")?;
            if !instruction.results.is_empty() {
                write!(out, "{} = ", list(instruction.results.iter().map(&mut definition)))?;
            }
            writeln!(out, "{}{}", instruction.op, Place(instruction.span))?;
        }
        writeln!(out, "  {}{}", block.terminator, Place(block.span))?;
    }
    for (index, width) in function.widths.iter().enumerate().filter(|(index, _)| !made[*index]) {
        writeln!(out, "  undefined %{index}:{width}")?;
    }
    writeln!(out, "}}")
}

/// The name of something that a table of names has.
fn name_in<T: PartialEq>(names: &[(T, &'static str)], wanted: &T) -> &'static str {
    names.iter().find(|(one, _)| one == wanted).map_or("", |(_, name)| name)
}

fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

fn option<T: Display>(out: &mut Formatter<'_>, before: &str, item: &Option<T>) -> fmt::Result {
    item.as_ref().map_or(Ok(()), |item| write!(out, "{before}{item}"))
}

/// Small numbers as people count, larger ones as they stand in packets.
struct Number(u128);

impl Display for Number {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if self.0 < 4096 { write!(out, "{}", self.0) } else { write!(out, "{:#x}", self.0) }
    }
}

/// A span, or nothing for the empty one at the start.
struct Place(Span);

impl Display for Place {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Span { file, start, end } = self.0;
        if self.0 == Span::default() { Ok(()) } else { write!(out, "  @{}:{start}..{end}", file.0) }
    }
}

/// Text in quotes with every character escaped that could end it or break the line.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(out, "\\{character}")?,
                _ if character.is_control() => write!(out, "\\u{{{:x}}}", character as u32)?,
                _ => out.write_char(character)?,
            }
        }
        out.write_char('"')
    }
}
