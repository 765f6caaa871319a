//! The scanners against the judge, and images against damage.

use super::*;
use proptest::prelude::*;

fn all(each: impl Fn(&mut Vec<PatternMatch>)) -> Vec<PatternMatch> {
    let mut found = Vec::new();
    each(&mut found);
    found
}

/// Every answer of every scanner, against the model's.
fn judge(patterns: &[SearchPattern], haystack: &[u8]) {
    let model = PatternsModel::build(patterns).unwrap();
    let scanner = Scanner::build(patterns).unwrap();
    let bloom = BloomScanner::build(patterns).unwrap();
    let expected = all(|found| model.each(haystack, &mut |one| found.push(one)));
    let set = {
        let mut set = vec![];
        model.set(haystack, &mut set);
        set
    };
    let image = PatternsImage::open(scanner.image()).unwrap();
    let [two, four] = [2, 4].map(|groups| Scanner::build_in_groups(patterns, LIMIT, |_| groups).unwrap());
    for image in image.forms().chain(two.open().forms()).chain(four.open().forms()) {
        let name = (image.counts.long_groups, image.sieve);
        assert_eq!(all(|found| image.each(haystack, &mut |one| found.push(one))), expected, "{name:?}");
        assert_eq!(image.first(haystack), expected.first().copied(), "{name:?}");
        assert_eq!(image.count(haystack), expected.len() as u64, "{name:?}");
        let mut found = vec![7, 7];
        image.set(haystack, &mut found);
        assert_eq!((&found[..2], &found[2..]), (&[7, 7][..], &set[..]), "{name:?}");
    }
    for scanner in [&scanner, &two, &four] {
        assert_eq!(all(|found| scanner.each(haystack, &mut |one| found.push(one))), expected);
        assert_eq!(scanner.first(haystack), expected.first().copied());
    }
    assert_eq!(all(|found| bloom.each(haystack, &mut |one| found.push(one))), expected);
    assert_eq!(bloom.first(haystack), expected.first().copied());
    assert_eq!(bloom.count(haystack), expected.len() as u64);
    let mut found = vec![];
    bloom.set(haystack, &mut found);
    assert_eq!(found, set);
}

fn pattern(alphabet: &'static [u8], longest: usize) -> impl Strategy<Value = SearchPattern> {
    let bytes = prop::collection::vec(prop::sample::select(alphabet), 1..=longest);
    let place = prop_oneof![6 => Just((0, None)), 1 => (0u32..90, Just(None)), 2 => (0u32..90, (0u32..90).prop_map(Some))];
    (bytes, any::<bool>(), place, any::<u32>()).prop_map(|(bytes, nocase, (offset, depth), value)| {
        SearchPattern { bytes, nocase, offset, depth, value }
    })
}

fn case(alphabet: &'static [u8]) -> impl Strategy<Value = (Vec<SearchPattern>, Vec<u8>)> {
    let haystack = prop::collection::vec(prop::sample::select(alphabet), 0..400);
    (prop::collection::vec(pattern(alphabet, 12), 0..40), haystack)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn one_letter((patterns, haystack) in case(b"a")) { judge(&patterns, &haystack) }

    #[test]
    fn one_letter_in_two_cases((patterns, haystack) in case(b"aA")) { judge(&patterns, &haystack) }

    #[test]
    fn zeros_and_ones((patterns, haystack) in case(b"\x00\x01")) { judge(&patterns, &haystack) }

    #[test]
    fn four_letters((patterns, haystack) in case(b"abAB")) { judge(&patterns, &haystack) }

    #[test]
    fn what_falls_together_by_bit_5((patterns, haystack) in case(b"\x00 @`[{zZ\xc0\xe0")) { judge(&patterns, &haystack) }

    /// Tables of which blocks without the first two bytes of a window are passed over, and runs of which some
    /// are searched for.
    #[test]
    fn long_ones_in_runs((mut patterns, mut haystack) in case(b"abc\x00"), at in any::<prop::sample::Index>(), many in 0usize..200) {
        patterns.retain(|pattern| pattern.bytes.len() >= 4);
        patterns.truncate(6);
        let at = at.index(haystack.len() + 1);
        let byte = haystack.get(at).copied().unwrap_or(b'.');
        haystack.splice(at..at, std::iter::repeat_n(byte, many));
        haystack.extend(vec![b'.'; many]);
        judge(&patterns, &haystack);
        haystack.reverse();
        judge(&patterns, &haystack);
    }

    #[test]
    fn planted(patterns in prop::collection::vec(pattern(b"ab\x00 C", 70), 1..60), plants in
        prop::collection::vec((any::<prop::sample::Index>(), 0usize..80), 0..30)) {
        let mut haystack = Vec::new();
        for (which, gap) in plants {
            haystack.extend(std::iter::repeat_n(b'b', gap));
            haystack.extend(&patterns[which.index(patterns.len())].bytes);
        }
        judge(&patterns, &haystack);
    }
}

