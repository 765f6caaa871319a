//! The command line of `ravelin generate routes|addresses|rules|trace|patterns|payload`, which makes entries
//! and queries for tables.

use super::choices::{FAMILIES, FLAVOURS, one_of};
use clap::{Args, Subcommand, ValueEnum};
use import::address::AddressFamily;
use tables::generate::rules::Flavour;

/// What is made instead of a capture.
#[derive(Debug, Subcommand)]
pub(crate) enum GenerateKind {
    /// Routes with the lengths of prefixes of a full Internet table
    #[command(after_help = "Examples:
  ravelin generate routes -o rib.txt
  ravelin generate routes --family v6 --count 160000 --next-hops 64 -o rib6.txt")]
    Routes {
        #[command(flatten)]
        table: RouteTable,
        #[command(flatten)]
        shared: SeedArguments,
    },
    /// Addresses to look up in the routes of the same options
    #[command(after_help = "Examples:
  ravelin generate addresses --traffic zipf --addresses 1000000 -o queries.txt")]
    Addresses {
        #[command(flatten)]
        table: RouteTable,
        /// How the addresses fall on the routes
        #[arg(long, value_enum, default_value_t)]
        traffic: TrafficChoice,
        /// How many addresses
        #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
        addresses: u32,
        #[command(flatten)]
        shared: SeedArguments,
    },
    /// Rules like those of ClassBench
    #[command(after_help = "Examples:
  ravelin generate rules --flavour firewall --count 10000 -o fw.rules")]
    Rules {
        #[command(flatten)]
        rules: RuleShape,
        #[command(flatten)]
        shared: SeedArguments,
    },
    /// Headers to classify by the rules of the same options, with the first rule that fits each
    #[command(after_help = "Examples:
  ravelin generate trace --flavour firewall --count 10000 --headers 20000 -o fw.trace

The last number of a line is the first rule that fits, from 0, or -1: what `ravelin table rules` must answer.")]
    Trace {
        #[command(flatten)]
        rules: RuleShape,
        /// How many headers
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
        headers: u32,
        /// The most times that a header comes in a row
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        repeats: u64,
        /// Headers made without the rules, in per cent
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(..=100))]
        random: u64,
        #[command(flatten)]
        shared: SeedArguments,
    },
    /// Strings to search for
    #[command(after_help = "Examples:
  ravelin generate patterns --count 4000 -o literals.tsv")]
    Patterns {
        #[command(flatten)]
        patterns: PatternShape,
        #[command(flatten)]
        shared: SeedArguments,
    },
    /// Bytes to search, with the strings of the same options planted in them
    #[command(after_help = "Examples:
  ravelin generate payload --count 4000 --bytes 1000000 --planted 2 -o payload.bin")]
    Payload {
        #[command(flatten)]
        patterns: PatternShape,
        /// How many bytes
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..))]
        bytes: u32,
        /// Planted strings for 1024 bytes each, on average
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(..=1024))]
        planted: u64,
        /// Random bytes instead of words, in per cent
        #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(..=100))]
        opaque: u64,
        #[command(flatten)]
        shared: SeedArguments,
    },
}

/// What all kinds share.
#[derive(Debug, Args)]
pub(crate) struct SeedArguments {
    /// What every random choice is made from
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// The file to write; `-` is standard output
    #[arg(short, long, default_value = "-", value_name = "FILE")]
    pub(crate) output: String,
}

/// A generated routing table.
#[derive(Debug, Args)]
pub(crate) struct RouteTable {
    /// Whose addresses
    #[arg(long, value_parser = one_of(&FAMILIES), default_value = "v4")]
    pub(crate) family: AddressFamily,
    /// How many routes
    #[arg(long, default_value_t = 900_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: u32,
    /// How many next hops
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) next_hops: u32,
}

/// How addresses fall on routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrafficChoice {
    /// Every address is as likely as any other
    Uniform,
    /// Every prefix is as likely as any other
    #[default]
    Prefixes,
    /// Few destinations have most of the traffic, by Zipf's law
    Zipf,
}

/// A generated set of rules.
#[derive(Debug, Args)]
pub(crate) struct RuleShape {
    /// What the rules are modelled on
    #[arg(long, value_parser = one_of(&FLAVOURS), default_value = "acl")]
    pub(crate) flavour: Flavour,
    /// How many rules
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: u32,
}

/// Generated strings.
#[derive(Debug, Args)]
pub(crate) struct PatternShape {
    /// How many strings
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub(crate) count: u32,
    /// Strings of which the case does not count, in per cent
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(..=100))]
    pub(crate) nocase: u64,
}
