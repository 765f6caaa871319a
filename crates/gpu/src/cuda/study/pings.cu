// One lane answers each number with the same.
extern "C" __global__ void answer(unsigned int *words, const unsigned int rounds, const unsigned long longest)
{
    unsigned int round, asked = 0;
    unsigned long begin, now;
    if (threadIdx.x != 0) return;
    for (round = 1; round <= rounds; round++) {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
        while (asked != round) {
            asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(asked) : "l"(words) : "memory");
            asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
            if (now - begin > longest) return;
        }
        asm volatile("st.release.sys.u32 [%0], %1;" :: "l"(words + 32), "r"(round) : "memory");
    }
}
