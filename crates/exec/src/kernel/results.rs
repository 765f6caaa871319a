//! The result that comes back for a packet: how its verdict and the data of its effects share the bits of the
//! result, and what needs a record.
//!
//! The idea: a verdict's argument needs as many bits as the largest argument that the program can give; the
//! other bits are free for effects. First each effect gets the bit that says whether it happened. Then the
//! data of effects are placed in the free bits, and data that find no room there get a word of the record.
//! Two effects may share a place if no packet can have both.

use super::form::Back;
use packet::verdict::{Verdict, VerdictKind};
use std::ops::Range;

/// Bit of a result of 32 bits: the host runs this packet from its beginning, as if no device had seen it.
pub const AGAIN: u32 = 1 << 31;

/// Some bits of a result, or of a word of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultPlace {
    /// The word of the record; none for the result itself.
    pub word: Option<u32>,
    /// The number of its least significant bit.
    pub shift: u32,
    /// How many bits there are.
    pub bits: u32,
}

impl ResultPlace {
    /// A whole word of the record.
    pub(super) fn record(word: u32) -> ResultPlace {
        ResultPlace { word: Some(word), shift: 0, bits: 32 }
    }

    /// The largest number that fits.
    pub fn most(self) -> u32 {
        u32::MAX >> (32 - self.bits.max(1))
    }
}

/// What the bits of a result mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Results {
    /// The form.
    pub back: Back,
    /// The bits of a verdict's argument; the host runs a packet with a larger argument.
    pub argument_bits: u32,
    /// The bits that the largest argument needs.
    needed: u32,
    /// The two verdicts that a bit can say; without meaning for other forms.
    pub outcomes: [Verdict; 2],
}

/// The bit of a half at which the argument ends and the kind of verdict begins.
const HALF_KIND: u32 = 12;
/// By how many bits a verdict's kind is shifted right for a half.
const HALF_SHIFT: u32 = 24 - HALF_KIND;

impl Results {
    /// Results of this form for verdicts whose arguments need so many bits; `effects` says whether there are
    /// effects to report.
    pub(super) fn new(back: Back, needed: u32, effects: bool, outcomes: [Verdict; 2]) -> Results {
        let argument_bits = match (back, effects) {
            (Back::Half, true) => needed.min(HALF_KIND),
            (Back::Half, false) => HALF_KIND,
            (_, true) => needed,
            (_, false) => 16,
        };
        Results { back, argument_bits, needed, outcomes }
    }

    /// The bits that neither the verdict nor *again* uses.
    pub(super) fn free(&self) -> [Range<u32>; 2] {
        match self.back {
            Back::Word => [27..31, self.argument_bits..24],
            Back::Half => [0..0, self.argument_bits..HALF_KIND],
            Back::Bit => [0..0, 0..0],
        }
    }

    /// The result of a packet that the host must run again. The form of one bit has none.
    pub fn again(&self) -> u32 {
        match self.back {
            Back::Word => AGAIN,
            Back::Half => 1 << 15,
            Back::Bit => 0,
        }
    }

    /// The result of a packet with this verdict; `marks` are the bits of its effects.
    pub fn of(&self, verdict: Verdict, marks: u32) -> u32 {
        let argument = u32::from(verdict.argument());
        match self.back {
            Back::Word => verdict.bits() | marks,
            Back::Half if argument >> self.argument_bits != 0 => self.again(),
            Back::Half => verdict.bits() >> HALF_SHIFT & 7 << HALF_KIND | argument | marks,
            Back::Bit => u32::from(verdict == self.outcomes[1]),
        }
    }

    /// The same in kernel text, from `verdict` and `marks`.
    pub(super) fn text(&self) -> String {
        let mask = (1_u32 << self.argument_bits) - 1;
        match self.back {
            Back::Word => "    return verdict | marks;\n".to_owned(),
            Back::Half => {
                let large = format!("    if ((verdict & 0xffffu) > {mask:#x}u) goto again;\n");
                let kind = format!("verdict >> {HALF_SHIFT} & {:#x}u", 7 << HALF_KIND);
                let result = format!("    return ({kind}) | (verdict & {mask:#x}u) | marks;\n");
                if self.needed > self.argument_bits { large + &result } else { result }
            }
            Back::Bit => format!("    return verdict == {:#x}u;\n", self.outcomes[1].bits()),
        }
    }

