//! The program that runs before the first one is there.

use exec::{BackendKind, Outputs, load};
use ir::{print::print, read::read};
use lang::pipeline::{CompileOptions, compile};
use packet::{Batch, VerdictKind};

const TEXT: &str =
    "reason no_policy_yet \"no policy is there yet\"\nstart stage all() { drop no_policy_yet }";

#[test]
fn is_a_whole_program_of_the_language() {
    let written = read(ravelin_core::boot::TEXT).expect("it can be read");
    assert_eq!(written, ravelin_core::boot::program());
    let compiled = compile("boot.rav", TEXT, &|_| None, &CompileOptions::default());
    let meant = compiled.program.expect("it compiles");
    let named = |program: &ir::Program| -> Vec<(String, String)> {
        program.reasons.iter().map(|reason| (reason.name.clone(), reason.help.clone())).collect()
    };
    assert_eq!(named(&written), named(&meant));
    assert_eq!(read(&print(&written)).as_ref(), Ok(&written));
}

#[test]
fn drops_whatever_comes() {
    let program = ravelin_core::boot::program();
    let mut backend = load(&program, BackendKind::Bytecode, 3, 7).expect("the verifier takes it");
    let (mut batch, mut outputs) = (Box::new(Batch::new()), Outputs::default());
    let mut memory = vec![0; 4096];
    for (port, length) in [(1, 0), (2, 60), (3, 1500)] {
        batch.push(64, length, length, port, 1_000);
    }
    backend.run(&mut memory, &mut batch, &mut outputs);
    for verdict in &batch.verdict[..batch.len] {
        let reason = &program.reasons[usize::from(verdict.argument())].name;
        assert_eq!((verdict.kind(), reason.as_str()), (VerdictKind::Drop, "no_policy_yet"));
    }
}
