
#define FULL_MASK 0xffffffffu
#if STAGED
/* A warp fetches bytes and columns of its slot at once, in pieces of 16 bytes side by side, and its lanes run over this copy: over the bus,
   each byte that a lane reads would be a transaction of its own. Packets begin PITCH bytes apart in the copy, an odd number of words, so that lanes
   read from different banks. */
#define PIECES (STRIDE / 16u)
INLINE void fetch(const u8 *bytes, const u32 *columns, u32 packets, u32 lane, u32 *copy, u32 *copied_columns)
{
    uint4 pieces[PIECES];
    u32 words[COLUMNS + 1u];
    /* All are on their way before the first is waited for. */
    #pragma unroll
    for (u32 i = 0; i < PIECES; i++) if (32u * i + lane < packets * PIECES) pieces[i] = ((const uint4 *)bytes)[32u * i + lane];
    #pragma unroll
    for (u32 i = 0; i < COLUMNS; i++) if (32u * i + lane < packets * COLUMNS) words[i] = columns[32u * i + lane];
    #pragma unroll
    for (u32 i = 0; i < PIECES; i++) {
        const u32 piece = 32u * i + lane;
        u32 *const to = copy + piece / PIECES * (PITCH / 4u) + piece % PIECES * 4u;
        if (piece < packets * PIECES) to[0] = pieces[i].x, to[1] = pieces[i].y, to[2] = pieces[i].z, to[3] = pieces[i].w;
    }
    #pragma unroll
    for (u32 i = 0; i < COLUMNS; i++) if (32u * i + lane < packets * COLUMNS) copied_columns[32u * i + lane] = words[i];
}
INLINE void write_back(const u32 *copy, u32 packets, u32 lane, u8 *bytes)
{
    for (u32 piece = lane; piece < packets * PIECES; piece += 32u) {
        const u32 *const from = copy + piece / PIECES * (PITCH / 4u) + piece % PIECES * 4u;
        ((uint4 *)bytes)[piece] = make_uint4(from[0], from[1], from[2], from[3]);
    }
}
#endif

/* The first warp is the dispatcher: it alone reads the processor's memory while there is nothing to do, and puts the entries of what is
   published where workers read them without the bus. It ends after `quantum` nanoseconds, after `idle` nanoseconds in which nothing was
   published, or when it is told to. All other warps are workers, and none waits for another. */
extern "C" __global__ void serve_packets(SERVED)
{
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x, lane = thread % 32u;
    if (thread < 32u) {
        const u64 first = nanoseconds();
        u64 busy = first;
        u32 known = read_own(own + KNOWN), goes = 1;
        if (lane == 0) begin(ring, launch);
        while (goes) {
            u32 published = known, stop = 0;
            if (lane == 0) {
                const u64 now = nanoseconds();
                acquire_control(ring, &published, &stop);
                /* What was published before the host said stop is known before workers end. */
                if (stop) published = acquire_host(ring + PUBLISHED);
                if (published != known) busy = now;
                goes = !stop && now - first < quantum && now - busy < idle;
                if (goes && published == known) __nanosleep(100);
            }
            __syncwarp();
            published = __shfl_sync(FULL_MASK, published, 0);
            goes = __shfl_sync(FULL_MASK, goes, 0);
            if (published == known) continue;
            for (u32 ticket = known + lane; (int)(published - ticket) > 0; ticket += 32u) {
                const u32 place = ticket & (entries - 1u);
                write_own(own + REPUBLISHED + place, read_host(ring + ENTRIES + place));
            }
            __syncwarp();
            if (lane == 0) release_own(own + KNOWN, published);
            known = published;
        }
        if (lane == 0) release_own(own + CLOSING, launch);
        return;
    }
#if STAGED
    __shared__ u32 copy[32u * PITCH / 4u], copied_columns[32u * COLUMNS + 1u];
#endif
    for (;;) {
        task next = { 0, 0, 0 };
        u32 found = 0, closing = 0;
        while (lane == 0 && !found && !closing) {
            closing = read_own(own + CLOSING) == launch && acquire_own(own + CLOSING) == launch;
            found = claim(ring, own, entries, &next);
            if (!found && !closing) __nanosleep(200);
        }
        /* The others see what the first lane has seen, and then run beside it. */
        __syncwarp();
        found = __shfl_sync(FULL_MASK, found, 0);
        if (!found) return;
        const u32 slot = __shfl_sync(FULL_MASK, next.slot, 0), packets = __shfl_sync(FULL_MASK, next.packets, 0);
        OF_SLOT(slot)
#if STAGED
        u8 *const home = bytes;
        fetch(bytes, columns, packets, lane, copy, copied_columns);
        bytes = (u8 *)copy;
        columns = copied_columns;
        __syncwarp();
#endif
#if BITS == 1
        const u32 word = __ballot_sync(FULL_MASK, lane < packets && run_packet(ARGUMENTS, lane));
        if (lane == 0) *verdicts = word;
#else
        if (lane < packets) verdicts[lane] = (RESULT)run_packet(ARGUMENTS, lane);
#endif
        /* What all lanes have written is before the release at the scope of the machine, which needs no fence besides. */
        __syncwarp();
#if STAGED && WRITES
        write_back(copy, packets, lane, home);
        __syncwarp();
#endif
        if (lane == 0) complete(ring, entries, slot, next.ticket);
    }
}
