
/* A warp votes, and the first of its threads writes the word. */
extern "C" __global__ void run_packets(PARAMETERS)
{
    const u32 packet = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 word = __ballot_sync(0xffffffffu, packet < packets && run_packet(ARGUMENTS, packet));
    if (threadIdx.x % 32 == 0 && packet < packets) verdicts[packet / 32] = word;
}
