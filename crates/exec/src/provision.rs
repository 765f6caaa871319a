//! Memory of exact tables that the system provides before packets run.
//!
//! Linux gives memory where it is first written, in large pages, and clears each: a machine that has to find
//! a page takes milliseconds for that. Keys come in no order, so that the first few thousand entries of a
//! table would wait for nearly all of its pages, and packets with them.

use crate::backend::Backend;
use ir::footprint::footprint;
use ir::{Program, TableKind};

/// Provides the memory of those exact tables that `which` names by their numbers, the first ones first, as
/// far as they fit into so many bytes. What is beyond them takes its memory when it is used, as a table does
/// that nobody fills.
pub fn provide(program: &Program, bytes: u64, backend: &mut dyn Backend, which: impl Fn(u32) -> bool) {
    let mut left = bytes;
    for ((index, table), taken) in (0..).zip(&program.tables).zip(footprint(program)) {
        let bytes = taken.bytes - taken.shared;
        if table.kind == TableKind::Exact && bytes <= left && which(index) {
            backend.touch(index, table.capacity.into());
            left -= bytes;
        }
    }
}
