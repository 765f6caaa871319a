//! Chooses for each string the window by which it is found, and its bucket in the first filter.
//!
//! The first filter knows, for each bucket and each of a few places, which bytes it lets pass there; a place
//! of a packet passes if one bucket lets all its bytes pass. A bucket therefore also passes every mixture of
//! its windows' bytes. So windows are put where they add least to what the bucket is likely to pass, and
//! moved a few times until little is gained.

use super::frequency::{Frequency, KINDS};
use super::image::{POSITIONS, WINDOW};
use std::ops::Range;

/// A string to find, as the filter sees it.
#[derive(Clone, Debug)]
pub(super) struct Text {
    /// The bytes, in lower case if `nocase`.
    pub(super) bytes: Vec<u8>,
    /// Letters match in both cases.
    pub(super) nocase: bool,
}

/// How one string is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    /// Where in the string the window begins.
    pub(super) at: usize,
    /// The bucket, counted among those that were given.
    bucket: usize,
}

/// What eight buckets let pass: for each position, a byte of bucket bits for each byte value.
pub(super) type Shuffle = [[u8; 256]; POSITIONS];

/// Windows tried for a string, the rarest so many, and how often each string is placed.
const TRIED: usize = 6;
const ROUNDS: usize = 5;
/// What a place that passes costs beside a window that occurs, which has to be compared: about 3 cycles
/// to 40.
const PASS: f32 = 3.;
const OCCUR: f32 = 40.;
/// Strings above which two windows are tried and each string is placed twice, to bound the time of a build.
const MANY: usize = 20_000;

/// Chooses window and bucket for every string, among some of the buckets, and adds to `shuffles` what these
/// let pass.
pub(super) fn arrange(
    texts: &[&Text],
    among: Range<usize>,
    frequency: &Frequency,
    shuffles: &mut [Shuffle],
) -> Vec<Choice> {
    let (most, rounds) = if texts.len() > MANY { (2, 2) } else { (TRIED, ROUNDS) };
    let tried: Vec<Vec<(usize, f32)>> = texts.iter().map(|text| rarest(text, most, frequency)).collect();
    let mut buckets = vec![Bucket::empty(); among.len()];
    let mut choices = vec![Choice::default(); texts.len()];
    for round in 0..rounds {
        for (at, text) in texts.iter().enumerate() {
            if round > 0 {
                buckets[choices[at].bucket].take(text, choices[at].at, frequency);
            }
            choices[at] = cheapest(text, &tried[at], &buckets, frequency);
            buckets[choices[at].bucket].put(text, choices[at].at, frequency);
        }
    }
    for (at, bucket) in among.zip(&buckets) {
        for (position, byte) in (0..POSITIONS).flat_map(|position| (0..256).map(move |byte| (position, byte)))
        {
            if bucket.any[position] > 0 || bucket.held[position][byte] > 0 {
                shuffles[at / 8][position][byte] |= 1 << (at % 8);
            }
        }
    }
    choices
}

fn cheapest(text: &Text, tried: &[(usize, f32)], buckets: &[Bucket], frequency: &Frequency) -> Choice {
    let mut best = (f32::INFINITY, Choice::default());
    for &(at, occurs) in tried {
        for (bucket, held) in buckets.iter().enumerate() {
            let cost = PASS * held.grows_by(text, at, frequency) + OCCUR * occurs;
            if cost < best.0 {
                best = (cost, Choice { at, bucket });
            }
        }
    }
    best.1
}

/// The `most` rarest windows of a string and how probable each is. A window of one byte four times over is
/// only taken if there is no other, since such windows come in runs.
fn rarest(text: &Text, most: usize, frequency: &Frequency) -> Vec<(usize, f32)> {
    let length = text.bytes.len();
    let size = length.min(WINDOW);
    let mut windows: Vec<(usize, f32)> =
        (0..=length - size).map(|at| (at, frequency.window(&text.bytes[at..at + size]))).collect();
    let same =
        |at: usize| size == WINDOW && text.bytes[at..at + size].iter().all(|&byte| byte == text.bytes[at]);
    if windows.iter().any(|&(at, _)| !same(at)) {
        windows.retain(|&(at, _)| !same(at));
    }
    windows.sort_by(|one, other| one.1.total_cmp(&other.1).then(one.0.cmp(&other.0)));
    windows.truncate(most);
    windows
}

#[derive(Clone, Debug)]
struct Bucket {
    /// How many windows have the byte at the position.
    held: Vec<[u32; 256]>,
    /// How many windows end before the position, and so let all pass there.
    any: [u32; POSITIONS],
    /// The share of all bytes that pass at the position, for each kind of payload.
    share: [[f32; KINDS]; POSITIONS],
    /// The probability that a place passes.
    passes: f32,
}

impl Bucket {
    fn empty() -> Bucket {
        Bucket {
            held: vec![[0; 256]; POSITIONS],
            any: [0; POSITIONS],
            share: [[0.; KINDS]; POSITIONS],
            passes: 0.,
        }
    }

    fn grows_by(&self, text: &Text, at: usize, frequency: &Frequency) -> f32 {
        let mut product = [1f32; KINDS];
        for position in 0..POSITIONS {
            let bytes = bytes_at(text, at + position);
            let all = bytes[0].is_none() || self.any[position] > 0;
            for (kind, product) in product.iter_mut().enumerate() {
                let new = bytes.iter().flatten().filter(|&&byte| self.held[position][usize::from(byte)] == 0);
                let share =
                    self.share[position][kind] + new.map(|&byte| frequency.of(kind, byte)).sum::<f32>();
                *product *= if all { 1. } else { share };
            }
        }
        (frequency.mix(product) - self.passes).max(0.)
    }

    fn put(&mut self, text: &Text, at: usize, frequency: &Frequency) {
        for position in 0..POSITIONS {
            let bytes = bytes_at(text, at + position);
            self.any[position] += u32::from(bytes[0].is_none());
            for &byte in bytes.iter().flatten() {
                self.held[position][usize::from(byte)] += 1;
                if self.held[position][usize::from(byte)] == 1 {
                    self.add(position, byte, 1., frequency);
                }
            }
        }
        self.settle(frequency);
    }

    fn take(&mut self, text: &Text, at: usize, frequency: &Frequency) {
        for position in 0..POSITIONS {
            let bytes = bytes_at(text, at + position);
            self.any[position] -= u32::from(bytes[0].is_none());
            for &byte in bytes.iter().flatten() {
                self.held[position][usize::from(byte)] -= 1;
                if self.held[position][usize::from(byte)] == 0 {
                    self.add(position, byte, -1., frequency);
                }
            }
        }
        self.settle(frequency);
    }

    fn add(&mut self, position: usize, byte: u8, sign: f32, frequency: &Frequency) {
        for (kind, share) in self.share[position].iter_mut().enumerate() {
            *share = (*share + sign * frequency.of(kind, byte)).max(0.);
        }
    }

    fn settle(&mut self, frequency: &Frequency) {
        let mut product = [1f32; KINDS];
        for (kind, product) in product.iter_mut().enumerate() {
            for position in 0..POSITIONS {
                *product *= if self.any[position] > 0 { 1. } else { self.share[position][kind] };
            }
        }
        self.passes = frequency.mix(product);
    }
}

/// The one or two bytes that the string matches at a place; none behind its end, where every byte passes.
fn bytes_at(text: &Text, at: usize) -> [Option<u8>; 2] {
    let Some(&byte) = text.bytes.get(at) else { return [None; 2] };
    let upper = byte.to_ascii_uppercase();
    [Some(byte), (text.nocase && upper != byte).then_some(upper)]
}
