//! The rules of a hook in the order in which a lookup tries them: jumps are unrolled, and of a group in which
//! the last match decides, the last rule comes first.
//!
//! The list has two parts. In the first one are, in the order in which a packet meets them, the rules that
//! decide at once, and those that go on: they count, log, return or ask a limit. The second one is for
//! packets that none of these has decided about: the other rules of groups with `last`, from the last to the
//! first. Where a group without `last` jumps to one with it, the second part of that one stands at once
//! behind its first.
//!
//! ```text
//! group a { count dport 22   jump b proto 6   pass dport 22 }        1 count, 2 block final (proto 6),
//! group b last { pass   block final src X   block dport 25 }         3 block dport 25 (proto 6),
//!                                                                    4 pass (proto 6), 5 pass
//! ```
//!
//! A rule with a limit has a row before all that it stands for, also where the rest of the rule matches
//! nothing on this way into its group: its bucket serves all ways. It is refused where what it stands for is
//! in the second part: only there is known whether the rule is asked at all.
//!
//! A return leads behind the rules of its group. In the second part it leads there from the first of the
//! rules that it passes over.

use super::region::{RangeUnderMask, Region, meet};
use super::{CheckedAction, CheckedGroup, CheckedLimit, CheckedRule, Decided};
use crate::limits::{DEEPEST_POLICY, LARGEST_POLICY};
use ir::source::Span;
use policy::MatchOrder;

/// A rule in the list: its regions all do the same.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    /// The packets.
    pub(super) regions: Vec<Region>,
    /// What it does.
    pub(super) effect: Effect,
    /// The number of its rule.
    pub(super) rule: u32,
    /// The place of its rule.
    pub(super) span: Span,
}

/// What a rule in the list does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It decides.
    Decide(Decided),
    /// The packet goes on behind it, and is logged.
    Log,
    /// The packet goes on behind it.
    Count,
    /// The packet goes on with the rule at this place of the list.
    Leave(usize),
    /// The packet goes on behind it if it keeps to the limit of this number, or (`over`) if it does not, and
    /// otherwise with the rule at this place of the list.
    Limit { number: u32, over: bool, next: usize },
}

/// Why the rules of a hook do not become a list, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnrollFault {
    /// Jumps lead in a circle.
    Circle(Span),
    /// Jumps lead deeper than [`DEEPEST_POLICY`].
    Deep(Span),
    /// There are more rows than fit.
    Rows(Span),
    /// More regions were compared than [`LARGEST_POLICY`].
    Work(Span),
    /// A range meets a mask.
    Mask(Span),
}

/// A rule of the second part, from front to back.
enum Later {
    Decide(Vec<Region>, Decided, u32, Span),
    Group(Vec<Later>),
    Return(Vec<Region>, u32, Span),
}

/// The list of a hook's rules. `rows` are the most that may come out, `any` is every packet, and `default` is
/// what a return of the first group means where nothing follows.
pub(super) fn unroll(
    groups: &[CheckedGroup],
    first: usize,
    any: Region,
    default: Decided,
    rows: usize,
) -> Result<Vec<Listed>, UnrollFault> {
    let mut walk = Walk { groups, rows, listed: 0, work: LARGEST_POLICY, way: Vec::new(), list: Vec::new() };
    let later = walk.group(first, &[any])?;
    walk.later(&later);
    let end = walk.list.len();
    for listed in &mut walk.list {
        if listed.effect == Effect::Leave(end) {
            (listed.effect, listed.rule) = (Effect::Decide(default), 0);
        }
    }
    let count: usize = walk.list.iter().map(|listed| listed.regions.len()).sum();
    match walk.list.last() {
        Some(last) if count > rows => Err(UnrollFault::Rows(last.span)),
        _ => Ok(walk.list),
    }
}

struct Walk<'a> {
    groups: &'a [CheckedGroup],
    rows: usize,
    /// How many rows the list has so far.
    listed: usize,
    /// How many regions may still be compared.
    work: usize,
    /// The groups on the way here.
    way: Vec<usize>,
    list: Vec<Listed>,
}

