//! `programs/firewall.rav` by hand.

use super::{TableView, Work, dropped, hosts};
use ir::Program;
use packet::Verdict;
use tables::exact::Table1;

/// Web traffic only, then a learning switch on IPv4 addresses.
pub struct Firewall {
    hosts: Table1,
    drops: Drops,
}

/// Every way to drop.
struct Drops {
    not_ipv4: Verdict,
    later_fragment: Verdict,
    not_web: Verdict,
    hairpin: Verdict,
    short_ethernet: Verdict,
    short_ipv4: Verdict,
    short_tcp: Verdict,
    short_udp: Verdict,
    version: Verdict,
    ihl: Verdict,
    offset: Verdict,
}

impl Firewall {
    /// With the table and the reasons of the program.
    ///
    /// # Errors
    /// If the program is not what this is the twin of.
    pub fn new(program: &Program, seed: u64) -> Result<Firewall, String> {
        let drop = |reason| dropped(program, reason);
        let drops = Drops {
            not_ipv4: drop("not_ipv4")?,
            later_fragment: drop("later_fragment")?,
            not_web: drop("not_web")?,
            hairpin: drop("hairpin")?,
            short_ethernet: drop("short(ethernet)")?,
            short_ipv4: drop("short(ipv4)")?,
            short_tcp: drop("short(tcp)")?,
            short_udp: drop("short(udp)")?,
            version: drop("invalid(ipv4.version)")?,
            ihl: drop("invalid(ipv4.ihl)")?,
            offset: drop("invalid(tcp.offset)")?,
        };
        Ok(Firewall { hosts: hosts(program, seed)?, drops })
    }

    #[inline(always)]
    fn switch(&mut self, src: u32, dst: u32, port: u16, now: u64) -> Verdict {
        if !is_group(src) {
            self.hosts.learn1(src.into(), &[u64::from(port)], now);
        }
        if is_group(dst) {
            return Verdict::FLOOD;
        }
        match self.hosts.find1(dst.into(), now) {
            Some(&[found]) if found == u64::from(port) => self.drops.hairpin,
            Some(&[found]) => Verdict::send(found as u16),
            _ => Verdict::FLOOD,
        }
    }
}

impl Work for Firewall {
    #[inline]
    fn packet(&mut self, frame: &[u8], port: u16, now: u64) -> Verdict {
        let drops = &self.drops;
        let Some((ethernet, rest)) = frame.split_first_chunk::<14>() else { return drops.short_ethernet };
        if ethernet[12..] != [0x08, 0x00] {
            return drops.not_ipv4;
        }
        let Some(ip) = rest.first_chunk::<20>() else { return drops.short_ipv4 };
        if ip[0] >> 4 != 4 {
            return drops.version;
        }
        let ihl = usize::from(ip[0] & 15);
        if ihl < 5 {
            return drops.ihl;
        }
        let Some(segment) = rest.get(ihl * 4..) else { return drops.short_ipv4 };
        if u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff != 0 {
            return drops.later_fragment;
        }
        let to = match ip[9] {
            6 => {
                let Some(tcp) = segment.first_chunk::<20>() else { return drops.short_tcp };
                let offset = usize::from(tcp[12] >> 4);
                if offset < 5 {
                    return drops.offset;
                }
                if segment.len() < offset * 4 {
                    return drops.short_tcp;
                }
                u16::from_be_bytes([tcp[2], tcp[3]])
            }
            17 => {
                let Some(udp) = segment.first_chunk::<8>() else { return drops.short_udp };
                u16::from_be_bytes([udp[2], udp[3]])
            }
            _ => return drops.not_web,
        };
        if to != 80 && to != 443 {
            return drops.not_web;
        }
        let src = u32::from_be_bytes([ip[12], ip[13], ip[14], ip[15]]);
        let dst = u32::from_be_bytes([ip[16], ip[17], ip[18], ip[19]]);
        self.switch(src, dst, port, now)
    }

    #[inline]
    fn hosts(&mut self) -> &mut Table1 {
        &mut self.hosts
    }
}

impl TableView for Firewall {
    fn view(&self) -> &Table1 {
        &self.hosts
    }
}

/// Multicast and the limited broadcast.
#[inline(always)]
fn is_group(address: u32) -> bool {
    address >> 28 == 0xe || address == u32::MAX
}
