//! Host functions for tables of prefixes, rules and patterns, meters, registers, pools and groups.
//!
//! # Safety
//! As in [`super::host`], only compiled code may call the unsafe functions of this file. Every pointer that
//! it hands over is valid during the call: the context with which it was called, and words on its own
//! stack, as many as the key, item or member has.

use super::call::{Context, MOST_FOUND};
use super::host::{found, host_functions};
use super::words::{Pair, split, whole};
use crate::pack::MAX_WORDS;
use crate::state::ProgramState;
use crate::state::rows::{RowHit, Rows};
use crate::state::table_set::Fast;
use ::tables::exact::Learned;
use ir::Entry;

host_functions! {
    FREE = free(context, table, wanted) -> 1;
    LEARN_RELEASING = learn_releasing(context, table, key, value) -> 1;
    REMOVE_RELEASING = remove_releasing(context, table, key) -> 0;
    END_AFTER = end_after(context, table, key, after) -> 0;
    PREFIX32 = prefix32(context, place, address) -> 1;
    PREFIX = prefix(context, place, key) -> 1;
    RULE = rule(context, place, key) -> 1;
    SCAN_FIRST = scan_first(context, place, start, end) -> 1;
    SCAN_ALL = scan_all(context, place, start, end) -> 1;
    SCAN_SET = scan_set(context, place, start, end) -> 2;
    INSERT = insert(context, placement, values) -> 1;
    WITHDRAW = withdraw(context, placement, values) -> 0;
    MARK = mark(context, meter, cell, before) -> 1;
    READ_REGISTER = read_register(context, register, cell) -> 1;
    WRITE_REGISTER = write_register(context, register, cell, value) -> 0;
    TAKE = take(context, pool, hint) -> 1;
    GIVE = give(context, pool, item) -> 0;
    CHOOSE = choose(context, group, index, hash) -> 1;
    MEMBER = member(context, group, index, place) -> 1;
    JOIN = join(context, group, index, values) -> 1;
    LEAVE = leave(context, group, index, values) -> 0;
}

unsafe extern "C" fn free(context: *mut Context<'_>, table: u64, wanted: u64) -> u64 {
    // SAFETY: as for `raise`.
    unsafe { &mut *context }.state().free_for(table as u32, wanted as usize) as u64
}

unsafe extern "C" fn learn_releasing(
    context: *mut Context<'_>,
    table: u64,
    key: *const u64,
    value: *const u64,
) -> u64 {
    // SAFETY: as for `prefix32`; key and value have as many words as the table's packings.
    let (context, key, value) = unsafe {
        let context = &mut *context;
        let shape = &(&(*context.state).tables.shapes)[table as usize];
        let key = std::slice::from_raw_parts(key, shape.key.words);
        (context, key, std::slice::from_raw_parts(value, shape.value.words))
    };
    let now = context.now;
    let state = context.state();
    state.now = now;
    u64::from(state.learn_releasing(table as u32, key, value) != Learned::Refused)
}

unsafe extern "C" fn remove_releasing(context: *mut Context<'_>, table: u64, key: *const u64) {
    // SAFETY: as for `learn_releasing`.
    let (context, key) = unsafe {
        let context = &mut *context;
        let words = (&(*context.state).tables.shapes)[table as usize].key.words;
        (context, std::slice::from_raw_parts(key, words))
    };
    context.state().remove_releasing(table as u32, key);
}

unsafe extern "C" fn end_after(context: *mut Context<'_>, table: u64, key: *const u64, after: u64) {
    // SAFETY: as for `learn_releasing`.
    let (context, key) = unsafe {
        let context = &mut *context;
        let words = (&(*context.state).tables.shapes)[table as usize].key.words;
        (context, std::slice::from_raw_parts(key, words))
    };
    let now = context.now;
    let state = context.state();
    state.now = now;
    state.end_after(table as u32, key, after);
}

unsafe extern "C" fn prefix32(context: *mut Context<'_>, place: u64, address: u64) -> *const u64 {
    // SAFETY: as for `raise`; nothing else refers to the state during this call.
    let (state, hit) = unsafe { (&mut *(*context).state, hit(context)) };
    let prefixes = &mut state.tables.prefixes[place as usize];
    let row = prefixes.find32(address as u32);
    let row = (row != ::tables::lpm::NONE).then_some(row);
    row_of(prefixes.rows_mut(), row, hit)
}

