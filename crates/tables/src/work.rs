//! Counts in tests what a change does: words, entries and rules that it writes, and those that it passes
//! over.

#[cfg(test)]
thread_local! {
    static DONE: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// So many words were written, or prefixes passed over.
#[inline(always)]
pub(crate) fn note(steps: usize) {
    #[cfg(test)]
    DONE.with(|done| done.set(done.get() + steps as u64));
    #[cfg(not(test))]
    let _ = steps;
}

/// How many this thread has noted so far.
#[cfg(test)]
pub(crate) fn done() -> u64 {
    DONE.with(std::cell::Cell::get)
}
