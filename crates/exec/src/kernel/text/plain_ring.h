
/* Words that threads share. */
#define WORD u32
INLINE u32 read_host(const u32 *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
INLINE u32 acquire_host(const u32 *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
INLINE void release_host(u32 *word, u32 number) { __atomic_store_n(word, number, __ATOMIC_RELEASE); }
#define read_own read_host
#define acquire_own acquire_host
#define release_own release_host
INLINE u32 raise_own(u32 *word, u32 from)
{
    return __atomic_compare_exchange_n(word, &from, from + 1u, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
#define ENTRY(ticket) read_host(ring + ENTRIES + ((ticket) & (entries - 1u)))
