//! The experiments that there are: name, what the page says of it, and what it needs.

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExperimentKind {
    /// Programs over captures: packet rate, data rate, throughput.
    SwitchApps,
    /// Partial against full decode.
    Decode,
    /// What single operations cost.
    Operations,
    /// A table of 65,536 entries, learned and looked up at random.
    Learn,
    /// From text to machine code.
    Compile,
    /// Tables apart from programs, beside other libraries.
    Tables,
    /// A router and its kin over whole tables, and what each stage of it costs.
    Router,
    /// A gateway between two hosts, beside others. It needs the right to make networks, so it is not among
    /// [`ALL`](ExperimentKind::ALL).
    Forwarding,
    /// Delays through a gateway by load; as [`Forwarding`](ExperimentKind::Forwarding), not among all.
    Latency,
    /// A gateway under load for a long time; as [`Forwarding`](ExperimentKind::Forwarding), not among all.
    Soak,
    /// What a device makes of batches, by how packets get there: the iterations of the CMU study of 2012. A
    /// device is asked for, so it is not among [`ALL`](ExperimentKind::ALL).
    Transfer,
    /// From which batch and load on a device is faster than one core; as
    /// [`Transfer`](ExperimentKind::Transfer), not among all.
    Crossover,
    /// Policies by which packets are held for a device, measured and simulated, by load; as
    /// [`Transfer`](ExperimentKind::Transfer), not among all.
    Schedule,
    /// Hermes (DAC 2011) on a simulated device. What it tells does not depend on the machine, so it is not
    /// among [`ALL`](ExperimentKind::ALL).
    Hermes,
}

/// All experiments: the name on the command line, and the first sentence of the page.
const EXPERIMENTS: [(ExperimentKind, &str, &str); 14] = [
    (
        ExperimentKind::SwitchApps,
        "switch-apps",
        "Programs over captures on one core: packets a second, bits that came in and bits that were forwarded, beside the same programs written by hand in Rust.",
    ),
    (
        ExperimentKind::Decode,
        "decode",
        "What a packet costs where a program decodes only the fields that it reads, the headers that it names, or every field.",
    ),
    (ExperimentKind::Operations, "operations", "What single operations of the language cost."),
    (ExperimentKind::Learn, "learn", "A table of 65,536 entries that packets fill and look up at random."),
    (ExperimentKind::Compile, "compile", "How long programs take from text to machine code."),
    (
        ExperimentKind::Tables,
        "tables",
        "Tables apart from programs, beside the libraries that one would have taken instead; all answers are compared.",
    ),
    (
        ExperimentKind::Router,
        "router",
        "A router and its kin over whole tables, and what each of its stages costs.",
    ),
    (
        ExperimentKind::Forwarding,
        "forwarding",
        "A gateway between two hosts on virtual cables, beside Linux, DPDK's testpmd and nftables in the same place.",
    ),
    (
        ExperimentKind::Latency,
        "latency",
        "How long packets take through a gateway at parts of the load that it can carry, beside Linux routing.",
    ),
    (
        ExperimentKind::Soak,
        "soak",
        "A gateway for a long time at half load, while programs take over, and under more than it can carry: every packet is accounted for.",
    ),
    (
        ExperimentKind::Transfer,
        "transfer",
        "What a device makes of batches, by the way that packets take to it: the iterations of a study of a router on a GPU (2012), with the study's figures.",
    ),
    (
        ExperimentKind::Crossover,
        "crossover",
        "From which batch and from which load on a device is faster than one core.",
    ),
    (
        ExperimentKind::Schedule,
        "schedule",
        "When packets that wait for a device are handed over: every schedule by load, measured and simulated.",
    ),
    (
        ExperimentKind::Hermes,
        "hermes",
        "The evaluation of Hermes (DAC 2011) on a simulated device, with the paper's figures.",
    ),
];

impl ExperimentKind {
    /// All experiments in memory, in the order in which they are run.
    pub const ALL: [ExperimentKind; 7] = [
        ExperimentKind::SwitchApps,
        ExperimentKind::Decode,
        ExperimentKind::Operations,
        ExperimentKind::Learn,
        ExperimentKind::Compile,
        ExperimentKind::Tables,
        ExperimentKind::Router,
    ];

    /// Whether it runs over packets in memory, on one thread that is best held on one processor. The others
    /// start programs, which would be held there, too.
    pub fn in_memory(self) -> bool {
        ExperimentKind::ALL.contains(&self)
    }

    /// Whether it measures a device, in many short runs.
    pub fn on_device(self) -> bool {
        matches!(self, ExperimentKind::Transfer | ExperimentKind::Crossover | ExperimentKind::Schedule)
    }

    /// The experiment that has this name on the command line.
    pub fn named(name: &str) -> Option<ExperimentKind> {
        EXPERIMENTS.iter().find(|(_, other, _)| *other == name).map(|(kind, ..)| *kind)
    }

    /// The first sentence of its page.
    pub(crate) fn about(self) -> &'static str {
        self.entry().2
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.entry().1
    }

    fn entry(self) -> &'static (ExperimentKind, &'static str, &'static str) {
        // The constant holds every experiment, in the order of the type.
        &EXPERIMENTS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_stands_at_its_place() {
        for (place, (kind, name, _)) in EXPERIMENTS.iter().enumerate() {
            assert_eq!(
                (*kind as usize, kind.name(), ExperimentKind::named(name)),
                (place, *name, Some(*kind))
            );
        }
        assert_eq!(ExperimentKind::named("switch"), None);
    }
}
