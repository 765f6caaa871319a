
/* A thread of any number, each dispatcher and worker at once. It ends after `quantum` slots, after having asked in vain `idle` times in a
   row, or when it is told to, and then it runs what it knows and learns of nothing new. */
void serve_packets(SERVED)
{
    u32 stop = 0;
    begin(ring, launch);
    for (u32 served = 0; served < quantum; served++) {
        task next = { 0, 0, 0 };
        u32 found = 0;
        for (u32 asked = 0; asked < idle && !found; asked++) {
            if (!stop) stop = dispatch(ring, own, read_own(own + KNOWN));
            found = claim(ring, own, entries, &next);
            if (stop) break;
        }
        if (!found) return;
        const u32 packets = next.packets;
        OF_SLOT(next.slot)
#if BITS == 1
        u32 word = 0;
        for (u32 packet = 0; packet < packets; packet++) word |= run_packet(ARGUMENTS, packet) << packet;
        *verdicts = word;
#else
        for (u32 packet = 0; packet < packets; packet++) verdicts[packet] = (RESULT)run_packet(ARGUMENTS, packet);
#endif
        complete(ring, entries, next.slot, next.ticket);
    }
}
