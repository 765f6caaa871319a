//! The sink that sends packets by the sending halves of all live ports.

use super::{SendLosses, Sender};
use crate::{Departure, Transmit};
use std::io;

/// Port 1 and the following.
pub struct LiveOut {
    ports: Vec<Box<dyn Sender>>,
}

impl LiveOut {
    /// The first is port 1.
    pub fn new(ports: Vec<Box<dyn Sender>>) -> LiveOut {
        LiveOut { ports }
    }

    /// Keeps the first ports of these, puts others behind them, and returns those that are not kept.
    pub fn change(&mut self, keep: usize, added: Vec<Box<dyn Sender>>) -> Vec<Box<dyn Sender>> {
        let removed = self.ports.split_off(keep.min(self.ports.len()));
        self.ports.extend(added);
        removed
    }

    /// When the first of them wants to be flushed again although nothing is sent, as [`Sender::due`] says.
    pub fn due(&self) -> Option<u64> {
        self.ports.iter().filter_map(|port| port.due()).min()
    }

    /// What did not leave, port by port.
    pub fn losses(&self) -> Vec<SendLosses> {
        self.ports.iter().map(|port| port.losses()).collect()
    }
}

impl Transmit for LiveOut {
    /// What has no such port, as dropped packets do not, leaves nowhere.
    fn transmit(&mut self, departure: &Departure<'_>) -> io::Result<()> {
        let port = usize::from(departure.port).wrapping_sub(1);
        if let Some(port) = self.ports.get_mut(port) {
            port.send(departure.bytes, departure.virtio);
        }
        Ok(())
    }

    fn flush(&mut self) {
        self.ports.iter_mut().for_each(|port| port.flush());
    }
}
