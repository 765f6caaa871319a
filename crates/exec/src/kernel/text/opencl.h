/* The words of the kernel text in OpenCL C 1.2. */
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
#define GLOBAL __global
#define INLINE static inline
#define mul_high64(a, b) mul_hi((u64)(a), (u64)(b))
#define TABLE GLOBAL const u32 *restrict
