//! Variables of NPF and the lists that rules write: elements, one by one.

use crate::ImportError;
use crate::policies::limits::MOST_WORDS;
use crate::policies::words::{FilterWord, Kind, Statement};
use crate::text::shown;
use std::collections::BTreeMap;

/// One element of a list.
#[derive(Clone, Copy, Debug)]
pub(super) enum Element<'a> {
    /// A name, a number, an address, a text or a table.
    Word(FilterWord<'a>),
    /// `inet4(IF)`, `inet6(IF)` or `ifaddrs(IF)`: the interface.
    OfInterface(FilterWord<'a>),
}

impl<'a> Element<'a> {
    /// The word that it consists of, or the name of its interface.
    pub(super) fn word(&self) -> FilterWord<'a> {
        match self {
            Element::Word(word) | Element::OfInterface(word) => *word,
        }
    }

    fn at(self, place: &FilterWord<'_>) -> Self {
        match self {
            Element::Word(word) => Element::Word(word.at(place)),
            Element::OfInterface(word) => Element::OfInterface(word.at(place)),
        }
    }
}

/// What the variables of a file stand for; `None` for one whose line is refused.
#[derive(Debug, Default)]
pub(super) struct Variables<'a> {
    values: BTreeMap<&'a str, Option<Vec<Element<'a>>>>,
    /// How many words variables have stood for.
    words: usize,
}

impl<'a> Variables<'a> {
    /// Reads `$name = value`; the name is read.
    pub(super) fn define(
        &mut self,
        name: &FilterWord<'a>,
        statement: &mut Statement<'_, 'a>,
    ) -> Result<(), ImportError> {
        let key = name.variable().unwrap_or_default();
        if self.values.insert(key, None).is_some() {
            return Err(
                name.error(format!("{} is there twice", name.shown()), "give one of them another name")
            );
        }
        statement.mark("=")?;
        let elements = self.elements(statement)?;
        statement.finish("a variable stands for one element, or for a list in braces")?;
        self.values.insert(key, Some(elements));
        Ok(())
    }

    /// What a variable stands for, at the place where it is used.
    pub(super) fn value(&mut self, used: &FilterWord<'a>) -> Result<Vec<Element<'a>>, ImportError> {
        let key = used.variable().unwrap_or_default();
        let value = self.values.get(key).ok_or_else(|| {
            used.error(
                format!("the variable `${}` has no value yet", shown(key)),
                "give it one above this line",
            )
        })?;
        let value = value.as_ref().ok_or_else(|| {
            used.error(format!("the line of the variable `${}` is refused", shown(key)), "mend that line")
        })?;
        self.words += value.len();
        if self.words > MOST_WORDS {
            let what = format!("variables stand for more than {MOST_WORDS} words up to here");
            return Err(used.error(what, "name long lists less often, or use a table"));
        }
        Ok(value.iter().map(|element| element.at(used)).collect())
    }

    /// Reads one element, or a list in braces; variables are replaced by what they stand for.
    pub(super) fn elements(
        &mut self,
        statement: &mut Statement<'_, 'a>,
    ) -> Result<Vec<Element<'a>>, ImportError> {
        if !statement.takes_mark("{") {
            return self.element(statement);
        }
        let mut elements = self.element(statement)?;
        while !statement.takes_mark("}") {
            statement.mark(",")?;
            elements.append(&mut self.element(statement)?);
        }
        Ok(elements)
    }

    fn element(&mut self, statement: &mut Statement<'_, 'a>) -> Result<Vec<Element<'a>>, ImportError> {
        let word = statement.next();
        if word.variable().is_some() {
            return self.value(&word);
        }
        if ["inet4", "inet6", "ifaddrs"].iter().any(|function| word.is(function)) {
            statement.mark("(")?;
            let interface = statement.name("name of an interface")?;
            statement.mark(")")?;
            return Ok(vec![Element::OfInterface(interface)]);
        }
        if matches!(word.kind, Kind::Plain | Kind::Quoted | Kind::Table) {
            return Ok(vec![Element::Word(word)]);
        }
        Err(word.error(
            format!("{} is no element of a list", word.shown()),
            "write an address, a port, a name, a table or a variable; a list ends in its line",
        ))
    }
}
