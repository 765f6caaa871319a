//! Limits of connections by source (`std.limits`): a place is given back however its entry ends, on every
//! back end of the host.

use engine::PacketBench;
use exec::BackendKind;
use ir::{Match, Program};
use lang::pipeline::{CompileOptions, compile};
use packet::VerdictKind;
use suite::corpus::{root, settings};

/// As many places as the program allows a source.
const MOST: u16 = 2;
/// As few places for all sources as can be.
const CAPACITY: u16 = 64;

/// A segment of TCP from a host to one server.
fn segment(host: u16, port: u16) -> Vec<u8> {
    let [high, low] = host.to_be_bytes();
    let mut frame = Vec::new();
    let packet =
        etherparse::PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, high, low], [192, 0, 2, 1], 64);
    packet.tcp(port, 80, 1, 5_000).write(&mut frame, &[]).expect("a segment can be written");
    frame
}

struct World<'a> {
    program: &'a Program,
    bench: PacketBench<'a>,
}

impl World<'_> {
    /// Whether a segment of a host's connection finds a place.
    fn passes(&mut self, host: u16, port: u16) -> bool {
        let outcome = self.bench.packet(1, &segment(host, port), 1_000_000_000);
        outcome.verdict.expect("a packet has a verdict").kind() == VerdictKind::Send
    }

    fn table(&self, name: &str) -> u32 {
        self.program.tables.iter().position(|table| table.name == name).expect("it has the table") as u32
    }
}

fn on_each_back_end(case: impl Fn(&mut World)) {
    let path = root().join("suite/good/limits.rav");
    let text = std::fs::read_to_string(&path).expect("it can be read");
    let settings = settings(&[("MOST_SOURCE_PLACES", "64")]);
    let options = CompileOptions { settings, ..CompileOptions::default() };
    let program = compile("limits.rav", &text, &|_| None, &options).program.expect("it compiles");
    for back_end in BackendKind::ALL {
        let bench = PacketBench::new(&program, back_end, 2, 0).expect("it loads");
        case(&mut World { program: &program, bench });
    }
}

/// A source that has all its places, and is refused one more.
fn at_its_limit(world: &mut World) {
    assert!((0..MOST).all(|port| world.passes(1, port)));
    assert!(!world.passes(1, MOST), "the source is at its limit");
}

#[test]
fn a_place_that_is_evicted_is_free() {
    on_each_back_end(|world| {
        at_its_limit(world);
        assert!((2..2 + CAPACITY).all(|host| world.passes(host, 0)), "other sources are not at theirs");
        assert!(world.passes(1, MOST), "its places were those used longest ago");
        assert_eq!(world.bench.backend().entries_held(world.table("source_places")), CAPACITY.into());
    });
}

#[test]
fn a_connection_keeps_its_place_where_only_the_way_to_it_was_evicted() {
    on_each_back_end(|world| {
        at_its_limit(world);
        // Who is refused looks at the places of the source, which makes them the ones used last.
        assert!((2..2 + CAPACITY).all(|host| world.passes(host, 0) && !world.passes(1, MOST)));
        assert!((0..MOST).all(|port| world.passes(1, port)), "each has its own");
        assert!(!world.passes(1, MOST), "none has two");
    });
}

#[test]
fn a_place_that_is_removed_from_outside_is_free_and_its_connection_asks_anew() {
    on_each_back_end(|world| {
        at_its_limit(world);
        let (places, source) = (world.table("source_places"), 0xffff_0a00_0001);
        let first = [Match::Exact(source), Match::Exact(0)];
        assert!(world.bench.processor_mut().remove(places, &first, 0), "the first place is held");
        assert!(world.passes(1, MOST), "it is free");
        assert!(!world.passes(1, 0), "whose it was has none");
        assert!(world.passes(1, 1), "the other connection kept its own");
    });
}
