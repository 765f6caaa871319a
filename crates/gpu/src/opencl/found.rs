//! Finds the OpenCL devices of the machine.

use crate::device::DeviceError;
use opencl3::platform::get_platforms;
use std::sync::{Mutex, PoisonError};

/// A device that was found.
#[derive(Clone, Debug)]
pub struct OpenClDevice {
    /// Its name, with that of its driver.
    pub name: String,
    /// Whether it is a graphics card or other accelerator, not the host itself.
    pub accelerator: bool,
    /// Its memory, in bytes.
    pub memory: u64,
    pub(super) id: usize,
}

/// Every OpenCL device of this machine, accelerators first.
///
/// # Errors
/// The library is not there, or knows no platform.
pub fn devices() -> Result<Vec<OpenClDevice>, DeviceError> {
    // Some drivers (PoCL 3.1) begin when they are first asked, and answer wrongly, or crash, if two threads
    // ask at that time.
    static ONE_ASKS: Mutex<()> = Mutex::new(());
    let _one = ONE_ASKS.lock().unwrap_or_else(PoisonError::into_inner);
    let platforms = get_platforms().map_err(|error| match error.0 {
        -2000 => DeviceError::missing(
            "there is no OpenCL library (libOpenCL.so.1)",
            "install the loader, on Debian `ocl-icd-libopencl1`, and a driver, for processors `pocl-opencl-icd`",
        ),
        -1001 => DeviceError::missing(
            "the OpenCL library knows no driver",
            "install the graphics card's, or for processors `pocl-opencl-icd`",
        ),
        _ => DeviceError::missing(&format!("the OpenCL library does not answer ({error})"), "see `clinfo`"),
    })?;
    let mut found = Vec::new();
    for platform in platforms {
        let Ok(ids) = platform.get_devices(opencl3::device::CL_DEVICE_TYPE_ALL) else { continue };
        for id in ids {
            let device = opencl3::device::Device::new(id);
            let name = device.name().unwrap_or_default();
            let version = device.driver_version().unwrap_or_default();
            let kind = device.dev_type().unwrap_or_default();
            let platform = platform.name().unwrap_or_default();
            found.push(OpenClDevice {
                name: format!("{} ({platform} {version})", name.trim()),
                accelerator: kind & opencl3::device::CL_DEVICE_TYPE_CPU == 0,
                memory: device.global_mem_size().unwrap_or_default(),
                id: id as usize,
            });
        }
    }
    found.sort_by_key(|device| !device.accelerator);
    if found.is_empty() {
        return Err(DeviceError::missing("OpenCL has no device", "see `clinfo`"));
    }
    Ok(found)
}
