//! The numbers that memory of devices holds.

#![allow(unsafe_code)]

/// A number of which any bits are a value.
///
/// # Safety
/// Any bits are a value, zero is the default one, and an address that is a multiple of 4096 suits it.
pub(crate) unsafe trait Number: Copy + Default + Send + 'static {}

// SAFETY: so it is.
unsafe impl Number for u8 {}
// SAFETY: so it is.
unsafe impl Number for u32 {}
