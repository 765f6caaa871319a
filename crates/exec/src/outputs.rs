//! The outputs of a program in addition to verdicts: copies, packets that it made, and events that it raised.
//! Buffers are reused from batch to batch.

use ir::{Hole, Template};
use packet::fragment::Fragmenting;
use packet::region::HEADROOM;
use packet::resize::Resizable;
use packet::{Batch, VirtioHeader};

/// A packet that leaves in addition to the received ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// The port by which it leaves; the caller counts packets for ports that do not exist.
    pub port: u16,
    /// Index in the batch of the packet that caused it; [`Output::BETWEEN`] if a timer or event did.
    pub cause: u32,
    /// First byte in [`Outputs::bytes`].
    pub start: u32,
    /// Bytes that are there.
    pub captured: u32,
    /// Length on the wire.
    pub wire: u32,
    /// The time of the cause, ns.
    pub time: u64,
    /// True for a copy of a received packet, false for a packet the program made.
    pub copy: bool,
}

impl Output {
    /// [`Output::cause`] of an output that no packet caused.
    pub const BETWEEN: u32 = u32::MAX;
}

/// An event that was raised: recorded when it is queued or scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raised {
    /// Index of the event in the program.
    pub event: u32,
    /// Nanoseconds at which it was raised.
    pub time: u64,
    /// Nanoseconds until its handler runs.
    pub delay: u64,
    /// Index in the batch of the packet that raised it; [`Output::BETWEEN`] if a handler did.
    pub cause: u32,
    /// First argument in [`Outputs::arguments`]; the event's declaration says how many there are.
    pub first: u32,
}

/// A packet of the batch that leaves in another form: its length changed, or it is to be fragmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resized {
    /// Its index in the batch.
    pub packet: u32,
    /// Its length on the wire when it came in; the batch has its present length.
    pub wire: u32,
    /// How the packet is fragmented if it leaves and is too long.
    pub fragmenting: Option<Fragmenting>,
}

/// All outputs since the last [`Outputs::clear`].
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    /// Packets in the order in which they were sent.
    pub packets: Vec<Output>,
    /// Their bytes.
    pub bytes: Vec<u8>,
    /// Events in the order in which they were raised.
    pub raised: Vec<Raised>,
    /// Their arguments.
    pub arguments: Vec<u128>,
    /// Packets of the batch that changed their length or leave in fragments, in the order of the batch.
    pub resized: Vec<Resized>,
    /// The virtio header of every packet of the batch, if some checksums are open and the program may send
    /// bytes of such packets while it runs; empty otherwise. Before that the checksum is finished in the
    /// packet, and its header then says so.
    pub open: Vec<VirtioHeader>,
}

