//! A device as the experiment uses it.

use crate::device_run::DeviceSource;
use gpu::Setup;

/// A device, and how it is used.
pub struct Used<'a> {
    /// What rows call it; without a comma.
    pub name: String,
    /// The device.
    pub device_source: &'a dyn DeviceSource,
    /// Memory and submission.
    pub setup: Setup,
    /// The most packets that go over together.
    pub most: usize,
    /// Whether it is wanted of Hermes to be better than the fixed batch on it: it has more time for the two.
    pub wanted: bool,
}
