//! Memory that the host and a running kernel can both access at any time: fine-grained shared virtual memory
//! with atomics.

#![allow(unsafe_code)]

use crate::number::Number;
use opencl3::context::Context;
use opencl3::error_codes::{CL_OUT_OF_HOST_MEMORY, ClError};
use opencl3::memory::{
    CL_MEM_READ_WRITE, CL_MEM_SVM_ATOMICS, CL_MEM_SVM_FINE_GRAIN_BUFFER, svm_alloc, svm_free,
};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// Bytes at whose multiple memory begins: as many as any device fetches together.
const LINE: u32 = 128;

/// So many numbers, zero at first. Only who knows that the device leaves a part alone may borrow it.
pub(super) struct Svm<T: Number> {
    place: NonNull<T>,
    length: usize,
    context: Arc<Context>,
}

// SAFETY: nobody else knows the memory but kernels, and numbers can be sent.
unsafe impl<T: Number> Send for Svm<T> {}

impl<T: Number> Svm<T> {
    /// So many numbers, at least one.
    pub(super) fn new(context: &Arc<Context>, length: usize) -> opencl3::Result<Svm<T>> {
        let length = length.max(1);
        let flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS;
        // SAFETY: the context is one, and lives as long as the memory.
        let place = unsafe { svm_alloc(context.get(), flags, length * size_of::<T>(), LINE) }?;
        let place = NonNull::new(place.cast::<T>()).ok_or(ClError(CL_OUT_OF_HOST_MEMORY))?;
        // SAFETY: so many numbers were given there, and zero is one.
        unsafe { place.write_bytes(0, length) };
        Ok(Svm { place, length, context: Arc::clone(context) })
    }

    /// As an argument of a kernel.
    pub(super) fn place(&self) -> *const c_void {
        self.place.as_ptr().cast()
    }

    /// How many numbers.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// `length` numbers from `first` on.
    ///
    /// # Safety
    /// No kernel writes them before the borrow ends, nor reads any that is written to.
    pub(super) unsafe fn part(&mut self, first: usize, length: usize) -> &mut [T] {
        assert!(first + length <= self.length, "{length} numbers from {first} on of {}", self.length);
        // SAFETY: they are there, and are the borrower's alone, as this is borrowed and no kernel uses them.
        unsafe { std::slice::from_raw_parts_mut(self.place.as_ptr().add(first), length) }
    }
}

impl Svm<u32> {
    /// The numbers as words that kernels may write at any time.
    pub(super) fn words(&self) -> &[AtomicU32] {
        // SAFETY: an atomic word lies in memory as a word does, the place suits it, and kernels change these
        // words by atomic writes alone.
        unsafe { std::slice::from_raw_parts(self.place.as_ptr().cast::<AtomicU32>(), self.length) }
    }
}

impl<T: Number> Drop for Svm<T> {
    fn drop(&mut self) {
        // SAFETY: it was given by this context, and no kernel that knows it is under way: who owns it makes
        // sure of that.
        let _ = unsafe { svm_free(self.context.get(), self.place.as_ptr().cast()) };
    }
}
