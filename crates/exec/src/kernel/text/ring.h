
/* A ring of tickets, step for step as in gpu::ring, which says why. Of the shared words the host writes what is published, whether to
   stop, and from word 32 on an entry a ticket; behind them workers write a word a slot. In word 2 a launch says that it goes. */
#define PUBLISHED 0u
#define STOP 1u
#define BEGUN 2u
#define ENTRIES 32u
#define TAKEN 0u
#define KNOWN 32u
#define CLOSING 64u
#define REPUBLISHED 96u

typedef struct { u32 ticket, slot, packets; } task;

/* The dispatcher tells the host that this launch goes. */
INLINE void begin(GLOBAL WORD *ring, u32 launch)
{
    release_host(ring + BEGUN, launch);
}

/* The dispatcher tells workers of what is published, unless they know; whether they are to end with it. */
INLINE u32 dispatch(GLOBAL WORD *ring, GLOBAL WORD *own, u32 known)
{
    const u32 stop = acquire_host(ring + STOP), published = acquire_host(ring + PUBLISHED);
    if (published != known) release_own(own + KNOWN, published);
    return stop;
}

/* A worker's next slot, if one is known. */
INLINE u32 claim(GLOBAL WORD *ring, GLOBAL WORD *own, u32 entries, task *next)
{
    for (;;) {
        const u32 ticket = read_own(own + TAKEN);
        /* Only who sees a ticket acquires: on a graphics card that empties the cache of all its neighbours, too. */
        if ((int)(read_own(own + KNOWN) - ticket) <= 0) return 0;
        if ((int)(acquire_own(own + KNOWN) - ticket) <= 0) return 0;
        /* It is read before the ticket is taken, which is ordered: the host may write the entry anew once a later ticket is done. */
        const u32 entry = ENTRY(ticket);
        if (!raise_own(own + TAKEN, ticket)) continue;
        next->ticket = ticket;
        next->slot = entry & 0xffffu;
        next->packets = entry >> 16;
        return 1;
    }
}

/* A worker has written everything of a slot. */
INLINE void complete(GLOBAL WORD *ring, u32 entries, u32 slot, u32 ticket)
{
    release_host(ring + ENTRIES + entries + slot, ticket + 1u);
}

/* What is a slot's of all that lies behind each other, under the names that ARGUMENTS has. */
#define OF_SLOT(slot) \
    GLOBAL u8 *bytes = all_bytes + (u64)(slot) * room * STRIDE; \
    GLOBAL const u32 *columns = all_columns + (u64)(slot) * room * COLUMNS; \
    GLOBAL RESULT *verdicts = all_verdicts + (u64)(slot) * ((room * BITS + 31u) / 32u) * (4u / sizeof(RESULT)); \
    GLOBAL u32 *records = all_records + (u64)(slot) * room * RECORD_WORDS;
