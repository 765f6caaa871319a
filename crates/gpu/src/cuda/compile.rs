//! Compiles CUDA text by NVIDIA's compiler library (NVRTC), which is loaded when it is needed.
//!
//! Code for exactly the device at hand needs no newer driver than the device itself. Where the compiler is
//! older than the device, it writes PTX for the newest device it knows, which the driver translates.

use crate::device::DeviceError;
use cudarc::nvrtc::result::{self, NvrtcError};
use cudarc::nvrtc::sys;
use std::collections::VecDeque;
use std::ffi::{CString, c_char};
use std::sync::{Mutex, PoisonError};

/// Code that a driver can load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// Machine code of one kind of device.
    Machine(Vec<u8>),
    /// PTX, with a zero at its end.
    Ptx(Vec<u8>),
}

impl Code {
    /// The bytes to load.
    pub fn image(&self) -> &[u8] {
        match self {
            Code::Machine(image) | Code::Ptx(image) => image,
        }
    }
}

fn find() -> Result<(), DeviceError> {
    // SAFETY: loads a library, whose initialisation asks nothing of us.
    match unsafe { sys::is_culib_present() } {
        true => Ok(()),
        false => Err(DeviceError::missing(
            "there is no CUDA compiler library (libnvrtc.so)",
            "install NVIDIA's toolkit or the Python package `nvidia-cuda-nvrtc`, and put the library's folder into LD_LIBRARY_PATH",
        )),
    }
}

fn silent(error: NvrtcError) -> DeviceError {
    DeviceError::missing(
        &format!("the CUDA compiler library does not answer ({error})"),
        "install another version of it",
    )
}

/// The compiler's version: major and minor.
///
/// # Errors
/// It is not there.
pub fn compiler_version() -> Result<(u32, u32), DeviceError> {
    find()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both numbers are ours.
    unsafe { sys::nvrtcVersion(&mut major, &mut minor) }.result().map_err(silent)?;
    Ok((major as u32, minor as u32))
}

/// The last texts that were built, each with the capability that it was built for.
static BUILT: Mutex<VecDeque<(String, u32, Code)>> = Mutex::new(VecDeque::new());
/// How many are kept.
const KEPT: usize = 32;

/// Builds the code of a text for a device of this compute capability, 10 × major + minor. The last few are
/// kept: whoever tries sizes and setups of a device builds the same text many times, which takes the compiler
/// up to seconds.
///
/// # Errors
/// The compiler is not there, knows no device as old as this one, or refuses the text.
pub fn compile(text: &str, capability: u32) -> Result<Code, DeviceError> {
    let kept = || BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let known = |(known, built_for, _): &&(String, u32, Code)| known == text && *built_for == capability;
    if let Some((.., code)) = kept().iter().find(known) {
        return Ok(code.clone());
    }
    let code = code_of(text, capability)?;
    let mut kept = kept();
    if kept.len() == KEPT {
        kept.pop_front();
    }
    kept.push_back((text.to_owned(), capability, code.clone()));
    Ok(code)
}

fn code_of(text: &str, capability: u32) -> Result<Code, DeviceError> {
    let (program, exact) = build(text, capability, &[])?;
    if !exact {
        // SAFETY: the program lives until the end of this function.
        return unsafe { result::get_ptx(program.0) }.map(|text| Code::Ptx(bytes(text))).map_err(silent);
    }
    let mut length = 0;
    // SAFETY: as above; the length is ours.
    unsafe { sys::nvrtcGetCUBINSize(program.0, &mut length) }.result().map_err(silent)?;
    let mut image: Vec<c_char> = vec![0; length];
    // SAFETY: as above; the image has the room that was asked for.
    unsafe { sys::nvrtcGetCUBIN(program.0, image.as_mut_ptr()) }.result().map_err(silent)?;
    Ok(Code::Machine(bytes(image)))
}

/// What the compiler says of the registers and the memory that a text needs a thread, on a device of this
/// compute capability.
///
/// # Errors
/// As for [`compile`].
pub fn needs(text: &str, capability: u32) -> Result<String, DeviceError> {
    let (program, _) = build(text, capability, &["--ptxas-options=-v"])?;
    log(&program).map_err(silent)
}

