//! The CUDA back end on an imitation of NVIDIA's libraries: memory, copies, kernels and waiting in their right order, and results as the interpreter's.

mod flights;

use engine::offload::{Offloaded, geometry};
use exec::kernel::{Dialect, Options};
use exec::offload::Offload;
use exec::{BackEnd, Processor, Room};
use gpu::{Cuda, CudaFound, DeviceError, Memory, Setup, Submission, check};
use packet::BATCH;
use packet::generate::Profile;
use std::process::Command;
use suite::corpus::{root, shipped};
use suite::sighting::{SEED, see, see_on};
use suite::traffic::traffic;

const PORTS: u16 = 5;
/// Tells the libraries where they may write; set in the processes that are to use them.
const FOLDER: &str = "RAVELIN_CUDA_FOLDER";
/// After how many kernels the device is lost.
const LAUNCHES: &str = "RAVELIN_CUDA_LAUNCHES";

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
        cc.args(["-w", "-O1", "-fPIC", "-shared", "-o"]).arg(folder.join(library)).arg(&source);
        let Ok(built) = cc.status() else {
            println!("skipped: there is no `cc` (on Debian: apt-get install gcc g++)");
            return;
        };
        assert!(built.success(), "{library} does not build");
    }
    let own = std::env::current_exe().expect("a test has a file");
    let run = |lost: Option<&str>| {
        let mut command = Command::new(&own);
        command.args(["--exact", "programs_mean_the_same_on_an_imitated_device", "--nocapture"]);
        command.env(FOLDER, &folder).env("LD_LIBRARY_PATH", &folder);
        if let Some(after) = lost {
            command.env(LAUNCHES, after);
        }
        let run = command.output().expect("it starts");
        let said = [run.stdout, run.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        assert!(run.status.success(), "{}\n{}", said[0], said[1]);
    };
    run(None);
    run(Some("3"));
    let _ = std::fs::remove_dir_all(&folder);
}

fn on_the_imitation() {
    let device = gpu::cuda_devices().unwrap_or_else(|error| panic!("{error}")).remove(0);
    assert_eq!((device.full_name().as_str(), device.capability), ("Imitation (CUDA 13.0)", 90));
    let lost = std::env::var_os(LAUNCHES).is_some();
    for memory in [Memory::Mapped, Memory::Pageable] {
        if !lost {
            let mut made =
                Cuda::new(&device, &check::cuda_text(), check::geometry(), memory).expect("it builds");
            assert_eq!(check::check(&mut made).expect("it runs").wrong, 0, "{memory:?}");
        }
        for name in ["firewall_rules", "lpm", "mac_switch", "vxlan_gateway"] {
            one(name, &device, memory, lost);
        }
    }
    if !lost {
        ladder(&device);
    }
}

/// Every step of the ladder, with slots under way out of step.
fn ladder(device: &CudaFound) {
    let submissions = [Submission::Serial, Submission::Queued, Submission::Streams(2), Submission::Graph];
    for name in ["firewall_rules", "router"] {
        let mut flights = flights::Flights::new(name, &Options::default()).expect("it has a kernel");
        let text = flights.kernel().text(Dialect::Cuda);
        let geometry = geometry(flights.kernel(), 300, 3);
        for (memory, submission) in Memory::ALL.into_iter().flat_map(|m| submissions.map(|s| (m, s))) {
            let setup = Setup { memory, submission, timed: true };
            match Cuda::new(device, &text, geometry, setup) {
                Ok(mut made) => {
                    let without = flights.agree(&format!("{name}, {memory}, {submission}"), &mut made);
                    // A graph tells no times, and full batches are graphs.
                    assert_eq!(without > 0, submission == Submission::Graph, "{memory}, {submission}");
                }
                Err(DeviceError::Missing { what, .. }) => {
                    assert_eq!((memory, submission), (Memory::Pageable, Submission::Graph), "{what}");
                }
                Err(error) => panic!("{name}, {memory}, {submission}: {error}"),
            }
        }
    }
    for submission in submissions {
        let setup = Setup { memory: Memory::Pinned, submission, timed: false };
        let geometry = gpu::Geometry { slots: 3, ..check::geometry() };
        let mut made = Cuda::new(device, &check::cuda_text(), geometry, setup).expect("it opens");
        flights::patches(&submission.to_string(), &mut made);
    }
    let large = gpu::Geometry { packets: 65_536, stride: 2048, slots: 64, ..check::geometry() };
    let refused = Cuda::new(device, &check::cuda_text(), large, Memory::Pinned).map(|_| ()).unwrap_err();
    assert!(matches!(refused, DeviceError::Memory { bytes, .. } if bytes > 8 << 30), "{refused}");
}

fn one(name: &str, device: &CudaFound, memory: Memory, lost: bool) {
    let program = shipped(&format!("{name}.rav"));
    let arrivals = traffic(Profile::sample1(), 4_000, PORTS, 3);
    let offload = Offload::new(&program, PORTS, SEED, &Options::default()).expect("it has a kernel");
    let mut offloaded = Offloaded::on_cuda(offload, device, memory, Room::BATCH)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let seen = see_on(&program, &mut offloaded, &arrivals, BATCH);
    let judge = see(&program, BackEnd::Interpreter, &arrivals, PORTS, BATCH).expect("it loads");
    assert_eq!(seen.difference(&judge), None, "{name}, {memory:?}");
    let on = offloaded.on_device().expect("it is on a device");
    let cause =
        "Imitation (CUDA 13.0) failed while it was to start a batch: CUDA_ERROR_ILLEGAL_ADDRESS: on purpose";
    assert_eq!(on.failure.as_deref(), lost.then_some(cause), "{name}, {memory:?}");
    let by_kernel = on.tally.device + on.tally.again + on.tally.changed;
    assert!(lost || by_kernel > 1_000, "{name}, {memory:?}: {:?}", on.tally);
}
