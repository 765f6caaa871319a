//! Messages of rtnetlink: some written by another library, others by hand as the kernel writes them.

use super::super::router::RoutingSettings;
use super::*;
use netlink_packet_core::{NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::address::AddressAttribute;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage, State};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteNextHop, RouteType, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

fn bytes(message: RouteNetlinkMessage) -> Vec<u8> {
    let mut message = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::InnerMessage(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// A route to 198.51.100.0/24 in the main table with these attributes besides.
fn route_message(attributes: &[RouteAttribute]) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = AddressFamily::Inet;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.destination_prefix_length = 24;
    message.header.kind = RouteType::Unicast;
    message.attributes = vec![RouteAttribute::Destination(RouteAddress::Inet([198, 51, 100, 0].into()))];
    message.attributes.extend_from_slice(attributes);
    message
}

fn ip_of(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Key and next hops of the one route that is told of.
fn told(message: RouteMessage) -> (Key, Vec<Hop>) {
    let (key, hops, _) = weighted(message);
    (key, hops)
}

fn weighted(message: RouteMessage) -> (Key, Vec<Hop>, Vec<u32>) {
    match &read(&bytes(RouteNetlinkMessage::NewRoute(message)))[..] {
        [Told::Route { key, hops, weights, news: RouteNews::Came }] => (*key, hops.clone(), weights.clone()),
        other => panic!("{other:?}"),
    }
}

/// A message by hand.
fn by_hand(kind: u16, header: &[u8], attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = header.to_vec();
    for (kind, value) in attributes {
        body.extend((4 + value.len() as u16).to_ne_bytes());
        body.extend(kind.to_ne_bytes());
        body.extend(*value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    let mut message = Vec::new();
    message.extend((16 + body.len() as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend([0; 10]);
    message.extend(body);
    message
}

#[test]
fn routes_are_read_and_those_of_other_tables_left_out() {
    let gateway = RouteAttribute::Gateway(RouteAddress::Inet([10, 0, 2, 7].into()));
    let message = route_message(&[gateway, RouteAttribute::Oif(8), RouteAttribute::Priority(5)]);
    let (key, hops) = told(message.clone());
    assert_eq!(key, Key { prefix: "198.51.100.0/24".parse().expect("one"), condition: None, metric: 5 });
    assert_eq!(hops, [Hop::By(8, Some(ip_of("10.0.2.7")))]);
    let new = bytes(RouteNetlinkMessage::NewRoute(message.clone()));
    let (mut local, mut cloned) = (message.clone(), message);
    local.header.table = 255;
    cloned.header.flags = netlink_packet_route::route::RouteFlags::Cloned;
    let left_out = [local, cloned].map(|message| bytes(RouteNetlinkMessage::NewRoute(message))).concat();
    assert_eq!(
        read(&[left_out, new.clone()].concat()).len(),
        1,
        "the local table, and what the kernel made of a route"
    );
    for cut in 0..new.len() {
        read(&new[..cut]);
    }
}

#[test]
fn a_route_that_says_more_than_can_be_done_is_none_that_is_plain() {
    let by = [RouteAttribute::Oif(8)];
    let unmeant = |why| vec![Hop::Nowhere(Way::Unmeant(why))];
    let mut throw = route_message(&[]);
    throw.header.kind = RouteType::Throw;
    assert_eq!(told(throw).1, unmeant(Unmeant::Type(9)));
    let mut tos = route_message(&by);
    tos.header.tos = 0x10;
    assert_eq!(told(tos).0.condition, Some(Condition::Tos(0x10)));
    // As `encap ip` is written: its type, and what it says in attributes of its own. `ip route` never writes
    // the last one.
    let header = [2, 24, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0];
    let destination = (1, &[198, 51, 100, 0][..]);
    let out = (4, &8u32.to_ne_bytes()[..]);
    for (attribute, why) in [
        ((21, &[2, 0][..]), Unmeant::Encapsulates),
        ((0x8000 | 22, &[12, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 5][..]), Unmeant::Encapsulates),
        ((77, &[][..]), Unmeant::Attribute(77)),
    ] {
        let message = by_hand(NEW_ROUTE, &header, &[destination, out, attribute]);
        match &read(&message)[..] {
            [Told::Route { hops, .. }] => assert_eq!(*hops, unmeant(why)),
            other => panic!("{other:?}"),
        }
    }
    // One of several next hops encapsulates.
    let hop = |index: u32, attribute: &[u8]| {
        let mut hop = (8 + attribute.len() as u16).to_ne_bytes().to_vec();
        hop.extend([0, 0]);
        hop.extend(index.to_ne_bytes());
        hop.extend(attribute);
        hop
    };
    let several = [hop(8, &[6, 0, 21, 0, 2, 0, 0, 0]), hop(9, &[8, 0, 5, 0, 10, 0, 2, 7])].concat();
    match &read(&by_hand(NEW_ROUTE, &header, &[destination, (9, &several)]))[..] {
        [Told::Route { hops, .. }] => {
            let plain = Hop::By(9, Some(ip_of("10.0.2.7")));
            assert_eq!(*hops, [unmeant(Unmeant::Encapsulates), vec![plain]].concat());
        }
        other => panic!("{other:?}"),
    }
    // From a source alone, as IPv6 has it.
    let header = [10, 16, 8, 0, 254, 4, 0, 1, 0, 0, 0, 0];
    let mut source = [0; 16];
    source[0] = 0xfd;
    match &read(&by_hand(NEW_ROUTE, &header, &[(1, &[0x20; 16]), (2, &source), out]))[..] {
        [Told::Route { key, .. }] => {
            assert_eq!(key.condition, Some(Condition::From("fd00::/8".parse().expect("one"))));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn routes_that_are_plain_stay_plain() {
    let several: Vec<RouteNextHop> = [(7, 1), (8, 2)]
        .map(|(index, last)| {
            let mut hop = RouteNextHop::default();
            hop.interface_index = index;
            hop.hops = if last == 1 { 99 } else { 255 };
            hop.attributes = vec![RouteAttribute::Gateway(RouteAddress::Inet([10, 0, 0, last].into()))];
            hop
        })
        .to_vec();
    let (_, hops, weights) = weighted(route_message(&[RouteAttribute::MultiPath(several)]));
    assert_eq!(hops, [Hop::By(7, Some(ip_of("10.0.0.1"))), Hop::By(8, Some(ip_of("10.0.0.2")))]);
    assert_eq!(weights, [100, 256]);
    let six = std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 7);
    let (_, hops) = told(route_message(&[RouteAttribute::Via(RouteVia::Inet6(six)), RouteAttribute::Oif(8)]));
    assert_eq!(hops, [Hop::By(8, Some(six.into()))], "a router of the other family");
    for (kind, way) in [
        (RouteType::BlackHole, Way::Blackhole),
        (RouteType::Unreachable, Way::Unreachable),
        (RouteType::Prohibit, Way::Prohibited),
    ] {
        let mut message = route_message(&[]);
        message.header.kind = kind;
        assert_eq!(told(message).1, [Hop::Nowhere(way)]);
    }
}

#[test]
fn a_route_by_a_numbered_next_hop_is_as_that_is_whatever_it_says_besides() {
    let with = [RouteAttribute::NhId(7), RouteAttribute::Oif(8)];
    assert_eq!(told(route_message(&with)).1, [Hop::Object(7)]);
    // As with net.ipv4.nexthop_compat_mode=0.
    assert_eq!(told(route_message(&with[..1])).1, [Hop::Object(7)]);
    // With compatibility on, the kernel repeats what the next hop encapsulates by; the route ends with the
    // next hop all the same.
    let (encapsulates, encapsulation) = ((21, &[2, 0][..]), (0x8000 | 22, &[8, 0, 1, 0, 0, 0, 0, 5][..]));
    let numbered = (30, &7u32.to_ne_bytes()[..]);
    let header = [2, 24, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0];
    let basic = [(1, &[198, 51, 100, 0][..]), (4, &8u32.to_ne_bytes()[..]), encapsulation, encapsulates];
    let unknown = (77, &[][..]);
    for (more, wanted) in [
        (vec![numbered], Hop::Object(7)),
        // What no next hop says is of the route.
        (vec![numbered, unknown], Hop::Nowhere(Way::Unmeant(Unmeant::Attribute(77)))),
    ] {
        let message = by_hand(NEW_ROUTE, &header, &[&basic[..], &more].concat());
        match &read(&message)[..] {
            [Told::Route { hops, .. }] => assert_eq!(*hops, [wanted]),
            other => panic!("{other:?}"),
        }
    }
    let header = [2, 0, 0, 0, 0, 0, 0, 0];
    let number = (1, &7u32.to_ne_bytes()[..]);
    let out = (5, &8u32.to_ne_bytes()[..]);
    let members: Vec<u8> = [(71u32, [2, 0]), (81, [4, 1])]
        .iter()
        .flat_map(|(id, weight)| [&id.to_ne_bytes()[..], weight, &[0; 2]].concat())
        .collect();
    let one = |hop| Some(Object::One(hop));
    for (attributes, wanted) in [
        (vec![number, out, (6, &[10, 0, 2, 7][..])], one(Hop::By(8, Some(ip_of("10.0.2.7"))))),
        (vec![number, out], one(Hop::By(8, None))),
        (vec![number, (4, &[][..])], one(Hop::Nowhere(Way::Blackhole))),
        (vec![number, (2, &members[..]), (3, &[0, 0][..])], Some(Object::Group(vec![(71, 3), (81, 261)]))),
        (vec![number, out, (7, &[2, 0][..])], one(Hop::Nowhere(Way::Unmeant(Unmeant::Encapsulates)))),
        (vec![number, out, (11, &[][..])], one(Hop::Nowhere(Way::Unmeant(Unmeant::Attribute(11))))),
    ] {
        let told = read(&by_hand(NEW_NEXT_HOP, &header, &attributes));
        assert_eq!(told, [Told::Object { number: 7, object: wanted }]);
        let told = read(&by_hand(DELETE_NEXT_HOP, &header, &attributes));
        assert_eq!(told, [Told::Object { number: 7, object: None }]);
    }
}

#[test]
fn links_and_addresses_are_read() {
    let mut message = LinkMessage::default();
    message.header.index = 7;
    message.header.flags = LinkFlags::Up;
    message.attributes = vec![
        LinkAttribute::IfName("x".into()),
        LinkAttribute::Address(vec![2, 0, 0, 0, 0, 7]),
        LinkAttribute::Mtu(1400),
        LinkAttribute::OperState(State::Up),
        LinkAttribute::Link(8),
        LinkAttribute::Controller(9),
    ];
    let mac = [2, 0, 0, 0, 0, 7];
    let wanted = |up, on| Told::Link {
        index: 7,
        name: "x".into(),
        link: Some(Link { index: 7, mac, mtu: 1400, up }),
        ties: Some(Ties { on, part_of: Some(9) }),
    };
    assert_eq!(read(&bytes(RouteNetlinkMessage::NewLink(message.clone()))), [wanted(true, Some(8))]);
    message.attributes[3] = LinkAttribute::OperState(State::LowerLayerDown);
    message.attributes.push(LinkAttribute::LinkNetNsId(0));
    assert_eq!(read(&bytes(RouteNetlinkMessage::NewLink(message.clone()))), [wanted(false, None)]);
    let gone = read(&bytes(RouteNetlinkMessage::DelLink(message)));
    assert_eq!(gone, [Told::Link { index: 7, name: "x".into(), link: None, ties: None }]);
    // The other end of a link with two, and the own one.
    let header = [2, 32, 0, 0, 7, 0, 0, 0];
    let told = read(&by_hand(NEW_ADDRESS, &header, &[(1, &[10, 0, 0, 2]), (2, &[10, 0, 0, 1])]));
    let address = |address: IpAddr, length, usable, there| Told::Address {
        index: 7,
        address: InterfaceAddress { address, length },
        usable,
        there,
    };
    assert_eq!(told, [address(ip_of("10.0.0.1"), 32, true, true)]);
    let six = IpAddr::from([0x20; 16]);
    let told = read(&by_hand(DELETE_ADDRESS, &[10, 64, 0, 0, 7, 0, 0, 0], &[(1, &[0x20; 16])]));
    assert_eq!(told, [address(six, 64, true, false)]);
    // It is still looked whether somebody has it (0x40), somebody has (0x08), there is no network (0x200).
    for (flags, length, usable) in [(0x40u32, 64, false), (0x08, 64, false), (0x280, 128, true)] {
        let attributes = [(1, &[0x20; 16][..]), (8, &flags.to_ne_bytes())];
        let told = read(&by_hand(NEW_ADDRESS, &[10, 64, 0, 0, 7, 0, 0, 0], &attributes));
        assert_eq!(told, [address(six, length, usable, true)], "{flags:#x}");
    }
}

#[test]
fn the_kernel_is_asked_for_addresses_as_others_ask_for_them() {
    for (own, there) in [("10.0.1.1/24", true), ("fd00:1::1/64", true), ("10.0.1.1/24", false)] {
        let own: InterfaceAddress = own.parse().expect("an address");
        let message = set_address(7, own, there);
        let parsed = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&message).expect("is one");
        let (change, new) = match parsed.payload {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewAddress(change)) => (change, true),
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelAddress(change)) => (change, false),
            other => panic!("{other:?}"),
        };
        assert_eq!((change.header.index, change.header.prefix_len, new), (7, own.length, there));
        assert!(change.attributes.contains(&AddressAttribute::Local(own.address)), "{change:?}");
        assert!(change.attributes.contains(&AddressAttribute::Address(own.address)), "{change:?}");
        let all = change.attributes.contains(&AddressAttribute::Broadcast([10, 0, 1, 255].into()));
        assert_eq!(all, there && own.address.is_ipv4());
    }
    let error = [&36u32.to_ne_bytes()[..], &ERROR.to_ne_bytes(), &[0; 10], &(-17i32).to_ne_bytes(), &[0; 16]];
    assert_eq!(answer(&error.concat()), Some(17));
    assert_eq!(answer(&[0; 36]), None);
    assert_eq!(answer(&[]), None);
}

#[test]
fn an_answer_says_that_it_was_interrupted_and_a_change_does_not() {
    // NLM_F_MULTI and NLM_F_DUMP_INTR; a change has the flags of whoever asked for it.
    for (flags, says) in [(0x12u16, true), (0x10, false), (2, false)] {
        let mut message = by_hand(NEW_ROUTE, &[0; 12], &[]);
        message[6..8].copy_from_slice(&flags.to_ne_bytes());
        assert_eq!(read(&message).contains(&Told::Interrupted), says, "{flags:#x}");
    }
}

#[test]
fn questions_are_whole_messages() {
    for wanted in [Wanted::Links, Wanted::Addresses, Wanted::NextHops, Wanted::Ipv4Routes, Wanted::Ipv6Routes]
    {
        let message = question(wanted);
        let (length, _, flags) = head(&message).expect("a head");
        assert_eq!((length, flags), (message.len(), REQUEST | DUMP), "{wanted:?}");
    }
}

proptest::proptest! {
    /// Whatever the kernel, or what looks like it, says.
    #[test]
    fn any_bytes_are_read_to_their_end(mut bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200), kind in 0usize..8) {
        read(&bytes);
        if bytes.len() >= 16 {
            let kinds = [NEW_LINK, NEW_ADDRESS, NEW_ROUTE, DELETE_ROUTE, NEW_NEXT_HOP, DELETE_NEXT_HOP, ERROR, DONE];
            let length = bytes.len() as u32;
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            bytes[4..6].copy_from_slice(&kinds[kind].to_ne_bytes());
            let mut follower = super::super::follower::Follower::new(&RoutingSettings::default(), Default::default());
            let mut router = super::super::router::Router::new(&RoutingSettings::default(), 4, 0);
            follower.take(read(&bytes), 0, &mut router, &mut Default::default());
        }
    }
}

#[test]
fn only_permanent_neighbours_with_an_ethernet_address_are_told_as_such() {
    const LINK: &[u8] = &[2, 0, 0, 0, 0, 7];
    let message = |kind, family, state: u16, flags: u8, address: &[u8], link: &[u8]| {
        let header =
            [&[family, 0, 0, 0], &8u32.to_ne_bytes()[..], &state.to_ne_bytes(), &[flags, 1]].concat();
        by_hand(kind, &header, &[(1, address), (2, link), (3, &[0; 16])])
    };
    let six: std::net::Ipv6Addr = "fd00::7".parse().expect("an address");
    let four = [10, 0, 1, 7];
    let permanent = Some([2, 0, 0, 0, 0, 7]);
    let told =
        |address: &str, permanent| vec![Told::Neighbour { index: 8, address: ip_of(address), permanent }];
    for (message, wanted) in [
        (message(NEW_NEIGHBOUR, INET, 0x80, 0, &four, LINK), told("10.0.1.7", permanent)),
        (message(NEW_NEIGHBOUR, INET6, 0x80, 0, &six.octets(), LINK), told("fd00::7", permanent)),
        // Reachable; permanent without an address, and with one that is none of Ethernet; gone.
        (message(NEW_NEIGHBOUR, INET, 0x02, 0, &four, LINK), told("10.0.1.7", None)),
        (message(NEW_NEIGHBOUR, INET, 0x80, 0, &four, &[]), told("10.0.1.7", None)),
        (message(NEW_NEIGHBOUR, INET, 0x80, 0, &four, &[2; 8]), told("10.0.1.7", None)),
        (message(DELETE_NEIGHBOUR, INET, 0x80, 0, &four, LINK), told("10.0.1.7", None)),
        // The machine answers for it; an entry of a bridge; an address that is cut off.
        (message(NEW_NEIGHBOUR, INET, 0x80, 8, &four, LINK), vec![]),
        (message(NEW_NEIGHBOUR, 7, 0x80, 0, &[], LINK), vec![]),
        (message(NEW_NEIGHBOUR, INET6, 0x80, 0, &four, LINK), vec![]),
    ] {
        assert_eq!(read(&message), wanted, "{message:?}");
        for cut in 0..message.len() {
            assert!(read(&message[..cut]).is_empty(), "{cut}");
        }
    }
    let asked = question(Wanted::Neighbours);
    assert_eq!((asked.len(), short(&asked, 4)), (28, Some(GET_NEIGHBOUR)));
}
