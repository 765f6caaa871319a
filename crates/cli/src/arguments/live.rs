//! The command lines of the commands that run a gateway and ask one that runs.

use super::BackEndChoice;
use super::front::Reached;
use super::schedule::ScheduleArguments;
use super::socket::Socket;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// How many classes of packets are told of each policy where another number is not said.
pub(crate) const MOST_CLASSES: usize = 20;

/// `ravelin serve`
#[derive(Debug, Args)]
#[command(after_help = "The file names a program and the interfaces that are its ports, in order:

  program = \"firewall.rav\"
  [[port]]
  interface = \"eth0\"
  [[port]]
  interface = \"eth1\"

Examples:
  ravelin serve gateway.toml
  ravelin serve gateway.toml --check
  ravelin serve gateway.toml --trusted
  ravelin serve gateway.toml --trusted --native
  ravelin serve gateway.toml --one-process
  ravelin serve gateway.toml --back-end auto --schedule cost

Where the file and the machine allow it, a gateway is several processes. The one that runs packets has no rights. \
Otherwise it is one process. Its first line on standard error says why. A file with `[trust]` or a VNIC does not start \
then. `--json`, `--back-end` and `--schedule` are for one process alone.")]
pub(crate) struct ServeArguments {
    /// The file that describes the gateway
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Only say whether the file and its program are right
    #[arg(long)]
    pub(crate) check: bool,
    /// Run packets in a confined process, apart from everything else, or do not start
    #[arg(long, conflicts_with_all = ["check", "back_end", "schedule"])]
    pub(crate) trusted: bool,
    /// Run everything in one process, also where packets could run apart from everything else
    #[arg(long, conflicts_with_all = ["trusted", "native", "without"])]
    pub(crate) one_process: bool,
    /// Have the confined process make machine code of programs: faster, with a compiler that is trusted
    #[arg(long, requires = "trusted")]
    pub(crate) native: bool,
    /// Run although this layer of confinement is missing (`ravelin doctor trust` names them); may be repeated
    #[arg(long, requires = "trusted", value_name = "LAYER")]
    pub(crate) without: Vec<confinement::Layer>,
    /// What executes the program of a gateway of one process: machine code, if nothing is said
    #[arg(long, value_enum)]
    pub(crate) back_end: Option<BackEndChoice>,
    #[command(flatten)]
    pub(crate) schedule: ScheduleArguments,
}

/// `ravelin reload`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin reload
  ravelin reload --check
  ravelin reload --only-if narrower

The tests beside the rules of policies are run before, and the program does not take over if one fails. What policies treat \
otherwise than before is told on standard error.

A gateway of several processes does not compare policies, so that `--check` and `--only-if` need one process, and `--most` \
says nothing there. It reads its file again at SIGHUP, which `ravelin reload` sends, and it says on its own standard error \
why a file is refused. `ravelin reload` fails if no other program has taken over within 10 s.")]
pub(crate) struct ReloadArguments {
    /// Only say what would change
    #[arg(long)]
    pub(crate) check: bool,
    /// Take over only if policies let no more packets through than now, or treat all of them alike
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) only_if: Option<OnlyIfChoice>,
    /// How many classes of packets are told of each policy
    #[arg(long, default_value_t = MOST_CLASSES, value_name = "COUNT")]
    pub(crate) most: usize,
    #[command(flatten)]
    pub(crate) socket: Socket,
}

/// What must hold of new policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnlyIfChoice {
    /// They let no packet pass that is dropped now
    Narrower,
    /// They treat every packet as now
    Same,
}

/// `ravelin show`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin show run
  ravelin show drops --total
  ravelin show neighbours
  ravelin show latency --seconds 10
  ravelin show tables --json
  ravelin show policy --front 192.0.2.1:4433 --identity anna.front.key --server-key 51d0…")]
pub(crate) struct ShowArguments {
    /// What to show
    #[arg(value_enum)]
    pub(crate) what: ShowChoice,
    /// Everything since the program took over, instead of rates over the next seconds
    #[arg(long)]
    pub(crate) total: bool,
    /// Over how many seconds rates are taken: at most 3600, and 60 for stages and latency
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    pub(crate) seconds: f64,
    #[command(flatten)]
    pub(crate) reached: Reached,
}

/// What of a gateway is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowChoice {
    /// Packets received, forwarded, dropped and punted
    Run,
    /// What each port received and sent, what was lost there, and how it is attached
    Ports,
    /// Tables and how full they are
    Tables,
    /// Why packets were dropped or punted
    Drops,
    /// Which program decides, shown by the hash of its IR, and what confines the process that runs it
    Policy,
    /// Routes, where they come from and where they lead
    Routes,
    /// Neighbours, what is known of them, and what became of packets handed to control
    Neighbours,
    /// Names that this gateway registers at waypoints, and gateways that register here
    Leases,
    /// Where the time of the packet loop goes, and how large its batches are
    Stages,
    /// How long packets stay
    Latency,
}
