//! The command line of `ravelin names`.

use super::socket::Socket;
use clap::{Args, Subcommand};
use naming::HostIpv6;
use naming::dns::Ipv4Mode;
use std::net::Ipv4Addr;

/// `ravelin names`
#[derive(Debug, Subcommand)]
pub(crate) enum NamesCommand {
    /// The zone, and the names that lead to hosts
    List(Socket),
    /// The addresses that were promised to initiators, and where they lead
    Bindings(Socket),
    /// The gateways that names lead to, and whether each of them can be reached
    Gateways(Socket),
    /// What becomes of the first packet of a client to an address of the waypoint, and why
    Why(WhyNameArguments),
    /// Let a name lead to a host, until the process ends
    Add(AddNameArguments),
    /// Let a name lead to no host any more
    Remove(RemoveNameArguments),
}

/// `ravelin names add`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin names add nas --gateway home --address 192.168.1.10 --service tcp/22 --service tcp/443
  ravelin names add tv --gateway home --address 192.168.1.11 --service tcp/443 --ipv4 203.0.113.7")]
pub(crate) struct AddNameArguments {
    /// The name: below the zone, or whole with a dot at its end
    pub(crate) name: String,
    /// The gateway that the host is behind
    #[arg(long)]
    pub(crate) gateway: String,
    /// The address of the host there
    #[arg(long)]
    pub(crate) address: Ipv4Addr,
    /// What it offers, such as tcp/22, udp/53 or icmp; may be given several times
    #[arg(long = "service", required = true)]
    pub(crate) services: Vec<String>,
    /// How it is reached by IPv4: automatic, shared, per-initiator, none, or an address of its own
    #[arg(long, default_value = "automatic", value_parser = mode)]
    pub(crate) ipv4: Ipv4Mode,
    /// Its address of IPv6: behind the gateway, or one that everybody reaches; or translated, if it has IPv4
    /// alone: its log shows the gateway's address then
    #[arg(long)]
    pub(crate) ipv6: Option<HostIpv6>,
    #[command(flatten)]
    pub(crate) socket: Socket,
}

/// `ravelin names why`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  ravelin names why 192.0.2.9 203.0.113.16 tcp/22")]
pub(crate) struct WhyNameArguments {
    /// The client
    pub(crate) initiator: Ipv4Addr,
    /// The address that it sends to
    pub(crate) address: Ipv4Addr,
    /// The protocol and port there, such as tcp/22, udp/53 or icmp
    pub(crate) service: String,
    #[command(flatten)]
    pub(crate) socket: Socket,
}

/// `ravelin names remove`
#[derive(Debug, Args)]
pub(crate) struct RemoveNameArguments {
    /// The name
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) socket: Socket,
}

fn mode(text: &str) -> Result<Ipv4Mode, String> {
    match text {
        "automatic" => Ok(Ipv4Mode::Automatic),
        "shared" => Ok(Ipv4Mode::Shared),
        "per-initiator" => Ok(Ipv4Mode::PerInitiator),
        "none" => Ok(Ipv4Mode::None),
        address => address
            .parse()
            .map(Ipv4Mode::Dedicated)
            .map_err(|_| "automatic, shared, per-initiator, none, or an address of IPv4".to_owned()),
    }
}
