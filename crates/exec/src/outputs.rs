//! What a program sends besides verdicts: copies, packets it made, and the events it raised. Buffers are reused from batch to batch.

/// A packet that leaves besides the received ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// Where it leaves.
    pub port: u16,
    /// Index in the batch of the packet that caused it; [`Output::BETWEEN`] if a timer or event did.
    pub cause: u32,
    /// First byte in [`Outputs::bytes`].
    pub start: u32,
    /// Bytes that are there.
    pub captured: u32,
    /// Length on the wire.
    pub wire: u32,
    /// Nanoseconds.
    pub time: u64,
    /// True for a copy of a received packet, false for a packet the program made.
    pub copy: bool,
}

impl Output {
    /// [`Output::cause`] of what no packet caused.
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

/// Everything that left besides verdicts since the last [`Outputs::clear`].
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
}

impl Outputs {
    /// Forgets everything and keeps the buffers.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.bytes.clear();
        self.raised.clear();
        self.arguments.clear();
    }

    /// The bytes of a packet.
    pub fn bytes_of(&self, output: &Output) -> &[u8] {
        &self.bytes[output.start as usize..(output.start + output.captured) as usize]
    }
}
