//! In-source tests after checking: bytes in, what is expected out.

use ir::source::Span;

/// A test of the program text.
#[derive(Clone, Debug, PartialEq)]
pub struct TestCase {
    /// Its name.
    pub name: String,
    /// Number of ports, numbered from 1.
    pub ports: u16,
    /// Its steps in order.
    pub steps: Vec<CaseStep>,
    /// Its place.
    pub span: Span,
}

/// A step of a test.
#[derive(Clone, Debug, PartialEq)]
pub enum CaseStep {
    /// A packet enters.
    Packet {
        /// By this port.
        port: u16,
        /// The machine sends it, as a host at the port.
        from_host: bool,
        /// With these bytes.
        bytes: Vec<u8>,
        /// At this time, nanoseconds since the start of the test.
        time: u64,
    },
    /// Time passes to this point (nanoseconds since the start) without a packet: timers run, entries expire.
    Advance(u64),
    /// Something must hold now.
    Expect(Expected, Span),
}

/// What must hold after the packet before.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// Its verdict was `send port`.
    Send(u16),
    /// Its verdict was `flood`.
    Flood,
    /// Its verdict was `multicast` to exactly these ports, sorted.
    Multicast(Vec<u16>),
    /// Its verdict was `drop` for this reason (the name as reports show it).
    Drop(String),
    /// Its verdict was `punt` for this reason.
    Punt(String),
    /// These bytes left by this port since the packet before entered: as verdict, copy or made packet. Each
    /// expectation uses up one such packet.
    Out(u16, Vec<u8>),
    /// The table (by index) holds so many entries.
    Entries(u32, u64),
    /// The counter's cell (counter index, cell) counted so many packets.
    Count(u32, u32, u64),
    /// The event (by index) was raised with these arguments since the packet before entered. Each expectation
    /// uses up one.
    Event(u32, Vec<u128>),
}

impl Expected {
    /// Whether it is about the verdict on the packet before.
    pub fn is_verdict(&self) -> bool {
        use Expected::{Drop, Flood, Multicast, Punt, Send};
        matches!(self, Send(_) | Flood | Multicast(_) | Drop(_) | Punt(_))
    }
}
