//! Times of captures in nanoseconds: any unit, any offset, never an overflow.

/// How the numbers of an interface's clock become nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    unit: Unit,
    /// Seconds to add.
    offset: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// A unit is so many nanoseconds.
    Nanoseconds(u64),
    /// So many units are a nanosecond; 0 stands for more than any clock can count.
    PerNanosecond(u128),
    /// A unit is a second divided by two to this power.
    SecondShifted(u32),
}

impl Clock {
    /// Microseconds, the unit of an interface that names none.
    pub(super) const MICROSECONDS: Clock = Clock { unit: Unit::Nanoseconds(1_000), offset: 0 };

    /// The clock of the options `if_tsresol` and `if_tsoffset` of pcapng: a power of ten, or of two with the
    /// top bit set, and seconds.
    pub(super) fn new(resolution: u8, offset: i64) -> Clock {
        let power = u32::from(resolution & 0x7f);
        let unit = if resolution & 0x80 != 0 {
            Unit::SecondShifted(power)
        } else if power <= 9 {
            Unit::Nanoseconds(10_u64.pow(9 - power))
        } else {
            Unit::PerNanosecond(10_u128.checked_pow(power - 9).unwrap_or(0))
        };
        Clock { unit, offset }
    }

    /// `count` units as nanoseconds since 1970, not below 0 and not above the largest number.
    #[inline]
    pub(super) fn nanoseconds(self, count: u64) -> u64 {
        match self {
            Clock { unit: Unit::Nanoseconds(unit), offset: 0 } => count.saturating_mul(unit),
            _ => self.nanoseconds_in_full(count),
        }
    }

    fn nanoseconds_in_full(self, count: u64) -> u64 {
        let count = u128::from(count);
        let elapsed = match self.unit {
            Unit::Nanoseconds(unit) => count * u128::from(unit),
            Unit::PerNanosecond(units) => count.checked_div(units).unwrap_or(0),
            Unit::SecondShifted(shift) => (count * 1_000_000_000) >> shift,
        };
        // Below 2^94 plus below 2^93, so the sum fits.
        let time = elapsed as i128 + i128::from(self.offset) * 1_000_000_000;
        u64::try_from(time.max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten() {
        assert_eq!(Clock::new(6, 0), Clock::MICROSECONDS);
        assert_eq!(Clock::new(0, 0).nanoseconds(5), 5_000_000_000);
        assert_eq!(Clock::new(9, 0).nanoseconds(5), 5);
        assert_eq!(Clock::new(12, 0).nanoseconds(5_999), 5);
        assert_eq!(Clock::new(127, 0).nanoseconds(u64::MAX), 0);
        assert_eq!(Clock::new(0, 0).nanoseconds(u64::MAX), u64::MAX);
    }

    #[test]
    fn powers_of_two() {
        assert_eq!(Clock::new(0x80, 0).nanoseconds(2), 2_000_000_000);
        assert_eq!(Clock::new(0x8a, 0).nanoseconds(512), 500_000_000);
        assert_eq!(Clock::new(0xff, 0).nanoseconds(u64::MAX), 0);
    }

    #[test]
    fn offsets_saturate_at_both_ends() {
        assert_eq!(Clock::new(6, 10).nanoseconds(1), 10_000_001_000);
        assert_eq!(Clock::new(6, -1).nanoseconds(1_500_000), 500_000_000);
        assert_eq!(Clock::new(6, i64::MIN).nanoseconds(u64::MAX), 0);
        assert_eq!(Clock::new(0, i64::MAX).nanoseconds(u64::MAX), u64::MAX);
    }
}
