//! Calls of compiled code, and the context that compiled code gets. All `unsafe` of this crate is here and in
//! the host functions, which compiled code calls ([`super::host`], [`super::tables`]).
//!
//! Compiled code gets a [`Context`] and the packet. It follows only pointers of the context: to tables,
//! default entries and counter cells, by an index in the IR that the verifier has shown to exist; to packet
//! bytes, after a length check that the verifier has shown to be there; and to zeros.

use super::asked::Asked;
use super::early_lookups::{KEPT_WORDS, MOST_EARLY_LOOKUPS};
use super::placements::Placement;
use crate::outputs::{Cause, Outputs};
use crate::pack::{MAX_WORDS, WIDEST_KEY};
use crate::state::table_set::Fast;
use crate::state::{Cell, DefaultEntry, ProgramState};
use ::tables::exact::ExactTable;
use cranelift_jit::JITModule;
use ir::Template;
use ir::limits::{LARGEST_WORDS, MOST_COLUMNS};
use packet::batch::Batch;
use packet::fragment::Fragmenting;
use packet::resize::Resizable;
use std::marker::PhantomData;

/// Everything that compiled code reaches in addition to the packet. The context holds the borrows of all
/// objects to which its pointers point.
#[repr(C)]
pub(super) struct Context<'a> {
    /// The time, ns.
    pub(super) now: u64,
    /// The packet's length on the wire.
    pub(super) wire: u64,
    /// The packet function stores the frame and its captured length here before it calls `copy` or `emit`. If
    /// the program changes the size of packets, the packet function reads both here after each change.
    pub(super) frame: *const u8,
    pub(super) captured: u64,
    /// The memory of a packet that may grow. The packet starts `start` bytes after the beginning of this
    /// memory.
    memory: *mut u8,
    start: u64,
    fragmenting: Option<Fragmenting>,
    pub(super) tables: *mut ExactTable,
    pub(super) defaults: *mut DefaultEntry,
    pub(super) cells: *mut Cell,
    /// The words that are read if nothing is found in a table, a group or a pool.
    pub(super) zeros: [u64; MOST_FOUND],
    /// Room in which a host function returns columns, each in words of its own.
    pub(super) columns: [u64; MOST_FOUND],
    /// Room for the next key of each early lookup.
    pub(super) asked: [*mut u64; MOST_EARLY_LOOKUPS],
    /// The words that are kept for the packet from the early lookup to the part after it.
    pub(super) kept: *mut u64,
    pub(super) state: *mut ProgramState<Fast>,
    outputs: *mut Outputs,
    pub(super) templates: &'a [Template],
    pub(super) placements: &'a [Placement],
    borrows: PhantomData<(&'a mut ProgramState<Fast>, &'a mut Outputs)>,
}

/// The largest number of words that a search finds: entries and members have [`MAX_WORDS`], items of pools up
/// to two words for each column.
pub(super) const MOST_FOUND: usize = 2 * MOST_COLUMNS;
const _: () = assert!(MAX_WORDS <= MOST_FOUND && MOST_COLUMNS <= MAX_WORDS && LARGEST_WORDS == MAX_WORDS);
const _: () = assert!(LARGEST_WORDS <= WIDEST_KEY);

/// The part before the early lookups returns this plus the number of an early lookup if it came to one, else
/// a verdict or [`NOT_ASKED`].
pub(super) const ASKED: u64 = 1 << 32;
/// The packet must run from the beginning when it is its turn.
pub(super) const NOT_ASKED: u64 = 1 << 33;

