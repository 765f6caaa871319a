//! Tests of memory that is shared, beside the file that it is.

use super::*;
use proptest::prelude::*;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::fs::File;
use std::os::unix::fs::FileExt;

const BYTES: u64 = 8192;
const START: u64 = 1 << 20;

fn memory() -> (File, GuestMemory) {
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).expect("memory");
    ftruncate(&file, BYTES).expect("as long");
    let region = GuestRegion { start: START, length: BYTES, offset: 0 };
    let memory = GuestMemory::map(&[region], &[file.try_clone().expect("another handle")]).expect("mapped");
    (File::from(file), memory)
}

proptest! {
    #[test]
    fn bytes_are_those_of_the_file_wherever_they_lie(
        at in 0..BYTES,
        length in 0..BYTES as u32,
        room in 0..BYTES as usize,
        seed: u8,
    ) {
        let (file, memory) = memory();
        let part = memory.part(START + at, length);
        prop_assert_eq!(part.is_some(), at + u64::from(length) <= BYTES);
        let Some(part) = part else { return Ok(()) };
        let bytes: Vec<u8> = (0..BYTES).map(|place| (place as u8).wrapping_mul(31).wrapping_add(seed)).collect();
        file.write_all_at(&bytes, 0).expect("written");
        let mut read = vec![0xaa; room];
        part.read(&mut read);
        let common = room.min(length as usize);
        prop_assert_eq!(&read[..common], &bytes[at as usize..][..common]);
        prop_assert!(read[common..].iter().all(|byte| *byte == 0xaa));
        // Written, too, it is those bytes and no others.
        let mut expected = bytes.clone();
        let other: Vec<u8> = (0..room).map(|place| (place as u8) ^ seed).collect();
        expected[at as usize..][..common].copy_from_slice(&other[..common]);
        part.write(&other);
        let mut all = vec![0; BYTES as usize];
        file.read_exact_at(&mut all, 0).expect("read");
        prop_assert_eq!(all, expected);
    }
}

#[test]
fn words_are_little_endian_wherever_they_lie() {
    let (file, memory) = memory();
    file.write_all_at(&[0, 0, 1, 2, 3, 4, 5, 6], 0).expect("written");
    let part = memory.part(START + 2, 100).expect("there");
    assert_eq!([part.half(0), part.half(2), part.half(4)], [0x0201, 0x0403, 0x0605]);
    let part = memory.part(START + 4, 100).expect("there");
    part.set_word(4, 0x0a0b_0c0d);
    let mut written = [0; 4];
    file.read_exact_at(&mut written, 8).expect("read");
    assert_eq!(written, [0x0d, 0x0c, 0x0b, 0x0a]);
}
