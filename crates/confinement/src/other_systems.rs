//! What is said on systems other than Linux: no layer can be had there.

use crate::{Layer, Locked, Missing, Role};

const WHY: &str = "only Linux has it";

/// Fails: no layer can be had on this system.
///
/// # Errors
/// Always, with the first layer.
pub fn lock(_role: Role, _without: &[Layer]) -> Result<Locked, Missing> {
    Err(Missing::new(Layer::UserNamespace, WHY))
}

/// Says of every layer that it cannot be had on this system.
#[must_use]
pub fn probe() -> Vec<(Layer, Result<(), String>)> {
    Layer::ALL.into_iter().map(|layer| (layer, Err(WHY.to_owned()))).collect()
}
