//! Random traffic between hosts inside (port 1) and outside (port 2): beginnings, answers to what has left,
//! fragments in any order, and errors about what has left.

use suite::random::SuiteRandom;

const INSIDE: u16 = 1;
const OUTSIDE: u16 = 2;
/// How many packets that have left are remembered.
const REMEMBERED: usize = 64;

pub(crate) struct Traffic {
    /// IPv6 and other protocols than TCP, UDP and ICMP, too.
    all: bool,
    /// What has left by which port: the latest packets.
    left: Vec<(u16, Vec<u8>)>,
    /// Fragments that are still to come.
    waiting: Vec<(u16, Vec<u8>)>,
    id: u16,
}

impl Traffic {
    pub(crate) fn new(all: bool) -> Traffic {
        Traffic { all, left: Vec::new(), waiting: Vec::new(), id: 0 }
    }

    /// Remembers a packet that has left.
    pub(crate) fn left(&mut self, port: u16, bytes: Vec<u8>) {
        if self.left.len() == REMEMBERED {
            self.left.remove(0);
        }
        self.left.push((port, bytes));
    }

    /// The next packet, and the port that it comes in by.
    pub(crate) fn next(&mut self, random: &mut SuiteRandom) -> (u16, Vec<u8>) {
        self.id = self.id.wrapping_add(1);
        if !self.waiting.is_empty() && random.one_in(3) {
            let at = random.below(self.waiting.len() as u64) as usize;
            return self.waiting.swap_remove(at);
        }
        let seen = (!self.left.is_empty()).then(|| random.pick(&self.left).clone());
        let (port, packet) = match (random.below(8), seen) {
            (0..3, _) | (_, None) => self.begins(random),
            (3, Some((port, bytes))) => (port, error(random, &bytes)),
            // Whoever got it answers.
            (_, Some((port, bytes))) => (port, answer(random, &bytes)),
        };
        if random.one_in(4) && packet[12..14] == [8, 0] {
            return self.in_pieces(random, port, &packet);
        }
        (port, packet)
    }

    /// A packet from inside, seldom one from outside.
    fn begins(&mut self, random: &mut SuiteRandom) -> (u16, Vec<u8>) {
        let port = if random.one_in(8) { OUTSIDE } else { INSIDE };
        let (inside, outside) = (1 + random.below(240) as u8, random.below(20) as u8);
        let proto = if self.all { *random.pick(&[6, 6, 17, 17, 1, 47]) } else { *random.pick(&[6, 17, 1]) };
        let data = transport(random, proto);
        if self.all && random.one_in(3) {
            let address = |net: u8, host: u8| {
                let mut address = [0; 16];
                (address[0], address[1], address[2], address[15]) = (0x20, 1, net, host);
                address
            };
            let ends = (address(1, inside), address(2, outside));
            let (from, to) = if port == INSIDE { ends } else { (ends.1, ends.0) };
            let proto = if proto == 1 { 58 } else { proto };
            return (port, packet6(random, from, to, proto, &data));
        }
        let ends = ([10, 0, 0, inside], [192, 0, 2, outside]);
        let (from, to) = if port == INSIDE { ends } else { (ends.1, [198, 51, 100, 4 + outside % 4]) };
        (port, packet4(from, to, proto, self.id, 0, &data))
    }

    /// The first fragment or the second one of a packet; the other comes later.
    fn in_pieces(&mut self, random: &mut SuiteRandom, port: u16, packet: &[u8]) -> (u16, Vec<u8>) {
        let (head, data) = packet.split_at(34);
        // An error of a router inside is translated by the packet that it quotes, which a later fragment does
        // not hold (docs/modules.md).
        let error = head[23] == 1 && data[0] != 0 && data[0] != 8;
        if data.len() < 40 || u16::from_be_bytes([head[20], head[21]]) != 0 || error {
            return (port, packet.to_vec());
        }
        let piece = |flags: u16, data: &[u8]| {
            let mut bytes = [head, data].concat();
            bytes[16..18].copy_from_slice(&(20 + data.len() as u16).to_be_bytes());
            bytes[18..20].copy_from_slice(&self.id.to_be_bytes());
            bytes[20..22].copy_from_slice(&flags.to_be_bytes());
            bytes
        };
        let pieces = [piece(0x2000, &data[..32]), piece(4, &data[32..])];
        let [first, second] = if random.one_in(5) { [pieces[1].clone(), pieces[0].clone()] } else { pieces };
        self.waiting.push((port, second));
        (port, first)
    }
}

