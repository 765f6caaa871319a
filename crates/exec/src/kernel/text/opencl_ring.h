
/* Words that a device and the processor share, in fine-grained memory with atomics. A driver for processors may have no scope that includes
   the host (PoCL 3.1 offers none in OpenCL C, although it says that it has one): there the device's is as wide, as both are threads of one
   process. */
#define WORD volatile atomic_uint
#if defined(__opencl_c_atomic_scope_all_devices) || (__OPENCL_C_VERSION__ >= 200 && __OPENCL_C_VERSION__ < 300)
#define HOST memory_scope_all_svm_devices
#elif defined(ON_PROCESSOR)
#define HOST memory_scope_device
#else
#error This device has no atomics that the processor takes part in.
#endif
#define read_host(word) atomic_load_explicit(word, memory_order_relaxed, HOST)
#define acquire_host(word) atomic_load_explicit(word, memory_order_acquire, HOST)
#define release_host(word, number) atomic_store_explicit(word, number, memory_order_release, HOST)
#define read_own(word) atomic_load_explicit(word, memory_order_relaxed, memory_scope_device)
#define acquire_own(word) atomic_load_explicit(word, memory_order_acquire, memory_scope_device)
#define release_own(word, number) atomic_store_explicit(word, number, memory_order_release, memory_scope_device)
INLINE u32 raise_own(GLOBAL WORD *word, u32 from)
{
    return atomic_compare_exchange_strong_explicit(word, &from, from + 1u, memory_order_acq_rel, memory_order_relaxed, memory_scope_device);
}
#define ENTRY(ticket) read_host(ring + ENTRIES + ((ticket) & (entries - 1u)))
