//! `ravelin table`: its options, their help and examples.

use super::choices::{FAMILIES, one_of};
use super::table_live::{
    AddArguments, DefaultArguments, MemberArguments, RemoveArguments, ReplaceArguments, ShowTableArguments,
    WatchArguments,
};
use clap::{Args, Subcommand, ValueEnum};
use import::address::AddressFamily;

/// What is done with a table: of a running gateway, or of a file.
#[derive(Debug, Subcommand)]
pub(crate) enum TableCommand {
    /// Show the tables of a running gateway and their entries
    Show(ShowTableArguments),
    /// Add entries to a table of a running gateway
    Add(AddArguments),
    /// Remove entries from a table of a running gateway
    Remove(RemoveArguments),
    /// Replace all entries of a table of a running gateway at once
    Replace(ReplaceArguments),
    /// Show, set or clear the default entry of a table of a running gateway
    Default(DefaultArguments),
    /// Add members to a group of a running gateway
    Join(MemberArguments),
    /// Remove members from a group of a running gateway
    Leave(MemberArguments),
    /// Tell the events of a running gateway, and packets that it punts
    Watch(WatchArguments),
    /// Routes: the longest prefix that contains an address
    Lpm(LpmArguments),
    /// Rules: the first that fits a packet
    Rules(RulesArguments),
    /// Patterns: all that occur in the payloads of a capture
    Patterns(PatternsArguments),
}

/// What all kinds of tables are asked.
#[derive(Debug, Args)]
pub(crate) struct LookupArguments {
    /// The file the table is filled from; `-` is standard input. Files may be compressed with gzip or zstd
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// The file of queries; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) lookup: String,
    /// Print how long it took to build, the bytes, and the lookups a second on standard error
    #[arg(long)]
    pub(crate) stats: bool,
}

/// `ravelin table lpm`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin table lpm rib4.txt.gz --lookup addresses.txt --bulk --stats
  zcat rib6.txt.gz | ravelin table lpm - --lookup addresses.txt

A query is the first word of its line, an address. The answer: the address, its next hop and the prefix that matched, or `-` if none did.")]
pub(crate) struct LpmArguments {
    #[command(flatten)]
    pub(crate) lookup: LookupArguments,
    /// The format of the routes; recognised by their start if not given
    #[arg(long, value_enum)]
    pub(crate) format: Option<RouteFormat>,
    /// Which routes of an MRT dump
    #[arg(long, value_parser = one_of(&FAMILIES), default_value = "v4")]
    pub(crate) family: AddressFamily,
    /// Look up in an ordered map that is slow and obviously right
    #[arg(long)]
    pub(crate) linear: bool,
    /// Look up many addresses at once
    #[arg(long, conflicts_with = "linear")]
    pub(crate) bulk: bool,
    /// Use the variant with the fewest bytes
    #[arg(long, conflicts_with = "linear")]
    pub(crate) compact: bool,
}

/// A format of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RouteFormat {
    /// `prefix next-hop` lines
    Text,
    /// TABLE_DUMP_V2 of a route collector
    Mrt,
    /// `show ip cef` of IOS
    Cef,
}

/// `ravelin table rules`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin table rules acl1_10k.rules --lookup acl1_10k.trace --bulk --stats
  ravelin table rules iptables.dump --chain FORWARD --first-packets --lenient --lookup packets.txt
  ravelin table rules router.conf --chain 101 --lookup packets.txt

A query is a line `src dst sport dport proto [column=value …]`. The answer to filters of ClassBench: the first rule that fits, from 0, or -1. To other rules: \
the same, then its line, then `pass`, `drop` or `-`; if none fits, -1, `-` and the policy.")]
pub(crate) struct RulesArguments {
    #[command(flatten)]
    pub(crate) lookup: LookupArguments,
    #[command(flatten)]
    pub(crate) source: RuleSource,
    /// Try one rule after the other
    #[arg(long)]
    pub(crate) linear: bool,
    /// Look up many packets at once
    #[arg(long, conflicts_with = "linear")]
    pub(crate) bulk: bool,
}

/// Which rules of a file, and how strictly they are read.
#[derive(Debug, Args)]
pub(crate) struct RuleSource {
    /// The format of the rules; recognised by their start if not given
    #[arg(long, value_enum)]
    pub(crate) format: Option<RuleFormat>,
    /// The table of a dump
    #[arg(long, default_value = "filter", value_name = "NAME")]
    pub(crate) table: String,
    /// The chain of a dump (FORWARD or forward if not given), or the access list of a configuration
    #[arg(long, value_name = "NAME")]
    pub(crate) chain: Option<String>,
    /// The family of the packets
    #[arg(long, value_parser = one_of(&FAMILIES), default_value = "v4")]
    pub(crate) family: AddressFamily,
    /// An interface; name all of them if the dump has names that end in `+` or `*`
    #[arg(long = "interface", value_name = "NAME")]
    pub(crate) interfaces: Vec<String>,
    /// Read the rules for the first packet of a connection, so that matches on a connection's state are known
    #[arg(long)]
    pub(crate) first_packets: bool,
    /// Leave out lines that cannot be kept, and tell each on standard error; what is left may decide
    /// otherwise
    #[arg(long)]
    pub(crate) lenient: bool,
}

/// A format of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuleFormat {
    /// Filters of ClassBench
    Classbench,
    /// iptables-save or ip6tables-save
    Iptables,
    /// `nft -j list ruleset`
    Nft,
    /// A configuration of IOS
    Ios,
}

/// `ravelin table patterns`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin table patterns literals.tsv.gz --lookup traffic.pcap.zst --stats
  ravelin table patterns community.rules --lookup traffic.pcap --bloom

The payloads of TCP and UDP are searched. The answer has a line for each packet with a hit: its number from 1, the occurrences, the \
different patterns, and their ids. A pattern's id is its place in the list; of rules, the place of the content.")]
pub(crate) struct PatternsArguments {
    #[command(flatten)]
    pub(crate) lookup: LookupArguments,
    /// The format of the patterns; recognised by their start if not given
    #[arg(long, value_enum)]
    pub(crate) format: Option<PatternFormat>,
    /// Refuse rules that ask for more than a search for strings can mean
    #[arg(long)]
    pub(crate) strict: bool,
    /// Search for one pattern after the other
    #[arg(long)]
    pub(crate) linear: bool,
    /// Search with Hermes' Bloom filter, each hit confirmed
    #[arg(long, conflicts_with = "linear")]
    pub(crate) bloom: bool,
}

/// A format of patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PatternFormat {
    /// `id nocase length bytes number` lines
    Literals,
    /// Rules of Snort or Suricata
    Snort,
}
