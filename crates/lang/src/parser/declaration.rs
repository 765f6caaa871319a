//! The file and its declarations, except layouts, tables and tests.

use super::spelling::{ITEMS, nearest};
use super::{Fault, Parsed, Parser};
use crate::ast::*;
use crate::diagnostic::Diagnostic;
use crate::token::{Sign, TokenKind};

impl Parser<'_> {
    pub(super) fn file(&mut self) -> File {
        let mut tree = File::default();
        while !self.at_end() {
            let before = self.at;
            let told = self.diagnostics.reported();
            if self.word() == "import" {
                match self.import() {
                    Ok(import) => {
                        if !tree.items.is_empty() {
                            self.report(
                                Diagnostic::error(
                                    "E0056",
                                    "Imports stand before the declarations.",
                                    import.span,
                                    "too late",
                                )
                                .help("Move this line to the top of the file."),
                            );
                        }
                        tree.imports.push(import);
                    }
                    Err(Fault) => self.skip_item(before),
                }
            } else {
                match self.item() {
                    Ok(item) => tree.items.push(item),
                    Err(Fault) => {
                        if !self.lost {
                            self.skip_item(before);
                        }
                        // What a faulty declaration leaves behind is its own, no second fault.
                        while self.diagnostics.reported() > told && self.is(Sign::BraceClose) {
                            self.advance();
                        }
                    }
                }
            }
            self.lost = false;
            if self.at == before {
                self.advance();
            }
            tree.ranges.push(self.since(self.tokens[before].span));
        }
        tree
    }

    fn item(&mut self) -> Parsed<Item> {
        let start = self.span();
        match self.word() {
            "settable" => self.settable(),
            "const" => self.constant(false),
            "enum" => self.enumeration(),
            "layout" => self.layout(),
            "table" => self.table(),
            "counter" => self.counter(),
            "meter" => self.meter(),
            "register" => self.register(),
            "pool" => self.pool(false),
            "group" => self.group(),
            "reason" => self.reason(),
            "fn" => self.function(),
            "start" | "steer" | "decoder" | "stage" => self.stage(),
            "extern" => self.external(),
            "policy" => self.policy(),
            "event" => {
                self.advance();
                let name = self.name("A name", "behind `event`")?;
                let params = self.params("of an event")?;
                Ok(Item::Event(Event { name, params, body: self.block()? }))
            }
            "every" => {
                self.advance();
                let period = self.expression()?;
                let body = self.block()?;
                Ok(Item::Every(Every { period, body, span: self.since(start) }))
            }
            "order" => {
                self.advance();
                if !self.take_word("fragments") {
                    let fault = self.expected("`fragments`", "behind `order`");
                    return self.fail(fault);
                }
                Ok(Item::Order(self.since(start)))
            }
            "test" => self.test(),
            word => self.no_item(word),
        }
    }

    fn no_item(&mut self, word: &str) -> Parsed<Item> {
        let span = self.span();
        let text = self.text_of(span);
        if self.is(Sign::BraceClose) || self.is(Sign::ParenClose) || self.is(Sign::BracketClose) {
            return self.fail(
                Diagnostic::error(
                    "E0055",
                    format!("This `{text}` closes nothing."),
                    span,
                    "nothing is open here",
                )
                .suggest("remove it", span, ""),
            );
        }
        let fault = Diagnostic::error(
            "E0051",
            format!("`{text}` does not begin a declaration."),
            span,
            "not a declaration",
        );
        let fault = match nearest(word, &ITEMS) {
            Some(meant) => fault.help(format!("Did you mean `{meant}`?")).suggest(
                format!("write `{meant}`"),
                span,
                meant,
            ),
            None => fault.help(format!("A file holds: {}.", ITEMS.join(", "))),
        };
        self.fail(fault)
    }

    fn import(&mut self) -> Parsed<Import> {
        let start = self.span();
        self.advance();
        let place = "in an import, as in `import std.net.{ethernet, ipv4}`";
        let mut path = vec![self.name("A name", place)?];
        loop {
            self.expect(Sign::Dot, place)?;
            if self.take(Sign::BraceOpen) {
                let names = self.list(Sign::BraceClose, place, |parser| parser.name("A name", place))?;
                return Ok(Import { path, names, span: self.since(start) });
            }
            path.push(self.name("A name or `{`", place)?);
            if !self.is(Sign::Dot) {
                let names = path.pop().into_iter().collect();
                return Ok(Import { path, names, span: self.since(start) });
            }
        }
    }

    /// `settable` and what may have a value from outside.
    fn settable(&mut self) -> Parsed<Item> {
        self.advance();
        match self.word() {
            "const" => self.constant(true),
            "pool" => self.pool(true),
            _ => {
                let fault = self.expected("`const` or `pool`", "behind `settable`");
                self.fail(fault)
            }
        }
    }

    fn constant(&mut self, settable: bool) -> Parsed<Item> {
        self.advance();
        let name = self.name("A name", "behind `const`")?;
        self.expect(Sign::Colon, "behind the name of a constant, as in `const WEB: u16 = 80`")?;
        let ty = self.ty()?;
        let mut range = None;
        if self.take_word("in") {
            let low = self.arithmetic()?;
            self.expect(Sign::Range, "in the range of a constant, as in `const WEB: u16 in 1..1023 = 80`")?;
            let high = if self.is(Sign::Assign) { None } else { Some(self.arithmetic()?) };
            range = Some((low, high));
        }
        self.expect(Sign::Assign, "behind the type of a constant")?;
        Ok(Item::Const(Const { settable, name, ty, range, value: self.expression()? }))
    }

    fn enumeration(&mut self) -> Parsed<Item> {
        self.advance();
        let name = self.name("A name", "behind `enum`")?;
        self.expect(Sign::Colon, "behind the name of an enum, as in `enum protocol: u8 { tcp = 6 }`")?;
        let ty = self.ty()?;
        let open = self.expect(Sign::BraceOpen, "before the members of an enum")?;
        let member = |parser: &mut Self| {
            let name = parser.any_word("A name", "in an enum")?;
            parser.expect(Sign::Assign, "behind the name of a member, as in `tcp = 6`")?;
            let value = parser.expression()?;
            parser.take(Sign::Comma);
            Ok((name, value))
        };
        let members = self.braced(open, member, Self::skip_member)?;
        Ok(Item::Enum(Enum { name, ty, members }))
    }

    fn counter(&mut self) -> Parsed<Item> {
        self.advance();
        let name = self.name("A name", "behind `counter`")?;
        let mut size = None;
        if self.take(Sign::BracketOpen) {
            size = Some(self.expression()?);
            self.expect(Sign::BracketClose, "behind the number of cells")?;
        }
        Ok(Item::Counter(Counter { name, size }))
    }

    fn reason(&mut self) -> Parsed<Item> {
        self.advance();
        let name = self.name("A name", "behind `reason`")?;
        let help =
            self.string("behind the name of a reason, as in `reason not_web \"only web traffic may pass\"`")?;
        Ok(Item::Reason(Reason { name, help }))
    }

    pub(super) fn string(&mut self, place: &str) -> Parsed<String> {
        if let TokenKind::Text(text) = self.kind() {
            let text = text.clone();
            self.advance();
            return Ok(text);
        }
        let fault = self.expected("A text in quotes", place);
        self.fail(fault)
    }

    fn function(&mut self) -> Parsed<Item> {
        self.advance();
        let name = self.name("A name", "behind `fn`")?;
        let params = self.params("of a function")?;
        self.expect(
            Sign::Arrow,
            "before the type of a function's value, as in `fn half(x: u16) -> u16 { x / 2 }`",
        )?;
        let result = self.types("a function's values")?;
        let value = self.braced_expression("around the value of a function")?;
        Ok(Item::Function(Function { name, params, result, value }))
    }

    pub(super) fn params(&mut self, whose: &str) -> Parsed<Vec<Param>> {
        let place = format!("around the parameters {whose}");
        self.expect(Sign::ParenOpen, &place)?;
        self.list(Sign::ParenClose, &place, |parser| parser.param())
    }

    pub(super) fn param(&mut self) -> Parsed<Param> {
        let name = self.name("A name", "for a parameter")?;
        self.expect(Sign::Colon, "behind the name of a parameter, as in `to: u16`")?;
        Ok(Param { name, ty: self.ty()? })
    }

    fn stage(&mut self) -> Parsed<Item> {
        let begin = self.span();
        let start = self.take_word("start");
        let steers = !start && self.take_word("steer");
        let decodes = self.word() == "decoder";
        if !decodes && self.word() != "stage" {
            let place = if steers { "behind `steer`" } else { "behind `start`" };
            let fault = self.expected("`decoder` or `stage`", place);
            return self.fail(fault);
        }
        self.advance();
        let name = self.name("A name", if decodes { "behind `decoder`" } else { "behind `stage`" })?;
        let mut header = None;
        let params = if decodes {
            let place = "around what a decoder takes, as in `decoder packet(ip: ipv4)`";
            self.expect(Sign::ParenOpen, place)?;
            if self.is(Sign::ParenClose) {
                let span = self.span();
                return self.fail(
                    Diagnostic::error("E0075", "A decoder decodes a header.", span, "no header is named")
                        .help("Name it and its layout, as in `decoder packet(ip: ipv4)`; a `stage` decodes none."),
                );
            }
            let bound = self.name("A name for the header", "in a decoder")?;
            self.expect(Sign::Colon, "between the header's name and its layout, as in `ip: ipv4`")?;
            header = Some((bound, self.name("The name of a layout", "in a decoder")?));
            if self.take(Sign::Comma) {
                self.list(Sign::ParenClose, place, |parser| parser.param())?
            } else {
                self.expect(Sign::ParenClose, place)?;
                Vec::new()
            }
        } else {
            self.params("of a stage")?
        };
        let cap = if self.take_word("cap") { Some(self.expression()?) } else { None };
        let requires = self.requires()?;
        let body = self.block()?;
        let span = self.since(begin);
        Ok(Item::Stage(Stage { name, start, steers, header, params, cap, requires, body, span }))
    }

    fn requires(&mut self) -> Parsed<Vec<Name>> {
        let mut requires = Vec::new();
        if self.take_word("requires") {
            loop {
                requires.push(self.name("The name of a header", "behind `requires`")?);
                if !self.take(Sign::Comma) {
                    break;
                }
            }
        }
        Ok(requires)
    }

    fn external(&mut self) -> Parsed<Item> {
        let begin = self.span();
        self.advance();
        if !self.take_word("stage") {
            let fault = self.expected("`stage`", "behind `extern`, as in `extern stage admitted(by: port)`");
            return self.fail(fault);
        }
        let name = self.name("A name", "behind `extern stage`")?;
        let params = self.params("of a stage")?;
        let requires = self.requires()?;
        let body = if self.is(Sign::BraceOpen) { Some(self.block()?) } else { None };
        Ok(Item::Extern(Extern { name, params, requires, body, span: self.since(begin) }))
    }

    pub(super) fn ty(&mut self) -> Parsed<Type> {
        let span = self.span();
        let word = self.word();
        if word.is_empty() || super::RESERVED.contains(&word) {
            let fault = Diagnostic { code: "E0074", ..self.expected("A type", "here") };
            return self.fail(
                fault.help(
                    "Types are `u1` to `u128`, bool, ip4, ip6, mac, port, time, and the names of enums.",
                ),
            );
        }
        let digits = word
            .strip_prefix('u')
            .filter(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
        let kind = match digits.map(|digits| digits.parse::<u32>().unwrap_or(u32::MAX)) {
            None => TypeKind::Named(word.to_string()),
            Some(width) if (1..=128).contains(&width) => TypeKind::Uint(width),
            Some(_) => {
                self.report(
                    Diagnostic::error("E0070", "Numbers are 1 to 128 bits wide.", span, "no such width")
                        .help("Longer fields are written `bytes[length]`."),
                );
                TypeKind::Uint(128)
            }
        };
        self.advance();
        Ok(Type { kind, span })
    }
}
