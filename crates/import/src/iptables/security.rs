//! The matches `esp` and `ah`, which look for a header of IPsec and its number of a security association (RFC
//! 4302, RFC 4303). No field holds that number, so all numbers may be asked for, and no others.

use super::matches::Matches;
use super::numbers::number;
use super::values::looks_into;
use super::words::{Argument, Arguments};
use crate::ImportError;
use crate::text::shown;

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
    const WHAT: &str = "number of a security association";
    const MOST: u64 = u32::MAX as u64;
    let word = value.word();
    let ends = match word.split(':') {
        Some((low, high)) => {
            let low = if low.text.is_empty() { 0 } else { number(low, MOST, WHAT)? };
            (low, if high.text.is_empty() { MOST } else { number(high, MOST, WHAT)? })
        }
        None => {
            let only = number(word, MOST, WHAT)?;
            (only, only)
        }
    };
    if not || ends != (0, MOST) {
        let what = format!("`{}` asks for a {WHAT}, for which there is no field", shown(&value.text));
        return Err(value.error(what, format!("ask for all of them: `-m {}` alone", module.text)));
    }
    Ok(())
}
