//! Joins two interfaces by XDP programs in the Linux kernel: the least work that can forward a packet between
//! them.

use crate::namespace::Namespace;
use ports::live::sys::interface_index;
use ports::live::{cross, pass};
use std::io;
use std::os::fd::OwnedFd;

/// Programs at interfaces; they go when it goes.
pub struct Shortcut {
    _programs: Vec<OwnedFd>,
}

impl Shortcut {
    /// Hands everything that comes by either interface of a gateway to the other one. The ends of their
    /// cables, each in a namespace of its own, get a program that lets everything through, without which a
    /// virtual cable takes no packets this way.
    ///
    /// # Errors
    /// The rights for it are missing (CAP_BPF and CAP_NET_ADMIN), or the kernel cannot do it.
    pub fn between(
        gateway: &Namespace,
        interfaces: [&str; 2],
        ends: [(&Namespace, &str); 2],
    ) -> io::Result<Shortcut> {
        let mut programs = gateway.inside(|| {
            let [one, other] = [interface_index(interfaces[0])?, interface_index(interfaces[1])?];
            Ok(vec![cross(one, other)?, cross(other, one)?])
        })?;
        for (host, interface) in ends {
            programs.push(host.inside(|| pass(interface_index(interface)?))?);
        }
        Ok(Shortcut { _programs: programs })
    }
}
