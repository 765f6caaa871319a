//! By which number a program is known, so that whoever has its text can see that it runs.

#[cfg(feature = "observe")]
use ir::Program;
use ring::digest::{SHA256, digest};

/// SHA-256 of the text of a program's IR, with the entries that its tables began with. Programs that mean the
/// same and are written otherwise have the same one if the compiler makes the same IR of them.
#[cfg(feature = "observe")]
pub fn program_hash(program: &Program) -> [u8; 32] {
    text_hash(&ir::print::print(program))
}

/// The same for the text of the IR as it is.
pub fn text_hash(text: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir::print::print;
    use lang::pipeline::{CompileOptions, compile};

    #[test]
    fn is_that_of_the_text_and_of_no_other_program() {
        let of = |text: &str| {
            compile("p.rav", text, &|_| None, &CompileOptions::default()).program.expect("it compiles")
        };
        let flood = of("start stage all() { flood }");
        assert_eq!(program_hash(&flood).as_slice(), digest(&SHA256, print(&flood).as_bytes()).as_ref());
        let read = ir::read::read(&print(&flood).replace("\nmanifest", "\n\n # a remark\nmanifest"));
        assert_eq!(program_hash(&read.expect("blanks mean nothing")), program_hash(&flood));
        assert_ne!(program_hash(&of("start stage all() { send 1 }")), program_hash(&flood));
    }
}
