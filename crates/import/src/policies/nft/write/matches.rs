//! Ways to meet a condition as `match` statements of nftables, for packets that come to a chain by certain
//! points.

use super::ways::{
    ALL_STATES, Comparison, Operand, Protocols, Unsayable, Way, carriers, icmp, merged, most, outside,
};
use crate::address::{self, AddressFamily};
use crate::nft::is_interface;
use policy::{HookPoint, PacketField, State};
use serde_json::{Value, json};

/// Which packets come to a chain as far as fragments go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fragments {
    /// No rule tells them from others.
    Alike,
    /// Linux follows connections, and so puts fragments together before the rules.
    Together,
    /// No later fragments.
    None,
    /// Later fragments only.
    Later,
}

impl Fragments {
    /// Whether some of the packets that a way leaves are among those that come.
    pub(super) fn meet(self, way: &Way) -> bool {
        match self {
            Fragments::None => way.whole,
            Fragments::Later => way.later,
            Fragments::Alike | Fragments::Together => true,
        }
    }
}

/// What is known of the packets that come to a chain.
#[derive(Clone, Copy)]
pub(super) struct Coming<'a> {
    /// The points by which they come.
    pub(super) points: &'a [HookPoint],
    pub(super) fragments: Fragments,
    /// The names of interfaces and their ports.
    pub(super) interfaces: &'a [(String, u16)],
}

/// The statements for a way that packets of a family have; of both families, if it is `None`. `known` says
/// that only packets of the family come. `None` comes back where no packet can match.
pub(super) fn statements(
    way: &Way,
    family: Option<AddressFamily>,
    known: bool,
    coming: Coming<'_>,
) -> Result<Option<Vec<Value>>, Unsayable> {
    let any_family = family.unwrap_or_default();
    let headers: Vec<&Comparison> =
        way.comparisons.iter().filter(|one| carriers(one.field, any_family).is_some()).collect();
    let mut matches = Vec::new();
    let mut protocols = Some(way.protocols);
    let mut of_headers = Vec::new();
    let header = header(way.protocols, any_family);
    for one in &headers {
        let (protocol, name) = match one.field {
            PacketField::SourcePort => (header, "sport"),
            PacketField::DestinationPort => (header, "dport"),
            PacketField::TcpFlags => ("tcp", "flags"),
            PacketField::IcmpType => (header, "type"),
            _ => (header, "code"),
        };
        if protocol != "th" {
            protocols = None;
        }
        let left = json!({"payload": {"protocol": protocol, "field": name}});
        of_headers.push(compare(left, one, any_family, 0)?);
    }
    if coming.fragments == Fragments::Together && !(way.whole && way.later) && headers.is_empty() {
        // Every header of these protocols fits, and a packet without one does not.
        let ports = !way
            .protocols
            .and(carriers(PacketField::SourcePort, any_family).unwrap_or(Protocols::ALL).other())
            .is_empty();
        let field = match (ports, header) {
            (_, "icmp" | "icmpv6") => "type",
            (false, _) => "dport",
            _ => return Err(Unsayable("later fragments by themselves where Linux puts them together")),
        };
        if !way.whole {
            return Err(Unsayable("later fragments by themselves where Linux puts them together"));
        }
        if header != "th" {
            protocols = None;
        }
        let left = json!({"payload": {"protocol": header, "field": field}});
        of_headers.push(json!({"match": {"op": ">=", "left": left, "right": 0}}));
    }
    let mut says_family = protocols.is_none() && matches!(header, "icmp" | "icmpv6");
    for one in way.comparisons.iter().filter(|one| carriers(one.field, any_family).is_none()) {
        let stated = match one.field {
            PacketField::InPort | PacketField::OutPort => interface(one, coming)?,
            PacketField::SourceMac => mac(one, coming)?,
            _ => {
                says_family |= one.field != PacketField::Length;
                Stated::Match(of_network(one, any_family, coming)?)
            }
        };
        match stated {
            Stated::Never => return Ok(None),
            Stated::Always => {}
            Stated::Match(stated) => matches.push(stated),
        }
    }
    if let Some(stated) = protocols.and_then(protocol) {
        matches.push(stated);
    }
    matches.extend(of_headers);
    if way.states != ALL_STATES {
        matches.push(states(way.states));
    }
    if let (Some(family), false, false) = (family, says_family, known) {
        let name = if family == AddressFamily::V4 { "ipv4" } else { "ipv6" };
        matches
            .insert(0, json!({"match": {"op": "==", "left": {"meta": {"key": "nfproto"}}, "right": name}}));
    }
    Ok(Some(matches))
}

/// What a comparison is where packets come by certain points.
enum Stated {
    Never,
    Always,
    Match(Value),
}

/// The name of the header that these protocols have.
fn header(protocols: Protocols, family: AddressFamily) -> &'static str {
    const NAMES: [(u8, &str); 5] = [(6, "tcp"), (17, "udp"), (33, "dccp"), (132, "sctp"), (136, "udplite")];
    if protocols == Protocols::of(&[icmp(family)]) {
        return if family == AddressFamily::V4 { "icmp" } else { "icmpv6" };
    }
    NAMES.iter().find(|(number, _)| protocols == Protocols::of(&[*number])).map_or("th", |(_, name)| name)
}

