//! The tables and events of a program that carries packets for names: which are needed, and how.

use super::server_name_tables::ServerNameTables;
use super::stable::StableTables;
use ir::{Column, ColumnKind, Program, TableKind};
use naming::limits::MOST_BINDINGS;

/// What first packets are looked up in.
const EXPECTATIONS: &str = "expectations";
/// Who reaches whom, proved and not, and who has done so until a short time ago.
const BOUND: [&str; 4] = ["young_bindings", "tcp_bindings", "echo_bindings", "datagram_bindings"];
const QUARANTINE: &str = "quarantine";
/// What the machine itself listens at.
const MACHINE: &str = "machine_services";
/// The secret of SYN cookies.
const COOKIE_KEYS: &str = "cookie_keys";
/// What leads to hosts by IPv6, and back.
const STABLE: [&str; 2] = ["stable6", "stable6_back"];
/// Where clients are led by the server name of TLS, and whereto each is.
const SERVER_NAMES: [&str; 2] = ["server_names", "named"];
/// The tables that a waypoint fills by itself: with what, and what to change in place of them.
pub(crate) const FILLED: [(&str, &str); 7] = [
    (EXPECTATIONS, "with what its waypoint has promised: change names, as with `ravelin names add`"),
    (MACHINE, "with what the machine itself listens at: change `machine_services` in its file"),
    (COOKIE_KEYS, "with a secret that it draws at each start: leave it as it is"),
    (STABLE[0], BY_STABLE),
    (STABLE[1], BY_STABLE),
    (SERVER_NAMES[0], "from `server_names` in its file and from names: change those"),
    (SERVER_NAMES[1], "by the names that clients say: change names, as with `ravelin names add`"),
];
const BY_STABLE: &str = "from names with an address of IPv6: change those, as with `ravelin names add`";
/// The reason for which segments of clients are punted that may hold a server name.
pub(super) const SERVER_NAME: &str = "server_name";
/// A first packet has made a binding; its initiator has proved itself; the binding is over.
pub(super) const EVENTS: [&str; 3] = ["promised", "bound", "unbound"];

/// Where the tables of a program stand that carries packets for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketTables {
    pub(super) expectations: u32,
    /// How many entries they take.
    pub(super) room: usize,
    pub(super) bound: [u32; 4],
    /// How many bindings there may be that have not proved themselves.
    pub(super) young: usize,
    pub(super) quarantine: u32,
    pub(super) machine: u32,
    /// The secret of SYN cookies, if the program has them.
    pub(super) cookie_keys: Option<u32>,
    /// What leads to hosts by IPv6, if the program carries it.
    pub(super) stable: Option<StableTables>,
    /// What leads clients by server names, if the program does so.
    pub(super) server_names: Option<ServerNameTables>,
}

const IP4: (ColumnKind, u8) = (ColumnKind::Ip4, 32);
const IP6: (ColumnKind, u8) = (ColumnKind::Ip6, 128);

fn uint(width: u8) -> (ColumnKind, u8) {
    (ColumnKind::Uint, width)
}

fn begins(columns: &[Column], wanted: &[(ColumnKind, u8)]) -> bool {
    columns.len() >= wanted.len()
        && columns.iter().zip(wanted).all(|(own, (kind, width))| own.kind == *kind && own.width == *width)
}

fn are(columns: &[Column], wanted: &[(ColumnKind, u8)]) -> bool {
    columns.len() == wanted.len() && begins(columns, wanted)
}

impl PacketTables {
    /// Where it stands who reaches whom, and whether what stands there is over.
    pub(super) fn places(&self) -> impl Iterator<Item = (u32, bool)> {
        self.bound.into_iter().map(|table| (table, false)).chain([(self.quarantine, true)])
    }

