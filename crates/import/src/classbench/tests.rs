//! Filters and headers are kept whole, or refused by line and column.

use super::*;
use proptest::prelude::*;
use tables::rules::RuleField;

const FILTER: &str = "@10.0.0.0/8\t192.0.2.1/32\t0 : 65535\t53 : 60\t0x11/0xFF\t0x0200/0x1200\t\n";

#[test]
fn a_filter_has_five_columns_and_flags_if_wanted() {
    let rules = read(FILTER.as_bytes(), &ClassBenchOptions::default()).unwrap();
    let fields = vec![
        RuleField::Prefix { value: 0x0a00_0000, length: 8 },
        RuleField::Exact(0xc000_0201),
        RuleField::Any,
        RuleField::Range { low: 53, high: 60 },
        RuleField::Exact(17),
    ];
    assert_eq!(rules.rules[0].rule.fields, fields);
    assert_eq!(rules.widths(), [32, 32, 16, 16, 8]);
    let with_flags = read(FILTER.as_bytes(), &ClassBenchOptions { flags: true }).unwrap();
    assert_eq!(with_flags.rules[0].rule.fields[5], RuleField::Ternary { value: 0x200, mask: 0x1200 });
    assert_eq!((rules.rules[0].line, &*rules.rules[0].text), (1, FILTER.trim()));
}

#[test]
fn the_exact_place_is_named() {
    for (from, to, column, part) in [
        ("@10", "10", 1, "does not start with `@`"),
        ("10.0.0.0/8", "10.0.0.0/33", 2, "has no length"),
        ("10.0.0.0/8", "10.0.0.1/8", 2, "behind its length"),
        ("192.0.2.1/32", "::1/128", 13, "IPv4"),
        ("65535", "65536", 30, "no port"),
        ("53 : 60", "53 ; 60", 39, "is not `:`"),
        ("53 : 60", "61 : 60", 36, "is empty"),
        ("0x11/0xFF", "0x11", 44, "has no `/`"),
        ("0x11/0xFF", "0x11/0x0F", 44, "outside of its mask"),
        ("0x1200\t", "0x1200\t7", 68, "too many"),
    ] {
        let text = format!("{FILTER}{}", FILTER.replace(from, to));
        let error = read(text.as_bytes(), &ClassBenchOptions::default()).unwrap_err();
        assert_eq!((error.line, error.column), (2, column), "{error}");
        assert!(error.what.contains(part), "{error}");
    }
}

#[test]
fn headers_are_numbers_or_dotted() {
    let headers = read_trace(b"# src dst\n10.0.0.1 192.0.2.1 1 2 6 7 -1\n1 2 3 4 5\n").unwrap();
    assert_eq!(headers[0], ClassBenchHeader { key: [0x0a00_0001, 0xc000_0201, 1, 2, 6], last: Some(-1) });
    assert_eq!(headers[1], ClassBenchHeader { key: [1, 2, 3, 4, 5], last: None });
    for (text, column) in [("1 2 3 4\n", 8), ("1 2 3 65536 5\n", 7), ("1 2 3 4 5 x\n", 11), ("1 2 3 4 5", 10)]
    {
        let error = read_trace(text.as_bytes()).unwrap_err();
        assert_eq!((error.line, error.column), (1, column), "{error}");
    }
}

fn filters() -> impl Strategy<Value = String> {
    let address = || (any::<u32>(), 0u8..=32);
    let ports = || (any::<u16>(), any::<u16>());
    let filter = (address(), address(), ports(), ports(), any::<u8>(), any::<bool>(), any::<(u16, u16)>());
    let line = |((src, src_len), (dst, dst_len), sport, dport, proto, any_proto, (flags, mask))| {
        let prefix = |bits: u32, length| {
            address::print_prefix(AddressFamily::V4, u128::from(bits) & !host_mask(32, length), length)
        };
        let range = |(one, other): (u16, u16)| format!("{} : {}", one.min(other), one.max(other));
        let proto: String = if any_proto { "0x00/0x00".to_owned() } else { format!("0x{proto:02X}/0xFF") };
        let (src, dst) = (prefix(src, src_len), prefix(dst, dst_len));
        let flags = flags & mask;
        format!("@{src}\t{dst}\t{}\t{}\t{proto}\t0x{flags:04X}/0x{mask:04X}\t\n", range(sport), range(dport))
    };
    prop::collection::vec(filter.prop_map(line), 1..12).prop_map(|lines| lines.concat())
}

proptest! {
    #[test]
    fn what_is_written_is_read(text in filters()) {
        let rules = read(text.as_bytes(), &ClassBenchOptions { flags: true }).unwrap();
        prop_assert_eq!(write(&rules).unwrap(), text);
    }

    #[test]
    fn a_cut_is_seen_unless_it_is_between_lines(text in filters()) {
        for end in 1..text.len() {
            let whole = text.as_bytes()[end - 1] == b'\n';
            match read(&text.as_bytes()[..end], &ClassBenchOptions::default()) {
                Ok(_) => prop_assert!(whole),
                Err(error) => prop_assert!(!whole && error.line as usize == text[..end].lines().count()),
            }
        }
    }

    #[test]
    fn broken_lines_are_an_answer(lines in prop::collection::vec("[0-9x@./: \t#A-F-]{0,40}", 0..4)) {
        let text = lines.join("\n") + "\n";
        let _ = read(text.as_bytes(), &ClassBenchOptions::default());
        let _ = read_trace(text.as_bytes());
    }
}
