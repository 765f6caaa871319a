//! Random packets of the classes that a program may get unfinished.

use crate::random::SuiteRandom;
use packet::OpenClass;
use packet::checksum::sum;

/// Makes a packet of the class out of any bytes.
pub fn stamped(class: OpenClass, mut frame: Vec<u8>, random: &mut SuiteRandom) -> Vec<u8> {
    frame.resize(frame.len().clamp(class.lengths().0, class.lengths().1), 0);
    for known in class.known() {
        if !known.admits(frame[known.place]) {
            frame[known.place] = if random.one_in(2) { known.least } else { known.most };
        }
    }
    let (length, besides) = class.length();
    let says = (frame.len() - besides) as u16;
    frame[length].copy_from_slice(&says.to_be_bytes());
    if !class.six && !random.one_in(20) {
        let header = class.ip()..class.ip() + 20;
        frame[header.start + 10..header.start + 12].fill(0);
        let right = !sum(&frame[header.clone()]);
        frame[header.start + 10..header.start + 12].copy_from_slice(&right.to_be_bytes());
    }
    frame
}

/// A packet such as the programs of the repository ask for.
pub fn known_to_programs(class: OpenClass, random: &mut SuiteRandom) -> Vec<u8> {
    const FOUR: [[u8; 4]; 14] = [
        [198, 51, 100, 1],
        [10, 0, 0, 1],
        [10, 0, 1, 1],
        [10, 9, 0, 1],
        [10, 1, 2, 3],
        [10, 2, 3, 4],
        [10, 66, 1, 1],
        [192, 0, 2, 7],
        [198, 51, 100, 9],
        [203, 0, 113, 70],
        [192, 168, 1, 2],
        [127, 0, 0, 1],
        [10, 0, 1, 255],
        [255, 255, 255, 255],
    ];
    const SIX: [&[u8]; 6] = [
        b"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07",
        b"\x20\x01\x0d\xb8\0\x02\0\0\0\0\0\0\0\0\0\x01",
        b"\x20\x01\x0d\xb8\0\x03\0\0\0\0\0\0\0\0\0\x01",
        b"\x20\x01\x0d\xb8\0\x64\0\0\0\0\0\0\0\0\0\x09",
        b"\x20\x01\x0d\xb8\0\0\0\x01\0\0\0\0\0\0\0\x01",
        b"\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\x01",
    ];
    const PORTS: [u16; 9] = [22, 53, 67, 68, 80, 443, 4789, 40_000, 40_001];
    let data = match random.below(6) {
        0 => 0,
        1 => random.below(20),
        2 => 1_400 + random.below(400),
        3 => 3_000 + random.below(3_000),
        _ => random.below(300),
    };
    let mut frame: Vec<u8> = (0..class.lengths().0 as u64 + data).map(|_| random.number() as u8).collect();
    let (to, from) = (random.below(4) as u8, random.below(4) as u8);
    frame[..12].copy_from_slice(&[2, 0, 0, 0, to, 1, 2, 0, 0, 0, from, 2]);
    let (ip, transport, addresses) = (class.ip(), class.transport(), class.addresses());
    if class.tagged {
        frame[14..16].copy_from_slice(&[0, random.below(4) as u8 * 10]);
    }
    let hops = *random.pick(&[0, 1, 2, 64]);
    if class.six {
        frame[ip] = 0x60;
        frame[ip + 7] = hops;
        let addresses = &mut frame[addresses];
        addresses[..16].copy_from_slice(&random.pick(&SIX)[..]);
        addresses[16..].copy_from_slice(&random.pick(&SIX)[..]);
    } else {
        frame[ip + 6] = if random.one_in(2) { 0x40 } else { 0 };
        frame[ip + 8] = hops;
        let addresses = &mut frame[addresses];
        addresses[..4].copy_from_slice(&random.pick(&FOUR)[..]);
        addresses[4..].copy_from_slice(&random.pick(&FOUR)[..]);
    }
    for at in [transport, transport + 2] {
        frame[at..at + 2].copy_from_slice(&random.pick(&PORTS).to_be_bytes());
    }
    if !class.udp && !random.one_in(8) {
        frame[transport + 12] = 0x50;
    }
    let end = class.lengths().0;
    if random.one_in(8) && frame.len() > end + 40 {
        frame[end + 30..end + 37].copy_from_slice(b"CMD.exe");
    }
    frame
}
