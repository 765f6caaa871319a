
void run_packets(PARAMETERS)
{
    for (u32 packet = 0; packet < packets; packet++) verdicts[packet] = (RESULT)run_packet(ARGUMENTS, packet);
}
