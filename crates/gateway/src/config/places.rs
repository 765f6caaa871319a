//! Reads at which interface each port of a gateway's file is, and which frames of it are the port's.
//!
//! ```toml
//! [[port]]                        # the frames of eth0 without a VLAN tag
//! interface = "eth0"
//! kind = "af_xdp"                 # how an interface is attached is said at its first port
//!
//! [[port]]                        # those of VLAN 20, a port with the name eth0.20
//! on = "eth0"
//! vlan = 20
//!
//! [[port]]                        # a tunnel, a port with the name udp:0.0.0.0:5282 (`tunnel.rs`)
//! kind = "tunnel"
//! listen = "0.0.0.0:5282"
//!
//! [[port]]                        # a number that no port has
//! empty = true
//! ```

use super::{At, ConfigError, FilePort, is_interface_name};
use ports::live::{PortKind, VlanPlace};
use std::collections::HashMap;
use std::ops::Range;
use toml::Spanned;

/// The largest number of a VLAN (IEEE 802.1Q, table 9-2: 4095 is reserved).
const LAST_VLAN: u16 = 4094;

/// The largest number of ports of a gateway.
const PORTS: usize = 1024;

/// Where a port is.
pub(super) struct PortPlace {
    /// The interface.
    pub(super) interface: String,
    /// Which of its frames are the port's.
    pub(super) vlan: VlanPlace,
    /// The name of the port.
    pub(super) name: String,
    /// Where that stands in the file.
    pub(super) span: Range<usize>,
    /// The place of the first port at the same interface among the ports of the file.
    pub(super) first: usize,
}

/// Reads the places of all ports.
///
/// # Errors
/// The first port that says too little, too much or something impossible, or is where another one is.
pub(super) fn read(
    ports: &[FilePort],
    spans: &[Range<usize>],
    at: &At<'_>,
) -> Result<Vec<PortPlace>, ConfigError> {
    if let Some(span) = spans.get(PORTS) {
        return Err(at(Some(span.clone()), format!("a gateway has at most {PORTS} ports")));
    }
    let mut places: Vec<PortPlace> = Vec::with_capacity(ports.len());
    let mut firsts: HashMap<String, usize> = HashMap::new();
    for (index, (port, span)) in ports.iter().zip(spans).enumerate() {
        if port.is_empty() {
            let span = empty(port, at)?;
            let (interface, name) = Default::default();
            places.push(PortPlace { interface, vlan: VlanPlace::Alone, name, span, first: index });
            continue;
        }
        let (interface, vlan, span) = one(port, span, at)?;
        let first = *firsts.entry(interface.clone()).or_insert(index);
        places.push(PortPlace { name: String::new(), interface, vlan, span, first });
    }
    let shared: Vec<bool> = places
        .iter()
        .map(|place| {
            places
                .iter()
                .filter(|other| other.first == place.first)
                .any(|other| other.vlan != VlanPlace::Alone)
        })
        .collect();
    let mut owners: HashMap<String, usize> = HashMap::new();
    for (index, (place, shared)) in places.iter_mut().zip(shared).enumerate() {
        let PortPlace { interface, vlan, span, .. } = place;
        if interface.is_empty() {
            continue;
        }
        place.name = match *vlan {
            VlanPlace::Tag(vlan) => format!("{interface}.{vlan}"),
            VlanPlace::Alone | VlanPlace::Untagged => interface.clone(),
        };
        if shared && *vlan == VlanPlace::Alone {
            *vlan = VlanPlace::Untagged;
        }
        if let Some(owner) = owners.insert(place.name.clone(), index + 1) {
            let message = match *vlan {
                VlanPlace::Tag(vlan) => format!("VLAN {vlan} on `{interface}` is port {owner} already"),
                VlanPlace::Alone | VlanPlace::Untagged => format!(
                    "interface `{interface}` is port {owner} already; an interface has one port, and one more for each VLAN with `vlan = …` and `on = \"{interface}\"`"
                ),
            };
            return Err(at(Some(span.clone()), message));
        }
    }
    for (port, place) in ports.iter().zip(&places) {
        if let Some(owner) =
            places.iter().position(|other| other.name == place.interface && other.name != other.interface)
        {
            let message =
                format!("`{}` is port {}, a port of a VLAN, and no interface", place.interface, owner + 1);
            return Err(at(Some(place.span.clone()), message));
        }
        let of_first = std::ptr::eq(port, &ports[place.first]);
        if let Some((key, span)) = port.attachment().into_iter().find(|(_, span)| span.is_some() && !of_first)
        {
            let message = format!(
                "`{key}` is said at port {}, the first at `{}`, for all ports there",
                place.first + 1,
                place.interface
            );
            return Err(at(span, message));
        }
    }
    Ok(places)
}

