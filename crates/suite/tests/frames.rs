//! What the IR says of a function's stack, beside what the code generator lays out: over every program and
//! good case, and over random programs.

use exec::native::frames;
use ir::limits::LARGEST_FRAME;
use ir::{Program, frame};
use lang::pipeline::Decode;
use suite::agree::compile_as;
use suite::corpus::{compile_file, files, root};
use suite::program_generator::generate;

/// The estimate of a program's functions, and what they are laid out to need: bytes of the largest of each.
fn both(program: &Program) -> (u64, u64) {
    let estimate = program.functions.iter().map(|function| frame::frame(function).bytes).max().unwrap_or(0);
    let laid_out = frames(program).expect("it is compiled").into_iter().map(|(_, bytes)| bytes).max();
    (estimate, u64::from(laid_out.unwrap_or(0)))
}

#[test]
fn what_is_laid_out_is_no_more_than_the_estimate() {
    let mut seen = Vec::new();
    for folder in ["programs", "suite/good"] {
        for path in files(&root().join(folder), "rav").expect("the folder is there") {
            let program = compile_file(&path, Decode::Full).expect("it can be read").program;
            seen.push((path.display().to_string(), both(&program.expect("it compiles"))));
        }
    }
    for seed in 0..40 {
        let program = compile_as(&generate(seed).text, Decode::Full).program;
        seen.extend(program.map(|program| (format!("seed {seed}"), both(&program))));
    }
    assert!(seen.len() > 60, "only {} programs", seen.len());
    let beyond: Vec<_> = seen.iter().filter(|(_, (estimate, laid_out))| laid_out > estimate).collect();
    assert!(beyond.is_empty(), "{beyond:?}");
    let largest = seen.iter().map(|(_, (_, laid_out))| *laid_out).max().unwrap_or(0);
    assert!(
        largest * 4 < u64::from(LARGEST_FRAME),
        "{largest} bytes: what people write comes near the limit"
    );
    let worst = seen.iter().max_by_key(|(_, (estimate, laid_out))| laid_out * 1000 / estimate);
    println!("largest {largest}; nearest to its estimate: {worst:?}");
}
