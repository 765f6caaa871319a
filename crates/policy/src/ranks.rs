//! The first two lines that would decide about a packet, and what groups and jumps make of them.

use crate::lines::RuleIndex;
use std::collections::HashMap;

/// What would decide at a hook, the first of which does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ranks {
    pub(crate) first: Option<Ranked>,
    /// Of another line than the first.
    pub(crate) second: Option<Ranked>,
}

/// A rule in its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ranked {
    pub(crate) rule: RuleIndex,
    /// Whether no later rule of a group of the last match that jumped here can change it.
    pub(crate) at_once: bool,
}

/// The lists that a diagram has at its ends, by their numbers; 0 is the empty one.
pub(crate) struct RankLists {
    lists: Vec<Ranks>,
    numbers: HashMap<Ranks, u32>,
    /// The line of each rule.
    lines: HashMap<RuleIndex, usize>,
    most: usize,
    /// Whether there were to be more lists than `most`: what was made since is wrong.
    too_many: bool,
}

impl RankLists {
    /// The empty list, and at most so many others.
    pub(crate) fn with_limit(most: usize, lines: HashMap<RuleIndex, usize>) -> RankLists {
        let mut lists =
            RankLists { lists: Vec::new(), numbers: HashMap::new(), lines, most, too_many: false };
        lists.number(Ranks::default());
        lists
    }

    /// Whether there were to be more lists than the limit.
    pub(crate) fn are_too_many(&self) -> bool {
        self.too_many
    }

    pub(crate) fn list(&self, number: u32) -> Ranks {
        self.lists[number as usize]
    }

    /// The line of a rule; the rules that a reader added have none.
    pub(crate) fn line(&self, rule: RuleIndex) -> Option<usize> {
        self.lines.get(&rule).copied()
    }

    /// The number of a list; 0 beyond the limit.
    pub(crate) fn number(&mut self, ranks: Ranks) -> u32 {
        if let Some(known) = self.numbers.get(&ranks) {
            return *known;
        }
        if self.lists.len() > self.most {
            self.too_many = true;
            return 0;
        }
        let number = self.lists.len() as u32;
        self.lists.push(ranks);
        self.numbers.insert(ranks, number);
        number
    }

    /// The first two of different lines among many.
    fn first_two(&mut self, ranked: impl IntoIterator<Item = Ranked>) -> u32 {
        let mut ranks = Ranks::default();
        for next in ranked {
            match ranks.first {
                None => ranks.first = Some(next),
                Some(first) if self.same_line(first.rule, next.rule) => {}
                Some(_) => {
                    ranks.second = Some(next);
                    break;
                }
            }
        }
        self.number(ranks)
    }

    fn same_line(&self, one: RuleIndex, other: RuleIndex) -> bool {
        one == other || self.lines.get(&one).is_some_and(|line| self.lines.get(&other) == Some(line))
    }

    fn all_of(&self, number: u32) -> impl Iterator<Item = Ranked> + use<> {
        let Ranks { first, second } = self.lists[number as usize];
        first.into_iter().chain(second)
    }

    /// The first list, and the second one behind it.
    pub(crate) fn behind(&mut self, front: u32, back: u32) -> u32 {
        if self.lists[front as usize].second.is_some() {
            return front;
        }
        self.first_two(self.all_of(front).chain(self.all_of(back)))
    }

    /// What a group of the last match makes of the list of a group that it jumps to and of its later rules.
    pub(crate) fn around(&mut self, inner: u32, later: u32) -> u32 {
        let at_once = self.all_of(inner).filter(|ranked| ranked.at_once);
        let so_far = self.all_of(inner).filter(|ranked| !ranked.at_once);
        self.first_two(at_once.chain(self.all_of(later)).chain(so_far))
    }

    /// The same list for a group of the first match, in which nothing later changes it.
    pub(crate) fn at_once(&mut self, number: u32) -> u32 {
        let at_once = |ranked: Ranked| Ranked { at_once: true, ..ranked };
        let Ranks { first, second } = self.lists[number as usize];
        self.number(Ranks { first: first.map(at_once), second: second.map(at_once) })
    }
}
