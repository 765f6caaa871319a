//! CUDA text as PTX, made by clang without anything of NVIDIA's.

use std::fs;
use std::path::Path;
use std::process::Command;

/// What clang does not know of CUDA without its headers.
const WORDS: &str = "\
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __forceinline__ inline __attribute__((always_inline))
#define __umul64hi(a, b) __nvvm_mulhi_ull(a, b)
struct places { unsigned x; };
#define threadIdx (places{(unsigned)__nvvm_read_ptx_sreg_tid_x()})
#define blockIdx (places{(unsigned)__nvvm_read_ptx_sreg_ctaid_x()})
#define blockDim (places{(unsigned)__nvvm_read_ptx_sreg_ntid_x()})
static __device__ __forceinline__ unsigned __ballot_sync(unsigned lanes, int holds)
{
    unsigned word;
    asm volatile(\"{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, %2; }\"
                 : \"=r\"(word) : \"r\"(holds), \"r\"(lanes));
    return word;
}
static __device__ __forceinline__ unsigned __shfl_sync(unsigned lanes, unsigned number, int lane)
{
    unsigned said;
    asm volatile(\"shfl.sync.idx.b32 %0, %1, %2, 31, %3;\" : \"=r\"(said) : \"r\"(number), \"r\"(lane), \"r\"(lanes));
    return said;
}
static __device__ __forceinline__ void __syncwarp() { asm volatile(\"bar.warp.sync 0xffffffff;\" ::: \"memory\"); }
static __device__ __forceinline__ void __nanosleep(unsigned time) { asm volatile(\"nanosleep.u32 %0;\" :: \"r\"(time)); }
";

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
