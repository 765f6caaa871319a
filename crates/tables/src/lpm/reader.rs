//! Lookups while the table changes: a handle for each reading thread.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::{ArcSwap, Cache};

#[cfg(feature = "fastest")]
use super::bulk::Method;
use super::epoch::{Epochs, leave};
use super::lookup::Snapshot;

/// The image that a table has at the moment; another takes its place when it must grow.
pub(super) struct Current(Arc<ArcSwap<Snapshot>>);

impl Current {
    pub(super) fn new(snapshot: Arc<Snapshot>) -> Current {
        Current(Arc::new(ArcSwap::new(snapshot)))
    }

    /// Another image takes its place.
    pub(super) fn store(&self, snapshot: Arc<Snapshot>) {
        self.0.store(snapshot);
    }
}

/// One thread's way to look up in a table that another thread changes. It never waits for the writer, and
/// each answer is one that the table as a whole gave at some moment of the lookup.
pub struct LpmReader {
    image: Cache<Arc<ArcSwap<Snapshot>>, Arc<Snapshot>>,
    epochs: Arc<Epochs>,
    pin: Arc<AtomicU64>,
}

impl LpmReader {
    pub(super) fn new(current: &Current, epochs: Arc<Epochs>) -> LpmReader {
        let pin = epochs.join();
        LpmReader { image: Cache::new(Arc::clone(&current.0)), epochs, pin }
    }

    /// Begins a batch of lookups. While it lasts the table keeps what it might look at, so keep it short.
    #[inline]
    pub fn pin(&mut self) -> Pinned<'_> {
        self.epochs.enter(&self.pin);
        Pinned { image: self.image.load(), pin: &self.pin }
    }

    /// The value of the longest prefix that contains `address`, or [`NONE`](super::NONE).
    pub fn find(&mut self, address: u128) -> u32 {
        self.pin().find(address)
    }

    /// The same in a table of at most 32 bits.
    pub fn find32(&mut self, address: u32) -> u32 {
        self.pin().find32(address)
    }

    /// Looks up all `addresses` of a table at most 32 bits wide; `out[i]` becomes the answer to
    /// `addresses[i]`, as far as both reach.
    #[cfg(feature = "fastest")]
    pub fn find_bulk32(&mut self, addresses: &[u32], out: &mut [u32]) {
        self.pin().find_bulk32(addresses, out);
    }

    /// Looks up all `addresses`; `out[i]` becomes the answer to `addresses[i]`, as far as both reach.
    #[cfg(feature = "fastest")]
    pub fn find_bulk128(&mut self, addresses: &[u128], out: &mut [u32]) {
        self.pin().find_bulk128(addresses, out);
    }
}

impl Drop for LpmReader {
    fn drop(&mut self) {
        self.epochs.part(&self.pin);
    }
}

/// A batch of lookups; it ends when this is dropped.
pub struct Pinned<'a> {
    image: &'a Snapshot,
    pin: &'a AtomicU64,
}

impl Pinned<'_> {
    /// The value of the longest prefix that contains `address`, or [`NONE`](super::NONE).
    #[inline]
    pub fn find(&self, address: u128) -> u32 {
        self.image.view().find(address)
    }

    /// The same in a table of at most 32 bits.
    #[inline]
    pub fn find32(&self, address: u32) -> u32 {
        self.image.view().find32(address)
    }

    /// Looks up all `addresses` of a table at most 32 bits wide; `out[i]` becomes the answer to
    /// `addresses[i]`, as far as both reach.
    #[cfg(feature = "fastest")]
    pub fn find_bulk32(&self, addresses: &[u32], out: &mut [u32]) {
        self.image.view().find_bulk32(Method::best(), addresses, out);
    }

    /// Looks up all `addresses`; `out[i]` becomes the answer to `addresses[i]`, as far as both reach.
    #[cfg(feature = "fastest")]
    pub fn find_bulk128(&self, addresses: &[u128], out: &mut [u32]) {
        self.image.view().find_bulk128(Method::best(), addresses, out);
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        leave(self.pin);
    }
}
