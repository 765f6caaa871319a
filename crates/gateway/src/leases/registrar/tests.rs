//! What becomes of leases when the file is read again.

use super::*;
use crate::config::ProcessConfig;
use crate::config::names::NamesConfig;
use naming::{Service, Services};
use std::net::UdpSocket;
use std::path::Path;
use tunnel::SecretKey;

const HEAD: &str = "zone = \"home.example\"\n[[names.server]]\nname = \"ns.other.example.\"\n";
const NAS: &str =
    "[[names.host]]\nname = \"nas\"\ngateway = \"home\"\naddress = \"10.0.0.9\"\nservices = [\"tcp/22\"]\n";

fn file(given: &str, host: &str) -> NamesConfig {
    let gateway = format!(
        "[[names.gateway]]\nname = \"home\"\nnetworks = [\"10.0.0.0/24\"]\nnames = [{given}]\npeer = 1\n"
    );
    let pool = "[names.waypoint]\nknown = [\"198.51.100.1\"]\n";
    let free = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
    let text = format!("[names]\nlisten = [\"{free}\"]\n{HEAD}{gateway}{host}{pool}");
    match ProcessConfig::read(&text, Path::new("")) {
        Ok(ProcessConfig::Names(config)) => config.names,
        Ok(ProcessConfig::Gateway(_)) => panic!("it has no ports"),
        Err(error) => panic!("{error}"),
    }
}

/// Names of such a file. A port that is free for UDP may be taken for TCP.
fn opened(given: &str) -> Arc<Names> {
    let open = || Names::open(&file(given, "")).ok();
    Arc::new(std::iter::repeat_with(open).take(100).flatten().next().expect("a free port"))
}

fn home(keys: &[u8]) -> [WantedPeer; 1] {
    let keys = keys.iter().map(|byte| SecretKey::new([*byte; 32]).public()).collect();
    [WantedPeer { name: "home".to_owned(), number: 1, keys, endpoint: None, keepalive: None, packets: true }]
}

fn ask(epoch: u64, serial: u64, what: Registration) -> ControlAsk {
    ControlAsk { epoch, serial, body: AskBody::Register(what) }
}

fn offer(name: &str) -> Registration {
    let name = DnsName::parse(&format!("{name}.home.example")).expect("is one");
    let services = Services::new([Service { protocol: 6, port: 22 }]).expect("one");
    Registration::Offer(HostOffer { name, host: [10, 0, 0, 7].into(), ipv6: None, services })
}

/// Where the name `nas` leads.
fn leads(names: &Names) -> Option<u8> {
    names.view().hosts.first().map(|host| host.place.address.octets()[3])
}

#[test]
fn a_name_that_a_file_has_taken_from_a_lease_comes_back_with_the_next_file() {
    let (before, names) = (file("\"nas\"", ""), opened("\"nas\""));
    let mut registrar = Registrar::new(1, names.clone());
    registrar.follow(&home(&[1]));
    let leased = AnswerBody::Lease(30_000);
    let said = |registrar: &mut Registrar, serial, what| {
        registrar.heard(1, &ask(1, serial, what), serial).expect("is answered").body
    };
    assert_eq!(said(&mut registrar, 1, offer("nas")), leased);
    assert_eq!(leads(&names), Some(7));
    for taken in [file("\"nas\"", NAS), file("", "")] {
        let owner = (!taken.zone.names.is_empty()).then_some(9);
        names.follow(&taken, None);
        registrar.follow(&home(&[1]));
        assert_eq!(leads(&names), owner);
        // The gateway, which knows nothing of that, goes on with its lease.
        assert_eq!(said(&mut registrar, 2, Registration::Renew), leased);
        assert_eq!(leads(&names), owner);
        names.follow(&before, None);
        registrar.follow(&home(&[1]));
        assert_eq!(leads(&names), Some(7));
    }
    // It ends with its lease as before.
    assert_eq!(said(&mut registrar, 3, Registration::Release), leased);
    assert_eq!(leads(&names), None);
}

#[test]
fn what_was_said_by_a_key_that_is_taken_away_is_forgotten_and_names_stay() {
    let names = opened("\"nas\", \"tv\"");
    let mut registrar = Registrar::new(1, names.clone());
    registrar.follow(&home(&[1, 2]));
    let leased = AnswerBody::Lease(30_000);
    let said = |registrar: &mut Registrar, epoch, serial, what| {
        registrar.heard(1, &ask(epoch, serial, what), serial).map(|answer| answer.body)
    };
    assert_eq!(said(&mut registrar, 5, 1, offer("nas")), Ok(leased));
    // Who has stolen a key speaks for a life that no later one can take over from.
    assert_eq!(said(&mut registrar, u64::MAX, 2, Registration::Renew), Ok(leased));
    assert_eq!(said(&mut registrar, 6, 3, Registration::Renew), Err("old_epoch"));
    registrar.follow(&home(&[2]));
    assert_eq!(leads(&names), Some(7), "the keys were changed one after the other, and nothing is gone");
    assert_eq!(said(&mut registrar, 6, 4, Registration::Renew), Ok(leased));
    assert_eq!(said(&mut registrar, 6, 5, offer("tv")), Ok(leased));
    assert_eq!(names.view().hosts.len(), 2);
    registrar.follow(&home(&[3]));
    assert_eq!(leads(&names), None, "none of the keys is left");
}
