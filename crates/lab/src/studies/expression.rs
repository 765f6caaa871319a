//! Arithmetic of claims: numbers of a publication and figures of reports, with the ranges of the latter.
//!
//! ```text
//! expression = product { ("+" | "-") product }
//! product    = factor { ("*" | "/") factor }
//! factor     = number | value [ "(" argument ")" ] | "(" expression ")"
//!            | ("max" | "min" | "mean") "(" expression { "," expression } ")"
//! ```
//!
//! A value is one of the study. Its argument stands for `{}` in the row that it names: a number, a text
//! between `'`, or `at`, the place of the point that is judged. The range of a result is the widest that the
//! ranges of its parts allow; a divisor whose range holds zero is refused, since the quotient would have no
//! end.

/// A figure with its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// How deep parentheses may go; files of studies are ours, and a slip in one is no reason for a full stack.
const DEEPEST: usize = 32;

/// Gives the value of a name, with its argument if it has one.
pub(super) type Lookup<'a> = dyn Fn(&str, Option<&str>) -> Result<Span, String> + 'a;

impl Span {
    pub(super) fn exactly(value: f64) -> Span {
        Span { median: value, low: value, high: value }
    }

    /// What comes of each pair of ends, of an operation that rises or falls throughout the ranges. `None` if
    /// some of it is no number.
    fn with(self, other: Span, of: fn(f64, f64) -> f64) -> Option<Span> {
        let all = [(self.low, other.low), (self.low, other.high), (self.high, other.low)];
        let median = of(self.median, other.median);
        let ends = all.into_iter().chain([(self.high, other.high)]).map(|(one, two)| of(one, two));
        let ends: Vec<f64> = ends.collect();
        // The least and the greatest of some numbers pass over what is none.
        let all_are_numbers = median.is_finite() && ends.iter().all(|end| end.is_finite());
        let (low, high) =
            ends.iter().fold((median, median), |(low, high), end| (low.min(*end), high.max(*end)));
        all_are_numbers.then_some(Span { median, low, high })
    }

    fn is_finite(&self) -> bool {
        [self.median, self.low, self.high].iter().all(|part| part.is_finite())
    }
}

