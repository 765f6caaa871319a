
/* Words that a device and the processor share. The scope of a word of the device's own is the device, of all others the whole machine; the
   device may be a processor, too, where all are the same. */
#define WORD u32
#ifdef __CUDA_ARCH__
#define LOADED(name, order) INLINE u32 name(const u32 *word) \
    { u32 number; asm volatile("ld." order ".u32 %0, [%1];" : "=r"(number) : "l"(word) : "memory"); return number; }
#define STORED(name, order) INLINE void name(u32 *word, u32 number) \
    { asm volatile("st." order ".u32 [%0], %1;" :: "l"(word), "r"(number) : "memory"); }
LOADED(read_host, "relaxed.sys")
LOADED(acquire_host, "acquire.sys")
STORED(release_host, "release.sys")
LOADED(read_own, "relaxed.gpu")
LOADED(acquire_own, "acquire.gpu")
STORED(release_own, "release.gpu")
INLINE u32 raise_own(u32 *word, u32 from)
{
    u32 was;
    asm volatile("atom.relaxed.gpu.cas.b32 %0, [%1], %2, %3;" : "=r"(was) : "l"(word), "r"(from), "r"(from + 1u) : "memory");
    return was == from;
}
INLINE u64 nanoseconds(void) { u64 now; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); return now; }
#else
INLINE u32 read_host(const u32 *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
INLINE u32 acquire_host(const u32 *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
INLINE void release_host(u32 *word, u32 number) { __atomic_store_n(word, number, __ATOMIC_RELEASE); }
#define read_own read_host
#define acquire_own acquire_host
#define release_own release_host
INLINE u32 raise_own(u32 *word, u32 from)
{
    return __atomic_compare_exchange_n(word, &from, from + 1u, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
#endif
