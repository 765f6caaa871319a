//! The part of an OpenCL device that only studies use ([`crate::study`]): memory that is copied, and memory
//! of ours that the device works on.

use super::memory::{Home, make, make_in, map_all};
use crate::number::Number;
use crate::study::StudyMemory;
use crate::study::pages::Pages;
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::error_codes::{CL_OUT_OF_HOST_MEMORY, ClError};
use opencl3::memory::{Buffer, CL_MEM_ALLOC_HOST_PTR};

/// A buffer with room for so many values, and where the host finds them.
pub(super) fn home<T: Number>(
    context: &Context,
    queue: &CommandQueue,
    room: usize,
    memory: StudyMemory,
) -> opencl3::Result<(Buffer<T>, Home<T>)> {
    let pages = || Pages::<T>::new(room).ok_or(ClError(CL_OUT_OF_HOST_MEMORY));
    Ok(match memory {
        StudyMemory::Pageable => (make(context, 0, room)?, Home::Ours(pages()?)),
        StudyMemory::Pinned => {
            let staging = make(context, CL_MEM_ALLOC_HOST_PTR, room)?;
            let mapped = map_all(queue, &staging, room)?;
            (make(context, 0, room)?, Home::Drivers { mapped, _staging: staging })
        }
        StudyMemory::Registered => make_in(context, queue, pages()?)?,
    })
}
