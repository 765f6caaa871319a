//! What packets are told of server names: where a client that nobody is promised to says whom it means, and
//! where each client goes that has said so.

use super::packets::Target;
use exec::{Backend, EntryError};
use ir::{Entry, Match};
use naming::ClientConnection;
use std::net::Ipv4Addr;

/// An address of the waypoint, and a port there.
pub(super) type OpenPort = (Ipv4Addr, u16);

/// Where both tables stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerNameTables {
    pub(super) open: u32,
    pub(super) named: u32,
}

fn exact(columns: &[u128]) -> Vec<Match> {
    columns.iter().copied().map(Match::Exact).collect()
}

fn open_entry((address, port): OpenPort) -> Entry {
    Entry { key: exact(&[address.to_bits().into(), port.into()]), value: Vec::new(), priority: 0 }
}

fn no_room(error: &EntryError) -> String {
    format!(
        "packets take no more addresses at which clients say a server name ({error}): raise `MOST_SERVER_NAMES` by `[set]`, or have fewer `server_names`"
    )
}

/// Takes places from those at which clients say whom they mean, then adds others: all of these or none.
///
/// # Errors
/// The table takes no more.
pub(super) fn open(
    tables: ServerNameTables,
    backend: &mut dyn Backend,
    gone: &[OpenPort],
    new: &[OpenPort],
) -> Result<(), String> {
    let close = |backend: &mut dyn Backend, ports: &[OpenPort]| {
        for port in ports {
            backend.remove(tables.open, &open_entry(*port).key, 0);
        }
    };
    close(backend, gone);
    for port in new {
        if let Err(error) = backend.insert(tables.open, &open_entry(*port)) {
            close(backend, new);
            return Err(no_room(&error));
        }
    }
    Ok(())
}

/// Fills the table of a program that does not run yet, in place of the examples in its text.
///
/// # Errors
/// It does not take all.
pub(super) fn fill(
    tables: ServerNameTables,
    backend: &mut dyn Backend,
    ports: impl Iterator<Item = OpenPort>,
) -> Result<(), String> {
    let all = ports.map(open_entry).collect();
    backend.replace(tables.open, all).map_err(|error| no_room(&error))
}

/// Lets a connection go to a host, until the table forgets it. The program lets no later one by the same
/// ports go there: that one acknowledges another number.
///
/// # Errors
/// The table takes no more.
pub(super) fn lead(
    tables: ServerNameTables,
    backend: &mut dyn Backend,
    connection: &ClientConnection,
    target: Target,
    now: u64,
) -> Result<(), EntryError> {
    let ClientConnection { initiator, initiator_port, address, port, acknowledges } = *connection;
    let columns = [initiator.to_bits().into(), initiator_port.into(), address.to_bits().into(), port.into()];
    let value = vec![target.peer.into(), target.host.to_bits().into(), acknowledges.into()];
    backend.learn(tables.named, &Entry { key: exact(&columns), value, priority: 0 }, now)
}

/// Whether an entry leads a client to this host.
pub(super) fn leads_to(entry: &Entry, target: Target) -> bool {
    entry.value.starts_with(&[target.peer.into(), target.host.to_bits().into()])
}
