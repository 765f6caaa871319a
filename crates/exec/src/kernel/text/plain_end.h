
void run_packets(PARAMETERS)
{
    for (u32 packet = 0; packet < packets; packet++) run_packet(ARGUMENTS, packet);
}
