// The bridge of the device texts for C99: names of types, no address spaces, and the one function they ask for.
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define GLOBAL
#define INLINE static inline

INLINE u64 mul_high64(u64 one, u64 two)
{
    u64 low = (one & 0xffffffff) * (two & 0xffffffff);
    u64 cross = (one >> 32) * (two & 0xffffffff) + (low >> 32);
    u64 middle = (one & 0xffffffff) * (two >> 32) + (cross & 0xffffffff);
    return (one >> 32) * (two >> 32) + (cross >> 32) + (middle >> 32);
}
