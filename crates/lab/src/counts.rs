//! What a run did with its packets, without its times: what two back ends must agree on before a figure is
//! printed.

use engine::report::{PortReport, TableState, Verdicts};
use engine::{Report, Volume};
use std::collections::BTreeMap;

/// Everything that a run counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Packets that arrived.
    pub received: Volume,
    /// Packets that left, each once.
    pub forwarded: Volume,
    /// Every copy that left.
    pub transmitted: Volume,
    /// Packets by the kind of verdict.
    pub verdicts: Verdicts,
    /// Packets dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Packets punted, by reason.
    pub punts: BTreeMap<String, u64>,
    /// What each port saw.
    pub ports: Vec<PortReport>,
    /// The state of tables at the end.
    pub tables: BTreeMap<String, TableState>,
    /// Copies and made packets.
    pub extra: (u64, u64),
}

impl Counts {
    /// The counts of a report.
    pub fn of(report: &Report) -> Counts {
        Counts {
            received: report.received,
            forwarded: report.forwarded,
            transmitted: report.transmitted,
            verdicts: report.verdicts,
            drops: report.drops.clone(),
            punts: report.punts.clone(),
            ports: report.ports.clone(),
            tables: report.tables.clone(),
            extra: (report.copies, report.made),
        }
    }

    /// Adds what a later run of the same processor counted; tables are as they then were.
    pub(crate) fn add(&mut self, later: &Counts) {
        self.received += later.received;
        self.forwarded += later.forwarded;
        self.transmitted += later.transmitted;
        self.verdicts.send += later.verdicts.send;
        self.verdicts.flood += later.verdicts.flood;
        self.verdicts.multicast += later.verdicts.multicast;
        self.verdicts.punt += later.verdicts.punt;
        self.verdicts.drop += later.verdicts.drop;
        for (ours, theirs) in [(&mut self.drops, &later.drops), (&mut self.punts, &later.punts)] {
            theirs.iter().for_each(|(reason, packets)| *ours.entry(reason.clone()).or_default() += packets);
        }
        for (ours, theirs) in self.ports.iter_mut().zip(&later.ports) {
            ours.received += theirs.received;
            ours.transmitted += theirs.transmitted;
            ours.received_bytes += theirs.received_bytes;
            ours.transmitted_bytes += theirs.transmitted_bytes;
        }
        self.tables.clone_from(&later.tables);
        self.extra.0 += later.extra.0;
        self.extra.1 += later.extra.1;
    }

    /// The first thing in which these differ from others, in words.
    pub fn difference(&self, other: &Counts) -> Option<String> {
        let differ = |what: &str, ours: &dyn std::fmt::Debug, theirs: &dyn std::fmt::Debug| {
            Some(format!("{what} {ours:?} is not {theirs:?}"))
        };
        if self.received != other.received {
            return differ("received", &self.received, &other.received);
        }
        if self.verdicts != other.verdicts {
            return differ("verdicts", &self.verdicts, &other.verdicts);
        }
        if self.drops != other.drops {
            return differ("drops", &self.drops, &other.drops);
        }
        if self.tables != other.tables {
            return differ("tables", &self.tables, &other.tables);
        }
        (self != other).then(|| "ports, copies or bytes differ".to_owned())
    }
}
