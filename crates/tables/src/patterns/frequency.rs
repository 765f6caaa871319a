//! The frequency of bytes in packets, estimated from three kinds of payload: the builder uses it to choose
//! rare windows.
//!
//! A byte alone says little, since its neighbours are of the same kind. So a window's probability is taken in
//! each kind on its own, and the kinds are then mixed: compressed or ciphered bytes (all alike), text of
//! protocols (letters as in English, the marks of HTTP), and binary fields (zeros, small numbers, FF).

/// The kinds of payload that are mixed.
pub(super) const KINDS: usize = 3;

/// The share of each kind among all payload bytes: ciphered, text, binary.
const SHARES: [f32; KINDS] = [0.55, 0.25, 0.20];

/// Letters a to z in English text, per mille (Lewand, Cryptological Mathematics, 2000).
const LETTERS: [f32; 26] = [
    82., 15., 28., 43., 127., 22., 20., 61., 70., 2., 8., 40., 24., 67., 75., 19., 1., 60., 63., 91., 28.,
    10., 24., 2., 20., 1.,
];

/// Marks that headers, markup and addresses are full of, per mille of text beside the letters.
const MARKS: [(u8, f32); 26] = [
    (b' ', 70.),
    (b'/', 30.),
    (b'.', 25.),
    (b':', 14.),
    (b'-', 20.),
    (b'=', 16.),
    (b'&', 8.),
    (b'"', 16.),
    (b'<', 8.),
    (b'>', 8.),
    (b'\r', 16.),
    (b'\n', 18.),
    (b',', 12.),
    (b'_', 10.),
    (b'%', 6.),
    (b'?', 4.),
    (b';', 10.),
    (b'(', 4.),
    (b')', 4.),
    (b'+', 3.),
    (b'*', 3.),
    (b'\'', 5.),
    (b'|', 1.),
    (b'#', 2.),
    (b'{', 2.),
    (b'}', 2.),
];

/// How often each byte is met, for each kind of payload.
#[derive(Clone, Debug)]
pub(super) struct Frequency {
    kinds: [[f32; 256]; KINDS],
    /// How often a text byte follows another, learned from the patterns themselves: what many patterns share
    /// is a protocol's own word, and traffic is full of it.
    follows: Vec<f32>,
}

impl Frequency {
    /// The guess, with the followers that `samples` show.
    pub(super) fn learned<'a>(samples: impl Iterator<Item = &'a [u8]>) -> Frequency {
        let kinds = [[1. / 256.; 256], text(), binary()];
        // Each row begins as if the guess had been seen 20 times, so few samples cannot make a byte
        // impossible.
        const PRIOR: f32 = 20.;
        let mut follows = vec![0f32; 65536];
        for row in follows.chunks_exact_mut(256) {
            for (place, share) in row.iter_mut().zip(&kinds[1]) {
                *place = PRIOR * share;
            }
        }
        for sample in samples {
            for pair in sample.windows(2) {
                follows[usize::from(pair[0].to_ascii_lowercase()) << 8
                    | usize::from(pair[1].to_ascii_lowercase())] += 1.;
            }
        }
        for row in follows.chunks_exact_mut(256) {
            let sum: f32 = row.iter().sum();
            row.iter_mut().for_each(|place| *place /= sum);
        }
        Frequency { kinds, follows }
    }

    /// How often `byte` is met in payload of one kind.
    pub(super) fn of(&self, kind: usize, byte: u8) -> f32 {
        self.kinds[kind][usize::from(byte)]
    }

    /// How much the probabilities of the kinds come to, mixed by their shares.
    pub(super) fn mix(&self, probabilities: [f32; KINDS]) -> f32 {
        probabilities.iter().zip(SHARES).map(|(probability, share)| probability * share).sum()
    }

    /// How probable it is that a place of a packet begins with `window`, letters in any case.
    pub(super) fn window(&self, window: &[u8]) -> f32 {
        let lower = |at: usize| window[at].to_ascii_lowercase();
        let mut all = [1f32; KINDS];
        for (kind, probability) in all.iter_mut().enumerate() {
            for at in 0..window.len() {
                *probability *= match (kind, at) {
                    (1, 1..) => self.follows[usize::from(lower(at - 1)) << 8 | usize::from(lower(at))],
                    // In binary fields the byte before often comes again.
                    (2, 1..) if lower(at) == lower(at - 1) => 0.4 + 0.6 * self.of(kind, lower(at)),
                    _ => self.of(kind, lower(at)),
                };
            }
        }
        self.mix(all)
    }
}

fn text() -> [f32; 256] {
    let mut share = [0.02f32; 256];
    for (letter, &often) in (b'a'..).zip(&LETTERS) {
        share[usize::from(letter)] = often * 0.7;
        share[usize::from(letter.to_ascii_uppercase())] = 2. + often * 0.05;
    }
    (b'0'..=b'9').for_each(|digit| share[usize::from(digit)] = 12.);
    MARKS.iter().for_each(|&(mark, often)| share[usize::from(mark)] = often);
    scaled(share)
}

fn binary() -> [f32; 256] {
    let mut share = [1.5f32; 256];
    share[0] = 350.;
    share[0xff] = 50.;
    share[1] = 40.;
    (2..16).for_each(|small| share[small] = 8.);
    (4..8).for_each(|power| share[1 << power] = 8.);
    scaled(share)
}

fn scaled(mut share: [f32; 256]) -> [f32; 256] {
    let sum: f32 = share.iter().sum();
    share.iter_mut().for_each(|one| *one /= sum);
    share
}
