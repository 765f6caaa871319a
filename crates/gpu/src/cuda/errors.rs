//! Translates errors of a CUDA driver into errors of devices.

use super::found::CudaFound;
use crate::device::DeviceError;
use cudarc::driver::result::DriverError;
use cudarc::driver::sys;

/// What the driver says about an error.
pub(super) fn cause(error: DriverError) -> String {
    match (error.error_name(), error.error_string()) {
        (Ok(name), Ok(text)) => format!("{}: {}", name.to_string_lossy(), text.to_string_lossy()),
        _ => format!("error {}", error.0 as u32),
    }
}

/// Why a driver does not take what the compiler made.
pub(super) fn not_loaded(device: &CudaFound, error: DriverError) -> DeviceError {
    use sys::CUresult::{CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_UNSUPPORTED_PTX_VERSION};
    match error.0 {
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION | CUDA_ERROR_NO_BINARY_FOR_GPU => DeviceError::missing(
            &format!("the driver of {} is too old for the CUDA compiler library", device.full_name()),
            "install NVIDIA's newest driver for it, or a compiler library that is not newer than it",
        ),
        _ => failure(&device.full_name(), "load the kernel")(error),
    }
}

/// Why there is no memory.
pub(super) fn no_memory(device: &str, error: DriverError, what: &'static str, bytes: usize) -> DeviceError {
    match error.0 {
        sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
            DeviceError::Memory { device: device.to_owned(), what, bytes }
        }
        _ => failure(device, "give memory")(error),
    }
}

/// Turns what the driver says into an error of a device.
pub(super) fn failure(device: &str, doing: &'static str) -> impl Fn(DriverError) -> DeviceError + use<> {
    let device = device.to_owned();
    move |error| DeviceError::Failed { device: device.clone(), doing, cause: cause(error) }
}
