//! Makes ports of network interfaces, each of the configured kind and with its middleware.

use super::{
    AttachError, Attached, DividedInterface, Offloads, PortKind, VlanPlace, WantedPort, af_packet, af_xdp,
    empty, segments, tap, tunnel, vlan,
};
use packet::PortNumber;
use std::io;

/// Makes ports of these interfaces, with these numbers and so many lanes each (at least one), in their order.
/// Ports of one interface, which say which of its frames are theirs, are made of one attachment, with the
/// settings of the first of them; or of the one there is, if ports that run already divide it. AF_XDP ports
/// share the memory of packets.
///
/// # Errors
/// The first port that cannot be made: its interface is missing or off, or Linux refuses; then nothing has
/// changed.
pub fn attach_all(
    wanted: &[(PortNumber, &WantedPort)],
    lanes: u16,
    running: &[DividedInterface],
) -> Result<Vec<(PortNumber, Attached)>, (PortNumber, AttachError)> {
    let mut interfaces: Vec<Vec<(PortNumber, &WantedPort)>> = Vec::new();
    let mut all = Vec::with_capacity(wanted.len());
    for &(number, port) in wanted {
        if port.kind == PortKind::Empty {
            all.push((number, empty::attach(lanes)));
            continue;
        }
        if let Some(divided) = running.iter().find(|divided| divided.name() == port.interface) {
            let joined = divided.port(number, port);
            all.push((number, joined.map_err(|error| (number, untraced(&port.interface)(error)))?));
            continue;
        }
        match interfaces.iter_mut().find(|known| known[0].1.interface == port.interface) {
            Some(known) => known.push((number, port)),
            None => interfaces.push(vec![(number, port)]),
        }
    }
    let firsts = interfaces.iter().map(|ports| ports[0]);
    let sharing: Vec<_> = firsts.filter(|(_, wanted)| wanted.kind == PortKind::AfXdp).collect();
    let mut shared = af_xdp::attach_all(&sharing, lanes.max(1))?.into_iter();
    for ports in &interfaces {
        let (number, first) = ports[0];
        let attached = match first.kind {
            // There are as many AF_XDP ports as were requested, in the same order.
            PortKind::AfXdp => shared.next().map_or_else(|| bare(first, number, lanes), Ok),
            PortKind::AfPacket
            | PortKind::Tap
            | PortKind::Vnic
            | PortKind::Vhost
            | PortKind::Tunnel
            | PortKind::Empty => bare(first, number, lanes),
        };
        let attached = attached.map_err(|error| (number, error))?;
        if first.vlan == VlanPlace::Alone {
            all.push((number, wrap(first, attached).map_err(|error| (number, error))?));
        } else {
            let divided = vlan::divide(ports, attached)
                .map_err(|(number, source)| (number, untraced(&first.interface)(source)))?;
            all.extend(ports.iter().map(|(number, _)| *number).zip(divided));
        }
    }
    all.sort_by_key(|(number, _)| *number);
    Ok(all)
}

/// Makes a port of an interface with so many lanes (at least one); its packets carry the number `port`. The
/// port shares no memory with others.
///
/// # Errors
/// The interface is missing or off, or Linux refuses; then nothing has changed.
pub fn attach(wanted: &WantedPort, port: PortNumber, lanes: u16) -> Result<Attached, AttachError> {
    wrap(wanted, bare(wanted, port, lanes)?)
}

/// A port without middleware.
fn bare(wanted: &WantedPort, port: PortNumber, lanes: u16) -> Result<Attached, AttachError> {
    let lanes = lanes.max(1);
    let attached = match wanted.kind {
        PortKind::AfPacket => af_packet::attach(wanted, port, lanes)?,
        PortKind::AfXdp => af_xdp::attach(wanted, port, lanes)?,
        PortKind::Tap => tap::attach(wanted, port, lanes)?,
        PortKind::Vnic | PortKind::Vhost => {
            return Err(AttachError::System {
                interface: wanted.interface.clone(),
                call: "making a VNIC",
                source: io::Error::new(io::ErrorKind::Unsupported, "it needs a gateway of several processes"),
            });
        }
        PortKind::Tunnel => return tunnel::attach(wanted, port, lanes),
        PortKind::Empty => return Ok(empty::attach(lanes)),
    };
    // AF_XDP neither receives nor sends segments.
    let cut = wanted.offloads == Offloads::Cut && wanted.kind != PortKind::AfXdp;
    Ok(if cut { segments::packets_only(attached) } else { attached })
}

/// Puts the configured middleware between the program and a port.
fn wrap(wanted: &WantedPort, attached: Attached) -> Result<Attached, AttachError> {
    wanted.middleware.wrap(attached).map_err(untraced(&wanted.interface))
}

fn untraced(interface: &str) -> impl Fn(io::Error) -> AttachError {
    move |source| AttachError::System {
        interface: interface.to_owned(),
        call: "making the file of its trace",
        source,
    }
}
