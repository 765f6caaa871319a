//! The tables of a program that the control plane fills: which are needed, and with which columns.

use super::effects::Filled;
use super::neighbours::Neighbour;
use super::paths::{BUCKETS, GROUPS, Paths};
use super::router::{Router, RoutingSettings};
use exec::Backend;
use ir::{ColumnKind, Program, Table, TableKind};
use std::collections::{BTreeSet, HashMap};

/// Which of a program's tables control fills.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FilledTables {
    /// Their places in the program.
    pub(crate) tables: HashMap<Filled, u32>,
    /// How many entries the tables of routes take.
    pub(crate) routes: HashMap<Filled, usize>,
    /// How many next hops there is room for.
    pub(crate) hops: usize,
    /// For how many groups of several next hops.
    pub(crate) groups: u16,
}

/// A table that is needed and is not there, or has no room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The table.
    pub(crate) table: Filled,
    /// The route of the file that needs it, where it is one.
    pub(crate) route: Option<usize>,
    /// What is wrong, and what to do.
    pub(crate) message: String,
}

impl FilledTables {
    /// Looks for the tables of a program.
    ///
    /// # Errors
    /// The first table that the addresses of the file need and the program has not, or not so.
    pub(crate) fn of(program: &Program, settings: &RoutingSettings) -> Result<FilledTables, Missing> {
        let (mut tables, mut routes) = (HashMap::new(), HashMap::new());
        let (mut hops, mut groups) = (usize::MAX, 0);
        for filled in Filled::ALL {
            let found = (0..).zip(&program.tables).find(|(_, table)| table.name == filled.name());
            let wanted = format!("`{}`", declaration(filled));
            match found {
                Some((index, table)) if suits(filled, table) => {
                    tables.insert(filled, index);
                    match filled {
                        Filled::Routes | Filled::Routes6 => {
                            routes.insert(filled, table.capacity as usize);
                        }
                        Filled::Groups => {
                            let room = table.capacity as u64 / u64::from(BUCKETS);
                            groups = room.min(GROUPS.into()) as u16;
                        }
                        Filled::NextHops => hops = hops.min(table.capacity as usize),
                        // It has one entry for each link, besides.
                        Filled::Behind => hops = hops.min(room_behind(table, settings)?),
                        _ => {}
                    }
                }
                Some((_, table)) => {
                    let is = table.shape();
                    let message = format!(
                        "addresses need the program's table {wanted}; its `{}` is another: {is}",
                        table.name
                    );
                    return Err(Missing { table: filled, route: None, message });
                }
                None if needs(filled, settings) => {
                    let message =
                        format!("addresses need a table {wanted} in the program, as `router.rav` has it");
                    return Err(Missing { table: filled, route: None, message });
                }
                None => {}
            }
        }
        room_for_sets(settings, hops, groups)?;
        Ok(FilledTables { tables, routes, hops, groups })
    }

    /// Routes of the kernel that the tables of routes have no room for wait, beginning with those that
    /// waited in the router before.
    pub(crate) fn leave_out(&self, router: &mut Router, before: &Router) {
        for (filled, capacity) in &self.routes {
            router.leave_out(*filled, *capacity, &before.refused);
        }
    }

    /// Fills the tables of a program that has just been loaded with all that a router knows, in place of the
    /// examples in its text. Entries that wait for room are left out.
    ///
    /// # Errors
    /// They have no room for it.
    pub(crate) fn fill(&self, router: &Router, backend: &mut dyn Backend) -> Result<(), String> {
        for (filled, index) in &self.tables {
            let mut entries = router.entries(*filled);
            entries.retain(|entry| !router.refused.has_key(*filled, &entry.key));
            let count = entries.len();
            backend.replace(*index, entries).map_err(|error| {
                format!("table `{}` does not take {count} entries: {error}", filled.name())
            })?;
        }
        Ok(())
    }
}

fn needs(filled: Filled, settings: &RoutingSettings) -> bool {
    let mut addresses = settings.ports.iter().flat_map(|port| &port.addresses);
    match filled {
        Filled::Routes => addresses.any(|address| address.address.is_ipv4()),
        Filled::Routes6 => addresses.any(|address| address.address.is_ipv6()),
        Filled::NextHops => true,
        Filled::Behind | Filled::Groups | Filled::GroupPorts | Filled::Interfaces => false,
    }
}