/// A header of a transport protocol with 40 bytes of data.
fn transport(random: &mut SuiteRandom, proto: u8) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    let ports = [1024 + random.below(6) as u16, *random.pick(&[53, 443])];
    bytes[..2].copy_from_slice(&ports[0].to_be_bytes());
    bytes[2..4].copy_from_slice(&ports[1].to_be_bytes());
    match proto {
        6 => {
            bytes[12..14].copy_from_slice(&[0x50, *random.pick(&[2, 2, 2, 16])]);
            bytes[14..16].copy_from_slice(&1000u16.to_be_bytes());
        }
        17 => bytes[4..6].copy_from_slice(&60u16.to_be_bytes()),
        // An echo request: IPv6 has another number for it, which `packet6` writes.
        1 => bytes[..8].copy_from_slice(&[8, 0, 0, 0, 0, random.below(4) as u8, 0, 1]),
        _ => {}
    }
    bytes
}

fn packet4(from: [u8; 4], to: [u8; 4], proto: u8, id: u16, flags: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    bytes.extend((20 + data.len() as u16).to_be_bytes());
    bytes.extend(id.to_be_bytes());
    bytes.extend(flags.to_be_bytes());
    bytes.extend([64, proto, 0, 0]);
    bytes.extend(from);
    bytes.extend(to);
    bytes.extend(data);
    bytes
}

/// Sometimes with an extension header, or as the first of two fragments.
fn packet6(random: &mut SuiteRandom, from: [u8; 16], to: [u8; 16], proto: u8, data: &[u8]) -> Vec<u8> {
    let (mut next, mut data) = (proto, data.to_vec());
    if proto == 58 && data[0] == 8 {
        data[0] = 128;
    }
    if random.one_in(4) {
        data.splice(..0, [next, 0, 1, 4, 0, 0, 0, 0]);
        next = 60;
    }
    if random.one_in(6) {
        data.splice(..0, [next, 0, 0, 1, 0, 0, 0, random.below(3) as u8]);
        next = 44;
    }
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60, 0, 0, 0];
    bytes.extend((data.len() as u16).to_be_bytes());
    bytes.extend([next, 64]);
    bytes.extend(from);
    bytes.extend(to);
    bytes.extend(data);
    bytes
}

/// The other way: addresses and ports are exchanged, a request becomes its reply, a SYN is acknowledged.
fn answer(random: &mut SuiteRandom, packet: &[u8]) -> Vec<u8> {
    let mut bytes = packet.to_vec();
    let (addresses, size, transport) = if bytes[12..14] == [8, 0] { (26, 4, 34) } else { (22, 16, 54) };
    for at in addresses..addresses + size {
        bytes.swap(at, at + size);
    }
    let proto = if size == 4 { bytes[23] } else { bytes[20] };
    match (proto, bytes[transport]) {
        (1, 8) => bytes[transport] = 0,
        (1, 0) => bytes[transport] = 8,
        (58, 128) => bytes[transport] = 129,
        (58, 129) => bytes[transport] = 128,
        (6 | 17, _) => {
            bytes.swap(transport, transport + 2);
            bytes.swap(transport + 1, transport + 3);
            if proto == 6 {
                let seq = u32::from_be_bytes(bytes[transport + 4..transport + 8].try_into().expect("four"));
                bytes.copy_within(transport + 8..transport + 12, transport + 4);
                bytes[transport + 8..transport + 12].copy_from_slice(&seq.wrapping_add(41).to_be_bytes());
                bytes[transport + 13] = *random.pick(&[0x12, 0x10, 0x11]);
            }
        }
        _ => {}
    }
    bytes
}

/// An error of a router, or of the receiver, about a packet.
fn error(random: &mut SuiteRandom, packet: &[u8]) -> Vec<u8> {
    let of_receiver = random.one_in(2);
    if packet[12..14] == [8, 0] {
        let (to, from): ([u8; 4], [u8; 4]) =
            (packet[26..30].try_into().expect("four"), packet[30..34].try_into().expect("four"));
        // A router on the side of the receiver, which may be inside.
        let router = if from[0] == 10 { [10, 0, 0, 254] } else { [203, 0, 113, 1] };
        let mut data = vec![*random.pick(&[3, 11, 12, 5]), 0, 0, 0, 0, 0, 0, 0];
        data.extend(&packet[14..packet.len().min(62)]);
        return packet4(if of_receiver { from } else { router }, to, 1, random.below(4) as u16, 0, &data);
    }
    let (to, from): ([u8; 16], [u8; 16]) =
        (packet[22..38].try_into().expect("sixteen"), packet[38..54].try_into().expect("sixteen"));
    let mut router = from;
    if !of_receiver {
        router[15] = 0xfe;
    }
    let mut data = vec![*random.pick(&[1, 2, 3, 4]), 0, 0, 0, 0, 0, 0, 0];
    data.extend(&packet[14..]);
    packet6(random, router, to, 58, &data)
}
