//! Classes of packets that may travel with the checksum of TCP or UDP left open: the field holds the sum of
//! the pseudo header, and whoever needs the packet finished sums the rest.
//!
//! A class says which bytes of its packets have which values, so that all places are numbers:
//!
//! ```text
//! 12      14 (18)              34, 54 (38, 58)
//! | type  | IP without options  | TCP or UDP … field … | data up to the end of the frame |
//! ```
//!
//! What reads the packet beside the field, and writes beside everything that the checksum covers, cannot tell
//! an open packet from a finished one, and the sum that is finished later is the one that would have been
//! finished earlier. `exec::open_checksums` shows this of a program, from what a class says here.

use std::ops::Range;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// One kind of packet whose checksum may stay open: TCP or UDP, directly behind an IP header without options,
/// that is no fragment, with or without one VLAN tag, and without bytes behind the length that IP says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenClass {
    /// IPv6 instead of IPv4.
    pub six: bool,
    /// UDP instead of TCP.
    pub udp: bool,
    /// There is one VLAN tag (type 0x8100).
    pub tagged: bool,
}

impl OpenClass {
    /// Every class.
    pub const ALL: [OpenClass; 8] = {
        let mut all = [OpenClass { six: false, udp: false, tagged: false }; 8];
        let mut number = 0;
        while number < 8 {
            all[number] = OpenClass { six: number & 1 != 0, udp: number & 2 != 0, tagged: number & 4 != 0 };
            number += 1;
        }
        all
    };

    /// Where the IP header begins.
    pub fn ip(self) -> usize {
        if self.tagged { 18 } else { 14 }
    }

    /// Where the transport header begins.
    pub fn transport(self) -> usize {
        self.ip() + if self.six { 40 } else { 20 }
    }

    /// Where the two bytes of the checksum lie.
    pub fn field(self) -> Range<usize> {
        let start = self.transport() + if self.udp { 6 } else { 16 };
        start..start + 2
    }

    /// Where the addresses lie, which the checksum covers.
    pub fn addresses(self) -> Range<usize> {
        if self.six { self.ip() + 8..self.ip() + 40 } else { self.ip() + 12..self.ip() + 20 }
    }

    /// Where the two bytes of IP's length lie, and by how many bytes the frame is longer than they say.
    pub fn length(self) -> (Range<usize>, usize) {
        let at = self.ip() + if self.six { 4 } else { 2 };
        (at..at + 2, if self.six { self.transport() } else { self.ip() })
    }

    /// The shortest and the longest frame, in bytes.
    pub fn lengths(self) -> (usize, usize) {
        let (_, besides) = self.length();
        (self.transport() + if self.udp { 8 } else { 20 }, besides + usize::from(u16::MAX))
    }

    /// Bytes of which more is known than that they are there.
    pub fn known(self) -> Vec<KnownByte> {
        let ip = self.ip();
        let exactly = |place, value| KnownByte { place, least: value, most: value, bits: value };
        let mut known = if self.tagged { vec![exactly(12, 0x81), exactly(13, 0)] } else { Vec::new() };
        let [high, low] = if self.six { [0x86, 0xdd] } else { [0x08, 0] };
        known.extend([exactly(ip - 2, high), exactly(ip - 1, low)]);
        let protocol = if self.udp { UDP } else { TCP };
        if self.six {
            known.push(KnownByte { place: ip, least: 0x60, most: 0x6f, bits: 0x6f });
            known.push(exactly(ip + 6, protocol));
        } else {
            // "Don't fragment" may be set; there is no further fragment, and this is the first (RFC 791).
            let flags = KnownByte { place: ip + 6, least: 0, most: 0x40, bits: 0x40 };
            known.extend([exactly(ip, 0x45), flags, exactly(ip + 7, 0), exactly(ip + 9, protocol)]);
        }
        if !self.udp {
            // The header of TCP has 20 bytes at least (RFC 9293, section 3.1).
            known.push(KnownByte { place: self.transport() + 12, least: 0x50, most: 0xff, bits: 0xff });
        }
        known
    }

    /// The class of a frame whose open checksum lies `offset` bytes behind `start`, from where it sums.
    pub(crate) fn of(frame: &[u8], start: usize, offset: usize) -> Option<OpenClass> {
        let udp = match offset {
            16 => false,
            6 => true,
            _ => return None,
        };
        let kind = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        let tagged = kind(12)? == 0x8100;
        let ip = if tagged { 18 } else { 14 };
        let six = match kind(ip - 2)? {
            0x0800 => false,
            0x86dd => true,
            _ => return None,
        };
        let class = OpenClass { six, udp, tagged };
        let (length, besides) = class.length();
        let protocol = if udp { UDP } else { TCP };
        let header = frame.get(ip..class.lengths().0)?;
        let known = match six {
            false => header[0] == 0x45 && header[6] & 0xbf == 0 && header[7] == 0 && header[9] == protocol,
            true => header[0] >> 4 == 6 && header[6] == protocol,
        };
        let whole = usize::from(kind(length.start)?) + besides == frame.len();
        let options = udp || frame.get(start + 12).is_some_and(|byte| *byte >= 0x50);
        (start == class.transport() && known && whole && options).then_some(class)
    }

