//! Parses messages of rtnetlink about links, addresses, neighbours, next hops and routes (linux/rtnetlink.h,
//! neighbour.h, nexthop.h, if_link.h).
//!
//! ```text
//! message    length 4 | kind 2 | flags 2 | sequence 4 | port 4 | header of its kind | attributes
//! attribute  length 2 | kind 2 | value, filled up to a multiple of 4        numbers are of this machine's order, addresses of the network's
//! link       family 1 | – 1 | type 2 | index 4 | flags 4 | changed 4
//! address    family 1 | prefix length 1 | flags 1 | scope 1 | index 4
//! route      family 1 | length 1 | source's length 1 | TOS 1 | table 1 | protocol 1 | scope 1 | type 1 | flags 4
//! neighbour  family 1 | – 3 | index 4 | state 2 | flags 1 | type 1
//! next hop   family 1 | scope 1 | protocol 1 | – 1 | flags 4            in a route: length 2 | flags 1 | weight 1 | index 4 | attributes
//! ```
//!
//! A route that says more than a gateway can do is handed on as such, and not as what would be left of it: an
//! encapsulation that is overlooked sends bare what was to go through a tunnel. So an attribute that is not
//! known makes a route one that is not meant.

use super::neighbours::Mac;
use super::port::Link;
use super::prefix::{InterfaceAddress, IpPrefix};
use super::rib::{Unmeant, Way};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Errors that go by themselves: EINTR, EAGAIN, ENOMEM, EBUSY, ENOBUFS.
const AGAIN: [i32; 5] = [4, 11, 12, 16, 105];

/// Kinds of messages.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const DELETE_ADDRESS: u16 = 21;
const GET_ADDRESS: u16 = 22;
const NEW_ROUTE: u16 = 24;
const DELETE_ROUTE: u16 = 25;
const GET_ROUTE: u16 = 26;
const NEW_NEIGHBOUR: u16 = 28;
const DELETE_NEIGHBOUR: u16 = 29;
const GET_NEIGHBOUR: u16 = 30;
const NEW_NEXT_HOP: u16 = 104;
const DELETE_NEXT_HOP: u16 = 105;
const GET_NEXT_HOP: u16 = 106;

/// Flags of messages.
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
const PART: u16 = 2;
const INTERRUPTED: u16 = 0x10;
const REPLACE: u16 = 0x100;
const APPEND: u16 = 0x800;

/// Families.
const INET: u8 = 2;
const INET6: u8 = 10;

/// The main table.
const MAIN: u32 = 254;
/// A route that the kernel made of another for one destination.
const CLONED: u32 = 0x200;
/// Types of routes.
const UNICAST: u8 = 1;
const BLACKHOLE: u8 = 6;
const UNREACHABLE: u8 = 7;
const PROHIBIT: u8 = 8;

/// What all is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Links,
    Addresses,
    Neighbours,
    NextHops,
    Ipv4Routes,
    Ipv6Routes,
}

/// The question for all of something.
pub(crate) fn question(wanted: Wanted) -> Vec<u8> {
    // The header of each kind, all zero but for the family: all kinds of it.
    let (kind, family, length) = match wanted {
        Wanted::Links => (GET_LINK, 0, 16),
        Wanted::Addresses => (GET_ADDRESS, 0, 8),
        Wanted::Neighbours => (GET_NEIGHBOUR, 0, 12),
        Wanted::NextHops => (GET_NEXT_HOP, 0, 8),
        Wanted::Ipv4Routes => (GET_ROUTE, INET, 12),
        Wanted::Ipv6Routes => (GET_ROUTE, INET6, 12),
    };
    let mut message = Vec::new();
    message.extend((16 + length as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((REQUEST | DUMP).to_ne_bytes());
    message.extend([1u32, 0].map(u32::to_ne_bytes).concat());
    message.push(family);
    message.resize(16 + length, 0);
    message
}

/// A next hop as the kernel tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Hop {
    /// By the interface of this number, to a router or to hosts of its link.
    By(u32, Option<IpAddr>),
    /// Whatever the next hop of this number is, which is told of by itself.
    Object(u32),
    /// Nowhere.
    Nowhere(Way),
}

impl Hop {
    /// One that the gateway cannot do.
    fn unmeant(why: Unmeant) -> Hop {
        Hop::Nowhere(Way::Unmeant(why))
    }
}

/// What a next hop that has a number of its own is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    /// One.
    One(Hop),
    /// Several, by number, each with its weight.
    Group(Vec<(u32, u32)>),
}

