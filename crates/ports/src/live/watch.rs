//! Watches a port's interface: tests several times a second whether it is still there, on a thread beside the
//! packet path.

use super::clock::{Clock, MachineClock};
use super::presence::Presence;
use super::witness::Witness;
use std::fmt::Display;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

/// How often is looked.
const LOOK: Duration = Duration::from_millis(200);

/// What is looked after.
pub(super) trait Watched: Send + Sync + 'static {
    /// Looks whether the interface is there, and goes on with another if there is one.
    fn look(&self);
}

/// Starts to watch a port; ends when nobody has it any more.
///
/// # Errors
/// No further thread can be had.
pub(super) fn watch<W: Watched>(interface: &str, port: &Arc<W>) -> io::Result<()> {
    let watched = Arc::downgrade(port);
    thread::Builder::new().name(format!("port {interface}")).spawn(move || go_on(&watched))?;
    Ok(())
}

fn go_on<W: Watched>(port: &Weak<W>) {
    while let Some(port) = port.upgrade() {
        port.look();
        drop(port);
        thread::sleep(LOOK);
    }
}

/// One look: where the interface of what is held has gone, it is let go, and whatever is there of that name
/// is opened.
pub(super) fn look<H, E: Display>(
    held: &Mutex<Option<H>>,
    witness: impl FnOnce(&H) -> &Witness,
    presence: &Presence,
    open: impl FnOnce() -> Result<(H, String), E>,
) {
    let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(there) = &*held {
        if witness(there).is_there() {
            return;
        }
        // Nothing of it stays at the interface once it is said to be gone.
        *held = None;
        presence.gone(MachineClock.program());
    }
    // Whatever is in the way now, it may be gone the next time.
    match open() {
        Ok((opened, mode)) => {
            *held = Some(opened);
            presence.back(mode);
        }
        Err(error) => presence.refuse(&error),
    }
}
