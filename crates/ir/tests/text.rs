//! The text of programs: every program survives printing and reading, and no text makes the reader panic.

use ir::print::print;
use ir::read::read;
use ir::source::{FileId, Span};
use ir::*;

/// Makes programs that need not be valid, only writable: every field takes every shape.
struct Maker(u64);

impl Maker {
    /// SplitMix (Steele, Lea, Flood 2014).
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Small numbers mostly, and the edges.
    fn number(&mut self) -> u128 {
        match self.below(8) {
            0 => u128::MAX,
            1 => u128::from(self.next()) << 64 | u128::from(self.next()),
            2 => u128::from(self.next()),
            _ => u128::from(self.below(5000)),
        }
    }

    fn word(&mut self) -> u32 {
        if self.below(16) == 0 { u32::MAX } else { self.below(9) as u32 }
    }

    fn short(&mut self) -> u16 {
        if self.below(16) == 0 { u16::MAX } else { self.below(9) as u16 }
    }

    fn many<T>(&mut self, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| one(self)).collect()
    }

    fn maybe<T>(&mut self, one: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.coin() { Some(one(self)) } else { None }
    }

    fn name(&mut self) -> String {
        let characters = [
            'a',
            'B',
            '_',
            '0',
            ' ',
            '"',
            '\\',
            '\n',
            '\t',
            '\u{0}',
            '\u{85}',
            '\u{2028}',
            'ß',
            '名',
            '}',
            '#',
            '%',
            '\u{10ffff}',
        ];
        (0..self.below(6)).map(|_| characters[self.below(characters.len() as u64) as usize]).collect()
    }

    fn span(&mut self) -> Span {
        if self.coin() { Span::default() } else { Span::new(FileId(self.short()), self.word(), self.word()) }
    }

    fn kind(&mut self) -> ColumnKind {
        match self.below(8) {
            0 => ColumnKind::Uint,
            1 => ColumnKind::Bool,
            2 => ColumnKind::Ip4,
            3 => ColumnKind::Ip6,
            4 => ColumnKind::Mac,
            5 => ColumnKind::Port,
            6 => ColumnKind::Time,
            _ => ColumnKind::Names(self.many(|make| (make.number(), make.name()))),
        }
    }

    fn column(&mut self) -> Column {
        Column { name: self.name(), kind: self.kind(), width: self.next() as u8 }
    }

    fn table_kind(&mut self) -> TableKind {
        match self.below(7) {
            0 => TableKind::Exact,
            1 => TableKind::Lpm,
            2 => TableKind::Rules { by_priority: false },
            3 => TableKind::Rules { by_priority: true },
            4 => TableKind::Patterns(Answer::First),
            5 => TableKind::Patterns(Answer::All),
            _ => TableKind::Patterns(Answer::Set),
        }
    }

    fn key_match(&mut self) -> Match {
        match self.below(6) {
            0 => Match::Any,
            1 => Match::Exact(self.number()),
            2 => Match::Prefix { value: self.number(), length: self.next() as u8 },
            3 => Match::Masked { value: self.number(), mask: self.number() },
            4 => Match::Range { low: self.number(), high: self.number() },
            _ => Match::Bytes(Box::new(BytePattern {
                bytes: self.many(|make| make.next() as u8),
                nocase: self.coin(),
                offset: self.word(),
                depth: self.maybe(Self::word),
            })),
        }
    }

    fn key_part(&mut self) -> KeyPart {
        match self.below(3) {
            0 => KeyPart::Fixed(self.key_match()),
            1 => KeyPart::Exact(self.value()),
            _ => KeyPart::Prefix(self.value(), self.next() as u8),
        }
    }

    fn meter(&mut self) -> Meter {
        let rates = if self.coin() {
            Rates::Single { committed: self.next(), burst: self.next(), excess: self.next() }
        } else {
            Rates::Two {
                committed: self.next(),
                burst: self.next(),
                peak: self.next(),
                peak_burst: self.next(),
            }
        };
        Meter {
            name: self.name(),
            size: self.word(),
            packets: self.coin(),
            period: 1 + u32::from(self.coin()) * 59,
            rates,
        }
    }

    fn table(&mut self) -> Table {
        let counted = self.coin();
        Table {
            name: self.name(),
            kind: self.table_kind(),
            keys: self.many(Self::column),
            values: self.many(Self::column),
            capacity: self.word(),
            idle: self.maybe(Self::next),
            age: self.maybe(Self::next),
            lifetimes: self.coin(),
            evict: if self.coin() { Eviction::Lru } else { Eviction::Refuse },
            counted,
            times: counted && self.coin(),
            secret: self.coin(),
            releases: self.maybe(Self::word),
            expires: self.maybe(Self::word),
            entries: self.many(|make| Entry {
                key: make.many(Self::key_match),
                value: make.many(Self::number),
                priority: make.word(),
            }),
            file: self.maybe(|make| EntryFile {
                path: make.name(),
                format: make.name(),
                options: FileOptions {
                    family: make.maybe(|make| make.next() as u8),
                    table: make.maybe(Self::name),
                    chain: make.maybe(Self::name),
                    first_packets: make.next() % 2 == 0,
                    interfaces: make.many(|make| (make.name(), make.next() as u16)),
                },
            }),
            default: self.maybe(|make| make.many(Self::number)),
            span: self.span(),
        }
    }

    fn value(&mut self) -> Value {
        Value(self.word())
    }

    fn values(&mut self) -> Vec<Value> {
        self.many(Self::value)
    }

    fn target(&mut self) -> Target {
        Target { block: BlockId(self.word()), args: self.values() }
    }

    fn op(&mut self) -> Op {
        let (table, base) = (self.word(), self.value());
        match self.below(40) {
            0 => Op::Const(self.number()),
            1 => Op::Binary(BinaryOp::NAMES[self.below(13) as usize].0, base, self.value()),
            2 => Op::Compare(CompareOp::NAMES[self.below(4) as usize].0, base, self.value()),
            3 => Op::Select(base, self.value(), self.value()),
            4 => Op::Resize(base),
            5 => Op::Load { base, offset: self.word(), bytes: self.next() as u8, proven: self.word() },
            6 => Op::Store {
                base,
                offset: self.word(),
                bytes: self.next() as u8,
                value: self.value(),
                proven: self.word(),
            },
            7 => Op::InPort,
            8 => Op::WireLength,
            9 => Op::Captured,
            10 => Op::Now,
            11 => Op::Lookup { table, key: self.values() },
            12 => Op::Learn { table, key: self.values(), value: self.values() },
            13 => Op::HasRoom(self.many(|make| (make.word(), make.values()))),
            14 if self.coin() => Op::EndAfter { table, key: self.values(), after: base },
            14 => Op::Remove { table, key: self.values() },
            15 => Op::SetDefault { table, value: self.values() },
            16 => Op::ClearDefault(table),
            17 => Op::Count { counter: table, index: self.maybe(Self::value) },
            18 => Op::Raise { event: table, args: self.values(), delay: self.maybe(Self::value) },
            19 => Op::Copy(base),
            20 => {
                let (values, tail) = (self.values(), self.maybe(Self::value));
                Op::Emit { template: table, values, tail, limit: self.maybe(Self::value), port: base }
            }
            21 => Op::PushBytes { at: base, template: table, values: self.values() },
            22 => Op::PopBytes { at: base, bytes: self.value() },
            23 => Op::Truncate(base),
            24 => Op::Fragment { at: base, mtu: self.value() },
            25 => Op::Scan { table, start: base, end: self.value() },
            26 => Op::Insert {
                table,
                key: self.many(Self::key_part),
                priority: self.word(),
                value: self.values(),
            },
            27 => Op::Withdraw { table, key: self.many(Self::key_part), priority: self.word() },
            28 => Op::Mark { meter: table, index: self.maybe(Self::value), before: self.maybe(Self::value) },
            29 => Op::ReadRegister { register: table, index: self.maybe(Self::value) },
            30 => Op::WriteRegister { register: table, index: self.maybe(Self::value), value: base },
            31 => Op::Take { pool: table, hint: base },
            32 => Op::Give { pool: table, item: self.values() },
            33 => Op::Choose { group: table, index: self.maybe(Self::value), hash: base },
            34 => Op::Join { group: table, index: self.maybe(Self::value), member: self.values() },
            35 => Op::Leave { group: table, index: self.maybe(Self::value), member: self.values() },
            36 => Op::Member { group: table, index: self.maybe(Self::value), place: self.word() },
            37 => {
                if self.coin() {
                    Op::Keep(base)
                } else {
                    Op::EnterStage(table)
                }
            }
            38 => Op::Checksum { base, bytes: self.word(), more: self.maybe(Self::value) },
            _ => Op::Header { layout: table, base, name: self.name() },
        }
    }

    fn terminator(&mut self) -> Terminator {
        match self.below(11) {
            0 => Terminator::Jump(self.target()),
            1 => Terminator::Branch(self.value(), self.target(), self.target()),
            2 => Terminator::Switch(
                self.value(),
                self.many(|make| (make.number(), make.target())),
                self.target(),
            ),
            3 => Terminator::Need {
                base: self.value(),
                bytes: self.word(),
                more: self.maybe(Self::value),
                limit: self.maybe(Self::value),
                ok: self.target(),
                short: self.target(),
            },
            4 => Terminator::Fuel {
                slot: self.word(),
                cap: self.word(),
                ok: self.target(),
                out: self.target(),
            },
            5 => Terminator::Send(self.value()),
            6 => Terminator::Flood,
            7 => Terminator::Multicast(self.word()),
            8 => Terminator::Drop(self.short()),
            9 => Terminator::Punt(self.short()),
            _ => Terminator::Done,
        }
    }

    fn function(&mut self) -> Function {
        Function {
            name: self.name(),
            widths: self.many(|make| make.next() as u8),
            names: self.many(|make| (make.value(), make.name(), make.kind())),
            blocks: self.many(|make| Block {
                params: make.values(),
                instructions: make.many(|make| Instruction {
                    results: make.values(),
                    op: make.op(),
                    span: make.span(),
                }),
                terminator: make.terminator(),
                span: make.span(),
            }),
        }
    }

    fn program(&mut self) -> Program {
        let steering = self.coin().then(|| Box::new(self.one_program()));
        Program { steering, orders_fragments: self.coin(), ..self.one_program() }
    }

    fn one_program(&mut self) -> Program {
        Program {
            orders_fragments: false,
            steering: None,
            name: self.name(),
            tables: self.many(Self::table),
            counters: self.many(|make| Counter {
                name: make.name(),
                size: make.word(),
                indexed: make.coin(),
            }),
            meters: self.many(Self::meter),
            registers: self.many(|make| Register {
                name: make.name(),
                size: make.word(),
                column: make.column(),
            }),
            pools: self.many(|make| Pool {
                name: make.name(),
                columns: make.many(Self::column),
                ranges: make.many(|make| (make.number(), make.number())),
            }),
            groups: self.many(|make| Group {
                name: make.name(),
                size: make.word(),
                buckets: make.word(),
                capacity: make.word(),
                multicast: make.coin(),
                columns: make.many(Self::column),
                members: make.many(|make| (make.word(), make.many(Self::number), make.word())),
                file: make.maybe(Self::name),
            }),
            reasons: self.many(|make| Reason { name: make.name(), help: make.name() }),
            port_sets: self.many(|make| make.many(Self::short)),
            events: self.many(|make| Event {
                name: make.name(),
                params: make.many(Self::column),
                handler: make.word(),
            }),
            every: self.many(|make| Every { period: make.next(), handler: make.word() }),
            templates: self.many(|make| Template {
                bytes: make.many(|make| make.next() as u8),
                holes: make.many(|make| Hole { bit: make.word(), width: make.next() as u8 }),
                sums: make.many(|make| Sum {
                    at: make.word(),
                    from: make.word(),
                    end: make.maybe(Self::word),
                    besides: make.many(|make| (make.word(), make.word())),
                    plus: make.word(),
                    length: make.coin(),
                    never_zero: make.coin(),
                }),
            }),
            stages: self.many(|make| Stage { name: make.name(), span: make.span() }),
            layouts: self.many(|make| Layout {
                name: make.name(),
                fields: make.many(|make| LayoutField {
                    name: make.name(),
                    kind: make.kind(),
                    bit: make.maybe(Self::word),
                    width: make.maybe(Self::word),
                }),
            }),
            slots: self.word(),
            functions: self.many(Self::function),
            manifest: Manifest {
                writes_tables: self.many(Self::word),
                writes_memory: self.coin(),
                writes_packet: self.coin(),
                resizes_packet: self.coin(),
                makes_packets: self.coin(),
                reads_payload: self.coin(),
                ports: self.many(Self::short),
                any_port: self.coin(),
                judges_host: self.coin(),
            },
        }
    }
}

