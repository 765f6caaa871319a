//! A segment of TCP and its bytes.

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment {
    pub(crate) flags: u8,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) window: u16,
    /// The shift that a SYN announces (RFC 7323, 2.2).
    pub(crate) shift: Option<u8>,
    pub(crate) payload: u32,
}

impl Segment {
    /// The header and as many bytes of payload as it says, without its checksum.
    pub(crate) fn bytes(&self, from: u16, to: u16) -> Vec<u8> {
        let options: &[u8] = match self.shift {
            Some(shift) => &[3, 3, shift, 0],
            None => &[],
        };
        let mut bytes = [from.to_be_bytes(), to.to_be_bytes()].concat();
        bytes.extend(self.seq.to_be_bytes());
        bytes.extend(self.ack.to_be_bytes());
        bytes.extend([(5 + options.len() as u8 / 4) << 4, self.flags]);
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0, 0, 0, u8::from(self.flags & 0x20 != 0)]);
        bytes.extend(options);
        bytes.resize(bytes.len() + self.payload as usize, 0x55);
        bytes
    }
}