#[test]
fn occurrences_lie_across_segments() {
    let patterns: Vec<SearchPattern> = ["needle", "e", "le", "NEEDLE in", "\0\0\0\0", "\0\0\0\0\0\0", "\0\0"]
        .map(SearchPattern::anywhere)
        .to_vec();
    for shift in 0..12 {
        let mut haystack = vec![b'.'; sift::SEGMENT - shift];
        haystack.extend(b"needle in\0\0\0\0\0\0\0\0\0\0\0\0needle");
        haystack.extend(vec![0; sift::SEGMENT + 3]);
        haystack.extend(b"needl");
        judge(&patterns, &haystack);
    }
}

#[test]
fn a_string_longer_than_a_segment_is_found() {
    let long: Vec<u8> = (0..3 * sift::SEGMENT as u32).map(|at| ((at * at) >> 3) as u8 | 1).collect();
    let mut haystack = b"head".to_vec();
    haystack.extend(&long);
    haystack.extend(b"tail");
    judge(
        &[SearchPattern::anywhere(long), SearchPattern::anywhere("tail"), SearchPattern::anywhere("head")],
        &haystack,
    );
}

#[test]
fn nothing_to_find_and_nowhere_to_look() {
    judge(&[], b"some bytes");
    judge(&[], b"");
    judge(&[SearchPattern::anywhere("x")], b"");
    judge(&[SearchPattern::anywhere("xyzzy")], b"xyz");
}

#[test]
fn a_pattern_of_no_bytes_is_refused() {
    let patterns = [SearchPattern::anywhere("a"), SearchPattern::anywhere("")];
    assert_eq!(Scanner::build(&patterns).unwrap_err(), PatternsBuildError::Empty { pattern: 1 });
    assert_eq!(PatternsModel::build(&patterns).unwrap_err(), PatternsBuildError::Empty { pattern: 1 });
    assert_eq!(BloomScanner::build(&patterns).unwrap_err(), PatternsBuildError::Empty { pattern: 1 });
}

#[test]
fn an_image_above_the_limit_is_refused_with_its_size() {
    let patterns = [SearchPattern::anywhere("abcdef")];
    let bytes = Scanner::build(&patterns).unwrap().image().len() as u64;
    assert!(Scanner::build_within(&patterns, bytes).is_ok());
    let refused = Scanner::build_within(&patterns, bytes - 1).unwrap_err();
    assert_eq!(refused, PatternsBuildError::TooLarge { bytes, limit: bytes - 1 });
}

#[test]
fn a_search_may_search_within_itself() {
    let scanner =
        Scanner::build(&[SearchPattern::anywhere("ab"), SearchPattern::anywhere("\0\0\0\0")]).unwrap();
    let mut ends = Vec::new();
    scanner.each(b"ab..ab\0\0\0\0\0", &mut |outer| {
        let inner = scanner.count(b"abab");
        ends.push((outer.end, inner));
    });
    assert_eq!(ends, [(2, 2), (6, 2), (10, 2), (11, 2)]);
}

#[test]
fn values_are_carried() {
    let patterns = [
        SearchPattern { value: 77, ..SearchPattern::anywhere("ab") },
        SearchPattern { value: 5, ..SearchPattern::anywhere("AB") },
    ];
    let scanner = Scanner::build(&patterns).unwrap();
    assert_eq!([0, 1, 2].map(|pattern| scanner.value(pattern)), [Some(77), Some(5), None]);
    assert_eq!((scanner.len(), scanner.is_empty()), (2, false));
}

#[test]
fn damaged_images_are_refused_or_search_without_a_panic() {
    let patterns: Vec<SearchPattern> =
        ["GET /", "a", "bc", "xyz", "\0\0\0\0\0", "a much longer pattern than eight bytes"]
            .map(SearchPattern::anywhere)
            .to_vec();
    let image = Scanner::build(&patterns).unwrap().image().to_vec();
    let haystack = b"GET / abc xyz \0\0\0\0\0\0\0 a much longer pattern than eight bytes";
    for length in [0, 63, 64, image.len() - 1] {
        assert!(PatternsImage::open(&image[..length]).is_err(), "{length} bytes");
    }
    let mut refused = 0;
    for at in 0..image.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut damaged = image.clone();
            damaged[at] = value;
            match PatternsImage::open(&damaged) {
                Ok(opened) => {
                    for form in opened.forms() {
                        let mut ends = 0;
                        form.each(haystack, &mut |found| ends = ends.max(found.end));
                        assert!(ends as usize <= haystack.len(), "byte {at} is {value}");
                    }
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 100, "{refused}");
}