impl Object {
    /// How many next hops it holds, itself included.
    pub(crate) fn size(&self) -> usize {
        match self {
            Object::One(_) => 1,
            Object::Group(members) => 1 + members.len(),
        }
    }
}

/// Packets that a route is for alone, among those to its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Condition {
    /// Those of this type of service.
    Tos(u8),
    /// Those from this prefix.
    From(IpPrefix),
}

/// What tells a route from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) prefix: IpPrefix,
    pub(crate) condition: Option<Condition>,
    pub(crate) metric: u32,
}

/// How an interface hangs together with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ties {
    /// The interface that it is made on, or that is its other end.
    pub(crate) on: Option<u32>,
    /// The bridge, or the like, that it is a part of.
    pub(crate) part_of: Option<u32>,
}

/// How a route is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteNews {
    /// In the answer to a question for all, as it was when that part of the answer was put together.
    Listed,
    /// It came, before others of its metric.
    Came,
    /// It came, behind others of its metric.
    Appended,
    /// It came in place of others of its metric.
    Replaces,
    /// It went.
    Went,
}

/// One thing that the kernel told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// An interface is there, or has gone; `link` is nothing where it has no Ethernet address.
    Link { index: u32, name: String, link: Option<Link>, ties: Option<Ties> },
    /// An address of this machine came or went; routes may have gone with it silently. It is `usable` unless
    /// it is still looked whether somebody else has it (RFC 4862, 5.4), or somebody has.
    Address { index: u32, address: InterfaceAddress, usable: bool, there: bool },
    /// What a neighbour is at an interface of the machine: its Ethernet address where the entry is permanent,
    /// so that nobody is asked; nothing where it is another entry, or gone.
    Neighbour { index: u32, address: IpAddr, permanent: Option<Mac> },
    /// A next hop with a number came, changed, or went with every route by it.
    Object { number: u32, object: Option<Object> },
    /// A route is there, or went. Next hops without a weight have weight 1.
    Route { key: Key, hops: Vec<Hop>, weights: Vec<u32>, news: RouteNews },
    /// What is being told changed meanwhile: some of it may be left out.
    Interrupted,
    /// All of what was asked for has been told; `broken` if it changed meanwhile.
    Done { broken: bool },
}

