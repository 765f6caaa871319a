
extern "C" __global__ void run_packets(PARAMETERS)
{
    const u32 packet = blockIdx.x * blockDim.x + threadIdx.x;
    if (packet < packets) verdicts[packet] = (RESULT)run_packet(ARGUMENTS, packet);
}