impl Outputs {
    /// Forgets everything and keeps the buffers.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.bytes.clear();
        self.raised.clear();
        self.arguments.clear();
        self.resized.clear();
        self.open.clear();
    }

    /// Finishes the checksum of a packet of the batch if it is open: bytes of the packet are to be sent.
    #[inline]
    pub(crate) fn finish_checksum(&mut self, packet: u32, frame: &mut [u8]) {
        if let Some(virtio) = self.open.get_mut(packet as usize)
            && virtio.complete(frame)
        {
            *virtio = virtio.without_checksum();
        }
    }

    /// As [`Outputs::write_back`], of a packet that was [received] with its memory at `first`.
    pub(crate) fn finish_packet(
        &mut self,
        batch: &mut Batch,
        index: usize,
        first: usize,
        packet: &Resizable<'_>,
    ) {
        let now = Now {
            frame: first + packet.start(),
            captured: packet.captured(),
            wire: packet.wire(),
            fragmenting: packet.fragmenting(),
        };
        self.write_back(batch, index, now);
    }

    /// Writes the present place and length of packet `index` back into the batch.
    pub(crate) fn write_back(&mut self, batch: &mut Batch, index: usize, now: Now) {
        let wire = batch.wire[index];
        if wire != now.wire || now.fragmenting.is_some() {
            self.resized.push(Resized { packet: index as u32, wire, fragmenting: now.fragmenting });
        }
        batch.frame[index] = now.frame as u64;
        batch.captured[index] = now.captured as u32;
        batch.wire[index] = now.wire;
    }

    /// Adds a copy of a received packet in its present state. Returns `false` and does nothing if all bytes
    /// together would exceed 4 GiB.
    pub fn copy(&mut self, frame: &[u8], cause: Cause, port: u16) -> bool {
        let Some(start) = self.room_for(frame.len()) else { return false };
        self.bytes.extend_from_slice(frame);
        self.packets.push(Output {
            port,
            cause: cause.packet,
            start,
            captured: frame.len() as u32,
            wire: cause.wire,
            time: cause.time,
            copy: true,
        });
        true
    }

    /// Adds a packet made from a template, whose holes get `values`, followed by bytes of the received
    /// packet. Returns `false` and does nothing if all bytes together would exceed 4 GiB.
    pub fn emit(
        &mut self,
        template: &Template,
        values: impl IntoIterator<Item = u128>,
        tail: &[u8],
        cause: Cause,
        port: u16,
    ) -> bool {
        let captured = template.bytes.len() + tail.len();
        let Some(start) = self.room_for(captured) else { return false };
        self.bytes.extend_from_slice(&template.bytes);
        fill_holes(&mut self.bytes[start as usize..], template, values);
        self.bytes.extend_from_slice(tail);
        let wire = (template.bytes.len() as u32).saturating_add(cause.wire);
        finish(&mut self.bytes[start as usize..], template, captured >= wire as usize);
        self.packets.push(Output {
            port,
            cause: cause.packet,
            start,
            captured: captured as u32,
            wire,
            time: cause.time,
            copy: false,
        });
        true
    }

    /// The place where new bytes start, if there is room for `bytes` of them.
    fn room_for(&self, bytes: usize) -> Option<u32> {
        u32::try_from(self.bytes.len() + bytes).ok()?;
        Some(self.bytes.len() as u32)
    }

    /// The bytes of a packet.
    pub fn bytes_of(&self, output: &Output) -> &[u8] {
        &self.bytes[output.start as usize..(output.start + output.captured) as usize]
    }
}

/// The place and length of a packet when its program has finished.
pub(crate) struct Now {
    /// First byte in the memory of the batch.
    pub(crate) frame: usize,
    /// Bytes that are there.
    pub(crate) captured: usize,
    /// Length on the wire.
    pub(crate) wire: u32,
    /// How it is to be cut.
    pub(crate) fragmenting: Option<Fragmenting>,
}

/// The part of the received packet that a made packet includes: at most `limit` captured bytes from `tail`
/// on, and the length of this part on the wire.
pub(crate) fn appended(frame: &[u8], wire: u32, tail: Option<usize>, limit: u32) -> (&[u8], u32) {
    let Some(rest) = tail.and_then(|tail| frame.get(tail..)) else { return (&[], 0) };
    let wire = wire.saturating_sub((frame.len() - rest.len()) as u32);
    (&rest[..rest.len().min(limit as usize)], wire.min(limit))
}

/// What an output inherits from the packet, timer or event that caused it.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// Index in the batch, or [`Output::BETWEEN`].
    pub packet: u32,
    /// The time of the cause, ns.
    pub time: u64,
    /// For a copy, its length on the wire; for a made packet, that of the tail.
    pub wire: u32,
}

/// Inserts a template's bytes into a packet, with the values of its holes, and with checksums over what then
/// follows. Returns `false` and does nothing if there is no room.
pub(crate) fn push(
    packet: &mut Resizable<'_>,
    at: usize,
    template: &Template,
    values: impl IntoIterator<Item = u128>,
) -> bool {
    let at = at.min(packet.captured());
    let Some(opened) = packet.push(at, template.bytes.len()) else { return false };
    opened.copy_from_slice(&template.bytes);
    fill_holes(opened, template, values);
    let whole = packet.captured() >= packet.wire() as usize;
    let made = &mut packet.bytes_mut()[at..];
    finish(made, template, whole);
    true
}

