//! A process that is confined.

use crate::Layer;

/// Says that this process is confined: every layer of its role was applied and, where Linux tells, seen to be
/// there.
#[derive(Debug)]
pub struct Locked {
    layers: Vec<Layer>,
}

impl Locked {
    #[cfg(target_os = "linux")]
    pub(crate) fn with(layers: Vec<Layer>) -> Self {
        Self { layers }
    }

    /// The layers that it has.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }
}
