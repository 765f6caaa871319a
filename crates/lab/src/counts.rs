//! What a run did with its packets, without its times: what two back ends must agree on before a figure is printed.

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