/// Writes the checksums of a packet that was made from a template; `whole` says whether all its bytes are
/// there.
fn finish(made: &mut [u8], template: &Template, whole: bool) {
    template.finish(made);
    // Bytes that were not captured cannot be summed up. If zero means "no checksum", the checksum becomes
    // zero.
    for sum in template.sums.iter().filter(|sum| !whole && sum.end.is_none() && sum.never_zero) {
        if let Some(field) = made.get_mut(sum.at as usize..sum.at as usize + 2) {
            field.fill(0);
        }
    }
}

fn fill_holes(made: &mut [u8], template: &Template, values: impl IntoIterator<Item = u128>) {
    for (hole, value) in template.holes.iter().zip(values) {
        fill(made, hole, value);
    }
}

/// A packet of the batch, to be run, and the place of its memory in that of the batch.
pub(crate) fn received<'m>(memory: &'m mut [u8], batch: &Batch, index: usize) -> (usize, Resizable<'m>) {
    let (first, room) = room_before(batch, index);
    let frame = memory.get_mut(first..);
    let frame = frame.and_then(|rest| rest.get_mut(..room + batch.captured[index] as usize));
    (first, Resizable::new(frame.unwrap_or_default(), room, batch.wire[index]))
}

/// The place of a packet's own memory in that of the batch, and the packet's distance from the beginning of
/// its memory: its headroom lies before the packet.
pub(crate) fn room_before(batch: &Batch, index: usize) -> (usize, usize) {
    let start = usize::try_from(batch.frame[index]).unwrap_or(usize::MAX);
    let room = start.min(batch.headroom as usize).min(HEADROOM);
    (start - room, room)
}

/// Writes the value's bits into a hole, the most significant bit first. Bits outside the bytes are left out.
fn fill(bytes: &mut [u8], hole: &Hole, value: u128) {
    let mut bit = hole.bit as usize;
    let mut left = u32::from(hole.width);
    while left > 0 {
        let in_byte = 8 - (bit % 8) as u32;
        let take = left.min(in_byte);
        let Some(byte) = bytes.get_mut(bit / 8) else { return };
        let mask = (0xff >> (8 - take)) as u8;
        let shift = in_byte - take;
        *byte = *byte & !(mask << shift) | ((value >> (left - take)) as u8 & mask) << shift;
        bit += take as usize;
        left -= take;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_takes_exactly_its_bits() {
        let mut bytes = [0xff, 0xff, 0xff];
        fill(&mut bytes, &Hole { bit: 3, width: 14 }, 0);
        assert_eq!(bytes, [0b1110_0000, 0, 0b0111_1111]);
        fill(&mut bytes, &Hole { bit: 3, width: 14 }, 0b10_0000_0000_0001);
        assert_eq!(bytes, [0b1111_0000, 0, 0b1111_1111]);
        let mut wide = [0; 17];
        fill(&mut wide, &Hole { bit: 8, width: 128 }, 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10);
        assert_eq!(wide, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    }

    #[test]
    fn made_packets_and_copies_lie_one_after_the_other() {
        let mut outputs = Outputs::default();
        let cause = Cause { packet: 3, time: 9, wire: 100 };
        let template =
            Template { bytes: vec![0, 0xaa], holes: vec![Hole { bit: 0, width: 8 }], sums: Vec::new() };
        assert!(outputs.copy(&[1, 2, 3], cause, 7));
        assert!(outputs.emit(&template, [0x5f], &[9, 9], Cause { wire: 60, ..cause }, 2));
        let [copy, made] = outputs.packets[..] else { panic!("two packets") };
        assert_eq!(outputs.bytes_of(&copy), [1, 2, 3]);
        assert_eq!((copy.wire, copy.copy, copy.port), (100, true, 7));
        assert_eq!(outputs.bytes_of(&made), [0x5f, 0xaa, 9, 9]);
        assert_eq!((made.wire, made.copy, made.port, made.time), (62, false, 2, 9));
        outputs.clear();
        assert!(outputs.packets.is_empty() && outputs.bytes.is_empty());
    }
}
