//! Devices that hang, lose something, or go while they run.

#![allow(unsafe_code)]

use super::*;
use crate::study::REGISTERED;
use std::sync::atomic::{AtomicU32, Ordering};

/// One that runs kernels on the host, where they see what a test writes.
fn processor() -> OpenClDevice {
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

/// Hands a slot to a kernel that goes on until its first column is not zero, and waits for it in vain. Then
/// the device goes, but not what the kernel uses: it is told to end there.
fn hang(mut device: impl Device) {
    let column = device.input(0).expect("it is at rest").columns.as_mut_ptr();
    device.submit(0, 1).expect("it goes over");
    assert!(!device.poll(0, false).expect("it is under way"));
    let stalled = |said: DeviceError| assert!(matches!(said, DeviceError::Stalled { .. }), "{said}");
    stalled(device.poll(0, true).map(|_| ()).expect_err("it does not come back"));
    let said = device.upload(0, &[1, 2]).expect_err("a table waits for it").to_string();
    assert!(said.contains("has not answered") || said.contains("has not come to the end"), "{said}");
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
    let mut made = OpenCl::new(&processor(), text, GEOMETRY, REGISTERED).expect("it opens");
    made.patience = Duration::from_millis(100);
    hang(made);
}

/// A kernel that keeps running and does this, on the host, which may have other work.
fn persistent(serves: &str) -> Persistent {
    persistent_with(Duration::from_secs(60), serves)
}

/// As [`persistent`], with so much grace.
fn persistent_with(grace: Duration, serves: &str) -> Persistent {
    let text = format!(
        "__kernel void serve_packets(__global uchar *bytes, __global const uint *columns, __global uint *verdicts, \
         __global uint *records, volatile __global uint *ring, __global uint *own, const uint entries, const uint room, \
         const uint launch, const uint quantum, const uint idle, volatile __global uint *table) {{ {serves} }}"
    );
    let setup = Setup { submission: Submission::Persistent, ..Setup::default() };
    let serving = Serving { grace, ..Serving::on(&processor()) };
    Persistent::new(&processor(), &text, GEOMETRY, setup, serving).expect("it opens")
}

#[test]
fn a_kernel_that_keeps_running_and_hangs_is_given_up_and_what_it_uses_stays() {
    let mut made = persistent("while (launch > 1 && !*(volatile __global const uint *)columns);");
    made.patience = Duration::from_millis(100);
    hang(made);
}

#[test]
fn a_kernel_that_has_begun_and_does_not_end_has_stalled_long_before_patience_ends() {
    let hangs = "ring[2] = launch; while (launch > 1 && !*(volatile __global const uint *)columns);";
    let mut made = persistent_with(Duration::from_millis(100), hangs);
    // Nobody waits for so long: its quantum is over, and it does not end.
    made.patience = Duration::from_secs(1 << 30);
    hang(made);
}

#[test]
fn a_kernel_that_goes_on_is_told_to_end_when_its_quantum_is_over() {
    let mut made =
        persistent("ring[2] = launch; while (launch > 1 && !ring[1]); if (launch == 3) ring[65] = ring[0];");
    made.patience = Duration::from_secs(1 << 30);
    made.submit(1, 1).expect("it goes over");
    assert!(
        made.poll(1, true).expect("the launch after the one that went on for its quantum writes its word")
    );
    assert_eq!(made.launches, 3);
}

#[test]
fn a_kernel_that_ends_without_a_slot_has_lost_it() {
    let mut made = persistent("");
    made.submit(1, 1).expect("it goes over");
    let said = made.poll(1, true).expect_err("nobody runs it").to_string();
    assert!(said.contains("it lost slot 1"), "{said}");
    let said = made.submit(0, 1).expect_err("it is not to be relied on").to_string();
    assert!(said.contains("has not come to the end of another one"), "{said}");
}

#[test]
fn a_device_that_goes_waits_for_the_end_of_its_kernel() {
    let mut made = persistent(
        "while (launch > 1 && !ring[1]); for (volatile uint i = 0; launch > 1 && i < 50000000; i++); table[0] = launch;",
    );
    // It outlives the device.
    let ended = svm::Svm::<u32>::new(&made.parts.context, 1).expect("there is memory");
    // SAFETY: the last argument is a table, and the memory is still there when the kernel has ended.
    unsafe { made.parts.kernel.set_arg_svm_pointer(parts::TABLES, ended.place()) }.expect("it is one");
    made.submit(0, 1).expect("it goes over");
    assert_eq!(ended.words()[0].load(Ordering::Acquire), 0);
    drop(made);
    assert_eq!(ended.words()[0].load(Ordering::Acquire), 2, "it was told to end, and has");
}

#[test]
fn a_command_that_ended_badly_has_ended_and_one_that_nobody_can_ask_about_has_not() {
    use opencl3::error_codes::ClError;
    use opencl3::event::CommandExecutionStatus;
    for (status, ended) in [(-5, true), (0, true), (1, false), (3, false)] {
        assert_eq!(flight::is_at_end(Ok(CommandExecutionStatus(status))), Ok(ended), "{status}");
    }
    assert!(flight::is_at_end(Err(ClError(-5))).is_err());
}
