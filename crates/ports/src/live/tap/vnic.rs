//! The device of a VNIC: a TAP device that is the only link of a container.
//!
//! ```text
//! router in the container      processes ─ the device, with the router's addresses ─ queues ─ core
//! router in a virtual machine  guest ─ monitor ─ the queue ─ the device, without addresses ─ AF_PACKET ─
//! core
//! ```

use super::opening::WAITING;
use super::{Device, VnicWishes, opening_calls as calls};
use crate::live::{AttachError, Netlink, WantedPort, sys};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// Makes the device in the network namespace of this thread, which must have none of its name, and gives it
/// its addresses.
pub(in crate::live) fn open(wanted: &WantedPort, lanes: u16) -> Result<(String, Vec<OwnedFd>), AttachError> {
    let device = Device::of(&wanted.interface, lanes, wanted.offloads, true);
    let name = &wanted.interface;
    let vnic = router(wanted, &device)?;
    let first = make(name, true).map_err(device.system("making the device"))?;
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

/// Makes the device of a virtual machine in the network namespace of this thread. It stays there while nobody
/// has its queue; the machine gives the router's addresses to its own interface.
pub(in crate::live) fn make_for_guest(wanted: &WantedPort) -> Result<(), AttachError> {
    let device = Device::of(&wanted.interface, 1, wanted.offloads, false);
    let (name, vnic) = (&wanted.interface, router(wanted, &device)?);
    let queue = make(name, false).map_err(device.system("making the device"))?;
    calls::keep(&queue).map_err(device.system("keeping the device"))?;
    calls::set_mtu(name, vnic.mtu.into()).map_err(device.system("its MTU"))?;
    calls::switch_on(name, WAITING).map_err(device.system("switching it on"))
}

/// The queue of such a device, for the monitor of the virtual machine, in the network namespace of this
/// thread.
///
/// # Errors
/// The device is missing or of another kind, somebody has its queue, or the right is missing.
pub fn guest_end(name: &str) -> io::Result<OwnedFd> {
    // Without this, a device that is missing would be made.
    sys::interface_index(name)?;
    calls::open(name, false)
}

/// The router of a VNIC.
fn router<'a>(wanted: &'a WantedPort, device: &Device) -> Result<&'a VnicWishes, AttachError> {
    let vnic = wanted.vnic.as_ref().ok_or(io::ErrorKind::InvalidInput);
    vnic.map_err(|kind| device.system("its addresses")(kind.into()))
}

/// Makes a TAP device of this name. A link that has the name is one that somebody inside has made, or another
/// one that he has named so besides, and would keep the port away.
fn make(name: &str, several: bool) -> io::Result<OwnedFd> {
    calls::make(name, several).or_else(|_| {
        // Linux finds a link by both kinds of names. Whether it had this one besides is seen by what is left.
        let _ = ask(&second_name_removal(sys::interface_index(name)?, name));
        if let Ok(link) = sys::interface_index(name) {
            remove(link)?;
        }
        calls::make(name, several)
    })
}

/// The message by which a link loses an alternative name (rtnetlink, RTM_DELLINKPROP).
fn second_name_removal(link: u32, name: &str) -> Vec<u8> {
    /// linux/rtnetlink.h
    const RTM_DELLINKPROP: u16 = 109;
    let attribute = |kind: u16, value: &[u8]| {
        let mut attribute = (4 + value.len() as u16).to_ne_bytes().to_vec();
        attribute.extend(kind.to_ne_bytes());
        attribute.extend(value);
        attribute.resize(attribute.len().next_multiple_of(4), 0);
        attribute
    };
    let name = attribute(libc::IFLA_ALT_IFNAME, &[name.as_bytes(), b"\0"].concat());
    let mut body = vec![libc::AF_UNSPEC as u8, 0, 0, 0];
    body.extend(link.to_ne_bytes());
    body.extend([0; 8]);
    body.extend(attribute(libc::IFLA_PROP_LIST | libc::NLA_F_NESTED as u16, &name));
    framed(RTM_DELLINKPROP, libc::NLM_F_REQUEST | libc::NLM_F_ACK, &body)
}

/// Gives an interface an address (rtnetlink(7), RTM_NEWADDR).
fn give(interface: u32, address: IpAddr, length: u8) -> io::Result<()> {
    ask(&message(interface, address, length))
}

/// Removes an interface (rtnetlink(7), RTM_DELLINK).
fn remove(interface: u32) -> io::Result<()> {
    let mut body = vec![libc::AF_UNSPEC as u8, 0, 0, 0];
    body.extend(interface.to_ne_bytes());
    body.extend([0; 8]);
    ask(&framed(libc::RTM_DELLINK, libc::NLM_F_REQUEST | libc::NLM_F_ACK, &body))
}

/// Asks Linux for a change, and waits for its answer.
fn ask(message: &[u8]) -> io::Result<()> {
    /// The longest that Linux takes to answer, in nanoseconds.
    const LIMIT: u64 = 1_000_000_000;
    let mut netlink = Netlink::open(&[])?;
    netlink.ask(message)?;
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
    framed(libc::RTM_NEWADDR, flags, &body)
}

/// A message with its header (netlink(7), struct nlmsghdr).
fn framed(kind: u16, flags: libc::c_int, body: &[u8]) -> Vec<u8> {
    let mut message = (16 + body.len() as u32).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
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
    fn a_second_name_is_in_a_list_of_one() {
        let message = second_name_removal(1, "lan");
        assert_eq!(message[..4], 44u32.to_ne_bytes());
        assert_eq!(message[20..24], 1u32.to_ne_bytes());
        assert_eq!(message[32..34], 12u16.to_ne_bytes());
        assert_eq!(message[36..], [8, 0, 53, 0, b'l', b'a', b'n', 0]);
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
