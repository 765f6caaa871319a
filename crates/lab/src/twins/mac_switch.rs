//! `programs/mac_switch.rav` by hand.

use super::{TableView, Work, dropped, hosts};
use ir::Program;
use packet::Verdict;
use tables::exact::Table1;

/// A learning switch on MAC addresses.
pub struct MacSwitch {
    hosts: Table1,
    short: Verdict,
    hairpin: Verdict,
}

impl MacSwitch {
    /// With the table and the reasons of the program.
    ///
    /// # Errors
    /// If the program is not what this is the twin of.
    pub fn new(program: &Program, seed: u64) -> Result<MacSwitch, String> {
        Ok(MacSwitch {
            hosts: hosts(program, seed)?,
            short: dropped(program, "short(ethernet)")?,
            hairpin: dropped(program, "hairpin")?,
        })
    }
}

impl Work for MacSwitch {
    #[inline]
    fn packet(&mut self, frame: &[u8], port: u16, now: u64) -> Verdict {
        let Some(header) = frame.first_chunk::<14>() else { return self.short };
        let (dst, src) = (address(header, 0), address(header, 6));
        if header[6] & 1 == 0 {
            self.hosts.learn1(src, &[u64::from(port)], now);
        }
        if header[0] & 1 == 1 {
            return Verdict::FLOOD;
        }
        match self.hosts.find1(dst, now) {
            Some(&[found]) if found == u64::from(port) => self.hairpin,
            Some(&[found]) => Verdict::send(found as u16),
            _ => Verdict::FLOOD,
        }
    }

    #[inline]
    fn hosts(&mut self) -> &mut Table1 {
        &mut self.hosts
    }
}

impl TableView for MacSwitch {
    fn view(&self) -> &Table1 {
        &self.hosts
    }
}

/// The address that begins at a byte of the header.
#[inline(always)]
fn address(header: &[u8; 14], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[2..].copy_from_slice(&header[at..at + 6]);
    u64::from_be_bytes(bytes)
}
