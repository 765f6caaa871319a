//! `ravelin export`: its options, their help and examples.

use super::choices::{DECISIONS, one_of};
use super::policy::PolicySource;
use super::table::RuleSource;
use clap::{Args, Subcommand};

/// A format to write.
#[derive(Debug, Subcommand)]
pub(crate) enum ExportKind {
    /// Rules as nftables
    Nft(NftArguments),
    /// A whole policy as a ruleset of nftables
    Ruleset(RulesetArguments),
    /// A whole policy as a configuration of NPF
    Npf(NpfArguments),
}

/// `ravelin export npf`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin export npf pf.conf --as pf --interface em0=1 --interface em1=2
  ravelin export npf npf.conf --as npf --skip-title --interface NW=1

A rule that NPF cannot say is refused at its line; what is written decides the same about every packet.")]
pub(crate) struct NpfArguments {
    /// The policy; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    #[command(flatten)]
    pub(crate) source: PolicySource,
}

/// `ravelin export ruleset`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin export ruleset rules.v4 --interface eth0=1 --interface eth1=2 | nft -c -f -
  ravelin export ruleset router.conf --as ios --interface Gi0/1=1 --as-json

A rule that nftables cannot say is refused at its line; what is written decides the same about every packet. It becomes \
the table `inet ravelin` in place of what was in it. Tables of others are not touched, and their chains still decide, too.")]
pub(crate) struct RulesetArguments {
    /// The policy; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    #[command(flatten)]
    pub(crate) source: PolicySource,
    /// Write JSON for `nft -j -f` instead of text for `nft -f`
    #[arg(long)]
    pub(crate) as_json: bool,
}

/// `ravelin export nft`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin export nft programs/router.rav --rules acl | nft -c -f -
  ravelin export nft iptables.dump --chain FORWARD --as-json

Of a program, a table of `rules` is written whose columns have the names src, dst, sport, dport, proto, icmp_type, icmp_code, tcp_flags, in_port, \
out_port, src_mac or fragment, and whose value says permit, accept, pass or allow, or else deny, drop, reject or block.")]
pub(crate) struct NftArguments {
    /// A program (.rav), rules of ClassBench or IOS, or an iptables dump, of which FORWARD, INPUT or OUTPUT
    /// of `filter`
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// Which table of the program; needed if there are several
    #[arg(long, value_name = "NAME")]
    pub(crate) rules: Option<String>,
    #[command(flatten)]
    pub(crate) source: RuleSource,
    /// What happens to packets that no rule fits, where the file does not say
    #[arg(long, value_parser = one_of(&DECISIONS))]
    pub(crate) default: Option<bool>,
    /// What happens to packets that a rule fits, where the file does not say
    #[arg(long, value_parser = one_of(&DECISIONS))]
    pub(crate) decision: Option<bool>,
    /// Write JSON for `nft -j -f` instead of text for `nft -f`
    #[arg(long)]
    pub(crate) as_json: bool,
}
