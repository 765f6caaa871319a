//! Policies: columns, hooks, what happens to packets, and groups of rules.

use super::spelling::{DECISIONS, POLICY_PARTS, RULE_WORDS, nearest};
use super::{Parsed, Parser};
use crate::ast::*;
use crate::diagnostic::Diagnostic;
use crate::token::{Sign, TokenKind};
use ir::source::Span;
use policy::{MatchOrder, Reject};

impl Parser<'_> {
    pub(super) fn policy(&mut self) -> Parsed<Item> {
        let start = self.span();
        let place = "as in `policy edge(src: ip6, dport: u16 absent) { … }`";
        self.advance();
        let name = self.name("A name", "behind `policy`")?;
        self.expect(Sign::ParenOpen, &format!("before the columns of a policy, {place}"))?;
        let columns = self.list(Sign::ParenClose, "behind the columns of a policy", Self::policy_column)?;
        let open = self.expect(Sign::BraceOpen, "before the rules of a policy")?;
        let mut policy = PolicyDeclaration {
            name,
            columns,
            file: None,
            capacity: None,
            counted_times: None,
            hooks: Vec::new(),
            outcomes: Vec::new(),
            groups: Vec::new(),
            span: start,
        };
        let begins = |parser: &Self| parser.first_on_line() && POLICY_PARTS.contains(&parser.word());
        self.braced(
            open,
            |parser| parser.policy_part(&mut policy),
            |parser, begin| parser.skip_to(begin, begins),
        )?;
        policy.span = self.since(start);
        Ok(Item::Policy(policy))
    }

    fn policy_column(&mut self) -> Parsed<PolicyColumn> {
        let (start, word) = (self.span(), self.word());
        if RULE_WORDS.contains(&word) {
            // In a rule without conditions before it, it would begin the next rule.
            let fault =
                Diagnostic::error("E0084", format!("`{word}` begins a rule."), start, "no name of a column");
            return self.fail(fault);
        }
        let param = self.param()?;
        let presence = if self.take_word("absent") {
            ColumnPresence::Optional
        } else if self.take_word("carried") {
            ColumnPresence::Carried
        } else {
            ColumnPresence::Always
        };
        Ok(PolicyColumn { param, presence })
    }

    /// `times` behind `counted`: rows of policies count without a word.
    fn counted_times(&mut self, start: Span) -> Parsed<Span> {
        if self.take_word("times") {
            return Ok(self.since(start));
        }
        let what = "The rows of every policy are counted.";
        let fault = Diagnostic::error("E0084", what, self.span(), "`times` is needed here");
        self.fail(fault.help("write `counted times` for the first and the last hit of each row, or nothing"))
    }

    fn policy_part(&mut self, policy: &mut PolicyDeclaration) -> Parsed<()> {
        let (start, word) = (self.span(), self.word());
        if !POLICY_PARTS.contains(&word) {
            return self.no_policy_word(word, "a part of a policy", &POLICY_PARTS);
        }
        let twice = match word {
            "capacity" => policy.capacity.is_some(),
            "counted" => policy.counted_times.is_some(),
            "from" => policy.file.is_some(),
            _ => false,
        };
        if twice {
            let what = match word {
                "from" => "A policy comes from one file.",
                "counted" => "A policy says once what its rows keep.",
                _ => "A policy has one capacity.",
            };
            return self.fail(Diagnostic::error("E0084", what, start, "a second one"));
        }
        let name = self.any_word("A part of a policy", "here")?;
        match word {
            "capacity" => policy.capacity = Some(self.expression()?),
            "counted" => policy.counted_times = Some(self.counted_times(start)?),
            "from" => policy.file = Some(self.rules_file(start)?),
            "hook" => {
                let point = self.any_word("The name of a hook", "behind `hook`")?;
                // Where the rules come from a file, nothing is left to say.
                if self.first_on_line() || self.is(Sign::BraceClose) || self.word() == "hook" {
                    policy.hooks.push(PolicyHook {
                        point,
                        group: None,
                        default: None,
                        span: self.since(start),
                    });
                    return Ok(());
                }
                let open = self.expect(
                    Sign::BraceOpen,
                    "behind the name of a hook, as in `hook forward { group lan default block }`",
                )?;
                let (mut group, mut default) = (None, None);
                let part = |parser: &mut Self| {
                    let (here, again) = (parser.span(), "a second one");
                    if parser.take_word("group") {
                        if group.is_some() {
                            let what = "A hook has one group.";
                            return parser.fail(Diagnostic::error("E0084", what, here, again));
                        }
                        group = Some(parser.name("The name of a group", "behind `group`")?);
                    } else if parser.take_word("default") {
                        if default.is_some() {
                            let what = "A hook has one default.";
                            return parser.fail(Diagnostic::error("E0084", what, here, again));
                        }
                        default = Some(parser.policy_decision("behind `default`")?);
                    } else {
                        return parser.no_policy_word(
                            parser.word(),
                            "a part of a hook",
                            &["group", "default"],
                        );
                    }
                    Ok(())
                };
                self.braced(open, part, Self::skip_member)?;
                policy.hooks.push(PolicyHook { point, group, default, span: self.since(start) });
            }
            "group" => {
                let name = self.name("The name of a group", "behind `group`")?;
                let order = if self.take_word("last") {
                    MatchOrder::Last
                } else {
                    self.take_word("first");
                    MatchOrder::First
                };
                let open = self.expect(Sign::BraceOpen, "before the rules of a group")?;
                let begins = |parser: &Self| RULE_WORDS.contains(&parser.word());
                let skip = |parser: &mut Self, begin| parser.skip_to(begin, begins);
                let rules = self.braced(open, Self::policy_rule, skip)?;
                policy.groups.push(PolicyGroup { name, order, rules, span: self.since(start) });
            }
            _ => {
                self.expect(Sign::Gives, &format!("behind `{word}`, as in `{word} => drop blocked`"))?;
                let body = self.arm_body()?;
                policy.outcomes.push(PolicyOutcome { word: name, body, span: self.since(start) });
            }
        }
        Ok(())
    }

    fn rules_file(&mut self, start: Span) -> Parsed<RulesFile> {
        let example = "as in `from \"rules.v4\" as iptables`";
        let path = self.string(&format!("behind `from`, {example}"))?;
        if !self.take_word("as") {
            let fault = self.expected("`as` and the format of the file", &format!("in a policy, {example}"));
            return self.fail(fault);
        }
        let format = self.name("A format", "behind `as`")?;
        let options = self.file_options()?;
        Ok(RulesFile { path, format, options, text: None, limits: Vec::new(), span: self.since(start) })
    }

    fn policy_rule(&mut self) -> Parsed<DeclaredRule> {
        let start = self.span();
        let limit = if self.word() == "limit" { Some(self.rule_limit()?) } else { None };
        let log = self.take_word("log");
        // Behind `log` alone the next rule begins with a line.
        let action = match if log && self.first_on_line() { "" } else { self.word() } {
            "jump" => {
                self.advance();
                DeclaredAction::Jump(self.name("The name of a group", "behind `jump`")?)
            }
            "return" => {
                self.advance();
                DeclaredAction::Return
            }
            "count" => {
                self.advance();
                DeclaredAction::Continue
            }
            word if DECISIONS.contains(&word) => {
                DeclaredAction::Decide(self.policy_decision("at the begin of a rule")?)
            }
            "limit" => {
                let what = "A limit stands once, at the begin of a rule.";
                return self.fail(Diagnostic::error("E0084", what, self.span(), "not possible here"));
            }
            _ if log => DeclaredAction::Continue,
            word => return self.no_policy_word(word, "a rule", &RULE_WORDS),
        };
        let decides_at_once = matches!(action, DeclaredAction::Decide(_)) && self.take_word("final");
        let mut conditions = Vec::new();
        while !conditions.is_empty() && self.take(Sign::Comma)
            || conditions.is_empty() && self.condition_follows()
        {
            conditions.push(self.rule_condition()?);
        }
        let span = self.since(start);
        Ok(DeclaredRule { limit, log, action, decides_at_once, conditions, span })
    }

    /// `limit 10/s burst 20`, `limit 3/min burst 5` or `limit 125k bytes/s burst 64k`
    fn rule_limit(&mut self) -> Parsed<RuleLimit> {
        let (start, example) = (self.span(), "as in `limit 10/s burst 20 pass dport 22`");
        self.advance();
        let rate = self.limit_number("A rate", "behind `limit`")?;
        let bytes = self.take_word("bytes");
        self.expect(Sign::Slash, &format!("behind a rate, {example}"))?;
        let Some((_, seconds)) = RATE_TIMES.into_iter().find(|(word, _)| *word == self.word()) else {
            return self.no_policy_word(self.word(), "the time of a rate", &RATE_TIMES.map(|(word, _)| word));
        };
        self.advance();
        if !self.take_word("burst") {
            let fault = self.expected("`burst`", &format!("behind a rate, {example}"));
            return self.fail(fault);
        }
        let burst = self.limit_number("A number", "behind `burst`")?;
        Ok(RuleLimit { rate, seconds, bytes, burst, span: self.since(start) })
    }

    /// A number or the name of a constant.
    fn limit_number(&mut self, what: &str, place: &str) -> Parsed<LimitNumber> {
        let TokenKind::Int(number) = *self.kind() else {
            return Ok(LimitNumber::Constant(self.name(&format!("{what} or a constant"), place)?));
        };
        let number = LimitNumber::Int(number, self.span());
        self.advance();
        Ok(number)
    }

    /// A column stands here, not the next rule.
    fn condition_follows(&self) -> bool {
        !self.first_on_line() && *self.kind() == TokenKind::Word && !RULE_WORDS.contains(&self.word())
    }

    /// `pass`, `keep`, `block` or `reject KIND`
    fn policy_decision(&mut self, place: &str) -> Parsed<RuleDecision> {
        let word = self.word();
        if !DECISIONS.contains(&word) {
            return self.no_policy_word(word, "a decision", &DECISIONS);
        }
        let word = self.any_word("A decision", place)?;
        let reject = if word.text == "reject" { Some(self.reject_kind()?) } else { None };
        Ok(RuleDecision { word, reject })
    }

    fn reject_kind(&mut self) -> Parsed<Reject> {
        let word = self.word();
        let reject = match word {
            "icmp" | "icmpv6" => {
                self.advance();
                let code = match self.kind() {
                    TokenKind::Int(code) => u8::try_from(*code).ok(),
                    _ => None,
                };
                let Some(code) = code else {
                    let fault = self.expected("A code from 0 to 255", &format!("behind `{word}`"));
                    return self.fail(fault);
                };
                if word == "icmp" { Reject::Icmp(code) } else { Reject::Icmpv6(code) }
            }
            word => match REJECTS.iter().find(|(known, _)| *known == word) {
                Some((_, reject)) => *reject,
                None => {
                    let known: Vec<&str> = REJECTS.iter().map(|(known, _)| *known).collect();
                    let known = [&known[..], &["icmp", "icmpv6"]].concat();
                    return self.no_policy_word(word, "what a sender is told", &known);
                }
            },
        };
        self.advance();
        Ok(reject)
    }

    fn rule_condition(&mut self) -> Parsed<DeclaredCondition> {
        let start = self.span();
        let column = self.name("The name of a column", "in a rule")?;
        if self.take_word("absent") {
            return Ok(DeclaredCondition { column, values: None, negated: false, span: self.since(start) });
        }
        let negated = self.take_word("not");
        let mut values = vec![self.rule_value()?];
        while self.take(Sign::Or) {
            values.push(self.rule_value()?);
        }
        Ok(DeclaredCondition { column, values: Some(values), negated, span: self.since(start) })
    }

    /// A value, a prefix, a range or a value under a mask.
    fn rule_value(&mut self) -> Parsed<EntryKey> {
        if self.first_on_line() {
            let fault = self.expected("A value", "in a rule, as in `dport 80 | 443`");
            return self.fail(fault);
        }
        let value = self.operand()?;
        if self.take(Sign::Range) {
            let open = self.first_on_line() || matches!(self.kind(), TokenKind::Sign(_) | TokenKind::End);
            let high = if open || RULE_WORDS.contains(&self.word()) { None } else { Some(self.operand()?) };
            return Ok(EntryKey::Range(value, high));
        }
        if self.take_word("mask") {
            return Ok(EntryKey::Masked(value, self.operand()?));
        }
        Ok(EntryKey::Value(value))
    }

    /// Reports a word that has no place in a policy.
    fn no_policy_word<T>(&mut self, word: &str, what: &str, known: &[&'static str]) -> Parsed<T> {
        let span = self.span();
        let text = self.text_of(span);
        let fault = Diagnostic::error("E0084", format!("`{text}` is not {what}."), span, "not possible here");
        self.fail(match nearest(word, known) {
            Some(meant) => fault.suggest(format!("write `{meant}`"), span, meant),
            None => fault.help(format!("There are: {}.", known.join(", "))),
        })
    }
}
