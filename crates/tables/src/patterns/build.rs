//! Builds the image of a pattern table, and owns it.
//!
//! Patterns that match the same bytes become one string with several uses. A string of one byte over and over
//! is found by its run; every other string is found by one window of 1 to 4 bytes, chosen by `arrange`.

use super::arrange::{Choice, Shuffle, Text, arrange};
use super::frequency::Frequency;
use super::image::{
    Counts, Entry, LONG, MOST_GROUPS, POSITIONS, PatternsImage, Places, RUNS, SAME, SHORT_BUCKETS, WINDOW,
    hash, short_bit,
};
#[cfg(all(feature = "fastest", target_arch = "x86_64"))]
use super::lanes_avx2;
use super::{PatternMatch, PatternsBuildError, SearchPattern};
use std::collections::BTreeMap;

/// The most bytes an image may take unless the caller allows another number: 1 GiB.
pub const LIMIT: u64 = 1 << 30;

/// The fast scanner: it owns its image.
#[derive(Clone, Debug)]
pub struct Scanner {
    bytes: Vec<u8>,
    counts: Counts,
    /// Where the sections of the image begin: opened for each packet, it is not computed anew.
    places: Places,
    /// Whether the table is so small that few bytes of packets need be searched.
    #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
    small: bool,
}

impl Scanner {
    /// Builds the table of the patterns; a match names a pattern by its place in this list.
    ///
    /// # Errors
    /// [`PatternsBuildError::Empty`] for a pattern of no bytes, [`PatternsBuildError::TooLarge`] for an image
    /// above [`LIMIT`].
    pub fn build(patterns: &[SearchPattern]) -> Result<Scanner, PatternsBuildError> {
        Scanner::build_within(patterns, LIMIT)
    }

    /// As [`Scanner::build`] with a limit of its own, in bytes; more than 2³² − 1 is never allowed.
    ///
    /// # Errors
    /// As [`Scanner::build`]; the size is known, and refused, before the image is made.
    pub fn build_within(patterns: &[SearchPattern], limit: u64) -> Result<Scanner, PatternsBuildError> {
        Scanner::build_in_groups(patterns, limit, long_groups)
    }

    /// As [`Scanner::build_within`], with as many groups of buckets as `groups` says for a number of long
    /// strings.
    pub(super) fn build_in_groups(
        patterns: &[SearchPattern],
        limit: u64,
        groups: impl Fn(usize) -> usize,
    ) -> Result<Scanner, PatternsBuildError> {
        if let Some(pattern) = patterns.iter().position(|pattern| pattern.bytes.is_empty()) {
            return Err(PatternsBuildError::Empty { pattern });
        }
        let limit = limit.min(u64::from(u32::MAX));
        let pairs: u64 = patterns.iter().map(|pattern| pattern.bytes.len().div_ceil(8) as u64).sum();
        if pairs.max(patterns.len() as u64) > u64::from(u32::MAX) / 16 {
            return Err(PatternsBuildError::TooLarge { bytes: (pairs + patterns.len() as u64) * 16, limit });
        }
        let plan = Plan::of(patterns, groups);
        let places = plan.counts.places();
        let bytes = places.end as u64;
        if bytes > limit {
            return Err(PatternsBuildError::TooLarge { bytes, limit });
        }
        #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
        let small = plan.counts.long_groups <= 1 && plan.counts.short_groups == 0 && lanes_avx2::present();
        Ok(Scanner {
            bytes: plan.write(patterns),
            counts: plan.counts,
            places,
            #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
            small,
        })
    }

    /// Bytes of the image of patterns of these lengths, at most: some may share a string or be runs, which
    /// takes less.
    pub fn at_most(lengths: impl Iterator<Item = usize>) -> u64 {
        let mut counts = Counts { longest: 1, ..Counts::default() };
        let mut long = 0;
        for length in lengths {
            counts.patterns += 1;
            counts.pairs += length.div_ceil(8);
            long += usize::from(length >= WINDOW);
            counts.short_groups |= usize::from(length < WINDOW);
        }
        (counts.strings, counts.entries) = (counts.patterns, counts.patterns);
        (counts.bitmap_log2, counts.directory_log2) = filters(counts.strings);
        counts.long_groups = long_groups(long);
        (counts.places().end as u64).min(LIMIT)
    }

