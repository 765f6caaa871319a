//! Who gives way where there is no room: whoever shows no key to whoever comes, so that nobody without a key
//! keeps those out who have one.

use crate::limits::{CONNECTIONS, OF_KEY, UNKNOWN_OF_NETWORK};
use std::net::IpAddr;
use std::time::Instant;

/// What is known of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) number: u64,
    /// Where it comes from.
    pub(crate) network: IpAddr,
    /// The key that it has shown, if it has.
    pub(crate) key: Option<[u8; 32]>,
    /// Since when it is there, of one without a key; since when nothing came from it, of another.
    pub(crate) since: Instant,
    /// Whether it waits for an answer of the gateway.
    pub(crate) waits: bool,
}

/// Whether there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// There is.
    Free,
    /// Once this connection is closed.
    InPlaceOf(u64),
    /// There is none.
    None,
}

/// The network of an address: whoever has one address of IPv6 has 2^64 of them.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
        address => address,
    }
}

/// Room for a connection from a network, which has not shown a key yet.
pub(crate) fn for_newcomer(places: &[Place], from: IpAddr) -> Room {
    let unknown = || places.iter().filter(|place| place.key.is_none());
    let of_network = || unknown().filter(|place| place.network == from);
    if of_network().count() >= UNKNOWN_OF_NETWORK {
        return in_place_of_oldest(of_network());
    }
    if places.len() < CONNECTIONS {
        return Room::Free;
    }
    match in_place_of_oldest(unknown()) {
        Room::None => in_place_of_oldest(places.iter().filter(|place| !place.waits)),
        room => room,
    }
}

/// Room for this connection, which has shown a key now.
pub(crate) fn for_key(places: &[Place], key: [u8; 32], number: u64) -> Room {
    let others = || places.iter().filter(|place| place.key == Some(key) && place.number != number);
    if others().count() < OF_KEY {
        return Room::Free;
    }
    in_place_of_oldest(others().filter(|place| !place.waits))
}

fn in_place_of_oldest<'a>(places: impl Iterator<Item = &'a Place>) -> Room {
    let oldest = places.min_by_key(|place| place.since);
    oldest.map_or(Room::None, |place| Room::InPlaceOf(place.number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn place(number: u64, network: IpAddr, key: Option<u8>, begun: Instant) -> Place {
        let since = begun + Duration::from_secs(number);
        Place { number, network, key: key.map(|byte| [byte; 32]), since, waits: false }
    }

    #[test]
    fn whoever_shows_no_key_gives_way_and_nobody_keeps_others_out() {
        let begun = Instant::now();
        let elsewhere = |number: u64| IpAddr::V4((0x0a00_0000 + number as u32).into());
        let mut places: Vec<_> =
            (0..UNKNOWN_OF_NETWORK as u64).map(|number| place(number, HERE, None, begun)).collect();
        assert_eq!(for_newcomer(&places[1..], HERE), Room::Free);
        assert_eq!(for_newcomer(&places, HERE), Room::InPlaceOf(0), "the oldest of its network");
        assert_eq!(for_newcomer(&places, elsewhere(0)), Room::Free);
        let more = places.len() as u64..CONNECTIONS as u64;
        places.extend(more.map(|number| place(number, elsewhere(number), None, begun)));
        assert_eq!(for_newcomer(&places, elsewhere(0)), Room::InPlaceOf(0), "the oldest of all");
        places[0].key = Some([1; 32]);
        assert_eq!(for_newcomer(&places, elsewhere(0)), Room::InPlaceOf(1), "the oldest without a key");
        places.iter_mut().for_each(|place| place.key = Some([place.number as u8; 32]));
        assert_eq!(for_newcomer(&places, HERE), Room::InPlaceOf(0), "the one that is silent longest");
        places[0].waits = true;
        assert_eq!(for_newcomer(&places, HERE), Room::InPlaceOf(1));
        places.iter_mut().for_each(|place| place.waits = true);
        assert_eq!(for_newcomer(&places, HERE), Room::None);
    }

    #[test]
    fn a_key_has_so_many_connections_and_no_more() {
        let begun = Instant::now();
        let mut places: Vec<_> =
            (0..=OF_KEY as u64).map(|number| place(number, HERE, Some(1), begun)).collect();
        let last = OF_KEY as u64;
        assert_eq!(for_key(&places[1..], [1; 32], last), Room::Free);
        assert_eq!(for_key(&places, [1; 32], last), Room::InPlaceOf(0));
        places[0].waits = true;
        assert_eq!(for_key(&places, [1; 32], last), Room::InPlaceOf(1));
        places.iter_mut().for_each(|place| place.waits = true);
        assert_eq!(for_key(&places, [1; 32], last), Room::None);
        assert_eq!(for_key(&places, [2; 32], last), Room::Free);
    }

    #[test]
    fn addresses_of_one_network_count_together() {
        let of = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1:2:3"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), HERE);
        assert_ne!(of("192.0.2.2"), HERE);
    }
}
