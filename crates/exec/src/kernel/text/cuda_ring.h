
/* Words that a device and the processor share. The scope of a word of the device's own is the device, of all others the whole machine. */
#define WORD u32
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
STORED(write_own, "relaxed.gpu")
/* Both words of the host in one transaction over the bus: what is published and whether to stop, neither before the other. */
INLINE void acquire_control(const u32 *ring, u32 *published, u32 *stop)
{
    asm volatile("ld.acquire.sys.v2.u32 {%0, %1}, [%2];" : "=r"(*published), "=r"(*stop) : "l"(ring) : "memory");
}
/* Workers read entries where the dispatcher has put them, in the device's memory. */
#define ENTRY(ticket) read_own(own + REPUBLISHED + ((ticket) & (entries - 1u)))
INLINE u32 raise_own(u32 *word, u32 from)
{
    u32 was;
    asm volatile("atom.acq_rel.gpu.cas.b32 %0, [%1], %2, %3;" : "=r"(was) : "l"(word), "r"(from), "r"(from + 1u) : "memory");
    return was == from;
}
INLINE u64 nanoseconds(void) { u64 now; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); return now; }
