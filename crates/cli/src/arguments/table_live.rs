//! `ravelin table show`, `add`, `remove`, `replace`, `default`, `join`, `leave` and `watch`: their options,
//! their help and examples.

use super::socket::Socket;
use clap::Args;
use std::path::PathBuf;

/// `ravelin table show`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin table show
  ravelin table show hosts
  ravelin table show hosts 02:00:00:00:00:01
  ravelin table show sessions --most 100
  ravelin table show edge.forward --counts

Without a table, all tables are described. With several workers, each of which has tables of its own, an entry is shown once; --worker shows what one of \
them has. With --json each entry is an object on a line.")]
pub(crate) struct ShowTableArguments {
    /// The table, or a group, whose members are told
    #[arg(value_name = "TABLE")]
    pub(crate) table: Option<String>,
    /// Only the entry with this key, as the language writes it
    #[arg(value_name = "KEY", requires = "table", conflicts_with_all = ["most", "from", "worker"])]
    pub(crate) key: Option<String>,
    /// At most so many entries; the cursor for the next ones is told on standard error
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) most: Option<u64>,
    /// Go on at the cursor that an earlier call told
    #[arg(long, value_name = "CURSOR")]
    pub(crate) from: Option<String>,
    /// What this worker has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) worker: Option<u16>,
    /// With what each entry has counted, at all workers together; times are those of tables with `counted
    /// times`
    #[arg(long, requires = "table", conflicts_with_all = ["key", "most", "from"])]
    pub(crate) counts: bool,
    #[command(flatten)]
    pub(crate) socket: Socket,
}

/// `ravelin table add`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin table add hosts '02:00:00:00:00:07 => 3'
  ravelin table add routes '10.0.0.0/8 => 1' '10.1.0.0/16 => 2'
  ravelin table add hosts '02:00:00:00:00:07 => 3' --learn
  ravelin table add blocked '192.0.2.7 => true' --for 10min

Entries are written as in `entries { … }` of the language; quote them, since a shell takes `>` for itself. Such an entry stays until it is removed or \
another program takes over.")]
pub(crate) struct AddArguments {
    /// The table
    #[arg(value_name = "TABLE")]
    pub(crate) table: String,
    /// The entries
    #[arg(value_name = "ENTRY", required = true)]
    pub(crate) entries: Vec<String>,
    /// As if packets had made them: they end by the times of the table
    #[arg(long)]
    pub(crate) learn: bool,
    /// As --learn, but they end after this time at the latest, such as 30s or 5min; at most the table's `age`
    #[arg(long = "for", value_name = "TIME", value_parser = lifetime)]
    pub(crate) lifetime: Option<u64>,
    #[command(flatten)]
    pub(crate) socket: Socket,
}

/// The nanoseconds of a time.
fn lifetime(text: &str) -> Result<u64, String> {
    let known = || "write a number and one of the units `ns`, `us`, `ms`, `s`, `min` and `h`".to_owned();
    lang::lexer::duration(text).filter(|time| *time > 0).ok_or_else(known)
}

/// `ravelin table remove`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin table remove hosts 02:00:00:00:00:07
  ravelin table remove acl '(10.0.0.0/8, _) priority 5'")]
pub(crate) struct RemoveArguments {
    /// The table
    #[arg(value_name = "TABLE")]
    pub(crate) table: String,
    /// The keys, with priorities where the table has them
    #[arg(value_name = "KEY", required = true)]
    pub(crate) keys: Vec<String>,
    #[command(flatten)]
    pub(crate) socket: Socket,
}

/// `ravelin table replace`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin table replace blocked blocked.txt
  generate-list | ravelin table replace blocked -

The file has entries as in `entries { … }` of the language, one a line. All of them take the place of the table's entries at once, or none does.")]
pub(crate) struct ReplaceArguments {
    /// The table
    #[arg(value_name = "TABLE")]
    pub(crate) table: String,
    /// The file with the entries; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) socket: Socket,
}

/// `ravelin table default`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin table default networks
  ravelin table default networks '(1, 200)'
  ravelin table default networks --clear

Only a table for which the program declares or sets a default entry can get one. It stays until another program takes over.")]
pub(crate) struct DefaultArguments {
    /// The table
    #[arg(value_name = "TABLE")]
    pub(crate) table: String,
    /// The value that keys without an entry get from now on, as the language writes it
    #[arg(value_name = "VALUE")]
    pub(crate) value: Option<String>,
    /// Take the default entry away: keys without an entry get nothing
    #[arg(long, conflicts_with = "value")]
    pub(crate) clear: bool,
    #[command(flatten)]
    pub(crate) socket: Socket,
}

/// `ravelin table join` and `leave`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin table join servers 2 3
  ravelin table join hops '(10.0.0.1, 2)' --index 7
  ravelin table leave servers 2

A member that joins takes a part of the flows of the others; when one leaves, only its flows move. `table show GROUP` shows the members. They stay until another program takes over.")]
pub(crate) struct MemberArguments {
    /// The group
    #[arg(value_name = "GROUP")]
    pub(crate) group: String,
    /// The members: a value, or several in parentheses
    #[arg(value_name = "MEMBER", required = true)]
    pub(crate) members: Vec<String>,
    /// Which of the groups of this name, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) index: u32,
    #[command(flatten)]
    pub(crate) socket: Socket,
}

/// `ravelin table watch`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin table watch
  ravelin table watch moved expired --count 10
  ravelin table watch --punts arp,odd --json

Without names and without --punts, all events of the program are told. Ctrl-C ends it.")]
pub(crate) struct WatchArguments {
    /// The events
    #[arg(value_name = "EVENT")]
    pub(crate) events: Vec<String>,
    /// Packets that are punted for these reasons
    #[arg(long, value_name = "REASON", value_delimiter = ',')]
    pub(crate) punts: Vec<String>,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// For so long at most
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: Option<f64>,
    #[command(flatten)]
    pub(crate) socket: Socket,
}
