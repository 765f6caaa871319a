//! Programs at the edge of what the verifier admits: native code reads nothing that is not there, and means
//! what the judge means.

mod program;

use ir::*;
use packet::Frames;
use program::*;

/// Packets that begin with these two bytes, and one that is too short for them.
fn beginning(numbers: &[u16]) -> Frames {
    let mut frames = Frames::new();
    for number in numbers {
        let mut bytes = vec![0xff; 61];
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        frames.push(&bytes, 61, 1);
    }
    frames.push(&[1], 1, 2);
    frames
}

/// The first two bytes as a position, 32 bits.
fn position(packet: &mut Build) -> Value {
    let start = packet.constant(32, 0);
    packet.need(start, 2);
    let first = packet.one(Op::Load { base: start, offset: 0, bytes: 2, proven: 2 }, 16);
    packet.one(Op::Resize(first), 32)
}

/// Emits these values, each in a hole of its own, and ends.
fn show(mut packet: Build, values: &[Value]) -> Program {
    let port = packet.constant(16, 1);
    packet.none(Op::Emit { template: 0, values: values.to_vec(), tail: None, limit: None, port });
    packet.end(Terminator::Send(port));
    let widths: Vec<u8> = values.iter().map(|value| packet.function.width(*value)).collect();
    let mut bit = 0;
    let holes = widths.iter().map(|&width| {
        bit += 128;
        Hole { bit: bit - u32::from(width), width }
    });
    let holes: Vec<Hole> = holes.collect();
    let mut program = program(vec![packet]);
    program.templates = vec![Template { bytes: vec![0; widths.len() * 16], holes, sums: Vec::new() }];
    program
}

#[test]
fn a_sum_over_nothing_known_reads_only_what_is_captured() {
    let positions = [0, 1, 59, 60, 61, 62, 100, 0x7fff, 0xffff];
    for bytes in [0, 2, 66] {
        let mut packet = Build::new("packet");
        let first = position(&mut packet);
        let base = if bytes == 0 { first } else { packet.constant(32, 0) };
        let captured = packet.one(Op::Captured, 32);
        if bytes > 0 {
            packet.need(base, bytes);
        }
        let ones = packet.constant(32, u32::MAX.into());
        let sums = [first, captured, ones]
            .map(|more| packet.one(Op::Checksum { base, bytes, more: Some(more) }, 16));
        agree(&allowed(show(packet, &sums)), &beginning(&positions));
    }
    // A base of all ones, as far behind the end as a position can be.
    let mut packet = Build::new("packet");
    let more = position(&mut packet);
    let base = packet.constant(32, u32::MAX.into());
    let sum = packet.one(Op::Checksum { base, bytes: 0, more: Some(more) }, 16);
    agree(&allowed(show(packet, &[sum])), &beginning(&positions));
}

#[test]
fn a_pool_without_a_free_item_gives_zeros_however_wide_an_item_is() {
    for (columns_of, width) in [(8, 128), (8, 65), (8, 64), (1, 128), (3, 32)] {
        let mut packet = Build::new("packet");
        let hint = packet.constant(32, 0);
        let widths: Vec<u8> = [1].into_iter().chain(vec![width; columns_of]).collect();
        // The first takes what there is; the others find nothing, and see nothing of it.
        let taken: Vec<Value> =
            (0..3).flat_map(|_| packet.all(Op::Take { pool: 0, hint }, &widths)).collect();
        let mut program = show(packet, &taken);
        let all = u128::MAX >> (128 - u32::from(width));
        program.pools = vec![Pool {
            name: "items".to_string(),
            columns: columns(&vec![width; columns_of]),
            ranges: vec![(all, all); columns_of],
        }];
        let seen = agree(&allowed(program), &beginning(&[7]));
        let [(_, _, first, ..), ..] = &seen.sent[..] else { panic!("packets are made") };
        let (item, others) = first.split_at((1 + columns_of) * 16);
        assert!(item.iter().any(|byte| *byte != 0) && others.iter().all(|byte| *byte == 0), "{first:02x?}");
    }
}

#[test]
fn lookups_groups_and_defaults_of_the_most_words_give_zeros_where_nothing_is_found() {
    let wide = [128; 4];
    let mut packet = Build::new("packet");
    let widths: Vec<u8> = [1].into_iter().chain(wide).collect();
    let key = packet.constant(128, 9);
    let missed = packet.all(Op::Lookup { table: 0, key: vec![key; 4] }, &widths);
    let hash = packet.constant(32, 3);
    let none = packet.all(Op::Choose { group: 0, index: None, hash }, &widths);
    let ones = packet.constant(128, u128::MAX);
    packet.none(Op::SetDefault { table: 0, value: vec![ones; 4] });
    let given = packet.all(Op::Lookup { table: 0, key: vec![key; 4] }, &widths);
    packet.none(Op::ClearDefault(0));
    let gone = packet.all(Op::Lookup { table: 0, key: vec![key; 4] }, &widths);
    let mut program = show(packet, &[missed, none, given, gone].concat());
    program.tables = vec![table(&wide, &wide, 4, Eviction::Refuse)];
    program.groups = vec![Group {
        name: "paths".to_string(),
        size: 1,
        buckets: 4,
        capacity: 2,
        multicast: false,
        columns: columns(&wide),
        members: Vec::new(),
        file: None,
    }];
    let seen = agree(&allowed(program), &beginning(&[7]));
    let (_, _, made, ..) = &seen.sent[0];
    let column = |at: usize| u128::from_be_bytes(made[at * 16..][..16].try_into().expect("16 bytes"));
    let shown: Vec<u128> = (0..20).map(column).collect();
    assert_eq!(shown[..10], [0; 10]);
    assert_eq!(shown[10..15], [1, u128::MAX, u128::MAX, u128::MAX, u128::MAX]);
    assert_eq!(shown[15..], [0; 5]);
}

#[test]
fn loads_and_stores_of_every_size_end_where_the_packet_ends() {
    // Packets end where their memory ends, so a byte too many is a fault of the program that reads it.
    for bytes in 1..=16_u8 {
        let mut packet = Build::new("packet");
        let length = u32::from(bytes) + 3;
        let start = packet.constant(32, 0);
        packet.need(start, length);
        let load = |packet: &mut Build, base, offset, proven| {
            packet.one(Op::Load { base, offset, bytes, proven }, bytes * 8)
        };
        let (first, last) = (load(&mut packet, start, 0, length), load(&mut packet, start, 3, length));
        let base = packet.one(Op::Captured, 32);
        let size = packet.constant(32, bytes.into());
        let base = packet.one(Op::Binary(BinaryOp::SubSaturate, base, size), 32);
        packet.need(base, bytes.into());
        let end = load(&mut packet, base, 0, bytes.into());
        packet.none(Op::Store { base, offset: 0, bytes, value: first, proven: bytes.into() });
        let program = allowed(show(packet, &[first, last, end]));
        let mut frames = Frames::new();
        for more in 0..4 {
            let frame: Vec<u8> = (0..length as u8 + more).map(|byte| byte.wrapping_mul(37) ^ bytes).collect();
            frames.push(&frame, frame.len() as u32, 1);
        }
        agree(&program, &frames);
    }
}
