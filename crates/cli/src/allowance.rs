//! Limits for files that fill a program's tables: bytes of all files together, and the memory that is left
//! beside a running program.

use crate::memory_limit::{self, Room};
use crate::render::quantity::bytes;
use ports::files::{self, FileReadError};

/// What may still be read to fill a program.
pub(crate) struct Allowance {
    /// How many bytes of files, unpacked.
    left: u64,
    /// Whether the texts are kept, for what is said of their lines.
    pub(crate) keeps_texts: bool,
    /// What memory is left; nothing where it is not bounded, or nothing runs that would end with this
    /// process.
    room: fn() -> Option<Room>,
}

/// What a line takes while its file is read, in bytes: parsed, as an entry, and both in lists that grow.
/// Measured: under 800 for a route in the language's own words.
const LINE_TAKES: u64 = 1024;
/// Bytes of a file that make a line at least: what is not text, and JSON, need not have lines.
const LONGEST_LINE: u64 = 64;

impl Allowance {
    /// For a program that is loaded, whose texts are not needed any more once it is.
    pub(crate) fn to_load() -> Self {
        Allowance { left: files::LARGEST_TOGETHER, keeps_texts: false, room: || None }
    }

    /// For a program that is checked, of whose files lines are shown.
    pub(crate) fn to_check() -> Self {
        Allowance { keeps_texts: true, ..Allowance::to_load() }
    }

    /// For a program that takes the place of one that runs and must not end for want of memory.
    pub(crate) fn to_load_beside() -> Self {
        Allowance { room: memory_limit::room, ..Allowance::to_load() }
    }

    /// Reads a file of at most so many bytes, as far as there is room for it.
    ///
    /// # Errors
    /// It cannot be read, or there is no room; in words.
    pub(crate) fn read(
        &mut self,
        most: u64,
        read: impl FnOnce(u64) -> Result<Vec<u8>, FileReadError>,
    ) -> Result<Vec<u8>, String> {
        let room = (self.room)();
        // A list of bytes that grows takes as much again.
        let memory = room.as_ref().map_or(u64::MAX, |room| room.left / 2);
        let bound = most.min(self.left).min(memory);
        let text = read(bound).map_err(|error| match (error, room) {
            (FileReadError::TooLong(_) | FileReadError::TooLongUnpacked(_), Some(room)) if bound == memory => {
                none_left("more than", memory, &room)
            }
            (FileReadError::TooLong(_) | FileReadError::TooLongUnpacked(_), _) if bound < most => format!(
                "the files of a program have {} bytes together at most, unpacked, and those before it leave {bound}: leave out what is not needed",
                files::LARGEST_TOGETHER
            ),
            (error, _) => error.to_string(),
        })?;
        self.left -= text.len() as u64;
        if let Some(room) = (self.room)() {
            let needed = lines(&text).saturating_mul(LINE_TAKES);
            if needed > room.left {
                return Err(none_left("up to", needed, &room));
            }
        }
        Ok(text)
    }
}

/// How many lines a text has, or would have.
fn lines(text: &[u8]) -> u64 {
    let ends = text.iter().filter(|byte| **byte == b'\n').count() as u64;
    ends.max(text.len() as u64 / LONGEST_LINE)
}

fn none_left(how: &str, needed: u64, room: &Room) -> String {
    format!(
        "while it is read it takes {how} {}, beside the program that runs, and {} leaves {} of {}: raise that, or leave out what is not needed",
        bytes(needed),
        room.file.display(),
        bytes(room.left),
        bytes(room.most)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &[u8]) -> impl FnOnce(u64) -> Result<Vec<u8>, FileReadError> {
        move |most| {
            if text.len() as u64 > most {
                Err(FileReadError::TooLongUnpacked(most))
            } else {
                Ok(text.to_vec())
            }
        }
    }

    #[test]
    fn files_are_bounded_together_and_not_only_one_by_one() {
        let mut allowance = Allowance { left: 100, ..Allowance::to_load() };
        assert_eq!(allowance.read(70, file(&[b' '; 60])).map(|text| text.len()), Ok(60));
        let told = allowance.read(70, file(&[b' '; 60])).expect_err("both have 120");
        assert!(told.contains("those before it leave 40"), "{told}");
        assert_eq!(allowance.read(70, file(&[b' '; 40])).map(|text| text.len()), Ok(40), "to the last byte");
        let told = allowance.read(70, file(&[b' '; 1])).expect_err("a byte too much");
        assert!(told.contains("leave 0"), "{told}");
        let told = Allowance::to_load().read(70, file(&[b' '; 71])).expect_err("too long by itself");
        assert_eq!(told, FileReadError::TooLongUnpacked(70).to_string());
    }

    #[test]
    fn a_file_that_finds_no_memory_beside_what_runs_is_refused_before_it_is_parsed() {
        let room = || Some(Room { file: "/sys/fs/cgroup/memory.max".into(), most: 64 << 10, left: 20 << 10 });
        let mut allowance = Allowance { room, ..Allowance::to_load() };
        assert!(allowance.read(1 << 20, file(&[b'\n'; 20])).is_ok());
        let told = allowance.read(1 << 20, file(&[b'\n'; 21])).expect_err("its lines take more");
        assert!(
            told.contains("takes up to 21") && told.contains("/sys/fs/cgroup/memory.max leaves"),
            "{told}"
        );
        let told = allowance.read(1 << 20, file(&[b'\n'; (10 << 10) + 1])).expect_err("it takes more itself");
        assert!(told.contains("takes more than 10"), "{told}");
        let told = allowance.read(1 << 10, file(&[b'\n'; 2 << 10])).expect_err("there would be room");
        assert_eq!(told, FileReadError::TooLongUnpacked(1 << 10).to_string());
    }
}
