
__kernel void run_packets(PARAMETERS)
{
    const u32 packet = (u32)get_global_id(0);
    if (packet < packets) verdicts[packet] = (RESULT)run_packet(ARGUMENTS, packet);
}
