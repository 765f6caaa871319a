//! Sets of addresses that a file says before its tables, as `ipset save` does.
//!
//! ```text
//! create friends hash:net family inet hashsize 1024 maxelem 65536
//! add friends 192.0.2.0/24
//! ```
//!
//! A set is of addresses or prefixes. One of another kind, or whose elements end by themselves, is refused
//! where a rule asks for it. The addresses of a set that the file does not say may be given beside it, one or
//! a prefix a line.

use super::matches::Matches;
use super::values::{address_range, address_set};
use super::words::{self, Argument};
use crate::ImportError;
use crate::address::{AddressFamily, host_mask, parse_prefix};
use crate::limits::MOST_SET_VALUES;
use crate::region::Set;
use crate::ruleset::Part;
use crate::text::{Line, lines, shown};
use policy::RuleCondition;
use std::collections::HashMap;

/// The sets of a file by name, and those that are given beside it.
#[derive(Debug, Default)]
pub(crate) struct AddressSets {
    of_file: HashMap<String, AddressSet>,
    /// The elements, or what is wrong with the text.
    given: HashMap<String, Result<Vec<Set>, String>>,
}

#[derive(Debug)]
struct AddressSet {
    family: AddressFamily,
    elements: Vec<Set>,
    /// What cannot be kept of it.
    fault: Option<ImportError>,
}

const SHAPE: &str = "sets are written `create NAME hash:ip|hash:net …` and `add NAME ADDRESS`";

/// What to do about a set whose addresses stand outside of the file.
pub(super) const GIVE_SET: &str = "write what `ipset save` prints before the tables, or give its addresses, one or a \
     prefix a line, in a file that you name: `tables { friends = \"friends.txt\" }` in a program, \
     `--table friends=friends.txt` on a command line";

/// Whether a line is about a set.
pub(super) fn is_about_sets(line: Line<'_>) -> bool {
    line.words().next().is_some_and(|word| matches!(word.text, "create" | "add"))
}

impl AddressSets {
    /// Takes what is given beside the file: names, and texts with an address or a prefix a line.
    pub(crate) fn give(&mut self, tables: &[(String, String)], family: AddressFamily) {
        let read = |(name, text): &(String, String)| (name.clone(), given(name, text, family));
        self.given = tables.iter().map(read).collect();
    }

    /// The elements of a set that is given beside the file, or what is wrong with its text.
    pub(super) fn given(&self, name: &str) -> Option<Result<&[Set], &str>> {
        self.given.get(name).map(|given| given.as_deref().map_err(String::as_str))
    }

    /// Reads a line about a set.
    pub(crate) fn line(&mut self, line: Line<'_>) -> Result<(), ImportError> {
        let words = words::words(line)?;
        let [command, name, third, rest @ ..] = &words[..] else {
            return Err(line.error_at_end("the line has not the words of a set", SHAPE));
        };
        if command.text == "create" {
            return self.create(name, third, rest);
        }
        let Some(set) = self.of_file.get_mut(&*name.text) else {
            return Err(name.error(format!("there is no set `{}`", shown(&name.text)), SHAPE));
        };
        // What is of a kind that is refused may have elements of any form.
        if set.fault.is_none() {
            match element(third, rest, set.family) {
                Ok(element) => set.elements.push(element),
                Err(error) => set.fault = Some(error),
            }
        }
        Ok(())
    }