/// A compiled function. Its parameters are the context and, for the packet function, the frame, its captured
/// length and the port of entry; for a handler, its arguments as pairs of words, the less significant first,
/// and twice zero. It returns the bits of a verdict.
type Callable = unsafe extern "C" fn(*mut Context<'_>, *mut u8, u64, u64) -> u64;

/// The compiled functions of a program. Dropping this value frees their memory.
pub(super) struct Code {
    module: Option<JITModule>,
    /// The packet function, also the first of the entries.
    packet: Callable,
    entries: Vec<Callable>,
    /// The part before the early lookups, then the part after each of them.
    parts: Vec<Callable>,
}

impl Code {
    /// The code of a module whose functions are finished. Each address must be that of a function of this
    /// module that was compiled by [`super::translate`] with the signature of [`Callable`]. The first `whole`
    /// addresses are those of whole functions; then follow the part of the packet function before the early
    /// lookups and the part after each of them.
    pub(super) fn new(module: JITModule, addresses: &[*const u8], whole: usize) -> Code {
        let entry = |address: &*const u8| {
            // SAFETY: the address is that of a finished function with this signature, see above.
            unsafe { std::mem::transmute::<*const u8, Callable>(*address) }
        };
        let mut entries: Vec<Callable> = addresses.iter().map(entry).collect();
        let parts = entries.split_off(whole);
        Code { module: Some(module), packet: entries[0], entries, parts }
    }

    /// Runs the packet function on a frame and returns the bits of its verdict.
    #[inline(always)]
    pub(super) fn run_packet(&self, context: &mut Context<'_>, frame: &mut [u8], in_port: u16) -> u64 {
        // SAFETY: the code follows the context's pointers, which are good while the context is, and touches
        // the frame below its captured length only, as the verifier has shown.
        unsafe { (self.packet)(context, frame.as_mut_ptr(), frame.len() as u64, in_port.into()) }
    }

    /// Hands over room for the next key of early lookup `number`; whether there is some.
    #[inline(always)]
    pub(super) fn make_room(context: &mut Context<'_>, number: usize, asked: &mut Asked) -> bool {
        let (Some(place), Some(room)) = (context.asked.get_mut(number), asked.room()) else { return false };
        *place = room.as_mut_ptr();
        true
    }

    /// Runs the part before the early lookups, for each of which there is [room](Code::make_room). Returns
    /// the bits of a verdict, [`ASKED`] with a number, or [`NOT_ASKED`]. The key of early lookup `n` is
    /// stored at `asked[n]`.
    #[inline(always)]
    pub(super) fn run_before(
        &self,
        context: &mut Context<'_>,
        frame: &mut [u8],
        in_port: u16,
        kept: &mut [u64; KEPT_WORDS],
    ) -> u64 {
        let Some(before) = self.parts.first() else { return NOT_ASKED };
        context.kept = kept.as_mut_ptr();
        // SAFETY: as above; `asked` has one place an early lookup, a key has at most `WIDEST_KEY`, and
        // an early lookup that needs more than `KEPT_WORDS` words behind it is not asked.
        unsafe { before(context, frame.as_mut_ptr(), frame.len() as u64, in_port.into()) }
    }

    /// Runs the part after early lookup `number` on the packet that came to it, as [`Code::run_packet`].
    /// `kept` contains what the part before has kept, except that its first word is now the address of what
    /// was found.
    #[inline(always)]
    pub(super) fn run_after(
        &self,
        context: &mut Context<'_>,
        number: usize,
        kept: &mut [u64; KEPT_WORDS],
        frame: &mut [u8],
        in_port: u16,
    ) -> u64 {
        context.kept = kept.as_mut_ptr();
        // SAFETY: as above; nothing but the first word has been changed since it was kept.
        unsafe { self.parts[1 + number](context, frame.as_mut_ptr(), frame.len() as u64, in_port.into()) }
    }

    /// Runs the packet function on a packet that starts `room` bytes after the beginning of `memory` and
    /// extends to its end. The packet may change its size, and with it the length on the wire in the context.
    /// Returns the bits of its verdict.
    pub(super) fn run_resizing(
        &self,
        context: &mut Context<'_>,
        memory: &mut [u8],
        room: usize,
        in_port: u16,
        lookup: Option<(usize, &mut [u64; KEPT_WORDS])>,
    ) -> u64 {
        let mut code = self.packet;
        if let Some((number, kept)) = lookup {
            (code, context.kept) = (self.parts[1 + number], kept.as_mut_ptr());
        }
        let room = room.min(memory.len());
        let captured = (memory.len() - room) as u64;
        let memory = memory.as_mut_ptr();
        // SAFETY: the frame begins inside of the memory or at its end.
        let frame = unsafe { memory.add(room) };
        (context.frame, context.captured) = (frame, captured);
        (context.memory, context.start, context.fragmenting) = (memory, room as u64, None);
        // SAFETY: as above; the code asks the context for frame and captured length after each change, and
        // host functions keep both inside of the memory, which is borrowed until it returns.
        let verdict = unsafe { code(context, frame, captured, in_port.into()) };
        context.memory = std::ptr::null_mut();
        verdict
    }

    /// Runs a handler with its arguments.
    pub(super) fn run_handler(&self, context: &mut Context<'_>, function: u32, args: &[[u64; 2]]) {
        let args = args.as_ptr().cast_mut().cast();
        // SAFETY: as above; a handler reads as many arguments as its event has, which is how many there are,
        // and writes none.
        unsafe { self.entries[function as usize](context, args, 0, 0) };
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        self.entries.clear();
        self.parts.clear();
        if let Some(module) = self.module.take() {
            // SAFETY: the addresses of its functions were never handed out and are now forgotten, and nothing
            // runs them since that takes a borrow of this value.
            unsafe { module.free_memory() };
        }
    }
}

impl<'a> Context<'a> {
    /// A context for these objects. Nothing else accesses them while the context exists.
    pub(super) fn new(
        state: &'a mut ProgramState<Fast>,
        outputs: &'a mut Outputs,
        templates: &'a [Template],
        placements: &'a [Placement],
    ) -> Self {
        Context {
            now: state.now,
            wire: 0,
            frame: std::ptr::null(),
            captured: 0,
            memory: std::ptr::null_mut(),
            start: 0,
            fragmenting: None,
            tables: state.tables.exact.as_mut_ptr(),
            defaults: state.defaults.as_mut_ptr(),
            cells: state.cells.as_mut_ptr(),
            zeros: [0; MOST_FOUND],
            columns: [0; MOST_FOUND],
            asked: [std::ptr::null_mut(); MOST_EARLY_LOOKUPS],
            kept: std::ptr::null_mut(),
            state,
            outputs,
            templates,
            placements,
            borrows: PhantomData,
        }
    }

    /// The state.
    #[inline(always)]
    pub(super) fn state(&mut self) -> &mut ProgramState<Fast> {
        // SAFETY: the context holds the exclusive borrow that this pointer was made from; compiled code does
        // not run while this borrow of the context lasts.
        unsafe { &mut *self.state }
    }

    /// The state and the outputs.
    pub(super) fn parts(&mut self) -> (&mut ProgramState<Fast>, &mut Outputs) {
        // SAFETY: as above for both, and they are different objects.
        unsafe { (&mut *self.state, &mut *self.outputs) }
    }

    /// Where the packet that [`Code::run_resizing`] ran now starts in its memory, and how it is to be
    /// fragmented.
    pub(super) fn resized(&self) -> (usize, Option<Fragmenting>) {
        (self.start as usize, self.fragmenting)
    }

    /// Changes the packet that is running; returns the result of `change`.
    pub(super) fn resize<T>(
        &mut self,
        change: impl FnOnce(&mut Resizable<'_>, &[Template]) -> T,
    ) -> Option<T> {
        if self.memory.is_null() {
            return None;
        }
        // SAFETY: memory, start and captured length are those of `run_resizing` or of the last change, so the
        // packet lies inside of what is borrowed there; compiled code waits for this function and touches
        // nothing meanwhile.
        let memory = unsafe {
            std::slice::from_raw_parts_mut(self.memory, self.start as usize + self.captured as usize)
        };
        let mut packet = Resizable::new(memory, self.start as usize, self.wire as u32);
        packet.set_fragmenting(self.fragmenting);
        let result = change(&mut packet, self.templates);
        (self.start, self.captured) = (packet.start() as u64, packet.captured() as u64);
        (self.wire, self.fragmenting) = (packet.wire().into(), packet.fragmenting());
        self.frame = packet.bytes_mut().as_ptr();
        Some(result)
    }

    /// The captured bytes of the packet that is running (none in a handler), with a finished checksum, the
    /// outputs, and their cause.
    pub(super) fn sending(&mut self) -> (&[u8], &mut Outputs, Cause) {
        // SAFETY: as above; outputs and frame are different objects. Compiled code stores the frame and
        // length it was called with just before it calls a function that reads them, waits for that function,
        // and may write to the whole frame itself.
        let (packet, state, outputs) = unsafe {
            let packet = if self.frame.is_null() {
                &mut []
            } else {
                std::slice::from_raw_parts_mut(self.frame.cast_mut(), self.captured as usize)
            };
            (packet, &*self.state, &mut *self.outputs)
        };
        outputs.finish_checksum(state.cause, packet);
        (packet, outputs, Cause { packet: state.cause, time: self.now, wire: self.wire as u32 })
    }
}

/// Prefetches the first cache line of a packet's frame; does nothing if the batch has no such packet.
#[inline(always)]
pub fn prefetch(memory: &[u8], batch: &Batch, i: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(&frame) = batch.frame.get(i) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = memory.as_ptr().wrapping_add(frame as usize).cast::<i8>();
        // SAFETY: prefetching is a hint that reads nothing, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (memory, batch, i);
}
