//! The matches `esp` and `ah`, which look for a header of IPsec and its security parameters index (RFC 4302,
//! RFC 4303).

use super::matches::Matches;
use super::numbers::number;
use super::values::{holds, looks_into};
use super::words::{Argument, Arguments};
use crate::ImportError;
use policy::PacketField;

/// Reads what stands behind `-m esp` or `-m ah`, which look into this protocol by this option.
pub(super) fn read(
    module: &Argument<'_>,
    (protocol, option): (u8, &str),
    arguments: &mut Arguments<'_>,
    matches: &mut Matches,
) -> Result<(), ImportError> {
    looks_into(protocol, module, matches)?;
    let not = arguments.ahead().first().is_some_and(|word| word.text == "!");
    if arguments.ahead().get(usize::from(not)).is_none_or(|word| word.text != option) {
        return Ok(());
    }
    if not {
        arguments.next();
    }
    let Some(option) = arguments.next() else { return Ok(()) };
    let value = arguments.value(&option)?;
    const WHAT: &str = "security parameters index";
    const MOST: u64 = u32::MAX as u64;
    let word = value.word();
    let (low, high) = match word.split(':') {
        Some((low, high)) => {
            let low = if low.text.is_empty() { 0 } else { number(low, MOST, WHAT)? };
            (low, if high.text.is_empty() { MOST } else { number(high, MOST, WHAT)? })
        }
        None => {
            let only = number(word, MOST, WHAT)?;
            (only, only)
        }
    };
    if high < low {
        return Err(value.error(format!("{low} is above {high}"), "write the smaller number first"));
    }
    holds(PacketField::SecurityIndex, vec![(low.into(), high.into())], not, matches);
    Ok(())
}
