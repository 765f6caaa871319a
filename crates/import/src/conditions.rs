//! The conditions of one rule as boxes, and the interfaces that its names mean.

use crate::address::Family;
use crate::region::{Region, Set};
use crate::ruleset::Part;

/// Conditions that must all hold.
#[derive(Debug)]
pub(crate) struct Conditions {
    family: Family,
    /// Of each condition one alternative holds; an alternative holds if all its columns do.
    all: Vec<Vec<Vec<(Part, Set)>>>,
    /// Whether no packet can fit.
    never: bool,
}

/// Why conditions are no list of boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Two conditions on a column meet in no range, prefix or mask.
    Mixed(Part),
    /// There are more boxes than the limit.
    TooMany,
}

impl Conditions {
    /// No condition: all packets fit.
    pub(crate) fn new(family: Family) -> Self {
        Self { family, all: Vec::new(), never: false }
    }

    /// No packet can fit.
    pub(crate) fn never(&mut self) {
        self.never = true;
    }

    /// The column holds one of the set, or one outside of it.
    pub(crate) fn is(&mut self, set: Set, part: Part, not: bool) {
        self.one_of(&[set], &[part], not);
    }

    /// One of the columns holds one of the sets, or no column one of any.
    pub(crate) fn one_of(&mut self, sets: &[Set], parts: &[Part], not: bool) {
        if !not {
            let each = parts.iter().flat_map(|part| sets.iter().map(|set| vec![(*part, *set)]));
            self.all.push(each.collect());
            return;
        }
        for part in parts {
            for set in sets {
                let outside = set.complement(part.width(self.family));
                self.all.push(outside.into_iter().map(|set| vec![(*part, set)]).collect());
            }
        }
    }

    /// One of the alternatives holds, or none of them.
    pub(crate) fn any_of(&mut self, alternatives: Vec<Vec<(Part, Set)>>, not: bool) {
        if !not {
            self.all.push(alternatives);
            return;
        }
        for alternative in alternatives {
            let outside = |(part, set): (Part, Set)| {
                let outside = set.complement(part.width(self.family));
                outside.into_iter().map(move |set| vec![(part, set)])
            };
            self.all.push(alternative.into_iter().flat_map(outside).collect());
        }
    }

    /// The boxes in which all conditions hold, at most `limit`.
    pub(crate) fn regions(&self, limit: usize) -> Result<Vec<Region>, Fault> {
        let mut regions = vec![Region::any(self.family)];
        if self.never {
            regions.clear();
        }
        // Conditions without a choice first, so that what they rule out is not tried again and again.
        let mut order: Vec<&Vec<Vec<(Part, Set)>>> = self.all.iter().collect();
        order.sort_by_key(|alternatives| alternatives.len());
        for alternatives in order {
            let mut narrowed = Vec::new();
            for region in &regions {
                for alternative in alternatives {
                    if let Some(region) = both(region, alternative)? {
                        narrowed.push(region);
                    }
                    if narrowed.len() > limit {
                        return Err(Fault::TooMany);
                    }
                }
            }
            regions = narrowed;
        }
        Ok(regions)
    }
}

fn both(region: &Region, alternative: &[(Part, Set)]) -> Result<Option<Region>, Fault> {
    let mut region = region.clone();
    for (part, set) in alternative {
        match region.narrowed(*part, *set).map_err(|_| Fault::Mixed(*part))? {
            Some(narrowed) => region = narrowed,
            None => return Ok(None),
        }
    }
    Ok(Some(region))
}

/// The names of interfaces and the numbers that stand for them, from 1.
#[derive(Debug)]
pub(crate) struct Interfaces {
    names: Vec<String>,
    /// How many the caller named; if any, they are all that there are.
    named: usize,
}

impl Interfaces {
    pub(crate) fn new(named: &[String]) -> Self {
        Self { names: named.to_vec(), named: named.len() }
    }

    pub(crate) fn into_names(self) -> Vec<String> {
        self.names
    }

    /// The set of one name; `None` if there are more names than numbers.
    pub(crate) fn one(&mut self, name: &str) -> Option<Set> {
        let known = self.names.iter().position(|own| own == name);
        let index = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        number(index)
    }

    /// The sets of all names that start so; `None` if it is not known which names there are.
    pub(crate) fn starting(&self, start: &str) -> Option<Vec<Set>> {
        if self.named == 0 {
            return None;
        }
        let names = self.names[..self.named].iter().enumerate();
        names.filter(|(_, name)| name.starts_with(start)).map(|(index, _)| number(index)).collect()
    }
}

fn number(index: usize) -> Option<Set> {
    u16::try_from(index + 1).ok().map(|number| Set::exact(number.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_multiply_and_their_opposites_do_not_overlap() {
        let mut conditions = Conditions::new(Family::V4);
        let (one, two) = (Set::exact(1), Set::exact(2));
        conditions.any_of(vec![vec![(Part::SourcePort, one), (Part::DestinationPort, two)]], true);
        conditions.one_of(&[one, two], &[Part::SourcePort], false);
        let regions = conditions.regions(100).unwrap();
        // Source port 1 with any destination port but 2, or source port 2.
        let fits = |source: u128, destination: u128| {
            let meets = |region: &&Region| {
                let met = region.narrowed(Part::SourcePort, Set::exact(source)).unwrap();
                met.is_some_and(|met| {
                    met.narrowed(Part::DestinationPort, Set::exact(destination)).unwrap().is_some()
                })
            };
            regions.iter().any(|region| meets(&region))
        };
        assert!(!fits(1, 2) && fits(1, 3) && fits(2, 2) && !fits(3, 3));
        assert_eq!(conditions.regions(3), Err(Fault::TooMany));
    }

    #[test]
    fn names_are_numbered_as_they_come() {
        let mut open = Interfaces::new(&[]);
        assert_eq!((open.one("a"), open.one("b"), open.one("a")), (number(0), number(1), number(0)));
        assert_eq!(open.starting("a"), None);
        let mut named = Interfaces::new(&["b1".to_owned(), "b2".to_owned()]);
        assert_eq!(named.one("b3"), number(2));
        assert_eq!(named.starting("b").unwrap().len(), 2);
    }
}
