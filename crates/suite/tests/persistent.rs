//! Kernels that keep running, on the OpenCL driver for processors: slots in any order, ends and new
//! beginnings in the middle, tables that change.

mod flights;

use captures::generate::Profile;
use exec::kernel::{Back, CopiedPart, Dialect, Kernel, KernelOptions};
use exec::{Backend, BackendKind, QueueDepth};
use gpu::{
    Device, DeviceError, FaultyDevice, Geometry, OpenClPersistent, Serving, Setup, SlotMemory, Submission,
    Trouble, study,
};
use ir::Program;
use lang::pipeline::Decode;
use offload::device_queue::{Schedule, Supply};
use offload::{Offload, OffloadError};
use offload::{Offloaded, geometry};
use packet::BATCH;
use std::sync::Mutex;
use std::time::Duration;
use suite::agree::compile_as;
use suite::cores::each;
use suite::corpus::{compile_file, files, root, shipped};
use suite::device::pocl;
use suite::outcome::{SEED, see, see_held, see_on};
use suite::packet_generator::Arrivals;
use suite::split::Split;
use suite::traffic::{settled, traffic};

const PORTS: u16 = 5;
const SETUP: Setup = Setup { memory: SlotMemory::Mapped, submission: Submission::Persistent, timed: false };
const QUANTUM: Duration = Duration::from_millis(50);
/// The machine may have other work; whoever does not end at all is found by the deadline of whoever waits.
const GRACE: Duration = Duration::from_secs(60);
/// A kernel that ends all the time.
const SHORT: Serving = Serving { threads: 1, slots: 3, asks: 20, quantum: QUANTUM, grace: GRACE };
/// One that runs as on a device that is not a processor.
const TOGETHER: Serving = Serving { threads: 32, slots: 50, asks: 2000, quantum: QUANTUM, grace: GRACE };

fn open(kernel: &Kernel, geometry: Geometry, serving: Serving) -> Result<Box<dyn Device>, DeviceError> {
    let text = kernel.persistent_text(Dialect::OpenCl);
    Ok(Box::new(OpenClPersistent::new(&pocl(), &text, geometry, SETUP, serving)?))
}