    fn create(
        &mut self,
        name: &Argument<'_>,
        kind: &Argument<'_>,
        rest: &[Argument<'_>],
    ) -> Result<(), ImportError> {
        let mut set = AddressSet { family: AddressFamily::V4, elements: Vec::new(), fault: None };
        if !matches!(&*kind.text, "hash:ip" | "hash:net") {
            let what = format!("the set `{}` holds no plain addresses", shown(&name.text));
            set.fault = Some(kind.error(what, "sets of the kinds hash:ip and hash:net are known"));
        }
        let mut rest = rest.iter();
        while let Some(option) = rest.next() {
            match &*option.text {
                "family" => match rest.next().map(|family| &*family.text) {
                    Some("inet") => {}
                    Some("inet6") => set.family = AddressFamily::V6,
                    _ => return Err(option.error("`family` is of no family", "write inet or inet6")),
                },
                // How Linux keeps it, and what it writes beside its elements.
                "hashsize" | "maxelem" | "bucketsize" | "initval" => drop(rest.next()),
                "counters" | "comment" => {}
                other => {
                    let what = format!("`{}` says of a set what is not kept", shown(other));
                    set.fault = set.fault.or(Some(option.error(what, "write the set without it")));
                    break;
                }
            }
        }
        if self.of_file.insert(name.text.to_string(), set).is_some() {
            return Err(name.error(format!("the set `{}` is there twice", shown(&name.text)), "remove one"));
        }
        Ok(())
    }

    /// The elements of a set that a rule asks for.
    pub(super) fn elements(&self, name: &Argument<'_>, family: AddressFamily) -> Result<&[Set], ImportError> {
        let set = match (self.of_file.get(&*name.text), self.given(&name.text)) {
            (Some(set), None) => set,
            (None, Some(given)) => return given.map_err(|what| name.error(what, GIVE_SET)),
            (Some(_), Some(_)) => {
                let what = format!("the set `{}` is in the file, and given beside it", shown(&name.text));
                return Err(name.error(what, "say it once"));
            }
            (None, None) => {
                return Err(name.error(format!("the set `{}` is nowhere", shown(&name.text)), GIVE_SET));
            }
        };
        if let Some(fault) = &set.fault {
            return Err(fault.clone());
        }
        if set.family != family {
            let what = format!("the set `{}` is of {}", shown(&name.text), set.family.name());
            return Err(name.error(what, "ask for a set of the same family"));
        }
        Ok(&set.elements)
    }
}

/// Whether an address of a packet is among these elements. Each counts in `given`, the number of values that
/// the rules of a dump have been given so far.
pub(super) fn among(
    elements: &[Set],
    family: AddressFamily,
    part: Part,
    given: &mut usize,
    word: &Argument<'_>,
) -> Result<RuleCondition, ImportError> {
    *given += elements.len();
    if *given > MOST_SET_VALUES {
        let what = format!("rules ask for more than {MOST_SET_VALUES} elements of sets");
        return Err(word.error(what, "use smaller sets"));
    }
    // Every packet has addresses, so the opposite of all elements is that of the condition.
    let mut asked = Matches::new(family);
    asked.conditions.one_of(elements, &[part], false);
    Ok(asked.condition())
}

fn element(value: &Argument<'_>, rest: &[Argument<'_>], family: AddressFamily) -> Result<Set, ImportError> {
    let mut rest = rest.iter();
    while let Some(option) = rest.next() {
        match &*option.text {
            "packets" | "bytes" | "comment" => drop(rest.next()),
            other => {
                let what = format!("`{}` says of an element what is not kept", shown(other));
                return Err(option.error(what, "write the element without it"));
            }
        }
    }
    if value.text.contains('-') { address_range(value, family) } else { address_set(value, family) }
}

/// The addresses of a text beside the file.
fn given(name: &str, text: &str, family: AddressFamily) -> Result<Vec<Set>, String> {
    let mut elements = Vec::new();
    for line in lines(text.as_bytes()).map_err(|error| error.to_string())? {
        if line.is_blank() {
            continue;
        }
        let place = || format!("line {} of the table `{}`", line.number, shown(name));
        let prefix = parse_prefix(line.text.trim().as_bytes());
        let (own, bits, length) = prefix.map_err(|fault| format!("{} {fault}", place()))?;
        if own != family {
            return Err(format!("{} is of {}", place(), own.name()));
        }
        let width = family.width();
        elements.push(Set::masked(width, bits, host_mask(width, 0) & !host_mask(width, length)));
    }
    Ok(elements)
}
