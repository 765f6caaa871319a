//! Finds the CUDA devices of the machine, and their abilities.

#![allow(unsafe_code)]

use super::errors::cause;
use crate::device::{DeviceError, Setup, SlotMemory, Submission};
use crate::study::{GRAPH, PAGEABLE, PINNED, REGISTERED};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

/// The first version of CUDA whose drivers make graphs as we ask for them.
const GRAPHS: u32 = 11_040;
/// The first version of CUDA whose drivers tell times as we ask for them.
const TIMES: u32 = 12_080;

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
    /// Whether it reaches the host's memory.
    pub(super) maps: bool,
    /// Whether that can be memory of ours.
    pub(super) registers: bool,
    /// The number of its multiprocessors, each of which runs blocks of threads.
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

/// Every CUDA device of this machine.
///
/// # Errors
/// The driver's library is not there, does not begin, or knows no device.
pub fn devices() -> Result<Vec<CudaFound>, DeviceError> {
    // SAFETY: loads a library of the driver, whose initialisation asks nothing of us.
    if !unsafe { sys::is_culib_present() } {
        return Err(DeviceError::missing(
            "there is no CUDA driver (libcuda.so.1)",
            "install NVIDIA's driver for the graphics card, on Debian `nvidia-driver` and `libcuda1`",
        ));
    }
    let silent = |error: DriverError| {
        DeviceError::missing(
            &format!("the CUDA driver does not answer ({})", cause(error)),
            "see `nvidia-smi`",
        )
    };
    result::init().map_err(silent)?;
    let mut version = 0;
    // SAFETY: the version is written to a number that is ours.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(silent)?;
    let count = result::device::get_count().map_err(silent)?;
    if count == 0 {
        return Err(DeviceError::missing("CUDA has no device", "see `nvidia-smi`"));
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

/// Whether a device and its driver can do what is wanted.
pub(super) fn can(device: &CudaFound, setup: &Setup) -> Result<(), DeviceError> {
    let name = device.full_name();
    let reaches = match setup.memory {
        SlotMemory::Mapped => device.maps,
        PAGEABLE | PINNED => true,
        REGISTERED => device.maps && device.registers,
    };
    if !reaches {
        let what = format!("{name} does not reach {} memory of the processor", setup.memory);
        return Err(DeviceError::missing(&what, "copy from pinned memory"));
    }
    let newer = "install NVIDIA's newest driver for it";
    match setup.submission {
        GRAPH if device.driver < GRAPHS => {
            Err(DeviceError::missing(&format!("the driver of {name} is too old for graphs"), newer))
        }
        GRAPH if setup.memory == PAGEABLE => {
            Err(DeviceError::missing("a graph does not copy from pageable memory", "use pinned memory"))
        }
        Submission::Persistent => Err(DeviceError::missing(
            "a kernel that takes whole batches does not keep running",
            "submit to streams",
        )),
        _ if setup.timed && device.driver < TIMES => {
            Err(DeviceError::missing(&format!("the driver of {name} is too old to tell times"), newer))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::errors::not_loaded;
    use super::*;
    use crate::study::MEMORIES;

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

    #[test]
    fn what_a_device_cannot_do_is_said_before_anything_is_made() {
        let able = CudaFound::imagined(13_000, true);
        let said = |device: &CudaFound, memory, submission, timed| {
            can(device, &Setup { memory, submission, timed }).err().map(|error| error.to_string())
        };
        let queued = Submission::Queued;
        for memory in MEMORIES {
            assert_eq!(said(&able, memory, queued, true), None, "{memory}");
        }
        assert_eq!(said(&able, PINNED, GRAPH, false), None);
        let graph = said(&able, PAGEABLE, GRAPH, false).expect("it is refused");
        assert_eq!(graph, "a graph does not copy from pageable memory: use pinned memory");

        let old = CudaFound::imagined(11_030, false);
        assert_eq!(said(&old, SlotMemory::Mapped, queued, false), None);
        let registered = said(&old, REGISTERED, queued, false).expect("it is refused");
        assert!(registered.contains("does not reach registered memory"), "{registered}");
        let graph = said(&old, PINNED, GRAPH, false).expect("it is refused");
        assert!(graph.contains("too old for graphs"), "{graph}");
        let times = said(&old, PINNED, queued, true).expect("it is refused");
        assert!(times.contains("too old to tell times"), "{times}");
        let code =
            not_loaded(&old, DriverError(sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION)).to_string();
        assert!(code.starts_with("the driver of imagined (CUDA 11.3) is too old for the CUDA"), "{code}");
    }
}
