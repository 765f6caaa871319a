//! Clients that nobody is promised to, and that say by the server name of TLS whom they mean: their segments,
//! which the program punts, become entries that lead them there.
//!
//! ```text
//!  segment, punted as `server_name` ─► ClientHellos ─► a name ─► a host of the zone ─► entry of `named`
//!                                          │                         │
//!                                   not yet, or refused         why not: counted, and shown by `names why`
//! ```
//!
//! Nothing is answered: the client sends again what nobody has acknowledged, and finds the entry then. A
//! later connection by the same ports does not: the entry has the number that the client acknowledges.

use super::answering::{Answering, lock};
use super::described::services;
use super::server_names::shared_ports;
use super::waypoint::locked;
use crate::config::names::HostPlace;
use naming::dns::{DnsName, Ipv4Mode};
use naming::{ClientConnection, ClientHello, ClientSegment, HelloRefusal};

impl Answering {
    /// Takes a segment of a client that nobody is promised to.
    pub(super) fn segment(&mut self, segment: &ClientSegment<'_>, now: u64) {
        let connection = segment.connection;
        match self.server_names.hellos.take(segment, now) {
            Ok(ClientHello::Unfinished) => {}
            Ok(ClientHello::Named(name)) => {
                let outcome = self.lead_client(&connection, &name, now).err().unwrap_or("led");
                self.server_names.note(connection, Some(&name), outcome);
            }
            // They are so many that they would take the place of all that is shown.
            Err(refusal @ HelloRefusal::TooManySegments) => self.server_names.count(refusal.name()),
            Err(refusal) => self.server_names.note(connection, None, refusal.name()),
        }
    }

    /// Leads a client to the host of a name.
    ///
    /// # Errors
    /// Why not, as a word.
    fn lead_client(
        &self,
        connection: &ClientConnection,
        name: &DnsName,
        now: u64,
    ) -> Result<(), &'static str> {
        let place = self.place_of(name, connection.port)?;
        let waypoint = self.waypoint.as_ref().ok_or("no_waypoint")?;
        let led = locked(waypoint).lead_client(connection, &place, now);
        if led { Ok(()) } else { Err("named_full") }
    }

    /// The host that is reached by a name at a port of addresses that names share by initiator.
    fn place_of(&self, name: &DnsName, port: u16) -> Result<HostPlace, &'static str> {
        let described = self.named.get(&name.to_string()).ok_or("unknown_name")?;
        let mode = self.server.zone().mode(name);
        if mode != Some(Ipv4Mode::PerInitiator) {
            return Err("not_shared");
        }
        if !shared_ports(mode, services(described)).contains(&port)
            || !self.server_names.ports.contains(&port)
        {
            return Err("no_such_service");
        }
        lock(&self.hosts).place(described.responder).cloned().ok_or("unknown_name")
    }
}

#[cfg(test)]
mod tests;
