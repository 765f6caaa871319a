//! Any patterns over any bytes: the scanners find what the model finds, and damaged images are refused or
//! searched.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tables::patterns::{BloomScanner, PatternMatch, PatternsImage, PatternsModel, Scanner, SearchPattern};

fuzz_target!(|bytes: &[u8]| {
    let Some((&[count, damage, value], mut rest)) = bytes.split_first_chunk() else { return };
    let mut patterns = Vec::new();
    for _ in 0..count % 32 {
        let Some((&[length, form, offset, depth], behind)) = rest.split_first_chunk() else { break };
        let length = (1 + usize::from(length % 24)).min(behind.len());
        let (word, behind) = behind.split_at(length);
        rest = behind;
        if !word.is_empty() {
            let depth = (form & 2 != 0).then_some(u32::from(depth));
            let offset = if form & 4 != 0 { u32::from(offset) } else { 0 };
            patterns.push(SearchPattern {
                nocase: form & 1 != 0,
                offset,
                depth,
                ..SearchPattern::anywhere(word)
            });
        }
    }
    let (Ok(model), Ok(scanner), Ok(bloom)) =
        (PatternsModel::build(&patterns), Scanner::build(&patterns), BloomScanner::build(&patterns))
    else {
        panic!("patterns with bytes are refused")
    };
    let mut expected: Vec<PatternMatch> = Vec::new();
    model.each(rest, &mut |found| expected.push(found));
    for image in scanner.open().forms() {
        let mut found = Vec::new();
        image.each(rest, &mut |one| found.push(one));
        assert_eq!(found, expected);
        assert_eq!(image.first(rest), expected.first().copied());
    }
    assert_eq!(bloom.count(rest), expected.len() as u64);
    let mut image = scanner.image().to_vec();
    let at = usize::from(damage) * image.len() / 256;
    image[at] = value;
    if let Ok(image) = PatternsImage::open(&image) {
        for form in image.forms() {
            let _ = form.count(rest);
        }
    }
});
