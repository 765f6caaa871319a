//! Makes ports of network interfaces, each of the configured kind and with its middleware.

use super::{AttachError, Attached, Offloads, PortKind, WantedPort, af_packet, af_xdp, segments, tap};
use packet::PortNumber;

/// Makes ports 1, 2 and so on of these interfaces, with so many lanes each (at least one). AF_XDP ports share
/// the memory of packets.
///
/// # Errors
/// The first port that cannot be made: its interface is missing or off, or Linux refuses; then nothing has
/// changed.
pub fn attach_all(wanted: &[WantedPort], lanes: u16) -> Result<Vec<Attached>, (PortNumber, AttachError)> {
    let numbered = || (1..).zip(wanted);
    let sharing: Vec<_> = numbered().filter(|(_, wanted)| wanted.kind == PortKind::AfXdp).collect();
    let mut shared = af_xdp::attach_all(&sharing, lanes.max(1))?.into_iter();
    let one = |(port, wanted): (PortNumber, &WantedPort)| match wanted.kind {
        // There are as many AF_XDP ports as were requested, in the same order.
        PortKind::AfXdp => {
            shared.next().map_or_else(|| attach(wanted, port, lanes), |attached| wrap(wanted, attached))
        }
        PortKind::AfPacket | PortKind::Tap => attach(wanted, port, lanes),
    };
    numbered().map(one).zip(1..).map(|(attached, port)| attached.map_err(|error| (port, error))).collect()
}

/// Makes a port of an interface with so many lanes (at least one); its packets carry the number `port`. The
/// port shares no memory with others.
///
/// # Errors
/// The interface is missing or off, or Linux refuses; then nothing has changed.
pub fn attach(wanted: &WantedPort, port: PortNumber, lanes: u16) -> Result<Attached, AttachError> {
    let lanes = lanes.max(1);
    let attached = match wanted.kind {
        PortKind::AfPacket => af_packet::attach(wanted, port, lanes)?,
        PortKind::AfXdp => af_xdp::attach(wanted, port, lanes)?,
        PortKind::Tap => tap::attach(wanted, port, lanes)?,
    };
    // AF_XDP neither receives nor sends segments.
    let cut = wanted.offloads == Offloads::Cut && wanted.kind != PortKind::AfXdp;
    wrap(wanted, if cut { segments::packets_only(attached) } else { attached })
}

/// Puts the configured middleware between the program and a port.
fn wrap(wanted: &WantedPort, attached: Attached) -> Result<Attached, AttachError> {
    wanted.middleware.wrap(attached).map_err(|source| AttachError::System {
        interface: wanted.interface.clone(),
        call: "making the file of its trace",
        source,
    })
}
