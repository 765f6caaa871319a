
/* Each thread leaves its packet's bit with its group, and the first of every 32 makes a word of theirs: nobody writes a word that
   another one writes, so nothing has to be zero before or be done atomically. */
__kernel void run_packets(PARAMETERS)
{
    __local u8 outcomes[1024];
    const u32 packet = (u32)get_global_id(0), own = (u32)get_local_id(0);
    outcomes[own] = packet < packets ? (u8)run_packet(ARGUMENTS, packet) : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (own % 32 == 0 && packet < packets) {
        u32 word = 0;
        for (u32 i = 0; i < 32; i++) word |= (u32)outcomes[own + i] << i;
        verdicts[packet / 32] = word;
    }
}
