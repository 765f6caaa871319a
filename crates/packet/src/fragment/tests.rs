//! Tests of fragmentation: pieces put together again by a second path, header by header, are the packet.

use super::*;
use rand_distr::Distribution;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng;

fn packet(before: usize, options: &[u8], data: usize, flags: u16) -> Vec<u8> {
    let header = 20 + options.len();
    let mut bytes = vec![0xee; before];
    bytes.extend([0x40 | (header / 4) as u8, 7]);
    bytes.extend(((header + data) as u16).to_be_bytes());
    bytes.extend([0xab, 0xcd]);
    bytes.extend(flags.to_be_bytes());
    bytes.extend([9, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(options);
    set_checksum(&mut bytes[before..]);
    bytes.extend((0..data).map(|index| (index * 7 + index / 256) as u8));
    bytes
}

fn set_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let check = !sum(header);
    header[10..12].copy_from_slice(&check.to_be_bytes());
}

/// Puts pieces together: the data by offset, and whether the last said that more follows.
fn together(pieces: &[Vec<u8>], before: usize) -> (Vec<u8>, bool) {
    let mut data: Vec<u8> = Vec::new();
    let mut more = false;
    for piece in pieces {
        let ip = &piece[before..];
        let header = usize::from(ip[0] & 15) * 4;
        assert_eq!(usize::from(word(ip, 2)), ip.len(), "the total length is that of the piece");
        assert_eq!(sum(&ip[..header]), 0xffff, "the header's checksum is right");
        assert_eq!((word(ip, 4), ip[8], ip[9]), (0xabcd, 9, 17));
        let at = usize::from(word(ip, 6) & OFFSET) * 8;
        assert_eq!(at, data.len(), "pieces come in order, without gaps");
        data.extend(&ip[header..]);
        more = word(ip, 6) & MORE != 0;
        assert!(
            more || std::ptr::eq(piece, &pieces[pieces.len() - 1]),
            "all but the last say that more follows"
        );
    }
    (data, more)
}

fn cut(bytes: &[u8], at: usize, mtu: u32) -> Vec<Vec<u8>> {
    let fragmenting = Fragmenting { at: at as u32, mtu };
    let Some(pieces) = Pieces::of(bytes, bytes.len() as u32, fragmenting) else { return Vec::new() };
    let mut wire = 0;
    let all = (0..pieces.count()).map(|index| {
        let mut piece = Vec::new();
        let length = pieces.write(bytes, index, &mut piece);
        assert_eq!(length as usize, piece.len());
        assert!(piece.len() - at <= mtu as usize, "no piece is longer than the MTU");
        wire += u64::from(length);
        piece
    });
    let all: Vec<Vec<u8>> = all.collect();
    assert_eq!(pieces.wire(), wire);
    all
}

#[test]
fn pieces_are_the_packet() {
    let mut random = Pcg64::seed_from_u64(7);
    let mut below = |end: usize| rand_distr::Uniform::new(0, end).expect("not empty").sample(&mut random);
    let mut cut_up = 0;
    for _ in 0..5_000 {
        let before = below(40);
        let options = vec![1; below(11) * 4];
        let data = below(3_000);
        let mtu = (68 + below(1_500)) as u32;
        let more = if below(3) == 0 { MORE } else { 0 };
        let whole = packet(before, &options, data, more);
        let pieces = cut(&whole, before, mtu);
        let header = 20 + options.len();
        assert_eq!(pieces.is_empty(), header + data <= mtu as usize);
        if pieces.is_empty() {
            continue;
        }
        cut_up += 1;
        let (found, last_says_more) = together(&pieces, before);
        assert_eq!(found, whole[before + header..]);
        assert_eq!(last_says_more, more != 0, "a fragment that is cut again stays in the middle");
        assert!(pieces.iter().all(|piece| piece[..before] == whole[..before]));
    }
    assert!(cut_up > 1_000);
}

#[test]
fn the_first_piece_has_all_options_and_the_others_those_to_be_copied() {
    // Record route (7, not copied), loose source route (131, copied), no operation, router alert (148,
    // copied), end.
    let options = [7, 3, 4, 131, 7, 4, 1, 2, 3, 4, 1, 148, 4, 0, 0, 0];
    let pieces = cut(&packet(14, &options, 100, 0), 14, 68);
    assert_eq!(pieces[0][14 + 20..14 + 36], options);
    for piece in &pieces[1..] {
        assert_eq!(piece[14] & 15, 8);
        assert_eq!(piece[14 + 20..14 + 32], [131, 7, 4, 1, 2, 3, 4, 148, 4, 0, 0, 0]);
    }
    let broken = cut(&packet(0, &[148, 4, 0, 0, 131, 99, 0, 0], 100, 0), 0, 68);
    assert_eq!(broken[1][20..24], [148, 4, 0, 0], "an option that does not fit ends the list");
}

#[test]
fn offsets_count_from_the_fragment_that_is_cut() {
    let pieces = cut(&packet(0, &[], 200, MORE | 100), 0, 68);
    let offsets: Vec<u16> = pieces.iter().map(|piece| word(piece, 6)).collect();
    assert_eq!(offsets, [100, 106, 112, 118, 124].map(|offset| MORE | offset));
    assert!(cut(&packet(0, &[], 200, 8_180), 0, 68).is_empty(), "no offset would hold the last piece");
}

#[test]
fn a_wrong_checksum_is_wrong_in_every_piece_by_as_much() {
    for bit in 0..160 {
        let mut damaged = packet(0, &[], 100, 0);
        damaged[bit / 8] ^= 1 << (bit % 8);
        let header = |ip: &[u8]| sum(&ip[..usize::from(ip[0] & 15) * 4]);
        let found = header(&damaged);
        let pieces = cut(&damaged, 0, 68);
        // The version, the header's length and a shorter total length leave nothing that could be cut.
        assert!(pieces.len() >= 2 || bit < 8 || (16..32).contains(&bit), "bit {bit}");
        for piece in pieces {
            assert_eq!(header(&piece), found, "bit {bit}");
        }
    }
}

#[test]
fn padding_goes_with_no_piece_and_a_false_length_is_not_believed() {
    let mut padded = packet(14, &[], 80, 0);
    padded.extend([0x77; 30]);
    let pieces = cut(&padded, 14, 68);
    assert_eq!(together(&pieces, 14).0, packet(14, &[], 80, 0)[34..]);
    let mut long = packet(14, &[], 80, 0);
    long[16..18].copy_from_slice(&60_000_u16.to_be_bytes());
    set_checksum(&mut long[14..34]);
    assert_eq!(together(&cut(&long, 14, 68), 14).0.len(), 80);
}

#[test]
fn of_what_was_not_captured_only_lengths_are_known() {
    let whole = packet(14, &[], 200, 0);
    let seen = &whole[..14 + 20 + 60];
    let pieces =
        Pieces::of(seen, whole.len() as u32, Fragmenting { at: 14, mtu: 68 }).expect("it is too long");
    let mut piece = Vec::new();
    let lengths: Vec<(u32, usize)> =
        (0..pieces.count()).map(|index| (pieces.write(seen, index, &mut piece), piece.len())).collect();
    assert_eq!(lengths, [(82, 82), (82, 46), (82, 34), (82, 34), (42, 34)]);
}

#[test]
fn what_is_no_header_is_left_alone() {
    let whole = packet(14, &[1; 8], 200, 0);
    let of = |bytes: &[u8], at| Pieces::of(bytes, 300, Fragmenting { at, mtu: 68 });
    assert!(of(&whole, 14).is_some());
    assert!(of(&whole[..14 + 27], 14).is_none(), "a header that was not captured whole cannot be repeated");
    assert!(of(&whole, 13).is_none());
    assert!(of(&whole, 900).is_none());
    assert!(of(&[0x44; 100], 0).is_none(), "a header of 16 bytes");
}