/// A text that has been compiled, and whether for exactly this device.
fn build(text: &str, capability: u32, options: &[&str]) -> Result<(Program, bool), DeviceError> {
    find()?;
    let (target, exact) = target(&known()?, capability).ok_or_else(|| {
        DeviceError::missing(
            &format!("the CUDA compiler library knows no device of compute capability {capability} or below"),
            "install an older version of it",
        )
    })?;
    let refused =
        |log: String| DeviceError::Build { device: format!("compute capability {capability}"), log };
    let source = CString::new(text).map_err(|error| refused(error.to_string()))?;
    let program = Program(result::create_program(&source, Some(c"kernel.cu")).map_err(silent)?);
    let device = format!("--gpu-architecture={}_{target}", if exact { "sm" } else { "compute" });
    let options: Vec<&str> = options.iter().copied().chain([&*device]).collect();
    // SAFETY: the program lives until the end of this function, and the source longer.
    if let Err(error) = unsafe { result::compile_program(program.0, &options) } {
        let log = log(&program).unwrap_or_default();
        return Err(refused(if log.is_empty() { error.to_string() } else { log }));
    }
    Ok((program, exact))
}

/// What was said of a text.
fn log(program: &Program) -> Result<String, NvrtcError> {
    // SAFETY: the program lives as long as this function.
    let log = unsafe { result::get_program_log(program.0) }?;
    Ok(String::from_utf8_lossy(&bytes(log)).trim_end_matches(['\0', '\n']).to_owned())
}

/// A text that the compiler holds.
struct Program(sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: it was made once and is given back once.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

/// Which of the compiler's targets code is made for, and whether it is the device itself.
fn target(known: &[u32], capability: u32) -> Option<(u32, bool)> {
    let newest = known.iter().copied().filter(|known| *known <= capability).max()?;
    Some((newest, newest == capability))
}

/// The compute capabilities that the compiler knows.
fn known() -> Result<Vec<u32>, DeviceError> {
    let mut count = 0;
    // SAFETY: the number is ours.
    unsafe { sys::nvrtcGetNumSupportedArchs(&mut count) }.result().map_err(silent)?;
    let mut known = vec![0; count.max(0) as usize];
    // SAFETY: the list has the room that was asked for.
    unsafe { sys::nvrtcGetSupportedArchs(known.as_mut_ptr()) }.result().map_err(silent)?;
    Ok(known.into_iter().map(|capability| capability as u32).collect())
}

fn bytes(chars: Vec<c_char>) -> Vec<u8> {
    chars.into_iter().map(|char| char as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_for_the_device_or_for_the_newest_that_the_compiler_knows_below_it() {
        let known = [75, 80, 90, 100];
        assert_eq!(target(&known, 90), Some((90, true)));
        assert_eq!(target(&known, 89), Some((80, false)));
        assert_eq!(target(&known, 120), Some((100, false)));
        assert_eq!(target(&known, 70), None);
    }

    #[test]
    fn a_text_becomes_code_or_a_sentence() {
        let right = "extern \"C\" __global__ void run_packets(unsigned *to) { to[threadIdx.x] = 1; }";
        if compiler_version().is_err() {
            let sentence = compile(right, 90).expect_err("there is no compiler").to_string();
            assert!(sentence.contains("libnvrtc") && sentence.contains("LD_LIBRARY_PATH"), "{sentence}");
            return;
        }
        let code = compile(right, 90).expect("it is right");
        assert!(matches!(&code, Code::Machine(image) if image.starts_with(b"\x7fELF")), "{code:?}");
        let newer = compile(right, 999).expect("it is right");
        assert!(matches!(&newer, Code::Ptx(text) if text.ends_with(b"\0") && text.len() > 100), "{newer:?}");
        let sentence =
            compile("extern \"C\" __global__ void run_packets() { nothing; }", 90).expect_err("it is wrong");
        assert!(sentence.to_string().contains("kernel.cu(1)"), "{sentence}");
    }
}