    /// The image: position-independent bytes that [`PatternsImage::open`] takes, here or on another machine.
    pub fn image(&self) -> &[u8] {
        &self.bytes
    }

    /// The table over its own bytes; whoever searches many packets in a row opens it once.
    pub fn open(&self) -> PatternsImage<'_> {
        PatternsImage::cut(&self.bytes, self.counts, &self.places)
    }

    /// How many patterns the table has.
    pub fn len(&self) -> usize {
        self.counts.patterns
    }

    /// Whether the table has no pattern.
    pub fn is_empty(&self) -> bool {
        self.counts.patterns == 0
    }

    /// The value of a pattern; `None` if there is no such pattern.
    pub fn value(&self, pattern: u32) -> Option<u32> {
        self.open().value(pattern)
    }

    /// Tells every occurrence, in ascending order of (end, pattern).
    pub fn each(&self, haystack: &[u8], found: &mut impl FnMut(PatternMatch)) {
        let from = self.quiet(haystack);
        if from < haystack.len() {
            self.open().each_from(haystack, from, found);
        }
    }

    /// How many bytes at the beginning surely begin nothing of what is searched for.
    #[inline]
    fn quiet(&self, haystack: &[u8]) -> usize {
        if self.is_empty() {
            return haystack.len();
        }
        #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
        if self.small {
            let (counts, places) = (&self.counts, &self.places);
            let nibbles = self.bytes[places.nibbles..].as_chunks().0;
            let runs = &self.bytes[places.runs..].as_chunks().0[..257];
            return lanes_avx2::quiet(&nibbles[..counts.long_groups * POSITIONS], runs, haystack);
        }
        0
    }

    /// The occurrence with the smallest end, and of those the one of the smallest pattern.
    pub fn first(&self, haystack: &[u8]) -> Option<PatternMatch> {
        let from = self.quiet(haystack);
        if from == haystack.len() { None } else { self.open().first_from(haystack, from) }
    }

    /// How many occurrences there are.
    pub fn count(&self, haystack: &[u8]) -> u64 {
        self.open().count(haystack)
    }

    /// Appends to `patterns` those that occur, each once, ascending.
    pub fn set(&self, haystack: &[u8], patterns: &mut Vec<u32>) {
        self.open().set(haystack, patterns);
    }
}

/// How many groups of buckets so many long strings have. More buckets pass less and cost more; below these
/// sizes what they keep out is cheaper to look up.
fn long_groups(strings: usize) -> usize {
    match strings {
        0..12_000 => 1,
        12_000..40_000 => 2,
        _ => MOST_GROUPS,
    }
}

/// The logarithms of how many bits the bitmap of so many strings has, and slots their directory.
fn filters(strings: usize) -> (u32, u32) {
    let log2 = |least: u32, times: usize, most: u32| {
        (strings * times).next_power_of_two().trailing_zeros().clamp(least, most)
    };
    // 32 KiB of bits stay in the first cache beside a packet; many more strings need more to tell anything.
    (log2(12, 32, 18).max(log2(12, 16, 26)), log2(6, 2, 26))
}

/// All that is decided before the first byte of the image is written.
struct Plan {
    counts: Counts,
    strings: Vec<(Text, Vec<u32>)>,
    choices: Vec<Choice>,
    shuffles: Vec<Shuffle>,
    /// Run patterns by their byte, ascending.
    runs: Vec<(u8, u32)>,
}

