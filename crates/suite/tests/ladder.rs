//! The steps of the transfer ladder on the OpenCL driver for processors: whatever a device is set up as, it
//! leaves what the twin leaves.

mod flights;
#[path = "flights/patches.rs"]
mod patches;

use exec::kernel::{Back, CopiedPart, Dialect, KernelOptions};
use gpu::{Device, DeviceError, Geometry, OpenCl, Setup, Submission, check, study};
use offload::geometry;
use suite::device::pocl;

#[test]
fn slots_out_of_step_leave_the_twins_words_however_a_device_is_set_up() {
    let submissions = [study::SERIAL, Submission::Queued, Submission::Streams(2), Submission::Streams(9)];
    for name in ["firewall_rules", "router", "lpm"] {
        let mut flights = flights::Flights::new(name, &KernelOptions::default()).expect("it has a kernel");
        let text = flights.kernel().text(Dialect::OpenCl);
        let geometry = geometry(flights.kernel(), 300, 4);
        for (memory, submission) in study::MEMORIES.into_iter().flat_map(|m| submissions.map(|s| (m, s))) {
            for timed in [false, true] {
                let what = format!("{name}, {memory}, {submission}");
                let setup = Setup { memory, submission, timed };
                let mut made = OpenCl::new(&pocl(), &text, geometry, setup)
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                let without = flights.agree(&what, &mut made);
                assert_eq!(without == 0, timed, "{what}: {without} batches told no times");
            }
        }
    }
}

#[test]
fn every_form_goes_every_way() {
    let submissions = [study::SERIAL, Submission::Queued, Submission::Streams(2)];
    let mut went = 0;
    for name in ["lpm", "static_ipv4", "firewall_rules"] {
        for (over, back) in CopiedPart::ALL.into_iter().flat_map(|over| Back::ALL.map(|back| (over, back))) {
            let options = KernelOptions { over, back, linear_rules: true, ..KernelOptions::default() };
            let Some(mut flights) = flights::Flights::new(name, &options) else { continue };
            let text = flights.kernel().text(Dialect::OpenCl);
            let geometry = geometry(flights.kernel(), 200, 2);
            for memory in study::MEMORIES {
                let submission = submissions[went % 3];
                let setup = Setup { memory, submission, timed: false };
                let what = format!("{name}, {over}, {back}, {memory}, {submission}");
                let mut made = OpenCl::new(&pocl(), &text, geometry, setup)
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                flights.agree(&what, &mut made);
                went += 1;
            }
        }
    }
    println!("{went} ways");
    assert!(went >= 90, "{went} ways");
}

#[test]
fn a_table_changes_behind_what_is_under_way() {
    for (memory, streams) in study::MEMORIES.into_iter().zip([1, 2, 3, 2]) {
        let setup = Setup { memory, submission: Submission::Streams(streams), timed: false };
        let geometry = Geometry { packets: 20_000, slots: 3, ..check::geometry() };
        let mut made = OpenCl::new(&pocl(), &check::opencl_text(), geometry, setup).expect("it opens");
        patches::patches(&memory.to_string(), &mut made);
    }
}

#[test]
fn what_opencl_cannot_do_is_a_sentence() {
    let text = check::opencl_text();
    let graph = Setup { submission: study::GRAPH, ..Setup::default() };
    let refused = OpenCl::new(&pocl(), &text, check::geometry(), graph).map(|_| ()).unwrap_err();
    assert_eq!(refused.to_string(), "OpenCL 1.2 has no graphs: submit to streams");
    for memory in study::MEMORIES {
        let large = Geometry { packets: 1 << 24, stride: 1 << 16, slots: 8, ..check::geometry() };
        let refused = OpenCl::new(&pocl(), &text, large, memory).map(|_| ()).unwrap_err();
        assert!(matches!(refused, DeviceError::Memory { bytes, .. } if bytes > 1 << 43), "{refused}");
    }
}

#[test]
fn eight_slots_of_65_536_packets_are_right_to_the_last_one() {
    const PACKETS: usize = 65_536;
    let text = check::opencl_text();
    let geometry = Geometry { packets: PACKETS, slots: 8, ..check::geometry() };
    let table: Vec<u32> = (0..64).map(|entry| entry * 7 + 3).collect();
    for memory in study::MEMORIES {
        let mut made = OpenCl::new(&pocl(), &text, geometry, memory).expect("it opens");
        made.upload(0, &table).expect("there is memory");
        for slot in 0..8 {
            let input = made.input(slot).expect("it is at rest");
            input.bytes.fill(slot as u8);
            input.columns.iter_mut().zip(0..).for_each(|(word, packet)| *word = packet);
            made.submit(slot, PACKETS).expect("it goes over");
        }
        for slot in [7, 0, 6, 1, 5, 2, 4, 3] {
            assert!(made.poll(slot, true).expect("it comes back"));
            let output = made.output(slot).expect("it is back");
            for packet in 0..PACKETS {
                let mix = |sum: u32, _| sum.wrapping_mul(31).wrapping_add(slot as u32);
                let sum = (0..16).fold(packet as u32, mix);
                assert_eq!(output.records[packet], sum, "{memory}, slot {slot}, packet {packet}");
                assert_eq!(output.verdicts[packet], table[sum as usize % 64]);
            }
            assert!(output.bytes.iter().all(|byte| *byte == !(slot as u8)), "{memory}, slot {slot}");
        }
    }
}