unsafe extern "C" fn prefix(context: *mut Context<'_>, place: u64, key: *const u64) -> *const u64 {
    // SAFETY: as for `prefix32`; the key has as many words as its columns apart.
    let (state, hit, key) = unsafe {
        let state = &mut *(*context).state;
        let words = state.tables.prefixes[place as usize].key_words();
        (state, hit(context), std::slice::from_raw_parts(key, words))
    };
    let prefixes = &mut state.tables.prefixes[place as usize];
    let address = prefixes.address_of(key);
    let row = prefixes.find(address);
    row_of(prefixes.rows_mut(), row, hit)
}

unsafe extern "C" fn rule(context: *mut Context<'_>, place: u64, key: *const u64) -> *const u64 {
    // SAFETY: as for `prefix`.
    let (state, hit, key) = unsafe {
        let state = &mut *(*context).state;
        let words = state.tables.rules[place as usize].key_words();
        (state, hit(context), std::slice::from_raw_parts(key, words))
    };
    let rules = &mut state.tables.rules[place as usize];
    let row = rules.find_value(key);
    let row = (row != ::tables::rules::NONE).then_some(row);
    row_of(rules.rows_mut(), row, hit)
}

/// The packet of a context as one that finds an entry.
///
/// # Safety
/// The context is the one that compiled code was called with.
unsafe fn hit(context: *const Context<'_>) -> RowHit {
    // SAFETY: compiled code waits, and nobody else refers to these two numbers.
    unsafe { RowHit { bytes: (*context).wire, time: (*context).now } }
}

/// The address of a row's words, which is never zero, not even for a row without words; zero if there is no
/// row.
fn row_of(rows: &mut Rows, row: Option<u32>, hit: RowHit) -> *const u64 {
    let Some(row) = row else { return std::ptr::null() };
    rows.count(row, hit);
    rows.words(row).as_ptr()
}

/// The context's state and its packet as one that finds an entry, and the packet's bytes from `start` up to
/// `end`, limited to the captured ones.
///
/// # Safety
/// The context is the one that compiled code was called with, and the caller drops what it gets before it
/// returns to compiled code.
unsafe fn scanned<'a>(
    context: *mut Context<'_>,
    start: u64,
    end: u64,
) -> (&'a mut ProgramState<Fast>, RowHit, &'a [u8]) {
    // SAFETY: as for `raise`; compiled code leaves the frame and its length in the context before it calls;
    // state and frame are different objects, and the caller lets go of both before it returns.
    let (state, hit, packet) = unsafe {
        let packet: &[u8] = if (*context).frame.is_null() {
            &[]
        } else {
            std::slice::from_raw_parts((*context).frame, (*context).captured as usize)
        };
        (&mut *(*context).state, hit(context), packet)
    };
    let end = (end as usize).min(packet.len());
    (state, hit, packet.get(start as usize..end).unwrap_or_default())
}

unsafe extern "C" fn scan_first(context: *mut Context<'_>, place: u64, start: u64, end: u64) -> *const u64 {
    // SAFETY: as for `raise`.
    let (state, hit, bytes) = unsafe { scanned(context, start, end) };
    let set = &mut state.tables.patterns[place as usize];
    match set.first(bytes, hit) {
        Some(row) => set.rows().words(row).as_ptr(),
        None => std::ptr::null(),
    }
}

unsafe extern "C" fn scan_all(context: *mut Context<'_>, place: u64, start: u64, end: u64) -> u64 {
    // SAFETY: as for `raise`.
    let (state, hit, bytes) = unsafe { scanned(context, start, end) };
    state.tables.patterns[place as usize].all(bytes, hit).into()
}

unsafe extern "C" fn scan_set(context: *mut Context<'_>, place: u64, start: u64, end: u64) -> Pair {
    // SAFETY: as for `raise`.
    let (state, hit, bytes) = unsafe { scanned(context, start, end) };
    split(state.tables.patterns[place as usize].set(bytes, hit))
}

unsafe extern "C" fn insert(context: *mut Context<'_>, number: u64, values: *const [u64; 2]) -> u64 {
    // SAFETY: as for `raise`; compiled code passes the key's values and then one a value column.
    let (context, values) = unsafe {
        let context = &mut *context;
        let placement = &context.placements[number as usize];
        let columns = (&(*context.state).tables.shapes)[placement.table as usize].value.places.len();
        (context, std::slice::from_raw_parts(values, placement.made_of() + columns))
    };
    let placement = &context.placements[number as usize];
    let (key, taken) = placement.key(values);
    let value = values[taken..].iter().map(whole).collect();
    let entry = Entry { key, value, priority: placement.priority };
    let (table, now) = (placement.table, context.now);
    let state = context.state();
    state.now = now;
    let accepted = state.tables.insert(table, &entry, Some(now)).is_ok();
    state.wake_for(table);
    accepted.into()
}

