//! Checks a device: runs a small kernel over known packets, and measures how long a batch takes.

use crate::device::{Device, DeviceError, Geometry};
use std::time::{Duration, Instant};

/// Packets of a batch.
const PACKETS: usize = 256;
/// Bytes of each.
const STRIDE: usize = 16;
/// Words of the table.
const ENTRIES: usize = 64;
/// Batches that are timed, after one that is not.
const ROUNDS: usize = 200;
/// How long a batch is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The kernel's body, in the words that OpenCL, CUDA and C share.
const BODY: &str = include_str!("check.c");

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCheck {
    /// Packets that went over.
    pub packets: u64,
    /// Those of them that came back with another answer than the host's.
    pub wrong: u64,
    /// How long the fastest batch was away, from handing it over to seeing that it is done.
    pub fastest: Duration,
    /// The batch in the middle.
    pub median: Duration,
}

/// The kernel of [`check`] in OpenCL C.
pub fn opencl_text() -> String {
    format!(
        "__kernel void run_packets(__global uchar *bytes, __global const uint *columns, __global uint *verdicts, \
         __global uint *records, const uint packets, __global const uint *table)\n\
         {{ const uint i = get_global_id(0); {BODY} }}\n"
    )
}

/// The kernel of [`check`] in CUDA C++.
pub fn cuda_text() -> String {
    format!(
        "extern \"C\" __global__ void run_packets(unsigned char *bytes, const unsigned int *columns, \
         unsigned int *verdicts, unsigned int *records, const unsigned int packets, const unsigned int *table)\n\
         {{ const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; {BODY} }}\n"
    )
}

/// What a device for [`check`] is made for.
pub fn geometry() -> Geometry {
    Geometry {
        packets: PACKETS,
        stride: STRIDE,
        columns: 1,
        verdict_bits: 32,
        record_words: 1,
        returns_bytes: true,
        slots: 1,
        tables: 1,
    }
}

/// Runs the kernel of [`opencl_text`] or [`cuda_text`] and compares with the host. The device was made for
/// [`geometry`].
///
/// # Errors
/// The device failed, or did not answer for five seconds.
pub fn check(device: &mut dyn Device) -> Result<DeviceCheck, DeviceError> {
    let table: Vec<u32> = (0..ENTRIES as u32).map(|entry| entry.wrapping_mul(0x9e37_79b9)).collect();
    device.upload(0, &table)?;
    let (mut away, mut wrong) = (Vec::new(), 0);
    for round in 0..=ROUNDS {
        let mut asked = vec![0; PACKETS * STRIDE];
        for (at, byte) in asked.iter_mut().enumerate() {
            *byte = (at * 7 + at / 251 + round) as u8;
        }
        let input = device.input(0)?;
        input.bytes[..asked.len()].copy_from_slice(&asked);
        for (packet, word) in input.columns.iter_mut().take(PACKETS).enumerate() {
            *word = (packet * round) as u32;
        }
        let begin = Instant::now();
        device.submit(0, PACKETS)?;
        while !device.poll(0, false)? {
            if begin.elapsed() > PATIENCE {
                let milliseconds = PATIENCE.as_millis() as u64;
                return Err(DeviceError::Stalled { device: device.name(), milliseconds });
            }
        }
        if round > 0 {
            away.push(begin.elapsed());
        }
        let output = device.output(0)?;
        for (packet, bytes) in asked.chunks_exact(STRIDE).enumerate() {
            let mix = |sum: u32, byte: &u8| sum.wrapping_mul(31).wrapping_add(u32::from(*byte));
            let sum = bytes.iter().fold((packet * round) as u32, mix);
            let back = &output.bytes[packet * STRIDE..][..STRIDE];
            let right = output.records[packet] == sum
                && output.verdicts[packet] == table[sum as usize % ENTRIES]
                && back.iter().zip(bytes).all(|(back, byte)| *back == !byte);
            wrong += u64::from(!right);
        }
    }
    away.sort();
    let packets = (PACKETS * (ROUNDS + 1)) as u64;
    Ok(DeviceCheck { packets, wrong, fastest: away[0], median: away[ROUNDS / 2] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::SlotMemory;
    use crate::fault::{FaultyDevice, Trouble};
    use crate::{OpenCl, opencl_devices};

    fn device(text: &str) -> OpenCl {
        let found = opencl_devices().unwrap_or_else(|error| panic!("{error}"));
        let found =
            found.into_iter().find(|found| !found.accelerator).expect("there is a driver for processors");
        OpenCl::new(&found, text, geometry(), SlotMemory::Mapped).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_right_device_is_told_from_one_that_is_wrong_or_fails() {
        let right = check(&mut device(&opencl_text())).expect("it runs");
        assert_eq!((right.packets, right.wrong), (51_456, 0));
        assert!(right.fastest <= right.median && right.median < PATIENCE, "{right:?}");

        let text = opencl_text().replace("sum % 64u", "(sum + (i == 5)) % 64u");
        assert_eq!(check(&mut device(&text)).expect("it runs").wrong, 201);

        let mut lost = FaultyDevice::after(device(&opencl_text()), Trouble::Lost, 3);
        let sentence = check(&mut lost).expect_err("it is lost").to_string();
        assert!(sentence.contains("failed while it was to run a batch"), "{sentence}");
    }

    #[test]
    fn the_text_for_cuda_builds_where_there_is_a_compiler() {
        match crate::compile_cuda(&cuda_text(), 90) {
            Ok(code) => assert!(code.image().len() > 100),
            Err(error) => assert!(matches!(error, DeviceError::Missing { .. }), "{error}"),
        }
    }
}