#[test]
fn programs_survive_print_and_read() {
    for seed in 0..3000 {
        let program = Maker(seed).program();
        let text = print(&program);
        match read(&text) {
            Ok(again) => assert_eq!(again, program, "seed {seed}\n{text}"),
            Err(error) => panic!("seed {seed}: {error}\n{text}"),
        }
    }
}

#[test]
fn no_program_makes_the_passes_panic() {
    for seed in 0..3000 {
        let program = Maker(seed).program();
        assert!(ir::verify::verify(&program).is_err(), "seed {seed} should not be valid by chance");
        let report = lang::cost::cost(&program).to_string() + &lang::graph::graph(&program);
        assert!(!report.is_empty());
        assert!(lang::graph::dot(&program).starts_with("digraph"));
    }
}

#[test]
fn changed_texts_give_an_error_or_a_program() {
    let mut make = Maker(77);
    let (mut read_well, mut refused) = (0, 0);
    let scraps = [
        "%",
        "b0",
        "0x",
        "\"",
        "\\u{110000}",
        "{",
        "}",
        "(",
        ",",
        "..",
        "@0:",
        "99999999999999999999",
        "é",
        "\n",
        "function",
        "=",
    ];
    for seed in 0..400 {
        let text = print(&Maker(seed).program());
        for _ in 0..20 {
            let mut characters: Vec<char> = text.chars().collect();
            for _ in 0..1 + make.below(3) {
                let at = make.below(characters.len().max(1) as u64) as usize;
                let until = (at + make.below(6) as usize).min(characters.len());
                let scrap = scraps[make.below(scraps.len() as u64) as usize];
                match make.below(4) {
                    0 => drop(characters.drain(at..until)),
                    1 => drop(characters.splice(at..at, scrap.chars())),
                    2 => characters.truncate(at.max(1)),
                    _ if until > at => characters.swap(at, until - 1),
                    _ => {}
                }
            }
            let changed: String = characters.into_iter().collect();
            match read(&changed) {
                Ok(program) => {
                    read_well += 1;
                    assert_eq!(read(&print(&program)).as_ref(), Ok(&program));
                }
                Err(error) => {
                    refused += 1;
                    let lines = changed.split('\n').count();
                    assert!(error.line >= 1 && error.line as usize <= lines && error.column >= 1, "{error}");
                }
            }
        }
    }
    assert!(read_well > 100 && refused > 1000, "{read_well} read, {refused} refused");
}

