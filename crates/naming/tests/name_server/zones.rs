//! Zones: what is refused, and names that come and go.

use crate::wire::asked;
use crate::{SECRETS, policy, twin, whole, zone};
use naming::dns::{
    DnsName, Ipv4Mode, MachineServices, NameDescription, NameServer, Zone, ZoneDescription, ZoneError,
};
use naming::limits::{MOST_NAMES, MOST_RECORDS_AT_NAME};
use naming::{Responder, Service, Services};

/// Something that makes a zone wrong.
type Change<'a> = &'a dyn Fn(&mut ZoneDescription);

fn description() -> ZoneDescription {
    toml::from_str(twin::ZONE).expect("a description")
}

fn tcp(port: u16) -> Services {
    Services::new([Service { protocol: 6, port }]).expect("few")
}

fn host(ipv4: Ipv4Mode) -> NameDescription {
    NameDescription { ipv4, ipv6: None, https: None, name: String::new(), responder: 0, services: Vec::new() }
}

fn name(text: &str) -> DnsName {
    DnsName::parse(text).expect("a name")
}

#[test]
fn a_zone_that_cannot_be_is_refused_with_what_to_do() {
    let refused = |change: &dyn Fn(&mut ZoneDescription)| {
        let mut description = description();
        change(&mut description);
        Zone::new(&description).expect_err("it cannot be").to_string()
    };
    let cases: [(Change<'_>, &str); 14] = [
        (&|zone| zone.zone = "a..b".to_owned(), "`a..b` is not a name"),
        (&|zone| zone.name_servers.clear(), "1 to 8 name servers"),
        (&|zone| zone.name_servers[0].addresses.clear(), "has no address: write its `addresses`"),
        (&|zone| zone.binding_ttl = 6, "at most 5 seconds"),
        (&|zone| zone.ttl = 1 << 31, "at most 2147483647"),
        (&|zone| zone.names[0].services[0] = "tcp/0".to_owned(), "`tcp/0` is not a service"),
        (&|zone| zone.names[0].services[0] = "protocol/6".to_owned(), "`protocol/6` is not a service"),
        (&|zone| zone.names[0].name = "nas.elsewhere.".to_owned(), "is not in the zone home.example"),
        (&|zone| zone.names[0].name = "@".to_owned(), "choose a name below it"),
        (&|zone| zone.names[0].name = "tv".to_owned(), "tv.home.example leads to a host already"),
        (&|zone| zone.names[0].name = "www".to_owned(), "has records of addresses beside it"),
        (&|zone| zone.names[1].ipv4 = Ipv4Mode::Shared, "offer the same service at the shared address"),
        (
            &|zone| zone.names[0].ipv4 = Ipv4Mode::Dedicated([203, 0, 113, 33].into()),
            "203.0.113.33 is not for cam.garden.home.example alone: nas.home.example has it",
        ),
        (
            &|zone| zone.names[0].ipv4 = Ipv4Mode::Dedicated([203, 0, 113, 9].into()),
            "203.0.113.9 is the shared address",
        ),
    ];
    for (change, wanted) in cases {
        let said = refused(change);
        assert!(said.contains(wanted), "`{said}` does not say `{wanted}`");
    }
    let said = refused(&|zone| {
        zone.shared_address = None;
        zone.names[0].ipv4 = Ipv4Mode::Shared;
    });
    assert!(said.contains("set `shared_address`"), "{said}");
}

#[test]
fn what_the_machine_itself_listens_at_is_for_no_name_at_its_addresses() {
    let mut described = description();
    let shared = described.shared_address.expect("there is one");
    let [ssh, other] = [22, 8_022].map(|port| Service { protocol: 6, port });
    described.machine = MachineServices { services: [ssh].into(), addresses: vec![(shared, 32)] };
    described.names.clear();
    let mut zone = Zone::new(&described).expect("a zone");
    let mut add = |of: &str, services: Services, mode| {
        let one = name(of);
        let added = zone.add(&one, Responder(1), services, &host(mode));
        added.map(|()| zone.mode(&one).expect("it is there"))
    };
    let own = add("a.home.example", tcp(22), Ipv4Mode::Shared);
    assert_eq!(own, Err(ZoneError::OfMachine(name("a.home.example"), ssh, shared)));
    assert_eq!(add("b.home.example", tcp(22), Ipv4Mode::Automatic), Ok(Ipv4Mode::PerInitiator));
    assert_eq!(add("c.home.example", tcp(other.port), Ipv4Mode::Automatic), Ok(Ipv4Mode::Shared));
    described.machine.addresses = vec![([203, 0, 113, 48].into(), 30)];
    let mut zone = Zone::new(&described).expect("a zone");
    let mut dedicated = |last: u8| {
        let mode = Ipv4Mode::Dedicated([203, 0, 113, last].into());
        zone.add(&name(&format!("d{last}.home.example")), Responder(1), tcp(22), &host(mode)).is_ok()
    };
    assert_eq!([47, 48, 51, 52].map(&mut dedicated), [true, false, false, true]);
}

#[test]
fn names_come_and_go_and_leave_the_zone_as_it_was() {
    let mut server = NameServer::new(zone(twin::ZONE), policy(), SECRETS);
    let before = format!("{:?}", whole(&mut server, &asked("deep.a.b.home.example.", 1)).sections[0]);
    let (deep, tv) = (name("deep.a.b.home.example"), name("tv.home.example"));
    let described = host(Ipv4Mode::Dedicated([203, 0, 113, 50].into()));
    server.zone_mut().add(&deep, Responder(9), tcp(22), &described).expect("it is free");
    assert_eq!(server.zone().serial(), 8);
    assert_eq!(whole(&mut server, &asked("deep.a.b.home.example.", 1)).sections[0].len(), 1);
    assert_eq!(whole(&mut server, &asked("b.home.example.", 1)).rcode, 0, "something is below it");
    assert_eq!(whole(&mut server, &asked("c.home.example.", 1)).sections[1], [twin::soa(8, 30)]);
    let again = server.zone_mut().add(&deep, Responder(9), tcp(22), &described);
    assert!(matches!(again, Err(ZoneError::Taken(_))), "{again:?}");
    assert_eq!(server.zone().serial(), 8, "nothing has changed");
    server.zone_mut().remove(&deep).expect("it is there");
    for gone in ["deep.a.b", "a.b", "b"] {
        assert_eq!(whole(&mut server, &asked(&format!("{gone}.home.example."), 1)).rcode, 3, "{gone}");
    }
    assert_eq!(format!("{:?}", whole(&mut server, &asked("deep.a.b.home.example.", 1)).sections[0]), before);
    assert!(matches!(server.zone_mut().remove(&deep), Err(ZoneError::Absent(_))));
    assert!(matches!(server.zone_mut().remove(&name("www.home.example")), Err(ZoneError::Absent(_))));
    // `tv` shares a port with `nas`, so it is asked for; without `nas` there would have been room.
    server.zone_mut().remove(&name("nas.home.example")).expect("it is there");
    server.zone_mut().remove(&tv).expect("it is there");
    server.zone_mut().add(&tv, Responder(2), tcp(22), &host(Ipv4Mode::Automatic)).expect("it is free");
    let said = whole(&mut server, &asked("tv.home.example.", 1));
    assert_eq!(said.sections[0][0].data, [203, 0, 113, 9]);
}

#[test]
fn a_zone_holds_so_many_names_and_records_and_no_more() {
    let mut zone = zone(twin::ZONE);
    let mut last = Ok(());
    for number in 0..MOST_NAMES {
        let one = name(&format!("n{number}.home.example"));
        last = zone.add(&one, Responder(1), tcp(1), &host(Ipv4Mode::PerInitiator));
        if last.is_err() {
            break;
        }
    }
    assert_eq!(last, Err(ZoneError::TooManyNames));
    zone.remove(&name("n0.home.example")).expect("it is there");
    let two = name("two.deep.home.example");
    let said = zone.add(&two, Responder(1), tcp(1), &host(Ipv4Mode::PerInitiator));
    assert_eq!(said, Err(ZoneError::TooManyNames), "two names need two places");
    zone.add(&name("one.home.example"), Responder(1), tcp(1), &host(Ipv4Mode::None)).expect("there is room");

    let mut many = description();
    let record = many.records[0].clone();
    many.records = vec![record; MOST_RECORDS_AT_NAME];
    let said = Zone::new(&many).map(|_| ());
    assert_eq!(said, Err(ZoneError::TooManyRecords(name("home.example"))));
}

#[test]
fn names_are_read_strictly() {
    for good in ["a", "A.b.", "_x.y-z.0", &format!("{}.a", "x".repeat(63))] {
        let name = name(good);
        assert_eq!(DnsName::from_wire(name.as_wire()), Some(name.clone()), "{good}");
        assert_eq!(name.to_string(), good.trim_end_matches('.').to_ascii_lowercase());
    }
    let long = vec!["x".repeat(63); 4].join(".");
    for bad in ["", ".", "a..b", "a b", "ä", "*", &"x".repeat(64), &long, &"x".repeat(300)] {
        assert!(DnsName::parse(bad).is_err(), "{bad}");
    }
    for bad in [&b"\x01A\0"[..], b"\0", b"\x01a", b"\x02a\0", b"\x01a\0\0", b"\xc0\x00", b"", b"\x01.\0"] {
        assert_eq!(DnsName::from_wire(bad), None, "{bad:?}");
    }
}