    /// Looks for the tables and events of a program, which is to carry IPv6, too, or may do so, and to lead
    /// clients by server names, or may do so.
    ///
    /// # Errors
    /// What the program lacks, and what to do.
    pub(crate) fn of(program: &Program, ipv6: bool, by_server_name: bool) -> Result<PacketTables, String> {
        let lacks = |wanted: &str| {
            format!(
                "packets of a waypoint need {wanted} in the program, as `waypoint.rav` has it: take that program, or leave `[names.waypoint]` out where another machine carries the packets"
            )
        };
        let find = |name: &str| (0..).zip(&program.tables).find(|(_, table)| table.name == name);
        let to = [uint(24), IP4];
        let by_address = [IP4, uint(8), uint(16), IP4];
        let wanted = format!(
            "a table `{EXPECTATIONS}: lpm(at: ip4, proto: u8, number: u16, initiator: ip4) -> (u24, ip4)`"
        );
        let (expectations, table) = find(EXPECTATIONS)
            .filter(|(_, table)| table.kind == TableKind::Lpm)
            .filter(|(_, table)| are(&table.keys, &by_address) && are(&table.values, &to))
            .ok_or_else(|| lacks(&wanted))?;
        let by_initiator = [IP4, IP4, uint(8), uint(16)];
        let mut held = 0;
        let mut exact = |name: &str| {
            let wanted = format!(
                "a table `{name}: exact(initiator: ip4, at: ip4, proto: u8, number: u16)` whose values begin with the gateway's number (u24) and the host (ip4)"
            );
            let found = find(name)
                .filter(|(_, table)| table.kind == TableKind::Exact)
                .filter(|(_, table)| are(&table.keys, &by_initiator) && begins(&table.values, &to));
            held += found.map_or(0, |(_, table)| table.capacity as usize);
            found.map(|(place, _)| place).ok_or_else(|| lacks(&wanted))
        };
        let young = find(BOUND[0]).map_or(0, |(_, table)| table.capacity as usize);
        let (bound, quarantine) =
            ([exact(BOUND[0])?, exact(BOUND[1])?, exact(BOUND[2])?, exact(BOUND[3])?], exact(QUARANTINE)?);
        let noted = [uint(24), IP4, (ColumnKind::Time, 64), (ColumnKind::Time, 64)];
        if !are(&program.tables[quarantine as usize].values, &noted) {
            let wanted = format!("in the table `{QUARANTINE}` the values `(u24, ip4, time, time)`");
            return Err(lacks(&wanted));
        }
        let wanted = format!("a table `{MACHINE}: exact(proto: u8, number: u16)`");
        let (machine, _) = find(MACHINE)
            .filter(|(_, table)| table.kind == TableKind::Exact)
            .filter(|(_, table)| are(&table.keys, &[uint(8), uint(16)]) && table.values.is_empty())
            .ok_or_else(|| lacks(&wanted))?;
        let of_cookies = find(COOKIE_KEYS)
            .filter(|(_, table)| table.kind == TableKind::Exact)
            .filter(|(_, table)| are(&table.keys, &[uint(8)]) && are(&table.values, &[uint(64), uint(64)]));
        if of_cookies.is_some_and(|(_, table)| !table.secret) {
            return Err(lacks(&format!("`secret` among the properties of the table `{COOKIE_KEYS}`")));
        }
        let cookie_keys = of_cookies.map(|(place, _)| place);
        if held > MOST_BINDINGS {
            return Err(format!(
                "the program's tables of bindings hold {held} entries, and a waypoint knows {MOST_BINDINGS} at most: lower `MOST_BINDINGS` by `[set]`"
            ));
        }
        for name in EVENTS {
            let wanted = format!(
                "an event `{name}(initiator: ip4, at: ip4, proto: u8, number: u16, gateway: u24, host: ip4)`"
            );
            let params = [IP4, IP4, uint(8), uint(16), uint(24), IP4];
            let found = program.events.iter().find(|event| event.name == name);
            found.filter(|event| are(&event.params, &params)).ok_or_else(|| lacks(&wanted))?;
        }
        let exact = |name: &str, keys: &[(ColumnKind, u8)], values: &[(ColumnKind, u8)]| {
            let (place, table) = find(name)?;
            let fits = table.kind == TableKind::Exact && are(&table.keys, keys) && are(&table.values, values);
            fits.then_some((place, table.capacity as usize))
        };
        let there = exact(STABLE[0], &[IP6, uint(8), uint(16)], &[uint(24), IP6]);
        let back = exact(STABLE[1], &[uint(24), IP6, uint(8), uint(16)], &[IP6]);
        let stable = there.zip(back).map(|((there, room), (back, other))| StableTables {
            there,
            back,
            room: room.min(other),
        });
        if ipv6 && stable.is_none() {
            return Err(lacks(
                "tables `stable6: exact(at: ip6, proto: u8, number: u16) -> (u24, ip6)` and `stable6_back: exact(gateway: u24, host: ip6, proto: u8, number: u16) -> ip6`",
            ));
        }
        let open = exact(SERVER_NAMES[0], &[IP4, uint(16)], &[]);
        let named = exact(SERVER_NAMES[1], &[IP4, uint(16), IP4, uint(16)], &[uint(24), IP4, uint(32)]);
        let server_names = open
            .zip(named)
            .filter(|(_, (named, _))| program.tables[*named as usize].age.is_some())
            .filter(|_| program.reasons.iter().any(|reason| reason.name == SERVER_NAME))
            .map(|((open, _), (named, _))| ServerNameTables { open, named });
        if by_server_name && server_names.is_none() {
            return Err(lacks(
                "tables `server_names: exact(at: ip4, number: u16)` and `named: exact(initiator: ip4, initiator_port: u16, at: ip4, number: u16) -> (u24, ip4, u32)` with `age`, and the reason `server_name`",
            ));
        }
        let room = table.capacity as usize;
        Ok(PacketTables {
            expectations,
            room,
            bound,
            young,
            quarantine,
            machine,
            cookie_keys,
            stable,
            server_names,
        })
    }
}
