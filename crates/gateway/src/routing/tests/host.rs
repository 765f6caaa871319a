//! The machine as a host at a port: which packets it gets, and addresses that change while the router knows
//! neighbours and routes.

use super::*;
use crate::routing::link_frames::question;

/// The scene with the machine as a host at these ports.
fn hosted(ports: &[usize]) -> Scene {
    let mut settings = Scene::settings();
    for port in ports {
        settings.ports[port - 1].host_interface = Some(format!("h-x{port}"));
    }
    Scene::of(&settings, 16, 0)
}

/// What becomes of a packet: the frames that are sent, and whether the machine gets it.
fn punt(scene: &mut Scene, reason: &str, port: PortNumber, bytes: Vec<u8>) -> (usize, bool) {
    let mut effects = Effects::default();
    let packet = Packet { port, bytes: bytes.clone(), virtio: VirtioHeader::NONE };
    scene.router.packet(reason, packet, scene.now, &mut effects);
    let handed = std::mem::take(&mut effects.for_host);
    let to = |packet: &Packet| packet.bytes[..6] == bytes[..6] || packet.bytes[..6] == EVERYBODY;
    let same = |packet: &Packet| packet.port == port && packet.bytes[6..] == bytes[6..] && to(packet);
    assert!(handed.iter().all(same), "as it came");
    assert!(handed.len() <= 1);
    (scene.replay(effects).len(), handed.len() == 1)
}

fn readdress(scene: &mut Scene, port: PortNumber, addresses: &[&str]) -> Vec<Injected> {
    let addresses = addresses.iter().map(|text| text.parse().expect("an address")).collect();
    let mut effects = Effects::default();
    scene.router.readdress(port, addresses, scene.now, &mut effects);
    scene.replay(effects)
}

fn asks_for(target: &str, source: &str) -> Vec<u8> {
    question((A, address(source)), address(target), None).expect("of one family")
}

#[test]
fn one_of_both_answers_and_the_machine_gets_to_see_the_rest() {
    let mut scene = hosted(&[1]);
    let mut echo = Vec::new();
    let builder = PacketBuilder::ethernet2(A, OWN[0]).ipv4([10, 0, 1, 2], [10, 0, 1, 1], 64);
    builder.icmpv4_echo_request(7, 4).write(&mut echo, &[7; 40]).expect("fits");
    let udp = datagram("10.0.1.1", 64, 9);
    for (reason, port, bytes, becomes) in [
        // The gateway answers for its addresses, and the machine is not asked besides.
        ("neighbours", 1, asks_for("10.0.1.1", "10.0.1.2"), (1, false)),
        ("link_only", 1, asks_for("fd00:1::1", "fd00:1::2"), (1, false)),
        // For others it is for the machine to answer, or not.
        ("neighbours", 1, asks_for("10.0.1.9", "10.0.1.2"), (0, true)),
        ("link_only", 1, asks_for("fd00:1::9", "fd00:1::2"), (0, true)),
        // Answers are for both, as are those who have an address that the machine may want.
        ("neighbours", 1, arp(false, (A, "10.0.1.2"), (OWN[0], "10.0.1.1"), OWN[0]), (0, true)),
        ("neighbours", 1, arp(false, (A, "10.0.1.1"), (OWN[0], "10.0.1.1"), OWN[0]), (0, true)),
        ("ours", 1, echo.clone(), (0, true)),
        ("ours", 1, udp.clone(), (0, true)),
        ("link_only", 1, datagram("10.0.1.255", 64, 9), (0, true)),
        ("link_only", 1, datagram("10.0.2.255", 64, 9), (0, false)),
        ("link_only", 1, vec![0; 14], (0, true)),
        ("neighbours", 1, vec![0; 20], (0, true)),
        // Where the machine is no host the gateway answers, as it always does.
        ("ours", 2, echo, (1, false)),
        ("ours", 2, udp, (1, false)),
        ("neighbours", 2, asks_for("10.0.1.9", "10.0.1.2"), (0, false)),
    ] {
        assert_eq!(punt(&mut scene, reason, port, bytes.clone()), becomes, "{reason} {port} {bytes:?}");
        scene.check();
    }
    assert!(scene.router.neighbours.has(Neighbour { port: 1, address: address("10.0.1.2") }));
}

