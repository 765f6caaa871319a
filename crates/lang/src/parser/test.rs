//! Tests: packets that enter, time that passes, and what is expected.

use super::spelling::{OUTCOMES, STEPS, nearest};
use super::{Parsed, Parser};
use crate::ast::*;
use crate::diagnostic::Diagnostic;
use crate::token::{Sign, TokenKind};

impl Parser<'_> {
    pub(super) fn test(&mut self) -> Parsed<Item> {
        let start = self.span();
        self.advance();
        let name = self.string("behind `test`, as in `test \"web passes\" { … }`")?;
        let open = self.expect(Sign::BraceOpen, "before the steps of a test")?;
        let steps = self.braced(open, Self::step, |parser, begin| {
            parser.skip_to(begin, |parser| STEPS.contains(&parser.word()));
        })?;
        Ok(Item::Test(Test { name, steps, span: self.since(start) }))
    }

    fn step(&mut self) -> Parsed<TestStep> {
        let start = self.span();
        let word = self.word();
        if !STEPS.contains(&word) {
            return self.unknown_word(&STEPS, "a step of a test");
        }
        self.advance();
        let step = match word {
            "ports" => TestStep::Ports(self.expression()?),
            "after" => TestStep::After(self.expression()?),
            "packet" => {
                let port = self.expression()?;
                let from_host = self.take_word("from_host");
                let packet = self.braced_packet()?;
                let at = if self.take_word("at") { Some(self.expression()?) } else { None };
                TestStep::Packet { port, from_host, packet, at, span: self.since(start) }
            }
            _ => {
                let outcome = self.outcome()?;
                TestStep::Expect(outcome, self.since(start))
            }
        };
        self.take(Sign::Semicolon);
        Ok(step)
    }

    fn outcome(&mut self) -> Parsed<Expectation> {
        let word = self.word();
        if !OUTCOMES.contains(&word) {
            return self.unknown_word(&OUTCOMES, "something to expect");
        }
        self.advance();
        Ok(match word {
            "send" => Expectation::Send(self.expression()?),
            "flood" => Expectation::Flood,
            "multicast" => {
                self.expect(Sign::BraceOpen, "before the ports of `multicast`, as in `multicast {1, 2}`")?;
                Expectation::Multicast(self.arguments(Sign::BraceClose)?)
            }
            "drop" => Expectation::Drop(self.expected_reason("drop")?),
            "punt" => Expectation::Punt(self.expected_reason("punt")?),
            "out" => Expectation::Out(self.expression()?, self.braced_packet()?),
            "entries" => Expectation::Entries(
                self.name("The name of a table", "behind `entries`")?,
                self.expression()?,
            ),
            "count" => {
                let counter = self.name("The name of a counter", "behind `count`")?;
                let mut cell = None;
                if self.take(Sign::BracketOpen) {
                    cell = Some(self.expression()?);
                    self.expect(Sign::BracketClose, "behind the index of a counter")?;
                }
                Expectation::Count(counter, cell, self.expression()?)
            }
            _ => {
                let event = self.name("The name of an event", "behind `event`")?;
                self.expect(Sign::ParenOpen, "before the values of an event")?;
                Expectation::Event(event, self.arguments(Sign::ParenClose)?)
            }
        })
    }

    /// `not_web`, `short(ipv4)` or `invalid(ipv4.ihl)`
    fn expected_reason(&mut self, verdict: &'static str) -> Parsed<Name> {
        if *self.kind() != TokenKind::Word || STEPS.contains(&self.word()) {
            return self.no_reason(verdict);
        }
        let mut reason = self.any_word("A reason", "here")?;
        if !self.first_on_line() && self.take(Sign::ParenOpen) {
            let layout = self.any_word("The name of a layout", "in brackets, as in `short(ipv4)`")?;
            reason.text = format!("{}({}", reason.text, layout.text);
            if self.take(Sign::Dot) {
                let field = self.any_word("The name of a field", "as in `invalid(ipv4.ihl)`")?;
                reason.text = format!("{}.{}", reason.text, field.text);
            }
            self.expect(Sign::ParenClose, "behind the layout of a reason")?;
            reason.text.push(')');
            reason.span = self.since(reason.span);
        }
        Ok(reason)
    }

    fn unknown_word<T>(&mut self, known: &[&'static str], what: &str) -> Parsed<T> {
        let span = self.span();
        let headline = if self.at_end() {
            format!("{what} is needed.")
        } else {
            format!("`{}` is not {what}.", self.text_of(span))
        };
        let fault = Diagnostic::error("E0068", headline, span, "unknown here");
        let fault = match nearest(self.word(), known) {
            Some(meant) => fault.help(format!("Did you mean `{meant}`?")).suggest(
                format!("write `{meant}`"),
                span,
                meant,
            ),
            None => fault.help(format!("There are: {}.", known.join(", "))),
        };
        self.fail(fault)
    }
}
