//! Clients that say a server name, at a waypoint whose packets only take note of what they are told.

use super::super::packet_tables::PacketTables;
use super::super::packets::{KeyState, Target};
use super::super::packets_of_test::PacketsOfTest;
use super::super::server_name_tables::{self, OpenPort, ServerNameTables};
use super::super::tests::tables;
use super::super::view::{NameWish, SaidServerNameView};
use super::*;
use crate::config::ProcessConfig;
use crate::limits::SERVER_NAMES_SHOWN;
use naming::{BindingKey, Service};
use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex};

const FILE: &str = r#"
[names]
listen = ["127.0.0.1:1"]
zone = "home.example"
shared_address = "203.0.113.9"
[[names.server]]
name = "ns1"
addresses = ["192.0.2.53"]
[[names.gateway]]
name = "home"
networks = ["10.0.0.0/8"]
peer = 7
[[names.host]]
name = "nas"
gateway = "home"
address = "10.0.0.1"
services = ["tcp/22", "tcp/443"]
ipv4 = "per-initiator"
[[names.host]]
name = "tv"
gateway = "home"
address = "10.0.0.2"
services = ["tcp/443"]
ipv4 = "shared"
[names.waypoint]
known = ["203.0.113.16/32"]
unknown = ["203.0.113.32/31"]
server_names = ["tcp/443", "tcp/8443"]
"#;

/// What packets were told.
#[derive(Default)]
struct Told {
    open: BTreeSet<OpenPort>,
    led: HashMap<ClientConnection, Target>,
    full: bool,
}

struct Noted(Arc<Mutex<Told>>);

impl PacketsOfTest for Noted {
    fn open(&mut self, gone: Vec<OpenPort>, new: Vec<OpenPort>) -> Result<(), String> {
        let mut told = self.0.lock().expect("no panic");
        told.open.retain(|port| !gone.contains(port));
        told.open.extend(new);
        Ok(())
    }

    fn lead_client(&mut self, connection: &ClientConnection, target: Target) -> bool {
        let mut told = self.0.lock().expect("no panic");
        if !told.full {
            told.led.insert(*connection, target);
        }
        !told.full
    }

    fn lead_nobody(&mut self, target: Target) {
        self.0.lock().expect("no panic").led.retain(|_, led| *led != target);
    }

    fn state(&mut self) -> Option<KeyState> {
        Some(KeyState { young: (0, 4), ..KeyState::default() })
    }
}

/// The waypoint of a file, whose packets take note.
fn waypoint(file: &str) -> (Answering, Arc<Mutex<Told>>) {
    let config = match ProcessConfig::read(file, Path::new("")) {
        Ok(ProcessConfig::Names(config)) => config.names,
        Ok(ProcessConfig::Gateway(_)) => panic!("no port is there"),
        Err(error) => panic!("{error}"),
    };
    let mut answering = Answering::new(&config, None, &Arc::default()).expect("it is right");
    let (waypoint, told) = (answering.waypoint.clone().expect("it is one"), Arc::default());
    locked(&waypoint).carry(&tables(64), answering.gateways(), &BTreeSet::new(), [1, 2]);
    locked(&waypoint).begin(Box::new(Noted(Arc::clone(&told))));
    answering.stand().expect("there is room");
    (answering, told)
}

fn wish(name: &str, last: u8, services: &[&str]) -> NameWish {
    NameWish {
        name: name.to_owned(),
        place: HostPlace { gateway: "home".into(), address: [10, 0, 0, last].into() },
        services: services.iter().map(|text| (*text).to_owned()).collect(),
        ipv4: Ipv4Mode::PerInitiator,
        ipv6: None,
    }
}

