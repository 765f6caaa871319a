//! Translates errors of an OpenCL driver into errors of devices.

use crate::device::DeviceError;
use opencl3::error_codes::{
    CL_INVALID_BUFFER_SIZE, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES,
    ClError,
};

/// What it means that the driver gives no memory.
pub(super) fn no_memory(device: &str, error: ClError, what: &'static str, bytes: usize) -> DeviceError {
    let device = device.to_owned();
    match error.0 {
        CL_MEM_OBJECT_ALLOCATION_FAILURE
        | CL_OUT_OF_RESOURCES
        | CL_OUT_OF_HOST_MEMORY
        | CL_INVALID_BUFFER_SIZE => DeviceError::Memory { device, what, bytes },
        _ => DeviceError::Failed { device, doing: "give memory", cause: error.to_string() },
    }
}

/// Turns what the driver says into an error of a device.
pub(super) fn failure(device: &str, doing: &'static str) -> impl Fn(ClError) -> DeviceError + use<> {
    let device = device.to_owned();
    move |error| DeviceError::Failed { device: device.clone(), doing, cause: error.to_string() }
}
