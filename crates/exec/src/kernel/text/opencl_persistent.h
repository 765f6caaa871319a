
/* One group, of GROUP threads: groups that wait for each other need not run side by side. Its first thread is dispatcher and worker at once,
   and all run packets. OpenCL has no clock, so a launch ends after `quantum` slots, after having asked in vain `idle` times in a row, or when
   it is told to, and then it runs what it knows and learns of nothing new. Drivers for processors run the threads of a group one after the
   other and have to take a kernel apart at each place where they meet, which some cannot with the ways through a large program (PoCL 3.1 ends
   the process); one thread alone meets nobody. */
#if GROUP > 1
#define MEET barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
#else
#define MEET
#endif
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void serve_packets(SERVED)
{
    __local u32 turn[4];
#if BITS == 1
    __local u8 outcomes[32];
#endif
    const u32 first = (u32)get_local_id(0);
    u32 served = 0, stop = 0;
    if (first == 0) begin(ring, launch);
    for (;;) {
        if (first == 0) {
            task next = { 0, 0, 0 };
            u32 found = 0;
            for (u32 asked = 0; served < quantum && asked < idle && !found; asked++) {
                if (!stop) stop = dispatch(ring, own, read_own(own + KNOWN));
                found = claim(ring, own, entries, &next);
                if (stop) break;
            }
            turn[0] = found;
            turn[1] = next.ticket;
            turn[2] = next.slot;
            turn[3] = next.packets;
        }
        /* The others see what the first thread has seen. */
        MEET
        const u32 found = turn[0], ticket = turn[1], slot = turn[2], packets = turn[3];
        if (!found) break;
        OF_SLOT(slot)
        for (u32 lane = first; lane < packets; lane += GROUP) {
#if BITS == 1
            outcomes[lane] = (u8)run_packet(ARGUMENTS, lane);
#else
            verdicts[lane] = (RESULT)run_packet(ARGUMENTS, lane);
#endif
        }
        MEET
        if (first == 0) {
#if BITS == 1
            u32 word = 0;
            for (u32 i = 0; i < packets; i++) word |= (u32)outcomes[i] << i;
            *verdicts = word;
#endif
            complete(ring, entries, slot, ticket);
        }
        served++;
    }
}
