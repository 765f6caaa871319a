/* The words of the kernel text in CUDA C++. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
#define GLOBAL
#define INLINE static __device__ __forceinline__
#define mul_high64(a, b) __umul64hi((a), (b))
#define TABLE const u32 *__restrict__
