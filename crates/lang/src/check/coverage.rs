//! Whether the arms of a `match` cover every value, and whether an arm can ever match.
//!
//! Both are one question: is there a value that a given pattern fits and no earlier arm fits? For "anything"
//! as the pattern the answer tells whether arms are missing; for an arm's own pattern whether it can ever
//! match. It is found by splitting on the first part: variants one by one, numbers at the bounds of the
//! ranges that occur. Two things keep it near linear in the number of arms: of single numbers only the ranges
//! covered so far are kept, and of other values an arm is compared with those above it that begin with the
//! same number or with none.

use super::Checker;
use super::hir::{Arm, Pattern, TableValue};
use super::types::Type;
use crate::diagnostic::Diagnostic;
use crate::limits::LARGEST_SEARCH;
use ir::source::Span;
use std::collections::{BTreeMap, HashMap};

/// Patterns for several values, one beside the other.
type Row<'p> = Vec<&'p Pattern>;

static ANY: Pattern = Pattern::Any;

impl Checker<'_> {
    /// Reports values that no arm fits and arms that no value reaches.
    pub(crate) fn check_arms<B>(&mut self, ty: &Type, arms: &[Arm<B>], span: Span) {
        if *ty == Type::Unknown {
            return;
        }
        let mut found = Vec::new();
        let mut search = Search { checker: self, left: LARGEST_SEARCH };
        let mut above = Above::default();
        for arm in arms {
            let never = !search.reaches(ty, [&above].into_iter(), &arm.pattern);
            if never && search.left > 0 {
                found.push(Diagnostic::warning(
                    "W0405",
                    "this arm never matches",
                    arm.span,
                    "the arms above fit everything it fits",
                ));
            }
            // A guard may fail, so what the arm fits is still open below it, but not within it.
            let mut own = Above::default();
            for part in leaves(&arm.pattern) {
                let listed = !never && matches!(arm.pattern, Pattern::Either(_));
                if listed && !search.reaches(ty, [&above, &own].into_iter(), part) && search.left > 0 {
                    found.push(Diagnostic::warning(
                        "W0405",
                        "a part of this arm never matches",
                        arm.span,
                        format!("{} fits nothing that is not taken before it", part_in_words(part)),
                    ));
                }
                let into = if arm.guard.is_none() { &mut above } else { &mut own };
                into.add(part, search.whole(ty));
            }
        }
        if search.reaches(ty, [&above].into_iter(), &ANY) && search.left > 0 {
            let missing = if matches!(ty, Type::Option(_)) && !above.rows.contains(&&Pattern::None) {
                "what if there is `none`?"
            } else {
                "some values fit no arm"
            };
            found.push(
                Diagnostic::error(
                    "E0226",
                    "this `match` does not say what happens to every value",
                    span,
                    missing,
                )
                .help("add an arm `else => …`"),
            );
        }
        if search.left == 0 {
            let help = "split it into several";
            found.push(Diagnostic::error("E0227", "this `match` is too entangled", span, help));
        }
        self.diagnostics.extend(found);
    }

    /// The largest value there is of a type: colours are three.
    fn largest_of(&self, ty: &Type) -> u128 {
        match ty {
            Type::Enum(id, ..) if self.colours == Some(*id) => 2,
            _ => ty.largest(),
        }
    }
}

/// What earlier arms fit.
#[derive(Default)]
struct Above<'p> {
    /// Of single numbers: the ranges, by their first number, with their last. None touches another.
    covered: BTreeMap<u128, u128>,
    /// Patterns of other values, none of them a list.
    rows: Vec<&'p Pattern>,
    /// Their places by the number that they begin with.
    keyed: HashMap<u128, Vec<usize>>,
    /// The places of those that begin with none.
    wide: Vec<usize>,
}

impl<'p> Above<'p> {
    /// Adds a pattern that is no list; `whole` is the range of a single number.
    fn add(&mut self, pattern: &'p Pattern, whole: Option<(u128, u128)>) {
        if let Some(whole) = whole {
            let (low, high) = range(pattern, whole);
            return self.cover(low, high);
        }
        match first_number(pattern) {
            Some(number) => self.keyed.entry(number).or_default().push(self.rows.len()),
            None => self.wide.push(self.rows.len()),
        }
        self.rows.push(pattern);
    }

    fn cover(&mut self, mut low: u128, mut high: u128) {
        while let Some((&first, &last)) = self.covered.range(..=high.saturating_add(1)).next_back() {
            if last.saturating_add(1) < low {
                break;
            }
            (low, high) = (low.min(first), high.max(last));
            self.covered.remove(&first);
        }
        self.covered.insert(low, high);
    }

    /// The last number of the range that a number lies in.
    fn last_from(&self, number: u128) -> Option<u128> {
        let (_, &last) = self.covered.range(..=number).next_back()?;
        (last >= number).then_some(last)
    }

    /// The rows that may fit a value that a pattern fits.
    fn near(&self, pattern: &Pattern) -> Vec<Row<'p>> {
        let row = |place: &usize| vec![self.rows[*place]];
        match first_number(pattern) {
            Some(number) => {
                self.keyed.get(&number).into_iter().flatten().chain(&self.wide).map(row).collect()
            }
            None => self.rows.iter().map(|row| vec![*row]).collect(),
        }
    }
}

