//! The command line of `ravelin naming`.

use clap::{Args, Subcommand};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// `ravelin naming`
#[derive(Debug, Subcommand)]
pub(crate) enum NamingCommand {
    /// Make the keys and files of a waypoint, of a gateway, and if wanted of a name server
    Init(Box<InitArguments>),
    /// Reach hosts behind NAT by their names, in a small internet of network namespaces
    Demo(DemoArguments),
    /// Keys by which the ends of tunnels know each other
    #[command(subcommand)]
    Key(KeyCommand),
}

/// `ravelin naming key`
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key in a new file that only you may read, and print its public half
    New(KeyArguments),
    /// Print the public half of a key
    Show(KeyArguments),
}

/// `ravelin naming key new` and `show`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin naming key new home.key
  ravelin naming key show home.key")]
pub(crate) struct KeyArguments {
    /// The file of the secret key
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// `ravelin naming init`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  ravelin naming init names --zone home.example --machine 192.0.2.34 --public eth0 --pool 198.51.100.0/29 \\
    --known 198.51.100.2/31 --unknown 198.51.100.4/30 --router 02:00:5e:00:00:fe \\
    --lan eth1 --lan-address 192.168.1.2 --lan-network 192.168.1.0/24")]
pub(crate) struct InitArguments {
    /// Where the folders `waypoint` and `gateway` are made, and `name-server` if there is one
    pub(crate) directory: PathBuf,
    /// The zone that is answered for
    #[arg(long)]
    pub(crate) zone: String,
    /// The address of the waypoint's machine itself, for the name server and the tunnel
    #[arg(long)]
    pub(crate) machine: Ipv4Addr,
    /// The address of another machine that answers for the zone; without it the waypoint does
    #[arg(long, conflicts_with_all = ["shared", "pool6"])]
    pub(crate) name_server: Option<Ipv4Addr>,
    /// Where all ends take datagrams of tunnels
    #[arg(long, default_value = "0.0.0.0:5282")]
    pub(crate) listen: SocketAddr,
    /// The interface of the waypoint at which its public addresses are
    #[arg(long)]
    pub(crate) public: String,
    /// The network of these addresses; nobody else has one of them
    #[arg(long)]
    pub(crate) pool: String,
    /// The Ethernet address of the router there
    #[arg(long)]
    pub(crate) router: String,
    /// The address at which names with different services are
    #[arg(long)]
    pub(crate) shared: Option<Ipv4Addr>,
    /// Addresses for clients that ask for themselves or whose resolver says who asks; may be given several
    /// times
    #[arg(long)]
    pub(crate) known: Vec<String>,
    /// Addresses for all others; may be given several times
    #[arg(long)]
    pub(crate) unknown: Vec<String>,
    /// A network whose hosts ask for themselves; may be given several times
    #[arg(long)]
    pub(crate) clients: Vec<String>,
    /// The interface of the gateway at which the hosts are
    #[arg(long)]
    pub(crate) lan: String,
    /// The gateway's own address there
    #[arg(long)]
    pub(crate) lan_address: Ipv4Addr,
    /// The network of the hosts
    #[arg(long)]
    pub(crate) lan_network: String,
    /// The network of IPv6 that leads to the waypoint, of 64 bits: each host has an address of it
    #[arg(long, requires_all = ["lan_address6", "lan_network6"])]
    pub(crate) pool6: Option<String>,
    /// The gateway's own address of IPv6 at the hosts
    #[arg(long, requires = "pool6")]
    pub(crate) lan_address6: Option<Ipv6Addr>,
    /// The network of IPv6 of the hosts
    #[arg(long, requires = "pool6")]
    pub(crate) lan_network6: Option<String>,
}

/// `ravelin naming demo`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin naming demo
  ravelin naming demo --json
  ravelin naming demo --captures /tmp/names")]
pub(crate) struct DemoArguments {
    /// Keep what passed on each link in this folder, a capture for each
    #[arg(long, value_name = "FOLDER")]
    pub(crate) captures: Option<PathBuf>,
}
