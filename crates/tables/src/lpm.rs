//! Longest-prefix tables: their interface, results and errors.
//!
//! Two implementations give the same answers. [`LpmTable`] is the fast one: a flat image that one thread
//! changes while others look up in it through a `LpmReader`; `LpmModel` is an ordered map, easy to
//! believe, and judges the other. The idea and the bytes of the image are taught in `docs/tables/lpm.md`.

#[cfg(feature = "fastest")]
mod bulk;
mod codes;
#[cfg(feature = "fastest")]
mod dir24_8;
mod epoch;
#[cfg(feature = "device")]
mod image;
mod layout;
mod lookup;
#[cfg(feature = "reference")]
mod model;
mod most;
mod nodes;
#[cfg(feature = "fastest")]
mod reader;
mod routes;
mod spec;
mod table;
#[cfg(not(feature = "fastest"))]
mod tree_alone;
mod trie;
#[cfg(feature = "fastest")]
mod vector;
#[cfg(all(feature = "fastest", target_arch = "x86_64"))]
mod walk512;
mod words;

#[cfg(test)]
mod tests;

#[cfg(feature = "fastest")]
pub use bulk::Method;
#[cfg(feature = "device")]
pub use image::{LpmImage, LpmImageError};
#[cfg(feature = "reference")]
pub use model::LpmModel;
#[cfg(feature = "fastest")]
pub use reader::{LpmReader, Pinned};
pub use spec::{LpmBuildError, LpmInsertError, LpmSpec, LpmSpecError, MAX_CAPACITY, MAX_WIDTH, NONE, Prefix};
pub use table::{LpmTable, Variant};

/// A longest-prefix table. An address is a number of the table's width; bits above the width are ignored.
pub trait Lpm {
    /// Puts `prefix` in with `value`, or gives it that value; the value it had before.
    fn insert(&mut self, prefix: Prefix, value: u32) -> Result<Option<u32>, LpmInsertError>;
    /// Takes `prefix` out; the value it had.
    fn remove(&mut self, prefix: Prefix) -> Option<u32>;
    /// The value of the longest prefix that contains `address`.
    fn find(&self, address: u128) -> Option<u32>;
    /// The longest prefix that contains `address`, and its value.
    fn find_entry(&self, address: u128) -> Option<(Prefix, u32)> {
        self.find_past(address, &|_| false)
    }
    /// The longest prefix that contains `address` and is not passed over, and its value.
    fn find_past(&self, address: u128, over: &dyn Fn(Prefix) -> bool) -> Option<(Prefix, u32)>;
    /// All prefixes with their values, ascending by bits, then length.
    fn entries(&self) -> Vec<(Prefix, u32)> {
        self.entries_from(Prefix { bits: 0, length: 0 }).collect()
    }
    /// The same from `first` on, be it there or not; it begins at once, however many stand before.
    fn entries_from(&self, first: Prefix) -> impl Iterator<Item = (Prefix, u32)>;
    /// How many prefixes there are.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