/// The patterns that lists of alternatives are made of.
fn leaves(pattern: &Pattern) -> Vec<&Pattern> {
    match pattern {
        Pattern::Either(parts) => parts.iter().flat_map(leaves).collect(),
        _ => vec![pattern],
    }
}

/// A number with which every value begins that the pattern fits: values that begin with different ones are
/// different.
fn first_number(pattern: &Pattern) -> Option<u128> {
    match pattern {
        Pattern::Range(from, to) if from == to => Some(*from),
        Pattern::Tuple(parts) => first_number(parts.first()?),
        Pattern::Some(inner) => first_number(inner),
        Pattern::Variant(number, _) => Some(*number as u128),
        _ => None,
    }
}

/// The numbers that a pattern for a single number fits.
fn range(pattern: &Pattern, whole: (u128, u128)) -> (u128, u128) {
    if let Pattern::Range(from, to) = pattern { (*from, *to) } else { whole }
}

/// One `match`, and what may still be spent on it.
struct Search<'c, 'a> {
    checker: &'c Checker<'a>,
    left: usize,
}

impl Search<'_, '_> {
    /// All numbers of a type, if its values are single numbers.
    fn whole(&self, ty: &Type) -> Option<(u128, u128)> {
        let single = !matches!(ty, Type::Tuple(_) | Type::Option(_) | Type::Variants(..));
        single.then(|| (0, self.checker.largest_of(ty)))
    }

    /// Is there a value that a pattern fits and nothing above it does?
    fn reaches<'p, 'r>(
        &mut self,
        ty: &Type,
        above: impl Iterator<Item = &'r Above<'p>> + Clone,
        pattern: &'p Pattern,
    ) -> bool
    where
        'p: 'r,
    {
        let whole = self.whole(ty);
        leaves(pattern).into_iter().any(|part| {
            let Some(whole) = whole else {
                let rows = above.clone().flat_map(|above| above.near(part)).collect();
                return self.useful(std::slice::from_ref(ty), rows, vec![part]);
            };
            let (mut from, to) = range(part, whole);
            while self.spend(1) {
                match above.clone().filter_map(|above| above.last_from(from)).max() {
                    None => return true,
                    Some(last) if last >= to => return false,
                    Some(last) => from = last + 1,
                }
            }
            false
        })
    }

    fn spend(&mut self, steps: usize) -> bool {
        self.left = self.left.saturating_sub(steps);
        self.left > 0
    }

    /// Is there a value that `query` fits and no row fits?
    fn useful<'p>(&mut self, types: &[Type], rows: Vec<Row<'p>>, query: Row<'p>) -> bool {
        if !self.spend(1 + rows.len()) {
            return false;
        }
        let Some((ty, rest)) = types.split_first() else { return rows.is_empty() };
        if let Pattern::Either(parts) = query[0] {
            return parts.iter().any(|part| {
                let mut query = query.clone();
                query[0] = part;
                self.useful(types, rows.clone(), query)
            });
        }
        let rows: Vec<Row<'p>> = rows.into_iter().flat_map(spread).collect();
        match ty {
            Type::Tuple(parts) => {
                let types = [parts, rest].concat();
                let open = |row: &Row<'p>| match row[0] {
                    Pattern::Tuple(inner) => inner.iter().chain(row[1..].iter().copied()).collect(),
                    _ => any(parts.len()).chain(row[1..].iter().copied()).collect::<Row<'p>>(),
                };
                self.useful(&types, rows.iter().map(open).collect(), open(&query))
            }
            Type::Option(inner) => {
                let types = [std::slice::from_ref(inner.as_ref()), rest].concat();
                let some = |row: &Row<'p>| -> Option<Row<'p>> {
                    let held = match row[0] {
                        Pattern::Some(inner) => inner.as_ref(),
                        Pattern::None => return None,
                        _ => &ANY,
                    };
                    Some([held].into_iter().chain(row[1..].iter().copied()).collect())
                };
                let none = |row: &Row<'p>| match row[0] {
                    Pattern::Some(_) => None,
                    _ => Some(row[1..].to_vec()),
                };
                let with = some(&query)
                    .is_some_and(|query| self.useful(&types, rows.iter().filter_map(some).collect(), query));
                with || none(&query)
                    .is_some_and(|query| self.useful(rest, rows.iter().filter_map(none).collect(), query))
            }
            Type::Variants(table, _) => {
                let TableValue::Variants(variants) = &self.checker.program.tables[table.0].value else {
                    return false;
                };
                let asked = match query[0] {
                    Pattern::Variant(number, _) => *number..number + 1,
                    _ => 0..variants.len(),
                };
                // The rows of each variant, and those of all.
                let mut of_variant: HashMap<usize, Vec<&Row<'p>>> = HashMap::new();
                let mut of_all: Vec<&Row<'p>> = Vec::new();
                for row in &rows {
                    match row[0] {
                        Pattern::Variant(number, _) => of_variant.entry(*number).or_default().push(row),
                        _ => of_all.push(row),
                    }
                }
                asked.into_iter().any(|variant| {
                    let params: Vec<Type> = variants[variant].1.iter().map(|(_, ty)| ty.clone()).collect();
                    let types = [params.as_slice(), rest].concat();
                    let open = |row: &Row<'p>| match row[0] {
                        Pattern::Variant(_, parts) => parts.iter().chain(row[1..].iter().copied()).collect(),
                        _ => any(params.len()).chain(row[1..].iter().copied()).collect::<Row<'p>>(),
                    };
                    let own = of_variant.get(&variant).into_iter().flatten();
                    let rows = own.chain(&of_all).map(|row| open(row)).collect();
                    self.useful(&types, rows, open(&query))
                })
            }
            _ => self.useful_number((0, self.checker.largest_of(ty)), rest, rows, query),
        }
    }

    /// The same where the first value is a number: rows come and go while the numbers are passed through
    /// once.
    fn useful_number<'p>(
        &mut self,
        whole: (u128, u128),
        rest: &[Type],
        mut rows: Vec<Row<'p>>,
        query: Row<'p>,
    ) -> bool {
        let (from, to) = range(query[0], whole);
        let mut starts = vec![from];
        for row in &rows {
            let (low, high) = range(row[0], whole);
            let ends = [Some(low), high.checked_add(1)].into_iter().flatten();
            starts.extend(ends.filter(|at| (from..=to).contains(at)));
        }
        starts.sort_unstable();
        starts.dedup();
        rows.sort_by_key(|row| range(row[0], whole).0);
        let mut coming = rows.into_iter().peekable();
        let mut here: Vec<Row<'p>> = Vec::new();
        starts.into_iter().any(|at| {
            while let Some(row) = coming.next_if(|row| range(row[0], whole).0 <= at) {
                here.push(row);
            }
            here.retain(|row| range(row[0], whole).1 >= at);
            let rows = here.iter().map(|row| row[1..].to_vec()).collect();
            self.useful(rest, rows, query[1..].to_vec())
        })
    }
}

