//! Daemons of FRR in the namespaces of a test.

use super::{Net, Running};
use rig::Namespace;
use std::path::PathBuf;

/// A daemon of FRR in a namespace, in the foreground, with this configuration.
pub(crate) fn frr(net: &Net, host: &str, daemon: &str, configuration: &str) -> Running {
    let namespace = Namespace::named(&net.name(host)).expect("it is there");
    let command = rig::frr_command(&namespace, &folder(net, host), daemon, configuration);
    Running::start(&mut command.expect("FRR is there"))
}

/// The folder of the daemons of a host.
pub(crate) fn folder(net: &Net, host: &str) -> PathBuf {
    net.path(&format!("frr-{host}"))
}