    /// The result of a packet among those of many.
    pub fn read(&self, words: &[u32], packet: usize) -> u32 {
        match self.back {
            Back::Word => words[packet],
            Back::Half => words[packet / 2] >> (packet % 2 * 16) & 0xffff,
            Back::Bit => words[packet / 32] >> (packet % 32) & 1,
        }
    }

    /// The verdict in a result; `None` if the host must run the packet again.
    pub fn verdict(&self, result: u32) -> Option<Verdict> {
        if self.back == Back::Bit {
            return Some(self.outcomes[(result & 1) as usize]);
        }
        let argument = result & ((1 << self.argument_bits) - 1);
        let kind = if self.back == Back::Half { result << HALF_SHIFT } else { result };
        (result & self.again() == 0).then(|| Verdict::from_bits(kind & 7 << 24 | argument))
    }
}

/// The size of an effect's data, in addition to the bit that says that it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// Nothing.
    Nothing,
    /// A number of so many bits.
    Bits(u32),
    /// So many words.
    Words(u32),
}

/// The places of effects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Laid {
    /// The bit of each that says whether it happened.
    pub(super) done: Vec<ResultPlace>,
    /// Where the data of each effect begins; without data, the same bit.
    pub(super) left: Vec<ResultPlace>,
    /// Words of the record.
    pub(super) record_words: u32,
}

/// Places effects of these sizes. `together` says of two effects, the earlier first, whether a packet may
/// have both.
pub(super) fn lay(free: &[Range<u32>], sizes: &[Size], together: impl Fn(usize, usize) -> bool) -> Laid {
    let mut laid = Laid::default();
    let mut bits = free.iter().cloned().flatten();
    let own: Vec<u32> = bits.by_ref().take(sizes.len()).collect();
    let mut left: Vec<Range<u32>> = Vec::new();
    if own.len() == sizes.len() {
        laid.done = own.into_iter().map(|shift| ResultPlace { word: None, shift, bits: 1 }).collect();
        let taken = |bit: &u32| laid.done.iter().any(|done| done.shift == *bit);
        left = free
            .iter()
            .map(|area| area.clone().find(|bit| !taken(bit)).unwrap_or(area.end)..area.end)
            .collect();
    } else {
        let bit = |index: u32| ResultPlace { word: Some(index / 32), shift: index % 32, bits: 1 };
        laid.done = (0..sizes.len() as u32).map(bit).collect();
        laid.record_words = sizes.len().div_ceil(32) as u32;
    }
    let first = laid.record_words;
    for (index, size) in sizes.iter().enumerate() {
        // The places of effects that a packet may have together with this one.
        let beside = || {
            let others = (0..index).filter(|other| together(*other, index) && sizes[*other] != Size::Nothing);
            others.map(|other| (laid.left[other], sizes[other]))
        };
        let in_result = |bits: u32| {
            let fits = |shift: u32| {
                beside().all(|(place, _)| {
                    place.word.is_some() || shift + bits <= place.shift || place.shift + place.bits <= shift
                })
            };
            let mut shifts = left.iter().flat_map(|area| area.start..(area.end + 1).saturating_sub(bits));
            shifts.find(|shift| fits(*shift)).map(|shift| ResultPlace { word: None, shift, bits })
        };
        let in_record = |words: u32| {
            let free = |at: u32| {
                beside().all(|(place, size)| {
                    let long = if let Size::Words(words) = size { words } else { 1 };
                    place.word.is_none_or(|word| at + words <= word || word + long <= at)
                })
            };
            // After all others there is always room.
            ResultPlace::record((first..=laid.record_words).find(|at| free(*at)).unwrap_or(laid.record_words))
        };
        let (place, words) = match *size {
            Size::Nothing => (laid.done[index], 0),
            Size::Bits(bits) => match in_result(bits) {
                Some(place) => (place, 0),
                None => (in_record(1), 1),
            },
            Size::Words(words) => (in_record(words), words),
        };
        if let (Some(word), true) = (place.word, words > 0) {
            laid.record_words = laid.record_words.max(word + words);
        }
        laid.left.push(place);
    }
    laid
}

/// The bits that a number up to `most` needs.
pub(super) fn bits_of(most: u32) -> u32 {
    32 - most.leading_zeros()
}

/// The bits that the arguments of these verdicts need.
pub(super) fn argument_bits(verdicts: impl IntoIterator<Item = Verdict>) -> u32 {
    let bits = |verdict: Verdict| match verdict.kind() {
        VerdictKind::Pending | VerdictKind::Flood => 0,
        _ => bits_of(verdict.argument().into()),
    };
    verdicts.into_iter().map(bits).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
