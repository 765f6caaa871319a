//! The meter against its twin over random packets, and the rules of both RFCs one by one.

use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn rates() -> impl Strategy<Value = MeterRates> {
    let rate = || prop_oneof![4 => 0..5_000u64, 2 => Just(12_500_000_000u64), 1 => any::<u64>()];
    let burst = || prop_oneof![1 => Just(0u32), 6 => 1..4_000u32, 1 => Just(u32::MAX)];
    prop_oneof![
        (rate(), burst(), burst()).prop_map(|(committed, committed_burst, excess_burst)| {
            MeterRates::Single { committed, committed_burst, excess_burst }
        }),
        (rate(), burst(), rate(), burst()).prop_map(|(committed, committed_burst, more, peak_burst)| {
            MeterRates::Two { committed, committed_burst, peak: committed.saturating_add(more), peak_burst }
        }),
    ]
}

fn colour(number: u8) -> Colour {
    [Colour::Green, Colour::Yellow, Colour::Red][usize::from(number % 3)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn meter_and_model_agree(
        rates in rates(),
        packets in any::<bool>(),
        period in prop_oneof![4 => Just(1), 2 => Just(60), 1 => Just(3_600), 1 => Just(86_400), 1 => any::<u32>()],
        aware in any::<bool>(),
        marks in prop::collection::vec(
            (
                0..4u32,
                prop_oneof![8 => 0..2_000u32, 1 => Just(u32::MAX)],
                any::<u8>(),
                prop_oneof![8 => 0..SECOND as i64, 2 => Just(0i64), 1 => -50..0i64, 1 => Just(i64::MAX)],
            ),
            1..200,
        ),
    ) {
        let unit = if packets { Unit::Packets } else { Unit::Bytes };
        let spec = MeterSpec { cells: 3, rates, period, unit, aware };
        let (meter, model) = (MeterTable::new(spec), MeterModel::new(spec));
        prop_assert_eq!(meter.as_ref().err(), model.as_ref().err());
        let (Ok(mut meter), Ok(mut model)) = (meter, model) else { return Ok(()) };
        let mut now = 0u64;
        for (cell, bytes, came, wait) in marks {
            now = now.saturating_add_signed(wait);
            let came = colour(came);
            prop_assert_eq!(meter.mark(cell, bytes, came, now), model.mark(cell, bytes, came, now));
        }
    }
}

fn meter(rates: MeterRates, aware: bool) -> MeterTable {
    MeterTable::new(MeterSpec { cells: 1, rates, period: 1, unit: Unit::Bytes, aware }).expect("a valid spec")
}

#[test]
fn a_rate_that_divides_nothing_evenly_never_drifts() {
    let mut meter =
        meter(MeterRates::Single { committed: 7_000_003, committed_burst: 2, excess_burst: 0 }, false);
    assert_eq!(meter.mark(0, 2, Colour::Green, 0), Colour::Green);
    let (mut now, mut green) = (0u64, 0u64);
    for step in 0..1_000_000u64 {
        now += 1 + step * 7919 % 100;
        green += u64::from(meter.mark(0, 1, Colour::Green, now) == Colour::Green);
    }
    // A step of at most 100 ns is shorter than a token's 142, so the bucket of two is never full and nothing
    // is cut off.
    let arrived = (u128::from(now) * 7_000_003 / u128::from(SECOND)) as u64;
    assert_eq!(green, arrived);
}

#[test]
fn single_rate_spills_into_the_excess_bucket_only_when_the_first_is_full() {
    let mut meter = meter(MeterRates::Single { committed: 10, committed_burst: 10, excess_burst: 10 }, false);
    assert_eq!(meter.mark(0, 10, Colour::Green, 0), Colour::Green);
    assert_eq!(meter.mark(0, 10, Colour::Green, 0), Colour::Yellow);
    assert_eq!(meter.mark(0, 1, Colour::Green, 0), Colour::Red);
    assert_eq!(
        meter.mark(0, 6, Colour::Green, SECOND / 2),
        Colour::Red,
        "five arrived, none in the excess bucket"
    );
    assert_eq!(meter.mark(0, 11, Colour::Green, 3 * SECOND / 2), Colour::Red);
    assert_eq!(meter.mark(0, 10, Colour::Green, 3 * SECOND / 2), Colour::Green);
    assert_eq!(
        meter.mark(0, 5, Colour::Green, 3 * SECOND / 2),
        Colour::Yellow,
        "what the first could not take"
    );
    assert_eq!(meter.mark(0, 1, Colour::Green, 3 * SECOND / 2), Colour::Red);
}

#[test]
fn an_aware_meter_never_improves_a_colour_and_a_blind_one_ignores_it() {
    let rates = MeterRates::Two { committed: 100, committed_burst: 100, peak: 200, peak_burst: 200 };
    let mut aware = meter(rates, true);
    assert_eq!(aware.mark(0, 50, Colour::Red, 0), Colour::Red);
    assert_eq!(aware.mark(0, 150, Colour::Yellow, 0), Colour::Yellow, "takes from the peak bucket alone");
    assert_eq!(aware.mark(0, 50, Colour::Green, 0), Colour::Green);
    assert_eq!(aware.mark(0, 1, Colour::Green, 0), Colour::Red);
    let mut blind = meter(rates, false);
    assert_eq!(blind.mark(0, 100, Colour::Red, 0), Colour::Green);
}

#[test]
fn specs_that_could_pass_nothing_are_refused() {
    let made = |rates| {
        MeterTable::new(MeterSpec { cells: 1, rates, period: 1, unit: Unit::Bytes, aware: false }).err()
    };
    assert_eq!(
        made(MeterRates::Single { committed: 1, committed_burst: 0, excess_burst: 0 }),
        Some(MeterError::NoBurst)
    );
    assert_eq!(
        made(MeterRates::Two { committed: 2, committed_burst: 1, peak: 1, peak_burst: 1 }),
        Some(MeterError::PeakBelowCommitted { peak: 1, committed: 2 })
    );
    let spec = MeterSpec {
        cells: 0,
        rates: MeterRates::Single { committed: 1, committed_burst: 1, excess_burst: 1 },
        period: 1,
        unit: Unit::Bytes,
        aware: false,
    };
    assert_eq!(MeterTable::new(spec).err(), Some(MeterError::Cells { cells: 0 }));
}

#[test]
fn tokens_of_a_long_period_arrive_one_by_one_and_none_is_lost() {
    let rates = MeterRates::Single { committed: 3, committed_burst: 2, excess_burst: 0 };
    let spec = MeterSpec { cells: 1, rates, period: 60, unit: Unit::Packets, aware: false };
    let mut meter = MeterTable::new(spec).expect("a valid spec");
    let mut passes = |now: u64| meter.mark(0, 1_500, Colour::Green, now) == Colour::Green;
    assert_eq!([passes(0), passes(0), passes(0)], [true, true, false]);
    // A token takes 20 seconds, to the nanosecond, however often somebody asks.
    assert!(!passes(20 * SECOND / 3) && !passes(20 * SECOND - 1));
    assert_eq!([passes(20 * SECOND), passes(20 * SECOND)], [true, false]);
    assert_eq!([passes(40 * SECOND - 1), passes(40 * SECOND)], [false, true]);
}

#[test]
fn a_bucket_of_a_long_period_has_room_for_fewer_tokens() {
    let made = |period: u32, burst: u32| {
        let rates = MeterRates::Single { committed: 1, committed_burst: burst, excess_burst: 0 };
        MeterTable::new(MeterSpec { cells: 1, rates, period, unit: Unit::Bytes, aware: false }).err()
    };
    for period in [1, 60, 3_600, MAX_PERIOD] {
        let most = MeterSpec::largest_burst(period) as u32;
        assert_eq!(made(period, most), None);
        if most < u32::MAX {
            let (burst, most) = (most + 1, most.into());
            assert_eq!(made(period, burst), Some(MeterError::LargeBurst { burst, period, most }));
        }
    }
    assert_eq!(made(0, 1), Some(MeterError::Period { period: 0 }));
    assert_eq!(made(MAX_PERIOD + 1, 1), Some(MeterError::Period { period: MAX_PERIOD + 1 }));
}
