//! Packets in memory until they are a task: how fast they come, and how long the first may wait for a warp to
//! fill.
//!
//! A full warp is a task at once. Fewer packets are one when they have waited for *k* warp arrival times,
//! that is, for as long as *k* warps take to fill at the rate at which packets come: then it is unlikely that
//! waiting longer fills it. The rate is given, or taken from the packets that came, and the wait is held
//! between two limits.

/// How fast packets are taken to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// It is known: so many picoseconds from one packet to the next.
    Fixed {
        /// Picoseconds; at least 1.
        gap: u64,
    },
    /// That of the last so many packets that came.
    Window {
        /// How many; at least 1.
        packets: u32,
    },
    /// A mean in which a packet counts for 2^-`shift`, the one before it for as much of the rest, and so on;
    /// those more than 8 × 2^`shift` packets ago, which would count for less than a thousandth together, for
    /// nothing.
    Average {
        /// From 0 to 8.
        shift: u32,
    },
}

/// When fewer packets than a warp are a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flush {
    /// After so many warp arrival times, in quarters: 8 is two.
    pub quarters: u32,
    /// How fast packets come.
    pub rate: Rate,
    /// Never before so many nanoseconds have passed.
    pub least: u64,
    /// Never later than so many.
    pub most: u64,
}

/// Packets that wait, and what is known of those that came.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    warp: u8,
    flush: Flush,
    waiting: u64,
    /// The first of them that would be left over came no later.
    since: u64,
    latest: u64,
    began: bool,
    /// Picoseconds from packet to packet; none until two have come.
    gap: Option<u64>,
    /// When the window began, and how many came in it.
    window: (u64, u64),
}

impl Arrivals {
    pub(super) fn new(warp: u8, flush: Flush) -> Arrivals {
        let gap = if let Rate::Fixed { gap } = flush.rate { Some(gap) } else { None };
        Arrivals { warp, flush, waiting: 0, since: 0, latest: 0, began: false, gap, window: (0, 0) }
    }

    pub(super) fn warp(&self) -> u8 {
        self.warp
    }

    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Whether a whole warp waits.
    pub(super) fn is_full(&self) -> bool {
        self.waiting >= self.warp.into()
    }

    pub(super) fn arrive(&mut self, now: u64, packets: u32) {
        if packets == 0 {
            return;
        }
        let now = now.max(self.latest);
        if self.began {
            self.learn(now, packets);
        } else {
            self.window = (now, 0);
        }
        if self.waiting == 0 {
            self.since = now;
        }
        self.began = true;
        self.latest = now;
        self.waiting += u64::from(packets);
    }

    fn learn(&mut self, now: u64, packets: u32) {
        // A pause longer than the longest wait says no more than one as long as it.
        let longest = self.flush.most.saturating_mul(1000);
        match self.flush.rate {
            Rate::Fixed { .. } => {}
            Rate::Window { packets: wanted } => {
                self.window.1 += u64::from(packets);
                if self.window.1 >= u64::from(wanted) {
                    let passed = (now - self.window.0).saturating_mul(1000);
                    self.gap = Some((passed / self.window.1).min(longest));
                    self.window = (now, 0);
                }
            }
            Rate::Average { shift } => {
                let passed = (now - self.latest).saturating_mul(1000);
                let sample = (passed / u64::from(packets)).min(longest);
                let mut gap = self.gap.unwrap_or(sample);
                // Of a crowd each packet counts, up to as many as leave nothing of what was before.
                for _ in 0..packets.min(8 << shift) {
                    gap = if sample < gap {
                        gap - ((gap - sample) >> shift)
                    } else {
                        gap + ((sample - gap) >> shift)
                    };
                }
                self.gap = Some(gap);
            }
        }
    }

    /// How long fewer packets than a warp wait, in nanoseconds.
    pub(super) fn interval(&self) -> u64 {
        let Some(gap) = self.gap else { return self.flush.least };
        let warps = gap.saturating_mul(self.warp.into()).saturating_mul(self.flush.quarters.into()) / 4000;
        warps.clamp(self.flush.least, self.flush.most)
    }

    /// When what waits is a task.
    pub(super) fn due(&self) -> Option<u64> {
        match self.waiting {
            0 => None,
            _ if self.is_full() => Some(self.latest),
            _ => Some(self.since.saturating_add(self.interval())),
        }
    }

    /// The packets of the next task, if there is one now.
    pub(super) fn take(&mut self, now: u64) -> Option<u8> {
        if self.due()? <= now { self.take_all() } else { None }
    }

    /// The packets of the next task, however few.
    pub(super) fn take_all(&mut self) -> Option<u8> {
        let packets = self.waiting.min(self.warp.into()) as u8;
        self.waiting -= u64::from(packets);
        // What is left over came last.
        self.since = self.latest;
        (packets > 0).then_some(packets)
    }

    /// All that wait.
    pub(super) fn take_rest(&mut self) -> u64 {
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(rate: Rate) -> Arrivals {
        Arrivals::new(32, Flush { quarters: 8, rate, least: 100, most: 100_000 })
    }

    #[test]
    fn a_full_warp_does_not_wait_and_fewer_wait_for_two_warp_arrival_times() {
        // 10 ns a packet: a warp takes 320 ns.
        let mut some = arrivals(Rate::Fixed { gap: 10_000 });
        some.arrive(5, 31);
        assert_eq!((some.due(), some.take(644)), (Some(645), None));
        some.arrive(644, 1);
        assert_eq!(some.take(644), Some(32));
        some.arrive(700, 7);
        assert_eq!((some.take(1339), some.take(1340), some.due()), (None, Some(7), None));
    }

    #[test]
    fn what_is_left_over_waits_from_when_it_came() {
        let mut some = arrivals(Rate::Fixed { gap: 10_000 });
        some.arrive(0, 30);
        some.arrive(600, 10);
        assert_eq!((some.take(600), some.take(640), some.due()), (Some(32), None, Some(1240)));
    }

    #[test]
    fn the_rate_is_found_and_limits_hold() {
        for rate in [Rate::Window { packets: 64 }, Rate::Average { shift: 4 }] {
            let mut some = arrivals(rate);
            assert_eq!(some.interval(), 100, "nothing is known yet");
            let mut now = 0;
            for gap in [20, 500, 1, 1_000_000, 20] {
                for _ in 0..256 {
                    now += gap;
                    some.arrive(now, 1);
                }
                let wanted = (64 * gap).clamp(100, 100_000);
                let off = some.interval().abs_diff(wanted);
                assert!(off * 50 <= wanted, "{rate:?} at {gap} ns: {} and not {wanted}", some.interval());
                some.take_rest();
            }
        }
    }

    #[test]
    fn a_crowd_counts_as_its_packets() {
        for shift in [0, 3, 6, 8] {
            let mut crowds = arrivals(Rate::Average { shift });
            let mut packets = arrivals(Rate::Average { shift });
            let mut now = 0;
            for (crowd, gap) in [(1, 50), (64, 20), (1000, 9), (7, 300), (5000, 40)] {
                for _ in 0..crowd {
                    now += gap;
                    packets.arrive(now, 1);
                }
                crowds.arrive(now, crowd);
                let (one, other) = (crowds.interval(), packets.interval());
                assert!(one.abs_diff(other) * 200 <= other, "{shift}, {crowd}: {one} and not {other}");
            }
        }
    }
}
