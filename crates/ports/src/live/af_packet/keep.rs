//! Keeps received packets from the network stack of Linux (`keep_from_kernel`), which would answer and
//! forward them as well.
//!
//! Packet sockets see a packet before netfilter's ingress hook does. A chain at that hook whose policy is to
//! drop lets the sockets have everything, and the stack nothing. The chain's table is owned by the netlink
//! socket that made it (NFT_TABLE_F_OWNER, Linux 5.12): the kernel takes it away when that is closed, however
//! the process ended.
//!
//! ```text
//! message    length 4 | kind 2 | flags 2 | sequence 4 | port 4 | family 1 | version 1 | resource 2 | attributes
//! attribute  length 2 | kind 2 | value, filled up to a multiple of 4            numbers in values are big-endian
//! batch      begin | new table | new chain | end                                all or nothing
//! ```

use crate::live::sys;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};

/// Keeps the packets of an interface from the kernel as long as it lives.
pub(super) struct Kept(#[expect(dead_code, reason = "what matters is that it is open")] File);

/// Kinds of messages (linux/netfilter/nfnetlink.h, nf_tables.h): of nfnetlink itself, and of its part
/// nf_tables.
const BEGIN: u16 = 16;
const END: u16 = 17;
const TABLES: u16 = 10;
const NEW_TABLE: u16 = TABLES << 8;
const NEW_CHAIN: u16 = TABLES << 8 | 3;
/// Flags of messages.
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const CREATE: u16 = 0x400;
/// The family of hooks at a device, and its only hook of this kind.
const NETDEV: u8 = 5;
const INGRESS: u32 = 0;
/// Goes with the socket that made it.
const OWNED: u32 = 2;
/// Before every other chain there is likely to be.
const PRIORITY: i32 = -500;
const DROP: u32 = 0;
/// A message that says how one of ours ended.
const ERROR: u16 = 2;

impl Kept {
    /// Keeps them from now on.
    ///
    /// # Errors
    /// The right is missing (CAP_NET_ADMIN), the kernel has no nf_tables, or another gateway keeps them.
    pub(super) fn new(interface: &str) -> io::Result<Kept> {
        let mut socket = File::from(sys::netfilter_socket()?);
        let batch = batch(interface);
        if socket.write(&batch)? < batch.len() {
            return Err(ErrorKind::WriteZero.into());
        }
        // The kernel has answered before the call returned: one message for each of the two, or what was
        // wrong.
        let mut answered = 0;
        let mut buffer = vec![0; 16 << 10];
        while answered < 2 {
            let length = socket.read(&mut buffer)?;
            let before = answered;
            for code in answers(&buffer[..length]) {
                if code != 0 {
                    return Err(io::Error::from_raw_os_error(-code));
                }
                answered += 1;
            }
            if answered == before {
                return Err(ErrorKind::InvalidData.into());
            }
        }
        Ok(Kept(socket))
    }
}

/// Everything that is asked of the kernel.
fn batch(interface: &str) -> Vec<u8> {
    let table = format!("ravelin-{interface}");
    let mut hook = Vec::new();
    attribute(&mut hook, 1, &INGRESS.to_be_bytes());
    attribute(&mut hook, 2, &PRIORITY.to_be_bytes());
    attribute(&mut hook, 3, &text(interface));
    let (mut of_table, mut of_chain) = (Vec::new(), Vec::new());
    attribute(&mut of_table, 1, &text(&table));
    attribute(&mut of_table, 2, &OWNED.to_be_bytes());
    attribute(&mut of_chain, 1, &text(&table));
    attribute(&mut of_chain, 3, &text("kept"));
    const NESTED: u16 = 0x8000;
    attribute(&mut of_chain, 4 | NESTED, &hook);
    attribute(&mut of_chain, 5, &DROP.to_be_bytes());
    attribute(&mut of_chain, 7, &text("filter"));
    let mut batch = Vec::new();
    message(&mut batch, BEGIN, REQUEST, 0, TABLES, &[]);
    message(&mut batch, NEW_TABLE, REQUEST | ACKNOWLEDGE | CREATE, NETDEV, 0, &of_table);
    message(&mut batch, NEW_CHAIN, REQUEST | ACKNOWLEDGE | CREATE, NETDEV, 0, &of_chain);
    message(&mut batch, END, REQUEST, 0, TABLES, &[]);
    batch
}

fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

fn attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
    to.extend_from_slice(&kind.to_ne_bytes());
    to.extend_from_slice(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

fn message(to: &mut Vec<u8>, kind: u16, flags: u16, family: u8, resource: u16, attributes: &[u8]) {
    to.extend_from_slice(&(20 + attributes.len() as u32).to_ne_bytes());
    to.extend_from_slice(&kind.to_ne_bytes());
    to.extend_from_slice(&flags.to_ne_bytes());
    to.extend_from_slice(&[0; 8]);
    to.extend_from_slice(&[family, 0]);
    to.extend_from_slice(&resource.to_be_bytes());
    to.extend_from_slice(attributes);
}

/// How messages ended: 0, or a negative number of an error.
fn answers(mut bytes: &[u8]) -> impl Iterator<Item = i32> {
    std::iter::from_fn(move || {
        loop {
            let (head, _) = bytes.split_first_chunk::<20>()?;
            let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
            let kind = u16::from_ne_bytes([head[4], head[5]]);
            bytes = bytes.get(length.max(16).next_multiple_of(4)..).unwrap_or_default();
            if kind == ERROR {
                return Some(i32::from_ne_bytes([head[16], head[17], head[18], head[19]]));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_messages_of_whole_words_whose_lengths_lead_to_its_end() {
        for name in ["x", "eth0", "eth00", "fifteen-messages"] {
            let batch = batch(name);
            let (mut at, mut kinds) = (0, Vec::new());
            while at < batch.len() {
                let length = u32::from_ne_bytes(batch[at..at + 4].try_into().expect("four")) as usize;
                kinds.push(u16::from_ne_bytes(batch[at + 4..at + 6].try_into().expect("two")));
                assert!(length >= 20 && length.is_multiple_of(4));
                at += length;
            }
            assert_eq!((at, kinds), (batch.len(), vec![BEGIN, NEW_TABLE, NEW_CHAIN, END]));
        }
    }

    #[test]
    fn answers_are_found_among_other_messages_and_cut_ones_end() {
        let answer = |kind: u16, code: i32| {
            let mut bytes = Vec::new();
            bytes.extend_from_slice(&36u32.to_ne_bytes());
            bytes.extend_from_slice(&kind.to_ne_bytes());
            bytes.resize(16, 0);
            bytes.extend_from_slice(&code.to_ne_bytes());
            bytes.resize(36, 0);
            bytes
        };
        let bytes = [answer(ERROR, 0), answer(7, -9), answer(ERROR, -1)].concat();
        assert_eq!(answers(&bytes).collect::<Vec<_>>(), [0, -1]);
        for length in 0..bytes.len() {
            assert!(answers(&bytes[..length]).count() <= 2);
        }
        assert_eq!(answers(&[0; 100]).count(), 0);
    }
}
