//! A device with large slots, made of a device with small slots: each slot is submitted in pieces, which come
//! back in any order.

use gpu::{Device, DeviceError, Geometry, Input, SlotOutput};

/// Packets of a piece.
pub const PIECE: usize = 32;

/// A device in pieces.
pub struct Split {
    inner: Box<dyn Device>,
    geometry: Geometry,
    slots: Vec<Slot>,
}

struct Slot {
    bytes: Vec<u8>,
    columns: Vec<u32>,
    verdicts: Vec<u32>,
    records: Vec<u32>,
    packets: usize,
    under_way: bool,
}

impl Split {
    /// A device of this geometry, made of one that `open` makes of another.
    ///
    /// # Errors
    /// `open` fails.
    pub fn new(
        geometry: Geometry,
        open: impl FnOnce(Geometry) -> Result<Box<dyn Device>, DeviceError>,
    ) -> Result<Split, DeviceError> {
        let slots = geometry.slots * geometry.packets.div_ceil(PIECE);
        let inner = open(Geometry { packets: PIECE, slots, ..geometry })?;
        let slot = |_| Slot {
            bytes: vec![0; geometry.packets * geometry.stride],
            columns: vec![0; geometry.packets * geometry.columns],
            verdicts: vec![0; geometry.verdict_words(geometry.packets)],
            records: vec![0; geometry.packets * geometry.record_words],
            packets: 0,
            under_way: false,
        };
        Ok(Split { inner, geometry, slots: (0..geometry.slots).map(slot).collect() })
    }

    /// Every piece of a slot: its slot, its first packet, and how many it has.
    fn pieces(&self, slot: usize) -> impl DoubleEndedIterator<Item = (usize, usize, usize)> + use<> {
        let (packets, pieces) = (self.slots[slot].packets, self.geometry.packets.div_ceil(PIECE));
        (0..packets.div_ceil(PIECE)).map(move |piece| {
            let first = piece * PIECE;
            (slot * pieces + piece, first, PIECE.min(packets - first))
        })
    }

    /// Puts together what the pieces of a slot left.
    fn collect(&mut self, slot: usize) -> Result<(), DeviceError> {
        let Geometry { stride, verdict_bits, record_words, returns_bytes, .. } = self.geometry;
        for (piece, first, count) in self.pieces(slot) {
            let (output, own) = (self.inner.output(piece)?, &mut self.slots[slot]);
            if returns_bytes {
                own.bytes[first * stride..][..count * stride]
                    .copy_from_slice(&output.bytes[..count * stride]);
            }
            let words = (count * verdict_bits).div_ceil(32);
            own.verdicts[first * verdict_bits / 32..][..words].copy_from_slice(&output.verdicts[..words]);
            for word in 0..record_words {
                own.records[word * own.packets + first..][..count]
                    .copy_from_slice(&output.records[word * count..][..count]);
            }
        }
        Ok(())
    }
}

impl Device for Split {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn upload(&mut self, table: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.inner.upload(table, words)
    }

    fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.inner.patch(table, first, words)
    }

    fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError> {
        let slot = &mut self.slots[slot];
        Ok(Input { bytes: &mut slot.bytes, columns: &mut slot.columns })
    }

    fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
        let Geometry { stride, columns, .. } = self.geometry;
        self.slots[slot].packets = packets;
        self.slots[slot].under_way = true;
        // The last first: what comes back is put together by its place and not by its turn.
        for (piece, first, count) in self.pieces(slot).rev() {
            let (input, own) = (self.inner.input(piece)?, &self.slots[slot]);
            input.bytes[..count * stride].copy_from_slice(&own.bytes[first * stride..][..count * stride]);
            for column in 0..columns {
                input.columns[column * count..][..count]
                    .copy_from_slice(&own.columns[column * packets + first..][..count]);
            }
            self.inner.submit(piece, count)?;
        }
        Ok(())
    }

    fn poll(&mut self, slot: usize, wait: bool) -> Result<bool, DeviceError> {
        if !self.slots[slot].under_way {
            return Ok(true);
        }
        for (piece, _, _) in self.pieces(slot) {
            if !self.inner.poll(piece, wait)? {
                return Ok(false);
            }
        }
        self.slots[slot].under_way = false;
        self.collect(slot)?;
        Ok(true)
    }

    fn output(&mut self, slot: usize) -> Result<SlotOutput<'_>, DeviceError> {
        let Slot { bytes, verdicts, records, .. } = &self.slots[slot];
        Ok(SlotOutput { bytes, verdicts, records })
    }
}
