//! Sets of addresses that a file says before its tables, as `ipset save` does.
//!
//! ```text
//! create friends hash:net family inet hashsize 1024 maxelem 65536
//! add friends 192.0.2.0/24
//! ```
//!
//! A set is of addresses or prefixes. One of another kind, or whose elements end by themselves, is refused
//! where a rule asks for it.

use super::values::{address_range, address_set};
use super::words::{self, Argument};
use crate::ImportError;
use crate::address::AddressFamily;
use crate::region::Set;
use crate::text::{Line, shown};
use std::collections::HashMap;

/// The sets of a file by name.
#[derive(Debug, Default)]
pub(crate) struct AddressSets(HashMap<String, AddressSet>);

#[derive(Debug)]
struct AddressSet {
    family: AddressFamily,
    elements: Vec<Set>,
    /// What cannot be kept of it.
    fault: Option<ImportError>,
}

const SHAPE: &str = "sets are written `create NAME hash:ip|hash:net …` and `add NAME ADDRESS`";

/// Whether a line is about a set.
pub(super) fn is_about_sets(line: Line<'_>) -> bool {
    line.words().next().is_some_and(|word| matches!(word.text, "create" | "add"))
}

impl AddressSets {
    /// Reads a line about a set.
    pub(crate) fn line(&mut self, line: Line<'_>) -> Result<(), ImportError> {
        let words = words::words(line)?;
        let [command, name, third, rest @ ..] = &words[..] else {
            return Err(line.error_at_end("the line has not the words of a set", SHAPE));
        };
        if command.text == "create" {
            return self.create(name, third, rest);
        }
        let Some(set) = self.0.get_mut(&*name.text) else {
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
        if self.0.insert(name.text.to_string(), set).is_some() {
            return Err(name.error(format!("the set `{}` is there twice", shown(&name.text)), "remove one"));
        }
        Ok(())
    }

    /// The elements of a set that a rule asks for.
    pub(super) fn elements(&self, name: &Argument<'_>, family: AddressFamily) -> Result<&[Set], ImportError> {
        let Some(set) = self.0.get(&*name.text) else {
            let what = format!("the set `{}` is nowhere", shown(&name.text));
            return Err(name.error(what, "write what `ipset save` prints before the tables"));
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