#[test]
fn the_machine_does_not_get_back_what_it_sent() {
    let mut scene = hosted(&[1]);
    let question = |mac| arp(true, (mac, "0.0.0.0"), (EVERYBODY, "10.0.1.77"), EVERYBODY);
    assert_eq!(punt(&mut scene, "neighbours", 1, question(A)), (0, true));
    assert_eq!(punt(&mut scene, "neighbours", 1, question(OWN[0])), (0, false));
    let mut sent = datagram("10.0.1.255", 64, 9);
    sent[6..12].copy_from_slice(&OWN[0]);
    assert_eq!(punt(&mut scene, "link_only", 1, sent), (0, false));
    scene.check();
}

#[test]
fn what_is_for_nobody_here_is_not_sent_on_by_linux() {
    let mut scene = hosted(&[1]);
    let mut handed = |to: &str| {
        let packet = Packet { port: 1, bytes: datagram(to, 64, 9), virtio: VirtioHeader::NONE };
        let mut effects = Effects::default();
        scene.router.packet("link_only", packet, scene.now, &mut effects);
        effects.for_host[0].bytes[..6] == EVERYBODY
    };
    // An offer of an address, before the machine has it.
    assert!(handed("10.0.1.99") && handed("203.0.113.9"));
    assert!(!handed("10.0.1.1") && !handed("10.0.2.1") && !handed("224.0.0.5") && !handed("fe80::9"));
}

#[test]
fn addresses_that_come_and_go_are_answered_for_and_routed_as_if_they_had_been_there_always() {
    let mut scene = hosted(&[1]);
    assert_eq!(scene.route("10.0.1.7/32"), None);
    readdress(&mut scene, 1, &["10.0.1.1/24", "10.0.1.7/24", "203.0.113.9/28", "fe80::77/64"]);
    assert_eq!(scene.route("10.0.1.7/32"), Some(ITSELF.into()));
    assert_eq!(scene.route("203.0.113.0/28"), Some(link_number(1).into()));
    assert_eq!(scene.route("203.0.113.15/32"), Some(BROADCAST.into()));
    assert_eq!(scene.route("fd00:1::1/128"), None, "it has gone");
    let asked = |scene: &mut Scene, target, source| punt(scene, "link_only", 1, asks_for(target, source)).0;
    assert_eq!(asked(&mut scene, "fe80::77", "fe80::2"), 1);
    assert_eq!(asked(&mut scene, "fd00:1::1", "fe80::2"), 0);
    // A neighbour in a network that goes is none any more.
    assert_eq!(scene.packet("unresolved", 2, datagram("203.0.113.3", 9, 1)).len(), 1);
    scene.packet("neighbours", 1, arp(false, (A, "203.0.113.3"), (OWN[0], "203.0.113.9"), OWN[0]));
    assert!(scene.route("203.0.113.3/32").is_some());
    readdress(&mut scene, 1, &["10.0.1.1/24"]);
    assert_eq!((scene.route("203.0.113.3/32"), scene.route("203.0.113.0/28")), (None, None));
    assert_eq!(asked(&mut scene, "fe80::77", "fe80::2"), 0);
    scene.check();
    // None at all, and all again.
    readdress(&mut scene, 1, &[]);
    scene.check();
    readdress(&mut scene, 1, &["10.0.1.1/24", "fd00:1::1/64"]);
    scene.check();
    assert_eq!(scene.route("fd00:1::1/128"), Some(ITSELF.into()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// A router whose addresses changed one after the other tells the program what a router tells it that
    /// has had the last ones from its start; and so after a reload.
    #[test]
    fn a_router_with_other_addresses_is_one_that_has_always_had_them(
        changes in prop::collection::vec((1u16..=2, prop::collection::vec(0usize..9, 0..5), any::<bool>()), 1..8)
    ) {
        const POOL: [&str; 9] = [
            "10.0.1.1/24", "10.0.2.1/24", "10.0.1.77/24", "10.0.1.9/32", "10.0.0.1/16", "198.51.100.1/24",
            "fd00:1::1/64", "fd00:2::7/64", "fd00:1::9/128",
        ];
        let mut scene = hosted(&[1, 2]);
        let mut settings = Scene::settings();
        for (port, chosen, reloaded) in changes {
            let mut chosen: Vec<&str> = chosen.iter().map(|index| POOL[*index]).collect();
            chosen.sort_unstable();
            chosen.dedup();
            readdress(&mut scene, port, &chosen);
            if reloaded {
                scene.reload();
            }
            settings.ports[usize::from(port) - 1].addresses =
                scene.router.port(port).expect("is there").addresses.clone();
        }
        scene.check();
        let mut fresh = Scene::of(&settings, 16, 0);
        fresh.fill();
        prop_assert_eq!(scene.tables, fresh.tables);
    }
}
