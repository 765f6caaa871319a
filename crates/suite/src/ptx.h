// What clang does not know of CUDA without its headers.
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __forceinline__ inline __attribute__((always_inline))
#define __umul64hi(a, b) __nvvm_mulhi_ull(a, b)
struct places { unsigned x; };
#define threadIdx (places{(unsigned)__nvvm_read_ptx_sreg_tid_x()})
#define blockIdx (places{(unsigned)__nvvm_read_ptx_sreg_ctaid_x()})
#define blockDim (places{(unsigned)__nvvm_read_ptx_sreg_ntid_x()})
static __device__ __forceinline__ unsigned __ballot_sync(unsigned lanes, int holds)
{
    unsigned word;
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, %2; }"
                 : "=r"(word) : "r"(holds), "r"(lanes));
    return word;
}
static __device__ __forceinline__ unsigned __shfl_sync(unsigned lanes, unsigned number, int lane)
{
    unsigned said;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, %3;" : "=r"(said) : "r"(number), "r"(lane), "r"(lanes));
    return said;
}
static __device__ __forceinline__ void __syncwarp() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
static __device__ __forceinline__ void __nanosleep(unsigned time) { asm volatile("nanosleep.u32 %0;" :: "r"(time)); }
#define __shared__ __attribute__((shared))
struct __attribute__((aligned(16))) uint4 { unsigned x, y, z, w; };
__device__ inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return { x, y, z, w }; }