impl Walk<'_> {
    /// Lists what decides or goes on at once for the packets of `within`; returns the rules for later.
    fn group(&mut self, index: usize, within: &[Region]) -> Result<Vec<Later>, UnrollFault> {
        let group = &self.groups[index];
        self.way.push(index);
        let (mut later, mut returns) = (Vec::new(), Vec::new());
        for (at, rule) in group.rules.iter().enumerate() {
            let regions = self.within(&rule.regions, within, rule.span)?;
            let begin = self.list.len();
            for &CheckedLimit { number, over, regions: ref counted } in &rule.limits {
                // Another way into the group may lead further, to the same bucket.
                let counted = match counted {
                    Some(counted) => self.within(counted, within, rule.span)?,
                    None => regions.clone(),
                };
                if !counted.is_empty() {
                    self.list(rule, counted, Effect::Limit { number, over, next: 0 })?;
                }
            }
            let limited = begin..self.list.len();
            if rule.log && !regions.is_empty() {
                self.list(rule, regions.clone(), Effect::Log)?;
            }
            match rule.action {
                _ if regions.is_empty() => {}
                CheckedAction::Decide(decided)
                    if rule.decides_at_once || group.order == MatchOrder::First =>
                {
                    self.list(rule, regions, Effect::Decide(decided))?;
                }
                CheckedAction::Decide(decided) => {
                    later.push(Later::Decide(regions, decided, rule.number, rule.span));
                }
                CheckedAction::Jump(next) | CheckedAction::Goto(next) => {
                    if self.way.contains(&next) {
                        return Err(UnrollFault::Circle(rule.span));
                    }
                    if self.way.len() >= DEEPEST_POLICY {
                        return Err(UnrollFault::Deep(rule.span));
                    }
                    let behind = self.group(next, &regions)?;
                    if group.order == MatchOrder::First {
                        self.later(&behind);
                    } else {
                        later.push(Later::Group(behind));
                    }
                    // Behind the last rule they return anyway.
                    if matches!(rule.action, CheckedAction::Goto(_)) && at + 1 < group.rules.len() {
                        self.returns(rule, regions, &mut returns, &mut later)?;
                    }
                }
                CheckedAction::Return => self.returns(rule, regions, &mut returns, &mut later)?,
                CheckedAction::Continue if rule.log => {}
                CheckedAction::Continue => self.list(rule, regions, Effect::Count)?,
            }
            let end = self.list.len();
            for listed in &mut self.list[limited] {
                if let Effect::Limit { next, .. } = &mut listed.effect {
                    *next = end;
                }
            }
        }
        self.way.pop();
        let end = self.list.len();
        returns.into_iter().for_each(|at| self.list[at].effect = Effect::Leave(end));
        Ok(later)
    }

    /// Lists a rule after which packets go on behind its group.
    fn returns(
        &mut self,
        rule: &CheckedRule,
        regions: Vec<Region>,
        returns: &mut Vec<usize>,
        later: &mut Vec<Later>,
    ) -> Result<(), UnrollFault> {
        returns.push(self.list.len());
        self.list(rule, regions.clone(), Effect::Count)?;
        later.push(Later::Return(regions, rule.number, rule.span));
        Ok(())
    }

    /// The packets of `within` that are in one of these regions of the rule at `span`.
    fn within(&mut self, own: &[Region], within: &[Region], span: Span) -> Result<Vec<Region>, UnrollFault> {
        let mut regions = Vec::new();
        let pairs = own.len().saturating_mul(within.len()).max(1);
        self.work = self.work.checked_sub(pairs).ok_or(UnrollFault::Work(span))?;
        for one in within {
            for other in own {
                let both = meet(one, other).map_err(|RangeUnderMask| UnrollFault::Mask(span))?;
                regions.extend(both);
            }
        }
        Ok(regions)
    }

    fn list(&mut self, rule: &CheckedRule, regions: Vec<Region>, effect: Effect) -> Result<(), UnrollFault> {
        self.listed += regions.len();
        if self.listed > self.rows {
            return Err(UnrollFault::Rows(rule.span));
        }
        self.list.push(Listed { regions, effect, rule: rule.number, span: rule.span });
        Ok(())
    }

    /// Lists the rules for later, the last one first.
    fn later(&mut self, rules: &[Later]) {
        let (mut returns, last) = (Vec::new(), rules.iter().rposition(decides));
        for (at, rule) in rules.iter().enumerate() {
            let Later::Return(regions, number, span) = rule else { continue };
            if last.is_some_and(|last| at < last) {
                returns.push((at, self.list.len()));
                let (regions, effect) = (regions.clone(), Effect::Count);
                self.list.push(Listed { regions, effect, rule: *number, span: *span });
            }
        }
        for (at, rule) in rules.iter().enumerate().rev() {
            match rule {
                Later::Decide(regions, decided, number, span) => {
                    let (regions, effect) = (regions.clone(), Effect::Decide(*decided));
                    self.list.push(Listed { regions, effect, rule: *number, span: *span });
                }
                Later::Group(rules) => self.later(rules),
                Later::Return(..) => {
                    let here = self.list.len();
                    let led = returns.pop_if(|(other, _)| *other == at);
                    led.into_iter().for_each(|(_, from)| self.list[from].effect = Effect::Leave(here));
                }
            }
        }
    }
}

/// Whether the rule, or one of its group, decides.
fn decides(rule: &Later) -> bool {
    match rule {
        Later::Decide(..) => true,
        Later::Group(rules) => rules.iter().any(decides),
        Later::Return(..) => false,
    }
}
