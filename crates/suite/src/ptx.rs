//! CUDA text as PTX, made by clang without anything of NVIDIA's.

use std::fs;
use std::path::Path;
use std::process::Command;

/// What clang does not know of CUDA without its headers.
const WORDS: &str = include_str!("ptx.h");

/// The first line of what clang says of its version; none where there is no clang.
pub fn compiler() -> Option<String> {
    let output = Command::new("clang").arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

/// The PTX of a CUDA text for devices of compute capability 7.5; the text is put into `file`, and more beside
/// it.
///
/// # Errors
/// What clang says, warnings included.
pub fn of(text: &str, file: &Path) -> Result<String, String> {
    let (words, made) = (file.with_extension("h"), file.with_extension("ptx"));
    let written = fs::write(&words, WORDS).and_then(|()| fs::write(file, text));
    written.map_err(|error| error.to_string())?;
    let output = Command::new("clang")
        .args([
            "-x",
            "cuda",
            "--cuda-device-only",
            "--cuda-gpu-arch=sm_75",
            "-nocudainc",
            "-nocudalib",
            "-S",
            "-O2",
        ])
        .args([
            "-Wall",
            "-Werror",
            "-Wno-unused-label",
            "-Wno-unused-variable",
            "-Wno-unused-but-set-variable",
        ])
        .args(["-Wno-unused-function", "-Wno-unknown-cuda-version", "-include"])
        .args([&words, file])
        .arg("-o")
        .arg(&made)
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(said.lines().take(12).collect::<Vec<_>>().join("\n"));
    }
    fs::read_to_string(made).map_err(|error| error.to_string())
}
