//! Judges ARP (RFC 826): whoever hears it learns the addresses of its sender.

use crate::bounds::ends;
use crate::own::OwnAddresses;
use crate::refusal::SourceRefusal;

/// Bytes of a message about addresses of IPv4 over Ethernet.
const LENGTH: usize = 28;
/// Hardware Ethernet, protocol IPv4, and the lengths of their addresses.
const IPV4_OVER_ETHERNET: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REQUEST: [u8; 2] = [0, 1];
const REPLY: [u8; 2] = [0, 2];

pub(crate) fn judge(own: &OwnAddresses, packet: &[u8]) -> Result<(), SourceRefusal> {
    let message = packet.first_chunk::<LENGTH>().ok_or(SourceRefusal::ArpForm)?;
    if !ends(packet, LENGTH) || message[..6] != IPV4_OVER_ETHERNET {
        return Err(SourceRefusal::ArpForm);
    }
    let operation = [message[6], message[7]];
    if operation != REQUEST && operation != REPLY {
        return Err(SourceRefusal::ArpForm);
    }
    let sender = [message[14], message[15], message[16], message[17]];
    // A probe asks from no address whether somebody has one (RFC 5227, 2.1.1); nobody learns from it.
    let probes = sender == [0; 4] && operation == REQUEST;
    if message[8..14] != own.ethernet || !(probes || own.has_ipv4(sender)) {
        return Err(SourceRefusal::ArpSender);
    }
    Ok(())
}
