//! The lines of an STF file that a control plane would do: entries, defaults and counters.
//!
//! ```text
//! add TABLE [PRIORITY] [FIELD:]VALUE… [ACTION(ARG, …)]    an entry; without an action where the table is a set
//! remove TABLE [PRIORITY] [FIELD:]VALUE…                  takes it out
//! add GROUP [INDEX] VALUE…                                a member; the index where there are several groups
//! remove GROUP [INDEX] VALUE…                             takes it out
//! remove all                                              takes out all entries of all tables
//! setdefault TABLE ACTION(ARG, …)                         what is found where no key fits
//! check_counter NAME[(INDEX)] [packets|bytes] OP NUMBER   a counter, or the entry of that place in a table that counts
//!
//! VALUE   10  0x0a  10.0.0.1  2001:db8::1  02:00:00:00:00:01  true     one value
//!         0x0a000000/8  10.0.0.0/8        a prefix
//!         0x02&&&0x12  0x0a******         the bits under a mask; a star stands for four bits
//!         80..89                          a range
//!         *                               anything
//! ACTION  the name of a variant, or `value` where entries hold plain data; ARG is NAME:VALUE or VALUE
//! OP      ==  !=  <  <=  >  >=
//! ```
//!
//! Fields and arguments are found by name where they are given one, else by their order.

use ir::{Column, ColumnKind, Entry, Group, Match, Program, Table, TableKind, prefix_mask};
use std::net::{Ipv4Addr, Ipv6Addr};

/// What a control plane does, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// `add`
    Add(Words),
    /// `remove`
    Remove(Words),
    /// `remove all`
    RemoveAll,
    /// `setdefault`
    SetDefault(Words),
    /// `check_counter`
    Check(StateCheck),
}

/// A table and what is said of its entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// The table's name.
    pub table: String,
    /// The words behind it.
    pub rest: Vec<String>,
}

/// What a counter must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateCheck {
    /// The counter, or the table that counts.
    pub name: String,
    /// The cell, or the place of the entry.
    pub index: usize,
    /// Bytes are meant, not packets.
    pub bytes: bool,
    /// How it is compared.
    pub comparison: String,
    /// With what.
    pub number: u64,
}

impl StateCheck {
    /// Whether this number is as it must be.
    pub fn holds(&self, found: u64) -> bool {
        match self.comparison.as_str() {
            "==" => found == self.number,
            "!=" => found != self.number,
            "<" => found < self.number,
            "<=" => found <= self.number,
            ">" => found > self.number,
            _ => found >= self.number,
        }
    }
}

/// Reads a line that begins with `word`; `None` if the word is none of these.
///
/// # Errors
/// What is wrong with the rest of the line.
pub(super) fn read(word: &str, rest: &str) -> Option<Result<Control, String>> {
    // Blanks inside of parentheses do not part words.
    let mut text = String::new();
    let mut depth = 0_usize;
    for letter in rest.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if letter.is_whitespace() && depth > 0 => continue,
            _ => {}
        }
        text.push(letter);
    }
    let mut words = text.split_whitespace().map(str::to_string);
    Some(match word {
        "add" => named_table(words).map(Control::Add),
        "remove" if text.trim() == "all" => Ok(Control::RemoveAll),
        "remove" => named_table(words).map(Control::Remove),
        "setdefault" => named_table(words).map(Control::SetDefault),
        "check_counter" => check(&mut words).map(Control::Check),
        _ => return None,
    })
}

fn named_table(mut words: impl Iterator<Item = String>) -> Result<Words, String> {
    let table = words.next().ok_or("the name of a table is missing")?;
    Ok(Words { table, rest: words.collect() })
}

fn check(words: &mut dyn Iterator<Item = String>) -> Result<StateCheck, String> {
    let first = words.next().ok_or("the name of a counter is missing")?;
    let (name, index) = match first.split_once('(') {
        Some((name, index)) => {
            let number = index.strip_suffix(')').and_then(|number| number.parse().ok());
            (
                name.to_string(),
                number.ok_or_else(|| format!("`({index}` is no index of a counter, such as `(3)`"))?,
            )
        }
        None => (first, 0),
    };
    let mut word = words.next().ok_or("a comparison is missing, such as `== 3`")?;
    let bytes = word == "bytes";
    if bytes || word == "packets" {
        word = words.next().ok_or("a comparison is missing, such as `== 3`")?;
    }
    if !["==", "!=", "<", "<=", ">", ">="].contains(&word.as_str()) {
        return Err(format!("`{word}` is no comparison; there are ==, !=, <, <=, > and >="));
    }
    let number = words.next().ok_or("a number is missing")?;
    let number = number.parse().map_err(|_| format!("`{number}` is no number"))?;
    super::nothing_behind(words)?;
    Ok(StateCheck { name, index, bytes, comparison: word, number })
}

