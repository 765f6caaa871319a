//! Which CUDA devices there are, and what they can.

#![allow(unsafe_code)]

use super::cause;
use crate::device::DeviceError;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

/// A device that was found.
#[derive(Clone, Debug)]
pub struct CudaFound {
    /// Its name.
    pub name: String,
    /// The newest version of CUDA that its driver knows: 1000 × major + 10 × minor.
    pub driver: u32,
    /// Its memory, in bytes.
    pub memory: usize,
    /// Its compute capability: 10 × major + minor.
    pub capability: u32,
    pub(super) ordinal: i32,
    /// Whether it reaches the processor's memory.
    pub(super) maps: bool,
    /// Whether that can be memory of ours.
    pub(super) registers: bool,
    /// Its processors, each of which runs blocks of threads.
    pub(super) processors: u32,
    /// Whether a kernel can ask for all its blocks to run at once.
    pub(super) together: bool,
}

impl CudaFound {
    /// The name, with that of its driver.
    pub fn full_name(&self) -> String {
        format!("{} (CUDA {}.{})", self.name, self.driver / 1000, self.driver % 1000 / 10)
    }

    /// One that is not there, whose driver is for this version of CUDA.
    #[cfg(test)]
    pub(super) fn imagined(driver: u32, registers: bool) -> CudaFound {
        let name = "imagined".to_owned();
        let (maps, together) = (true, true);
        CudaFound {
            name,
            driver,
            memory: 1 << 30,
            capability: 90,
            ordinal: 0,
            maps,
            registers,
            processors: 2,
            together,
        }
    }
}

pub(super) fn missing(what: &str, how: &str) -> DeviceError {
    DeviceError::Missing { what: what.to_owned(), how: how.to_owned() }
}

/// Every CUDA device of this machine.
///
/// # Errors
/// The driver's library is not there, does not begin, or knows no device.
pub fn devices() -> Result<Vec<CudaFound>, DeviceError> {
    // SAFETY: loads a library of the driver, whose initialisation asks nothing of us.
    if !unsafe { sys::is_culib_present() } {
        return Err(missing(
            "there is no CUDA driver (libcuda.so.1)",
            "install NVIDIA's driver for the graphics card, on Debian `nvidia-driver` and `libcuda1`",
        ));
    }
    let silent = |error: DriverError| {
        missing(&format!("the CUDA driver does not answer ({})", cause(error)), "see `nvidia-smi`")
    };
    result::init().map_err(silent)?;
    let mut version = 0;
    // SAFETY: the version is written to a number that is ours.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(silent)?;
    let count = result::device::get_count().map_err(silent)?;
    if count == 0 {
        return Err(missing("CUDA has no device", "see `nvidia-smi`"));
    }
    (0..count).map(|ordinal| found(ordinal, version as u32)).collect::<Result<_, _>>().map_err(silent)
}

fn found(ordinal: i32, driver: u32) -> Result<CudaFound, DriverError> {
    use sys::CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY as MAPS,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
        CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH as TOGETHER,
        CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED as REGISTERS,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT as PROCESSORS,
    };
    let device = result::device::get(ordinal)?;
    // SAFETY: the device is one that the driver has just named.
    let attribute = |which| unsafe { result::device::get_attribute(device, which) };
    // SAFETY: as above.
    let memory = unsafe { result::device::total_mem(device) }?;
    Ok(CudaFound {
        name: result::device::get_name(device)?,
        driver,
        memory,
        capability: (10 * attribute(MAJOR)? + attribute(MINOR)?) as u32,
        ordinal,
        maps: attribute(MAPS)? != 0,
        // Drivers older than the attribute do not know it.
        registers: attribute(REGISTERS).unwrap_or(0) != 0,
        processors: attribute(PROCESSORS)?.max(1) as u32,
        together: attribute(TOGETHER).unwrap_or(0) != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_listed_or_a_sentence_says_what_is_missing() {
        match devices() {
            Ok(devices) => assert!(devices.iter().all(|device| device.capability >= 50 && device.memory > 0)),
            Err(error) => {
                assert!(matches!(error, DeviceError::Missing { .. }), "{error:?}");
                let sentence = error.to_string();
                assert!(sentence.contains("CUDA") && sentence.contains(": "), "{sentence}");
            }
        }
    }
}
