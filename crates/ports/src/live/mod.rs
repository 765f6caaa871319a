//! Live ports: network interfaces of this machine, through AF_PACKET, AF_XDP or TAP; and encrypted
//! tunnels. In these modules, *the
//! kernel* is the Linux kernel.

mod af_packet;
mod af_xdp;
mod attach;
pub mod clock;
mod divided;
mod empty;
mod frame_ring;
pub mod handed_over;
mod held;
pub mod impair;
mod lane;
mod losses;
mod mailbox;
pub mod middleware;
mod netlink;
mod out;
mod presence;
pub mod secret_file;
mod segments;
pub mod shape;
pub mod sys;
mod tap;
pub mod trace;
pub mod tunnel;
mod untagged;
mod vlan;
mod wait;
mod wanted;
mod watch;

pub use self::tunnel::{TunnelControl, TunnelError, TunnelWishes};
pub use af_xdp::{Mode as XdpMode, Wishes as XdpWishes, XdpError, cross, pass};
pub use attach::{attach, attach_all};
pub use divided::DividedInterface;
pub use empty::NOBODY;
pub use lane::{Attached, Lane, Receiver, Sender, exchange};
pub use losses::{LossKind, ReceiveLosses, SendLosses};
pub use middleware::Middleware;
pub use netlink::{LinkChanges, Netlink};
pub use out::LiveOut;
pub use presence::{Heard, Presence};
pub use sys::{cycles, keep_off, pin};
pub use tap::{HostInterface, HostMemory, TapError, VnicWishes, station};
pub use wait::{Bell, Waiter};
pub use wanted::{AttachError, HandedOver, Offloads, PortKind, VlanPlace, WantedPort};
