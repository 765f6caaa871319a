//! `ravelin policy`: its commands and options, their help and examples.

use super::choices::{FAMILIES, one_of};
use super::socket::Socket;
use clap::{Args, Subcommand};
use import::address::AddressFamily;

/// What to ask about policies.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Find rules that decide about no packet, redundant ones, and pairs whose order decides
    Check(PolicyCheckArguments),
    /// Say which packets a new policy treats otherwise than an old one, in whatever languages they are
    Diff(PolicyDiffArguments),
    /// Say which line decides about a packet, through all jumps
    Why(PolicyWhyArguments),
    /// Run the tests that stand beside the rules
    Test(PolicyTestArguments),
    /// Tell what the rules of a running gateway have counted
    Counts(PolicyCountsArguments),
}

/// How the files of policies are read.
#[derive(Debug, Args)]
pub(crate) struct PolicySource {
    /// The format of the files; given twice, that of the old and of the new one. Recognised by the text if
    /// not given, where that is certain
    #[arg(long = "as", value_name = "FORMAT", value_parser = clap::builder::PossibleValuesParser::new(import::policies::FORMATS))]
    pub(crate) formats: Vec<String>,
    /// Of a program, the policy with this name alone
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    /// The port that the name of an interface stands for; again for each name
    #[arg(long = "interface", value_name = "NAME=PORT", value_parser = interface)]
    pub(crate) interfaces: Vec<(String, u16)>,
    /// The family of the packets, where a file is about one only
    #[arg(long, value_parser = one_of(&FAMILIES), default_value = "v4")]
    pub(crate) family: AddressFamily,
    /// A table of NPF or pf, or a set of iptables, whose addresses stand in a file of their own, an address
    /// or a prefix a line; again for each table. To iptables `addrtype:LOCAL` and the like are the addresses
    /// of a kind
    #[arg(long = "table", value_name = "NAME=FILE", value_parser = table)]
    pub(crate) tables: Vec<(String, String)>,
    /// Skip a first line that is none of the format, as a title, and tell it on standard error
    #[arg(long)]
    pub(crate) skip_title: bool,
    /// Leave the rules of the table `nat` of a dump of iptables aside: the addresses and ports of packets are
    /// those that the chains behind the translation see
    #[arg(long)]
    pub(crate) skip_nat: bool,
    /// Leave rules of a dump of iptables aside that mark packets or connections for others; a rule that asks
    /// for a mark is refused
    #[arg(long)]
    pub(crate) skip_marks: bool,
    /// Leave out lines that cannot be kept, and tell each on standard error; the answer may be another than
    /// the file's
    #[arg(long)]
    pub(crate) lenient: bool,
}

fn interface(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("`{text}` binds no name to a port: write one like eth0=1");
    let (name, port) = text.split_once('=').ok_or_else(wrong)?;
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
    Ok((name.to_owned(), port))
}

fn table(text: &str) -> Result<(String, String), String> {
    let (name, file) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` names no file for a table: write one like admins=admins.txt"))?;
    Ok((name.to_owned(), file.to_owned()))
}

/// `ravelin policy check`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin policy check rules.v4 --interface eth0=1 --interface eth1=2
  ravelin policy check ruleset.json --as nft --json

Exits with 1 if a rule decides about no packet or is redundant: without these rules the file decides the same. Pairs of \
rules whose order decides are told, and change nothing in the exit code.")]
pub(crate) struct PolicyCheckArguments {
    /// The policy: a file, a program, or `unix:SOCKET` of a running gateway; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    #[command(flatten)]
    pub(crate) source: PolicySource,
    /// How many findings of a kind are told
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    pub(crate) most: usize,
    /// Tell also the rules that are exceptions to a more general one
    #[arg(long)]
    pub(crate) exceptions: bool,
}

/// `ravelin policy diff`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin policy diff rules.v4 rules.v4.new --interface eth0=1
  ravelin policy diff rules.v4 ruleset.json --as iptables --as nft
  ravelin policy diff unix:/run/ravelin.sock edge.rav

Exits with 1 if a packet is treated otherwise.")]
pub(crate) struct PolicyDiffArguments {
    /// The old policy: a file, a program, or `unix:SOCKET` of a running gateway
    #[arg(value_name = "OLD")]
    pub(crate) old: String,
    /// The new policy: the same
    #[arg(value_name = "NEW")]
    pub(crate) new: String,
    #[command(flatten)]
    pub(crate) source: PolicySource,
    /// How many classes of packets are told
    #[arg(long, default_value_t = 20, value_name = "COUNT")]
    pub(crate) most: usize,
}

/// `ravelin policy why`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin policy why rules.v4 'tcp 192.0.2.7:1024 > 10.0.0.1:22 in wan' --interface wan=1
  ravelin policy why rules.v4 'udp 10.0.0.0/8 > any:53'
  ravelin policy why rules.v4 'icmp 192.0.2.7 > 10.0.0.1 type 8 to gateway'

What a line leaves out may be anything, but for four things: the state is new, that on the way out is the same, TCP has the \
flags of a first segment, and the packet is no later fragment. Words behind the addresses are in, out, to gateway, from \
gateway, state, out_state, flags, type, code, fragment, dscp, ttl, length and mac.")]
pub(crate) struct PolicyWhyArguments {
    /// The policy: a file, a program, or `unix:SOCKET` of a running gateway; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// The packet, or packets
    #[arg(value_name = "PACKET")]
    pub(crate) packet: String,
    #[command(flatten)]
    pub(crate) source: PolicySource,
}

/// `ravelin policy test`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin policy test rules.v4 --interface wan=1
  ravelin policy test rules.v4 --tests rules.tests

A test is a comment of the policy, or a line of the file of tests:
  # expect pass tcp 192.0.2.7:1024 > 10.0.0.1:22 in wan
  # expect block udp any > 10.0.0.0/8:53
All packets that the line describes must be treated so. Exits with 1 if one is not.")]
pub(crate) struct PolicyTestArguments {
    /// The policy: a file, a program, or `unix:SOCKET` of a running gateway; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// A file of tests, beside those that stand in the policy
    #[arg(long, value_name = "FILE")]
    pub(crate) tests: Option<String>,
    #[command(flatten)]
    pub(crate) source: PolicySource,
}

/// `ravelin policy counts`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin policy counts
  ravelin policy counts --policy edge --json

Rules are told in the order of the text, with the sums of their rows at all workers. Times of the first and the last hit are those of policies with `counted \
times`. With --json, times are nanoseconds since 1970-01-01 UTC.")]
pub(crate) struct PolicyCountsArguments {
    /// The policy with this name alone
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    #[command(flatten)]
    pub(crate) socket: Socket,
}