/// The first message of a client (RFC 8446, 4.1.2) that means this server, in one record.
fn hello(server: &str) -> Vec<u8> {
    let prefixed = |width: usize, bytes: &[u8]| {
        let length = (bytes.len() as u32).to_be_bytes();
        [&length[4 - width..], bytes].concat()
    };
    let entry = [&[0][..], &prefixed(2, server.as_bytes())].concat();
    let names = [&[0, 0][..], &prefixed(2, &prefixed(2, &entry))].concat();
    let signatures = [0, 13, 0, 4, 0, 2, 4, 3];
    let extensions = prefixed(2, &[&names[..], &signatures].concat());
    let body = [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 1], &[1, 0], &extensions].concat();
    prefixed_record(&[&[1][..], &prefixed(3, &body)].concat())
}

fn prefixed_record(message: &[u8]) -> Vec<u8> {
    [&[22, 3, 1][..], &(message.len() as u16).to_be_bytes(), message].concat()
}

/// A client, by its port, at an address and port of the waypoint.
fn client(initiator_port: u16, address: u8, port: u16) -> ClientConnection {
    let address = [203, 0, 113, address].into();
    ClientConnection { initiator: [198, 51, 100, 9].into(), initiator_port, address, port, acknowledges: 77 }
}

fn says(answering: &mut Answering, connection: ClientConnection, server: &str) {
    answering.segment(&ClientSegment { connection, sequence: 5, bytes: &hello(server) }, 1);
}

fn peer(last: u8) -> Target {
    Target { peer: 7, host: [10, 0, 0, last].into() }
}

fn outcomes(answering: &Answering) -> Vec<(&'static str, u64)> {
    answering.figures().server_names.into_iter().collect()
}

#[test]
fn a_client_goes_to_the_host_whose_name_it_says_and_to_no_other() {
    let (mut answering, told) = waypoint(FILE);
    answering.add(&wish("cam", 3, &["tcp/443"])).expect("it is free");
    let led = |at: &ClientConnection| told.lock().expect("no panic").led.get(at).copied();
    // Both at the same address, from the same client.
    let (one, other) = (client(1, 32, 443), client(2, 32, 443));
    says(&mut answering, one, "nas.home.example");
    says(&mut answering, other, "CAM.home.example");
    assert_eq!([led(&one), led(&other)], [Some(peer(1)), Some(peer(3))]);
    assert_eq!(outcomes(&answering), [("led", 2)]);
    let refused = [
        (client(3, 32, 443), "none.home.example"),
        (client(4, 32, 443), "home.example"),
        (client(5, 32, 443), "nas.other.example"),
        // It has an address of its own.
        (client(6, 32, 443), "tv.home.example"),
        // What the host does not offer, and what the file does not let be led.
        (client(7, 32, 8443), "nas.home.example"),
        (client(8, 32, 22), "nas.home.example"),
    ];
    for (at, name) in refused {
        says(&mut answering, at, name);
        assert_eq!(led(&at), None, "{name}");
    }
    let mut of_server = hello("nas.home.example");
    of_server[5] = 2;
    answering.segment(&ClientSegment { connection: client(9, 32, 443), sequence: 0, bytes: &of_server }, 1);
    let wanted = [("led", 2), ("no_such_service", 2), ("not_shared", 1), ("not_tls", 1), ("unknown_name", 3)];
    assert_eq!(outcomes(&answering), wanted);
    told.lock().expect("no panic").full = true;
    says(&mut answering, client(10, 32, 443), "nas.home.example");
    assert!(outcomes(&answering).contains(&("named_full", 1)));
    // Half of a message waits, and is counted once it has waited in vain.
    let half = ClientSegment {
        connection: client(11, 32, 443),
        sequence: 0,
        bytes: &hello("nas.home.example")[..40],
    };
    answering.segment(&half, 2);
    says(&mut answering, client(12, 32, 443), "nas.home.example");
    assert!(!outcomes(&answering).iter().any(|(outcome, _)| *outcome == "unfinished"));
    answering.segment(&half, 2 + naming::limits::HELLO_WAITS);
    assert!(outcomes(&answering).contains(&("unfinished", 1)));
}