/// Whether there is room for the routes of the file by several next hops.
fn room_for_sets(settings: &RoutingSettings, hops: usize, groups: u16) -> Result<(), Missing> {
    let (mut paths, mut members) = (Paths::new(groups), BTreeSet::<Neighbour>::new());
    for (route, of) in settings.routes.iter().enumerate().filter(|(_, of)| of.via.len() > 1) {
        let missing = |table, message| Err(Missing { table, route: Some(route), message });
        if paths.find(of.via.clone()).is_none() {
            let wanted = declaration(Filled::Groups);
            let message = if groups == 0 {
                format!(
                    "several next hops need a table `{wanted}` with a capacity of at least {BUCKETS} in the program, as `router.rav` has it"
                )
            } else {
                format!(
                    "the routes above have {groups} different sets of several next hops, and there is no room for one more: the program's table `{wanted}` has {BUCKETS} entries for each, and there are at most {GROUPS}"
                )
            };
            return missing(Filled::Groups, message);
        }
        members.extend(of.via.iter().map(|(member, _)| *member));
        if members.len() > hops {
            let message = format!(
                "the program has room for {hops} next hops, and routes by several have more: declare a larger capacity for `{}` and `{}`",
                Filled::NextHops.name(),
                Filled::Behind.name()
            );
            return missing(Filled::NextHops, message);
        }
    }
    Ok(())
}

/// How many next hops find room in the table of their ports.
fn room_behind(table: &Table, settings: &RoutingSettings) -> Result<usize, Missing> {
    let (capacity, links) = (table.capacity as usize, settings.ports.len());
    capacity.checked_sub(links).filter(|room| *room > 0).ok_or_else(|| Missing {
        table: Filled::Behind,
        route: None,
        message: format!(
            "the program's table `{}` has room for {capacity} next hops; {links} ports need one each, and neighbours more: declare a larger capacity",
            table.name
        ),
    })
}

fn declaration(filled: Filled) -> &'static str {
    match filled {
        Filled::Routes => "routes: lpm(ip4) -> u16",
        Filled::Routes6 => "routes6: lpm(ip6) -> u16",
        Filled::NextHops => "next_hops: exact(u16) -> (port, mac, mac, u16)",
        Filled::Behind => "behind: exact(u16) -> port",
        Filled::Groups => "next_hop_groups: exact(u16, u8) -> u16",
        Filled::GroupPorts => "group_ports: exact(u16, port)",
        Filled::Interfaces => "interfaces: exact(port) -> (mac, ip4, ip6)",
    }
}

fn suits(filled: Filled, table: &Table) -> bool {
    let (port, mac, number) = ((ColumnKind::Port, 16), (ColumnKind::Mac, 48), (ColumnKind::Uint, 16));
    let (four, six) = ((ColumnKind::Ip4, 32), (ColumnKind::Ip6, 128));
    let (kind, keys, values) = match filled {
        Filled::Routes => (TableKind::Lpm, vec![four], vec![number]),
        Filled::Routes6 => (TableKind::Lpm, vec![six], vec![number]),
        Filled::NextHops => (TableKind::Exact, vec![number.clone()], vec![port, mac.clone(), mac, number]),
        Filled::Behind => (TableKind::Exact, vec![number], vec![port]),
        Filled::Groups => (TableKind::Exact, vec![number.clone(), (ColumnKind::Uint, 8)], vec![number]),
        Filled::GroupPorts => (TableKind::Exact, vec![number, port], vec![]),
        Filled::Interfaces => (TableKind::Exact, vec![port], vec![mac, four, six]),
    };
    let columns = |columns: &[ir::Column]| -> Vec<(ColumnKind, u8)> {
        columns.iter().map(|column| (column.kind.clone(), column.width)).collect()
    };
    table.kind == kind && columns(&table.keys) == keys && columns(&table.values) == values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::PortSettings;

    #[test]
    fn ports_of_next_hops_need_room() {
        let filled_tables = |capacity: u32, ports: usize| {
            let text = format!(
                "table routes: lpm(ip4) -> u16 {{ capacity 8 }}\n\
                 table next_hops: exact(u16) -> (port, mac, mac, u16) {{ capacity 8 }}\n\
                 table behind: exact(u16) -> port {{ capacity {capacity} }}\n\
                 start stage all() {{ flood }}\n"
            );
            let options = lang::pipeline::CompileOptions::default();
            let program = lang::pipeline::compile("p.rav", &text, &|_| None, &options).program;
            let port = PortSettings {
                addresses: vec!["10.0.1.1/24".parse().expect("an address")],
                ..PortSettings::default()
            };
            let settings = RoutingSettings { ports: vec![port; ports], ..RoutingSettings::default() };
            FilledTables::of(&program.expect("compiles"), &settings)
        };
        assert_eq!(filled_tables(16, 2).map(|filled_tables| filled_tables.hops), Ok(8));
        assert_eq!(filled_tables(6, 2).map(|filled_tables| filled_tables.hops), Ok(4));
        let missing = filled_tables(2, 2).expect_err("no room is left for neighbours");
        assert!(
            missing.message.contains("room for 2 next hops; 2 ports need one each"),
            "{}",
            missing.message
        );
    }
}
