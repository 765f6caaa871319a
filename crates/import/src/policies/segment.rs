//! A segment of TCP as its fields, for tests of the readers.

use policy::{MAPPED, Packet, PacketField, State};

/// The first segment of a connection of IPv4, from 10.0.0.1, port 1234, to a port of 192.0.2.1, that comes in
/// by port 1 and leaves by port 2.
pub(super) fn first_segment(destination_port: u128) -> Packet {
    const SYN: u128 = 2;
    let fields = [
        (PacketField::Family, 4),
        (PacketField::Source, MAPPED | 0x0a00_0001),
        (PacketField::Destination, MAPPED | 0xc000_0201),
        (PacketField::Protocol, 6),
        (PacketField::SourcePort, 1234),
        (PacketField::DestinationPort, destination_port),
        (PacketField::TcpFlags, SYN),
        (PacketField::LaterFragment, 0),
        (PacketField::InPort, 1),
        (PacketField::OutPort, 2),
        (PacketField::Dscp, 46),
        (PacketField::Ecn, 2),
        (PacketField::TimeToLive, 64),
        (PacketField::Length, 60),
        (PacketField::State, State::New as u128),
        (PacketField::SourceMac, 0x0200_0000_000a),
    ];
    fields.into_iter().fold(Packet::default(), |packet, (field, value)| packet.with(field, Some(value)))
}
