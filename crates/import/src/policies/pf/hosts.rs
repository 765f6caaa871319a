//! Lists of pf: addresses, tables and ports, each element one way for a rule to match.

use super::Reader;
use super::lists::each;
use crate::ImportError;
use crate::address::{AddressFamily, host_mask, parse};
use crate::policies::endpoints::{never, of_family, one_of, port, port_range};
use crate::policies::words::{FilterWord, Kind, Statement};
use policy::{MAPPED, PacketField, RuleCondition, Values};

/// The families of which packets can match.
pub(super) type Families = Vec<AddressFamily>;

/// Both families.
pub(super) const FAMILIES: [AddressFamily; 2] = [AddressFamily::V4, AddressFamily::V6];

/// A prefix of pf: `10/8` means 10.0.0.0/8, and bits behind the length are not looked at.
pub(super) fn prefix(word: &FilterWord<'_>) -> Result<(AddressFamily, u128, u8), ImportError> {
    let (address, length) = match word.text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (word.text, None),
    };
    let whole = match length {
        Some(_) if address.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
            let missing = 3usize.saturating_sub(address.matches('.').count());
            format!("{address}{}", ".0".repeat(missing))
        }
        _ => address.to_owned(),
    };
    let refuse = || {
        word.error(
            format!("{} is no address that is known here", word.shown()),
            "write an address, or a prefix as 192.0.2.0/24; names, interfaces and routes are not looked up",
        )
    };
    let (family, bits) = parse(whole.as_bytes()).ok_or_else(refuse)?;
    let length = match length {
        None => family.width(),
        Some(length) if length.len() <= 3 && length.bytes().all(|byte| byte.is_ascii_digit()) => {
            length.parse().ok().filter(|length| *length <= family.width()).ok_or_else(refuse)?
        }
        Some(_) => return Err(refuse()),
    };
    Ok((family, bits & !host_mask(family.width(), length), length))
}

/// What a table holds: prefixes, and those that it leaves out again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    entries: Vec<(AddressFamily, u128, u8, bool)>,
}

fn range(family: AddressFamily, bits: u128, length: u8) -> Values {
    let low = if family == AddressFamily::V4 { MAPPED | bits } else { bits };
    Values::Range { low, high: low | host_mask(family.width(), length) }
}

impl Table {
    /// How many ranges a rule has at most that asks for it: what is left out counts for each entry.
    pub(super) fn ranges(&self) -> usize {
        let left_out = self.entries.iter().filter(|entry| entry.3).count();
        (self.entries.len() - left_out).saturating_mul(left_out + 1)
    }

    /// Adds an entry; `not` is that of an address that is left out.
    pub(super) fn add(&mut self, word: &FilterWord<'_>, not: bool) -> Result<(), ImportError> {
        let (family, bits, length) = prefix(word)?;
        self.entries.push((family, bits, length, not));
        Ok(())
    }

    /// Whether the field holds an address of the table: the longest entry that has it says so.
    pub(super) fn holds(&self, field: PacketField) -> RuleCondition {
        let within = |outer: &(AddressFamily, u128, u8, bool), inner: &(AddressFamily, u128, u8, bool)| {
            let host = host_mask(outer.0.width(), outer.2);
            outer.0 == inner.0 && outer.2 <= inner.2 && outer.1 == inner.1 & !host
        };
        let mut any = Vec::new();
        for family in FAMILIES {
            let of = |not: bool| self.entries.iter().filter(move |entry| entry.0 == family && entry.3 == not);
            let mut plain = Vec::new();
            for entry in of(false) {
                let left_out: Vec<Values> = of(true)
                    .filter(|inner| within(entry, inner))
                    .map(|inner| range(family, inner.1, inner.2))
                    .collect();
                let values = range(family, entry.1, entry.2);
                if left_out.is_empty() {
                    plain.push(values);
                } else {
                    any.push(RuleCondition::All(vec![
                        of_family(family),
                        RuleCondition::Holds(field, vec![values]),
                        RuleCondition::Not(Box::new(RuleCondition::Holds(field, left_out))),
                    ]));
                }
            }
            if !plain.is_empty() {
                any.push(RuleCondition::All(vec![of_family(family), RuleCondition::Holds(field, plain)]));
            }
        }
        if any.is_empty() { never() } else { RuleCondition::Any(any) }
    }
}

