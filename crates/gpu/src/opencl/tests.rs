//! Devices that hang.

#![allow(unsafe_code)]

use super::*;
use crate::device::Memory;
use std::sync::atomic::{AtomicU32, Ordering};

/// One that runs kernels on the processor, where they see what a test writes.
fn processor() -> Found {
    let found = devices().unwrap_or_else(|error| panic!("{error}"));
    found.into_iter().find(|found| !found.accelerator).expect("there is a driver for processors")
}

const GEOMETRY: Geometry = Geometry {
    packets: 32,
    stride: 16,
    columns: 1,
    verdict_bits: 32,
    record_words: 1,
    returns_bytes: true,
    slots: 2,
    tables: 1,
};

/// Hands a slot to a kernel that goes on until its first column is not zero, and waits for it in vain. Then the device goes, but not what the
/// kernel uses: it is told to end there.
fn hang(mut device: impl Device) {
    let column = device.input(0).expect("it is at rest").columns.as_mut_ptr();
    device.submit(0, 1).expect("it goes over");
    assert!(!device.poll(0, false).expect("it is under way"));
    let stalled = |said: DeviceError| assert!(matches!(said, DeviceError::Stalled { .. }), "{said}");
    stalled(device.poll(0, true).map(|_| ()).expect_err("it does not come back"));
    stalled(device.upload(0, &[1, 2]).expect_err("a table waits for it"));
    assert!(device.input(0).is_err() && device.output(0).is_err(), "it is the device's");
    // Whoever waited for the kernel here would wait for ever.
    drop(device);
    // SAFETY: the kernel still reads the column, so it is still there.
    unsafe { AtomicU32::from_ptr(column) }.store(1, Ordering::Release);
}

#[test]
fn a_batch_that_hangs_is_given_up_and_what_it_uses_stays() {
    let text = "__kernel void run_packets(__global uchar *bytes, __global const uint *columns, __global uint *verdicts, \
                __global uint *records, const uint packets, __global const uint *table) \
                { while (packets && !*(volatile __global const uint *)columns); }";
    let mut made = OpenCl::new(&processor(), text, GEOMETRY, Memory::Registered).expect("it opens");
    made.patience = Duration::from_millis(100);
    hang(made);
}

#[test]
fn a_kernel_that_keeps_running_and_hangs_is_given_up_and_what_it_uses_stays() {
    let text = "__kernel void serve_packets(__global uchar *bytes, __global const uint *columns, __global uint *verdicts, \
                __global uint *records, __global uint *ring, __global uint *own, const uint entries, const uint room, \
                const uint launch, const uint quantum, const uint idle, __global const uint *table) \
                { while (launch > 1 && !*(volatile __global const uint *)columns); }";
    let setup = Setup { submission: Submission::Persistent, ..Setup::default() };
    let serving = Serving::on(&processor());
    let mut made = Persistent::new(&processor(), text, GEOMETRY, setup, serving).expect("it opens");
    made.patience = Duration::from_millis(100);
    hang(made);
}
