//! Blocks and statements. A word of a statement counts as such only where what follows fits, so that locals
//! may bear it.

use super::pattern::parts_of;
use super::spelling::{STATEMENTS, nearest};
use super::{Parsed, Parser};
use crate::ast::*;
use crate::diagnostic::Diagnostic;
use crate::token::{Sign, TokenKind};
use ir::source::Span;

impl Parser<'_> {
    pub(super) fn block(&mut self) -> Parsed<Block> {
        self.deeper(|parser| {
            let open = parser.expect(Sign::BraceOpen, "here")?;
            let statements = parser.braced(open, Self::statement_and_end, Self::skip_statement)?;
            Ok(Block { statements, span: parser.since(open) })
        })
    }

    fn statement_and_end(&mut self) -> Parsed<Stmt> {
        let statement = self.statement()?;
        self.take(Sign::Semicolon);
        Ok(statement)
    }

    fn statement(&mut self) -> Parsed<Stmt> {
        let start = self.span();
        let kind = self.statement_kind()?;
        Ok(Stmt { kind, span: self.since(start) })
    }

    fn statement_kind(&mut self) -> Parsed<StmtKind> {
        let word = self.word();
        if !word.is_empty() && !matches!(word, "let" | "var") && self.is_at(1, Sign::Assign) {
            let name = self.name("A name", "before `=`")?;
            self.advance();
            return Ok(StmtKind::Assign(name, self.expression()?));
        }
        if !STATEMENTS.contains(&word) {
            return self.no_statement(word);
        }
        self.advance();
        match word {
            "let" => self.binding("let").map(|(name, ty, value)| StmtKind::Let(name, ty, value)),
            "var" => self.binding("var").map(|(name, ty, value)| StmtKind::Var(name, ty, value)),
            "set" => self.set(),
            "if" => self.if_statement(),
            "match" => self.match_statement(),
            "for" => self.for_statement(),
            "break" => Ok(StmtKind::Break),
            "extract" => self.extract(),
            "learn" if self.word() == "together" && self.is_at(1, Sign::BraceOpen) => self.learn_together(),
            "learn" => Ok(StmtKind::Learn(self.write()?, self.else_block()?)),
            "insert" => self.insert(),
            "remove" => self.remove(),
            "give" => {
                let pool = self.name("The name of a pool", "behind `give`")?;
                self.expect(Sign::BracketOpen, "before the item, as in `give outside[address, number]`")?;
                Ok(StmtKind::Give(pool, self.arguments(Sign::BracketClose)?))
            }
            "count" => {
                let counter = self.name("The name of a counter", "behind `count`")?;
                let mut cell = None;
                if !self.first_on_line() && self.take(Sign::BracketOpen) {
                    cell = Some(self.expression()?);
                    self.expect(Sign::BracketClose, "behind the index of a counter")?;
                }
                Ok(StmtKind::Count(counter, cell))
            }
            "after" => {
                let delay = self.expression()?;
                self.expect_word("raise", "behind the delay, as in `after 5s raise timeout(ip.src)`")?;
                self.raise(Some(delay))
            }
            "raise" => self.raise(None),
            "emit" => {
                let packet = self.packet()?;
                self.expect_word("to", "behind the packet, as in `emit ethernet / payload to in_port`")?;
                Ok(StmtKind::Emit(packet, self.expression()?))
            }
            "copy" => {
                self.expect_word("to", "behind `copy`, as in `copy to 3`")?;
                Ok(StmtKind::Copy(self.expression()?))
            }
            "push" | "pop" | "encapsulate" | "decapsulate" | "truncate" | "fragment" => self.edit(word),
            "goto" => {
                let stage = self.stage_name("The name of a stage", "behind `goto`")?;
                self.jump(stage)
            }
            "send" => Ok(StmtKind::Send(self.expression()?)),
            "flood" => Ok(StmtKind::Flood),
            "multicast" => {
                if matches!(self.kind(), TokenKind::Word) {
                    return self.multicast_group();
                }
                self.expect(Sign::BraceOpen, "before the ports of `multicast`, as in `multicast {1, 2}`")?;
                Ok(StmtKind::Multicast(self.arguments(Sign::BraceClose)?))
            }
            "drop" => self.stated_reason("drop").map(StmtKind::Drop),
            "punt" => self.stated_reason("punt").map(StmtKind::Punt),
            "steer" => Ok(StmtKind::Steer(self.expression()?)),
            _ => Ok(StmtKind::Recirculate(self.expression()?)),
        }
    }

    /// What follows `learn`: `together { … } else { … }`.
    fn learn_together(&mut self) -> Parsed<StmtKind> {
        self.advance();
        let open = self.span();
        self.advance();
        let write = |parser: &mut Self| {
            let write = parser.write()?;
            parser.take(Sign::Comma);
            Ok(write)
        };
        let writes = self.braced(open, write, Self::skip_member)?;
        Ok(StmtKind::LearnTogether(writes, self.else_block()?))
    }

    fn no_statement(&mut self, word: &str) -> Parsed<StmtKind> {
        let span = self.span();
        if !word.is_empty() && self.is_at(1, Sign::Dot) {
            let names = (0..16).take_while(|&step| self.is_at(2 * step + 1, Sign::Dot)).count();
            if self.is_at(2 * names + 1, Sign::Assign) {
                let start = Span::new(self.file, span.start, span.start);
                return self.fail(
                    Diagnostic::error(
                        "E0061",
                        "A field of a header is changed by `set`.",
                        span,
                        "`set` is missing",
                    )
                    .suggest("insert `set`", start, "set "),
                );
            }
        }
        let text = self.text_of(span);
        let headline = if self.at_end() {
            "A statement is needed.".to_string()
        } else {
            format!("`{text}` does not begin a statement.")
        };
        let fault = Diagnostic::error("E0052", headline, span, "not a statement");
        let begin = Span::new(self.file, span.start, span.start);
        let shorthand = matches!(self.kind_at(1), TokenKind::Sign(Sign::Plus | Sign::Minus | Sign::Star))
            && self.is_at(2, Sign::Assign);
        let fault = if let Some(meant) =
            nearest(word, &STATEMENTS).filter(|_| !self.is_at(1, Sign::ParenOpen))
        {
            fault.help(format!("Did you mean `{meant}`?")).suggest(format!("write `{meant}`"), span, meant)
        } else if shorthand {
            let sign = self.text_of(self.token_at(1).span);
            fault.help(format!("Write `{text} = {text} {sign} …`."))
        } else if !word.is_empty() && self.is_at(1, Sign::BracketOpen) {
            fault
                .help("`learn` and `insert` make, change or renew an entry, `remove` takes one away.")
                .suggest("insert `learn`", begin, "learn ")
        } else if !word.is_empty() && self.is_at(1, Sign::ParenOpen) {
            fault.help("A stage is entered by `goto`; a function gives a value.").suggest(
                "insert `goto`",
                begin,
                "goto ",
            )
        } else if word == "return" {
            fault.help("A stage ends with a verdict (`send`, `flood`, `multicast`, `drop`, `punt`, `recirculate`) or with `goto`.")
        } else {
            fault.help(format!("Statements begin with {}, or are `name = value`.", STATEMENTS.join(", ")))
        };
        self.fail(fault)
    }

    fn binding(&mut self, word: &str) -> Parsed<(Name, Option<Type>, Expr)> {
        let name = self.name("A name", &format!("behind `{word}`"))?;
        let ty = if self.take(Sign::Colon) { Some(self.ty()?) } else { None };
        self.expect(Sign::Assign, &format!("behind the name, as in `{word} x = 3`"))?;
        Ok((name, ty, self.expression()?))
    }

    fn set(&mut self) -> Parsed<StmtKind> {
        let place = "behind `set`, as in `set ip.ttl = 3`";
        let header = self.name("The name of a header", place)?;
        if self.is(Sign::BracketOpen) || self.is(Sign::Assign) {
            return self.set_register(header);
        }
        self.expect(Sign::Dot, place)?;
        let field = self.any_word("The name of a field", place)?;
        if self.is(Sign::Dot) {
            let span = self.span();
            return self.fail(
                Diagnostic::error("E0069", "Only a whole field can be set.", span, "a part of a field")
                    .help("Set the field to a value in which the other bits are kept, as in `set ip.flags = ip.flags | 2`."),
            );
        }
        self.expect(Sign::Assign, place)?;
        Ok(StmtKind::Set(header, field, self.expression()?))
    }

    /// `set last[i] = e`; the name is read.
    fn set_register(&mut self, register: Name) -> Parsed<StmtKind> {
        let mut cell = None;
        if self.take(Sign::BracketOpen) {
            cell = Some(self.expression()?);
            self.expect(Sign::BracketClose, "behind the index of a register")?;
        }
        self.expect(Sign::Assign, "behind a register, as in `set last[i] = 3`")?;
        Ok(StmtKind::SetRegister(register, cell, self.expression()?))
    }

    fn if_statement(&mut self) -> Parsed<StmtKind> {
        let condition = self.condition()?;
        let then = self.block()?;
        let mut otherwise = None;
        if self.word() == "else" && self.word_at(1) == "if" {
            self.advance();
            let start = self.span();
            let nested = self.deeper(|parser| {
                parser.advance();
                parser.if_statement()
            })?;
            let span = self.since(start);
            otherwise = Some(Block { statements: vec![Stmt { kind: nested, span }], span });
        } else if let Some(block) = self.else_block()? {
            otherwise = Some(block);
        }
        Ok(StmtKind::If(condition, then, otherwise))
    }

    /// `else { … }`, not the `else =>` of an arm.
    fn else_block(&mut self) -> Parsed<Option<Block>> {
        if self.word() != "else" || !self.is_at(1, Sign::BraceOpen) {
            return Ok(None);
        }
        self.advance();
        self.block().map(Some)
    }

    fn match_statement(&mut self) -> Parsed<StmtKind> {
        let subject = self.expression()?;
        let open = self.expect(Sign::BraceOpen, "before the arms of a `match`")?;
        let parts = parts_of(&subject);
        let arms =
            self.deeper(|parser| parser.braced(open, |parser| parser.arm(parts), Self::skip_member))?;
        Ok(StmtKind::Match(subject, arms))
    }

    fn arm(&mut self, parts: usize) -> Parsed<Arm> {
        let (pattern, guard) = self.arm_head(parts)?;
        let body = self.arm_body()?;
        Ok(Arm { pattern, guard, body })
    }

    /// What stands behind `=>`, and what ends it.
    pub(super) fn arm_body(&mut self) -> Parsed<Block> {
        let body = if self.is(Sign::BraceOpen) {
            self.block()?
        } else {
            let statement = self.deeper(Self::arm_statement)?;
            let span = statement.span;
            Block { statements: vec![statement], span }
        };
        self.take(Sign::Semicolon);
        self.take(Sign::Comma);
        Ok(body)
    }

    fn arm_statement(&mut self) -> Parsed<Stmt> {
        let word = self.word();
        let verdict = matches!(
            word,
            "drop" | "punt" | "send" | "flood" | "multicast" | "recirculate" | "goto" | "break"
        );
        let statement = verdict
            || self.is_at(1, Sign::Assign)
            || (STATEMENTS.contains(&word) && self.statement_fits(word));
        let hook = self.is_at(1, Sign::Dot) && self.is_at(3, Sign::ParenOpen);
        let field = self.is_at(1, Sign::Dot) && !hook || self.is_at(1, Sign::BracketOpen);
        if word.is_empty() || word == "return" || statement || field {
            return self.statement();
        }
        let start = self.span();
        let stage = self.stage_name("A statement or the name of a stage", "behind `=>`")?;
        let kind = self.jump(stage)?;
        Ok(Stmt { kind, span: self.since(start) })
    }

    /// What follows this word makes it a statement and not the name of a stage.
    fn statement_fits(&self, word: &str) -> bool {
        let next = self.token_at(1);
        let value = next.kind == TokenKind::Word || next.kind.is_literal();
        match word {
            "if" | "match" => true,
            "copy" | "decapsulate" | "truncate" => self.word_at(1) == "to",
            "encapsulate" => !next.first_on_line && self.is_at(1, Sign::BraceOpen),
            "after" => !next.first_on_line && (value || next.kind == TokenKind::Sign(Sign::ParenOpen)),
            _ => !next.first_on_line && value,
        }
    }

    /// The name of a stage, or a policy and its hook: `edge.forward`.
    fn stage_name(&mut self, what: &str, place: &str) -> Parsed<Name> {
        let Name { text, span } = self.name(what, place)?;
        if !self.take(Sign::Dot) {
            return Ok(Name { text, span });
        }
        let hook = self.any_word("The name of a hook", "behind the name of a policy")?;
        Ok(Name { text: format!("{text}.{}", hook.text), span: self.since(span) })
    }

    /// The values behind the name of a stage.
    fn jump(&mut self, stage: Name) -> Parsed<StmtKind> {
        if !self.first_on_line() && self.take(Sign::ParenOpen) {
            return Ok(StmtKind::Goto(stage, self.arguments(Sign::ParenClose)?));
        }
        Ok(StmtKind::Goto(stage, Vec::new()))
    }

    /// `for i in 0..4 { … }` or `for option in tcp.options as tcp_option { … }`
    fn for_statement(&mut self) -> Parsed<StmtKind> {
        let name = self.name("A name", "behind `for`")?;
        self.expect_word("in", "behind the name, as in `for i in 0..4 { … }`")?;
        let first = self.arithmetic()?;
        if self.take(Sign::Range) {
            let last = self.arithmetic()?;
            return Ok(StmtKind::For(name, first, last, self.block()?));
        }
        if let Expr {
            kind: ExprKind::Cast(view, CastMode::Exact, Type { kind: TypeKind::Named(layout), span }),
            ..
        } = first
        {
            let layout = Name { text: layout, span };
            return Ok(StmtKind::Walk { name, view: *view, layout, body: self.block()? });
        }
        let fault = self.expected("`..` or `as`", "behind the start of a `for`");
        self.fail(fault.help("Write `for i in 0..4 { … }`, or `for option in tcp.options as tcp_option { … }` to walk headers."))
    }

    fn extract(&mut self) -> Parsed<StmtKind> {
        if self.word() == "all" && !self.is_at(1, Sign::Comma) {
            self.advance();
            return Ok(StmtKind::Extract(Vec::new()));
        }
        let mut fields = vec![self.name("The name of a field, or `all`,", "behind `extract`")?];
        while self.is(Sign::Comma) && self.field_follows() {
            self.advance();
            fields.push(self.name("The name of a field", "behind the comma")?);
        }
        Ok(StmtKind::Extract(fields))
    }

    /// Behind the comma stands a field, not the pattern of the next arm.
    fn field_follows(&self) -> bool {
        let pattern =
            matches!(self.kind_at(2), TokenKind::Sign(Sign::Gives | Sign::Or | Sign::ParenOpen | Sign::Dot));
        *self.kind_at(1) == TokenKind::Word
            && !pattern
            && (self.word_at(2) != "if" || self.token_at(2).first_on_line)
    }

    fn multicast_group(&mut self) -> Parsed<StmtKind> {
        let group = self.name("The name of a group", "behind `multicast`")?;
        if self.first_on_line() || !self.take(Sign::BracketOpen) {
            return Ok(StmtKind::MulticastGroup(group, None));
        }
        let index = self.expression()?;
        self.expect(Sign::BracketClose, "behind the number of a group, as in `multicast listeners[3]`")?;
        Ok(StmtKind::MulticastGroup(group, Some(index)))
    }

    fn insert(&mut self) -> Parsed<StmtKind> {
        if self.default_key(1) {
            let table = self.name("The name of a table", "behind `insert`")?;
            (0..3).for_each(|_| self.advance());
            self.expect(Sign::Assign, "before the value of the default entry")?;
            return Ok(StmtKind::SetDefault(table, self.expression()?));
        }
        Ok(StmtKind::Insert(self.write()?, self.else_block()?))
    }

    fn remove(&mut self) -> Parsed<StmtKind> {
        let table = self.name("The name of a table", "behind `remove`")?;
        if self.default_key(0) {
            (0..3).for_each(|_| self.advance());
            return Ok(StmtKind::ClearDefault(table));
        }
        self.expect(Sign::BracketOpen, "before the key, as in `remove hosts[ip.src]`")?;
        let keys = self.arguments(Sign::BracketClose)?;
        Ok(StmtKind::Remove(table, keys, self.priority()?))
    }

    fn write(&mut self) -> Parsed<TableWrite> {
        let start = self.span();
        let table = self.name("The name of a table", "here")?;
        self.expect(Sign::BracketOpen, "before the key, as in `learn hosts[ip.src] = in_port`")?;
        let keys = self.arguments(Sign::BracketClose)?;
        let value = if self.take(Sign::Assign) { Some(self.expression()?) } else { None };
        let priority = self.priority()?;
        let lifetime = self.lifetime()?;
        Ok(TableWrite { table, keys, value, priority, lifetime, span: self.since(start) })
    }

    /// `for t`, on the line where the write ends and not the begin of a loop.
    fn lifetime(&mut self) -> Parsed<Option<Box<Expr>>> {
        let loops = *self.kind_at(1) == TokenKind::Word && self.word_at(2) == "in";
        if self.first_on_line() || loops || !self.take_word("for") {
            return Ok(None);
        }
        Ok(Some(Box::new(self.expression()?)))
    }

    /// `priority n`, on the line where what it belongs to ends: at the begin of a line it is the name of a
    /// local.
    fn priority(&mut self) -> Parsed<Option<Expr>> {
        if self.first_on_line() || !self.take_word("priority") {
            return Ok(None);
        }
        self.expression().map(Some)
    }

    /// `[default]` stands `ahead` tokens further on.
    fn default_key(&self, ahead: usize) -> bool {
        self.is_at(ahead, Sign::BracketOpen)
            && self.word_at(ahead + 1) == "default"
            && self.is_at(ahead + 2, Sign::BracketClose)
    }

    fn raise(&mut self, delay: Option<Expr>) -> Parsed<StmtKind> {
        let event = self.name("The name of an event", "behind `raise`")?;
        self.expect(Sign::ParenOpen, "before the values of an event, as in `raise seen(ip.src)`")?;
        Ok(StmtKind::Raise(delay, event, self.arguments(Sign::ParenClose)?))
    }

    fn stated_reason(&mut self, verdict: &'static str) -> Parsed<Name> {
        if *self.kind() != TokenKind::Word || self.first_on_line() {
            return self.no_reason(verdict);
        }
        self.name("The name of a reason", &format!("behind `{verdict}`"))
    }

    pub(super) fn no_reason<T>(&mut self, verdict: &'static str) -> Parsed<T> {
        let previous = self.tokens[self.at.saturating_sub(1)].span;
        self.fail(
            Diagnostic::error(
                "E0063",
                format!("A {verdict} needs a reason."),
                previous,
                "no reason is given",
            )
            .help(format!("Name it, as in `{verdict} not_web`; it is counted under this name.")),
        )
    }
}
