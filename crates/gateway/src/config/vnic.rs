//! Reads the VNICs among the ports of a gateway's file: links of containers, with the addresses of the
//! routers in them.
//!
//! ```toml
//! [[port]]
//! interface = "services"             # its name in the container, and the container's
//! kind = "vnic"                      # needs a gateway of several processes
//!
//! [port.vnic]
//! ethernet = "02:00:00:00:01:01"     # the router's; frames from there have its addresses or are dropped
//! addresses = ["192.0.2.1/24", "2001:db8::1/64"]
//! mtu = 1500                         # the longest packet that comes from there; this is the default
//! advertises = false                 # whether the router sends router advertisements; this is the default
//! dhcp_client = false                # whether it asks for an address by DHCP; this is the default
//! guest = false                      # whether it is a virtual machine in the container; this is the default.
//!                                    # "tap" or true: its monitor has a TAP device's queue; "vhost-user":
//!                                    # it shares the machine's memory
//! ```

use messages::limits::MOST_ADDRESSES;
use ports::live::{GuestLink, Offloads, PortKind, VnicWishes, station};
use serde::Deserialize;
use std::net::IpAddr;
use std::ops::Range;
use toml::Spanned;

/// The smallest MTU that hosts of IPv4 and of IPv6 must bear (RFC 791, RFC 8200), and the largest of
/// Ethernet's jumbo frames.
const SMALLEST: [u16; 2] = [576, 1280];
const LARGEST: u16 = 9000;

/// What a port says of its router.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileVnic {
    ethernet: Spanned<String>,
    #[serde(default)]
    addresses: Vec<Spanned<String>>,
    mtu: Option<Spanned<u16>>,
    #[serde(default)]
    advertises: bool,
    #[serde(default)]
    dhcp_client: bool,
    guest: Option<Spanned<FileGuest>>,
}

impl FileVnic {
    /// Whether the router is a virtual machine.
    pub(super) fn has_guest(&self) -> bool {
        self.guest.as_ref().is_some_and(|guest| !matches!(guest.get_ref(), FileGuest::Is(false)))
    }
}

/// Whether the router is a virtual machine, or how it is linked.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`guest`: `false`, `true`, `\"tap\"` or `\"vhost-user\"`")]
enum FileGuest {
    Is(bool),
    Link(String),
}

/// What is wrong, and where; without a place it is the port as a whole.
type Wrong = (Option<Range<usize>>, String);

/// What a port says that matters to its VNIC.
pub(super) struct PortWithVnic<'a> {
    pub(super) kind: &'a Option<Spanned<PortKind>>,
    pub(super) offloads: &'a Option<Spanned<Offloads>>,
    pub(super) vnic: &'a Option<Spanned<FileVnic>>,
}

/// Reads what a port says; `container` is the number of its container.
///
/// # Errors
/// The first thing that is missing or wrong.
pub(super) fn read(port: &PortWithVnic<'_>, container: u16) -> Result<Option<VnicWishes>, Wrong> {
    let is_vnic = port.kind.as_ref().is_some_and(|kind| *kind.get_ref() == PortKind::Vnic);
    let Some(vnic) = &port.vnic else {
        let kind = port.kind.as_ref().map(Spanned::span);
        let message =
            "a VNIC needs `vnic = { ethernet = \"02:00:00:00:01:01\", addresses = [\"192.0.2.1/24\"] }`";
        return if is_vnic { Err((kind, message.to_owned())) } else { Ok(None) };
    };
    let wrong = |span: Range<usize>, message: String| Err((Some(span), message));
    if !is_vnic {
        return wrong(vnic.span(), "`vnic` is for ports of `kind = \"vnic\"` alone".to_owned());
    }
    if let Some(offloads) = port.offloads.as_ref().filter(|offloads| *offloads.get_ref() == Offloads::Whole) {
        let message = "segments of a VNIC are cut before they are judged: `\"cut\"` or `\"off\"`";
        return wrong(offloads.span(), message.to_owned());
    }
    let FileVnic { ethernet, addresses, mtu, advertises, dhcp_client, guest } = vnic.get_ref();
    let text = ethernet.get_ref();
    let own = station(text).filter(|own| own[0] & 1 == 0 && *own != [0; 6]);
    let Some(own) = own else {
        let message = format!("`{text}` is no Ethernet address of a station, such as 02:00:00:00:01:01");
        return wrong(ethernet.span(), message);
    };
    let mut wishes = VnicWishes::new(own, container);
    (wishes.advertises, wishes.dhcp_client) = (*advertises, *dhcp_client);
    wishes.guest = match guest.as_ref().map(|guest| (guest.get_ref(), guest.span())) {
        None | Some((FileGuest::Is(false), _)) => None,
        Some((FileGuest::Is(true), _)) => Some(GuestLink::Tap),
        Some((FileGuest::Link(link), span)) => match GuestLink::of(link) {
            None => {
                return wrong(span, "`guest`: `false`, `true`, `\"tap\"` or `\"vhost-user\"`".to_owned());
            }
            link => link,
        },
    };
    if let Some(offloads) = port.offloads.as_ref().filter(|offloads| *offloads.get_ref() == Offloads::Off)
        && wishes.guest == Some(GuestLink::Tap)
    {
        let message = "a virtual machine hands long segments over by a TAP, which would not pass: `\"cut\"`, or `guest = \"vhost-user\"`";
        return wrong(offloads.span(), message.to_owned());
    }
    for text in addresses {
        let Some((address, length)) = with_length(text.get_ref()) else {
            let message =
                format!("`{}` is no address of a host with a length, such as 192.0.2.1/24", text.get_ref());
            return wrong(text.span(), message);
        };
        let of_family = wishes.addresses.iter().filter(|(other, _)| other.is_ipv4() == address.is_ipv4());
        if of_family.count() >= MOST_ADDRESSES {
            return wrong(
                text.span(),
                format!("a router has at most {MOST_ADDRESSES} addresses of each family"),
            );
        }
        if wishes.addresses.iter().any(|(other, _)| *other == address) {
            return wrong(text.span(), format!("{address} stands above already"));
        }
        wishes.addresses.push((address, length));
    }
    if let Some(mtu) = mtu {
        let has_ipv6 = wishes.addresses.iter().any(|(address, _)| address.is_ipv6());
        let smallest = SMALLEST[usize::from(has_ipv6)];
        if !(smallest..=LARGEST).contains(mtu.get_ref()) {
            return wrong(mtu.span(), format!("`mtu`: between {smallest} and {LARGEST}"));
        }
        wishes.mtu = *mtu.get_ref();
    }
    Ok(Some(wishes))
}

/// An address that a host can have, and the length of its prefix.
fn with_length(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let (address, length): (IpAddr, u8) = (address.parse().ok()?, length.parse().ok()?);
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let of_host = match address {
        IpAddr::V4(address) => !address.is_broadcast(),
        IpAddr::V6(address) => address.to_ipv4_mapped().is_none(),
    };
    let nobody = address.is_unspecified() || address.is_loopback() || address.is_multicast();
    (of_host && !nobody && (1..=longest).contains(&length)).then_some((address, length))
}

#[cfg(test)]
mod tests;
