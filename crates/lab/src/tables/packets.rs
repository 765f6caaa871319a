//! The payload of the TCP and UDP packets of a capture: what patterns are searched in.

use crate::traffic::TrafficCapture;

/// Byte strings one after the other.
#[derive(Default)]
pub(super) struct Payloads {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Payloads {
    /// Adds one; an empty one is nothing to search and left out.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.bytes.extend_from_slice(bytes);
            self.ends.push(self.bytes.len());
        }
    }

    /// All of them in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    /// Bytes of all together.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The payload of a capture's packets, at most so many bytes.
    pub(super) fn of_capture(path: &str, most: usize) -> Result<Payloads, String> {
        let capture = TrafficCapture::File { path: path.to_owned(), sample: None };
        let traffic = capture.load(false).map_err(|error| error.to_string())?;
        let mut payloads = Payloads::default();
        for frame in traffic.frames.iter() {
            payloads.push(payload(frame.bytes).unwrap_or_default());
            if payloads.bytes() > most {
                break;
            }
        }
        Ok(payloads)
    }
}

/// What an Ethernet frame carries behind its TCP or UDP header, without what pads the frame; of fragments,
/// the first.
fn payload(frame: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let mut kind = word(12)?;
    let mut start = 14;
    while matches!(kind, 0x8100 | 0x88a8) {
        kind = word(start + 2)?;
        start += 4;
    }
    let (header, protocol, length) = match kind {
        0x0800 if word(start + 6)? & 0x1fff == 0 => {
            (usize::from(frame[start] & 15) * 4, *frame.get(start + 9)?, usize::from(word(start + 2)?))
        }
        0x86dd => (40, *frame.get(start + 6)?, usize::from(word(start + 4)?) + 40),
        _ => return None,
    };
    let packet = frame.get(start..frame.len().min(start + length))?;
    let segment = packet.get(header..)?;
    match protocol {
        6 => segment.get(usize::from(segment.get(12)? >> 4) * 4..),
        17 => segment.get(8..),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_ends_where_the_packet_does() {
        // A VLAN tag, IPv4 of 20 + 8 + 3 bytes in UDP, and padding behind.
        let mut frame = vec![0; 12];
        frame.extend([0x81, 0, 0, 1, 8, 0, 0x45, 0, 0, 31, 0, 0, 0, 0, 64, 17, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        frame.extend([0, 1, 0, 2, 0, 11, 0, 0]);
        frame.extend(b"abc\0\0\0\0\0");
        assert_eq!(payload(&frame), Some(&b"abc"[..]));
        frame[18 + 7] = 1;
        assert_eq!(payload(&frame), None, "a later fragment has no header to look behind");
        assert_eq!(payload(&frame[..19]), None);
    }

    #[test]
    fn byte_strings_come_out_as_they_went_in() {
        let mut payloads = Payloads::default();
        [&b"one"[..], b"", b"three"].iter().for_each(|bytes| payloads.push(bytes));
        assert_eq!(payloads.iter().collect::<Vec<_>>(), [&b"one"[..], b"three"]);
        assert_eq!(payloads.bytes(), 8);
    }
}
