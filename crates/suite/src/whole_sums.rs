//! A second, independent check of checksums and lengths: reads a frame as its receiver would, sums every
//! covered byte again, and reports what is wrong.
//!
//! It shares no code with the compiler and knows no program: Ethernet, VLAN tags, IPv4, IPv6 and its
//! extension headers, GRE, VXLAN and IP in IP lead to TCP, UDP, ICMP and ICMPv6. Two ethertypes of local
//! experiments (IEEE 802, 9.2.3) stand for headers that have nothing but a checksum.

/// A header of two numbers, the second the checksum of both.
pub const SMALL: u16 = 0x88b5;
/// The same, with all that follows.
pub const WHOLE: u16 = 0x88b6;

/// What is known of a frame on the way through its headers.
struct Reader<'a> {
    frame: &'a [u8],
    /// Lengths must count all that is there; else there may be more behind, as in a short frame that was
    /// filled up.
    exact: bool,
    checked: u32,
    faults: Vec<String>,
}

/// How many checksums and lengths of a frame were looked at, and what is wrong with them.
pub fn judge(frame: &[u8], exact: bool) -> (u32, Vec<String>) {
    let mut reader = Reader { frame, exact, checked: 0, faults: Vec::new() };
    reader.ethernet(0, frame.len());
    (reader.checked, reader.faults)
}

/// Writes all checksums of a frame that are wrong, the innermost first; one of UDP that is 0 stays so.
pub fn fill_in(frame: &mut [u8]) {
    // No frame that is made here has more of them; one that lies in another is further in.
    for _ in 0..16 {
        let Some((at, value)) = wrong(frame) else { return };
        frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
}

/// The innermost checksum that is wrong: its place, and what it should be.
fn wrong(frame: &[u8]) -> Option<(usize, u16)> {
    let (_, faults) = judge(frame, false);
    let mut sums = faults.iter().filter_map(|fault| fault.strip_prefix("checksum at "));
    let last = sums.next_back()?;
    let at = last.split(':').next()?.parse().ok()?;
    let right = last.rsplit(' ').next().and_then(|right| u16::from_str_radix(right, 16).ok())?;
    Some((at, right))
}

/// The sum of bytes as 16-bit numbers with the carries put back, an odd last byte in the upper half (RFC
/// 1071).
fn summed(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u64;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u64::from(pair[0]) * 256 + pair.get(1).map_or(0, |low| u64::from(*low));
        }
    }
    while sum >= 65_536 {
        sum = sum / 65_536 + sum % 65_536;
    }
    sum as u16
}