/// The index of a table and the declared table.
///
/// # Errors
/// There is none of this name.
pub(super) fn table<'p>(program: &'p Program, name: &str) -> Result<(u32, &'p Table), String> {
    let found = (0..).zip(&program.tables).find(|(_, table)| table.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = program.tables.iter().map(|table| table.name.as_str()).collect();
        format!("the program has no table `{name}`; it has {}", names.join(", "))
    })
}

/// The index of a group's declaration and the declared group; none of this name is a table's.
pub(super) fn group<'p>(program: &'p Program, name: &str) -> Option<(u32, &'p Group)> {
    (0..).zip(&program.groups).find(|(_, group)| group.name == name)
}

/// The number of a group and the member that these words are.
///
/// # Errors
/// What does not suit the group.
pub(super) fn member(group: &Group, words: &Words) -> Result<(u32, Vec<u128>), String> {
    let indexed = usize::from(group.size > 1);
    if words.rest.len() != indexed + group.columns.len() {
        let index = if indexed == 1 { "the number of its group and " } else { "" };
        return Err(format!("a member of `{}` has {index}{} values", group.name, group.columns.len()));
    }
    let (index, values) = words.rest.split_at(indexed);
    let index = match index.first() {
        Some(index) => index.parse().map_err(|_| format!("`{index}` is no number of a group"))?,
        None => 0,
    };
    let values: Result<Vec<u128>, String> =
        values.iter().zip(&group.columns).map(|(text, column)| number(text, column)).collect();
    Ok((index, values?))
}

/// The entry that these words are, with a value or, for a removal, without.
///
/// # Errors
/// What does not suit the table.
pub(super) fn entry(table: &Table, words: &Words, with_value: bool) -> Result<Entry, String> {
    let mut rest = words.rest.as_slice();
    let mut priority = 0;
    if table.kind == (TableKind::Rules { by_priority: true }) {
        let first = rest.first().and_then(|first| first.parse().ok());
        priority =
            first.ok_or_else(|| format!("an entry of `{}` has a priority, before its fields", table.name))?;
        rest = &rest[1..];
    }
    let action = rest.last().filter(|last| last.ends_with(')'));
    let fields = if action.is_some() { &rest[..rest.len() - 1] } else { rest };
    let mut key: Vec<Option<Match>> = vec![None; table.keys.len()];
    for (place, field) in fields.iter().enumerate() {
        let (column, text) = named(field, &table.keys, place)
            .ok_or_else(|| format!("`{field}` is no field of the key of `{}`", table.name))?;
        let matched = match_of(text, &table.keys[column])?;
        if !matched.fits(table.keys[column].width) {
            return Err(format!("`{text}` does not fit its {} bits", table.keys[column].width));
        }
        if key[column].replace(matched).is_some() {
            return Err(format!("`{field}` is given a second time"));
        }
    }
    let missing = |part: Option<Match>| {
        part.ok_or_else(|| format!("the key of `{}` has {} fields", table.name, table.keys.len()))
    };
    let key = key.into_iter().map(missing).collect::<Result<Vec<Match>, String>>()?;
    let value = match (with_value, action) {
        (false, None) => Vec::new(),
        (false, Some(_)) => return Err("what is taken out has no action".to_string()),
        (true, None) if table.values.is_empty() => Vec::new(),
        (true, None) => {
            return Err(format!("an entry of `{}` has an action, `value(…)` or a variant", table.name));
        }
        (true, Some(action)) => self::value(table, action)?,
    };
    Ok(Entry { key, value, priority })
}

