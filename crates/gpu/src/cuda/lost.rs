//! Remembers which devices have failed or hung in this process. A driver reports an error again and again for
//! as long as the process lives, and opening a device beside a kernel that never ends could take as long; so
//! they are not opened again.

use super::found::CudaFound;
use crate::device::DeviceError;
use std::sync::{Mutex, MutexGuard, PoisonError};

static LOST: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// Nothing is half done while it is held, whatever its holder has met.
fn lost() -> MutexGuard<'static, Vec<i32>> {
    LOST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device is not to be opened in this process any more.
pub(super) fn lose(ordinal: i32) {
    let mut lost = lost();
    if !lost.contains(&ordinal) {
        lost.push(ordinal);
    }
}

/// Refuses a device that failed or hung.
///
/// # Errors
/// It did.
pub(super) fn refuse(device: &CudaFound) -> Result<(), DeviceError> {
    if !lost().contains(&device.ordinal) {
        return Ok(());
    }
    let what = format!(
        "{} has failed or hung, and its driver keeps that for as long as this process",
        device.full_name()
    );
    Err(DeviceError::missing(&what, "start Ravelin again to use it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_was_lost_is_refused_and_others_are_not() {
        // Numbers that no device of a machine has.
        let [one, other] = [-2, -3].map(|ordinal| CudaFound { ordinal, ..CudaFound::imagined(13_000, true) });
        assert_eq!(refuse(&one), Ok(()));
        lose(one.ordinal);
        lose(one.ordinal);
        let sentence = refuse(&one).expect_err("it is lost").to_string();
        assert!(sentence.starts_with("imagined (CUDA 13.0) has failed or hung"), "{sentence}");
        assert!(sentence.ends_with("start Ravelin again to use it"), "{sentence}");
        assert_eq!(refuse(&other), Ok(()));
    }
}
