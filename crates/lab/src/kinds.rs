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
    /// Connections of TCP in memory: new ones, opened ones and segments of open ones.
    Connections,
    /// Policies: beside the same rules as a table, with connections, and from text to the first packet.
    Policy,
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
    /// Set-ups of names by load (AVES, USENIX 2001), simulated; as [`Hermes`](ExperimentKind::Hermes), not
    /// among all.
    Naming,
    /// Routes that FRR learns by BGP, beside the kernel's own table; as
    /// [`Forwarding`](ExperimentKind::Forwarding), not among all.
    Routes,
    /// A TCP stream with the gateway's own address, and forwarded packets beside it; as
    /// [`Forwarding`](ExperimentKind::Forwarding), not among all.
    HostTraffic,
    /// From an initiator by waypoint and gateway to a host, beside other ways that lead there; as
    /// [`Forwarding`](ExperimentKind::Forwarding), not among all.
    NamingPath,
    /// A TCP stream through a gateway as one process and split into confined ones, by policy; as
    /// [`Forwarding`](ExperimentKind::Forwarding), not among all.
    Trusted,
    /// A TCP stream between hosts while the container floods, or another part of the gateway dies or is full;
    /// as [`Forwarding`](ExperimentKind::Forwarding), not among all.
    Availability,
}

/// An experiment in words.
struct Entry {
    kind: ExperimentKind,
    /// On the command line.
    name: &'static str,
    /// What the command line's help says of it.
    help: &'static str,
    /// The first sentence of its page.
    about: &'static str,
}

