//! Handles punted packets in the control plane: answers them, learns from them, sends them on when the
//! neighbour is known, or sends an error.
//!
//! A program hands over for five reasons, which it names `ours` (for an own address), `neighbours` (ARP),
//! `link_only` (for the hosts of one link), `control` (either of these, of a protocol between routers) and
//! `unresolved` (its next hop is not in the table). A packet that is `unresolved` is as it will leave except
//! for the TTL, what the MTU asks for, and both Ethernet addresses: these are control's to do then.

use super::account::Fate;
use super::effects::Effects;
use super::frame::{self, ETHERNET, ICMP, ICMPV6, Ipv4, Ipv6};
use super::icmp::{self, Cause};
use super::link_frames::{Arp, Discovery, EVERYBODY, advertisement};
use super::neighbours::{Heard, Mac, Neighbour};
use super::port::{Port, is_link_local};
use super::reassembly::Joined;
use super::rib::Way;
use super::router::{Packet, Router};
use engine::live::Injected;
use packet::fragment::{Fragmenting, Pieces, SMALLEST_MTU};
use packet::{PortNumber, VirtioHeader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The smallest MTU of IPv6 (RFC 8200, 5).
const SMALLEST_MTU6: u16 = 1280;

impl Router {
    /// Takes a packet that the program punted for this reason.
    pub(crate) fn packet(&mut self, reason: &str, packet: Packet, now: u64, effects: &mut Effects) {
        self.account.handed += 1;
        let host = self.port(packet.port).is_some_and(Port::has_host);
        let fate = match reason {
            "neighbours" | "ours" | "control" | "link_only" if host => {
                self.beside_host(reason, packet, now, effects)
            }
            "neighbours" => self.arp(&packet, now, effects),
            "ours" | "control" | "link_only" => return self.own_or_piece(packet, now, effects),
            "unresolved" => return self.unresolved(packet, now, effects),
            _ => Fate::Foreign,
        };
        self.account.count(fate);
    }

    /// Takes a packet at a port where the machine is a host. ARP and neighbour discovery are for both: the
    /// gateway answers for the addresses that it has, and the machine gets to see everything else, which it
    /// needs to find its neighbours and to notice that somebody else has an address that it wants (RFC 5227;
    /// RFC 4862, 5.4). Other packets are for the machine alone. What it sent itself, it does not get back:
    /// its own question would look like that of somebody who has its address.
    fn beside_host(&mut self, reason: &str, mut packet: Packet, now: u64, effects: &mut Effects) -> Fate {
        let own = self.port(packet.port).and_then(|port| port.link).map(|link| link.mac);
        if own.is_some() && frame::source(&packet.bytes) == own {
            return Fate::Ignored;
        }
        let fate = if reason == "neighbours" {
            self.arp(&packet, now, effects)
        } else {
            match self.finding(&packet) {
                Some((from, source, message)) => {
                    self.discovery(packet.port, from, source, message, now, effects)
                }
                None => self.host_or_nobody(&mut packet),
            }
        };
        match fate {
            Fate::Answered | Fate::Broadcast => fate,
            Fate::Heard => {
                effects.for_host.push(packet);
                fate
            }
            _ => {
                effects.for_host.push(packet);
                Fate::Host
            }
        }
    }

    /// Whether a packet that is no question about neighbours goes to the machine: one for all hosts of the
    /// network of another port does not. One for an address that the machine does not have, as an offer of a
    /// DHCP server, becomes one for all stations: Linux does not send such a packet on.
    fn host_or_nobody(&self, packet: &mut Packet) -> Fate {
        let Some(ip) = Ipv4::read(&packet.bytes) else { return Fate::Host };
        let to = ip.destination;
        match self.rib.lookup(to.into()) {
            Some((_, _, Way::Broadcast(port))) if port != packet.port => return Fate::Broadcast,
            Some((_, _, Way::Itself | Way::Machine | Way::Broadcast(_))) => {}
            _ if to.is_multicast() || to.is_broadcast() => {}
            _ => packet.bytes[..6].copy_from_slice(&EVERYBODY),
        }
        Fate::Host
    }

    /// The message of neighbour discovery in a packet.
    fn finding(&self, packet: &Packet) -> Option<(Mac, Ipv6Addr, Discovery)> {
        let (ip, from) = (Ipv6::read(&packet.bytes)?, frame::source(&packet.bytes)?);
        let message = Discovery::read(&ip).filter(|_| ip.icmp_is_right())?;
        Some((from, ip.source, message))
    }

    fn arp(&mut self, packet: &Packet, now: u64, effects: &mut Effects) -> Fate {
        let Some(arp) = Arp::read(&packet.bytes) else { return Fate::Malformed };
        let Some((port, own)) = self.port(packet.port).and_then(|port| Some((port, port.link?.mac))) else {
            return Fate::Ignored;
        };
        let ((mac, sender), (target_mac, target)) = (arp.sender, arp.target);
        if mac == own {
            return Fate::Ignored;
        }
        let for_us = port.owns(target.into());
        // Whoever has no address yet looks whether this one is taken (RFC 5227).
        if !sender.is_unspecified() {
            if self.is_claimed(sender.into()) {
                return Fate::Conflict;
            }
            let neighbour = Neighbour { port: packet.port, address: sender.into() };
            let all = port.addresses.iter().any(|own| own.broadcast() == Some(sender.into()));
            if all || sender.is_multicast() || !self.is_near(neighbour) {
                return Fate::WrongLink;
            }
            let how = match (arp.request, for_us) {
                (true, true) => Heard::Question,
                (false, true) if target_mac == own => {
                    Heard::Answer { solicited: self.neighbours.is_asked(neighbour), replaces: true }
                }
                _ => Heard::Announcement,
            };
            self.heard(neighbour, mac, how, now, effects);
        }
        if !(arp.request && for_us) {
            return Fate::Heard;
        }
        let reply = Arp { request: false, sender: (own, target), target: (mac, sender) };
        effects.frames.push(made(packet.port, reply.write(mac)));
        Fate::Answered
    }

    /// For an own address, or for all on the link; pieces are put together first.
    fn own_or_piece(&mut self, packet: Packet, now: u64, effects: &mut Effects) {
        let ours = match (Ipv4::read(&packet.bytes), Ipv6::read(&packet.bytes)) {
            (Some(ip), _) => self.is_own(ip.destination.into()),
            (_, Some(ip)) => self.is_own6(packet.port, ip.destination),
            _ => false,
        };
        if !ours {
            let fate = self.own(&packet, now, effects);
            return self.account.count(fate);
        }
        let mut joined = Vec::new();
        self.reassembly.take(packet, now, &mut joined);
        self.joined(joined, now, effects);
    }

    /// Pieces whose others never came are let go.
    pub(super) fn give_pieces_up(&mut self, now: u64, effects: &mut Effects) {
        let mut joined = Vec::new();
        self.reassembly.advance(now, &mut joined);
        self.joined(joined, now, effects);
    }

    fn joined(&mut self, joined: Vec<Joined>, now: u64, effects: &mut Effects) {
        for joined in joined {
            match joined {
                Joined::Other(packet) | Joined::Whole(packet) => {
                    let fate = self.own(&packet, now, effects);
                    self.account.count(fate);
                }
                Joined::Met(fate, pieces) => (0..pieces).for_each(|_| self.account.count(fate)),
                Joined::Late(first) => self.tell(&first, Cause::Late, now, effects),
            }
        }
    }

    fn is_own6(&self, port: PortNumber, address: Ipv6Addr) -> bool {
        self.port(port).is_some_and(|port| port.owns(address.into())) || self.is_own(address.into())
    }

    /// What becomes of a packet for an own address from a source that no other host has: an answer would go
    /// to the gateway itself, or to all hosts of a network.
    fn impossible(&self, source: IpAddr) -> Option<Fate> {
        match self.rib.lookup(source) {
            Some((_, _, Way::Itself | Way::Machine)) => Some(Fate::Conflict),
            Some((_, _, Way::Broadcast(_))) => Some(Fate::WrongLink),
            _ => None,
        }
    }

    /// For an own address, or for all on the link.
    fn own(&mut self, packet: &Packet, now: u64, effects: &mut Effects) -> Fate {
        match packet.bytes.get(12..14) {
            Some([8, 0]) => self.own4(packet, now, effects),
            Some([0x86, 0xdd]) => self.own6(packet, now, effects),
            _ => Fate::Ignored,
        }
    }

    fn own4(&mut self, packet: &Packet, now: u64, effects: &mut Effects) -> Fate {
        let (Some(ip), Some(from)) = (Ipv4::read(&packet.bytes), frame::source(&packet.bytes)) else {
            return Fate::Malformed;
        };
        if !self.is_own(ip.destination.into()) {
            return match self.rib.lookup(ip.destination.into()) {
                Some((_, _, Way::Broadcast(_))) => Fate::Broadcast,
                Some((_, _, Way::Machine)) => Fate::Machine,
                _ => Fate::Ignored,
            };
        }
        if let Some(fate) = self.impossible(ip.source.into()) {
            return fate;
        }
        let own = self.port(packet.port).and_then(|port| port.link).map(|link| link.mac);
        if ip.protocol == ICMP {
            let echo = own.and_then(|own| icmp::echo(own, from, &ip));
            let asked = ip.payload.first() == Some(&8);
            let Some(bytes) = echo else { return if asked { Fate::Malformed } else { Fate::Ignored } };
            self.answer(packet.port, bytes, effects);
            return Fate::Answered;
        }
        let cause = if matches!(ip.protocol, 6 | 17) { Cause::Port } else { Cause::Protocol };
        self.tell(packet, cause, now, effects);
        Fate::NoService
    }

    fn own6(&mut self, packet: &Packet, now: u64, effects: &mut Effects) -> Fate {
        let (Some(ip), Some(from)) = (Ipv6::read(&packet.bytes), frame::source(&packet.bytes)) else {
            return Fate::Malformed;
        };
        if ip.next == ICMPV6 && matches!(ip.payload.first(), Some(135 | 136)) {
            let discovery = Discovery::read(&ip).filter(|_| ip.icmp_is_right());
            return match discovery {
                Some(discovery) => self.discovery(packet.port, from, ip.source, discovery, now, effects),
                None => Fate::Malformed,
            };
        }
        let Some(port) = self.port(packet.port) else { return Fate::Ignored };
        let Some(link) = port.link else { return Fate::Ignored };
        if !self.is_own6(packet.port, ip.destination) {
            return if self.is_machine(ip.destination.into()) { Fate::Machine } else { Fate::Ignored };
        }
        if self.is_own6(packet.port, ip.source) {
            return Fate::Conflict;
        }
        match (ip.next, ip.payload.first()) {
            (ICMPV6, Some(128)) => match icmp::echo6(link.mac, from, &ip) {
                Some(bytes) => {
                    self.answer(packet.port, bytes, effects);
                    Fate::Answered
                }
                None => Fate::Malformed,
            },
            (ICMPV6, _) => Fate::Ignored,
            (next, _) => {
                match next {
                    6 | 17 => self.tell(packet, Cause::Port, now, effects),
                    // Extension headers would have to be read to know what is asked for.
                    0 | 43 | 44 | 51 | 59 | 60 => {}
                    _ => self.tell(packet, Cause::Protocol, now, effects),
                }
                Fate::NoService
            }
        }
    }

    /// Sends the answer to an echo, in pieces where it is too long for the link.
    fn answer(&mut self, number: PortNumber, bytes: Vec<u8>, effects: &mut Effects) {
        let mtu = self.port(number).map_or(u16::MAX, |port| port.mtu());
        self.answers = self.answers.wrapping_add(1);
        let pieces = icmp::in_pieces(bytes, mtu, self.answers);
        effects.frames.extend(pieces.into_iter().map(|bytes| made(number, bytes)));
    }

    fn discovery(
        &mut self,
        number: PortNumber,
        from: Mac,
        source: Ipv6Addr,
        discovery: Discovery,
        now: u64,
        effects: &mut Effects,
    ) -> Fate {
        let Some((port, own)) = self.port(number).and_then(|port| Some((port, port.link?.mac))) else {
            return Fate::Ignored;
        };
        if from == own {
            return Fate::Ignored;
        }
        match discovery {
            Discovery::Solicitation { target, link } => {
                if !port.owns(target.into()) {
                    return Fate::Ignored;
                }
                if !source.is_unspecified() {
                    if self.is_own6(number, source) || self.is_machine(source.into()) {
                        return Fate::Conflict;
                    }
                    let neighbour = Neighbour { port: number, address: source.into() };
                    if !self.is_near(neighbour) {
                        return Fate::WrongLink;
                    }
                    if let Some(mac) = link {
                        self.heard(neighbour, mac, Heard::Question, now, effects);
                    }
                }
                let bytes = advertisement((own, target), (link.unwrap_or(from), source));
                effects.frames.push(made(number, bytes));
                Fate::Answered
            }
            Discovery::Advertisement { target, link, solicited, replaces } => {
                if self.is_own6(number, target) || self.is_machine(target.into()) {
                    return Fate::Conflict;
                }
                let neighbour = Neighbour { port: number, address: target.into() };
                if !self.is_near(neighbour) {
                    return Fate::WrongLink;
                }
                let Some(mac) = link.or_else(|| self.neighbours.mac(neighbour)) else { return Fate::Ignored };
                let solicited = solicited && self.neighbours.is_asked(neighbour);
                self.heard(neighbour, mac, Heard::Answer { solicited, replaces }, now, effects);
                Fate::Heard
            }
        }
    }

    fn heard(&mut self, neighbour: Neighbour, mac: Mac, how: Heard, now: u64, effects: &mut Effects) {
        let mut actions = Vec::new();
        self.neighbours.heard(neighbour, mac, how, now, &mut actions);
        self.act(actions, now, effects);
    }

    /// A packet whose next hop is not in the table.
    fn unresolved(&mut self, packet: Packet, now: u64, effects: &mut Effects) {
        match self.way(&packet) {
            Ok(neighbour) => {
                let mut actions = Vec::new();
                self.neighbours.packet(neighbour, packet, now, &mut actions);
                self.act(actions, now, effects);
            }
            Err((fate, cause)) => {
                if let Some(cause) = cause {
                    self.tell(&packet, cause, now, effects);
                }
                self.account.count(fate);
            }
        }
    }

    /// The neighbour that a packet is to go to, or why it goes to none and what its sender is told.
    fn way(&self, packet: &Packet) -> Result<Neighbour, (Fate, Option<Cause>)> {
        let (destination, ttl) = match (Ipv4::read(&packet.bytes), Ipv6::read(&packet.bytes)) {
            (Some(ip), _) => (IpAddr::V4(ip.destination), ip.ttl),
            (_, Some(ip)) => (IpAddr::V6(ip.destination), ip.hop_limit),
            _ => return Err((Fate::Malformed, None)),
        };
        if destination.is_multicast() || is_link_local(destination) {
            return Err((Fate::Ignored, None));
        }
        let neighbour = match self.rib.lookup(destination) {
            Some((_, _, Way::Via(neighbour))) => neighbour,
            Some((_, _, Way::Several(several))) => self.one_of(several).ok_or((Fate::NoRoute, None))?,
            Some((_, _, Way::Link(port))) => Neighbour { port, address: destination },
            Some((_, _, Way::Itself)) => return Err((Fate::NoService, None)),
            Some((_, _, Way::Broadcast(_))) => return Err((Fate::Broadcast, None)),
            Some((_, _, Way::Blackhole)) => return Err((Fate::Blackhole, None)),
            Some((_, _, Way::Unreachable)) => return Err((Fate::NoRoute, Some(Cause::Host))),
            Some((_, _, Way::Prohibited)) => return Err((Fate::Prohibited, Some(Cause::Prohibited))),
            Some((_, _, Way::Machine)) => return Err((Fate::Machine, None)),
            Some((_, _, Way::Unmeant(_))) => return Err((Fate::Unmeant, Some(Cause::Host))),
            None => return Err((Fate::NoRoute, Some(Cause::Network))),
        };
        if ttl <= 1 {
            return Err((Fate::Expired, Some(Cause::Expired)));
        }
        match self.too_big(packet, neighbour.port) {
            Some(mtu) => Err((Fate::TooBig, Some(Cause::TooBig(mtu)))),
            None => Ok(neighbour),
        }
    }

    /// The MTU of a port, where a packet is larger and must not be cut.
    fn too_big(&self, packet: &Packet, out: PortNumber) -> Option<u16> {
        let mtu = self.port(out).map_or(u16::MAX, |port| port.mtu());
        // A segment is cut where it leaves; its pieces are as long as those that came.
        if packet.virtio.segments() {
            return None;
        }
        if let Some(ip) = Ipv4::read(&packet.bytes) {
            let mtu = mtu.max(SMALLEST_MTU as u16);
            return (ip.dont_fragment && ip.bytes.len() > usize::from(mtu)).then_some(mtu);
        }
        let mtu = mtu.max(SMALLEST_MTU6);
        Ipv6::read(&packet.bytes).filter(|ip| ip.bytes.len() > usize::from(mtu)).map(|_| mtu)
    }

    /// Sends a packet to its neighbour: one hop less to live, other Ethernet addresses, without what stands
    /// behind its end, and in pieces where it is too long.
    pub(super) fn send_on(
        &mut self,
        neighbour: Neighbour,
        mac: Mac,
        mut packet: Packet,
        effects: &mut Effects,
    ) {
        let Some((own, mtu)) = self.port(neighbour.port).and_then(|port| Some((port.link?.mac, port.mtu())))
        else {
            return self.account.count(Fate::Unreachable);
        };
        let bytes = &mut packet.bytes;
        let four = bytes[12..14] == [8, 0];
        if !packet.virtio.segments() {
            let ip = Ipv4::read(bytes).map(|ip| ip.bytes.len());
            let ip = ip.or_else(|| Ipv6::read(bytes).map(|ip| ip.bytes.len()));
            bytes.truncate(ip.map_or(usize::MAX, |length| ETHERNET + length));
        }
        bytes[..6].copy_from_slice(&mac);
        bytes[6..12].copy_from_slice(&own);
        if four {
            hop(&mut bytes[ETHERNET..]);
        } else {
            bytes[ETHERNET + 7] -= 1;
        }
        let fragmenting = Fragmenting { at: ETHERNET as u32, mtu: mtu.into() };
        let pieces = (four && !packet.virtio.segments())
            .then(|| Pieces::of(bytes, bytes.len() as u32, fragmenting))
            .flatten();
        self.account.count(Fate::Sent);
        let Some(pieces) = pieces else {
            let Packet { bytes, virtio, .. } = packet;
            return effects.frames.push(Injected { port: neighbour.port, bytes, virtio });
        };
        for index in 0..pieces.count() {
            let mut piece = Vec::new();
            pieces.write(bytes, index, &mut piece);
            effects.frames.push(made(neighbour.port, piece));
        }
    }

    /// Nobody answered for a packet's neighbour (RFC 1122, 2.3.2; RFC 4861, 7.2.2).
    pub(super) fn unreachable(&mut self, packet: &Packet, now: u64, effects: &mut Effects) {
        // It may have become an address of the machine while it waited.
        if matches!(self.way(packet), Err((Fate::Machine, _))) {
            return self.account.count(Fate::Machine);
        }
        self.tell(packet, Cause::Host, now, effects);
        self.account.count(Fate::Unreachable);
    }

    /// Tells the sender of a packet why it is not delivered, as far as that may be told and the rate allows.
    fn tell(&mut self, packet: &Packet, cause: Cause, now: u64, effects: &mut Effects) {
        let (four, six) = (self.own_ipv4(packet.port), self.own_ipv6(packet.port));
        let Some(port) = self.ports.get_mut(usize::from(packet.port).wrapping_sub(1)) else { return };
        let (Some(link), Some(to)) = (port.link, frame::source(&packet.bytes)) else { return };
        let error = match (Ipv4::read(&packet.bytes), Ipv6::read(&packet.bytes)) {
            (Some(ip), _) => four.and_then(|own: Ipv4Addr| icmp::error((link.mac, own), to, &ip, cause)),
            (_, Some(ip)) => six.and_then(|own: Ipv6Addr| icmp::error6((link.mac, own), to, &ip, cause)),
            _ => None,
        };
        let Some(bytes) = error else { return };
        if !port.errors.take(now) {
            self.account.errors_withheld += 1;
            return;
        }
        self.account.errors_sent += 1;
        effects.frames.push(made(packet.port, bytes));
    }
}

/// One hop less to live, and the checksum with it (RFC 1624). The TTL is at least 1.
fn hop(ip: &mut [u8]) {
    ip[8] -= 1;
    let check = u32::from(u16::from_be_bytes([ip[10], ip[11]])) + 0x100;
    let check = (check + u32::from(check >= 0xffff)) as u16;
    ip[10..12].copy_from_slice(&check.to_be_bytes());
}

fn made(port: PortNumber, bytes: Vec<u8>) -> Injected {
    Injected { port, bytes, virtio: VirtioHeader::NONE }
}
