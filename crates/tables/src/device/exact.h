// Exact matches: open addressing, one slot after the other from the one that the key's hash chooses.

#define EXACT_NONE 0xffffffffu

INLINE u64 exact_word(GLOBAL const u32 *words)
{
    return words[0] | (u64)words[1] << 32;
}

/* Where in the image, in words of 32 bits, the value of a key of so many words begins, or EXACT_NONE. */
INLINE u32 exact_find(GLOBAL const u32 *image, const u64 *key, u32 key_words)
{
    u32 mask = image[4] - 1, size = image[5], tag, slot, probe, word;
    u64 start = exact_word(image + 8), multiplier = exact_word(image + 10), sum = start;
    for (word = 0; word < key_words; word++) {
        u64 mixed = sum ^ key[word];
        sum = mixed * multiplier ^ mul_high64(mixed, multiplier);
    }
    start |= 1;
    sum ^= multiplier;
    sum = sum * start ^ mul_high64(sum, start);
    slot = (u32)sum & mask;
    tag = (u32)(sum >> 32) | 1;
    /* The next free slot is no further than that: it is the processor's LONGEST_RUN. */
    for (probe = 0; probe <= mask && probe <= 256; probe++) {
        u32 at = 16 + slot * size, found = image[at];
        if (found == 0) {
            return EXACT_NONE;
        }
        if (found == tag) {
            u64 differs = 0;
            for (word = 0; word < key_words; word++) {
                differs |= exact_word(image + at + 1 + 2 * word) ^ key[word];
            }
            if (differs == 0) {
                return at + 1 + 2 * key_words;
            }
        }
        slot = (slot + 1) & mask;
    }
    return EXACT_NONE;
}