#[test]
fn places_are_open_while_a_name_is_offered_there_and_who_was_led_to_a_host_that_is_gone_is_not() {
    let (mut answering, told) = waypoint(FILE);
    let open = || told.lock().expect("no panic").open.clone();
    let at = |port: u16| [16, 32, 33].map(|last| (Ipv4Addr::new(203, 0, 113, last), port));
    assert_eq!(open(), at(443).into());
    answering.add(&wish("cam", 3, &["tcp/443", "tcp/8443", "tcp/25", "udp/443"])).expect("it is free");
    assert_eq!(open(), at(443).into_iter().chain(at(8443)).collect());
    says(&mut answering, client(1, 32, 8443), "cam.home.example");
    says(&mut answering, client(2, 32, 443), "nas.home.example");
    answering.remove("cam").expect("it is there");
    assert_eq!(open(), at(443).into());
    let led = || told.lock().expect("no panic").led.values().copied().collect::<Vec<_>>();
    assert_eq!(led(), [peer(1)]);
    answering.remove("nas").expect("it is there");
    assert_eq!((open(), led()), (BTreeSet::new(), Vec::new()));
    // What is not in the file is open nowhere.
    let (_, told) = waypoint(&FILE.replace("server_names", "# server_names"));
    assert_eq!(told.lock().expect("no panic").open, BTreeSet::new());
}

#[test]
fn names_why_says_that_a_client_is_led_and_what_it_said() {
    let (mut answering, _) = waypoint(FILE);
    let service = Service { protocol: 6, port: 443 };
    let key = |last: u8| BindingKey {
        initiator: [198, 51, 100, 9].into(),
        address: [203, 0, 113, last].into(),
        service,
    };
    says(&mut answering, client(1, 32, 443), "nas.home.example");
    says(&mut answering, client(2, 32, 443), "none.home.example");
    let waypoint = answering.waypoint.clone().expect("it is one");
    let outcome = |key: &BindingKey| locked(&waypoint).why(key, 1).expect("packets follow").outcome;
    assert_eq!(outcome(&key(32)), "server_name");
    assert_eq!(
        outcome(&BindingKey { service: Service { port: 22, ..service }, ..key(32) }),
        "no_expectation"
    );
    let wanted = SaidServerNameView { name: Some("none.home.example".into()), outcome: "unknown_name" };
    assert_eq!(answering.server_names.said(&key(32)), Some(wanted));
    assert_eq!(answering.server_names.said(&key(33)), None);
    for port in 0..SERVER_NAMES_SHOWN as u16 {
        says(&mut answering, client(port, 33, 443), "nas.home.example");
    }
    assert_eq!(answering.server_names.said(&key(32)), None, "later ones have its place");
    // What is not looked at is counted, and takes no place.
    for port in 0..naming::limits::HELLO_SEGMENTS_OF_NETWORK as u16 {
        says(&mut answering, client(port, 16, 443), "nas.home.example");
    }
    assert!(outcomes(&answering).iter().any(|(outcome, _)| *outcome == "too_many_segments"));
    assert_eq!(answering.server_names.said(&key(16)).map(|said| said.outcome), Some("led"));
}

const TABLES: ServerNameTables = ServerNameTables { open: 0, named: 1 };

/// A program with small tables.
fn backend() -> Box<dyn exec::Backend> {
    let text = "table server_names: exact(at: ip4, number: u16) { capacity 3 }
    table named: exact(initiator: ip4, initiator_port: u16, at: ip4, number: u16) -> (u24, ip4, u32) {
        capacity 2 age 60s evict refuse
    }
    start stage all() {
        match server_names[1.1.1.1, 22] { some _ => flood, none => {} }
        match named[1.1.1.1, 1, 1.1.1.1, 22] { some _ => flood, none => flood }
    }";
    let compiled =
        lang::pipeline::compile("p.rav", text, &|_| None, &lang::pipeline::CompileOptions::default());
    let program = compiled.program.expect("compiles");
    exec::load(&program, exec::BackendKind::Interpreter, 1, 0).expect("it loads")
}

