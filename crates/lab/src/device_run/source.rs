//! Where an experiment gets its devices: the devices of this machine, or those that a test imitates.

use crate::device_workload::PORTS;
use crate::plan::DeviceChoice;
use crate::traffic::LabError;
use exec::kernel::{Dialect, Kernel};
use gpu::{
    CudaFound, Device, DeviceError, Geometry, Host, OpenClDevice, Setup, SlotMemory, Submission, study,
};
use ir::Program;
use std::time::Duration;

/// The code of a kernel, in the forms that devices take.
pub trait KernelCode {
    /// The text, for this kind of submission.
    fn text(&self, dialect: Dialect, submission: Submission) -> String;

    /// The host device with this kernel.
    ///
    /// # Errors
    /// The machine gives no thread.
    fn host(&self, geometry: Geometry) -> Result<Host, DeviceError>;
}

/// The kernel of a program that was loaded with [`PORTS`] ports.
pub(crate) struct ProgramCode<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) program: &'a Program,
}

impl KernelCode for ProgramCode<'_> {
    fn text(&self, dialect: Dialect, submission: Submission) -> String {
        offload::text(self.kernel, dialect, submission)
    }

    fn host(&self, geometry: Geometry) -> Result<Host, DeviceError> {
        offload::host(self.kernel, self.program, PORTS, geometry)
    }
}

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

    /// Makes a device for a kernel.
    ///
    /// # Errors
    /// The kernel does not build, or there is no memory.
    fn open(
        &self,
        code: &dyn KernelCode,
        geometry: Geometry,
        setup: Setup,
    ) -> Result<Box<dyn Device>, DeviceError>;
}

/// The device that is asked for.
///
/// # Errors
/// It is not there; the sentence says what is missing and how to get it.
pub fn find(choice: DeviceChoice) -> Result<Box<dyn DeviceSource>, LabError> {
    Ok(Box::new(ChosenDevice::find(choice)?))
}

/// A device that is there.
#[derive(Clone, Debug)]
pub(crate) enum ChosenDevice {
    /// By OpenCL.
    OpenCl(OpenClDevice),
    /// By CUDA.
    Cuda(CudaFound),
    /// Threads of this machine.
    Host,
}

impl ChosenDevice {
    /// Looks for the device that is asked for.
    ///
    /// # Errors
    /// It is not there; the sentence says how to get it.
    pub(crate) fn find(choice: DeviceChoice) -> Result<ChosenDevice, LabError> {
        let opencl = || -> Result<ChosenDevice, DeviceError> {
            let found = gpu::opencl_devices()?.into_iter().next();
            found
                .map(ChosenDevice::OpenCl)
                .ok_or_else(|| DeviceError::missing("OpenCL has no device", "see `clinfo`"))
        };
        let cuda = || -> Result<ChosenDevice, DeviceError> {
            // Without its compiler a device is of no use.
            gpu::compiler_version()?;
            let found = gpu::cuda_devices()?.into_iter().next();
            found
                .map(ChosenDevice::Cuda)
                .ok_or_else(|| DeviceError::missing("CUDA has no device", "see `nvidia-smi`"))
        };
        match choice {
            DeviceChoice::Best => Ok(cuda().or_else(|_| opencl()).unwrap_or(ChosenDevice::Host)),
            DeviceChoice::OpenCl => opencl().map_err(|error| LabError::Device(error.to_string())),
            DeviceChoice::Cuda => cuda().map_err(|error| LabError::Device(error.to_string())),
            DeviceChoice::Host => Ok(ChosenDevice::Host),
        }
    }

    /// What asks for it.
    pub(crate) fn choice(&self) -> DeviceChoice {
        match self {
            ChosenDevice::OpenCl(_) => DeviceChoice::OpenCl,
            ChosenDevice::Cuda(_) => DeviceChoice::Cuda,
            ChosenDevice::Host => DeviceChoice::Host,
        }
    }
}

impl DeviceSource for ChosenDevice {
    fn name(&self) -> String {
        match self {
            ChosenDevice::OpenCl(found) => format!("{} (OpenCL)", found.name),
            ChosenDevice::Cuda(found) => found.full_name(),
            ChosenDevice::Host => "threads of this machine".to_owned(),
        }
    }

    fn model(&self) -> String {
        match self {
            ChosenDevice::OpenCl(found) => found.name.split(" (").next().unwrap_or_default().to_owned(),
            ChosenDevice::Cuda(found) => found.name.clone(),
            ChosenDevice::Host => "threads".to_owned(),
        }
    }

    fn memories(&self) -> &'static [SlotMemory] {
        match self {
            ChosenDevice::Host => &[study::PAGEABLE],
            ChosenDevice::OpenCl(_) | ChosenDevice::Cuda(_) => &study::MEMORIES,
        }
    }

    fn submissions(&self) -> &'static [Submission] {
        match self {
            ChosenDevice::Host => &[Submission::Queued],
            ChosenDevice::OpenCl(_) | ChosenDevice::Cuda(_) => {
                &[Submission::Queued, Submission::Streams(2), study::GRAPH]
            }
        }
    }

    fn pings(&self, words: u32) -> Result<Vec<Duration>, DeviceError> {
        match self {
            ChosenDevice::Cuda(found) => gpu::study::cuda_pings(found, words),
            ChosenDevice::OpenCl(_) | ChosenDevice::Host => Err(no_pings()),
        }
    }

    fn open(
        &self,
        code: &dyn KernelCode,
        geometry: Geometry,
        setup: Setup,
    ) -> Result<Box<dyn Device>, DeviceError> {
        let text = |dialect: Dialect| code.text(dialect, setup.submission);
        Ok(match self {
            ChosenDevice::OpenCl(found) => gpu::open_opencl(found, &text(Dialect::OpenCl), geometry, setup)?,
            ChosenDevice::Cuda(found) => gpu::open_cuda(found, &text(Dialect::Cuda), geometry, setup)?,
            ChosenDevice::Host if setup.submission == Submission::Persistent => {
                let what = "threads of this machine have no kernel that keeps running";
                return Err(DeviceError::missing(what, "submit one behind the other"));
            }
            ChosenDevice::Host => Box::new(code.host(geometry)?),
        })
    }
}

fn no_pings() -> DeviceError {
    DeviceError::missing("a word is sent to and fro by CUDA alone", "ask for an NVIDIA device")
}
