//! The CUDA back end on an imitation of NVIDIA's libraries: memory, copies, kernels and waiting in their
//! right order, and results as the interpreter's.

mod flights;
#[path = "flights/patches.rs"]
mod patches;

use captures::generate::Profile;
use exec::kernel::{Dialect, Kernel, KernelOptions};
use exec::{Backend, BackendKind, OnDevice, QueueDepth};
use gpu::{
    Cuda, CudaFound, CudaPersistent, Device, DeviceError, Setup, SlotMemory, Spans, Submission, check, study,
};
use lang::pipeline::Decode;
use offload::Offload;
use offload::device_queue::{Schedule, Supply};
use offload::{Offloaded, geometry};
use packet::BATCH;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use suite::corpus::{compile_file, files, root, shipped};
use suite::outcome::{SEED, see, see_held, see_on};
use suite::traffic::traffic;

const PORTS: u16 = 5;
/// Tells the libraries where they may write; set in the processes that are to use them.
const FOLDER: &str = "RAVELIN_CUDA_FOLDER";
/// After how many kernels the device is lost.
const LAUNCHES: &str = "RAVELIN_CUDA_LAUNCHES";
/// What goes wrong, and after how many rests of a kernel that keeps running: `lost:N`, as `warps.c` says.
/// While a program runs on a busy machine, its kernel rests a few hundred times; on other machines it rests
/// more often.
const TROUBLE: &str = "RAVELIN_CUDA_TROUBLE";
/// What has the device then: its slots, or a program's batches or warps. A process loses a device once, and
/// has it back never.
const WITH: &str = "RAVELIN_CUDA_WITH";
/// How a process ends whose device was lost between two runs, when it had nothing to do: the test starts it
/// again.
const NOTHING_UNDER_WAY: i32 = 86;
/// What goes wrong in which process; in the first, nothing.
const RUNS: [&[(&str, &str)]; 16] = [
    &[],
    &[(LAUNCHES, "3"), (WITH, "firewall_rules.mapped")],
    &[(LAUNCHES, "3"), (WITH, "lpm.pageable")],
    &[(LAUNCHES, "3"), (WITH, "mac_switch.mapped")],
    &[(LAUNCHES, "3"), (WITH, "vxlan_gateway.pageable")],
    &[(LAUNCHES, "3"), (WITH, "slots")],
    &[(TROUBLE, "halted:3"), (WITH, "lpm.mapped")],
    &[(TROUBLE, "halted:3"), (WITH, "slots")],
    &[(TROUBLE, "unrecorded:200"), (WITH, "slots")],
    &[(TROUBLE, "lost:2000"), (WITH, "slots")],
    &[(TROUBLE, "lost:50"), (WITH, "nat44")],
    &[(TROUBLE, "lost:50"), (WITH, "router")],
    &[(TROUBLE, "stuck:2000"), (WITH, "slots")],
    &[(TROUBLE, "stuck:50"), (WITH, "mac_switch")],
    &[(TROUBLE, "quits:2000"), (WITH, "slots")],
    &[(TROUBLE, "timeless:0"), (WITH, "slots")],
];

