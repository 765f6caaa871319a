//! Host functions: Rust functions that compiled code calls, and their declarations for Cranelift.
//!
//! The macro [`host_functions`] declares each of them once: the constant by which compiled code calls it, its
//! name and its words. The Rust compiler compares each declaration with the function, and each call with the
//! declaration. The functions for tables of prefixes, rules and patterns, meters, registers, pools and groups
//! are in [`super::tables`].
//!
//! # Safety
//! Only compiled code may call the unsafe functions of this file. Every pointer that it hands over is valid
//! during the call: the context with which it was called, a table of that context, and words on its own
//! stack, as many as the table's key or value has.

use super::call::Context;
use super::tables;
use super::words::{Pair, split, whole};
use crate::outputs::{self, Cause, appended};
use ::tables::exact::{Exact, ExactTable, Learned};
use packet::fragment::Fragmenting;

/// The name of a host function that takes `TAKEN` words of 64 bits and returns `GIVEN` of them.
#[derive(Clone, Copy)]
pub(super) struct HostFunction<const TAKEN: usize, const GIVEN: usize>(pub(super) &'static str);

impl<const TAKEN: usize, const GIVEN: usize> HostFunction<TAKEN, GIVEN> {
    /// The declaration of this function, which has that many words.
    pub(super) fn declare(self, function: impl OfWords<TAKEN, GIVEN>) -> Declaration {
        Declaration { name: self.0, address: function.address(), taken: TAKEN, given: GIVEN }
    }
}

/// What Cranelift needs to know about a host function.
pub(super) struct Declaration {
    pub(super) name: &'static str,
    pub(super) address: *const u8,
    /// Parameters and results, in words of 64 bits.
    pub(super) taken: usize,
    pub(super) given: usize,
}

/// A function with `TAKEN` parameters and `GIVEN` results of 64 bits.
pub(super) trait OfWords<const TAKEN: usize, const GIVEN: usize> {
    fn address(self) -> *const u8;
}

/// The type of a parameter that takes one register of 64 bits.
pub(super) trait Word {}
impl Word for u64 {}
impl<T> Word for *const T {}
impl<T> Word for *mut T {}

/// The type of a result that takes `WORDS` registers.
pub(super) trait Given<const WORDS: usize> {}
impl Given<0> for () {}
impl Given<1> for u64 {}
impl<T> Given<1> for *const T {}
impl Given<2> for Pair {}

macro_rules! of_words {
    ($($taken:literal: $($word:ident)*;)*) => {$(
        impl<$($word: Word,)* R: Given<GIVEN>, const GIVEN: usize> OfWords<$taken, GIVEN>
            for unsafe extern "C" fn($($word),*) -> R
        {
            fn address(self) -> *const u8 {
                self as *const u8
            }
        }
    )*};
}
of_words! { 1: A; 2: A B; 3: A B C; 4: A B C D; 6: A B C D E F; }

/// Declares host functions: `CONSTANT = function(parameters) -> words of the result;`.
macro_rules! host_functions {
    (@any $parameter:ident) => { _ };
    ($($constant:ident = $function:ident($($parameter:ident),*) -> $given:literal;)*) => {
        $(pub(super) const $constant: $crate::native::host::HostFunction<
            { [$(stringify!($parameter)),*].len() }, $given,
        > = $crate::native::host::HostFunction(stringify!($function));)*

        /// The host functions of this file.
        pub(super) fn declarations() -> Vec<$crate::native::host::Declaration> {
            vec![$($constant.declare(
                $function as unsafe extern "C" fn($(host_functions!(@any $parameter)),*) -> _
            )),*]
        }
    };
}
pub(super) use host_functions;

host_functions! {
    FIND2 = find2(table, first, second, now) -> 1;
    FIND = find(table, key, now) -> 1;
    LEARN = learn(table, key, value, now) -> 1;
    HOLDS = holds(table, key) -> 1;
    REMOVE = remove(table, key) -> 0;
    RAISE = raise(context, event, args, count, delay, delayed) -> 0;
    COPY = copy(context, port) -> 0;
    EMIT = emit(context, template, values, tail, limit, port) -> 0;
    PUSH = push(context, at, template, values) -> 1;
    POP = pop(context, at, bytes) -> 0;
    TRUNCATE = truncate(context, length) -> 0;
    FRAGMENT = fragment(context, at, mtu) -> 0;
    SUM = sum(first, length) -> 1;
    MULTIPLY_SATURATING = multiply_saturating(low, high, by_low, by_high) -> 2;
    DIVIDE = divide(low, high, by_low, by_high) -> 2;
    REMAINDER = remainder(low, high, by_low, by_high) -> 2;
    ENTER_SITE = enter_site(context, site) -> 0;
    LEAVE_SITE = leave_site(context) -> 0;
}

/// Declares a host function that is compiled once for each value of a table's marks.
macro_rules! by_marks {
    ($constant:ident, $declarations:ident = $function:ident as $signature:ty, $taken:literal: $($marks:literal)*) => {
        /// By the table's marks.
        pub(super) const $constant: [HostFunction<$taken, 1>; 8] =
            [$(HostFunction(concat!(stringify!($function), " ", $marks))),*];

        fn $declarations() -> [Declaration; 8] {
            [$($constant[$marks].declare($function::<$marks> as $signature)),*]
        }
    };
}
by_marks!(FIND1, find1_by_marks = find1 as unsafe extern "C" fn(_, _, _) -> _, 3: 0 1 2 3 4 5 6 7);
by_marks!(LEARN11, learn11_by_marks = learn11 as unsafe extern "C" fn(_, _, _, _) -> _, 4: 0 1 2 3 4 5 6 7);

/// Every host function.
pub(super) fn all() -> Vec<Declaration> {
    let mut all = declarations();
    all.extend(tables::declarations());
    all.extend(find1_by_marks());
    all.extend(learn11_by_marks());
    all
}

/// The address of the words that were found, or zero.
pub(super) fn found(value: Option<&[u64]>) -> *const u64 {
    value.map_or(std::ptr::null(), <[u64]>::as_ptr)
}

unsafe extern "C" fn find1<const MARKS: u8>(table: *mut ExactTable, key: u64, now: u64) -> *const u64 {
    // SAFETY: the table comes from the context and nothing else refers to it during this call.
    match unsafe { &mut *table } {
        ExactTable::One(table) => found(table.find1_marking::<MARKS>(key, now)),
        table => found(table.find(&[key], now)),
    }
}

unsafe extern "C" fn find2(table: *mut ExactTable, first: u64, second: u64, now: u64) -> *const u64 {
    // SAFETY: as for `find1`.
    match unsafe { &mut *table } {
        ExactTable::Two(table) => found(table.find2([first, second], now)),
        table => found(table.find(&[first, second], now)),
    }
}

unsafe extern "C" fn find(table: *mut ExactTable, key: *const u64, now: u64) -> *const u64 {
    // SAFETY: as for `find1`; the key has as many words as the table's.
    let (table, key) = unsafe {
        let table = &mut *table;
        let words = table.spec().key_words;
        (table, std::slice::from_raw_parts(key, words))
    };
    found(table.find(key, now))
}

unsafe extern "C" fn learn11<const MARKS: u8>(table: *mut ExactTable, key: u64, value: u64, now: u64) -> u64 {
    // SAFETY: as for `find1`.
    let learned = match unsafe { &mut *table } {
        ExactTable::One(table) => table.learn11_marking::<MARKS>(key, value, now),
        table => table.learn(&[key], &[value], now),
    };
    u64::from(learned != Learned::Refused)
}

unsafe extern "C" fn learn(table: *mut ExactTable, key: *const u64, value: *const u64, now: u64) -> u64 {
    // SAFETY: as for `find1`; key and value have as many words as the table's.
    let (table, key, value) = unsafe {
        let table = &mut *table;
        let (key_words, value_words) = (table.spec().key_words, table.spec().value_words);
        let key = std::slice::from_raw_parts(key, key_words);
        (table, key, std::slice::from_raw_parts(value, value_words))
    };
    u64::from(table.learn(key, value, now) != Learned::Refused)
}

unsafe extern "C" fn holds(table: *mut ExactTable, key: *const u64) -> u64 {
    // SAFETY: as for `find`.
    let (table, key) = unsafe { (&*table, std::slice::from_raw_parts(key, (*table).spec().key_words)) };
    u64::from(table.peek(key).is_some())
}

unsafe extern "C" fn remove(table: *mut ExactTable, key: *const u64) {
    // SAFETY: as for `find`.
    let (table, key) = unsafe {
        let table = &mut *table;
        let words = table.spec().key_words;
        (table, std::slice::from_raw_parts(key, words))
    };
    table.remove(key);
}

unsafe extern "C" fn raise(
    context: *mut Context<'_>,
    event: u64,
    args: *const [u64; 2],
    count: u64,
    delay: u64,
    delayed: u64,
) {
    // SAFETY: the context is the one that compiled code was called with, and it passes `count` arguments.
    let (context, args) = unsafe { (&mut *context, std::slice::from_raw_parts(args, count as usize)) };
    let (state, outputs) = context.parts();
    let delay = (delayed == 1).then_some(delay);
    state.raise(event as u32, args.iter().map(whole), delay, outputs);
}

unsafe extern "C" fn copy(context: *mut Context<'_>, port: u64) {
    // SAFETY: as for `raise`.
    let (packet, outputs, cause) = unsafe { &mut *context }.sending();
    outputs.copy(packet, cause, port as u16);
}

unsafe extern "C" fn emit(
    context: *mut Context<'_>,
    template: u64,
    values: *const [u64; 2],
    tail: u64,
    limit: u64,
    port: u64,
) {
    // SAFETY: as for `raise`.
    let context = unsafe { &mut *context };
    let templates = context.templates;
    let template = &templates[template as usize];
    let (packet, outputs, cause) = context.sending();
    let (rest, wire) = appended(packet, cause.wire, usize::try_from(tail).ok(), limit as u32);
    // SAFETY: compiled code passes one value a hole.
    let values = unsafe { std::slice::from_raw_parts(values, template.holes.len()) };
    let cause = Cause { wire, ..cause };
    outputs.emit(template, values.iter().map(whole), rest, cause, port as u16);
}

unsafe extern "C" fn sum(first: *const u8, length: u64) -> u64 {
    // SAFETY: compiled code passes an address in the captured bytes and how many of them follow there.
    let bytes = unsafe { std::slice::from_raw_parts(first, length as usize) };
    ir::checksum::sum(bytes).into()
}

unsafe extern "C" fn push(context: *mut Context<'_>, at: u64, template: u64, values: *const [u64; 2]) -> u64 {
    // SAFETY: as for `raise`.
    let context = unsafe { &mut *context };
    let done = context.resize(|packet, templates| {
        let template = &templates[template as usize];
        // SAFETY: compiled code passes one value a hole.
        let values = unsafe { std::slice::from_raw_parts(values, template.holes.len()) };
        outputs::push(packet, at as usize, template, values.iter().map(whole))
    });
    u64::from(done == Some(true))
}

unsafe extern "C" fn pop(context: *mut Context<'_>, at: u64, bytes: u64) {
    // SAFETY: as for `raise`.
    unsafe { &mut *context }.resize(|packet, _| packet.pop(at as usize, bytes as usize));
}

unsafe extern "C" fn truncate(context: *mut Context<'_>, length: u64) {
    // SAFETY: as for `raise`.
    unsafe { &mut *context }.resize(|packet, _| packet.truncate(length as u32));
}

unsafe extern "C" fn fragment(context: *mut Context<'_>, at: u64, mtu: u64) {
    let fragmenting = Fragmenting { at: at as u32, mtu: mtu as u32 };
    // SAFETY: as for `raise`.
    unsafe { &mut *context }.resize(|packet, _| packet.set_fragmenting(Some(fragmenting)));
}

extern "C" fn multiply_saturating(low: u64, high: u64, by_low: u64, by_high: u64) -> Pair {
    split(whole(&[low, high]).saturating_mul(whole(&[by_low, by_high])))
}

extern "C" fn divide(low: u64, high: u64, by_low: u64, by_high: u64) -> Pair {
    split(whole(&[low, high]).checked_div(whole(&[by_low, by_high])).unwrap_or(0))
}

extern "C" fn remainder(low: u64, high: u64, by_low: u64, by_high: u64) -> Pair {
    split(whole(&[low, high]).checked_rem(whole(&[by_low, by_high])).unwrap_or(0))
}

unsafe extern "C" fn enter_site(context: *mut Context<'_>, site: u64) {
    // SAFETY: as for `raise`.
    unsafe { &mut *context }.state().clock.enter(site as usize);
}

unsafe extern "C" fn leave_site(context: *mut Context<'_>) {
    // SAFETY: as for `raise`.
    unsafe { &mut *context }.state().clock.leave();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The compiler compares the arguments of a call with the constant, and the constant with the function.
    /// So this test only has to show that Cranelift's declarations come from the same constants.
    #[test]
    fn each_function_is_declared_once_with_the_words_that_a_call_hands_over() {
        fn words<const TAKEN: usize, const GIVEN: usize>(
            function: HostFunction<TAKEN, GIVEN>,
        ) -> (&'static str, (usize, usize)) {
            (function.0, (TAKEN, GIVEN))
        }
        let all = all();
        let declared: HashMap<_, _> =
            all.iter().map(|function| (function.name, (function.taken, function.given))).collect();
        assert_eq!(declared.len(), all.len(), "each name stands for one function");
        let called = [
            words(FIND2),
            words(RAISE),
            words(EMIT),
            words(LEAVE_SITE),
            words(DIVIDE),
            words(tables::SCAN_SET),
            words(tables::WITHDRAW),
        ];
        let called = called.into_iter().chain(FIND1.map(words)).chain(LEARN11.map(words));
        called.for_each(|(name, words)| assert_eq!(declared[name], words, "{name}"));
    }
}
