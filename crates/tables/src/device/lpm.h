// Longest prefixes: the walk over the image of a table, as its Rust twin does it.

#define LPM_NONE 0xffffffffu
/* A code that stands for nothing; every larger word is the way to a node. */
#define LPM_NO_CODE 0x3fffffffu

/* The value that a code stands for. */
INLINE u32 lpm_value(GLOBAL const u32 *image, u32 code)
{
    if (code >= LPM_NO_CODE) {
        return LPM_NONE;
    }
    return image[4] != 0 ? image[image[5] + code] : code;
}

/* The cell of a line that holds the interval of these 16 bits. */
INLINE u32 lpm_line(GLOBAL const u32 *line, u32 bits)
{
    u32 rank = 0, pair;
    for (pair = 0; pair < 5; pair++) {
        u32 starts = line[pair];
        rank += (u32)((starts & 0xffff) <= bits) + (u32)((starts >> 16) <= bits);
    }
    return line[5 + rank];
}

/* The value of the longest prefix that contains the address of the table's width in the low bits of high and low, or
   LPM_NONE. */
INLINE u32 lpm_find(GLOBAL const u32 *image, u64 high, u64 low)
{
    u32 cell_bits = image[3], eaten = image[9], shift = 128 - image[2], word, step;
    if (cell_bits != 0) {
        u32 bit = ((u32)low >> 8) * cell_bits;
        u32 mask = 0xffffffffu >> (32 - cell_bits), none = mask & LPM_NO_CODE;
        u32 code = image[image[7] + (bit >> 5)] >> (bit & 31) & mask;
        if (code != none - 1) {
            return code == none ? LPM_NONE : lpm_value(image, code);
        }
    }
    if (shift >= 64) {
        high = low << (shift - 64);
        low = 0;
    } else if (shift != 0) {
        high = high << shift | low >> (64 - shift);
        low = low << shift;
    }
    word = image[image[8] + (u32)(high >> (64 - eaten))];
    /* A walk eats at least four bits a step. */
    for (step = 0; step < 32 && word > LPM_NO_CODE; step++) {
        u32 place = (word & 0x03ffffff) * 16;
        high = high << eaten | low >> (64 - eaten);
        low = low << eaten;
        if (word >> 30 == 1) {
            eaten = 16;
            word = lpm_line(image + place, (u32)(high >> 48));
        } else {
            eaten = ((word >> 26 & 3) + 1) * 4;
            word = image[place + (u32)(high >> (64 - eaten))];
        }
    }
    return lpm_value(image, word);
}