/// Reads what stands behind `from` or `to` before its ports: when it holds, and the families it is about.
pub(super) fn addresses<'a>(
    statement: &mut Statement<'_, 'a>,
    reader: &mut Reader<'a>,
    field: PacketField,
) -> Result<(Option<RuleCondition>, Families), ImportError> {
    let first = statement.peek();
    if first.is_mark("!") && statement.second().is_mark("{") {
        return Err(first.error("`!` stands before a list", "write it before each element that it is about"));
    }
    let (mut any, mut families, mut is_everything) = (Vec::new(), Families::new(), false);
    each(statement, |statement| {
        let not = statement.takes_mark("!");
        let word = statement.next();
        reader.ranges.take(1, &word)?;
        if word.is("any") {
            if not {
                return Err(word.error("`! any` matches no packet", "leave it out"));
            }
            (is_everything, families) = (true, FAMILIES.to_vec());
            return Ok(());
        }
        if word.kind == Kind::Table {
            let count = reader.table(&word)?.ranges();
            reader.ranges.take(count, &word)?;
            let holds = reader.table(&word)?.holds(field);
            any.push(holds.turned(not));
            families = FAMILIES.to_vec();
            return Ok(());
        }
        if word.kind == Kind::Mark {
            let what = format!("{} stands where an address is due", word.shown());
            return Err(word.error(what, "addresses of interfaces, as in `(em0)`, are not known here"));
        }
        let (family, bits, length) = prefix(&word)?;
        let mut values = range(family, bits, length);
        if statement.takes("-") {
            let last = statement.next();
            let (of, high, _) = prefix(&last)?;
            let (low, high) = match (range(family, bits, length), range(of, high, of.width())) {
                (Values::Range { low, .. }, Values::Range { high, .. }) if of == family && low <= high => {
                    (low, high)
                }
                _ => return Err(last.error("this is no range of addresses", "write the smaller one first")),
            };
            values = Values::Range { low, high };
        }
        let holds = RuleCondition::Holds(field, vec![values]);
        let holds = holds.turned(not);
        any.push(RuleCondition::All(vec![of_family(family), holds]));
        if !families.contains(&family) {
            families.push(family);
        }
        Ok(())
    })?;
    if any.is_empty() && !is_everything {
        return Err(first.error("the list is empty: it matches no packet", "leave the rule out"));
    }
    let condition = (!is_everything).then(|| one_of(any));
    Ok((condition, families))
}

/// Reads ports: numbers, names, ranges with `:`, and operators.
pub(super) fn ports<'a>(
    statement: &mut Statement<'_, 'a>,
    reader: &mut Reader<'a>,
) -> Result<Vec<Values>, ImportError> {
    const MOST: u16 = u16::MAX;
    let first = statement.peek();
    let mut ports = Vec::new();
    each(statement, |statement| {
        let operator = statement.peek();
        let is_unary = ["=", "!=", "<", "<=", ">", ">="].iter().any(|mark| statement.takes_mark(mark));
        let word = statement.name("port")?;
        reader.ranges.take(2, &word)?;
        if is_unary {
            let number = port(word.text, &word)?;
            let (below, above) = (number.checked_sub(1), number.checked_add(1));
            let ranges = match operator.text {
                "=" => [Some((number, number)), None],
                "!=" => [below.map(|high| (0, high)), above.map(|low| (low, MOST))],
                "<" => [below.map(|high| (0, high)), None],
                "<=" => [Some((0, number)), None],
                ">" => [above.map(|low| (low, MOST)), None],
                _ => [Some((number, MOST)), None],
            };
            let ranges: Vec<(u16, u16)> = ranges.into_iter().flatten().collect();
            if ranges.is_empty() {
                let what = format!("no port is `{}` {number}", operator.text);
                return Err(operator.error(what, "leave it out"));
            }
            for (low, high) in ranges {
                ports.push(port_range(low, high, &word)?);
            }
            return Ok(());
        }
        let between = statement.peek();
        if statement.takes_mark("><") || statement.takes_mark("<>") {
            let last = statement.name("port")?;
            let (low, high) = (port(word.text, &word)?, port(last.text, &last)?);
            let is_out = between.text == "<>";
            let parts = if is_out {
                [low.checked_sub(1).map(|end| (0, end)), high.checked_add(1).map(|begin| (begin, MOST))]
            } else {
                [low.checked_add(1).zip(high.checked_sub(1)), None]
            };
            if low > high {
                return Err(word.error(format!("{low} is more than {high}"), "write the smaller one first"));
            }
            for (low, high) in parts.into_iter().flatten().filter(|(low, high)| low <= high) {
                ports.push(port_range(low, high, &word)?);
            }
            return Ok(());
        }
        match word.text.split_once(':') {
            Some((low, high)) => ports.push(port_range(port(low, &word)?, port(high, &word)?, &word)?),
            None => ports.push(Values::exact(port(word.text, &word)?.into())),
        }
        Ok(())
    })?;
    if ports.is_empty() {
        return Err(first.error("these are no ports: they match no packet", "leave the rule out"));
    }
    Ok(ports)
}
