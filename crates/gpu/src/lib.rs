//! Devices: what runs a program's kernel over a batch of packets, beside the host.
//!
//! A [`Device`] holds the tables' images and a few slots. A slot is filled by the host, handed over with
//! [`Device::submit`], and read when [`Device::poll`] says that it is done. What the words in a slot mean is
//! the kernel's business.

#![deny(unsafe_code)]

pub mod check;
mod cuda;
mod device;
mod fault;
mod host;
mod opencl;
mod pages;
pub mod ring;
pub mod watch;

pub use cuda::{
    Code, Cuda, CudaFound, CudaPersistent, Spans, compile as compile_cuda, compiler_version,
    devices as cuda_devices, needs as cuda_needs, open as open_cuda, pings as cuda_pings,
};
pub use device::{Device, DeviceError, Geometry, Input, Parts, Setup, SlotMemory, SlotOutput, Submission};
pub use fault::{FaultyDevice, Trouble};
pub use host::{Host, HostLane, HostWarp, WARP};
pub use opencl::{
    OpenCl, OpenClDevice, Persistent as OpenClPersistent, Serving, devices as opencl_devices,
    open as open_opencl,
};
