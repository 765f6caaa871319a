//! A place where packets vanish, for runs that only count.

use crate::Transmit;
use packet::PortNumber;
use std::io;

/// Takes every packet and keeps none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullOut;

impl Transmit for NullOut {
    #[inline]
    fn transmit(&mut self, _: PortNumber, _: &[u8], _: u32, _: u64, _: Option<&str>) -> io::Result<()> {
        Ok(())
    }
}
