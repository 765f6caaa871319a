//! Live ports: network interfaces of this machine, through AF_PACKET, AF_XDP or TAP; and encrypted
//! tunnels. In these modules, *the kernel* is the Linux kernel.
//!
//! What a process needs that is given its ports by another one is always there; all else is the feature
//! `attach`.

mod af_packet;
mod af_xdp;
#[cfg(feature = "attach")]
mod attach;
pub mod clock;
#[cfg(feature = "open")]
mod datagrams;
#[cfg(feature = "attach")]
mod divided;
mod empty;
mod frame_ring;
pub mod handed_over;
#[cfg(feature = "attach")]
mod held;
#[cfg(feature = "attach")]
pub mod impair;
mod lane;
mod losses;
mod mailbox;
#[cfg(feature = "attach")]
pub mod middleware;
#[cfg(feature = "open")]
mod netlink;
mod out;
mod presence;
#[cfg(feature = "open")]
pub mod secret_file;
mod segments;
#[cfg(feature = "attach")]
pub mod shape;
pub mod sys;
mod tap;
#[cfg(feature = "attach")]
pub mod trace;
#[cfg(feature = "tunnel")]
pub mod tunnel;
mod untagged;
pub mod vhost;
#[cfg(feature = "attach")]
mod vlan;
mod wait;
mod wanted;
#[cfg(feature = "attach")]
mod watch;
#[cfg(feature = "open")]
mod witness;

#[cfg(feature = "tunnel")]
pub use self::tunnel::{TunnelControl, TunnelError, TunnelWishes};
#[cfg(feature = "attach")]
pub use af_xdp::XdpSender;
#[cfg(feature = "open")]
pub use af_xdp::{FrameShare, Mode as XdpMode, Wishes as XdpWishes, XdpError, cross, pass};
pub use af_xdp::{MOST_SHARING, XdpPort};
#[cfg(feature = "attach")]
pub use attach::{attach, attach_all};
#[cfg(feature = "open")]
pub use datagrams::datagram_socket;
#[cfg(feature = "attach")]
pub use divided::DividedInterface;
#[cfg(feature = "attach")]
pub use empty::NOBODY;
pub use lane::{Attached, Lane, Receiver, Sender, exchange};
pub use losses::{LossKind, ReceiveLosses, SendLosses};
#[cfg(feature = "attach")]
pub use middleware::Middleware;
#[cfg(feature = "open")]
pub use netlink::{LinkChanges, Netlink};
pub use out::LiveOut;
pub use presence::{Heard, Presence};
#[cfg(feature = "open")]
pub use sys::keep_off;
pub use sys::{cycles, pin};
#[cfg(feature = "open")]
pub use tap::guest_end;
pub use tap::{GuestLink, TapError, VnicWishes, station};
#[cfg(feature = "attach")]
pub use tap::{HostInterface, HostMemory};
pub use wait::{Bell, Waiter};
pub use wanted::{AttachError, HandedOver, Offloads, PortKind, PortWay, VlanPlace, WantedPort};
