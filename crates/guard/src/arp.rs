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
    let address = |at: usize| [message[at], message[at + 1], message[at + 2], message[at + 3]];
    let (sender, target) = (address(14), address(24));
    // A probe asks from no address whether somebody has one (RFC 5227, 2.1.1). Nobody learns from it, but
    // another host that is about to take this address gives it up.
    let own_target = own.dhcp_client || own.has_ipv4(target);
    let probes = sender == [0; 4] && operation == REQUEST && own_target;
    if message[8..14] != own.ethernet || !(probes || own.has_ipv4(sender)) {
        return Err(SourceRefusal::ArpSender);
    }
    Ok(())
}
