//! Which device is measured: the one that is asked for, or the best there is.

use crate::plan::DeviceChoice;
use crate::traffic::LabError;
use gpu::{CudaFound, DeviceError, OpenClDevice};

/// A device that is there.
#[derive(Clone, Debug)]
pub(crate) enum Chosen {
    /// By OpenCL.
    OpenCl(OpenClDevice),
    /// By CUDA.
    Cuda(CudaFound),
    /// Threads of this machine.
    Host,
}

impl Chosen {
    /// Looks for it.
    ///
    /// # Errors
    /// It is not there; the sentence says how to get it.
    pub(crate) fn find(choice: DeviceChoice) -> Result<Chosen, LabError> {
        let opencl = || -> Result<Chosen, DeviceError> {
            let found = gpu::opencl_devices()?.into_iter().next();
            found.map(Chosen::OpenCl).ok_or_else(|| none("OpenCL has no device", "see `clinfo`"))
        };
        let cuda = || -> Result<Chosen, DeviceError> {
            // Without its compiler a device is of no use.
            gpu::compiler_version()?;
            let found = gpu::cuda_devices()?.into_iter().next();
            found.map(Chosen::Cuda).ok_or_else(|| none("CUDA has no device", "see `nvidia-smi`"))
        };
        match choice {
            DeviceChoice::Best => Ok(cuda().or_else(|_| opencl()).unwrap_or(Chosen::Host)),
            DeviceChoice::OpenCl => opencl().map_err(|error| LabError::Device(error.to_string())),
            DeviceChoice::Cuda => cuda().map_err(|error| LabError::Device(error.to_string())),
            DeviceChoice::Host => Ok(Chosen::Host),
        }
    }

    /// What asks for it.
    pub(crate) fn choice(&self) -> DeviceChoice {
        match self {
            Chosen::OpenCl(_) => DeviceChoice::OpenCl,
            Chosen::Cuda(_) => DeviceChoice::Cuda,
            Chosen::Host => DeviceChoice::Host,
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> String {
        match self {
            Chosen::OpenCl(found) => format!("{} (OpenCL)", found.name),
            Chosen::Cuda(found) => found.full_name(),
            Chosen::Host => "threads of this machine".to_owned(),
        }
    }
}

fn none(what: &str, how: &str) -> DeviceError {
    DeviceError::Missing { what: what.to_owned(), how: how.to_owned() }
}