unsafe extern "C" fn withdraw(context: *mut Context<'_>, number: u64, values: *const [u64; 2]) {
    // SAFETY: as for `insert`.
    let (context, values) = unsafe {
        let context = &mut *context;
        let made_of = context.placements[number as usize].made_of();
        (context, std::slice::from_raw_parts(values, made_of))
    };
    let placement = &context.placements[number as usize];
    let (key, _) = placement.key(values);
    let (table, priority) = (placement.table, placement.priority);
    let state = context.state();
    state.tables.remove(table, &key, priority);
    state.wake_for_dead_rules();
}

unsafe extern "C" fn mark(context: *mut Context<'_>, meter: u64, cell: u64, before: u64) -> u64 {
    // SAFETY: as for `raise`.
    let context = unsafe { &mut *context };
    let (wire, now) = (context.wire as u32, context.now);
    context.state().memory.mark(meter as u32, cell as u32, before as u8, wire, now).into()
}

unsafe extern "C" fn read_register(context: *mut Context<'_>, register: u64, cell: u64) -> u64 {
    // SAFETY: as for `raise`.
    unsafe { &mut *context }.state().memory.read(register as u32, cell as u32)
}

unsafe extern "C" fn write_register(context: *mut Context<'_>, register: u64, cell: u64, value: u64) {
    // SAFETY: as for `raise`.
    unsafe { &mut *context }.state().memory.write(register as u32, cell as u32, value);
}

unsafe extern "C" fn take(context: *mut Context<'_>, pool: u64, hint: u64) -> *const u64 {
    // SAFETY: as for `raise`.
    let context = unsafe { &mut *context };
    let widths = context.state().memory.item_widths(pool as u32);
    let mut columns = [0; MOST_FOUND];
    let mut word = 0;
    // Entries expire by the time of the packet.
    let now = context.now;
    let state = context.state();
    state.now = now;
    match state.take(pool as u32, hint as u32) {
        None => return std::ptr::null(),
        Some(item) => {
            for (column, wide) in item.zip(widths) {
                if wide {
                    columns[word] = (column >> 64) as u64;
                    word += 1;
                }
                columns[word] = column as u64;
                word += 1;
            }
        }
    }
    context.columns = columns;
    context.columns.as_ptr()
}

unsafe extern "C" fn give(context: *mut Context<'_>, pool: u64, item: *const [u64; 2]) {
    // SAFETY: as for `raise`; compiled code passes one value a column.
    let (context, item) = unsafe {
        let context = &mut *context;
        let memory = &(*context.state).memory;
        let columns = memory.item_columns(pool as u32);
        (context, std::slice::from_raw_parts(item, columns))
    };
    let mut columns = [0; MAX_WORDS];
    for (column, value) in columns.iter_mut().zip(item) {
        *column = whole(value);
    }
    let columns = &columns[..item.len()];
    let now = context.now;
    let state = context.state();
    state.now = now;
    state.give(pool as u32, columns);
}

unsafe extern "C" fn choose(context: *mut Context<'_>, group: u64, index: u64, hash: u64) -> *const u64 {
    // SAFETY: as for `raise`.
    found(unsafe { &mut *context }.state().memory.choose(group as u32, index as u32, hash as u32))
}

unsafe extern "C" fn member(context: *mut Context<'_>, group: u64, index: u64, place: u64) -> *const u64 {
    // SAFETY: as for `raise`.
    found(unsafe { &mut *context }.state().memory.member(group as u32, index as u32, place as u32))
}

/// The words of the member that compiled code passes.
///
/// # Safety
/// The context is the one that compiled code was called with, and `member` points to one value a column on
/// its stack.
unsafe fn passed<'a>(context: *mut Context<'_>, group: u64, member: *const [u64; 2]) -> &'a [[u64; 2]] {
    // SAFETY: as for `raise`; compiled code passes one value a column and waits.
    unsafe {
        let memory = &(*(*context).state).memory;
        let columns = memory.packing(group as u32).places.len();
        std::slice::from_raw_parts(member, columns)
    }
}

unsafe extern "C" fn join(context: *mut Context<'_>, group: u64, index: u64, values: *const [u64; 2]) -> u64 {
    // SAFETY: as for `passed`.
    let (values, context) = unsafe { (passed(context, group, values), &mut *context) };
    context.state().memory.join(group as u32, index as u32, values.iter().map(whole)).into()
}

unsafe extern "C" fn leave(context: *mut Context<'_>, group: u64, index: u64, values: *const [u64; 2]) {
    // SAFETY: as for `passed`.
    let (values, context) = unsafe { (passed(context, group, values), &mut *context) };
    context.state().memory.leave(group as u32, index as u32, values.iter().map(whole));
}
