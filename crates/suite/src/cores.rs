//! Work for every core of the machine.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Does something with each of these, the last first, on every core of the machine.
///
/// # Panics
/// With all complaints, if there are any.
pub fn each<T: Send>(of: Vec<T>, check: impl Fn(&T) -> Result<(), String> + Sync) {
    let (waiting, wrong) = (Mutex::new(of), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = held(&waiting).pop();
                    let Some(next) = next else { return };
                    if let Err(complaint) = check(&next) {
                        held(&wrong).push(complaint);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
