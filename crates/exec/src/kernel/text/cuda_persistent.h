
/* The first warp is the dispatcher: it alone reads the processor's memory while there is nothing to do. It ends after `quantum` nanoseconds,
   after `idle` nanoseconds in which nothing was published, or when it is told to. All other warps are workers, and none waits for another. */
extern "C" __global__ void serve_packets(SERVED)
{
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x, lane = thread % 32u;
    if (thread < 32u) {
        if (lane) return;
        begin(ring, launch);
        const u64 first = nanoseconds();
        u64 now = first, busy = first;
        u32 known = read_own(own + KNOWN), stop = 0;
        while (!stop && now - first < quantum && now - busy < idle) {
            stop = dispatch(ring, own, known);
            const u32 was = known;
            known = read_own(own + KNOWN);
            now = nanoseconds();
            if (known != was) busy = now;
            else if (!stop) __nanosleep(100);
        }
        release_own(own + CLOSING, launch);
        return;
    }
    for (;;) {
        task next = { 0, 0, 0 };
        u32 found = 0, closing = 0;
        while (lane == 0 && !found && !closing) {
            closing = acquire_own(own + CLOSING) == launch;
            found = claim(ring, own, entries, &next);
            if (!found && !closing) __nanosleep(200);
        }
        /* The others see what the first lane has seen, and then run beside it. */
        __syncwarp();
        found = __shfl_sync(0xffffffffu, found, 0);
        if (!found) return;
        const u32 slot = __shfl_sync(0xffffffffu, next.slot, 0), packets = __shfl_sync(0xffffffffu, next.packets, 0);
        OF_SLOT(slot)
#if BITS == 1
        const u32 word = __ballot_sync(0xffffffffu, lane < packets && run_packet(ARGUMENTS, lane));
        if (lane == 0) *verdicts = word;
#else
        if (lane < packets) verdicts[lane] = (RESULT)run_packet(ARGUMENTS, lane);
#endif
        /* What all lanes have written is before the release at the scope of the machine, which needs no fence besides. */
        __syncwarp();
        if (lane == 0) complete(ring, entries, slot, next.ticket);
    }
}
