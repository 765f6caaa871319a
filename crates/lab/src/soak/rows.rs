//! What came of a soak, as rows.

use super::traffic::Arrived;
use super::{Account, Capacity, HALF, OVERLOAD, Overload, Steady, TAKEOVER_LOAD, Takeovers};
use crate::experiment::{Figure, Row};
use std::ops::RangeInclusive;

const PACKETS: &str = "packets";
const LOAD: &str = "sent, of what the gateway carries";
const TIMES: &str = "times";
/// A sender that is held up sends a little less than it is to.
const NEARLY: f64 = 0.9;

impl Capacity {
    pub(super) fn rows(&self) -> Vec<Row> {
        let part = "as much as can be sent, nobody watching";
        let row = |what, values: Vec<f64>| Row::alone(part, what, "Mpps", Figure::of(values), None);
        vec![
            row("what the gateway carries", self.rates.iter().map(|rates| rates.arrived / 1e6).collect()),
            row("sent meanwhile", self.rates.iter().map(|rates| rates.offered / 1e6).collect()),
        ]
    }
}

impl Steady {
    pub(super) fn rows(&self) -> Vec<Row> {
        let part = Part("half load");
        let mut rows = vec![
            part.row("sent in a second", "Mpps", self.rate / 1e6),
            part.load(self.rate, self.capacity, NEARLY * HALF),
            part.row("duration", "s", self.seconds),
        ];
        rows.extend(part.account(&self.account));
        rows.extend(part.arrived(&self.arrived));
        rows.push(part.resident(&self.resident));
        let (start, end) = self.descriptors;
        rows.push(part.row(
            "open descriptors more than at the start",
            "descriptors",
            end as f64 - start as f64,
        ));
        rows
    }
}

impl Takeovers {
    pub(super) fn rows(&self) -> Vec<Row> {
        let part = Part("programs take over at 80 % load");
        let Arrived { missing, unseen, .. } = self.arrived;
        let (before, behind) = self.lost;
        let mut rows = vec![
            part.row("sent in a second", "Mpps", self.rate / 1e6),
            part.load(self.rate, self.capacity, NEARLY * TAKEOVER_LOAD),
            part.row("duration", "s", self.seconds),
            part.row("programs that took over", "programs", self.programs as f64),
            part.row("slowest takeover, from asking to the answer", "ms", self.slowest_answer_ms),
            part.packets("sent", self.sent),
            part.packets("lost before the program under a name", before),
            part.packets("lost behind it under a name", behind),
        ];
        rows.extend(part.arrived(&self.arrived));
        rows.push(part.unaccounted(missing == before + behind + unseen));
        rows
    }
}

impl Overload {
    pub(super) fn rows(&self) -> Vec<Row> {
        let part = Part("three times what it can carry");
        let mut rows = vec![
            part.row("sent in a second", "Mpps", self.rate / 1e6),
            part.load(self.rate, self.capacity, OVERLOAD),
            part.row("duration", "s", self.seconds),
        ];
        rows.extend(part.account(&self.account));
        rows.push(part.row("slowest answer of control", "ms", self.slowest_answer_ms));
        rows.push(part.resident(&self.resident));
        rows.extend(Part("half load a second after the overload").arrived(&self.after));
        rows
    }
}

/// A part of the soak, by its name.
struct Part(&'static str);

impl Part {
    fn row(&self, what: &str, unit: &str, value: f64) -> Row {
        Row::alone(self.0, what, unit, Figure::of([value]), None)
    }

    /// What was sent, of what the gateway carries. No figure, and so a failure of the command, where it was
    /// less than it was to be at least.
    fn load(&self, rate: f64, capacity: f64, least: f64) -> Row {
        let times = rate / capacity;
        if times >= least {
            return self.row(LOAD, TIMES, times);
        }
        let why = format!(
            "only {times:.2} times what the gateway carries could be sent, and {least:.2} times was wanted at least"
        );
        Row::refused(self.0, LOAD, TIMES, &why)
    }

    fn packets(&self, what: &str, count: u64) -> Row {
        self.row(what, PACKETS, count as f64)
    }

    fn account(&self, account: &Account) -> Vec<Row> {
        vec![
            self.packets("sent", account.sent),
            self.packets("lost before the program under a name", account.lost_before),
            self.packets("received", account.received),
            self.packets("forwarded", account.forwarded),
            self.packets("dropped", account.dropped),
            self.packets("punted", account.punted),
            self.packets("transmitted", account.transmitted),
            self.packets("lost behind the program under a name", account.lost_behind),
            self.packets("arrived at the other host's interface", account.arrived),
            self.unaccounted(account.exact()),
        ]
    }

    fn arrived(&self, arrived: &Arrived) -> Vec<Row> {
        vec![
            self.packets("missing at the other host", arrived.missing),
            self.packets(
                "among them counted by its interface, but missed by whoever watches",
                arrived.unseen,
            ),
            self.packets("late within their flow", arrived.late),
        ]
    }

    /// No figure, and so a failure of the command, where not every packet is somewhere.
    fn unaccounted(&self, exact: bool) -> Row {
        let what = "in no account";
        if exact { self.packets(what, 0) } else { Row::refused(self.0, what, PACKETS, "the sums differ") }
    }

    fn resident(&self, kibibytes: &RangeInclusive<u64>) -> Row {
        let figure = Figure::of([kibibytes.start(), kibibytes.end()].map(|end| *end as f64 / 1024.0));
        Row::alone(self.0, "resident memory", "MiB", figure, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_is_nowhere_takes_the_figure_away() {
        let mut takeovers = Takeovers {
            capacity: 2e6,
            rate: 1.5e6,
            seconds: 1.0,
            programs: 10,
            slowest_answer_ms: 9.0,
            sent: 100,
            lost: (3, 2),
            arrived: Arrived { packets: 94, missing: 6, unseen: 1, late: 0 },
        };
        assert!(takeovers.rows().iter().all(|row| row.ours.is_some()));
        takeovers.arrived.missing += 1;
        let rows = takeovers.rows();
        let nowhere: Vec<_> = rows.iter().filter(|row| row.ours.is_none()).collect();
        assert!(nowhere.len() == 1 && nowhere[0].what.starts_with("in no account"), "{nowhere:?}");
    }

    #[test]
    fn an_overload_that_was_none_has_no_figure() {
        let overload = |rate| Overload {
            capacity: 1e5,
            rate,
            seconds: 1.0,
            account: Account::default(),
            slowest_answer_ms: 1.0,
            resident: 1..=1,
            after: Arrived::default(),
        };
        let missing = |rate| overload(rate).rows().into_iter().filter(|row| row.ours.is_none()).count();
        assert_eq!((missing(3.0e5), missing(2.9e5)), (0, 1));
    }
}
