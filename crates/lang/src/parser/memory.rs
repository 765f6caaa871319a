//! Meters, registers, pools and groups.

use super::spelling::{GROUP_PROPERTIES, RATES, nearest};
use super::{Parsed, Parser};
use crate::ast::*;
use crate::diagnostic::Diagnostic;
use crate::token::Sign;

impl Parser<'_> {
    /// `[size]` behind the name of what has several cells.
    fn size(&mut self, what: &str) -> Parsed<Option<Expr>> {
        if !self.take(Sign::BracketOpen) {
            return Ok(None);
        }
        let size = self.expression()?;
        self.expect(Sign::BracketClose, &format!("behind the size of {what}"))?;
        Ok(Some(size))
    }

    pub(super) fn meter(&mut self) -> Parsed<Item> {
        let start = self.span();
        let example = "as in `meter errors: packets { committed 100 burst 50 }`";
        self.advance();
        let name = self.name("A name", "behind `meter`")?;
        let size = self.size("a meter")?;
        self.expect(Sign::Colon, &format!("behind the name of a meter, {example}"))?;
        let unit = self.name("`bytes` or `packets`", example)?;
        let open = self.expect(Sign::BraceOpen, &format!("before the rates of a meter, {example}"))?;
        let rates = self.braced(open, Self::rate, |parser, begin| {
            parser.skip_to(begin, |parser| RATES.contains(&parser.word()));
        })?;
        Ok(Item::Meter(Meter { name, size, unit, period: 1, rates, span: self.since(start) }))
    }

    fn rate(&mut self) -> Parsed<(Name, Expr)> {
        self.known_word("E0083", "meter", &RATES)?;
        let name = self.any_word("The name of a rate", "in a meter")?;
        let value = self.expression()?;
        self.take(Sign::Comma);
        Ok((name, value))
    }

    /// Reports a word that is none of those possible here.
    fn known_word(&mut self, code: &'static str, what: &str, known: &[&'static str]) -> Parsed<()> {
        let (span, word) = (self.span(), self.word());
        if known.contains(&word) {
            return Ok(());
        }
        let text = self.text_of(span);
        let fault =
            Diagnostic::error(code, format!("`{text}` is not a property of a {what}."), span, "unknown");
        self.fail(match nearest(word, known) {
            Some(meant) => fault.suggest(format!("write `{meant}`"), span, meant),
            None => fault.help(format!("There are: {}.", known.join(", "))),
        })
    }

    pub(super) fn register(&mut self) -> Parsed<Item> {
        self.advance();
        let name = self.name("A name", "behind `register`")?;
        let size = self.size("a register")?;
        self.expect(Sign::Colon, "behind the name of a register, as in `register last[64]: u32`")?;
        Ok(Item::Register(Register { name, size, ty: self.ty()? }))
    }

    /// `type` or `(type, type)`
    pub(super) fn types(&mut self, what: &str) -> Parsed<Vec<Type>> {
        if self.take(Sign::ParenOpen) {
            return self.list(Sign::ParenClose, &format!("behind the types of {what}"), |parser| parser.ty());
        }
        Ok(vec![self.ty()?])
    }

    pub(super) fn pool(&mut self, settable: bool) -> Parsed<Item> {
        let start = self.span();
        let example = "as in `pool outside: (ip4, u16) { 198.51.100.1, 1024..65535 }`";
        self.advance();
        let name = self.name("A name", "behind `pool`")?;
        self.expect(Sign::Colon, &format!("behind the name of a pool, {example}"))?;
        let types = self.types("an item")?;
        self.expect(Sign::BraceOpen, &format!("before the values of a pool, {example}"))?;
        let ranges =
            self.list(Sign::BraceClose, "behind the values of a pool", |parser| parser.entry_key())?;
        Ok(Item::Pool(Pool { settable, name, types, ranges, span: self.since(start) }))
    }

    pub(super) fn group(&mut self) -> Parsed<Item> {
        let start = self.span();
        let example = "as in `group servers: (mac, port) { buckets 256 capacity 8 }`";
        self.advance();
        let name = self.name("A name", "behind `group`")?;
        let size = self.size("a group")?;
        self.expect(Sign::Colon, &format!("behind the name of a group, {example}"))?;
        let types = self.types("a member")?;
        let open = self.expect(Sign::BraceOpen, &format!("before the properties of a group, {example}"))?;
        let properties = self.braced(open, Self::group_property, |parser, begin| {
            parser.skip_to(begin, |parser| GROUP_PROPERTIES.contains(&parser.word()));
        })?;
        Ok(Item::Group(Group { name, size, types, properties, span: self.since(start) }))
    }

    fn group_property(&mut self) -> Parsed<GroupProperty> {
        self.known_word("E0081", "group", &GROUP_PROPERTIES)?;
        let (word, start) = (self.word(), self.span());
        self.advance();
        let property = match word {
            "from" => {
                let path = self.string("behind `from`, as in `from \"members.txt\"`")?;
                GroupProperty::From(path, self.since(start))
            }
            "buckets" => GroupProperty::Buckets(self.expression()?),
            "capacity" => GroupProperty::Capacity(self.expression()?),
            _ => {
                let open = self.expect(Sign::BraceOpen, "before the members of a group")?;
                GroupProperty::Members(self.braced(open, Self::member, Self::skip_member)?)
            }
        };
        self.take(Sign::Comma);
        Ok(property)
    }

    pub(super) fn member(&mut self) -> Parsed<Member> {
        let start = self.span();
        let mut member = self.expression()?;
        let mut index = None;
        if self.take(Sign::Colon) {
            index = Some(std::mem::replace(&mut member, self.expression()?));
        }
        let parts = match member.kind {
            ExprKind::Tuple(parts) => parts,
            _ => vec![member],
        };
        let weight = if self.take_word("weight") { Some(self.expression()?) } else { None };
        let span = self.since(start);
        self.take(Sign::Comma);
        Ok(Member { index, parts, weight, span })
    }
}
