//! Tables: kind, keys, what an entry holds, properties and initial entries.

use super::spelling::{KINDS, PROPERTIES, nearest};
use super::{Parsed, Parser};
use crate::ast::*;
use crate::diagnostic::Diagnostic;
use crate::token::{Sign, TokenKind};
use ir::source::Span;

impl Parser<'_> {
    pub(super) fn table(&mut self) -> Parsed<Item> {
        let start = self.span();
        let example = "as in `table hosts: exact(ip4) -> port { … }`";
        self.advance();
        let name = self.name("A name", "behind `table`")?;
        self.expect(Sign::Colon, &format!("behind the name of a table, {example}"))?;
        let kind = self.name("The kind of the table", example)?;
        self.check_kind(&kind)?;
        self.expect(Sign::ParenOpen, &format!("before the keys of a table, {example}"))?;
        let keys = self.list(Sign::ParenClose, "behind the keys of a table", |parser| parser.key())?;
        let value = if self.take(Sign::Arrow) { self.table_value()? } else { TableValue::Nothing };
        let open =
            self.expect(Sign::BraceOpen, "before the properties of a table, as in `{ capacity 64k }`")?;
        let properties = self.braced(open, Self::property, |parser, begin| {
            parser.skip_to(begin, |parser| PROPERTIES.contains(&parser.word()));
        })?;
        Ok(Item::Table(Table { name, kind, keys, value, properties, span: self.since(start) }))
    }

    fn check_kind(&mut self, kind: &Name) -> Parsed<()> {
        if KINDS.contains(&kind.text.as_str()) {
            return Ok(());
        }
        let headline = format!("`{}` is not a kind of table.", kind.text);
        let fault = Diagnostic::error("E0059", headline, kind.span, "unknown kind")
            .help(format!("There are: {}.", KINDS.join(", ")));
        let meant = nearest(&kind.text, &KINDS).unwrap_or("exact");
        self.fail(fault.suggest(format!("write `{meant}`"), kind.span, meant))
    }

    fn key(&mut self) -> Parsed<(Option<Name>, Type)> {
        if self.is_at(1, Sign::Colon) {
            let name = self.name("The name of a key", "in a table")?;
            self.advance();
            return Ok((Some(name), self.ty()?));
        }
        Ok((None, self.ty()?))
    }

    fn table_value(&mut self) -> Parsed<TableValue> {
        if self.take(Sign::ParenOpen) {
            let types = self.list(Sign::ParenClose, "behind the types of an entry", |parser| parser.ty())?;
            return Ok(TableValue::Data(types));
        }
        if !self.is(Sign::BraceOpen) {
            return Ok(TableValue::Data(vec![self.ty()?]));
        }
        let open = self.span();
        self.advance();
        let variant = |parser: &mut Self| {
            let name = parser.name("The name of a variant", "in the braces behind `->`")?;
            let params = if parser.is(Sign::ParenOpen) { parser.params("of a variant")? } else { Vec::new() };
            parser.take(Sign::Comma);
            Ok((name, params))
        };
        Ok(TableValue::Variants(self.braced(open, variant, Self::skip_member)?))
    }

    fn property(&mut self) -> Parsed<Property> {
        let span = self.span();
        let word = self.word();
        if !PROPERTIES.contains(&word) {
            let text = self.text_of(span);
            let fault = Diagnostic::error(
                "E0057",
                format!("`{text}` is not a property of a table."),
                span,
                "unknown",
            );
            let fault = match nearest(word, &PROPERTIES) {
                Some(meant) => fault.help(format!("Did you mean `{meant}`?")).suggest(
                    format!("write `{meant}`"),
                    span,
                    meant,
                ),
                None => fault.help(format!("Tables have: {}.", PROPERTIES.join(", "))),
            };
            return self.fail(fault);
        }
        self.advance();
        let property = match word {
            "capacity" => Property::Capacity(self.expression()?),
            "age" => Property::Age(self.expression()?),
            "idle" => Property::Idle(self.expression()?),
            "evict" => {
                let policy = self.name("`lru` or `refuse`", "behind `evict`")?;
                if !matches!(policy.text.as_str(), "lru" | "refuse") {
                    let headline = format!("`{}` is not a way to make room.", policy.text);
                    let fault =
                        Diagnostic::error("E0077", headline, policy.span, "`lru` or `refuse` is needed");
                    let fault = fault
                        .help("`lru` gives up the entry used longest ago, `refuse` refuses the new one.");
                    self.report(match nearest(&policy.text, &["lru", "refuse"]) {
                        Some(meant) => fault.suggest(format!("write `{meant}`"), policy.span, meant),
                        None => fault,
                    });
                }
                Property::Evict(policy)
            }
            "choose" => Property::Choose(self.one_of("choose", &["first", "priority"])?),
            "answer" => Property::Answer(self.one_of("answer", &["first", "all", "set"])?),
            "counted" => {
                Property::Counted(CountedProperty { times: self.take_word("times"), span: self.since(span) })
            }
            "secret" => Property::Secret(span),
            "releases" => Property::Releases(self.name("The name of a pool", "behind `releases`")?),
            "expires" => Property::Expires(self.name("The name of an event", "behind `expires`")?),
            "from" => {
                let path = self.string("behind `from`, as in `from \"routes.txt\"`")?;
                let format =
                    if self.take_word("as") { Some(self.name("A format", "behind `as`")?) } else { None };
                let options = self.file_options()?;
                Property::From(EntryFile { path, format, options, span: self.since(span) })
            }
            "entries" => {
                let open = self.expect(Sign::BraceOpen, "before the entries of a table")?;
                Property::Entries(self.braced(open, Self::entry, Self::skip_member)?)
            }
            _ => {
                self.expect(Sign::Gives, "behind `default`, as in `default => 3`")?;
                Property::Default(self.expression()?)
            }
        };
        self.take(Sign::Comma);
        Ok(property)
    }

    /// What to read of a file, and how.
    pub(super) fn file_options(&mut self) -> Parsed<Vec<FileOption>> {
        let mut options = Vec::new();
        while let Some(option) = self.file_option()? {
            options.push(option);
        }
        Ok(options)
    }

    /// What to read of a file, such as `chain "input"`; nothing where no such word stands.
    fn file_option(&mut self) -> Parsed<Option<FileOption>> {
        let span = self.span();
        Ok(Some(if self.take_word("family") {
            FileOption::Family(self.name("`ip4` or `ip6`", "behind `family`")?)
        } else if self.take_word("table") {
            FileOption::Table(self.quoted_name("as the name of a table")?)
        } else if self.take_word("chain") {
            FileOption::Chain(self.quoted_name("as the name of a chain")?)
        } else if self.take_word("first_packets") {
            FileOption::FirstPackets(span)
        } else if self.take_word("skip_title") {
            FileOption::SkipTitle(span)
        } else if self.take_word("skip_nat") {
            FileOption::SkipNat(span)
        } else if self.take_word("skip_marks") {
            FileOption::SkipMarks(span)
        } else if self.take_word("tables") {
            let open =
                self.expect(Sign::BraceOpen, "behind `tables`, as in `{ friends = \"friends.txt\" }`")?;
            FileOption::Tables(self.braced(open, Self::table_text, Self::skip_member)?, span)
        } else if self.take_word("interfaces") {
            let open = self.expect(Sign::BraceOpen, "behind `interfaces`, as in `{ eth0 = 1 }`")?;
            FileOption::Interfaces(self.braced(open, Self::interface_binding, Self::skip_member)?, span)
        } else {
            return Ok(None);
        }))
    }

    /// A name in quotes.
    fn quoted_name(&mut self, place: &str) -> Parsed<Name> {
        let span = self.span();
        let text = self.string(place)?;
        Ok(Name { text, span: self.since(span) })
    }

    /// `friends = "friends.txt"`; a name that is no word of the language stands in quotes.
    fn table_text(&mut self) -> Parsed<TableText> {
        let name = match self.kind() {
            TokenKind::Text(_) => self.quoted_name("as the name of a table")?,
            _ => self.name("The name of a table", "as in `friends = \"friends.txt\"`")?,
        };
        self.expect(Sign::Assign, "between the name of a table and its file")?;
        let path = self.quoted_name("as the file of a table")?;
        self.take(Sign::Comma);
        Ok(TableText { name, path, text: None })
    }

    /// `eth0 = 1`; a name that is no word of the language stands in quotes.
    fn interface_binding(&mut self) -> Parsed<Binding> {
        let interface = match self.kind() {
            TokenKind::Text(_) => self.quoted_name("as the name of an interface")?,
            _ => self.name("The name of an interface", "as in `eth0 = 1` or `\"eth0.5\" = 1`")?,
        };
        self.expect(Sign::Assign, "between the name of an interface and its port")?;
        let port = self.expression()?;
        self.take(Sign::Comma);
        Ok(Binding { interface, port })
    }

    /// One of these words.
    fn one_of(&mut self, property: &str, known: &[&'static str]) -> Parsed<Name> {
        let name = self.name(&format!("`{}`", known.join("` or `")), &format!("behind `{property}`"))?;
        if known.contains(&name.text.as_str()) {
            return Ok(name);
        }
        let fault = Diagnostic::error(
            "E0082",
            format!("`{}` is not possible behind `{property}`.", name.text),
            name.span,
            format!("one of {} is needed", known.join(", ")),
        );
        self.fail(match nearest(&name.text, known) {
            Some(meant) => fault.suggest(format!("write `{meant}`"), name.span, meant),
            None => fault,
        })
    }

    pub(super) fn entry(&mut self) -> Parsed<Entry> {
        let start = self.span();
        let keys = if self.take(Sign::ParenOpen) {
            self.list(Sign::ParenClose, "behind the parts of a key", |parser| parser.entry_key())?
        } else {
            vec![self.entry_key()?]
        };
        let priority = if self.take_word("priority") { Some(self.expression()?) } else { None };
        let value = if self.take(Sign::Gives) { Some(self.expression()?) } else { None };
        let span = self.since(start);
        self.take(Sign::Comma);
        Ok(Entry { keys, priority, value, span })
    }

    /// `_`, a value, a prefix, a range, a value under a mask, or bytes that are searched for.
    pub(super) fn entry_key(&mut self) -> Parsed<EntryKey> {
        let start = self.span();
        if self.word() == "_" {
            self.advance();
            return Ok(EntryKey::Any(start));
        }
        if let Some(bytes) = self.bytes()? {
            return self.byte_key(start, bytes);
        }
        let value = self.arithmetic()?;
        if self.take(Sign::Range) {
            let closed = self.is(Sign::Comma)
                || self.is(Sign::ParenClose)
                || self.is(Sign::BraceClose)
                || self.is(Sign::Gives)
                || self.word() == "priority";
            let high = if closed { None } else { Some(self.arithmetic()?) };
            return Ok(EntryKey::Range(value, high));
        }
        if self.take_word("mask") {
            return Ok(EntryKey::Masked(value, self.arithmetic()?));
        }
        Ok(EntryKey::Value(value))
    }

    fn byte_key(&mut self, start: Span, bytes: Vec<u8>) -> Parsed<EntryKey> {
        let (mut nocase, mut offset, mut depth) = (false, None, None);
        loop {
            if self.take_word("nocase") {
                nocase = true;
            } else if self.take_word("offset") {
                offset = Some(self.arithmetic()?);
            } else if self.take_word("depth") {
                depth = Some(self.arithmetic()?);
            } else {
                return Ok(EntryKey::Bytes { bytes, nocase, offset, depth, span: self.since(start) });
            }
        }
    }
}
