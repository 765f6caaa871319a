//! The table of rights: which process has which layers, and which system calls it may still make, and why.

use crate::Layer;

/// Which process of a trusted gateway is confined. A further one, `launch`, opens ports and starts these, and
/// is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Verifies programs and runs packets.
    Core,
    /// Reads texts and makes programs and tables of them.
    Compile,
    /// Answers users and metrics, and follows routes and neighbours of the machine.
    Control,
    /// Listens on a network, and passes on what clients ask that it knows.
    Front,
    /// Speaks with the monitor of a virtual machine, and passes the machine's notifications on.
    Vhost,
    /// Encrypts and decrypts the packets of a tunnel.
    Tunnel,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 6] =
        [Self::Core, Self::Compile, Self::Control, Self::Front, Self::Vhost, Self::Tunnel];

    /// The name of the process.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Compile => "compile",
            Self::Control => "control",
            Self::Front => "front",
            Self::Vhost => "vhost",
            Self::Tunnel => "tunnel",
        }
    }

    /// The name under which the process is listed.
    #[cfg(target_os = "linux")]
    pub(crate) fn title(self) -> &'static std::ffi::CStr {
        match self {
            Self::Core => c"ravelin-core",
            Self::Compile => c"ravelin-compile",
            Self::Control => c"ravelin-control",
            Self::Front => c"ravelin-front",
            Self::Vhost => c"ravelin-vhost",
            Self::Tunnel => c"ravelin-tunnel",
        }
    }

    /// Its layers, in the order in which they are applied.
    pub fn layers(self) -> impl Iterator<Item = Layer> {
        // Routes and neighbours are those of the machine's network. In a user namespace of its own, the
        // process can ask about them there and change nothing.
        Layer::ALL.into_iter().filter(move |&layer| self != Self::Control || layer != Layer::NetworkNamespace)
    }

    /// How many descriptors it may open or be handed after it is locked.
    #[cfg(target_os = "linux")]
    pub(crate) fn more_descriptors(self) -> u64 {
        match self {
            // Ports that come again: three for each of 64 workers at a time, and channels.
            Self::Core => 256,
            // The files that it reads, one after the other.
            Self::Compile => 32,
            Self::Control => 512,
            // Its connections, which it limits itself.
            Self::Front => 96,
            // Files of memory and of events, those of before included.
            Self::Vhost => 32,
            Self::Tunnel => 0,
        }
    }

    /// How many processes and threads its user may have in its namespace after it is locked; 0 if it makes
    /// none.
    #[cfg(target_os = "linux")]
    pub(crate) fn most_threads(self) -> u64 {
        match self {
            Self::Core | Self::Front | Self::Vhost | Self::Tunnel => 0,
            Self::Compile => 16,
            Self::Control => 256,
        }
    }

    /// How many bytes of memory it may have for itself (RLIMIT_DATA), stacks of threads included; `None` for
    /// the core, whose tables are as large as its program says, and which ends last.
    #[cfg(target_os = "linux")]
    pub(crate) fn most_memory(self) -> Option<u64> {
        match self {
            Self::Core => None,
            // The largest rule sets and route tables with what is made of them.
            Self::Compile => Some(8 << 30),
            // A million routes and stacks of all threads.
            Self::Control => Some(4 << 30),
            // Four bundles at a time of 64 MiB; 1,024 peers and packets of 64 workers.
            Self::Front | Self::Tunnel => Some(1 << 30),
            Self::Vhost => Some(64 << 20),
        }
    }
}

#[cfg(target_os = "linux")]
pub use calls::AllowedCall;
#[cfg(target_os = "linux")]
pub(crate) use calls::{Condition, Holds};

#[cfg(target_os = "linux")]
mod calls;
