//! The device of a VNIC: a TAP device that is the only link of a container, with the addresses of the router
//! in it.

use super::{Device, WAITING, calls};
use crate::live::{AttachError, Netlink, WantedPort, sys};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// What the router in a container is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VnicWishes {
    /// Its Ethernet address.
    pub ethernet: [u8; 6],
    /// Its addresses, with the lengths of their prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The longest packet, in bytes.
    pub mtu: u16,
    /// Whether it sends router advertisements.
    pub advertises: bool,
    /// Whether it asks for an address by DHCP.
    pub dhcp_client: bool,
    /// The number of the container among those of the gateway.
    pub container: u16,
}

/// The MTU of Ethernet.
const MTU: u16 = 1500;

impl VnicWishes {
    /// A router with this Ethernet address, of which nothing else is said.
    pub fn new(ethernet: [u8; 6], container: u16) -> VnicWishes {
        let (addresses, mtu) = (Vec::new(), MTU);
        VnicWishes { ethernet, addresses, mtu, advertises: false, dhcp_client: false, container }
    }
}

/// Reads an Ethernet address: six pairs of hexadecimal digits with colons between them.
pub fn station(text: &str) -> Option<[u8; 6]> {
    let mut station = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut station {
        let digits = |part: &&str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let part = parts.next().filter(digits)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(station)
}

/// Makes the device in the network namespace of this thread, which must have none of its name, and gives it
/// its addresses.
pub(in crate::live) fn open(wanted: &WantedPort, lanes: u16) -> Result<(String, Vec<OwnedFd>), AttachError> {
    let device = Device::of(&wanted.interface, lanes, wanted.offloads, true);
    let name = &wanted.interface;
    let vnic = wanted.vnic.as_ref().ok_or(io::ErrorKind::InvalidInput);
    let vnic = vnic.map_err(|kind| device.system("its addresses")(kind.into()))?;
    // A device that is there already would be one that somebody inside has made.
    let first = calls::make(name, true).map_err(device.system("making the device"))?;
    let mut queues = vec![first];
    for _ in 1..lanes {
        queues.push(device.open()?);
    }
    calls::dress(name, vnic.ethernet, vnic.mtu.into()).map_err(device.system("its Ethernet address"))?;
    let offloads = queues.first().map(|queue| device.prepare(queue)).transpose()?.flatten();
    calls::switch_on("lo", WAITING).map_err(device.system("switching lo on"))?;
    let index = sys::interface_index(name).map_err(device.system("its number"))?;
    for &(address, length) in &vnic.addresses {
        give(index, address, length).map_err(device.system("its addresses"))?;
    }
    Ok((device.mode(offloads).replacen("tap", "vnic", 1), queues))
}

/// Gives an interface an address (rtnetlink(7), RTM_NEWADDR).
fn give(interface: u32, address: IpAddr, length: u8) -> io::Result<()> {
    /// The longest that Linux takes to answer, in nanoseconds.
    const LIMIT: u64 = 1_000_000_000;
    let mut netlink = Netlink::open(&[])?;
    netlink.ask(&message(interface, address, length))?;
    let answer = netlink.receive(LIMIT)?.ok_or(io::ErrorKind::TimedOut)?;
    // A header, and behind it the negative number of an error, or 0.
    match answer.get(16..).and_then(|rest| rest.first_chunk()).map(|bytes| i32::from_ne_bytes(*bytes)) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The message that asks for it.
fn message(interface: u32, address: IpAddr, length: u8) -> Vec<u8> {
    const PERMANENT: u8 = 0x80;
    const LOCAL: u16 = libc::IFA_LOCAL;
    const ADDRESS: u16 = libc::IFA_ADDRESS;
    let (family, bytes) = match address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    let mut body = vec![family as u8, length, PERMANENT, libc::RT_SCOPE_UNIVERSE];
    body.extend(interface.to_ne_bytes());
    for kind in [LOCAL, ADDRESS] {
        body.extend((4 + bytes.len() as u16).to_ne_bytes());
        body.extend(kind.to_ne_bytes());
        body.extend(&bytes);
    }
    let mut message = (16 + body.len() as u32).to_ne_bytes().to_vec();
    message.extend(libc::RTM_NEWADDR.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn an_ethernet_address_is_six_pairs_of_digits() {
        assert_eq!(station("02:00:00:aB:01:0c"), Some([2, 0, 0, 0xab, 1, 0xc]));
        for text in ["", "02:00:00:00:01", "02:00:00:00:01:0c:00", "2:00:00:00:01:0c", "02:00:00:00:01:+c"] {
            assert_eq!(station(text), None, "{text}");
        }
    }

    #[test]
    fn a_message_says_its_length_and_the_address_twice() {
        let message = message(7, Ipv4Addr::new(192, 0, 2, 1).into(), 24);
        assert_eq!(message.len(), 40);
        assert_eq!(message[..4], 40u32.to_ne_bytes());
        assert_eq!(message[16..24], [2, 24, 0x80, 0, 7, 0, 0, 0].map(|byte: u8| byte));
        assert_eq!(message[28..32], [192, 0, 2, 1]);
        assert_eq!(message[36..40], [192, 0, 2, 1]);
    }
}
