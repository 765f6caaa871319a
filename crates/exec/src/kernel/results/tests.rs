//! Results say what they were made of, and effects of one packet share no bit.

use super::*;
use proptest::prelude::*;

#[test]
fn a_result_says_the_verdict_it_was_made_of_or_that_the_packet_is_to_be_run_again() {
    let none = [Verdict::PENDING; 2];
    let verdicts =
        [0, 1, 5, 0xfff, 0x1000, 0xffff].map(|argument| [Verdict::send(argument), Verdict::drop(argument)]);
    let all = || verdicts.into_iter().flatten().chain([Verdict::FLOOD, Verdict::PENDING, Verdict::punt(7)]);
    let (word, half) = (Results::new(Back::Word, 16, false, none), Results::new(Back::Half, 16, false, none));
    let mut lost = 0;
    for verdict in all() {
        assert_eq!(word.verdict(word.of(verdict, 0)), Some(verdict));
        assert_eq!(word.of(verdict, 0), verdict.bits());
        let said = half.verdict(half.of(verdict, 0));
        assert_eq!(said, Some(verdict).filter(|verdict| verdict.argument() < 0x1000));
        lost += u32::from(said.is_none());
        assert!(half.of(verdict, 0) <= 0xffff);
    }
    assert_eq!(lost, 4);
    for results in [word, half] {
        assert_eq!(results.verdict(results.again()), None);
    }
    let narrow = Results::new(Back::Half, 3, true, none);
    assert_eq!(narrow.free(), [0..0, 3..12]);
    assert_eq!(narrow.verdict(narrow.of(Verdict::drop(5), 0x1ff << 3)), Some(Verdict::drop(5)));
    let bit = Results::new(Back::Bit, 16, false, [Verdict::FLOOD, Verdict::drop(3)]);
    for verdict in bit.outcomes {
        assert_eq!(bit.verdict(bit.of(verdict, 0)), Some(verdict));
    }
}

#[test]
fn results_of_many_packets_lie_from_the_least_significant_bit_on() {
    let none = [Verdict::PENDING; 2];
    let words = [0x8765_4321, 0xfedc_ba98];
    let read = |back, packet| Results::new(back, 16, false, none).read(&words, packet);
    assert_eq!([0, 1].map(|packet| read(Back::Word, packet)), words);
    assert_eq!([0, 1, 2, 3].map(|packet| read(Back::Half, packet)), [0x4321, 0x8765, 0xba98, 0xfedc]);
    assert_eq!([0, 1, 5, 31, 32, 35].map(|packet| read(Back::Bit, packet)), [1, 0, 1, 1, 0, 1]);
}

/// The bits that an effect takes, counted through the result and the record.
fn taken(place: ResultPlace, size: Size) -> Range<u64> {
    let start = place.word.map_or(0, |word| 32 * (u64::from(word) + 1)) + u64::from(place.shift);
    let words = if let Size::Words(words) = size { u64::from(words) } else { 1 };
    start..start + words * u64::from(place.bits)
}

proptest! {
    #[test]
    fn effects_of_one_packet_do_not_share_a_bit(
        needed in 0_u32..=16, half: bool,
        effects in prop::collection::vec((0_u32..4, 1_u32..24, any::<u64>()), 0..40),
    ) {
        let back = if half { Back::Half } else { Back::Word };
        let results = Results::new(back, needed, !effects.is_empty(), [Verdict::PENDING; 2]);
        let size = |(kind, number, _): &(u32, u32, u64)| match kind {
            0 => Size::Nothing,
            1 => Size::Words(number / 4 + 1),
            _ => Size::Bits(*number),
        };
        let sizes: Vec<Size> = effects.iter().map(size).collect();
        // Who stands apart from whom is drawn, too.
        let together = |one: usize, other: usize| effects[one].2 >> (other % 64) & 1 == 0;
        let laid = lay(&results.free(), &sizes, together);
        prop_assert_eq!((laid.done.len(), laid.left.len()), (sizes.len(), sizes.len()));
        for index in 0..sizes.len() {
            let (done, left) = (taken(laid.done[index], Size::Nothing), taken(laid.left[index], sizes[index]));
            let ends = if sizes[index] == Size::Nothing { done.end } else { done.end.max(left.end) };
            prop_assert!(ends <= 32 * (u64::from(laid.record_words) + 1));
            let room = |place: ResultPlace| place.word.is_some()
                || results.free().iter().any(|area| area.start <= place.shift && place.shift + place.bits <= area.end);
            prop_assert!(room(laid.done[index]) && room(laid.left[index]));
            if let (Size::Bits(bits), place) = (sizes[index], laid.left[index]) {
                prop_assert!(place.bits == bits || place.word.is_some());
            }
            let apart = |one: &Range<u64>, other: &Range<u64>| one.end <= other.start || other.end <= one.start;
            for other in 0..sizes.len() {
                prop_assert!(other == index || apart(&done, &taken(laid.done[other], Size::Nothing)));
                if sizes[index] == Size::Nothing {
                    continue;
                }
                prop_assert!(apart(&left, &taken(laid.done[other], Size::Nothing)));
                if other < index && together(other, index) && sizes[other] != Size::Nothing {
                    prop_assert!(apart(&left, &taken(laid.left[other], sizes[other])), "{index} and {other}: {laid:?}");
                }
            }
        }
    }
}