impl Reader<'_> {
    fn number(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.frame[at], self.frame[at + 1]])
    }

    /// Compares the checksum at `at` over these bytes, which it lies in, and what counts besides.
    fn sum(
        &mut self,
        at: usize,
        bytes: std::ops::Range<usize>,
        besides: &[&[u8]],
        zero_is_none: bool,
        what: &str,
    ) {
        let found = self.number(at);
        self.checked += 1;
        if zero_is_none && found == 0 {
            return;
        }
        let mut covered = self.frame[bytes.clone()].to_vec();
        covered[at - bytes.start..at - bytes.start + 2].fill(0);
        let mut parts = besides.to_vec();
        parts.push(&covered);
        let mut right = 65_535 - summed(&parts);
        if zero_is_none && right == 0 {
            right = 65_535;
        }
        if found != right {
            self.faults.push(format!("checksum at {at}: {what} says {found:04x} and is {right:04x}"));
        }
    }

    /// Compares a length with what there is.
    fn length(&mut self, at: usize, said: usize, there: usize, exact: bool, what: &str) -> bool {
        self.checked += 1;
        let right = if exact { said == there } else { said <= there };
        if !right {
            self.faults.push(format!("length at {at}: {what} says {said} and is {there}"));
        }
        right
    }

    fn ethernet(&mut self, at: usize, end: usize) {
        if at + 14 <= end {
            let kind = self.number(at + 12);
            self.link(kind, at + 14, end);
        }
    }

    fn link(&mut self, kind: u16, at: usize, end: usize) {
        match kind {
            0x8100 | 0x88a8 if at + 4 <= end => {
                let kind = self.number(at + 2);
                self.link(kind, at + 4, end);
            }
            0x0800 => self.ipv4(at, end),
            0x86dd => self.ipv6(at, end),
            SMALL if at + 4 <= end => self.sum(at + 2, at..at + 4, &[], false, "small"),
            WHOLE if at + 4 <= end => self.sum(at + 2, at..end, &[], false, "whole"),
            _ => {}
        }
    }

    fn ipv4(&mut self, at: usize, end: usize) {
        if at + 20 > end || self.frame[at] >> 4 != 4 {
            return;
        }
        let size = usize::from(self.frame[at] & 15) * 4;
        if size < 20 || at + size > end {
            return;
        }
        self.sum(at + 10, at..at + size, &[], false, "IPv4");
        let total = usize::from(self.number(at + 2));
        if total < size || !self.length(at + 2, total, end - at, self.exact, "IPv4") {
            return;
        }
        let cut = self.number(at + 6) & 0x3fff != 0;
        let frame = self.frame;
        if !cut {
            self.transport(frame[at + 9], &frame[at + 12..at + 20], at + size, at + total);
        }
    }

    fn ipv6(&mut self, at: usize, end: usize) {
        if at + 40 > end || self.frame[at] >> 4 != 6 {
            return;
        }
        let length = usize::from(self.number(at + 4));
        if !self.length(at + 4, length, end - at - 40, self.exact, "IPv6") {
            return;
        }
        let (frame, end) = (self.frame, at + 40 + length);
        let (mut kind, mut behind) = (frame[at + 6], at + 40);
        while matches!(kind, 0 | 43 | 60) {
            if behind + 8 > end {
                return;
            }
            kind = frame[behind];
            behind += 8 + usize::from(frame[behind + 1]) * 8;
        }
        if behind <= end {
            self.transport(kind, &frame[at + 8..at + 40], behind, end);
        }
    }

    fn transport(&mut self, kind: u8, addresses: &[u8], at: usize, end: usize) {
        let length = (end - at) as u32;
        let last = [&length.to_be_bytes()[..], &[0, kind]].concat();
        let pseudo = [addresses, &last];
        let six = addresses.len() == 32;
        match kind {
            1 if !six && at + 4 <= end => self.sum(at + 2, at..end, &[], false, "ICMP"),
            58 if six && at + 4 <= end => self.sum(at + 2, at..end, &pseudo, false, "ICMPv6"),
            6 if at + 20 <= end => self.sum(at + 16, at..end, &pseudo, false, "TCP"),
            17 if at + 8 <= end => {
                let said = usize::from(self.number(at + 4));
                if !self.length(at + 4, said, end - at, true, "UDP") {
                    return;
                }
                self.sum(at + 6, at..end, &pseudo, true, "UDP");
                if self.number(at + 2) == 4789 && at + 16 <= end && self.frame[at + 8] == 8 {
                    self.ethernet(at + 16, end);
                }
            }
            4 => self.ipv4(at, end),
            41 => self.ipv6(at, end),
            47 if at + 4 <= end && self.number(at) == 0 => {
                let kind = self.number(at + 2);
                if kind == 0x6558 { self.ethernet(at + 4, end) } else { self.link(kind, at + 4, end) }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let number = |pair: &[u8]| u8::from_str_radix(&String::from_utf8_lossy(pair), 16).expect("digits");
        digits.chunks(2).map(number).collect()
    }

    /// The four frames are what the gateway sent before it was mended.
    #[test]
    fn the_old_faults_are_found() {
        let link = "020000000002 020000000001";
        let zero = bytes(&format!("{link} 88b5 0000 0000"));
        assert_eq!(judge(&zero, true).1, ["checksum at 16: small says 0000 and is ffff"]);
        let reply = "45000020 00010000 400166da 0a000001 0a000002 00000000 00000000 00000000";
        assert_eq!(judge(&bytes(&format!("{link} 0800 {reply}")), true).1.len(), 1, "an echo reply of zeros");
        // TCP over IPv4, its checksum that of an IPv6 pseudo header.
        let mut six = bytes(&format!(
            "{link} 86dd 60000000 00140640 20010db8000000000000000000000001 20010db8000000000000000000000002
             00500051 00000001 00000000 50021000 00000000"
        ));
        fill_in(&mut six);
        assert_eq!(judge(&six, true), (2, Vec::new()));
        let mut four = bytes(&format!("{link} 0800 45000028 00000000 40060000 0a000001 0a000002"));
        four.extend_from_slice(&six[54..]);
        let (checked, faults) = judge(&four, true);
        assert_eq!((checked, faults.len()), (3, 2), "{faults:?}");
        assert!(faults[1].contains("TCP"));
        // A length that counts a header of IPv6 that went out behind it.
        four[17] += 40;
        assert!(judge(&four, true).1.iter().any(|fault| fault.contains("IPv4 says 80 and is 40")));
    }
}
