//! Tables: kind, keys, what an entry holds, properties and initial entries.

use super::spelling::{PROPERTIES, nearest};
use super::{Parsed, Parser};
use crate::ast::*;
use crate::diagnostic::Diagnostic;
use crate::token::Sign;

/// Kinds of tables of later versions.
const LATER_KINDS: [&str; 3] = ["lpm", "rules", "patterns"];

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
        if kind.text == "exact" {
            return Ok(());
        }
        if LATER_KINDS.contains(&kind.text.as_str()) {
            let headline = format!("Tables of the kind `{}` are not in this version.", kind.text);
            return self.fail(
                Diagnostic::error("E0058", headline, kind.span, "not in this version")
                    .help("This version has tables of the kind `exact`; ranges and prefixes can be told apart by `match`."),
            );
        }
        let headline = format!("`{}` is not a kind of table.", kind.text);
        self.fail(Diagnostic::error("E0059", headline, kind.span, "unknown kind").suggest(
            "write `exact`",
            kind.span,
            "exact",
        ))
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

    fn entry(&mut self) -> Parsed<Entry> {
        let start = self.span();
        let key = self.expression()?;
        let keys = match key.kind {
            ExprKind::Tuple(keys) => keys,
            _ => vec![key],
        };
        let value = if self.take(Sign::Gives) { Some(self.expression()?) } else { None };
        let span = self.since(start);
        self.take(Sign::Comma);
        Ok(Entry { keys, value, span })
    }
}
