//! Whatever a virtual machine writes into the memory that it shares, and whenever: frames stay within their
//! bounds, every look at a ring ends, and another machine can take its place.
#![no_main]

use libfuzzer_sys::fuzz_target;
use packet::{Batch, VirtioHeader};
use ports::live::clock::Now;
use ports::live::handed_over::Adopter;
use ports::live::vhost::limits::LONGEST_FRAME;
use ports::live::vhost::{GuestRegion, RingPlace, Rings, VhostPort};
use ports::live::{HandedOver, Offloads, PortWay};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

const START: u64 = 0x1000;
const LENGTH: u64 = 0x10000;
const SIZE: u16 = 16;

fn handed(rings: Option<Rings>) -> HandedOver {
    HandedOver {
        interface: "guest".to_owned(),
        way: PortWay::Vhost(VhostPort { lanes: 1, rings }),
        offloads: Offloads::Cut,
        promiscuous: true,
        keeps_tags: true,
        mode: String::new(),
    }
}

fn rings() -> Rings {
    let place = |at: u64| RingPlace {
        size: SIZE,
        descriptors: START + at,
        available: START + at + 0x100,
        used: START + at + 0x200,
    };
    let regions = vec![GuestRegion { start: START, length: LENGTH, offset: 0 }];
    Rings { regions, receive: place(0), transmit: place(0x400), unfinished: true }
}

fn bell() -> (OwnedFd, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    (ours.into(), theirs)
}

fuzz_target!(|data: &[u8]| {
    let memory = memfd_create("guest", MemfdFlags::CLOEXEC).expect("memory");
    ftruncate(&memory, LENGTH).expect("as long");
    let memory = File::from(memory);
    let file = || OwnedFd::from(memory.try_clone().expect("another handle"));
    let (own, mut _other) = bell();
    let (mut attached, renewal) =
        Adopter::new(false).adopt(&handed(Some(rings())), 1, vec![own, file()]).expect("a port");
    let lane = &mut attached.lanes[0];
    let mut rest = data;
    while let Some(([what, low, high], more)) = rest.split_first_chunk() {
        rest = more;
        let number = u16::from_le_bytes([*low, *high]);
        match what % 8 {
            // Near the rings, or anywhere.
            0..=4 => {
                let (bytes, more) = rest.split_at(rest.len().min(1 + usize::from(*what >> 3)));
                rest = more;
                let place = if what % 2 == 0 { number % 0x800 } else { number };
                let room = (LENGTH - u64::from(place)).min(bytes.len() as u64) as usize;
                memory.write_all_at(&bytes[..room], place.into()).expect("written");
            }
            5 => {
                let mut batch = Batch::new();
                let frames = lane.receive.receive(&mut batch, Now::default());
                for at in 0..batch.ports().len() {
                    assert!(batch.bytes(frames, at).expect("within the memory").len() <= LONGEST_FRAME);
                }
            }
            6 => {
                lane.send.send(&vec![7; usize::from(number)], VirtioHeader::NONE);
                lane.send.flush();
            }
            _ => {
                let (own, other) = bell();
                _other = other;
                let again = (number % 2 == 0).then(rings);
                let files = if again.is_some() { vec![own, file()] } else { vec![own] };
                renewal.renew(&handed(again), files).expect("another one");
            }
        }
    }
});
