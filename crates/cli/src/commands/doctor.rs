//! `ravelin doctor`; of `doctor gpu`: which devices there are, whether each does a small piece of work right,
//! and what is missing.

use crate::arguments::doctor::{DoctorArguments, DoctorSubject};
use crate::failure::Failure;
use crate::render;
use gpu::check::{self, DeviceCheck};
use gpu::{Cuda, Device, DeviceError, OpenCl, SlotMemory};
use serde::Serialize;
use std::fmt::Write;

/// Something that devices need.
#[derive(Debug, Serialize)]
struct Part {
    part: &'static str,
    /// What is there; nothing if it is missing.
    found: Option<String>,
    /// What is missing, and what to do.
    missing: Option<String>,
}

/// A device, and what came of trying it.
#[derive(Debug, Serialize)]
struct Tried {
    back_end: &'static str,
    name: String,
    accelerator: bool,
    memory_bytes: u64,
    /// What went wrong; nothing if all answers were right.
    failure: Option<String>,
    packets: u64,
    wrong: u64,
    round_trip_fastest_us: Option<f64>,
    round_trip_median_us: Option<f64>,
}

/// All of it.
#[derive(Debug, Serialize)]
struct Report {
    parts: Vec<Part>,
    devices: Vec<Tried>,
}

/// Runs the command.
pub(crate) fn run(arguments: &DoctorArguments, json: bool) -> Result<(), Failure> {
    match arguments.what {
        DoctorSubject::Gpu => devices(json),
        DoctorSubject::Trust => super::doctor_trust::run(json),
    }
}

fn devices(json: bool) -> Result<(), Failure> {
    let report = look();
    if json {
        render::json(&report)?;
    } else {
        render::text(&lines(&report))?;
    }
    let failed = report.devices.iter().filter(|device| device.failure.is_some()).count();
    if failed > 0 && !json {
        let all = report.devices.len();
        return Err(Failure::Finding(format!("{failed} of {all} devices cannot be used")));
    }
    if failed > 0 { Err(Failure::Told) } else { Ok(()) }
}

fn look() -> Report {
    let (opencl, cuda) = (gpu::opencl_devices(), gpu::cuda_devices());
    let devices = |count: usize| render::quantity::of(count as u64, "device");
    let compiler = gpu::compiler_version().map(|(major, minor)| format!("NVRTC {major}.{minor}"));
    let parts = vec![
        part("OpenCL", opencl.as_ref().map(|found| devices(found.len())).map_err(Clone::clone)),
        part("CUDA driver", cuda.as_ref().map(|found| devices(found.len())).map_err(Clone::clone)),
        part("CUDA compiler", compiler),
    ];
    let mut tried = Vec::new();
    for device in cuda.unwrap_or_default() {
        let made = Cuda::new(&device, &check::cuda_text(), check::geometry(), SlotMemory::Mapped);
        let made = made.map(|made| Box::new(made) as Box<dyn Device>);
        tried.push(attempt("cuda", device.full_name(), true, device.memory as u64, made));
    }
    for device in opencl.unwrap_or_default() {
        let made = OpenCl::new(&device, &check::opencl_text(), check::geometry(), SlotMemory::Mapped);
        let made = made.map(|made| Box::new(made) as Box<dyn Device>);
        tried.push(attempt("opencl", device.name.clone(), device.accelerator, device.memory, made));
    }
    Report { parts, devices: tried }
}

fn part(part: &'static str, found: Result<String, DeviceError>) -> Part {
    match found {
        Ok(found) => Part { part, found: Some(found), missing: None },
        Err(error) => Part { part, found: None, missing: Some(error.to_string()) },
    }
}

fn attempt(
    back_end: &'static str,
    name: String,
    accelerator: bool,
    memory_bytes: u64,
    made: Result<Box<dyn Device>, DeviceError>,
) -> Tried {
    let checked = made.and_then(|mut device| {
        // Closing a device that has failed could wait for ever.
        check::check(device.as_mut()).inspect_err(|_| std::mem::forget(device))
    });
    let microseconds = |time: std::time::Duration| time.as_nanos() as f64 / 1000.0;
    let (packets, wrong) = checked.as_ref().map_or((0, 0), |check| (check.packets, check.wrong));
    let failure = match &checked {
        Ok(DeviceCheck { wrong: 0, .. }) => None,
        Ok(_) => Some(format!(
            "{wrong} of {packets} packets came back wrong: do not use it; is its driver the newest?"
        )),
        Err(error) => Some(error.to_string()),
    };
    let round_trips = checked.as_ref().ok();
    Tried {
        back_end,
        name,
        accelerator,
        memory_bytes,
        failure,
        packets,
        wrong,
        round_trip_fastest_us: round_trips.map(|check| microseconds(check.fastest)),
        round_trip_median_us: round_trips.map(|check| microseconds(check.median)),
    }
}

fn lines(report: &Report) -> String {
    let mut text = String::new();
    for part in &report.parts {
        let said = part.found.as_ref().or(part.missing.as_ref()).map_or("", String::as_str);
        let _ = writeln!(text, "{:<14} {said}", part.part);
    }
    for device in &report.devices {
        let kind = if device.accelerator { "an accelerator" } else { "the processor itself" };
        let memory = device.memory_bytes as f64 / f64::from(1 << 30);
        let _ =
            writeln!(text, "\n{}\n  --back-end {}: {kind}, {memory:.1} GiB", device.name, device.back_end);
        match (&device.failure, device.round_trip_fastest_us, device.round_trip_median_us) {
            (None, Some(fastest), Some(median)) => {
                let _ = writeln!(
                    text,
                    "  {} packets right; a batch of 256 is away for {median:.0} µs (at best {fastest:.0} µs)",
                    device.packets
                );
            }
            (failure, ..) => {
                let _ = writeln!(text, "  {}", failure.as_deref().unwrap_or_default());
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_what_to_do_and_a_device_with_its_failure() {
        let missing = DeviceError::missing("there is no driver", "install one");
        let failed = Err(DeviceError::Stalled { device: "A".to_owned(), milliseconds: 5000 });
        let report = Report {
            parts: vec![part("OpenCL", Ok("1 device".to_owned())), part("CUDA driver", Err(missing))],
            devices: vec![attempt("opencl", "A (driver 1)".to_owned(), true, 3 << 30, failed)],
        };
        let text = "\
OpenCL         1 device
CUDA driver    there is no driver: install one

A (driver 1)
  --back-end opencl: an accelerator, 3.0 GiB
  A has not answered for 5000 ms
";
        assert_eq!(lines(&report), text);
    }
}