impl Plan {
    /// `groups` says how many groups of buckets so many long strings have.
    fn of(patterns: &[SearchPattern], groups: impl Fn(usize) -> usize) -> Plan {
        let mut places = BTreeMap::new();
        let mut strings: Vec<(Text, Vec<u32>)> = Vec::new();
        let mut runs = Vec::new();
        for (index, pattern) in (0..).zip(patterns) {
            let text = text(pattern);
            if is_run(&text) {
                runs.push((text.bytes[0], index));
                continue;
            }
            let place = *places.entry((text.nocase, text.bytes.clone())).or_insert(strings.len());
            if place == strings.len() {
                strings.push((text, Vec::new()));
            }
            strings[place].1.push(index);
        }
        runs.sort_unstable();
        let frequency = Frequency::learned(strings.iter().map(|(text, _)| &text.bytes[..]));
        let of_class = |class: usize| -> Vec<usize> {
            (0..strings.len()).filter(|&at| strings[at].0.bytes.len().min(WINDOW) == class).collect()
        };
        let long_groups = groups(of_class(WINDOW).len());
        let short_groups = usize::from((1..WINDOW).any(|class| !of_class(class).is_empty()));
        let mut shuffles = vec![[[0; 256]; POSITIONS]; long_groups + short_groups];
        let mut choices = vec![Choice::default(); strings.len()];
        let (long, short) = shuffles.split_at_mut(long_groups);
        for class in 1..=WINDOW {
            let members = of_class(class);
            let texts: Vec<&Text> = members.iter().map(|&at| &strings[at].0).collect();
            let (among, shuffles) = match SHORT_BUCKETS.get(class - 1) {
                Some(among) => (among.clone(), &mut *short),
                None => (0..long_groups * 8, &mut *long),
            };
            for (at, choice) in members.into_iter().zip(arrange(&texts, among, &frequency, shuffles)) {
                choices[at] = choice;
            }
        }
        let mut flags = if runs.is_empty() { 0 } else { RUNS };
        for ((text, _), choice) in strings.iter().zip(&choices) {
            flags |= if text.bytes.len() < WINDOW { 1 << (text.bytes.len() - 1) } else { LONG };
            let window = &text.bytes[choice.at..text.bytes.len().min(choice.at + WINDOW)];
            flags |=
                if window.len() == WINDOW && window.iter().all(|&byte| byte == window[0]) { SAME } else { 0 };
        }
        let (bitmap_log2, directory_log2) = filters(strings.len());
        let counts = Counts {
            patterns: patterns.len(),
            strings: strings.len(),
            entries: strings.len(),
            bitmap_log2,
            directory_log2,
            flags,
            long_groups,
            short_groups,
            pairs: strings.iter().map(|(text, _)| text.bytes.len().div_ceil(8)).sum(),
            runs: runs.len(),
            longest: patterns.iter().map(|pattern| pattern.bytes.len()).max().unwrap_or(0),
        };
        Plan { counts, strings, choices, shuffles, runs }
    }

    fn write(&self, patterns: &[SearchPattern]) -> Vec<u8> {
        let places = self.counts.places();
        let mut image = vec![0u8; places.end];
        image[..64].copy_from_slice(&self.counts.header());
        let mut at = places.shuffles;
        for position in self.shuffles.iter().flatten() {
            image[at..at + 256].copy_from_slice(position);
            at += 256;
        }
        let mut at = places.nibbles;
        for position in self.shuffles.iter().flatten() {
            for (byte, buckets) in position.iter().enumerate() {
                image[at + (byte & 15)] |= buckets;
                image[at + 16 + (byte >> 4)] |= buckets;
            }
            at += 32;
        }
        let mut slots: Vec<(usize, usize)> = Vec::with_capacity(self.strings.len());
        for (at, (text, _)) in self.strings.iter().enumerate() {
            let (window, class) = self.window(at);
            let hash = hash(window, class);
            if text.bytes.len() >= WINDOW {
                let bit = hash >> (32 - self.counts.bitmap_log2);
                image[places.bitmap + bit as usize / 8] |= 1 << (bit % 8);
            }
            for window in short_windows(text) {
                let bit = short_bit(window, class);
                image[places.shorts + bit / 8] |= 1 << (bit % 8);
            }
            slots.push(((hash >> (32 - self.counts.directory_log2)) as usize, at));
        }
        slots.sort_unstable();
        let mut next = 0;
        for slot in 0..=1usize << self.counts.directory_log2 {
            let first = next + slots[next..].iter().take_while(|&&(place, _)| place < slot).count();
            put(&mut image, places.directory, slot, &[first as u32]);
            next = first;
        }
        for (place, &(_, at)) in slots.iter().enumerate() {
            let begin = places.entries + place * 32;
            image[begin..begin + 32].copy_from_slice(&self.entry(at).write());
        }
        self.write_strings(&mut image);
        for (at, pattern) in patterns.iter().enumerate() {
            let fields = [pattern.bytes.len() as u32, pattern.offset, pattern.limit(), pattern.value];
            put(&mut image, places.patterns, at * 4, &fields);
        }
        for byte in 0..257usize {
            let first = self.runs.iter().take_while(|&&(run, _)| usize::from(run) < byte).count();
            put(&mut image, places.runs, byte, &[first as u32]);
        }
        for (at, &(_, index)) in self.runs.iter().enumerate() {
            let pattern = &patterns[index as usize];
            let fields = [index, pattern.bytes.len() as u32, pattern.offset, pattern.limit()];
            put(&mut image, places.list, at * 4, &fields);
        }
        image
    }

