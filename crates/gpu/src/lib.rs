//! Devices: accelerators that run a kernel over many packets at once, beside the host. In this crate, a
//! *kernel* is a program for a device.
//!
//! A [`Device`] holds images of tables and a few slots. The host fills a slot, submits it with
//! [`Device::submit`], and reads its results when [`Device::poll`] says that they are there. This crate knows
//! neither programs nor packets: the kernel gives the words in a slot their meaning.

#![deny(unsafe_code)]

pub mod check;
mod cuda;
mod device;
mod fault;
mod host;
mod number;
mod opencl;
pub mod ring;
pub mod study;
pub mod watch;

pub use cuda::{
    Code, Cuda, CudaFound, CudaPersistent, Spans, compile as compile_cuda, compiler_version,
    devices as cuda_devices, needs as cuda_needs, open as open_cuda,
};
pub use device::{Device, DeviceError, Geometry, Input, Parts, Setup, SlotMemory, SlotOutput, Submission};
pub use fault::{FaultyDevice, Trouble};
pub use host::{Host, HostLane, HostWarp, WARP};
pub use opencl::{
    OpenCl, OpenClDevice, Persistent as OpenClPersistent, Serving, devices as opencl_devices,
    open as open_opencl,
};
