//! A program whose packets a device runs first: what goes over with a batch, and what is done with what comes
//! back, in arrival order.
//!
//! A device runs every packet over the tables as they lay on it when its batch went over. That is what the
//! program means as long as nothing has changed what the packet reads: an earlier packet, time, or somebody
//! outside. So packets are committed one by one: before each, what is due by its time is handled; its
//! recorded effects are done and its verdict holds, unless it asked to be run again or what it asked tables
//! for has changed. Then the host runs it from its beginning, and the outcome is the one of running
//! everything there.

mod commit;
mod gather;
mod images;

use self::images::Sent;
pub use self::images::{DeviceImageError, ImageChanges, ImageUpdate};
pub use commit::Returned;
use exec::kernel::{Kernel, KernelOptions, NoKernel};
use exec::native::Native;
use exec::{DeviceTally, LoadError};
pub use gather::Whole;
use lang::ir::Program;
use tables::device::exact::DeviceExact;

/// A program on the host, with its kernel.
pub struct Offload {
    native: Native,
    kernel: Kernel,
    /// How the tables were when their words last went to the device.
    sent: Vec<Option<Sent>>,
    /// Images of exact tables that have gone over.
    mirrors: Vec<Option<DeviceExact>>,
    tally: DeviceTally,
    /// The latest time that went over.
    latest: u64,
    /// Packets that went over since words of a table last did.
    since: u64,
}

/// Why a program is not run on a device.
#[derive(Debug, thiserror::Error)]
pub enum OffloadError {
    /// It cannot be loaded at all.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It has no kernel.
    #[error(transparent)]
    NoKernel(#[from] NoKernel),
}

impl Offload {
    /// Loads a program for the host and makes its kernel; see [`exec::load()`] for the arguments.
    ///
    /// # Errors
    /// It cannot be loaded, or no packet of it can be finished on a device.
    pub fn new(
        program: &Program,
        ports: u16,
        seed: u64,
        options: &KernelOptions,
    ) -> Result<Offload, OffloadError> {
        let kernel = Kernel::new(program, ports, options)?;
        let native = Native::new(program, ports, seed)?;
        let sent = vec![None; kernel.plan.tables.len()];
        let mirrors = vec![None; kernel.plan.tables.len()];
        Ok(Offload { native, kernel, sent, mirrors, tally: DeviceTally::default(), latest: 0, since: 0 })
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The program on the host.
    pub fn backend(&mut self) -> &mut Native {
        &mut self.native
    }

    /// The program on the host, to be asked.
    pub fn as_backend(&self) -> &Native {
        &self.native
    }

    /// How packets went so far.
    pub fn tally(&self) -> DeviceTally {
        self.tally
    }

    /// Counts packets that the host ran, step by step.
    pub fn ran_here(&mut self, packets: usize) {
        self.tally.host += packets as u64;
    }

    /// Counts packets that the device had when it was given up.
    pub fn took_back(&mut self, packets: usize) {
        self.tally.taken_back += packets as u64;
    }

    /// Counts that packets were handed to the device.
    pub fn handed(&mut self) {
        self.tally.handed += 1;
    }
}
