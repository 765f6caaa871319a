//! Tests of VNICs in a gateway's file.

use crate::config::Config;
use ports::live::GuestLink;
use std::path::Path;

fn read(port: &str) -> Result<Config, String> {
    let text = format!("program = \"p.rav\"\n[[port]]\ninterface = \"services\"\n{port}\n");
    Config::read(&text, Path::new("/")).map_err(|error| error.message)
}

#[test]
fn a_router_is_read_with_its_addresses() {
    let config = read(
        "kind = \"vnic\"\nvnic = { ethernet = \"02:00:00:00:01:0a\", addresses = [\"192.0.2.1/24\", \"2001:db8::1/64\"], advertises = true, guest = true }",
    )
    .expect("it is right");
    let vnic = config.ports[0].vnic.as_ref().expect("it has one");
    assert_eq!(vnic.ethernet, [2, 0, 0, 0, 1, 10]);
    assert_eq!((vnic.addresses.len(), vnic.mtu, vnic.advertises, vnic.dhcp_client), (2, 1500, true, false));
    assert_eq!(vnic.guest, Some(GuestLink::Tap));
}

#[test]
fn a_machine_is_linked_as_is_said() {
    for (guest, link) in [
        ("false", None),
        ("true", Some(GuestLink::Tap)),
        ("\"tap\"", Some(GuestLink::Tap)),
        ("\"vhost-user\"", Some(GuestLink::VhostUser)),
    ] {
        let port = format!("kind = \"vnic\"\nvnic = {{ ethernet = \"02:00:00:00:01:0a\", guest = {guest} }}");
        let config = read(&port).expect("it is right");
        assert_eq!(config.ports[0].vnic.as_ref().and_then(|vnic| vnic.guest), link, "{guest}");
        // Linux of a machine hands over by a TAP what is then to be finished.
        let without_offloads = read(&format!("{port}\noffloads = \"off\""));
        assert_eq!(without_offloads.is_ok(), link != Some(GuestLink::Tap), "{guest}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let vnic = |inside: &str| format!("kind = \"vnic\"\nvnic = {{ {inside} }}");
    let many: String = (1..=65).map(|host| format!("\"10.0.0.{host}/8\",")).collect();
    for (port, told) in [
        ("kind = \"vnic\"".to_owned(), "a VNIC needs"),
        ("vnic = { ethernet = \"02:00:00:00:01:01\" }".to_owned(), "`kind = \"vnic\"` alone"),
        (vnic("ethernet = \"02:00:00:00:01\""), "no Ethernet address"),
        (vnic("ethernet = \"03:00:00:00:01:01\""), "of a station"),
        (vnic("ethernet = \"02:00:00:00:01:01\", addresses = [\"192.0.2.1\"]"), "with a length"),
        (vnic("ethernet = \"02:00:00:00:01:01\", addresses = [\"224.0.0.1/24\"]"), "of a host"),
        (
            vnic("ethernet = \"02:00:00:00:01:01\", addresses = [\"10.0.0.1/8\", \"10.0.0.1/8\"]"),
            "above already",
        ),
        (vnic("ethernet = \"02:00:00:00:01:01\", mtu = 500"), "between 576"),
        (vnic("ethernet = \"02:00:00:00:01:01\", guest = \"memory\""), "\"vhost-user\""),
        (vnic("ethernet = \"02:00:00:00:01:01\", guest = 5"), "\"vhost-user\""),
        (
            vnic("ethernet = \"02:00:00:00:01:01\", mtu = 600, addresses = [\"2001:db8::1/64\"]"),
            "between 1280",
        ),
        (vnic(&format!("ethernet = \"02:00:00:00:01:01\", addresses = [{many}]")), "at most 64"),
        (vnic("ethernet = \"02:00:00:00:01:01\"") + "\noffloads = \"whole\"", "cut before they are judged"),
        (vnic("ethernet = \"02:00:00:00:01:01\", guest = true") + "\noffloads = \"off\"", "would not pass"),
        (
            vnic("ethernet = \"02:00:00:00:01:01\", guest = \"tap\"") + "\noffloads = \"off\"",
            "would not pass",
        ),
    ] {
        let error = read(&port).expect_err(&port);
        assert!(error.contains(told), "{port}: {error}");
    }
}
