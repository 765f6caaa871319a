//! "Did you mean": the known name nearest to one that nothing has, found within a budget that holds for a
//! whole program.

use crate::diagnostic::Diagnostic;
use crate::limits::LARGEST_LIKENESS;
use std::collections::BTreeSet;

/// So many names are listed where one is not known.
const MOST_LISTED: usize = 16;

/// What may still be spent: looking at a name, and comparing two letters, are a step each.
#[derive(Debug)]
pub struct Likeness {
    left: usize,
}

impl Default for Likeness {
    fn default() -> Likeness {
        Likeness { left: LARGEST_LIKENESS }
    }
}

impl Likeness {
    /// Steps that are left.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Takes so many steps, if they are left.
    pub fn allows(&mut self, steps: usize) -> bool {
        self.spend(steps).is_some()
    }

    /// Adds to a diagnostic about an unknown name the nearest known one, or all of them if they are few.
    pub fn suggest<'n>(
        &mut self,
        diagnostic: Diagnostic,
        name: &str,
        known: impl Iterator<Item = &'n str>,
    ) -> Diagnostic {
        let mut few = BTreeSet::new();
        let known = known.inspect(|candidate| {
            if few.len() <= MOST_LISTED {
                few.insert(*candidate);
            }
        });
        match self.nearest(name, known) {
            Some(nearest) => {
                let span = diagnostic.primary.span;
                diagnostic.suggest(format!("did you mean `{nearest}`?"), span, nearest)
            }
            None if (1..=MOST_LISTED).contains(&few.len()) && self.left > 0 => {
                diagnostic.help(format!("there are: {}", few.into_iter().collect::<Vec<_>>().join(", ")))
            }
            None => diagnostic,
        }
    }

    /// The known name nearest to a misspelt one, if one is near and there is enough left to find it.
    pub fn nearest<'n>(&mut self, name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
        let name: Vec<char> = name.chars().collect();
        let mut best: Option<(usize, &str)> = None;
        for candidate in known {
            self.spend(1)?;
            let letters = candidate.chars().count();
            let allowed = 1 + letters.min(name.len()) / 4;
            if letters.abs_diff(name.len()) > allowed {
                continue;
            }
            self.spend(letters * name.len())?;
            let found = (distance(&name, candidate), candidate);
            // Words that share no letter are not alike, however short they are.
            if found.0 <= allowed && found.0 < letters.max(name.len()) && best.is_none_or(|best| found < best)
            {
                best = Some(found);
            }
        }
        best.map(|(_, candidate)| candidate.to_string())
    }

    /// Where too little is left, nothing is, so that the order of names does not matter.
    fn spend(&mut self, steps: usize) -> Option<()> {
        let left = self.left.checked_sub(steps);
        self.left = left.unwrap_or(0);
        left.map(|_| ())
    }
}

/// Edits (insert, delete, replace, swap neighbours) from one word to the other: Damerau's distance without
/// overlapping swaps. Three rows are kept.
fn distance(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let (mut before, mut above): (Vec<usize>, Vec<usize>) = (vec![0; b.len() + 1], (0..=b.len()).collect());
    for i in 1..=a.len() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i);
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(row[j - 1] + 1).min(above[j] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        (before, above) = (above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        let of = |a: &str, b: &str| distance(&a.chars().collect::<Vec<_>>(), b);
        let cases = [
            ("", "", 0),
            ("a", "", 1),
            ("", "ab", 2),
            ("port", "prot", 1),
            ("source", "sorce", 1),
            ("kitten", "sitting", 3),
        ];
        for (a, b, edits) in cases {
            assert_eq!((of(a, b), of(b, a)), (edits, edits), "{a} {b}");
        }
    }

    #[test]
    fn the_nearest_name_is_found_and_the_first_of_equals() {
        let nearest = |name: &str, known: &[&str]| Likeness::default().nearest(name, known.iter().copied());
        assert_eq!(nearest("hots", &["hosts", "posts", "host"]).as_deref(), Some("host"));
        assert_eq!(nearest("cat", &["bat", "rat", "car"]).as_deref(), Some("bat"));
        assert_eq!(nearest("cat", &["dogs"]), None);
        assert_eq!(nearest("u", &["t"]), None);
        assert_eq!(nearest("u", &["t", "ut"]).as_deref(), Some("ut"));
    }

    #[test]
    fn all_of_a_program_shares_one_budget() {
        let known: Vec<String> = (0..1000).map(|number| format!("{number:0>250}")).collect();
        let mut likeness = Likeness::default();
        let ask =
            |likeness: &mut Likeness, name: &str| likeness.nearest(name, known.iter().map(String::as_str));
        assert_eq!(ask(&mut likeness, "x"), None);
        assert_eq!(likeness.left(), LARGEST_LIKENESS - 1000, "names of another length are not compared");
        assert_eq!(
            ask(&mut likeness, &known[0]),
            None,
            "a thousand long names are more than may be compared"
        );
        assert_eq!(likeness.left(), 0);
        assert_eq!(likeness.nearest("prot", ["port"].into_iter()), None);
    }
}
