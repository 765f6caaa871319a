//! Tables on a device: images in the device's memory, and the kernel text of the functions that read them.
//!
//! Each kind of table has a module here with two halves. The one makes the image: words of 32 bits, the
//! lowest byte first, that mean the same wherever they lie. The other is text in what OpenCL C 1.2, CUDA and
//! C99 have in common; whoever prints a kernel puts a bridge before it that defines `u8`, `u16`, `u32` and
//! `u64`, `GLOBAL` (the address space of device memory), `INLINE` and `mul_high64(u64, u64)`, the upper half
//! of a product. `device/plain.h` is that bridge for C99. Every text stands alone, and all of them may stand
//! in one kernel.
//!
//! Under oclgrind 21.10 they need `-cl-opt-disable`, since it knows no funnel shifts, which its compiler
//! makes of some.
//!
//! An image is trusted as the table is that it was made from: a function reads where the words lead.

pub mod automaton;
pub mod bloom;
pub mod exact;
pub mod linear;
pub mod lpm;
pub mod patterns;
#[cfg(test)]
mod plain;
pub mod rules;

/// What every function here answers where nothing is found.
pub const NONE: u32 = u32::MAX;

/// Whole words of bytes, the lowest byte of each first.
fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}
