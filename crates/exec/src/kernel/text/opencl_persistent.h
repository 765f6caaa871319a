
/* One group of 32, whose first thread is dispatcher and worker at once: groups that wait for each other need not run side by side. OpenCL has
   no clock, so a launch ends after `quantum` slots, after having asked in vain `idle` times in a row, or when it is told to. */
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void serve_packets(SERVED)
{
    __local u32 turn[4];
#if BITS == 1
    __local u8 outcomes[32];
#endif
    const u32 lane = (u32)get_local_id(0);
    u32 served = 0;
    for (;;) {
        if (lane == 0) {
            task next = { 0, 0, 0 };
            u32 found = 0, stop = 0;
            for (u32 asked = 0; served < quantum && asked < idle && !found && !stop; asked++) {
                stop = dispatch(ring, own, read_own(own + KNOWN));
                found = claim(ring, own, entries, &next);
            }
            turn[0] = found;
            turn[1] = next.ticket;
            turn[2] = next.slot;
            turn[3] = next.packets;
        }
        /* The others see what the first thread has seen. */
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        const u32 found = turn[0], ticket = turn[1], slot = turn[2], packets = turn[3];
        if (!found) break;
        OF_SLOT(slot)
#if BITS == 1
        outcomes[lane] = lane < packets ? (u8)run_packet(ARGUMENTS, lane) : 0;
#else
        if (lane < packets) verdicts[lane] = (RESULT)run_packet(ARGUMENTS, lane);
#endif
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lane == 0) {
#if BITS == 1
            u32 word = 0;
            for (u32 i = 0; i < 32; i++) word |= (u32)outcomes[i] << i;
            *verdicts = word;
#endif
            complete(ring, entries, slot, ticket);
        }
        served++;
    }
}
