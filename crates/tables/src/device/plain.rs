//! Runs kernel text as plain C, for tests: compiled with all checks of the C compiler, with its data from a
//! file and its queries through a pipe.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// What reads the two inputs and asks `answer`, which the caller writes, for all answers.
const FRAME: &str = include_str!("plain.c");

/// A compiled text.
pub(super) struct Program {
    folder: PathBuf,
}

impl Program {
    /// Compiles `texts` with `answer`, the C function
    /// `static void answer(const u32 *image, const u8 *asked, u64 bytes)` that calls `tell(u32)` once an
    /// answer.
    pub(super) fn build(texts: &[&str], answer: &str) -> Program {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("ravelin-device-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let source = [include_str!("plain.h"), &texts.concat(), "\n", FRAME, answer].concat();
        std::fs::write(folder.join("text.c"), source).unwrap();
        let made = Command::new("cc")
            .args(["-std=c99", "-O2", "-Wall", "-Werror", "-Wno-unused-function"])
            .args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-o"])
            .args([folder.join("text"), folder.join("text.c")])
            .output()
            .expect("the tests of device texts need a C compiler called cc");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Program { folder }
    }

    /// The answers over an image to what is asked.
    pub(super) fn run(&self, image: &[u32], asked: &[u8]) -> Vec<u32> {
        let mut input = Vec::with_capacity(image.len() * 4 + asked.len() + 16);
        input.extend((image.len() as u64 * 4).to_le_bytes());
        input.extend(image.iter().flat_map(|word| word.to_le_bytes()));
        input.extend((asked.len() as u64).to_le_bytes());
        input.extend(asked);
        std::fs::write(self.folder.join("input"), input).unwrap();
        let stdin = File::open(self.folder.join("input")).unwrap();
        let ran =
            Command::new(self.folder.join("text")).stdin(stdin).stderr(Stdio::piped()).output().unwrap();
        assert!(ran.status.success(), "{}: {}", ran.status, String::from_utf8_lossy(&ran.stderr));
        super::words(&ran.stdout)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // What stays behind after a failure lies among other temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The bytes of words of 64 bits.
pub(super) fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
