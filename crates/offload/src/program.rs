//! A program for a device and the host: its kernel, which the device runs, and its native code, which runs on
//! the host what the device cannot.
//!
//! A device runs every packet on the tables as they were when the packet was submitted. The result is right
//! as long as nothing has changed what the packet reads: an earlier packet, a timer, or the control plane. So
//! the host commits packets one by one, in order of arrival. Before each packet, the host handles what is due
//! by the packet's time. Then the host applies the packet's recorded effects and its verdict. If the device
//! could not finish the packet, or if an entry that the packet looked up has changed, the host runs the
//! packet again from its beginning. So the outcome is the same as if the host had run every packet.

mod commit;
mod gather;
mod images;

use self::images::Sent;
pub use self::images::{DeviceImageError, ImageChanges, ImageUpdate};
use exec::kernel::{Kernel, KernelOptions, NoKernel};
use exec::native::Native;
use exec::{DeviceTally, LoadError};
pub use gather::Whole;
use ir::Program;
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