fn protocol(protocols: Protocols) -> Option<Value> {
    let own: Vec<(u128, u128)> = protocols.numbers().map(|number| (number.into(), number.into())).collect();
    let own = merged(own);
    let others = outside(&own, 0xff);
    if others.is_empty() {
        return None;
    }
    let not = others.len() < own.len() || others.len() == 1 && own.len() == 1 && others[0].0 == others[0].1;
    // Single numbers: a reader looks for protocols that all have ports.
    let single = |ranges: &[(u128, u128)]| -> Vec<(u128, u128)> {
        let count: u128 = ranges.iter().map(|(low, high)| high - low + 1).sum();
        if count > 16 {
            return ranges.to_vec();
        }
        ranges.iter().flat_map(|(low, high)| *low..=*high).map(|number| (number, number)).collect()
    };
    let ranges = single(if not { &others } else { &own });
    let right = set(&ranges, &|number| json!(number as u64));
    Some(stated(json!({"meta": {"key": "l4proto"}}), not, right))
}

fn states(states: u8) -> Value {
    let asked = State::ALL.into_iter().filter(|state| states >> *state as u8 & 1 == 1);
    let names: Vec<&str> = asked.map(State::name).collect();
    json!({"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": names}})
}

/// Whether a statement asks for the state of a connection.
pub(super) fn asks_state(statement: &Value) -> bool {
    statement.get("match").is_some_and(|body| body["left"].get("ct").is_some())
}

fn stated(left: Value, not: bool, right: Value) -> Value {
    json!({"match": {"op": if not { "!=" } else { "==" }, "left": left, "right": right}})
}

/// One value, one range, or a set of them.
fn set(ranges: &[(u128, u128)], value: &dyn Fn(u128) -> Value) -> Value {
    let one = |(low, high): &(u128, u128)| {
        if low == high { value(*low) } else { json!({"range": [value(*low), value(*high)]}) }
    };
    match ranges {
        [only] => one(only),
        _ => json!({"set": ranges.iter().map(one).collect::<Vec<Value>>()}),
    }
}

/// A field that holds, or does not hold, values that are smaller by `less` where the rule asks.
fn compare(left: Value, one: &Comparison, family: AddressFamily, less: u128) -> Result<Value, Unsayable> {
    let width = most(one.field, family).count_ones() as u8;
    let is_address = matches!(one.field, PacketField::Source | PacketField::Destination);
    let value = |value: u128| match one.field {
        PacketField::Source | PacketField::Destination => json!(address::print(family, value)),
        PacketField::SourceMac => {
            let octets: Vec<String> =
                value.to_be_bytes()[10..].iter().map(|octet| format!("{octet:02x}")).collect();
            json!(octets.join(":"))
        }
        _ => json!(value as u64),
    };
    let ranges = match &one.with {
        Operand::Mask(bits, mask) => {
            return Ok(stated(json!({"&": [left, value(*mask)]}), one.not, value(*bits)));
        }
        Operand::Ranges(ranges) => ranges,
    };
    let (mut not, mut ranges) = (one.not, ranges.to_vec());
    if less > 0 && ranges.iter().any(|(low, _)| *low < less) {
        // What is smaller before the rule is nothing that the rule sees.
        (not, ranges) = (!not, outside(&ranges, most(one.field, family)));
        if ranges.iter().any(|(low, _)| *low < less) {
            return Err(Unsayable("a time to live of 0"));
        }
    }
    ranges.iter_mut().for_each(|(low, high)| (*low, *high) = (*low - less, *high - less));
    // nftables has no order of flags, and none of the bits of a class of traffic.
    if matches!(one.field, PacketField::TcpFlags | PacketField::Dscp | PacketField::Ecn) {
        ranges = ranges.iter().flat_map(|(low, high)| *low..=*high).map(|bits| (bits, bits)).collect();
    }
    let range = |(low, high): &(u128, u128)| {
        let bits = (low ^ high).count_ones();
        let is_prefix =
            is_address && low != high && high - low == low ^ high && (low ^ high).trailing_ones() == bits;
        match (low == high, is_prefix) {
            (true, _) => value(*low),
            (_, true) => json!({"prefix": {"addr": value(*low), "len": u32::from(width) - bits}}),
            _ => json!({"range": [value(*low), value(*high)]}),
        }
    };
    let right = match &ranges[..] {
        [only] => range(only),
        _ => json!({"set": ranges.iter().map(range).collect::<Vec<Value>>()}),
    };
    Ok(stated(left, not, right))
}