/// Where the file says that no port has a number.
fn empty(port: &FilePort, at: &At<'_>) -> Result<Range<usize>, ConfigError> {
    let place = port.interface.is_some() || port.on.is_some() || port.vlan.is_some();
    let attached = port.attachment().iter().any(|(_, span)| span.is_some());
    let span = port.empty.as_ref().map(|empty| empty.span()).unwrap_or_default();
    let place = place || port.listen.is_some() || port.key.is_some() || !port.peer.is_empty();
    if place || attached || port.has_more() {
        let message = "no port has a number that is `empty`: leave out everything else, or `empty`";
        return Err(at(Some(span), message.to_owned()));
    }
    Ok(span)
}

/// The interface of a port, which of its frames are the port's, and where the file says so.
fn one(
    port: &FilePort,
    whole: &Range<usize>,
    at: &At<'_>,
) -> Result<(String, VlanPlace, Range<usize>), ConfigError> {
    let wrong = |span: Range<usize>, message: &str| Err(at(Some(span), message.to_owned()));
    let tunnel = port.tunnel();
    if port.kind() == PortKind::Tunnel {
        if let Some(named) = port.interface.as_ref().or(port.on.as_ref()) {
            return wrong(named.span(), "a tunnel has no interface; `listen` says where its datagrams come");
        }
        if let Some(vlan) = &port.vlan {
            return wrong(vlan.span(), "a tunnel has no VLANs");
        }
        let foreign = [
            ("offloads", port.offloads.as_ref().map(Spanned::span)),
            ("keep_from_kernel", port.keep_from_kernel.as_ref().map(Spanned::span)),
            ("promiscuous", port.promiscuous.as_ref().map(Spanned::span)),
            ("addresses", port.addresses.first().map(Spanned::span)),
            ("host", port.host_place()),
        ];
        if let Some((key, span)) = foreign.into_iter().find_map(|(key, span)| Some((key, span?))) {
            return wrong(span, &format!("`{key}` is for ports at an interface, and a tunnel has none"));
        }
        let address =
            tunnel.listens().map_err(|(span, message)| at(span.or_else(|| Some(whole.clone())), message))?;
        let span = port.listen.as_ref().map_or(whole.clone(), Spanned::span);
        // No interface can be called so.
        return Ok((format!("udp:{address}"), VlanPlace::Alone, span));
    }
    let only = [
        ("listen", tunnel.listen.as_ref().map(Spanned::span)),
        ("key", tunnel.key.as_ref().map(Spanned::span)),
        ("peer", tunnel.peers.first().map(Spanned::span)),
    ];
    if let Some((key, span)) = only.into_iter().find_map(|(key, span)| Some((key, span?))) {
        return wrong(span, &format!("`{key}` is for ports of `kind = \"tunnel\"` alone"));
    }
    let (named, vlan, span) = match (&port.interface, &port.on, &port.vlan) {
        (Some(interface), None, None) => (interface, VlanPlace::Alone, interface.span()),
        (None, Some(on), Some(vlan)) if (1..=LAST_VLAN).contains(vlan.get_ref()) => {
            (on, VlanPlace::Tag(*vlan.get_ref()), vlan.span())
        }
        (None, Some(_), Some(vlan)) => {
            return Err(at(Some(vlan.span()), format!("`vlan`: between 1 and {LAST_VLAN}")));
        }
        (Some(interface), _, Some(_)) => {
            return wrong(interface.span(), "a port of a VLAN says `on` in place of `interface`");
        }
        (_, None, Some(vlan)) => {
            return wrong(vlan.span(), "`vlan` needs `on = \"…\"`, the interface that its frames come by");
        }
        (_, Some(on), None) => {
            return wrong(
                on.span(),
                "`on` is for a port with `vlan = …`; that of a whole interface says `interface`",
            );
        }
        (None, None, None) => {
            return wrong(whole.clone(), "a port needs `interface = \"…\"`, or `on = \"…\"` and `vlan = …`");
        }
    };
    let name = named.get_ref();
    if !is_interface_name(name) {
        return Err(at(Some(named.span()), format!("`{name}` cannot be the name of an interface")));
    }
    Ok((name.clone(), vlan, span))
}
