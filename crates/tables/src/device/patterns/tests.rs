//! Tests both searches against the host's scanner.

use super::super::plain::Program;
use super::super::{NONE, automaton, bloom, patterns};
use crate::generate::Random;
use crate::patterns::{PatternsBuildError, Scanner, SearchPattern};

/// Each text is searched where no byte lies before or behind it.
const ANSWER: &str = "
static void answer(const u32 *image, const u8 *asked, u64 bytes)
{
    for (u64 at = 0; at < bytes;) {
        u32 length = asked[at] | asked[at + 1] << 8;
        u8 *text = malloc(length ? length : 1);
        u64 set[2] = {0, 0};
        for (u32 byte = 0; byte < length; byte++) text[byte] = asked[at + 2 + byte];
        if (image[0] == 0x42505652) {
            tell(patterns_first_bloom(image, text, length));
            tell(patterns_all_bloom(image, text, length));
            patterns_set_bloom(image, text, length, set);
        } else {
            tell(patterns_first(image, text, length));
            tell(patterns_all(image, text, length));
            patterns_set(image, text, length, set);
        }
        for (u32 half = 0; half < 4; half++) tell((u32)(set[half / 2] >> (32 * (half % 2))));
        free(text);
        at += 2 + length;
    }
}
";

fn draw(random: &mut Random, alphabet: &[u8], most: u64) -> Vec<u8> {
    let length = random.below(most + 1);
    (0..length).map(|_| alphabet[random.below(alphabet.len() as u64) as usize]).collect()
}

/// What the scanner says of a text: first, number and the bits of values.
fn wanted(scanner: &Scanner, text: &[u8]) -> [u32; 6] {
    let (mut first, mut count, mut set) = (NONE, 0, 0u128);
    scanner.each(text, &mut |found| {
        first = if count == 0 { found.pattern } else { first };
        count += 1;
        set |= scanner.value(found.pattern).and_then(|value| 1u128.checked_shl(value)).unwrap_or(0);
    });
    let part = |number: u32| (set >> (32 * number)) as u32;
    [first, count, part(0), part(1), part(2), part(3)]
}

/// The same of an image, told in Rust.
fn told(image: &[u32], text: &[u8]) -> [u32; 6] {
    let occurrences = patterns::Occurrences::new(image, text);
    let set = occurrences.set();
    let part = |number: u32| (set >> (32 * number)) as u32;
    [occurrences.first(), occurrences.count(), part(0), part(1), part(2), part(3)]
}

fn agrees(program: &Program, random: &mut Random, alphabet: &[u8], count: usize, longest: u64, texts: usize) {
    let mut patterns = Vec::new();
    while patterns.len() < count {
        let bytes = draw(random, alphabet, longest);
        if bytes.is_empty() {
            continue;
        }
        let (offset, depth) = match random.below(8) {
            0 => (random.below(30) as u32, None),
            1 => (random.below(30) as u32, Some(random.below(40) as u32)),
            _ => (0, None),
        };
        let nocase = random.below(2) == 0;
        patterns.push(SearchPattern { bytes, nocase, offset, depth, value: random.below(200) as u32 });
    }
    let scanner = Scanner::build(&patterns).unwrap();
    let images = [automaton::image(&patterns).unwrap(), bloom::image(&patterns).unwrap()];
    let mut asked = Vec::new();
    let mut want = Vec::new();
    for _ in 0..texts {
        let mut text = draw(random, alphabet, 60);
        if count > 0 && random.below(2) == 0 {
            let planted = &patterns[random.below(count as u64) as usize].bytes;
            let at = random.below(text.len() as u64 + 1) as usize;
            text.splice(at..at, planted.iter().copied());
        }
        want.push(wanted(&scanner, &text));
        for image in images.iter().filter(|_| want.len() <= 100) {
            assert_eq!(told(image, &text), want[want.len() - 1], "in Rust, {count} patterns");
        }
        asked.extend((text.len() as u16).to_le_bytes());
        asked.extend(text);
    }
    for image in images {
        let found = program.run(&image, &asked);
        assert_eq!(found.as_chunks().0, &want[..], "{:x}, {count} patterns", image[0]);
    }
    assert!(count == 0 || want.iter().filter(|want| want[1] > 0).count() > texts / 8);
}

#[test]
fn the_texts_find_what_the_scanner_finds() {
    let program = Program::build(&[patterns::TEXT], ANSWER);
    let mut random = Random::new(9);
    let all: Vec<u8> = (0..=255).collect();
    agrees(&program, &mut random, b"a", 3, 5, 2000);
    agrees(&program, &mut random, b"abAB", 12, 6, 30_000);
    agrees(&program, &mut random, b"abAB", 40, 12, 20_000);
    agrees(&program, &mut random, b"\x00 @`[{zZ\xc0\xe0", 60, 8, 20_000);
    agrees(&program, &mut random, b"GETPOSTgetpost/ .", 300, 40, 20_000);
    agrees(&program, &mut random, &all, 400, 70, 10_000);
    agrees(&program, &mut random, &all, 0, 1, 100);
}

#[test]
fn what_has_no_bytes_or_too_many_is_refused() {
    let empty = [SearchPattern::anywhere("a"), SearchPattern::anywhere("")];
    assert_eq!(automaton::image(&empty), Err(PatternsBuildError::Empty { pattern: 1 }));
    assert_eq!(bloom::image(&empty), Err(PatternsBuildError::Empty { pattern: 1 }));
    let long = [SearchPattern::anywhere(vec![7; 1000])];
    let bytes = automaton::image(&long).unwrap().len() as u64 * 4;
    assert!(automaton::image_within(&long, bytes + 2048).is_ok());
    let refused = automaton::image_within(&long, bytes - 1);
    assert!(matches!(refused, Err(PatternsBuildError::TooLarge { limit, .. }) if limit == bytes - 1));
}