/// So many patterns that fit everything.
fn any<'p>(count: usize) -> impl Iterator<Item = &'p Pattern> {
    std::iter::repeat_n(&ANY, count)
}

fn part_in_words(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Range(from, to) if from == to => from.to_string(),
        Pattern::Range(from, to) => format!("{from}..{to}"),
        _ => "one of its alternatives".to_string(),
    }
}

/// A row whose first pattern lists alternatives becomes a row for each.
fn spread(row: Row<'_>) -> Vec<Row<'_>> {
    if !matches!(row[0], Pattern::Either(_)) {
        return vec![row];
    }
    let with = |part| {
        let mut row = row.clone();
        row[0] = part;
        row
    };
    leaves(row[0]).into_iter().map(with).collect()
}

#[cfg(test)]
mod tests {
    use crate::check::hir::{Arm, Pattern};
    use crate::check::types::Type;
    use ir::source::Span;

    /// The steps that are spent on these arms, behind which everything else is taken.
    fn steps(ty: &Type, patterns: impl Iterator<Item = Pattern>) -> usize {
        let arm = |pattern| Arm { pattern, guard: None, body: (), span: Span::default() };
        let arms: Vec<Arm<()>> = patterns.chain([Pattern::Any]).map(arm).collect();
        let checker = super::Checker::default();
        let mut search = super::Search { checker: &checker, left: usize::MAX };
        let mut above = super::Above::default();
        for arm in &arms {
            assert!(search.reaches(ty, [&above].into_iter(), &arm.pattern));
            above.add(&arm.pattern, search.whole(ty));
        }
        assert!(!search.reaches(ty, [&above].into_iter(), &super::ANY));
        usize::MAX - search.left
    }

    /// Twice as many arms take twice as many steps, and a few for sorting.
    #[test]
    fn steps_grow_with_the_arms() {
        let one = |number: u128| Pattern::Range(number, number);
        let numbers = Type::Uint(32);
        let pairs = Type::Tuple(vec![Type::Uint(32), Type::Uint(16)]);
        let found = Type::Option(Box::new(Type::Uint(32)));
        type Make = Box<dyn Fn(u128) -> Pattern>;
        let kinds: [(&str, &Type, Make); 5] = [
            ("numbers", &numbers, Box::new(one)),
            ("ranges", &numbers, Box::new(|number| Pattern::Range(10 * number, 10 * number + 5))),
            (
                "ranges side by side",
                &numbers,
                Box::new(|number| Pattern::Range(10 * number, 10 * number + 9)),
            ),
            ("pairs", &pairs, Box::new(move |number| Pattern::Tuple(vec![one(number), one(number % 7)]))),
            ("found", &found, Box::new(move |number| Pattern::Some(Box::new(one(number))))),
        ];
        for (name, ty, make) in kinds {
            let [half, whole] = [4_000, 8_000].map(|count| steps(ty, (0..count).map(&make)));
            assert!(whole <= 2 * half + 100, "{name}: {half} steps, then {whole}");
            assert!(whole <= 20 * 8_000, "{name}: {whole} steps");
        }
    }
}
