//! Lists of byte strings to search for, one a line.
//!
//! ```text
//! id <tab> nocase <tab> length <tab> bytes <tab> number       12  1  4  47455420  2003
//! ```
//!
//! The id is the place in the list, from 0; nocase is 0 or 1; the length counts bytes, which are hexadecimal;
//! the number is what the string means to its owner, such as the first rule that has it. `#` starts a comment
//! line.

use crate::ImportError;
use crate::text::{Line, Word, each_line, shown};
use tables::patterns::SearchPattern;

const SHAPE: &str = "a line is written `id nocase length bytes number`";

/// Reads a list; a pattern's value is the number at the end of its line.
///
/// # Errors
/// The first line that is none or contradicts itself; ids that do not count from 0; a last line without an
/// end, as the file may be cut there.
pub fn read(text: &[u8]) -> Result<Vec<SearchPattern>, ImportError> {
    let mut place = 0;
    each_line(text, |line| {
        place += 1;
        pattern(line, place - 1)
    })
}

/// The list as [`read`] takes it. What patterns ask besides, an offset or a depth, has no place in it and is
/// left out.
pub fn write(patterns: &[SearchPattern]) -> String {
    let line = |(id, pattern): (usize, &SearchPattern)| {
        let bytes: String = pattern.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let (nocase, length) = (u8::from(pattern.nocase), pattern.bytes.len());
        format!("{id}\t{nocase}\t{length}\t{bytes}\t{}\n", pattern.value)
    };
    patterns.iter().enumerate().map(line).collect()
}

fn pattern(line: Line<'_>, place: usize) -> Result<SearchPattern, ImportError> {
    let mut words = line.words();
    let mut next =
        |what: &str| words.next().ok_or_else(|| line.error_at_end(format!("{what} is missing"), SHAPE));
    let id = next("the id")?;
    if id.number(u32::MAX.into(), "id")? != place as u64 {
        let what = format!("the id is {} where {place} comes next", id.text);
        return Err(id.error(what, "ids count from 0; a line may be missing or there twice"));
    }
    let nocase = next("nocase")?.number(1, "0 or 1")? == 1;
    let length = next("the length")?;
    let word = next("the string")?;
    let bytes = bytes(word)?;
    if length.number(u32::MAX.into(), "length")? != bytes.len() as u64 {
        let what = format!("the length is {} and the string has {} bytes", length.text, bytes.len());
        return Err(length.error(what, "one of them is wrong; the string may be cut"));
    }
    let value = next("the number")?.number(u32::MAX.into(), "number")? as u32;
    if let Some(word) = words.next() {
        return Err(word.too_many(SHAPE));
    }
    Ok(SearchPattern { nocase, value, ..SearchPattern::anywhere(bytes) })
}

fn bytes(word: Word<'_>) -> Result<Vec<u8>, ImportError> {
    let digits: Option<Vec<u8>> =
        word.text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    match digits.filter(|digits| digits.len().is_multiple_of(2)) {
        Some(digits) => Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()),
        None => {
            Err(word.error(format!("`{}` is not hexadecimal", shown(word.text)), "write two digits a byte"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_exact_place_is_named() {
        for (text, line, column, part) in [
            ("0\t0\t1\t00\t7\n0\t0\t1\t00\t7\n", 2, 1, "where 1 comes next"),
            ("0\t2\t1\t00\t7\n", 1, 3, "no 0 or 1"),
            ("0\t0\t2\t00\t7\n", 1, 5, "has 1 bytes"),
            ("0\t0\t1\t0\t7\n", 1, 7, "not hexadecimal"),
            ("0\t0\t1\tgg\t7\n", 1, 7, "not hexadecimal"),
            ("# c\n0\t0\t1\t00\n", 2, 9, "the number is missing"),
            ("0\t0\t1\t00\t7\t8\n", 1, 12, "too many"),
            ("0\t0\t1\t00\t7", 1, 11, "cut off"),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{error}");
            assert!(error.what.contains(part), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(strings in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..9), any::<bool>(), any::<u32>()), 0..9)) {
            let patterns: Vec<SearchPattern> = strings
                .into_iter()
                .map(|(bytes, nocase, value)| SearchPattern { nocase, value, ..SearchPattern::anywhere(bytes) })
                .collect();
            let text = write(&patterns);
            prop_assert_eq!(read(text.as_bytes()), Ok(patterns));
            for end in 1..text.len() {
                let whole = text.as_bytes()[end - 1] == b'\n';
                prop_assert_eq!(read(&text.as_bytes()[..end]).is_ok(), whole);
            }
        }
    }
}
