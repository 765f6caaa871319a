/* The words of the kernel text in C99 with the 128-bit integers of gcc and clang. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
#define GLOBAL
#define INLINE static inline
#define mul_high64(a, b) ((u64)((unsigned __int128)(a) * (b) >> 64))
#define TABLE const u32 *restrict
