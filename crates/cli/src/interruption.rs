//! Ctrl-C and SIGTERM for commands that have something to finish: the first signal is noted, the second ends
//! the process at once.

use crate::failure::Failure;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Notes signals from here on, instead of ending at the first.
pub(crate) fn heed() -> Result<(), Failure> {
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag not set yet.
        flag::register_conditional_shutdown(signal, 128 + signal, ASKED.clone())
            .and_then(|_| flag::register(signal, ASKED.clone()))
            .map_err(|error| Failure::Finding(format!("signals: {error}")))?;
    }
    Ok(())
}

/// Whether the user has asked for the end.
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