#[test]
fn tables_that_are_full_take_no_more_and_keep_what_they_have() {
    let mut backend = backend();
    let at = |last: u8| (Ipv4Addr::new(203, 0, 113, last), 443);
    let count = |backend: &dyn exec::Backend, table| backend.entries_held(table);
    server_name_tables::open(TABLES, backend.as_mut(), &[], &[at(1), at(2)]).expect("there is room");
    let error =
        server_name_tables::open(TABLES, backend.as_mut(), &[], &[at(3), at(4)]).expect_err("too many");
    assert!(error.contains("raise `MOST_SERVER_NAMES`"), "{error}");
    assert_eq!(count(backend.as_ref(), 0), 2);
    server_name_tables::open(TABLES, backend.as_mut(), &[at(1)], &[at(3), at(4)]).expect("one is gone");
    let error = server_name_tables::fill(TABLES, backend.as_mut(), (1..5).map(at)).expect_err("too many");
    assert!(error.contains("raise `MOST_SERVER_NAMES`"), "{error}");
    server_name_tables::fill(TABLES, backend.as_mut(), [at(5)].into_iter()).expect("there is room");
    assert_eq!(count(backend.as_ref(), 0), 1);
    let mut lead =
        |port| server_name_tables::lead(TABLES, backend.as_mut(), &client(port, 1, 443), peer(1), 9);
    lead(1).expect("there is room");
    lead(2).expect("there is room");
    lead(2).expect("it is there");
    assert!(lead(3).is_err());
    assert_eq!(count(backend.as_ref(), 1), 2);
}

#[test]
fn an_entry_has_the_number_of_its_connection_and_a_later_one_by_the_same_ports_takes_its_place() {
    let mut backend = backend();
    let earlier = client(1, 32, 443);
    let later = ClientConnection { acknowledges: u32::MAX, ..earlier };
    let mut lead = |connection, last| {
        server_name_tables::lead(TABLES, backend.as_mut(), &connection, peer(last), 9)
            .expect("there is room");
        backend.entries_part(TABLES.named, exec::EntryPlace::default(), 9).0
    };
    let key = [0xc633_6409, 1, 0xcb00_7120, 443];
    let entry = |last: u128, number: u128| ir::Entry::exact(&key, &[7, 0x0a00_0000 + last, number]);
    assert_eq!(lead(earlier, 1), [entry(1, 77)]);
    let held = lead(later, 2);
    assert_eq!(held, [entry(2, u32::MAX.into())]);
    // Which host it leads to does not depend on the number.
    assert!(server_name_tables::leads_to(&held[0], peer(2)));
    assert!(!server_name_tables::leads_to(&held[0], peer(1)));
}

#[test]
fn the_program_of_a_waypoint_leads_clients_and_one_without_the_tables_is_refused() {
    let text = include_str!("../../../../../programs/waypoint.rav");
    let options = lang::pipeline::CompileOptions::default();
    let compiled = lang::pipeline::compile("waypoint.rav", text, &|_| None, &options);
    let mut program = compiled.program.expect("compiles");
    assert!(PacketTables::of(&program, true, true).expect("it has all tables").server_names.is_some());
    let place = program.tables.iter().position(|table| table.name == "named").expect("it is there");
    let named = program.tables[place].clone();
    let mut lacks = |what: &str, table: ir::Table| {
        program.tables[place] = table;
        let error = PacketTables::of(&program, true, true).expect_err(what);
        let wanted = "number: u16) -> (u24, ip4, u32)` with `age`";
        assert!(error.contains("`named: exact(initiator: ip4, ") && error.contains(wanted), "{error}");
        assert_eq!(PacketTables::of(&program, true, false).expect("it is not needed").server_names, None);
    };
    lacks("it would lead a client for ever", ir::Table { age: None, ..named.clone() });
    let values = named.values[..2].to_vec();
    lacks("it would lead any connection of a client", ir::Table { values, ..named });
}