/// The value columns of `ACTION(ARG, …)`.
///
/// # Errors
/// What does not suit the table.
pub(super) fn value(table: &Table, action: &str) -> Result<Vec<u128>, String> {
    let (name, args) = action
        .strip_suffix(')')
        .and_then(|action| action.split_once('('))
        .ok_or_else(|| format!("`{action}` is no action; write `value(…)` or a variant with parentheses"))?;
    let args: Vec<&str> = args.split(',').map(str::trim).filter(|arg| !arg.is_empty()).collect();
    let mut numbers = vec![0; table.values.len()];
    let mut places: Vec<usize> = (0..table.values.len()).collect();
    if let Some(Column { kind: ColumnKind::Names(names), .. }) =
        table.values.first().filter(|first| first.name == "variant")
    {
        let number = names.iter().find(|(_, variant)| variant == name).map(|(number, _)| *number);
        numbers[0] = number.ok_or_else(|| format!("`{}` has no variant `{name}`", table.name))?;
        let own = |place: &usize| {
            table.values[*place].name.split_once('.').is_some_and(|(variant, _)| variant == name)
        };
        places.retain(own);
    } else if name != "value" {
        return Err(format!("entries of `{}` hold plain data: write `value(…)`", table.name));
    }
    if args.len() != places.len() {
        return Err(format!("`{name}` takes {} values, not {}", places.len(), args.len()));
    }
    let columns: Vec<Column> = (places.iter())
        .map(|&place| {
            let column = &table.values[place];
            let name = column.name.rsplit('.').next().unwrap_or_default().to_string();
            Column { name, ..column.clone() }
        })
        .collect();
    for (order, arg) in args.iter().enumerate() {
        let (column, text) =
            named(arg, &columns, order).ok_or_else(|| format!("`{arg}` is no argument of `{name}`"))?;
        numbers[places[column]] = number(text, &columns[column])?;
    }
    Ok(numbers)
}

/// `NAME:VALUE` or `VALUE`: the place of its column and the value's text.
fn named<'t>(word: &'t str, columns: &[Column], order: usize) -> Option<(usize, &'t str)> {
    if let Some((name, text)) = word.split_once(':')
        && let Some(column) = columns.iter().position(|column| column.name == name)
    {
        return Some((column, text));
    }
    // What stands before the first colon may be a part of a MAC or IPv6 address.
    (order < columns.len()).then_some((order, word))
}

fn match_of(text: &str, column: &Column) -> Result<Match, String> {
    let width = column.width;
    if text == "*" {
        return Ok(Match::Any);
    }
    if let Some((value, mask)) = text.split_once("&&&") {
        let (value, mask) = (number(value, column)?, number(mask, column)?);
        return Ok(Match::Masked { value: value & mask, mask });
    }
    if let Some((low, high)) = text.split_once("..") {
        let (low, high) = (number(low, column)?, number(high, column)?);
        return if low <= high {
            Ok(Match::Range { low, high })
        } else {
            Err(format!("the range {text} is empty"))
        };
    }
    if let Some((value, length)) = text.rsplit_once('/') {
        let length = length.parse().ok().filter(|length| *length <= width);
        let length = length.ok_or_else(|| format!("`{text}` has no length of at most {width} bits"))?;
        let value = number(value, column)? & prefix_mask(width, length);
        return Ok(if length == width { Match::Exact(value) } else { Match::Prefix { value, length } });
    }
    if let Some(digits) = text.strip_prefix("0x")
        && digits.contains('*')
    {
        let (mut value, mut mask) = (0_u128, 0_u128);
        for digit in digits.chars() {
            let known = digit.to_digit(16);
            if known.is_none() && digit != '*' {
                return Err(format!("`{digit}` in {text} is neither a hexadecimal digit nor `*`"));
            }
            value = value << 4 | u128::from(known.unwrap_or(0));
            mask = mask << 4 | if known.is_some() { 15 } else { 0 };
        }
        return Ok(Match::Masked { value, mask });
    }
    number(text, column).map(Match::Exact)
}

fn number(text: &str, column: &Column) -> Result<u128, String> {
    let parsed = match &column.kind {
        ColumnKind::Ip4 => text.parse::<Ipv4Addr>().ok().map(|address| u128::from(address.to_bits())),
        ColumnKind::Ip6 => text.parse::<Ipv6Addr>().ok().map(|address| address.to_bits()),
        ColumnKind::Mac => mac(text),
        ColumnKind::Bool => text.parse::<bool>().ok().map(u128::from),
        ColumnKind::Names(names) => names.iter().find(|(_, name)| name == text).map(|(number, _)| *number),
        ColumnKind::Uint | ColumnKind::Port | ColumnKind::Time => None,
    };
    let plain = || match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let number = parsed.or_else(plain).ok_or_else(|| format!("`{text}` is no value of this column"))?;
    if column.width < 128 && number >> column.width != 0 {
        return Err(format!("{text} has more than {} bits", column.width));
    }
    Ok(number)
}

fn mac(text: &str) -> Option<u128> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() != 6 {
        return None;
    }
    parts
        .iter()
        .try_fold(0, |address, part| Some(address << 8 | u128::from(u8::from_str_radix(part, 16).ok()?)))
}
