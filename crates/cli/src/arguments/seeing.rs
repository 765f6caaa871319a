//! The command lines of the commands that look into a running gateway.

use super::socket::Socket;
use clap::Args;
use std::path::PathBuf;

/// `ravelin capture`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin capture 'host 10.0.0.1 and tcp port 80' -o web.pcapng
  ravelin capture verdict == drop --count 10
  ravelin capture arp | tshark -r -

docs/filters.md says what a filter is. Where the output is a terminal, packets are told one a line.")]
pub(crate) struct CaptureArguments {
    /// Which packets; all without it
    #[arg(value_name = "FILTER")]
    pub(crate) filter: Vec<String>,
    /// Where they go, in pcapng format: one interface a port, verdict and reason as comment; standard output
    /// without it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// At most so many packets
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// For so long at most
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: Option<f64>,
    /// So many bytes of each packet at most
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) snap: Option<u32>,
    #[command(flatten)]
    pub(crate) socket: Socket,
}

/// `ravelin why`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin why
  ravelin why 'host 10.0.0.1' --last 3 --steps
  ravelin why 'reason == no_route'

Of each reason the last few packets are kept, of a batch the first. The way through the program is found out on a copy of what its tables hold now.")]
pub(crate) struct WhyArguments {
    /// Which packets; all without it
    #[arg(value_name = "FILTER")]
    pub(crate) filter: Vec<String>,
    /// The last so many
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) last: u64,
    /// With every step of the program
    #[arg(long)]
    pub(crate) steps: bool,
    #[command(flatten)]
    pub(crate) socket: Socket,
}

/// `ravelin trace --live`
#[derive(Debug, Args)]
pub(crate) struct LiveTraceArguments {
    /// Follow the next packets of a running gateway that this filter holds for ('' for any)
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["packet", "input"], group = "which")]
    pub(crate) live: Option<String>,
    /// How many packets, with --live or --filter
    #[arg(long, default_value_t = 1, requires = "which", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: u64,
    /// For how long they are waited for
    #[arg(long, default_value_t = 30.0, requires = "live", value_name = "SECONDS")]
    pub(crate) seconds: f64,
    #[command(flatten)]
    pub(crate) socket: Socket,
}

/// `ravelin top`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin top
  ravelin top --once
  ravelin top --json | head -5

Keys: p pauses, ← and → go back and forth in the last minutes, ? explains, q ends.")]
pub(crate) struct TopArguments {
    /// One picture as text
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) socket: Socket,
}
