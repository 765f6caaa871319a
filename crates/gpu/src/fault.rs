//! A device that fails on purpose, for tests: it passes all calls to another device until it is to fail.

use crate::device::{Device, DeviceError, Geometry, Input, Parts, SlotOutput};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// There is no memory for a table.
    NoMemory,
    /// A batch is not taken.
    Refused,
    /// The device is gone while a batch is under way.
    Lost,
    /// A batch never comes back.
    Stalled,
    /// A batch is taken, and from then on the device says nothing any more of any.
    Silent,
    /// The device is reset, whatever it is asked for at that time, and knows nothing any more.
    Reset,
}

/// A device that fails.
pub struct FaultyDevice<D> {
    inner: D,
    trouble: Trouble,
    /// Batches that still go well; tables for [`Trouble::NoMemory`], calls of any kind for
    /// [`Trouble::Reset`].
    left: u64,
    is_silent: bool,
}

impl<D: Device> FaultyDevice<D> {
    /// `inner`, until so many batches (tables for [`Trouble::NoMemory`], calls for [`Trouble::Reset`]) have
    /// gone well; after that everything fails.
    pub fn after(inner: D, trouble: Trouble, left: u64) -> FaultyDevice<D> {
        FaultyDevice { inner, trouble, left, is_silent: false }
    }

    /// Whether it is time to fail, asked where something is done that counts.
    fn is_time(&mut self) -> bool {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                false
            }
            None => true,
        }
    }

    /// Fails if it has been reset, or is now.
    fn is_whole(&mut self, doing: &'static str) -> Result<(), DeviceError> {
        match self.trouble == Trouble::Reset && self.is_time() {
            true => Err(self.failed(doing, "reset on purpose")),
            false => Ok(()),
        }
    }

    fn failed(&self, doing: &'static str, cause: &str) -> DeviceError {
        DeviceError::Failed { device: self.inner.name(), doing, cause: cause.to_owned() }
    }
}

impl<D: Device> Device for FaultyDevice<D> {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn workers(&self) -> usize {
        self.inner.workers()
    }

    fn upload(&mut self, table: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.is_whole("copy a table")?;
        if self.trouble == Trouble::NoMemory && self.is_time() {
            let device = self.inner.name();
            return Err(DeviceError::Memory { device, what: "a table", bytes: 4 * words.len() });
        }
        self.inner.upload(table, words)
    }

    fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.is_whole("copy a table")?;
        self.inner.patch(table, first, words)
    }

    fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError> {
        self.is_whole("lend a batch")?;
        self.inner.input(slot)
    }

    fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
        self.is_whole("start a batch")?;
        if self.trouble == Trouble::Refused && self.is_time() {
            return Err(self.failed("start a batch", "refused on purpose"));
        }
        if self.trouble == Trouble::Silent && self.is_time() {
            self.is_silent = true;
            return Ok(());
        }
        self.inner.submit(slot, packets)
    }

    fn poll(&mut self, slot: usize, wait: bool) -> Result<bool, DeviceError> {
        self.is_whole("run a batch")?;
        if self.is_silent {
            return match wait {
                true => Err(DeviceError::Stalled { device: self.inner.name(), milliseconds: 0 }),
                false => Ok(false),
            };
        }
        let done = self.inner.poll(slot, wait)?;
        let fails = matches!(self.trouble, Trouble::Lost | Trouble::Stalled) && done && self.is_time();
        match self.trouble {
            Trouble::Lost if fails => Err(self.failed("run a batch", "lost on purpose")),
            Trouble::Stalled if fails => {
                Err(DeviceError::Stalled { device: self.inner.name(), milliseconds: 0 })
            }
            _ => Ok(done),
        }
    }

    fn parts(&self, slot: usize) -> Option<Parts> {
        self.inner.parts(slot)
    }

    fn output(&mut self, slot: usize) -> Result<SlotOutput<'_>, DeviceError> {
        self.is_whole("lend what came back")?;
        self.inner.output(slot)
    }

    fn give_up(self: Box<Self>, cause: &DeviceError) {
        Box::new(self.inner).give_up(cause);
    }
}
