//! The receiving half of a tunnel: takes datagrams, opens them, and gives the packets of peers to the program
//! with Ethernet headers that say whose they are.

use super::calls::{self, AT_ONCE, Arrived};
use super::mailbox::Mailbox;
use super::own_end::Port;
use crate::live::clock::Now;
use crate::live::{ReceiveLosses, Receiver};
use packet::region::{HEADROOM, SLACK, frame_with_headroom};
use packet::{Batch, PortNumber, Region};
use std::os::fd::RawFd;
use std::sync::Arc;
use tunnel::{OWN_NUMBER, PeerId, Received, peer_mac};

/// Bytes of an Ethernet header.
pub(super) const ETHERNET: usize = 14;
/// Bytes for a message: the longest that the kernel makes of several datagrams. What is added keeps messages
/// from sharing few sets of a cache.
const STRIDE: usize = (64 << 10) + 2_112;
/// Bytes for the packets of a batch: a full one of usual packets, or some long ones.
const MEMORY: usize = 512 << 10;

/// What comes in.
pub(super) struct Incoming {
    port: Arc<Port>,
    number: PortNumber,
    control: Arc<Mailbox>,
    /// Room for messages, and those that are there. All before `next` are done, and `offset` bytes of it.
    messages: Vec<u8>,
    arrived: [Arrived; AT_ONCE],
    count: usize,
    next: usize,
    offset: usize,
    /// The packets of a batch.
    region: Region,
}

impl Incoming {
    pub(super) fn new(port: Arc<Port>, number: PortNumber, control: Arc<Mailbox>) -> Incoming {
        Incoming {
            port,
            number,
            control,
            messages: vec![0; AT_ONCE * STRIDE],
            arrived: [Arrived::NONE; AT_ONCE],
            count: 0,
            next: 0,
            offset: 0,
            region: Region::zeroed(MEMORY),
        }
    }
}

impl Receiver for Incoming {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        let Incoming { port, number, control, messages, arrived, count, next, offset, region } = self;
        batch.clear();
        batch.headroom = HEADROOM as u32;
        port.silence();
        if next == count {
            // Whatever is in the way now, it may be gone the next time.
            *count = calls::receive(&port.socket, messages, STRIDE, arrived).unwrap_or(0);
            (*next, *offset) = (0, 0);
        }
        let memory = region.bytes_mut();
        let mut start = frame_with_headroom(None, 0);
        let mut end = port.end();
        while let Some(message) = arrived[..*count].get(*next) {
            let begin = *next * STRIDE + *offset;
            let length = message.each.min(message.length - *offset);
            if batch.is_full() || start + ETHERNET + length + SLACK > memory.len() {
                break;
            }
            *offset += length.max(1);
            if *offset >= message.length {
                (*next, *offset) = (*next + 1, 0);
            }
            let Some(from) = message.from else { continue };
            let datagram = &mut messages[begin..begin + length];
            match end.tunnel.receive(now.program, from, datagram) {
                Ok(Received::Packet(PeerId(peer), place)) => {
                    let packet = &datagram[place];
                    let frame = &mut memory[start..start + ETHERNET + packet.len()];
                    frame[..6].copy_from_slice(&peer_mac(OWN_NUMBER));
                    frame[6..12].copy_from_slice(&peer_mac(peer));
                    frame[12..ETHERNET].copy_from_slice(&ethernet_type(packet[0]).to_be_bytes());
                    frame[ETHERNET..].copy_from_slice(packet);
                    let length = frame.len() as u32;
                    batch.push(start as u64, length, length, *number, now.program);
                    start = frame_with_headroom(Some(start), start + length as usize);
                }
                Ok(Received::Control(PeerId(peer), place)) => control.put(peer, &datagram[place]),
                Ok(
                    Received::Keepalive(_)
                    | Received::Initiation(_)
                    | Received::Response(_)
                    | Received::CookieReply(_),
                ) => {}
                Err(reason) => end.drops[reason as usize] += 1,
            }
        }
        end.turn(&port.socket, now.program);
        drop(end);
        memory
    }

    fn descriptor(&self) -> RawFd {
        self.port.descriptor()
    }

    fn due(&self) -> Option<u64> {
        if self.next < self.count { Some(0) } else { self.port.end().tunnel.next_deadline() }
    }

    fn has_more(&self) -> bool {
        self.count == AT_ONCE || self.next < self.count
    }

    fn losses(&mut self) -> ReceiveLosses {
        self.port.end().receive_losses(&self.port.socket)
    }
}

/// The type of an IP packet that begins with this byte. The tunnel lets no other through.
fn ethernet_type(first: u8) -> u16 {
    if first >> 4 == 6 { 0x86dd } else { 0x0800 }
}
