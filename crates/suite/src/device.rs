//! The device that tests have everywhere: the OpenCL driver for CPUs (PoCL).

use gpu::OpenClDevice;
use std::time::Duration;

/// PoCL, or another OpenCL driver that runs on the host itself.
///
/// # Panics
/// There is none.
pub fn pocl() -> OpenClDevice {
    let devices = gpu::opencl_devices().unwrap_or_else(|error| panic!("{error}"));
    devices.into_iter().find(|device| !device.accelerator).expect("there is an OpenCL driver for processors")
}

/// How long a device that threads imitate may need for packets where nothing is to fail: the machine may have
/// no time for these threads.
pub const PATIENCE: Duration = Duration::from_secs(60);
