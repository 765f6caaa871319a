//! Where kernels run and what time it is: real devices and the machine's clock, or what a test makes up.

use crate::plan::DeviceChoice;
use crate::traffic::LabError;
use crate::transfer::Chosen;
use exec::kernel::{Dialect, Kernel};
use gpu::{Device, DeviceError, Geometry, Setup, SlotMemory, Submission};
use lang::ir::Program;
use std::time::{Duration, Instant};

/// Something that makes devices for kernels.
pub trait DeviceSource {
    /// The device's name, with that of its driver.
    fn name(&self) -> String;

    /// The model alone.
    fn model(&self) -> String;

    /// The ways in which its slots may lie in memory; what it refuses is left out.
    fn memories(&self) -> &'static [SlotMemory];

    /// The ways in which two batches may follow each other.
    fn submissions(&self) -> &'static [Submission];

    /// How long each of so many words is on its way to a kernel that runs, and back.
    ///
    /// # Errors
    /// That is not measured on such a device, or it fails.
    fn pings(&self, words: u32) -> Result<Vec<Duration>, DeviceError> {
        let _ = words;
        Err(no_pings())
    }

    /// Makes a device for a program's kernel; `ports` is what the program was loaded with.
    ///
    /// # Errors
    /// The kernel does not build, or there is no memory.
    fn open(
        &self,
        kernel: &Kernel,
        program: (&Program, u16),
        geometry: Geometry,
        setup: Setup,
    ) -> Result<Box<dyn Device>, DeviceError>;
}

/// What time it is.
pub trait LabClock {
    /// Time since some beginning.
    fn now(&self) -> Duration;

    /// Lets so much time pass.
    fn wait(&self, time: Duration);

    /// Hears that the processor has run so many packets. Real clocks know that time has passed.
    fn ran(&self, packets: usize) {
        let _ = packets;
    }
}

/// The device that is asked for.
///
/// # Errors
/// It is not there; the sentence says what is missing and how to get it.
pub fn find(choice: DeviceChoice) -> Result<Box<dyn DeviceSource>, LabError> {
    Ok(Box::new(Chosen::find(choice)?))
}

impl DeviceSource for Chosen {
    fn name(&self) -> String {
        Chosen::name(self)
    }

    fn model(&self) -> String {
        match self {
            Chosen::OpenCl(found) => found.name.split(" (").next().unwrap_or_default().to_owned(),
            Chosen::Cuda(found) => found.name.clone(),
            Chosen::Host => "threads".to_owned(),
        }
    }

    fn memories(&self) -> &'static [SlotMemory] {
        match self {
            Chosen::Host => &[SlotMemory::Pageable],
            Chosen::OpenCl(_) | Chosen::Cuda(_) => &SlotMemory::ALL,
        }
    }

    fn submissions(&self) -> &'static [Submission] {
        match self {
            Chosen::Host => &[Submission::Queued],
            Chosen::OpenCl(_) | Chosen::Cuda(_) => {
                &[Submission::Queued, Submission::Streams(2), Submission::Graph]
            }
        }
    }

    fn pings(&self, words: u32) -> Result<Vec<Duration>, DeviceError> {
        match self {
            Chosen::Cuda(found) => gpu::cuda_pings(found, words),
            Chosen::OpenCl(_) | Chosen::Host => Err(no_pings()),
        }
    }

    fn open(
        &self,
        kernel: &Kernel,
        (program, ports): (&Program, u16),
        geometry: Geometry,
        setup: Setup,
    ) -> Result<Box<dyn Device>, DeviceError> {
        let text = |dialect: Dialect| offload::text(kernel, dialect, setup.submission);
        Ok(match self {
            Chosen::OpenCl(found) => gpu::open_opencl(found, &text(Dialect::OpenCl), geometry, setup)?,
            Chosen::Cuda(found) => gpu::open_cuda(found, &text(Dialect::Cuda), geometry, setup)?,
            Chosen::Host if setup.submission == Submission::Persistent => {
                let what = "threads of this machine have no kernel that keeps running".to_owned();
                return Err(DeviceError::Missing { what, how: "submit one behind the other".to_owned() });
            }
            Chosen::Host => Box::new(offload::host(kernel, program, ports, geometry)?),
        })
    }
}

fn no_pings() -> DeviceError {
    let what = "a word is sent to and fro by CUDA alone".to_owned();
    DeviceError::Missing { what, how: "ask for an NVIDIA device".to_owned() }
}

/// The machine's clock.
pub struct Wall(Instant);

impl Wall {
    /// Begins now.
    pub fn new() -> Wall {
        Wall(Instant::now())
    }
}

impl Default for Wall {
    fn default() -> Wall {
        Wall::new()
    }
}

/// A sleep may take so much longer than it was to.
const OVERSLEPT: Duration = Duration::from_micros(200);

impl LabClock for Wall {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn wait(&self, time: Duration) {
        let until = self.now() + time;
        if time > OVERSLEPT {
            std::thread::sleep(time - OVERSLEPT);
        }
        while self.now() < until {
            std::hint::spin_loop();
        }
    }
}
