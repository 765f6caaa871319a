
/* Numbers of 65 to 128 bits. */
typedef struct { u64 high, low; } wide;

INLINE wide wide_of(u64 high, u64 low) { wide made; made.high = high; made.low = low; return made; }
INLINE wide wide_and(wide a, wide b) { return wide_of(a.high & b.high, a.low & b.low); }
INLINE wide wide_or(wide a, wide b) { return wide_of(a.high | b.high, a.low | b.low); }
INLINE wide wide_xor(wide a, wide b) { return wide_of(a.high ^ b.high, a.low ^ b.low); }
INLINE u32 wide_eq(wide a, wide b) { return a.high == b.high && a.low == b.low; }
INLINE u32 wide_lt(wide a, wide b) { return a.high < b.high || (a.high == b.high && a.low < b.low); }
INLINE wide wide_add(wide a, wide b) { u64 low = a.low + b.low; return wide_of(a.high + b.high + (low < a.low), low); }
INLINE wide wide_sub(wide a, wide b) { return wide_of(a.high - b.high - (a.low < b.low), a.low - b.low); }
INLINE wide wide_mul(wide a, wide b)
{
    return wide_of(mul_high64(a.low, b.low) + a.high * b.low + a.low * b.high, a.low * b.low);
}
INLINE wide wide_shl(wide a, u32 by)
{
    if (by == 0) return a;
    if (by >= 64) return wide_of(a.low << (by - 64), 0);
    return wide_of(a.high << by | a.low >> (64 - by), a.low << by);
}
INLINE wide wide_shr(wide a, u32 by)
{
    if (by == 0) return a;
    if (by >= 64) return wide_of(0, a.high >> (by - 64));
    return wide_of(a.high >> by, a.low >> by | a.high << (64 - by));
}
INLINE wide wide_shift_left(wide a, wide by, u32 width, wide most)
{
    if (by.high || by.low >= width) return wide_of(0, 0);
    return wide_and(wide_shl(a, (u32)by.low), most);
}
INLINE wide wide_shift_right(wide a, wide by, u32 width)
{
    if (by.high || by.low >= width) return wide_of(0, 0);
    return wide_shr(a, (u32)by.low);
}
INLINE wide wide_add_saturate(wide a, wide b, wide most)
{
    wide sum = wide_add(a, b);
    return wide_lt(sum, a) || wide_lt(most, sum) ? most : sum;
}
INLINE wide wide_sub_saturate(wide a, wide b) { return wide_lt(a, b) ? wide_of(0, 0) : wide_sub(a, b); }
INLINE wide wide_quotient(wide a, wide b, u32 rest)
{
    wide quotient = wide_of(0, 0), left = wide_of(0, 0);
    if (wide_eq(b, quotient)) return quotient;
    for (u32 bit = 128; bit-- > 0;) {
        u64 carry = left.high >> 63;
        left = wide_shl(left, 1);
        left.low |= wide_shr(a, bit).low & 1;
        if (carry || !wide_lt(left, b)) {
            left = wide_sub(left, b);
            quotient = wide_or(quotient, wide_shl(wide_of(0, 1), bit));
        }
    }
    return rest ? left : quotient;
}
INLINE wide wide_mul_saturate(wide a, wide b, wide most)
{
    u64 cross = a.high ? b.low : b.high, other = a.high ? a.high : a.low;
    wide product = wide_mul(a, b);
    if (a.high && b.high) return most;
    if (cross && (a.high || b.high)) {
        u64 part = other * cross;
        if (mul_high64(other, cross) || mul_high64(a.low, b.low) + part < part) return most;
    }
    return wide_lt(most, product) ? most : product;
}

INLINE u32 add_saturate32(u32 a, u32 b, u32 most) { u64 sum = (u64)a + b; return sum > most ? most : (u32)sum; }
INLINE u32 mul_saturate32(u32 a, u32 b, u32 most) { u64 product = (u64)a * b; return product > most ? most : (u32)product; }
INLINE u64 add_saturate64(u64 a, u64 b, u64 most) { u64 sum = a + b; return sum < a || sum > most ? most : sum; }
INLINE u64 mul_saturate64(u64 a, u64 b, u64 most)
{
    u64 product = a * b;
    return mul_high64(a, b) || product > most ? most : product;
}

/* Bytes of a packet, the most significant first. */
INLINE u32 load1(GLOBAL const u8 *at) { return at[0]; }
INLINE u32 load2(GLOBAL const u8 *at) { return (u32)at[0] << 8 | at[1]; }
INLINE u32 load3(GLOBAL const u8 *at) { return load2(at) << 8 | at[2]; }
INLINE u32 load4(GLOBAL const u8 *at) { return load2(at) << 16 | load2(at + 2); }
INLINE u64 load5(GLOBAL const u8 *at) { return (u64)load4(at) << 8 | at[4]; }
INLINE u64 load6(GLOBAL const u8 *at) { return (u64)load4(at) << 16 | load2(at + 4); }
INLINE u64 load7(GLOBAL const u8 *at) { return (u64)load4(at) << 24 | load3(at + 4); }
INLINE u64 load8(GLOBAL const u8 *at) { return (u64)load4(at) << 32 | load4(at + 4); }
INLINE void store_bytes(GLOBAL u8 *at, u32 bytes, u64 value)
{
    for (u32 i = 0; i < bytes; i++) at[i] = (u8)(value >> 8 * (bytes - 1 - i));
}

/* The sum of RFC 1071 over bytes, at most 65,535. */
INLINE u32 sum_bytes(GLOBAL const u8 *bytes, u32 from, u32 end)
{
    u64 total = 0;
    u32 at = from;
    if (from >= end) return 0;
    for (; at + 1 < end; at += 2) total += load2(bytes + at);
    if (at < end) total += (u32)bytes[at] << 8;
    while (total > 0xffff) total = (total & 0xffff) + (total >> 16);
    return (u32)total;
}
