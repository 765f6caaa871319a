//! Tables that change in part while slots are under way.

use gpu::{Device, Geometry};

/// Changes words of a table while slots are under way, which see them as they were when they were handed
/// over. The device runs the kernel of [`gpu::check`], with several slots.
pub(crate) fn patches(what: &str, device: &mut dyn Device) {
    let Geometry { packets, slots, stride, .. } = *device.geometry();
    let mut table = [1_u32; 64];
    device.upload(0, &table).expect(what);
    for round in 0..10_u32 {
        let mut seen = Vec::new();
        for slot in 0..slots {
            let input = device.input(slot).expect(what);
            input.bytes.fill(0);
            // The bytes are zero, so a packet looks up its column times a power of 31, which is as good as
            // its column.
            input.columns.iter_mut().zip(0..).for_each(|(word, packet)| *word = packet);
            device.submit(slot, packets).expect(what);
            seen.push(table);
            let first = (round as usize * 11 + slot * 5) % 60;
            table[first..first + 4].fill(100 * round + slot as u32);
            device.patch(0, first, &table[first..first + 4]).expect(what);
        }
        for (slot, table) in seen.into_iter().enumerate().rev() {
            assert!(device.poll(slot, true).expect(what));
            let output = device.output(slot).expect(what);
            assert!(output.bytes[..packets * stride].iter().all(|byte| *byte == 0xff), "{what}");
            for packet in 0..packets {
                let sum = (packet as u32).wrapping_mul(31_u32.wrapping_pow(16));
                assert_eq!(output.verdicts[packet], table[sum as usize % 64], "{what}: {packet} in {round}");
            }
        }
    }
}
