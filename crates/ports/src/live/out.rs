//! The sink that sends packets by the sending halves of all live ports.

use super::{SendLosses, Sender, exchange};
use crate::{Departure, Transmit};
use packet::VirtioHeader;
use packet::segment::Segments;
use std::io;

/// Port 1 and the following.
pub struct LiveOut {
    ports: Vec<Box<dyn Sender>>,
    /// Room for a packet of a segment that is cut.
    piece: Vec<u8>,
}

impl LiveOut {
    /// The first is port 1.
    pub fn new(ports: Vec<Box<dyn Sender>>) -> LiveOut {
        LiveOut { ports, piece: Vec::new() }
    }

    /// Exchanges some of them, as [`exchange`] does.
    pub fn change(&mut self, new: Vec<Option<Box<dyn Sender>>>) -> Vec<Box<dyn Sender>> {
        exchange(&mut self.ports, new)
    }

    /// All of them.
    pub fn ports(&mut self) -> &mut [Box<dyn Sender>] {
        &mut self.ports
    }

    /// When the first of them wants to be flushed again although nothing is sent, as [`Sender::due`] says.
    pub fn due(&self) -> Option<u64> {
        self.ports.iter().filter_map(|port| port.due()).min()
    }

    /// Which ports take packets with an open checksum, port by port.
    pub fn take_open_checksums(&self) -> Vec<bool> {
        self.ports.iter().map(|port| port.takes_open_checksums()).collect()
    }

    /// What did not leave, port by port.
    pub fn losses(&self) -> Vec<SendLosses> {
        self.ports.iter().map(|port| port.losses()).collect()
    }
}

impl Transmit for LiveOut {
    /// What has no such port, as dropped packets do not, leaves nowhere.
    fn transmit(&mut self, departure: &Departure<'_>) -> io::Result<()> {
        let LiveOut { ports, piece } = self;
        let port = usize::from(departure.port).wrapping_sub(1);
        if let Some(port) = ports.get_mut(port) {
            match departure.virtio.counts_as_packets() && !port.takes_segments() {
                true => send_cut(port.as_mut(), departure, piece),
                false => port.send(departure.bytes, departure.virtio),
            }
        }
        Ok(())
    }

    fn flush(&mut self) {
        self.ports.iter_mut().for_each(|port| port.flush());
    }
}

/// Sends the packets that a segment stands for. One that cannot be cut does not stand for packets.
fn send_cut(port: &mut dyn Sender, departure: &Departure<'_>, piece: &mut Vec<u8>) {
    let Some(segments) = Segments::of(departure.bytes, &departure.virtio) else { return };
    let open = port.takes_open_checksums();
    for number in 0..segments.count() {
        piece.resize(segments.length(number), 0);
        let virtio = segments.write_open(departure.bytes, number, piece);
        let left = match open {
            true => virtio,
            false => {
                virtio.complete(piece);
                VirtioHeader::NONE
            }
        };
        port.send(piece, left);
    }
}
