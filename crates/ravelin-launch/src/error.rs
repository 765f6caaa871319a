//! Why a gateway ends, or one of its processes cannot be started.

use crate::kept::FolderError;
use confinement::SeparateError;
use container::ContainerError;
use messages::limits::MOST_DESCRIPTORS;
use ports::live::AttachError;
use ports::live::secret_file::SecretFileError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the gateway ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    /// a port cannot be opened
    #[error("{0}")]
    Port(#[from] AttachError),
    /// a container
    #[error("{0}")]
    Container(#[from] ContainerError),
    /// a port whose interface is away
    #[error("interface {0} is away")]
    Away(String),
    /// more descriptors than can be handed over
    #[error(
        "interface {interface}: {descriptors} descriptors are to be handed over, one for each queue and two for each worker, and {MOST_DESCRIPTORS} can be at most: `queues` in the file names fewer of its queues"
    )]
    Descriptors {
        /// The interface's name.
        interface: String,
        /// How many there are.
        descriptors: usize,
    },
    /// a process cannot be started
    #[error("{} cannot be started: {source}", program.display())]
    Start {
        /// Its program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// a process cannot be started apart
    #[error("{0}; `--without` with the name of a layer does without it")]
    Separate(#[from] SeparateError),
    /// the control socket cannot be made
    #[error("cannot be asked at {}: {source}; `control` in the file names another place", path.display())]
    Control {
        /// The path of the socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// the socket of a machine's monitor
    #[error("a monitor cannot come to {}: {source}", path.display())]
    Monitor {
        /// The path of the socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// a tunnel cannot listen
    #[error(
        "datagrams cannot be received at {at}: {source}; `listen` of the tunnel in the file has to be an address of this machine with a free port"
    )]
    Tunnel {
        /// Where.
        at: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// it cannot listen
    #[error(
        "cannot be asked at {at}: {source}; `listen` in `[front]` of the file has to be an address of this machine with a free port"
    )]
    Listen {
        /// Where.
        at: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// it cannot listen for metrics
    #[error("metrics cannot be asked for at {at}: {source}; give another address as `metrics` in the file")]
    Metrics {
        /// Where.
        at: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// the front has no key
    #[error("{0}; `ravelin front key new` makes a key, and `[front]` of the file names it")]
    FrontKey(#[from] SecretFileError),
    /// policies cannot be kept
    #[error("policies cannot be kept in {}: {source}", folder.display())]
    Keep {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: FolderError,
    },
    /// the system refuses
    #[error("{0}")]
    System(#[from] io::Error),
}
