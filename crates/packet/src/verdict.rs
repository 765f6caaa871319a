//! The verdict of a program on one packet, as a word of four bytes.
//!
//! ```text
//!  31      24 23      16 15                0
//! +----------+----------+-------------------+
//! |   kind   |    0     |     argument      |
//! +----------+----------+-------------------+
//! ```

use std::fmt;

/// The number of a port. Ports are numbered from 1; [`NO_PORT`] is no port.
pub type PortNumber = u16;

/// The number that is no port.
pub const NO_PORT: PortNumber = 0;

/// What happens to a packet: every packet gets exactly one verdict.
///
/// The layout is part of the interface between compiled programs and the engine: the kind in bits 24 to 31
/// (the values of [`VerdictKind`]), the argument in bits 0 to 15, and zero in between.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct Verdict(u32);

/// The kinds of verdict, with the number each has in a [`Verdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum VerdictKind {
    /// No verdict yet; a program never leaves a packet so.
    Pending = 0,
    /// Send on one port; the argument is the port.
    Send = 1,
    /// Send on every port but the one the packet came in by.
    Flood = 2,
    /// Send to a set of ports; the argument is the index of the set.
    Multicast = 3,
    /// Hand to the control plane; the argument is the index of the reason.
    Punt = 4,
    /// Discard; the argument is the index of the reason.
    Drop = 5,
}

impl Verdict {
    /// No verdict yet.
    pub const PENDING: Verdict = Verdict(0);
    /// Send on every port but the one the packet came in by.
    pub const FLOOD: Verdict = Verdict::new(VerdictKind::Flood, 0);

    /// A verdict of a kind with its argument.
    pub const fn new(kind: VerdictKind, argument: u16) -> Verdict {
        Verdict((kind as u32) << 24 | argument as u32)
    }

    /// Send on `port`.
    pub const fn send(port: PortNumber) -> Verdict {
        Verdict::new(VerdictKind::Send, port)
    }

    /// Send to the set of ports with this index.
    pub const fn multicast(set: u16) -> Verdict {
        Verdict::new(VerdictKind::Multicast, set)
    }

    /// Hand to the control plane for the reason with this index.
    pub const fn punt(reason: u16) -> Verdict {
        Verdict::new(VerdictKind::Punt, reason)
    }

    /// Discard for the reason with this index.
    pub const fn drop(reason: u16) -> Verdict {
        Verdict::new(VerdictKind::Drop, reason)
    }

    /// The verdict with these bits; bits of no known kind read as [`VerdictKind::Pending`].
    pub const fn from_bits(bits: u32) -> Verdict {
        Verdict(bits)
    }

    /// The bits, as compiled programs write them.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// What kind of verdict it is.
    pub const fn kind(self) -> VerdictKind {
        match self.0 >> 24 {
            1 => VerdictKind::Send,
            2 => VerdictKind::Flood,
            3 => VerdictKind::Multicast,
            4 => VerdictKind::Punt,
            5 => VerdictKind::Drop,
            _ => VerdictKind::Pending,
        }
    }

    /// The index of the reason for which the packet was dropped or handed to the control plane.
    pub const fn reason(self) -> Option<u16> {
        match self.kind() {
            VerdictKind::Drop | VerdictKind::Punt => Some(self.argument()),
            _ => None,
        }
    }

    /// The port, set or reason; 0 where the kind has none.
    pub const fn argument(self) -> u16 {
        self.0 as u16
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let argument = self.argument();
        match self.kind() {
            VerdictKind::Pending => f.write_str("pending"),
            VerdictKind::Send => write!(f, "send {argument}"),
            VerdictKind::Flood => f.write_str("flood"),
            VerdictKind::Multicast => write!(f, "multicast {argument}"),
            VerdictKind::Punt => write!(f, "punt {argument}"),
            VerdictKind::Drop => write!(f, "drop {argument}"),
        }
    }
}

impl fmt::Debug for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Verdict({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_the_documented_ones() {
        assert_eq!(Verdict::send(7).bits(), 0x0100_0007);
        assert_eq!(Verdict::FLOOD.bits(), 0x0200_0000);
        assert_eq!(Verdict::multicast(1).bits(), 0x0300_0001);
        assert_eq!(Verdict::punt(2).bits(), 0x0400_0002);
        assert_eq!(Verdict::drop(0xffff).bits(), 0x0500_ffff);
        assert_eq!(Verdict::default(), Verdict::PENDING);
    }

    #[test]
    fn kind_and_argument_come_back() {
        for verdict in
            [Verdict::send(3), Verdict::FLOOD, Verdict::multicast(4), Verdict::punt(5), Verdict::drop(6)]
        {
            assert_eq!(Verdict::new(verdict.kind(), verdict.argument()), verdict);
            assert_eq!(Verdict::from_bits(verdict.bits()), verdict);
            let reason = matches!(verdict.kind(), VerdictKind::Punt | VerdictKind::Drop);
            assert_eq!(verdict.reason(), reason.then_some(verdict.argument()));
        }
        assert_eq!(Verdict::from_bits(0xff00_0001).kind(), VerdictKind::Pending);
    }

    #[test]
    fn display_names_kind_and_argument() {
        assert_eq!(Verdict::send(3).to_string(), "send 3");
        assert_eq!(Verdict::FLOOD.to_string(), "flood");
        assert_eq!(format!("{:?}", Verdict::drop(9)), "Verdict(drop 9)");
    }
}
