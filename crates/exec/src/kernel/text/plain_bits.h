
void run_packets(PARAMETERS)
{
    for (u32 packet = 0; packet < packets; packet++) {
        const u32 bit = packet % 32, before = bit ? verdicts[packet / 32] : 0;
        verdicts[packet / 32] = before | run_packet(ARGUMENTS, packet) << bit;
    }
}