/// All experiments, in the order of the type.
const EXPERIMENTS: [Entry; 22] = [
    Entry {
        kind: ExperimentKind::SwitchApps,
        name: "switch-apps",
        help: "Packet rate, data rate and throughput of four programs, beside hand-written Rust",
        about: "Programs over captures on one core: packets a second, bits that came in and bits that were forwarded, beside the same programs written by hand in Rust.",
    },
    Entry {
        kind: ExperimentKind::Decode,
        name: "decode",
        help: "How much slower it is to decode every field than those that are used",
        about: "What a packet costs where a program decodes only the fields that it reads, the headers that it names, or every field.",
    },
    Entry {
        kind: ExperimentKind::Operations,
        name: "operations",
        help: "What a lookup, an insert, a field read and the like cost",
        about: "What single operations of the language cost.",
    },
    Entry {
        kind: ExperimentKind::Learn,
        name: "learn",
        help: "A table of 65,536 addresses, learned and looked up at random",
        about: "A table of 65,536 entries that packets fill and look up at random.",
    },
    Entry {
        kind: ExperimentKind::Compile,
        name: "compile",
        help: "How long it takes from text to machine code",
        about: "How long programs take from text to machine code.",
    },
    Entry {
        kind: ExperimentKind::Tables,
        name: "tables",
        help: "Lookups a second in each kind of table, building, changing and memory; with --peers beside other libraries",
        about: "Tables apart from programs, beside the libraries that one would have taken instead; all answers are compared.",
    },
    Entry {
        kind: ExperimentKind::Router,
        name: "router",
        help: "A router and its kin over a whole Internet table and rules: packets a second, and what each stage costs",
        about: "A router and its kin over whole tables, and what each of its stages costs.",
    },
    Entry {
        kind: ExperimentKind::Connections,
        name: "connections",
        help: "100,000 and a million connections through stateful: new ones, opened ones, and segments of open ones",
        about: "A stateful firewall on one core, with 100,000 and a million connections of TCP.",
    },
    Entry {
        kind: ExperimentKind::Policy,
        name: "policy",
        help: "Policies: packets a second beside the same rules as a table, with 100,000 connections, and the time from text to the first packet",
        about: "Policies on one core, beside the same rules as a table; with connections that they keep; and how soon large ones are ready.",
    },
    Entry {
        kind: ExperimentKind::Forwarding,
        name: "forwarding",
        help: "Two hosts with a gateway between them: TCP, UDP and ping beside Linux, DPDK and nftables; needs the right to make networks",
        about: "A gateway between two hosts on virtual cables, beside Linux, DPDK's testpmd and nftables in the same place.",
    },
    Entry {
        kind: ExperimentKind::Latency,
        name: "latency",
        help: "How long packets take through a gateway at parts of the load that it carries, by when the packet loop takes them",
        about: "How long packets take through a gateway at parts of the load that it can carry, beside Linux routing.",
    },
    Entry {
        kind: ExperimentKind::Soak,
        name: "soak",
        help: "A gateway for ten minutes (--seconds) at half load, and a minute each while programs take over and under three times what it can carry",
        about: "A gateway for a long time at half load, while programs take over, and under more than it can carry: every packet is accounted for.",
    },
    Entry {
        kind: ExperimentKind::Transfer,
        name: "transfer",
        help: "What a device makes of batches of 8 to 65,536 packets, by how packets get there: the iterations of a study of 2012, beside its figures",
        about: "What a device makes of batches, by the way that packets take to it: the iterations of a study of a router on a GPU (2012), with the study's figures.",
    },
    Entry {
        kind: ExperimentKind::Crossover,
        name: "crossover",
        help: "From which batch and from which load on a device is faster than one core, program by program, and whether the cost model finds out",
        about: "From which batch and from which load on a device is faster than one core.",
    },
    Entry {
        kind: ExperimentKind::Schedule,
        name: "schedule",
        help: "Policies by which packets are held for a device: throughput and delays by load, measured and simulated; and bursts",
        about: "When packets that wait for a device are handed over: every schedule by load, measured and simulated.",
    },
    Entry {
        kind: ExperimentKind::Hermes,
        name: "hermes",
        help: "Hermes (DAC 2011): warps issued as packets come and committed in order, beside batches over a bus, on a simulated device",
        about: "The evaluation of Hermes (DAC 2011) on a simulated device, with the paper's figures.",
    },
    Entry {
        kind: ExperimentKind::Naming,
        name: "naming",
        help: "AVES (USENIX 2001): how many set-ups of names succeed by load, simulated and in real time, beside the paper's random choice and Erlang's formula; what a set-up takes step by step; plain answers beside NSD; and what packets take in programs and cipher, by size and with many bindings",
        about: "How many set-ups of names succeed by load with few public addresses, beside the paper's random choice (AVES, USENIX 2001) and Erlang's formula; what a set-up takes step by step; plain answers beside NSD; and in memory what a packet takes in the programs and in the cipher, by its size and with many bindings.",
    },
    Entry {
        kind: ExperimentKind::Routes,
        name: "routes",
        help: "10,000 to 900,000 routes by BGP with FRR: how soon the gateway has them, beside the kernel, and whether packets are lost",
        about: "How soon a gateway has the routes that FRR learns by BGP, beside the kernel's own table.",
    },
    Entry {
        kind: ExperimentKind::HostTraffic,
        name: "host-traffic",
        help: "A TCP stream between a host and the gateway's own address, beside one with Linux, and what forwarded packets lose by it",
        about: "A TCP stream between a host and the gateway's own address, beside one with Linux over the same kind of cable, and forwarded packets meanwhile.",
    },
    Entry {
        kind: ExperimentKind::NamingPath,
        name: "naming-path",
        help: "From an initiator to a host behind its carrier's NAT by waypoint and gateway: TCP and UDP beside Linux routing, VXLAN, boringtun, wireguard-go and rathole",
        about: "What gets from an initiator to a host behind its carrier's NAT by waypoint and gateway, beside other ways that lead there.",
    },
    Entry {
        kind: ExperimentKind::Trusted,
        name: "trusted",
        help: "A TCP stream through a gateway as one process and split into confined ones, by nine policies of NPF, by rules and by streams; beside a cable and Linux",
        about: "What a gateway that is split into confined processes costs a TCP stream, by policy: the method of TrustedGateway (RAID 2022).",
    },
    Entry {
        kind: ExperimentKind::Availability,
        name: "availability",
        help: "What a TCP stream between two hosts loses while the router's container floods or takes all memory, and while other processes of the gateway stop, die, or find the disk full",
        about: "What a TCP stream through a gateway of confined processes loses while something around its core floods, stops, dies or is full.",
    },
];

impl ExperimentKind {
    /// All experiments in memory, in the order in which they are run.
    pub const ALL: [ExperimentKind; 9] = [
        ExperimentKind::SwitchApps,
        ExperimentKind::Decode,
        ExperimentKind::Operations,
        ExperimentKind::Learn,
        ExperimentKind::Compile,
        ExperimentKind::Tables,
        ExperimentKind::Router,
        ExperimentKind::Connections,
        ExperimentKind::Policy,
    ];

    /// Every experiment, whether in memory or not.
    pub fn every() -> impl Iterator<Item = ExperimentKind> {
        EXPERIMENTS.iter().map(|entry| entry.kind)
    }

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
        ExperimentKind::every().find(|kind| kind.name() == name)
    }

    /// The first sentence of its page.
    pub(crate) fn about(self) -> &'static str {
        self.entry().about
    }

    /// What the command line's help says of it.
    pub fn help(self) -> &'static str {
        self.entry().help
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    fn entry(self) -> &'static Entry {
        &EXPERIMENTS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_stands_at_its_place() {
        for (place, kind) in ExperimentKind::every().enumerate() {
            assert_eq!((kind as usize, ExperimentKind::named(kind.name())), (place, Some(kind)));
        }
        assert_eq!(ExperimentKind::named("switch"), None);
    }
}