/// Fields of IP.
fn of_network(one: &Comparison, family: AddressFamily, coming: Coming<'_>) -> Result<Value, Unsayable> {
    let four = family == AddressFamily::V4;
    let ip = if four { "ip" } else { "ip6" };
    let (name, less) = match one.field {
        PacketField::Source => ("saddr", 0),
        PacketField::Destination => ("daddr", 0),
        PacketField::Dscp => ("dscp", 0),
        PacketField::Ecn => ("ecn", 0),
        PacketField::Length => return compare(json!({"meta": {"key": "length"}}), one, family, 0),
        _ => {
            // Linux takes one away before it asks at `forward`.
            let forward = |point: &HookPoint| *point == HookPoint::Forward;
            let less = u128::from(coming.points.iter().all(forward));
            if less == 0 && coming.points.iter().any(|point| forward(point) || *point == HookPoint::Out) {
                return Err(Unsayable("the time to live both before and after it is one less"));
            }
            (if four { "ttl" } else { "hoplimit" }, less)
        }
    };
    compare(json!({"payload": {"protocol": ip, "field": name}}), one, family, less)
}

/// Whether packets at a point have an interface that they came in by, or (`out`) one that they leave by;
/// `None` where only some have it.
fn has_interface(point: HookPoint, out: bool) -> Option<bool> {
    match (point, out) {
        (HookPoint::FromGateway, false) | (HookPoint::ToGateway, true) => Some(false),
        (HookPoint::Out, false) | (HookPoint::In, true) => None,
        _ => Some(true),
    }
}

fn interface(one: &Comparison, coming: Coming<'_>) -> Result<Stated, Unsayable> {
    let out = one.field == PacketField::OutPort;
    let Operand::Ranges(ranges) = &one.with else { return Err(Unsayable("a mask of an interface")) };
    let presence: Vec<Option<bool>> = coming.points.iter().map(|point| has_interface(*point, out)).collect();
    let (present, absent) =
        (presence.iter().any(|has| *has != Some(false)), presence.iter().any(|has| *has != Some(true)));
    let ranges = merged(
        ranges.iter().map(|(low, high)| ((*low).max(1), *high)).filter(|(low, high)| low <= high).collect(),
    );
    let own = if one.not { outside(&ranges, 0xffff) } else { ranges };
    let own = merged(
        own.into_iter().map(|(low, high)| (low.max(1), high)).filter(|(low, high)| low <= high).collect(),
    );
    let others: Vec<(u128, u128)> = outside(&own, 0xffff)
        .into_iter()
        .map(|(low, high)| (low.max(1), high))
        .filter(|(low, high)| low <= high)
        .collect();
    let absent_fits = absent && one.absent;
    if (own.is_empty() || !present) && !absent_fits {
        return Ok(Stated::Never);
    }
    if (others.is_empty() || !present) && (!absent || one.absent) {
        return Ok(Stated::Always);
    }
    if out && coming.points.contains(&HookPoint::In) {
        return Err(Unsayable("by which interface a packet leaves where that is not known yet"));
    }
    let named = |ranges: &[(u128, u128)]| -> Option<Vec<&str>> {
        let holds = |port: u16| ranges.iter().any(|(low, high)| (*low..=*high).contains(&port.into()));
        let mut ports: Vec<u16> =
            coming.interfaces.iter().map(|(_, port)| *port).filter(|port| holds(*port)).collect();
        ports.sort_unstable();
        ports.dedup();
        let count: u128 = ranges.iter().map(|(low, high)| high - low + 1).sum();
        let names = coming.interfaces.iter().filter(|(_, port)| holds(*port)).map(|(name, _)| name.as_str());
        (ports.len() as u128 == count).then(|| names.collect())
    };
    let (not, names) = match (named(&own), named(&others)) {
        (Some(names), _) if !absent_fits => (false, names),
        (_, Some(names)) if !absent || one.absent => (true, names),
        (None, None) => return Err(Unsayable("an interface without a name")),
        _ => return Err(Unsayable("whether a packet has come in by an interface")),
    };
    if names.iter().any(|name| !is_interface(name)) {
        return Err(Unsayable("a name that is none of an interface of Linux"));
    }
    let key = if out { "oifname" } else { "iifname" };
    let right = match &names[..] {
        [only] => json!(only),
        _ => json!({"set": names}),
    };
    Ok(Stated::Match(stated(json!({"meta": {"key": key}}), not, right)))
}

fn mac(one: &Comparison, coming: Coming<'_>) -> Result<Stated, Unsayable> {
    let local = |point: &HookPoint| *point == HookPoint::FromGateway;
    if coming.points.iter().all(local) {
        return Ok(if one.absent { Stated::Always } else { Stated::Never });
    }
    if coming.points.iter().any(|point| local(point) || *point == HookPoint::Out) {
        return Err(Unsayable("an Ethernet address of packets that need not have one"));
    }
    if let Operand::Ranges(ranges) = &one.with
        && (ranges.is_empty() || ranges[..] == [(0, one.field.most())])
    {
        return Ok(if ranges.is_empty() == one.not { Stated::Always } else { Stated::Never });
    }
    let left = json!({"payload": {"protocol": "ether", "field": "saddr"}});
    Ok(Stated::Match(compare(left, one, AddressFamily::V6, 0)?))
}