#[test]
fn errors_say_what_and_where() {
    for (text, error) in [
        ("", "line 1, column 1: expected `program`, found the end"),
        ("program \"x\"\nslots many", "line 2, column 7: expected a number, found `many`"),
        ("program \"x\"\nslots 4294967296", "line 2, column 7: 4294967296 does not fit 32 bits"),
        ("program \"x", "line 1, column 9: the text that begins here has no end; close it with `\"`"),
        ("program \"x\" reason r1", "line 1, column 20: expected `r0`, which comes next, found `r1`"),
        (
            "program \"x\"\nfunction f0 \"f\" {\nb0: # start\n  %0:8 = cosnt 1",
            "line 4, column 10: expected an instruction or the end of the block, found `cosnt`",
        ),
        (
            "program \"x\" function f0 \"f\" { b0: %1:8 = now done }",
            "line 1, column 51: %0 has no width, but a later value has one",
        ),
        (
            "program \"x\" function f0 \"f\" { b0: %0:8 = now %0:9 = now done }",
            "line 1, column 51: %0 had another width before",
        ),
        (
            "program \"\\q\"",
            "line 1, column 11: expected `\\\"`, `\\\\` or `\\u{…}` with a character's number",
        ),
        ("program \"x\" template p0 \"123\" ()", "line 1, column 25: expected pairs of hexadecimal digits"),
        ("program \"x\" ?", "line 1, column 13: `?` has no meaning here"),
    ] {
        assert_eq!(read(text).expect_err(text).to_string(), error, "{text}");
    }
}

#[test]
fn the_text_reads_well() {
    let text = "program \"small\"\n\
        slots 0\n\
        reason r0 \"no_such_port\" \"the port \\\"does\\\" not exist\"\n\
        table t0 \"hosts\" {\n  key (\"ip\" ip4:32)\n  value (\"at\" port:16)\n  capacity 4\n  age 1000\n  evict lru\n  entry (0xa000001) = (2)\n  default (7)\n}  @0:3..9\n\
        manifest {\n  any_port\n}\n\
        \n\
        function f0 \"packet\" {\n\
        \x20 name %1 \"eth.type\" names{0x86dd \"ipv6\"}\n\
        b0:\n  %0:32 = const 0\n  need %0 + 14 ok b1(%0) short b2  @0:100..108\n\
        b1(%2:32):\n  %1:16 = load %2 + 12, 2 proven 14  @0:120..128\n  send %1\n\
        b2:\n  drop r0\n\
        }\n";
    assert_eq!(print(&read(text).expect("reads")), text);
}
