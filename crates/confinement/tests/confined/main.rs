//! Confined processes: what they can no longer do, what each layer is for, and that they still do their work.

#![cfg(target_os = "linux")]

mod process;
mod reading;
mod refused;
mod working;
