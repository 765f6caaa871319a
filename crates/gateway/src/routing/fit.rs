//! What a program must have so that control can fill its tables.

use super::effects::Filled;
use super::router::{Router, Settings};
use exec::Processor;
use lang::ir::{Kind, Program, Table, TableKind};
use std::collections::HashMap;

/// Which of a program's tables control fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    /// Their places in the program.
    pub(crate) tables: HashMap<Filled, u32>,
    /// How many next hops there is room for.
    pub(crate) hops: usize,
}

/// A table that is needed and is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The table.
    pub(crate) table: Filled,
    /// What is wrong, and what to do.
    pub(crate) message: String,
}

impl Fit {
    /// Looks for the tables of a program.
    ///
    /// # Errors
    /// The first table that the addresses of the file need and the program has not, or not so.
    pub(crate) fn of(program: &Program, settings: &Settings) -> Result<Fit, Missing> {
        let mut tables = HashMap::new();
        let mut hops = 0;
        for filled in Filled::ALL {
            let found = (0..).zip(&program.tables).find(|(_, table)| table.name == filled.name());
            let wanted = format!("`{}`", declaration(filled));
            match found {
                Some((index, table)) if suits(filled, table) => {
                    tables.insert(filled, index);
                    if filled == Filled::NextHops {
                        hops = table.capacity as usize;
                    }
                }
                Some((_, table)) => {
                    let is = table.shape();
                    let message = format!(
                        "addresses need the program's table {wanted}; its `{}` is another: {is}",
                        table.name
                    );
                    return Err(Missing { table: filled, message });
                }
                None if needs(filled, settings) => {
                    let message =
                        format!("addresses need a table {wanted} in the program, as `router.rav` has it");
                    return Err(Missing { table: filled, message });
                }
                None => {}
            }
        }
        Ok(Fit { tables, hops })
    }

    /// Fills the tables of a program that has just been loaded with all that a router knows, in place of the examples in its text.
    ///
    /// # Errors
    /// They have no room for it.
    pub(crate) fn fill(&self, router: &Router, processor: &mut dyn Processor) -> Result<(), String> {
        for (filled, index) in &self.tables {
            let entries = router.entries(*filled);
            let count = entries.len();
            processor.replace(*index, entries).map_err(|error| {
                format!("table `{}` does not take {count} entries: {error}", filled.name())
            })?;
        }
        Ok(())
    }
}

fn needs(filled: Filled, settings: &Settings) -> bool {
    let mut addresses = settings.ports.iter().flat_map(|port| &port.addresses);
    match filled {
        Filled::Routes => addresses.any(|address| address.address.is_ipv4()),
        Filled::Routes6 => addresses.any(|address| address.address.is_ipv6()),
        Filled::NextHops => true,
        Filled::Interfaces => false,
    }
}

fn declaration(filled: Filled) -> &'static str {
    match filled {
        Filled::Routes => "routes: lpm(ip4) -> u16",
        Filled::Routes6 => "routes6: lpm(ip6) -> u16",
        Filled::NextHops => "next_hops: exact(u16) -> (port, mac, mac, u16)",
        Filled::Interfaces => "interfaces: exact(port) -> (mac, ip4, ip6)",
    }
}

fn suits(filled: Filled, table: &Table) -> bool {
    let (port, mac, number) = ((Kind::Port, 16), (Kind::Mac, 48), (Kind::Uint, 16));
    let (four, six) = ((Kind::Ip4, 32), (Kind::Ip6, 128));
    let (kind, key, values) = match filled {
        Filled::Routes => (TableKind::Lpm, four, vec![number]),
        Filled::Routes6 => (TableKind::Lpm, six, vec![number]),
        Filled::NextHops => (TableKind::Exact, number.clone(), vec![port, mac.clone(), mac, number]),
        Filled::Interfaces => (TableKind::Exact, port, vec![mac, four, six]),
    };
    let columns = |columns: &[lang::ir::Column]| -> Vec<(Kind, u8)> {
        columns.iter().map(|column| (column.kind.clone(), column.width)).collect()
    };
    table.kind == kind && columns(&table.keys) == [key] && columns(&table.values) == values
}