/// The value of an expression. `at` is the place of the point that is judged.
///
/// # Errors
/// It cannot be read, a name is unknown, or the result is no number; the text says where.
pub(super) fn value(text: &str, at: Option<&str>, lookup: &Lookup<'_>) -> Result<Span, String> {
    let mut reader = Reader { text, rest: text, at, lookup, depth: 0 };
    let value = reader.expression()?;
    reader.skip();
    if !reader.rest.is_empty() {
        return Err(reader.wrong("nothing more"));
    }
    reader.number(Some(value))
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    at: Option<&'a str>,
    lookup: &'a Lookup<'a>,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn wrong(&self, expected: &str) -> String {
        format!("`{}`: expected {expected} before `{}`", self.text, self.rest)
    }

    /// The value, unless it is no number.
    fn number(&self, value: Option<Span>) -> Result<Span, String> {
        value.filter(Span::is_finite).ok_or_else(|| format!("`{}` is no number", self.text))
    }

    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn takes(&mut self, mark: char) -> bool {
        self.skip();
        let rest = self.rest.strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expression(&mut self) -> Result<Span, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("`{}` has more than {DEEPEST} parentheses in each other", self.text));
        }
        let mut value = self.product()?;
        loop {
            if self.takes('+') {
                let other = self.product()?;
                value = self.number(value.with(other, |one, two| one + two))?;
            } else if self.takes('-') {
                let other = self.product()?;
                value = self.number(value.with(other, |one, two| one - two))?;
            } else {
                self.depth -= 1;
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<Span, String> {
        let mut value = self.factor()?;
        loop {
            if self.takes('*') {
                let other = self.factor()?;
                value = self.number(value.with(other, |one, two| one * two))?;
            } else if self.takes('/') {
                let divisor = self.factor()?;
                // The quotient would have no end in one direction or in both.
                if divisor.low <= 0.0 && divisor.high >= 0.0 {
                    return Err(format!("`{}` divides by what may be zero", self.text));
                }
                value = self.number(value.with(divisor, |one, two| one / two))?;
            } else {
                return Ok(value);
            }
        }
    }

    fn factor(&mut self) -> Result<Span, String> {
        if self.takes('(') {
            let value = self.expression()?;
            return if self.takes(')') { Ok(value) } else { Err(self.wrong("`)`")) };
        }
        self.skip();
        let word = self.word();
        if word.is_empty() {
            return Err(self.wrong("a number or a name"));
        }
        if word.starts_with(|first: char| first.is_ascii_digit()) {
            return self.number(word.replace('_', "").parse().ok().map(Span::exactly));
        }
        let of: Option<fn(&[f64]) -> f64> = match word {
            "max" => Some(|all| all.iter().copied().fold(f64::MIN, f64::max)),
            "min" => Some(|all| all.iter().copied().fold(f64::MAX, f64::min)),
            "mean" => Some(|all| all.iter().sum::<f64>() / all.len() as f64),
            _ => None,
        };
        match of {
            Some(of) => self.of_several(of),
            None if self.takes('(') => {
                let argument = self.argument()?;
                if !self.takes(')') {
                    return Err(self.wrong("`)`"));
                }
                self.number(Some((self.lookup)(word, Some(argument))?))
            }
            None => self.number(Some((self.lookup)(word, None)?)),
        }
    }

    fn of_several(&mut self, of: fn(&[f64]) -> f64) -> Result<Span, String> {
        if !self.takes('(') {
            return Err(self.wrong("`(`"));
        }
        let mut all = vec![self.expression()?];
        while self.takes(',') {
            all.push(self.expression()?);
        }
        if !self.takes(')') {
            return Err(self.wrong("`)`"));
        }
        let part = |part: fn(&Span) -> f64| of(&all.iter().map(part).collect::<Vec<f64>>());
        Ok(Span { median: part(|one| one.median), low: part(|one| one.low), high: part(|one| one.high) })
    }

    /// A name or a number: letters, digits, `_` and `.`.
    fn word(&mut self) -> &'a str {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.';
        let end = self.rest.find(|letter| !is_part(letter)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn argument(&mut self) -> Result<&'a str, String> {
        if self.takes('\'') {
            let (text, rest) = self.rest.split_once('\'').ok_or_else(|| self.wrong("`'`"))?;
            self.rest = rest;
            return Ok(text);
        }
        self.skip();
        match self.word() {
            "at" => self.at.ok_or_else(|| format!("`{}`: only points have a place", self.text)),
            "" => Err(self.wrong("an argument")),
            word => Ok(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Span, String> {
        value(text, Some("32"), &|name, argument| match (name, argument) {
            ("two", None) => Ok(Span { median: 2.0, low: 1.0, high: 4.0 }),
            ("none", None) => Ok(Span::exactly(f64::NAN)),
            ("by", Some(argument)) => argument.parse().map(Span::exactly).map_err(|_| argument.to_owned()),
            _ => Err(format!("there is no `{name}`")),
        })
    }

    #[test]
    fn expressions_are_what_arithmetic_says_and_ranges_are_the_widest() {
        let median = |text| of(text).expect(text).median;
        assert_eq!(median("32 * 32 * 17 - 16_768"), 640.0);
        assert_eq!(median("1 - 2 - 3"), -4.0);
        assert_eq!(median("8 / (2 + 2) / 2"), 1.0);
        assert_eq!(median("mean(1, 2, max(3, 6), min(3, 9))"), 3.0);
        assert_eq!(median("by(at) + by(8) + by('4')"), 44.0);
        assert_eq!(of("1 / two"), Ok(Span { median: 0.5, low: 0.25, high: 1.0 }));
        assert_eq!(of("1 / (0 - two)"), Ok(Span { median: -0.5, low: -1.0, high: -0.25 }));
        assert_eq!(of("10 - two * 2"), Ok(Span { median: 6.0, low: 2.0, high: 8.0 }));
    }

    #[test]
    fn what_is_no_arithmetic_is_refused() {
        let deep = "(".repeat(DEEPEST + 1) + "1" + &")".repeat(DEEPEST + 1);
        for (text, why) in [
            ("1 +", "expected a number or a name"),
            ("(1", "expected `)`"),
            ("1 2", "expected nothing more"),
            ("max 1", "expected `(`"),
            ("three", "there is no `three`"),
            ("1 / 0", "`1 / 0` divides by what may be zero"),
            ("1 / (two - 2)", "divides by what may be zero"),
            ("1 / (two - 1)", "divides by what may be zero"),
            ("1 / (two - 4)", "divides by what may be zero"),
            ("max(0 / 0, 1)", "divides by what may be zero"),
            ("min(1e308 * 10, 1)", "is no number"),
            ("min(1e999, 1)", "is no number"),
            ("max(none, 1)", "is no number"),
            ("1.2.3", "is no number"),
            ("by('1", "expected `'`"),
            (&deep, "more than 32 parentheses"),
        ] {
            let error = of(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        let error = value("by(at)", None, &|_, _| Ok(Span::exactly(0.0))).expect_err("there is no point");
        assert!(error.contains("only points have a place"), "{error}");
    }
}