    fn write_strings(&self, image: &mut [u8]) {
        let places = self.counts.places();
        let (mut pair, mut used) = (0usize, 0usize);
        for (at, (text, uses)) in self.strings.iter().enumerate() {
            let fields = [pair as u32, text.bytes.len() as u32, used as u32, uses.len() as u32];
            put(image, places.strings, at * 4, &fields);
            for eight in text.bytes.chunks(8) {
                let (value, mask) = masked(eight, text.nocase);
                let begin = places.pairs + pair * 16;
                image[begin..begin + 8].copy_from_slice(&value.to_le_bytes());
                image[begin + 8..begin + 16].copy_from_slice(&mask.to_le_bytes());
                pair += 1;
            }
            put(image, places.uses, used, uses);
            used += uses.len();
        }
    }

    fn window(&self, at: usize) -> (u32, usize) {
        let bytes = &self.strings[at].0.bytes;
        let begin = self.choices[at].at;
        let window = &bytes[begin..bytes.len().min(begin + WINDOW)];
        let mut word = [0; WINDOW];
        word[..window.len()].copy_from_slice(window);
        (u32::from_le_bytes(word), window.len())
    }

    fn entry(&self, at: usize) -> Entry {
        let text = &self.strings[at].0;
        let before = self.choices[at].at;
        // The eight bytes hold the window, and of the rest those behind it first.
        let from = before.min(text.bytes.len().saturating_sub(8));
        let eight = &text.bytes[from..text.bytes.len().min(from + 8)];
        let (value, mask) = masked(eight, text.nocase);
        Entry {
            value,
            mask,
            string: at as u32,
            before: before as u32,
            length: text.bytes.len() as u32,
            lead: (before - from) as u8,
            class: self.window(at).1 as u8,
        }
    }
}

/// Up to eight bytes of a string as value and mask: a letter that may have either case is compared without
/// bit 5.
fn masked(bytes: &[u8], nocase: bool) -> (u64, u64) {
    let (mut value, mut mask) = ([0; 8], [0; 8]);
    for (at, &byte) in bytes.iter().enumerate() {
        mask[at] = if nocase && byte.is_ascii_alphabetic() { 0xdf } else { 0xff };
        value[at] = byte & mask[at];
    }
    (u64::from_le_bytes(value), u64::from_le_bytes(mask))
}

/// The windows of a string of two or three bytes, in every case that it matches.
fn short_windows(text: &Text) -> Vec<u32> {
    if !(2..WINDOW).contains(&text.bytes.len()) {
        return Vec::new();
    }
    let mut windows = vec![0u32];
    for (at, &byte) in text.bytes.iter().enumerate() {
        let both = [byte, if text.nocase { byte.to_ascii_uppercase() } else { byte }];
        windows = both
            .iter()
            .flat_map(|&byte| windows.iter().map(move |&one| one | u32::from(byte) << (8 * at)))
            .collect();
    }
    windows
}

/// The bytes that a pattern matches, in one form for all patterns that match the same.
fn text(pattern: &SearchPattern) -> Text {
    let nocase = pattern.nocase && pattern.bytes.iter().any(u8::is_ascii_alphabetic);
    let bytes = if nocase { pattern.bytes.to_ascii_lowercase() } else { pattern.bytes.clone() };
    Text { bytes, nocase }
}

/// One exact byte, at least [`WINDOW`] times and nothing else.
fn is_run(text: &Text) -> bool {
    !text.nocase && text.bytes.len() >= WINDOW && text.bytes.iter().all(|&byte| byte == text.bytes[0])
}

fn put(image: &mut [u8], section: usize, index: usize, words: &[u32]) {
    let begin = section + index * 4;
    for (place, word) in image[begin..begin + words.len() * 4].chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}