#[test]
fn programs_mean_the_same_on_an_imitated_device() {
    if std::env::var_os(FOLDER).is_some() {
        return on_the_imitation();
    }
    let folder = std::env::temp_dir().join(format!("ravelin-imitation-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let source = root().join("crates/suite/tests/cuda/driver.c");
    for library in ["libcuda.so", "libnvrtc.so"] {
        let mut cc = Command::new("cc");
        cc.args(["-w", "-O1", "-fPIC", "-shared", "-pthread", "-o"]);
        cc.arg(folder.join(library)).arg(&source);
        let Ok(built) = cc.status() else {
            println!("skipped: there is no `cc` (on Debian: apt-get install gcc g++)");
            return;
        };
        assert!(built.success(), "{library} does not build");
    }
    let own = std::env::current_exe().expect("a test has a file");
    let begin = |(number, trouble): (usize, &'static [(&str, &str)])| {
        let kernels = folder.join(number.to_string());
        std::fs::create_dir_all(&kernels).expect("a folder can be made");
        let mut command = Command::new(&own);
        command.args(["--exact", "programs_mean_the_same_on_an_imitated_device", "--nocapture"]);
        command.env(FOLDER, &kernels).env("LD_LIBRARY_PATH", &folder).envs(trouble.iter().copied());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        (trouble, command.spawn().expect("it starts"))
    };
    let all: Vec<_> = RUNS.into_iter().enumerate().collect();
    for some in all.chunks(5) {
        let begun: Vec<_> = some.iter().map(|one| (*one, begin(*one))).collect();
        for (one, (trouble, run)) in begun {
            let mut run = run.wait_with_output().expect("it runs");
            for _ in 0..50 {
                if run.status.code() != Some(NOTHING_UNDER_WAY) {
                    break;
                }
                run = begin(one).1.wait_with_output().expect("it runs");
            }
            let said = [run.stdout, run.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
            assert!(run.status.success(), "{trouble:?}: {}\n{}", said[0], said[1]);
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
}

fn on_the_imitation() {
    let device = gpu::cuda_devices().unwrap_or_else(|error| panic!("{error}")).remove(0);
    assert_eq!((device.full_name().as_str(), device.capability), ("Imitation (CUDA 13.0)", 90));
    if let Ok(with) = std::env::var(WITH) {
        match (std::env::var(TROUBLE), with.split_once('.')) {
            (trouble, Some((name, memory))) => {
                let memory = study::MEMORIES.into_iter().find(|known| known.to_string() == memory);
                one(name, &device, memory.expect("it is one"), Some(trouble.is_err()));
            }
            (Err(_), None) => begins_too_often(&device),
            (Ok(trouble), None) if with != "slots" => warps_in_trouble(&device, &trouble, &with),
            (Ok(trouble), None) => match trouble.split_once(':').expect("it says when").0 {
                "halted" => halts(&device),
                "unrecorded" => goes_unseen(&device),
                "quits" => return loses_slots(&device),
                "timeless" => return ends_by_the_hosts_clock(&device),
                _ => in_trouble(&device, &trouble),
            },
        }
        return stays_lost(&device);
    }
    for memory in [SlotMemory::Mapped, study::PAGEABLE] {
        let mut made = Cuda::new(&device, &check::cuda_text(), check::geometry(), memory).expect("it builds");
        assert_eq!(check::check(&mut made).expect("it runs").wrong, 0, "{memory:?}");
        made.submit(0, 1).expect("it is taken");
        assert!(
            made.input(0).is_err() && made.submit(0, 1).is_err() && made.output(0).is_err(),
            "{memory:?}"
        );
        assert!(made.poll(0, true).is_ok_and(|done| done) && made.output(0).is_ok(), "{memory:?}");
        for name in ["firewall_rules", "lpm", "mac_switch", "vxlan_gateway"] {
            one(name, &device, memory, None);
        }
    }
    ladder(&device);
    persistent(&device);
}

/// Kernels end in the middle of work and by themselves.
const SHORT: Spans = Spans { quantum: Duration::from_millis(2), idle: Duration::from_micros(500) };
/// They do not.
const LONG: Spans = Spans { quantum: Duration::from_secs(4), idle: Duration::from_secs(4) };

fn opened(device: &CudaFound, kernel: &Kernel, slots: usize, spans: Spans) -> CudaPersistent {
    let text = kernel.persistent_text(Dialect::Cuda);
    let geometry = geometry(kernel, 32, slots);
    before_trouble(|| CudaPersistent::new(device, &text, geometry, SlotMemory::Mapped, spans))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Opens a device. How often a kernel rests meanwhile depends on the time that it has, so no trouble begins
/// before the device is open.
fn before_trouble<T>(open: impl FnOnce() -> T) -> T {
    let armed = Path::new(&std::env::var_os(FOLDER).expect("the test has given one")).join("armed");
    let _ = std::fs::remove_file(&armed);
    let made = open();
    std::fs::write(armed, "").expect("the folder is there");
    made
}

/// Slots that a kernel that keeps running takes, against the twin: tables change, more slots than workers are
/// under way, launches end.
fn persistent(device: &CudaFound) {
    for name in ["firewall_rules", "lpm", "nat44", "router", "vxlan_gateway"] {
        let options = KernelOptions::default();
        let mut flights = flights::Flights::new(name, &options).expect("it has a kernel");
        for (slots, spans) in [(1, LONG), (5, SHORT), (40, SHORT)] {
            let mut made = opened(device, flights.kernel(), slots, spans);
            assert_eq!(made.workers(), slots.min(7));
            flights.agree(&format!("{name}, {slots} slots, {spans:?}"), &mut made);
        }
    }
    let mut finished = 0;
    for path in files(&root().join("programs"), "rav").expect("the folder is there") {
        let Some((name, on)) = in_warps(&path, device, 2_001).expect("it opens") else { continue };
        assert_eq!(on.failure, None, "{name}");
        finished += on.tally.device;
    }
    assert!(finished > 10_000, "{finished} packets were finished by warps");
    let flights = flights::Flights::new("lpm", &KernelOptions::default()).expect("it has a kernel");
    // One is over nothing, when the device is made.
    assert_eq!(keeps_up(opened(device, flights.kernel(), 8, LONG), |round, _| round == 2_000), 2);
    keeps_up(opened(device, flights.kernel(), 8, SHORT), |_, launches| launches >= 5);
    // Work that nobody waits for is done before its memory goes.
    let mut left = opened(device, flights.kernel(), 64, LONG);
    (0..64).for_each(|slot| left.submit(slot, 32).expect("it is taken"));
    // The kernel may have the slot still, until somebody has seen that it is done.
    let refused = [left.input(5).map(|_| ()), left.output(5).map(|_| ()), left.submit(5, 32)];
    assert!(
        refused
            .iter()
            .all(|lent| lent.as_ref().is_err_and(|error| error.to_string().ends_with("it is under way")))
    );
    assert!(left.poll(5, true).is_ok_and(|done| done) && left.input(5).is_ok());
    drop(left);

    let away = gpu::study::cuda_pings(device, 50).unwrap_or_else(|error| panic!("{error}"));
    assert!(away.len() == 50 && away.iter().all(|time| !time.is_zero()), "{away:?}");

    let refused = |packets, slots, memory| {
        let (text, geometry) =
            (flights.kernel().persistent_text(Dialect::Cuda), geometry(flights.kernel(), packets, slots));
        CudaPersistent::new(device, &text, geometry, memory, LONG).map(|_| ()).unwrap_err().to_string()
    };
    let sentence = refused(33, 8, SlotMemory::Mapped);
    assert!(sentence.contains("takes 1 to 32 packets at a time, and not 33"), "{sentence}");
    let sentence = refused(32, 65_537, SlotMemory::Mapped);
    assert!(sentence.contains("takes 1 to 65,536 slots, and not 65537"), "{sentence}");
    let sentence = refused(32, 8, study::PINNED);
    assert!(sentence.contains("does not copy from pinned memory: use mapped memory"), "{sentence}");
}

/// A program whose packets go to the device in warps, as they come, means what it means for the interpreter.
/// What it says of the device; none where it has no kernel; an error if the device is refused.
fn in_warps(path: &Path, device: &CudaFound, packets: u64) -> Result<Option<(String, OnDevice)>, String> {
    let program = compile_file(path, Decode::Lazy).expect("it can be read").program.expect("it compiles");
    let arrivals = traffic(Profile::sample1(), packets, PORTS, 23);
    let Ok(offload) = Offload::new(&program, PORTS, SEED, &KernelOptions::default()) else {
        return Ok(None);
    };
    let setup = Setup { submission: Submission::Persistent, ..Setup::default() };
    let schedule = Schedule::Hermes { quarters: 8 };
    let depth = QueueDepth { device_batches: 40, ..schedule.depth() };
    let opened = before_trouble(|| Offloaded::on_cuda(offload, device, setup, depth));
    let mut offloaded = opened.map_err(|error| error.to_string())?;
    let seen = see_held(&program, &mut offloaded, &arrivals, schedule, Supply::Plenty);
    let judge = see(&program, BackendKind::Interpreter, &arrivals, PORTS, BATCH).expect("it loads");
    assert_eq!(seen.difference(&judge), None, "{}", path.display());
    Ok(Some((path.display().to_string(), offloaded.on_device().expect("it is on a device"))))
}

/// Slots one behind the other until enough has been seen; the number of launches.
fn keeps_up(mut made: CudaPersistent, is_enough: impl Fn(usize, u32) -> bool) -> u32 {
    let begin = Instant::now();
    for round in 0.. {
        if is_enough(round, made.launches()) {
            break;
        }
        let slot = round % 8;
        assert!(made.poll(slot, true).expect("it runs"));
        made.submit(slot, 32).expect("it is taken");
        assert!(begin.elapsed() < Duration::from_secs(60), "{} launches", made.launches());
    }
    (0..8).for_each(|slot| assert!(made.poll(slot, true).expect("it runs")));
    made.launches()
}

/// Every step of the ladder, with slots under way out of step.
fn ladder(device: &CudaFound) {
    let submissions = [study::SERIAL, Submission::Queued, Submission::Streams(2), study::GRAPH];
    for name in ["firewall_rules", "router"] {
        let mut flights = flights::Flights::new(name, &KernelOptions::default()).expect("it has a kernel");
        let text = flights.kernel().text(Dialect::Cuda);
        let geometry = geometry(flights.kernel(), 300, 3);
        for (memory, submission) in study::MEMORIES.into_iter().flat_map(|m| submissions.map(|s| (m, s))) {
            let setup = Setup { memory, submission, timed: true };
            match Cuda::new(device, &text, geometry, setup) {
                Ok(mut made) => {
                    let without = flights.agree(&format!("{name}, {memory}, {submission}"), &mut made);
                    // A graph tells no times, and full batches are graphs.
                    assert_eq!(without > 0, submission == study::GRAPH, "{memory}, {submission}");
                }
                Err(DeviceError::Missing { what, .. }) => {
                    assert_eq!((memory, submission), (study::PAGEABLE, study::GRAPH), "{what}");
                }
                Err(error) => panic!("{name}, {memory}, {submission}: {error}"),
            }
        }
    }
    for submission in submissions {
        let setup = Setup { memory: study::PINNED, submission, timed: false };
        let geometry = gpu::Geometry { slots: 3, ..check::geometry() };
        let mut made = Cuda::new(device, &check::cuda_text(), geometry, setup).expect("it opens");
        patches::patches(&submission.to_string(), &mut made);
    }
    let large = gpu::Geometry { packets: 65_536, stride: 2048, slots: 64, ..check::geometry() };
    let refused = Cuda::new(device, &check::cuda_text(), large, study::PINNED).map(|_| ()).unwrap_err();
    assert!(matches!(refused, DeviceError::Memory { bytes, .. } if bytes > 8 << 30), "{refused}");
}

/// A program's batches; `lost` says of a device that is gone whether it says so itself.
fn one(name: &str, device: &CudaFound, memory: SlotMemory, lost: Option<bool>) {
    let program = shipped(&format!("{name}.rav"));
    let arrivals = traffic(Profile::sample1(), 4_000, PORTS, 3);
    let offload = Offload::new(&program, PORTS, SEED, &KernelOptions::default()).expect("it has a kernel");
    let mut offloaded = before_trouble(|| Offloaded::on_cuda(offload, device, memory, QueueDepth::BATCH))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let seen = see_on(&program, &mut offloaded, &arrivals, BATCH);
    let judge = see(&program, BackendKind::Interpreter, &arrivals, PORTS, BATCH).expect("it loads");
    assert_eq!(seen.difference(&judge), None, "{name}, {memory:?}");
    let on = offloaded.on_device().expect("it is on a device");
    match (lost, &on.failure) {
        (None, None) => {
            let by_kernel = on.tally.device + on.tally.again + on.tally.changed;
            assert!(by_kernel > 1_000, "{name}, {memory:?}: {:?}", on.tally);
        }
        (Some(true), Some(cause)) => {
            let start = "Imitation (CUDA 13.0) failed while it was to start a batch";
            assert_eq!(
                *cause,
                format!("{start}: CUDA_ERROR_ILLEGAL_ADDRESS: on purpose"),
                "{name}, {memory:?}"
            );
        }
        (Some(false), Some(cause)) => assert!(cause.contains("has not answered for"), "{cause}"),
        (_, failure) => panic!("{name}, {memory:?}: {failure:?}"),
    }
}

/// Whoever opens a device again that failed or hung is refused at once, before the driver is asked for
/// anything.
fn stays_lost(device: &CudaFound) {
    let flights = flights::Flights::new("lpm", &KernelOptions::default()).expect("it has a kernel");
    let text = flights.kernel().persistent_text(Dialect::Cuda);
    let warps =
        CudaPersistent::new(device, &text, geometry(flights.kernel(), 32, 8), SlotMemory::Mapped, LONG);
    let batches = Cuda::new(device, &check::cuda_text(), check::geometry(), SlotMemory::Mapped);
    for error in [warps.map(|_| ()), batches.map(|_| ()), gpu::study::cuda_pings(device, 1).map(|_| ())] {
        let error = error.expect_err("it is lost");
        let sentence = "Imitation (CUDA 13.0) has failed or hung, and its driver keeps that for as long as this process: start Ravelin again to use it";
        assert_eq!(error.to_string(), sentence);
    }
}

/// A batch does not come to an end.
fn halts(device: &CudaFound) {
    let open = || Cuda::new(device, &check::cuda_text(), check::geometry(), study::PINNED);
    let mut made = before_trouble(open).expect("it opens");
    let begin = Instant::now();
    let failed = loop {
        if let Err(error) = made.submit(0, 1).and_then(|()| made.poll(0, true)) {
            break error;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing fails");
    };
    assert!(matches!(failed, DeviceError::Stalled { .. }), "{failed}");
    // Nothing more is done, and nothing waited for.
    for more in [made.submit(0, 1), made.patch(0, 0, &[1]), made.input(0).map(|_| ())] {
        let sentence = more.expect_err("it is lost").to_string();
        assert!(sentence.contains("has not come to the end of something else"), "{sentence}");
    }
    drop(made);
}

/// A kernel begins, but nothing will say when it has ended.
fn goes_unseen(device: &CudaFound) {
    let flights = flights::Flights::new("lpm", &KernelOptions::default()).expect("it has a kernel");
    let mut made = opened(device, flights.kernel(), 8, LONG);
    let begin = Instant::now();
    let failed = loop {
        let done = made.submit(3, 32).and_then(|()| made.poll(3, true));
        // The kernel ends for it and begins again.
        if let Err(error) = done.and_then(|_| made.patch(0, 0, &[])) {
            break error;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing fails");
    };
    assert!(failed.to_string().contains("failed while it was to start a kernel: "), "{failed}");
    let sentence = made.submit(3, 32).expect_err("it is lost").to_string();
    assert!(sentence.contains("has not come to the end of something else"), "{sentence}");
    // The kernel runs on for seconds, and has its memory.
    drop(made);
}

/// Packets of a program go to the device in warps when it fails or hangs: the program goes on without it, and
/// nothing of it is lost.
fn warps_in_trouble(device: &CudaFound, trouble: &str, name: &str) {
    let path = root().join("programs").join(name).with_extension("rav");
    let lost = (0..100).find_map(|_| match in_warps(&path, device, 20_000) {
        Ok(run) => run.expect("it has a kernel").1.failure,
        Err(refused) => {
            assert!(refused.contains("has failed or hung"), "{refused}");
            std::process::exit(NOTHING_UNDER_WAY)
        }
    });
    let lost = lost.unwrap_or_else(|| panic!("{name} never loses it"));
    match trouble.starts_with("lost") {
        true => assert!(lost.ends_with("run a batch: CUDA_ERROR_ILLEGAL_ADDRESS: on purpose"), "{lost}"),
        false => {
            let (_, waited) = lost.split_once("has not answered for ").expect("it says how long");
            has_stalled(waited.trim_end_matches(" ms").parse().expect("it is a number"));
        }
    }
}

/// What the device says of a kernel that hangs, which is before anybody else would: a second in which it was
/// asked, and at most a hundredth more.
fn has_stalled(milliseconds: u64) {
    assert!((1_000..=1_010).contains(&milliseconds), "{milliseconds} ms");
}

/// A kernel whose device's clock stands still does not end by itself, and is told to.
fn ends_by_the_hosts_clock(device: &CudaFound) {
    let flights = flights::Flights::new("lpm", &KernelOptions::default()).expect("it has a kernel");
    keeps_up(opened(device, flights.kernel(), 8, SHORT), |_, launches| launches >= 5);
}

/// A kernel ends and leaves slots behind that it has known of. It has ended, so the device can be had again.
fn loses_slots(device: &CudaFound) {
    let sentence = fails_in_the_middle(device).to_string();
    let start = "Imitation (CUDA 13.0) failed while it was to run a batch: its kernel has ended, and has not run slot ";
    assert!(sentence.starts_with(start), "{sentence}");
    let flights = flights::Flights::new("lpm", &KernelOptions::default()).expect("it has a kernel");
    drop(opened(device, flights.kernel(), 8, LONG));
}

/// Slots go to the device until something is wrong with it; what that is. What it may still use is not waited
/// for.
fn fails_in_the_middle(device: &CudaFound) -> DeviceError {
    let flights =
        flights::Flights::new("firewall_rules", &KernelOptions::default()).expect("it has a kernel");
    let mut made = opened(device, flights.kernel(), 8, Spans::default());
    let begin = Instant::now();
    loop {
        let slots = 0..8;
        let done = slots.clone().try_for_each(|slot| made.submit(slot, 32));
        let done = done.and_then(|()| slots.clone().try_for_each(|slot| made.poll(slot, true).map(|_| ())));
        if let Err(error) = done {
            break error;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing fails");
    }
}

/// The device is gone in the middle of the work, or does nothing any more.
fn in_trouble(device: &CudaFound, trouble: &str) {
    let failed = fails_in_the_middle(device);
    match (trouble.starts_with("lost"), &failed) {
        (true, DeviceError::Failed { doing, cause, .. }) => {
            assert_eq!((*doing, cause.as_str()), ("run a batch", "CUDA_ERROR_ILLEGAL_ADDRESS: on purpose"));
        }
        (false, DeviceError::Stalled { milliseconds, .. }) => has_stalled(*milliseconds),
        _ => panic!("{trouble}: {failed}"),
    }
}

/// A device that takes no further kernel.
fn begins_too_often(device: &CudaFound) {
    let flights =
        flights::Flights::new("firewall_rules", &KernelOptions::default()).expect("it has a kernel");
    let mut made = opened(device, flights.kernel(), 8, SHORT);
    let begin = Instant::now();
    let failed = loop {
        if let Err(error) = made.submit(3, 32).and_then(|()| made.poll(3, true)) {
            break error;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing fails");
    };
    let cause =
        "Imitation (CUDA 13.0) failed while it was to start a kernel: CUDA_ERROR_ILLEGAL_ADDRESS: on purpose";
    assert_eq!(failed.to_string(), cause);
}
