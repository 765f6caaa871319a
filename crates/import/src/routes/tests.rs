//! Routes are kept whole, or refused by line and column.

use super::*;
use proptest::prelude::*;

fn refused(text: &str) -> (u32, u32, String) {
    let error = read(text.as_bytes()).expect_err(text);
    (error.line, error.column, error.what)
}

#[test]
fn routes_keep_their_order_lines_and_next_hops() {
    let routes = read(
        b"# table\n10.0.0.0/8 192.0.2.1 64500\n\n 0.0.0.0/0\t192.0.2.2 # default\r\n10.1.0.0/16 192.0.2.1\n",
    );
    let routes = routes.unwrap();
    let prefix = |bits, length| Prefix { bits, length };
    assert_eq!(routes.family, AddressFamily::V4);
    assert_eq!(
        routes.entries,
        [(prefix(0x0a00_0000, 8), 0), (prefix(0, 0), 1), (prefix(0x0a01_0000, 16), 0)]
    );
    assert_eq!(routes.lines, [2, 4, 5]);
    assert_eq!(routes.next_hops, ["192.0.2.1", "192.0.2.2"]);
    let numbered = read(b"10.0.0.0/8 7\n11.0.0.0/8 0x10\n").unwrap();
    assert_eq!(numbered.next_hops, ["7", "0x10"]);
}

#[test]
fn the_exact_place_is_named() {
    for (text, line, column, part) in [
        ("10.0.0.0/8 192.0.2.1\n10.0.0.0/33 192.0.2.1\n", 2, 1, "length"),
        ("10.0.0.0/8\n", 1, 11, "next hop is missing"),
        ("10.0.0.0/8  drop\n", 1, 13, "`drop` is neither an address nor a number"),
        ("10.0.0.0/8 -1\n", 1, 12, "`-1` is neither"),
        ("10.0.0.0/8 18446744073709551616\n", 1, 12, "neither"),
        ("10.0.0.0/8 # 192.0.2.1\n", 1, 12, "next hop is missing"),
        ("10.0.0.1/8 192.0.2.1\n", 1, 1, "behind its length"),
        ("10.0.0.0/8 192.0.2.1\n\n::/0 fd00::1\n", 3, 1, "IPv6"),
        ("10.0.0.0/8 192.0.2.1\n11.0.0.0/8 192.0.2.", 2, 20, "no end"),
        ("\u{e9} 192.0.2.1\n", 1, 1, "no prefix"),
        ("11.0.0.0/8 192.0.2.1\n10.0.0.0/8 192.0.2.1\n11.0.0.0/8 192.0.2.1\n", 3, 1, "on line 1 already"),
        (
            "11.0.0.0/8 192.0.2.1\n11.0.0.0/8 192.0.2.2\n",
            2,
            1,
            "11.0.0.0/8 goes to 192.0.2.2 here and to 192.0.2.1 on line 1",
        ),
    ] {
        let (found_line, found_column, what) = refused(text);
        assert_eq!((found_line, found_column), (line, column), "{text:?}: {what}");
        assert!(what.contains(part), "{text:?}: {what}");
    }
}

fn tables() -> impl Strategy<Value = ImportedRoutes> {
    let entry = (any::<u128>(), 0u8..=128, 0u8..5);
    (any::<bool>(), prop::collection::btree_map(any::<u16>(), entry, 0..10)).prop_map(|(four, entries)| {
        let (family, width) = if four { (AddressFamily::V4, 32) } else { (AddressFamily::V6, 128) };
        let mut text = String::new();
        let mut seen = std::collections::BTreeSet::new();
        for (bits, length, hop) in entries.into_values() {
            let length = length.min(width);
            let bits = bits & address::host_mask(width, 0) & !address::host_mask(width, length);
            if seen.insert((bits, length)) {
                let prefix = address::print_prefix(family, bits, length);
                text += &format!("{prefix} {}\n", address::print(family, u128::from(hop)));
            }
        }
        read(text.as_bytes()).expect("these are routes")
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(routes in tables()) {
        prop_assert_eq!(read(write(&routes).as_bytes()), Ok(routes));
    }

    #[test]
    fn a_cut_is_seen_unless_it_is_between_lines(routes in tables()) {
        let text = write(&routes);
        for end in 0..text.len() {
            let whole = end == 0 || text.as_bytes()[end - 1] == b'\n';
            match read(&text.as_bytes()[..end]) {
                Ok(_) => prop_assert!(whole, "cut at {end}"),
                Err(error) => {
                    prop_assert!(!whole);
                    prop_assert_eq!(error.line as usize, text[..end].lines().count());
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_an_answer(bytes: Vec<u8>) {
        let _ = read(&bytes).map_err(|error| assert!(error.line > 0 && error.column > 0));
    }

    #[test]
    fn broken_lines_are_an_answer(lines in prop::collection::vec("[0-9a-f:./ #aw\t]{0,24}", 0..6)) {
        let text = lines.join("\n");
        let _ = read(text.as_bytes()).map_err(|error| {
            let line = text.lines().nth(error.line as usize - 1).expect("the line is there");
            assert!(error.column as usize <= line.len() + 1);
        });
    }
}
