//! The layers of a confinement, with their names, and what is said when one cannot be had.

use std::fmt;
use std::str::FromStr;

/// One thing that a confined process gives up. Each is enough by itself against some attacks, and none
/// against all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// A user namespace of its own, in which the user is nobody outside: what the process may do inside gives
    /// it no right outside (user_namespaces(7)).
    UserNamespace,
    /// A network of its own, without any interface that is up (network_namespaces(7)).
    NetworkNamespace,
    /// An empty, read-only root in place of all file systems (mount_namespaces(7), pivot_root(2)).
    MountNamespace,
    /// Message queues, semaphores and shared memory of System V and POSIX of its own (ipc_namespaces(7)).
    IpcNamespace,
    /// Sees no other process, and is the first of its own namespace (pid_namespaces(7)).
    PidNamespace,
    /// A host name of its own (uts_namespaces(7)).
    UtsNamespace,
    /// No program that it executes can give it rights (PR_SET_NO_NEW_PRIVS(2const)).
    NoNewPrivileges,
    /// No capability, in no set, and none can come back (capabilities(7)).
    Capabilities,
    /// Landlock refuses all rights that it knows: files, TCP ports, signals and abstract sockets of others
    /// (landlock(7)).
    Landlock,
    /// Only the system calls of its role, and of these only the arguments that it needs (seccomp(2)).
    Seccomp,
    /// Its memory cannot be read or traced by other processes of the same user (PR_SET_DUMPABLE(2const)).
    NonDumpable,
    /// Resource limits: no core file, no file data, no locked memory, no more processes or descriptors than
    /// its role has (getrlimit(2)).
    Limits,
}

impl Layer {
    /// All layers, in the order in which they are applied.
    pub const ALL: [Self; 12] = [
        Self::UserNamespace,
        Self::NetworkNamespace,
        Self::MountNamespace,
        Self::IpcNamespace,
        Self::PidNamespace,
        Self::UtsNamespace,
        Self::NoNewPrivileges,
        Self::Capabilities,
        Self::Landlock,
        Self::NonDumpable,
        Self::Limits,
        Self::Seccomp,
    ];

    /// The name by which commands and messages call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UserNamespace => "user-namespace",
            Self::NetworkNamespace => "network-namespace",
            Self::MountNamespace => "mount-namespace",
            Self::IpcNamespace => "ipc-namespace",
            Self::PidNamespace => "pid-namespace",
            Self::UtsNamespace => "uts-namespace",
            Self::NoNewPrivileges => "no-new-privileges",
            Self::Capabilities => "capabilities",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::NonDumpable => "non-dumpable",
            Self::Limits => "limits",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Layer {
    type Err = UnknownLayer;

    fn from_str(name: &str) -> Result<Self, UnknownLayer> {
        let layer = Self::ALL.into_iter().find(|layer| layer.name() == name);
        layer.ok_or_else(|| UnknownLayer { name: name.to_owned() })
    }
}

/// A name that no layer has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no layer `{name}`; the layers are {}", Layer::ALL.map(Layer::name).join(", "))]
pub struct UnknownLayer {
    /// What was asked for.
    pub name: String,
}

/// A layer that cannot be applied, or was not there when it was looked for afterwards.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the layer `{layer}` is missing: {why}")]
pub struct Missing {
    /// Which.
    pub layer: Layer,
    /// What failed, and what to do about it where that is known.
    pub why: String,
}

impl Missing {
    /// Says of a layer why it is missing.
    pub(crate) fn new(layer: Layer, why: impl fmt::Display) -> Self {
        Self { layer, why: why.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layer_is_found_by_its_name_and_no_other_name_is_taken() {
        for layer in Layer::ALL {
            assert_eq!(layer.name().parse(), Ok(layer));
        }
        let unknown = "capability".parse::<Layer>().unwrap_err().to_string();
        assert!(unknown.starts_with("there is no layer `capability`; the layers are user-namespace, "));
    }
}