/// Runs packets on the device and in the interpreter; how many the device had, none where the program has no
/// kernel.
fn agree(program: &Program, arrivals: &Arrivals, serving: Serving) -> Result<Option<u64>, String> {
    let offload = match Offload::new(program, PORTS, SEED, &KernelOptions::default()) {
        Ok(offload) => offload,
        Err(OffloadError::NoKernel(_)) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut offloaded = Offloaded::new(offload, QueueDepth::BATCH, |kernel, geometry| {
        Ok(Box::new(Split::new(geometry, |geometry| open(kernel, geometry, serving))?))
    })
    .map_err(|error| error.to_string())?;
    let seen = see_on(program, &mut offloaded, arrivals, BATCH);
    let judge = see(program, BackendKind::Interpreter, arrivals, PORTS, BATCH).expect("it loads");
    let on = offloaded.on_device().ok_or("it is on no device")?;
    if let Some(wrong) = on.failure.or_else(|| seen.difference(&judge)) {
        return Err(wrong);
    }
    Ok(Some(on.tally.device + on.tally.again + on.tally.changed))
}

#[test]
fn a_million_packets_mean_the_same_to_kernels_that_keep_running() {
    let mut all = Vec::new();
    for (folder, packets) in [("programs", 30_000), ("suite/good", 9_000)] {
        // What has come to rest, and then a fifth that is damaged and stations that move, so that tables
        // change all the time.
        let mut arrivals = settled(&traffic(Profile::sample1(), packets / 10, PORTS, 9), 7, PORTS);
        arrivals.append(&traffic(Profile::sample1(), packets * 3 / 10, PORTS, 10));
        let arrivals = std::sync::Arc::new(arrivals);
        let files = files(&root().join(folder), "rav").expect("the folder is there");
        all.extend(files.into_iter().map(|path| (path, arrivals.clone())));
    }
    let sum = Mutex::new((0, 0, 0));
    each(all, |(path, arrivals)| {
        let compiled = compile_file(path, Decode::Lazy).map_err(|error| error.to_string())?;
        let program = compiled.program.ok_or_else(|| format!("{} does not compile", path.display()))?;
        let serving = if path.components().any(|part| part.as_os_str() == "good") {
            Serving { slots: 100, asks: 1000, threads: 1, quantum: Duration::from_millis(2), grace: GRACE }
        } else {
            Serving::on(&pocl())
        };
        let had =
            agree(&program, arrivals, serving).map_err(|wrong| format!("{}: {wrong}", path.display()))?;
        let mut sum = sum.lock().expect("nobody panics");
        match had {
            Some(packets) => *sum = (sum.0 + packets, sum.1 + 1, sum.2),
            None => sum.2 += 1,
        }
        Ok(())
    });
    let (packets, programs, without) = sum.into_inner().expect("nobody panics");
    println!("{packets} packets, {programs} programs, {without} without a kernel");
    // Of four no packet can be finished on a device: see `devices.rs`.
    assert!(packets >= 1_000_000 && programs > 80 && without == 4);
}

#[test]
fn slots_out_of_step_leave_the_twins_words_wherever_a_launch_ends() {
    let mut went = 0;
    for name in ["firewall_rules", "router", "lpm", "static_ipv4"] {
        for (over, back) in [
            (CopiedPart::Header, Back::Word),
            (CopiedPart::Packed, Back::Half),
            (CopiedPart::Packed, Back::Bit),
            (CopiedPart::InPlace, Back::Bit),
            (CopiedPart::InPlace, Back::Word),
        ] {
            let options = KernelOptions {
                over,
                back,
                linear_rules: over == CopiedPart::Packed,
                ..KernelOptions::default()
            };
            let Some(mut flights) = flights::Flights::new(name, &options) else { continue };
            for (packets, slots) in [(32, 40), (7, 3)] {
                for serving in [Serving::on(&pocl()), SHORT, TOGETHER] {
                    let what = format!("{name}, {over}, {back}, {slots} slots of {packets}, {serving:?}");
                    let geometry = geometry(flights.kernel(), packets, slots);
                    let mut made = open(flights.kernel(), geometry, serving)
                        .unwrap_or_else(|error| panic!("{what}: {error}"));
                    flights.agree(&what, made.as_mut());
                    went += 1;
                }
            }
        }
    }
    assert!(went >= 50, "{went} ways");
}

#[test]
fn warps_that_a_kernel_that_keeps_running_takes_mean_the_same() {
    let arrivals = traffic(Profile::sample1(), 3_001, PORTS, 17);
    let (programs, handed) = (Mutex::new(0), Mutex::new(0));
    each(files(&root().join("programs"), "rav").expect("the folder is there"), |path| {
        let compiled = compile_file(path, Decode::Lazy).map_err(|error| error.to_string())?;
        let program = compiled.program.ok_or_else(|| format!("{} does not compile", path.display()))?;
        let judge = see(&program, BackendKind::Interpreter, &arrivals, PORTS, BATCH).expect("it loads");
        for (quarters, supply) in [(8, Supply::Unknown), (0, Supply::Plenty)] {
            let Ok(offload) = Offload::new(&program, PORTS, SEED, &KernelOptions::default()) else {
                return Ok(());
            };
            let schedule = Schedule::Hermes { quarters };
            let mut backend = Offloaded::on_opencl(offload, &pocl(), SETUP, schedule.depth())
                .map_err(|error| format!("{}: {error}", path.display()))?;
            let seen = see_held(&program, &mut backend, &arrivals, schedule, supply);
            let on = backend.on_device().ok_or("it is on no device")?;
            if let Some(wrong) = on.failure.or_else(|| seen.difference(&judge)) {
                return Err(format!("{}, {quarters}: {wrong}", path.display()));
            }
            *handed.lock().expect("nobody panics") += on.tally.handed;
        }
        *programs.lock().expect("nobody panics") += 1;
        Ok(())
    });
    let (programs, handed) = (programs.into_inner(), handed.into_inner());
    let (programs, handed) = (programs.expect("nobody panics"), handed.expect("nobody panics"));
    println!("{programs} programs, {handed} warps");
    assert!(programs > 10 && handed > 50 * programs);
}

#[test]
fn what_a_kernel_that_keeps_running_had_when_its_device_failed_is_run_by_the_processor() {
    let program = shipped("router.rav");
    let arrivals = traffic(Profile::sample1(), 3_000, PORTS, 3);
    let judge = see(&program, BackendKind::Interpreter, &arrivals, PORTS, BATCH).expect("it loads");
    let schedule = Schedule::Hermes { quarters: 8 };
    let troubles = [Trouble::NoMemory, Trouble::Refused, Trouble::Lost, Trouble::Stalled, Trouble::Silent];
    for (trouble, left) in troubles.into_iter().map(|trouble| (trouble, 1)).chain([(Trouble::Reset, 40)]) {
        let offload =
            Offload::new(&program, PORTS, SEED, &KernelOptions::default()).expect("it has a kernel");
        let mut backend = Offloaded::new(offload, schedule.depth(), |kernel, geometry| {
            let text = kernel.persistent_text(Dialect::OpenCl);
            let inner = OpenClPersistent::new(&pocl(), &text, geometry, SETUP, Serving::on(&pocl()))?;
            Ok(Box::new(FaultyDevice::after(inner, trouble, left)))
        })
        .expect("it opens");
        let seen = see_held(&program, &mut backend, &arrivals, schedule, Supply::Plenty);
        assert_eq!(seen.difference(&judge), None, "{trouble:?}");
        let on = backend.on_device().expect("it was on a device");
        assert!(on.failure.is_some() && on.tally.host > 0, "{trouble:?}: {on:?}");
    }
}

#[test]
fn a_kernel_that_keeps_running_and_hangs_costs_no_packet() {
    let program = shipped("router.rav");
    let arrivals = traffic(Profile::sample1(), 3_000, PORTS, 3);
    let judge = see(&program, BackendKind::Interpreter, &arrivals, PORTS, BATCH).expect("it loads");
    let schedule = Schedule::Hermes { quarters: 8 };
    let offload = Offload::new(&program, PORTS, SEED, &KernelOptions::default()).expect("it has a kernel");
    let mut backend = Offloaded::new(offload, schedule.depth(), |kernel, geometry| {
        // With its 21st ticket it is busy for seconds, far beyond its quantum, and answers nothing.
        let (text, at) = (kernel.persistent_text(Dialect::OpenCl), "        OF_SLOT(slot)\n");
        assert_eq!(text.matches(at).count(), 1);
        let hangs = "if (first == 0 && ticket + 280u == 0) for (u32 i = 0; i < 1000000000u; i++) \
                     atomic_fetch_add_explicit(own + 5, 1u, memory_order_relaxed, memory_scope_device);\n";
        let text = text.replace(at, &format!("{hangs}{at}"));
        let serving = Serving { grace: Duration::from_secs(1), ..Serving::on(&pocl()) };
        Ok(Box::new(OpenClPersistent::new(&pocl(), &text, geometry, SETUP, serving)?))
    })
    .expect("it opens");
    let seen = see_held(&program, &mut backend, &arrivals, schedule, Supply::Plenty);
    assert_eq!(seen.difference(&judge), None);
    let on = backend.on_device().expect("it was on a device");
    let said = on.failure.expect("it was given up");
    assert!(said.contains("has not answered for"), "{said}");
    assert!(on.tally.device > 0 && on.tally.host > 0, "{:?}", on.tally);
}

/// What every packet of the programs of the next tests becomes.
fn sent(port: u32) -> u32 {
    packet::verdict::Verdict::new(packet::verdict::VerdictKind::Send, port as u16).bits()
}

#[test]
fn a_device_may_go_with_work_under_way() {
    let program = compile_as("start stage all() { send 3 }", Decode::Lazy).program.expect("it compiles");
    let kernel = Kernel::new(&program, PORTS, &KernelOptions::default()).expect("it has a kernel");
    for round in 0..40 {
        let serving = if round % 2 == 0 { Serving::on(&pocl()) } else { SHORT };
        let mut made = open(&kernel, geometry(&kernel, 32, 64), serving).expect("it opens");
        assert_eq!(made.workers(), 1);
        for slot in 0..64 {
            made.submit(slot, 32).expect("it goes over");
            let refused = made.submit(slot, 32).expect_err("it is under way").to_string();
            assert!(refused.contains("it is under way"), "{refused}");
        }
        for slot in (0..round).rev() {
            assert!(made.poll(slot, true).expect("it comes back"));
            let output = made.output(slot).expect("it is back");
            assert!(output.verdicts.iter().all(|verdict| *verdict == sent(3)), "{:?}", output.verdicts);
        }
    }
}

#[test]
fn more_kernels_than_the_device_runs_at_once_take_turns() {
    let program = compile_as("start stage all() { send 3 }", Decode::Lazy).program.expect("it compiles");
    let kernel = Kernel::new(&program, PORTS, &KernelOptions::default()).expect("it has a kernel");
    let serving = Serving {
        threads: 1,
        slots: u32::MAX,
        asks: 1 << 26,
        quantum: Duration::from_millis(5),
        grace: GRACE,
    };
    let count = std::thread::available_parallelism().map_or(1, usize::from) + 2;
    let made = (0..count).map(|_| open(&kernel, geometry(&kernel, 32, 1), serving));
    let mut made: Vec<_> = made.collect::<Result<_, _>>().expect("they open");
    let mut done = vec![0; count];
    made.iter_mut().for_each(|made| made.submit(0, 32).expect("it goes over"));
    // Each has something to do until all have had their turns, so none ends by itself.
    for _ in 0..5_000_000 {
        for (made, done) in made.iter_mut().zip(&mut done) {
            if made.poll(0, false).expect("it goes on") {
                *done += 1;
                made.submit(0, 32).expect("it goes over");
            }
        }
        if done.iter().all(|done| *done >= 3) {
            return;
        }
    }
    panic!("some never have their turn: {done:?}");
}

#[test]
fn a_slot_without_packets_comes_back_and_one_is_reused_longer_than_tickets_last() {
    let program = compile_as("start stage all() { send 3 }", Decode::Lazy).program.expect("it compiles");
    let kernel = Kernel::new(&program, PORTS, &KernelOptions::default()).expect("it has a kernel");
    let mut made = open(&kernel, geometry(&kernel, 32, 2), Serving::on(&pocl())).expect("it opens");
    // Tickets begin 300 before their end.
    for round in 0..1000_usize {
        made.submit(1, round % 33).expect("it goes over");
        assert!(
            made.poll(1, true).expect("it comes back") && made.poll(0, round % 2 == 0).expect("it rests")
        );
        let verdicts = made.output(1).expect("it is back").verdicts;
        assert!(verdicts[..round % 33].iter().all(|verdict| *verdict == sent(3)), "{round}");
    }
}

#[test]
fn what_a_kernel_that_keeps_running_cannot_do_is_a_sentence() {
    let program = compile_as("start stage all() { flood }", Decode::Lazy).program.expect("it compiles");
    let kernel = Kernel::new(&program, PORTS, &KernelOptions::default()).expect("it has a kernel");
    let text = kernel.persistent_text(Dialect::OpenCl);
    let said = |geometry, setup| {
        let made = OpenClPersistent::new(&pocl(), &text, geometry, setup, Serving::on(&pocl()));
        made.map(|_| ()).expect_err("it is refused").to_string()
    };
    let fits = geometry(&kernel, 32, 4);
    for (geometry, setup, what) in [
        (Geometry { packets: 33, ..fits }, SETUP, "takes 1 to 32 packets at once, not 33"),
        (Geometry { packets: 0, ..fits }, SETUP, "takes 1 to 32 packets at once, not 0"),
        (Geometry { slots: 65_537, ..fits }, SETUP, "has 1 to 65,536 slots, not 65537"),
        (fits, Setup { memory: study::PINNED, ..SETUP }, "has mapped memory, not pinned"),
        (fits, Setup { submission: Submission::Queued, ..SETUP }, "is not queued"),
    ] {
        let said = said(geometry, setup);
        assert!(said.contains(what) && said.contains("submit batches to streams"), "{said}");
    }
    for (serving, what) in [
        (Serving { threads: 0, ..SHORT }, "has 1 to 32 threads, not 0"),
        (Serving { threads: 33, ..SHORT }, "has 1 to 32 threads, not 33"),
        (Serving { slots: 0, ..SHORT }, "runs at least 1 slot before it ends, not 0"),
        (Serving { asks: 0, ..SHORT }, "asks at least once before it ends, not 0"),
        (Serving { quantum: Duration::ZERO, ..SHORT }, "ends after some time, not at once"),
    ] {
        let said = open(&kernel, fits, serving).err().expect("it is refused").to_string();
        assert!(said.contains(what) && said.contains("choose another number"), "{said}");
    }
    let large = Geometry { stride: 1 << 20, slots: 65_536, ..fits };
    assert!(said(large, SETUP).contains("has no memory for"));
    let mut made = open(&kernel, Geometry { tables: 1, ..fits }, SHORT).err();
    assert!(made.take().is_some_and(|error| error.to_string().contains("arguments")), "a table too many");
}