/// Reads the messages of one receipt. What cannot be read, or is about something else, is left out.
pub(crate) fn read(mut bytes: &[u8]) -> Vec<Told> {
    let mut told = Vec::new();
    while let Some((length, kind, flags)) = head(bytes) {
        let Some(body) = bytes.get(16..length) else { break };
        // Of a change, the flags may be those of whoever asked for it.
        let interrupted = PART | INTERRUPTED;
        told.extend((flags & interrupted == interrupted).then_some(Told::Interrupted));
        told.extend(one(kind, flags, body));
        // Messages begin at multiples of 4 bytes.
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    told
}

fn head(bytes: &[u8]) -> Option<(usize, u16, u16)> {
    Some((long(bytes, 0)? as usize, short(bytes, 4)?, short(bytes, 6)?))
}

fn one(kind: u16, flags: u16, body: &[u8]) -> Option<Told> {
    let broken = flags & INTERRUPTED != 0;
    match kind {
        DONE => Some(Told::Done { broken }),
        // A kernel without IPv6, or without numbered next hops, has none; one that was busy is to be asked
        // again.
        ERROR => {
            let code = long(body, 0).map_or(0, |code| code.cast_signed());
            Some(Told::Done { broken: broken || AGAIN.contains(&code.wrapping_neg()) })
        }
        NEW_LINK => link(body, true),
        DELETE_LINK => link(body, false),
        NEW_ADDRESS => address(body, true),
        DELETE_ADDRESS => address(body, false),
        NEW_NEIGHBOUR => neighbour(body, true),
        DELETE_NEIGHBOUR => neighbour(body, false),
        NEW_NEXT_HOP => next_hop(body, true),
        DELETE_NEXT_HOP => next_hop(body, false),
        NEW_ROUTE if flags & PART != 0 => route(body, RouteNews::Listed),
        NEW_ROUTE if flags & REPLACE != 0 => route(body, RouteNews::Replaces),
        NEW_ROUTE if flags & APPEND != 0 => route(body, RouteNews::Appended),
        NEW_ROUTE => route(body, RouteNews::Came),
        DELETE_ROUTE => route(body, RouteNews::Went),
        _ => None,
    }
}

fn link(body: &[u8], there: bool) -> Option<Told> {
    const NAME: u16 = 3;
    const ADDRESS: u16 = 1;
    const MTU: u16 = 4;
    const ON: u16 = 5;
    const PART_OF: u16 = 10;
    const STATE: u16 = 16;
    const ON_ELSEWHERE: u16 = 37;
    const UP: u32 = 1;
    // Not present, down, lower layer down (RFC 2863).
    const DOWN: [u8; 3] = [1, 2, 3];
    let (index, flags) = (long(body, 4)?, long(body, 8)?);
    let (mut name, mut mac, mut mtu, mut state) = (String::new(), None::<Mac>, 1500, 0);
    let (mut ties, mut elsewhere) = (Ties::default(), false);
    for (kind, value) in attributes(body, 16) {
        match kind {
            NAME => name = String::from_utf8_lossy(value.strip_suffix(&[0]).unwrap_or(value)).into_owned(),
            ADDRESS => mac = value.try_into().ok(),
            MTU => mtu = long(value, 0)?,
            STATE => state = *value.first()?,
            ON => ties.on = long(value, 0),
            PART_OF => ties.part_of = long(value, 0),
            ON_ELSEWHERE => elsewhere = true,
            _ => {}
        }
    }
    if elsewhere {
        // A number of another network namespace.
        ties.on = None;
    }
    let up = flags & UP != 0 && !DOWN.contains(&state);
    let link = mac.filter(|_| there).map(|mac| Link { index, mac, mtu, up });
    Some(Told::Link { index, name, link, ties: there.then_some(ties) })
}

fn address(body: &[u8], there: bool) -> Option<Told> {
    const ADDRESS: u16 = 1;
    const LOCAL: u16 = 2;
    const FLAGS: u16 = 8;
    // Somebody else has it, and it is not known yet whether somebody has.
    const NOT_USABLE: u32 = 0x08 | 0x40;
    const NO_NETWORK: u32 = 0x200;
    let [family, length, flags, _] = *body.first_chunk()?;
    let (index, mut flags) = (long(body, 4)?, u32::from(flags));
    let (mut local, mut other) = (None, None);
    for (kind, value) in attributes(body, 8) {
        match kind {
            LOCAL => local = ip(family, value),
            // At a link with two ends that of the other; where there is no other, the own one.
            ADDRESS => other = ip(family, value),
            FLAGS => flags = long(value, 0)?,
            _ => {}
        }
    }
    let address = local.or(other)?;
    // Without a network on the link, or with that of the other end: the address stands alone.
    let alone = flags & NO_NETWORK != 0 || other.is_some_and(|other| other != address);
    let length = if alone { IpPrefix::host(address).length() } else { length };
    let usable = flags & NOT_USABLE == 0;
    Some(Told::Address { index, address: InterfaceAddress { address, length }, usable, there })
}

/// Gives an interface an address, of which it is not looked whether somebody else has it, or takes it away.
pub(crate) fn set_address(index: u32, own: InterfaceAddress, there: bool) -> Vec<u8> {
    const ACKNOWLEDGE: u16 = 4;
    const CREATE: u16 = 0x400;
    const WITHOUT_QUESTION: u8 = 2;
    const ADDRESS: u16 = 1;
    const LOCAL: u16 = 2;
    const BROADCAST: u16 = 4;
    let (kind, flags) = if there { (NEW_ADDRESS, CREATE | REPLACE) } else { (DELETE_ADDRESS, 0) };
    let family = if own.address.is_ipv4() { INET } else { INET6 };
    let mut body = vec![family, own.length, WITHOUT_QUESTION, 0];
    body.extend(index.to_ne_bytes());
    let all = own.broadcast().filter(|_| there).map(|all| (BROADCAST, all));
    for (kind, address) in [(LOCAL, own.address), (ADDRESS, own.address)].into_iter().chain(all) {
        let value = match address {
            IpAddr::V4(four) => four.octets().to_vec(),
            IpAddr::V6(six) => six.octets().to_vec(),
        };
        body.extend([4 + value.len() as u16, kind].map(u16::to_ne_bytes).concat());
        body.extend(value);
    }
    let mut message = (16 + body.len() as u32).to_ne_bytes().to_vec();
    message.extend([kind, REQUEST | ACKNOWLEDGE | flags].map(u16::to_ne_bytes).concat());
    message.extend([1u32, 0].map(u32::to_ne_bytes).concat());
    message.extend(body);
    message
}

/// What the kernel answers to a wish: 0 where it was granted, else the number of an error. `None` where a
/// message is something else.
pub(crate) fn answer(message: &[u8]) -> Option<i32> {
    (short(message, 4)? == ERROR).then(|| long(message, 16).map(|code| code.cast_signed().wrapping_neg()))?
}

fn neighbour(body: &[u8], there: bool) -> Option<Told> {
    const ADDRESS: u16 = 1;
    const LINK_ADDRESS: u16 = 2;
    const PERMANENT: u16 = 0x80;
    /// The machine answers for somebody else.
    const PROXY: u8 = 0x08;
    let (family, index, state, flags) = (*body.first()?, long(body, 4)?, short(body, 8)?, *body.get(10)?);
    let (mut address, mut mac) = (None, None::<Mac>);
    for (kind, value) in attributes(body, 12) {
        match kind {
            ADDRESS => address = ip(family, value),
            LINK_ADDRESS => mac = value.try_into().ok(),
            _ => {}
        }
    }
    if flags & PROXY != 0 {
        return None;
    }
    let permanent = mac.filter(|_| there && state & PERMANENT != 0);
    Some(Told::Neighbour { index, address: address?, permanent })
}

fn next_hop(body: &[u8], there: bool) -> Option<Told> {
    const NUMBER: u16 = 1;
    const GROUP: u16 = 2;
    const GROUP_TYPE: u16 = 3;
    const BLACKHOLE: u16 = 4;
    const INTERFACE: u16 = 5;
    const GATEWAY: u16 = 6;
    const ENCAPSULATES: [u16; 2] = [7, 8];
    // What the kernel says of them beside what they are: statistics, and the buckets of a resilient group.
    const OTHERS: [u16; 6] = [12, 13, 14, 15, 16, 17];
    let family = *body.first()?;
    let (mut number, mut group, mut interface, mut gateway, mut nowhere) = (None, None, None, None, None);
    for (kind, value) in attributes(body, 8) {
        match kind {
            NUMBER => number = long(value, 0),
            GROUP => group = Some(value.chunks_exact(8).filter_map(group_member).collect()),
            BLACKHOLE => nowhere = Some(Hop::Nowhere(Way::Blackhole)),
            INTERFACE => interface = long(value, 0),
            GATEWAY => gateway = Some(ip(family, value)?),
            GROUP_TYPE => {}
            kind if ENCAPSULATES.contains(&kind) => nowhere = Some(Hop::unmeant(Unmeant::Encapsulates)),
            kind if OTHERS.contains(&kind) => {}
            kind => nowhere = Some(Hop::unmeant(Unmeant::Attribute(kind))),
        }
    }
    let one = || nowhere.or_else(|| interface.map(|interface| Hop::By(interface, gateway)));
    let object = group.map(Object::Group).or_else(|| one().map(Object::One));
    // One that is nothing of this leads nowhere.
    let object = object.unwrap_or(Object::Group(Vec::new()));
    Some(Told::Object { number: number?, object: there.then_some(object) })
}

/// A member of a group, of 8 bytes: its number, and one less than its weight, the low byte first.
fn group_member(member: &[u8]) -> Option<(u32, u32)> {
    let weight = u16::from_le_bytes([*member.get(4)?, *member.get(5)?]);
    Some((long(member, 0)?, u32::from(weight) + 1))
}

fn route(body: &[u8], news: RouteNews) -> Option<Told> {
    const DESTINATION: u16 = 1;
    const SOURCE: u16 = 2;
    const INTERFACE: u16 = 4;
    const GATEWAY: u16 = 5;
    const METRIC: u16 = 6;
    const SEVERAL: u16 = 9;
    const TABLE: u16 = 15;
    const VIA: u16 = 18;
    const ENCAPSULATES: [u16; 2] = [21, 22];
    const OBJECT: u16 = 30;
    // The own address to send from, metrics, a realm, the state of a cache, whether routers prefer it, and
    // when it ends.
    const OTHERS: [u16; 6] = [7, 8, 11, 12, 20, 23];
    let [family, length, source_length, tos, table, _, _, kind] = *body.first_chunk()?;
    let mut table = u32::from(table);
    let (mut metric, mut destination, mut source) = (0, None, None);
    let (mut interface, mut gateway, mut several, mut object, mut unmeant) = (None, None, None, None, None);
    for (attribute, value) in attributes(body, 12) {
        match attribute {
            TABLE => table = long(value, 0)?,
            METRIC => metric = long(value, 0)?,
            DESTINATION => destination = Some(ip(family, value)?),
            SOURCE => source = Some(ip(family, value)?),
            INTERFACE => interface = long(value, 0),
            OBJECT => object = long(value, 0),
            GATEWAY => gateway = Some(ip(family, value)?),
            VIA => gateway = Some(via(value)?),
            SEVERAL => several = Some(hops(family, value)),
            // An attribute that is not known weighs more: it is never what a numbered next hop says.
            kind if ENCAPSULATES.contains(&kind) => unmeant = unmeant.or(Some(Unmeant::Encapsulates)),
            kind if OTHERS.contains(&kind) => {}
            kind => unmeant = Some(Unmeant::Attribute(kind)),
        }
    }
    let all = match family {
        INET => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        INET6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => return None,
    };
    let prefix = IpPrefix::of(destination.unwrap_or(all), length);
    let local = prefix.address().is_multicast()
        || prefix.address().is_loopback()
        || super::port::is_link_local(prefix.address());
    // The route that IPv6 has where there is none (metric 2^32 - 1) is no route.
    if table != MAIN || local || metric == u32::MAX || long(body, 8)? & CLONED != 0 {
        return None;
    }
    let (several, weights) = several.unzip();
    let hops = match (kind, unmeant, object) {
        // It is as its numbered next hop is, and goes with that, silently. What that says, the kernel says
        // here again: its encapsulation, too.
        (UNICAST, None | Some(Unmeant::Encapsulates), Some(number)) => vec![Hop::Object(number)],
        (UNICAST, None, None) => several.unwrap_or_else(|| vec![Hop::By(interface.unwrap_or(0), gateway)]),
        (UNICAST, Some(unmeant), _) => vec![Hop::unmeant(unmeant)],
        // Of a numbered next hop that is one: it goes with that.
        (BLACKHOLE, _, Some(number)) => vec![Hop::Object(number)],
        (BLACKHOLE, _, None) => vec![Hop::Nowhere(Way::Blackhole)],
        (UNREACHABLE, ..) => vec![Hop::Nowhere(Way::Unreachable)],
        (PROHIBIT, ..) => vec![Hop::Nowhere(Way::Prohibited)],
        (kind, ..) => vec![Hop::unmeant(Unmeant::Type(kind))],
    };
    let condition = match (tos, source_length) {
        (0, 0) => None,
        (0, length) => Some(Condition::From(IpPrefix::of(source.unwrap_or(all), length))),
        (tos, _) => Some(Condition::Tos(tos)),
    };
    let weights = weights.unwrap_or_default();
    Some(Told::Route { key: Key { prefix, condition, metric }, hops, weights, news })
}

/// The next hops of a route that has several, and their weights: each says one less.
fn hops(family: u8, mut bytes: &[u8]) -> (Vec<Hop>, Vec<u32>) {
    const GATEWAY: u16 = 5;
    const REALM: u16 = 11;
    const VIA: u16 = 18;
    const ENCAPSULATES: [u16; 2] = [21, 22];
    let (mut hops, mut weights) = (Vec::new(), Vec::new());
    while let Some((length, index)) = short(bytes, 0).zip(long(bytes, 4)) {
        let Some(hop) = bytes.get(..usize::from(length)).filter(|hop| hop.len() >= 8) else { break };
        let mut gateway = None;
        let mut unmeant = None;
        for (kind, value) in attributes(hop, 8) {
            match kind {
                GATEWAY => gateway = ip(family, value),
                VIA => gateway = via(value),
                REALM => {}
                kind if ENCAPSULATES.contains(&kind) => unmeant = Some(Unmeant::Encapsulates),
                kind => unmeant = Some(unmeant.unwrap_or(Unmeant::Attribute(kind))),
            }
        }
        hops.push(unmeant.map_or(Hop::By(index, gateway), Hop::unmeant));
        weights.push(u32::from(hop[3]) + 1);
        bytes = bytes.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
    }
    (hops, weights)
}

/// Kinds and values from `start` on. Kinds without the bit that says that there are attributes in the value.
fn attributes(bytes: &[u8], start: usize) -> impl Iterator<Item = (u16, &[u8])> {
    const NESTED: u16 = 0x8000;
    let mut bytes = bytes.get(start..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, kind) = (usize::from(short(bytes, 0)?), short(bytes, 2)?);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & !NESTED, value))
    })
}

fn ip(family: u8, value: &[u8]) -> Option<IpAddr> {
    match family {
        INET => value.first_chunk::<4>().map(|four| IpAddr::from(*four)),
        INET6 => value.first_chunk::<16>().map(|six| IpAddr::from(*six)),
        _ => None,
    }
}

/// An address of whichever family, which stands before it.
fn via(value: &[u8]) -> Option<IpAddr> {
    ip(u8::try_from(short(value, 0)?).ok()?, value.get(2..)?)
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.first_chunk().map(|value| u16::from_ne_bytes(*value))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.first_chunk().map(|value| u32::from_ne_bytes(*value))
}

#[cfg(test)]
mod tests;