    /// Its place among all of them.
    fn number(self) -> u8 {
        u8::from(self.six) | u8::from(self.udp) << 1 | u8::from(self.tagged) << 2
    }
}

/// A byte of which more is known than that it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownByte {
    /// Where it lies.
    pub place: usize,
    /// The least value.
    pub least: u8,
    /// The largest value.
    pub most: u8,
    /// The bits that may be set.
    pub bits: u8,
}

impl KnownByte {
    /// Whether the byte can have this value.
    pub fn admits(self, value: u8) -> bool {
        (self.least..=self.most).contains(&value) && value & !self.bits == 0
    }
}

/// A set of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenClasses(u8);

impl OpenClasses {
    /// No class: every packet is finished.
    pub const NONE: OpenClasses = OpenClasses(0);

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it holds a class.
    pub fn contains(self, class: OpenClass) -> bool {
        self.0 & 1 << class.number() != 0
    }

    /// The classes that are in both.
    pub fn and(self, other: OpenClasses) -> OpenClasses {
        OpenClasses(self.0 & other.0)
    }
}

impl FromIterator<OpenClass> for OpenClasses {
    fn from_iter<I: IntoIterator<Item = OpenClass>>(classes: I) -> OpenClasses {
        OpenClasses(classes.into_iter().fold(0, |set, class| set | 1 << class.number()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A frame of a class with these bytes wherever the class says nothing.
    fn frame(class: OpenClass, bytes: &[u8]) -> Vec<u8> {
        let mut frame = bytes.to_vec();
        frame.resize(bytes.len().max(class.lengths().0), 7);
        for known in class.known() {
            frame[known.place] = known.least;
        }
        let (length, besides) = class.length();
        let says = (frame.len() - besides) as u16;
        frame[length].copy_from_slice(&says.to_be_bytes());
        frame
    }

    fn of(class: OpenClass, frame: &[u8]) -> Option<OpenClass> {
        OpenClass::of(frame, class.transport(), class.field().start - class.transport())
    }

    #[test]
    fn every_class_has_a_place_of_its_own() {
        for (number, class) in (0..).zip(OpenClass::ALL) {
            assert_eq!(class.number(), number);
            let alone: OpenClasses = [class].into_iter().collect();
            let held: Vec<_> = OpenClass::ALL.into_iter().filter(|&other| alone.contains(other)).collect();
            assert_eq!(held, [class]);
            assert!(!alone.is_empty() && alone.and(OpenClasses::NONE).is_empty());
        }
    }

    #[test]
    fn places_are_those_of_the_formats() {
        let [tcp4, tcp6, udp4, udp6, tagged, ..] = OpenClass::ALL;
        assert_eq!([tcp4, tcp6, udp4, udp6, tagged].map(|class| class.field().start), [50, 70, 40, 60, 54]);
        assert_eq!([tcp4, tcp6, udp4, udp6, tagged].map(|class| class.lengths().0), [54, 74, 42, 62, 58]);
    }

    proptest! {
        /// What the proof takes as known holds of every frame that is recognised.
        #[test]
        fn a_recognised_frame_has_the_bytes_that_its_class_says(
            number in 0..8usize,
            bytes in proptest::collection::vec(any::<u8>(), 80..120),
            changed in proptest::collection::vec((0..80usize, any::<u8>()), 0..3),
            longer in 0..3usize,
        ) {
            let class = OpenClass::ALL[number];
            let mut frame = frame(class, &bytes);
            prop_assert_eq!(of(class, &frame), Some(class));
            for &(place, value) in &changed {
                frame[place] = value;
            }
            frame.resize(frame.len() + longer, 0);
            let holds = class.known().iter().all(|known| known.admits(frame[known.place]));
            let (length, besides) = class.length();
            let says = usize::from(u16::from_be_bytes([frame[length.start], frame[length.start + 1]]));
            match of(class, &frame) {
                Some(found) => {
                    prop_assert_eq!(found, class);
                    prop_assert!(holds && says + besides == frame.len());
                    prop_assert!((class.lengths().0..=class.lengths().1).contains(&frame.len()));
                }
                None => prop_assert!(!holds || says + besides != frame.len()),
            }
            for cut in 0..class.lengths().0 {
                prop_assert_eq!(of(class, &frame[..cut]), None);
            }
        }
    }
}
