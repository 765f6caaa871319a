//! The bytes that collections of the standard library allocate, so that tables can report their memory.
//!
//! The layouts are those of the standard library that this crate is compiled with; a test compares them with
//! an allocator that counts.

/// Entries of a node of an ordered map, and the fewest that any but the root has.
const NODE: usize = 11;
const LEAST: usize = 5;

/// Bytes of what a vector holds, its spare room included.
pub fn vector<T>(vector: &Vec<T>) -> u64 {
    (vector.capacity() * size_of::<T>()) as u64
}

/// Bytes of a vector that has grown one by one to so many items: at most as many again are spare, and at
/// first there is room for four.
pub fn grown<T>(items: u64) -> u64 {
    if items == 0 { 0 } else { items.saturating_mul(2).max(4).saturating_mul(size_of::<T>() as u64) }
}

/// Bytes of a hash map of so many entries from which none has been taken.
pub fn hash_map<K, V>(entries: u64) -> u64 {
    let buckets = match entries {
        0 => return 0,
        1..4 => 4,
        4..8 => 8,
        _ => entries.saturating_mul(8).div_ceil(7).checked_next_power_of_two().unwrap_or(u64::MAX),
    };
    // Beside each bucket a byte, and one vector of these more.
    let control = buckets.saturating_add(16);
    buckets.saturating_mul(size_of::<(K, V)>() as u64).next_multiple_of(16).saturating_add(control)
}

/// Bytes of an ordered map of so many entries that was made of all of them at once, in order.
pub fn ordered<K, V>(entries: u64) -> u64 {
    nodes::<K, V>(entries, NODE as u64)
}

/// The most bytes of an ordered map of so many entries, whatever came and went.
pub fn ordered_at_most<K, V>(entries: u64) -> u64 {
    nodes::<K, V>(entries, LEAST as u64)
}

/// Bytes of an ordered map whose nodes have so many entries each.
fn nodes<K, V>(entries: u64, full: u64) -> u64 {
    if entries == 0 {
        return 0;
    }
    let align = align_of::<K>().max(align_of::<V>()).max(align_of::<usize>());
    // Entries, a pointer to the parent, the place there, and the count; an inner node has a pointer to each
    // child, too.
    let leaf = ((size_of::<K>() + size_of::<V>()) * NODE + size_of::<usize>() + 4).next_multiple_of(align);
    let inner = (leaf + (NODE + 1) * size_of::<usize>()).next_multiple_of(align);
    // Of every entry in an inner node one child follows, and one more stands before all of them.
    let mut level = entries.saturating_add(1).div_ceil(full + 1);
    let mut bytes = level.saturating_mul(leaf as u64);
    while level > 1 {
        level = level.div_ceil(full + 1);
        bytes = bytes.saturating_add(level.saturating_mul(inner as u64));
    }
    bytes
}

/// Makes room for so many more items; where there is none, for an eighth more than there are, instead of as
/// many again.
pub(crate) fn room<T>(vector: &mut Vec<T>, more: usize) {
    if vector.capacity() - vector.len() < more {
        vector.reserve_exact(more.max(vector.len() / 8));
    }
}

/// The most bytes of a vector that grew so, of which so many are in use.
pub(crate) fn roomy(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 8)
}
