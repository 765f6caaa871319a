//! A name server and its waypoint without sockets, to measure what an answer costs.

use super::answering::{Received, ReplyTo, Taken};
use super::packet_tables::PacketTables;
use super::{Names, NamesError};
use crate::config::NamesConfig;
use engine::live::Remote;
use exec::Backend;
use ir::Program;
use naming::dns::DnsTransport;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

/// The name server of a file, asked by a function.
pub struct WithoutSockets(Arc<Names>);

impl WithoutSockets {
    /// Lets the packets of this program follow what is promised; it may run already or begin later.
    ///
    /// # Errors
    /// The file or the program is wrong.
    pub fn open(
        config: &NamesConfig,
        program: &Program,
        backend: &mut dyn Backend,
        remote: &Remote,
    ) -> Result<WithoutSockets, NamesError> {
        let tables = PacketTables::of(program, false, false).map_err(NamesError::Packets)?;
        let names = Arc::new(Names::open(&NamesConfig { listen: Vec::new(), ..config.clone() })?);
        names.carry(remote, tables, backend, |_| ())?;
        Ok(WithoutSockets(names))
    }

    /// Answers queries by UDP that came together. Gives the reply to each that has one.
    pub fn answer(&self, queries: &[(&[u8], SocketAddr)]) -> Vec<Option<Vec<u8>>> {
        let received = |&(bytes, from): &(_, _)| Received {
            bytes,
            from,
            transport: DnsTransport::Udp,
            under_load: queries.len() > 1,
        };
        let received: Vec<Received<'_>> = queries.iter().map(received).collect();
        // Nobody waits for a reply that comes later.
        let taken = self.0.answering().take(&received, &|_| ReplyTo::Tcp(sync_channel(1).0));
        let reply = |taken| match taken {
            Taken::Reply(bytes) => Some(bytes),
            Taken::Nothing | Taken::Later => None,
        };
        taken.into_iter().map(reply).collect()
    }

    /// How many entries packets know.
    pub fn expectations(&self) -> u64 {
        self.0.figures().expectations
    }
}
