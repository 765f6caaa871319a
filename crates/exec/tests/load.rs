//! What `load` refuses, what a listing shows, and ports that do not exist.

mod program;

use exec::{BackendKind, LoadError, load};
use ir::*;
use packet::{Frames, Verdict};
use program::*;

fn to_port(port: u128) -> Program {
    let mut packet = Build::new("packet");
    let port = packet.constant(16, port);
    packet.none(Op::Copy(port));
    packet.end(Terminator::Send(port));
    allowed(program(vec![packet]))
}

fn refused(program: &Program) -> LoadError {
    let native = load(program, BackendKind::Native, 4, 1).err().expect("it is refused");
    let judge = load(program, BackendKind::Interpreter, 4, 1).err().expect("it is refused");
    assert_eq!(native.to_string(), judge.to_string());
    native
}

#[test]
fn a_send_to_a_port_that_does_not_exist_is_a_drop_and_its_copy_is_left_to_the_caller() {
    let mut frames = Frames::new();
    frames.push(&[7; 60], 60, 1);
    for (port, verdict) in [
        (0, Verdict::drop(NO_SUCH_PORT)),
        (1, Verdict::send(1)),
        (4, Verdict::send(4)),
        (5, Verdict::drop(NO_SUCH_PORT)),
    ] {
        let seen = agree(&to_port(port), &frames);
        assert_eq!(seen.verdicts, [verdict]);
        assert_eq!(seen.sent.len(), 1);
    }
}

#[test]
fn what_is_not_well_formed_or_too_large_is_refused_with_its_cause() {
    let mut broken = to_port(1);
    broken.functions[0].blocks[0].terminator = Terminator::Send(Value(99));
    assert!(matches!(refused(&broken), LoadError::Verify(_)));

    let mut wide = to_port(1);
    wide.tables = vec![table(&[128, 128, 128, 128, 1], &[], 4, Eviction::Refuse)];
    assert!(matches!(refused(&wide), LoadError::TooWide { what: "key", words: 9, .. }));

    let mut cells = to_port(1);
    cells.counters = vec![Counter { name: "c".to_string(), size: u32::MAX, indexed: true }];
    let said = refused(&cells).to_string();
    assert!(said.contains("68719476720 bytes") && said.contains("`c`"), "{said}");
}

#[test]
fn a_listing_shows_both_forms_of_every_function() {
    let text = exec::native::listing(&to_port(1)).expect("it compiles");
    assert!(text.starts_with("; packet\nfunction"), "{text}");
    let code = text.split("block0:").nth(2).expect("two forms");
    assert!(code.contains("ret"), "{text}");
}
