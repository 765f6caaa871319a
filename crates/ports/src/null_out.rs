//! The sink that discards packets, for runs that only count.

use crate::{Departure, Transmit};
use std::io;

/// Takes every packet and keeps none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullOut;

impl Transmit for NullOut {
    #[inline]
    fn transmit(&mut self, _: &Departure<'_>) -> io::Result<()> {
        Ok(())
    }
}
