// Tables of patterns: by an automaton that takes a step a byte, and by Bloom filters whose hits are confirmed.

#define PATTERNS_NONE 0xffffffffu
/* What a search is for. */
#define PATTERNS_FIRST 0
#define PATTERNS_ALL 1
#define PATTERNS_SET 2

INLINE u32 patterns_folded(u32 byte)
{
    return byte - 0x41 < 26 ? byte + 32 : byte;
}

/* Whether the bytes here are the pattern's. */
INLINE u32 patterns_same(GLOBAL const u32 *image, GLOBAL const u32 *pattern, GLOBAL const u8 *bytes)
{
    GLOBAL const u32 *own = image + pattern[4];
    u32 length = pattern[0], cased = pattern[5], at;
    for (at = 0; at < length; at++) {
        u32 byte = cased != 0 ? bytes[at] : patterns_folded(bytes[at]);
        if (byte != (own[at >> 2] >> (8 * (at & 3)) & 0xff)) {
            return 0;
        }
    }
    return 1;
}

INLINE void patterns_mark(u64 *set, u32 value)
{
    if (value < 64) {
        set[0] |= (u64)1 << value;
    } else if (value < 128) {
        set[1] |= (u64)1 << (value - 64);
    }
}

INLINE u32 patterns_more(u32 count)
{
    return count == 0xffffffffu ? count : count + 1;
}

/* Runs the automaton: the first pattern, or how many occurrences there are, or 0 and the bits of those that occur. */
INLINE u32 patterns_run(GLOBAL const u32 *image, GLOBAL const u8 *bytes, u32 length, u32 what, u64 *set)
{
    GLOBAL const u32 *classes = image + image[5];
    GLOBAL const u32 *patterns = image + image[6];
    GLOBAL const u32 *rows = image + image[7];
    u32 row = 0, count = 0, best = PATTERNS_NONE, at;
    for (at = 0; at < length; at++) {
        u32 byte = bytes[at], list, place;
        row = rows[(row & 0x7fffffff) + 1 + (classes[byte >> 2] >> (8 * (byte & 3)) & 0xff)];
        list = row >> 31 != 0 ? rows[row & 0x7fffffff] : 0;
        while (list != 0) {
            for (place = 0; place < image[list]; place++) {
                u32 number = image[list + 2 + place], end = at + 1;
                GLOBAL const u32 *pattern = patterns + number * 8;
                u32 start = end - pattern[0];
                if (start < pattern[1] || end > pattern[2]) {
                    continue;
                }
                if (pattern[5] != 0 && patterns_same(image, pattern, bytes + start) == 0) {
                    continue;
                }
                if (what == PATTERNS_SET) {
                    patterns_mark(set, pattern[3]);
                }
                count = patterns_more(count);
                best = number < best ? number : best;
            }
            list = image[list + 1];
        }
        if (what == PATTERNS_FIRST && best != PATTERNS_NONE) {
            return best;
        }
    }
    return what == PATTERNS_FIRST ? PATTERNS_NONE : what == PATTERNS_ALL ? count : 0;
}

/* The number of the pattern whose occurrence ends first, of several the smallest, or PATTERNS_NONE. */
INLINE u32 patterns_first(GLOBAL const u32 *image, GLOBAL const u8 *bytes, u32 length)
{
    return patterns_run(image, bytes, length, PATTERNS_FIRST, (u64 *)0);
}

/* How many occurrences there are; no more than 32 bits hold. */
INLINE u32 patterns_all(GLOBAL const u32 *image, GLOBAL const u8 *bytes, u32 length)
{
    return patterns_run(image, bytes, length, PATTERNS_ALL, (u64 *)0);
}

/* Sets those of the 128 bits that patterns which occur have as their values. */
INLINE void patterns_set(GLOBAL const u32 *image, GLOBAL const u8 *bytes, u32 length, u64 *set)
{
    patterns_run(image, bytes, length, PATTERNS_SET, set);
}

/* The value of a pattern, in either image. */
INLINE u32 patterns_value(GLOBAL const u32 *image, u32 number)
{
    return image[image[6] + number * 8 + 3];
}

INLINE u64 patterns_mixed(u64 hash, u64 word)
{
    hash = ((hash << 26 | hash >> 38) ^ (word | 0x2020202020202020)) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 29;
}

/* The hash of the first 1, 2, 3, 4, 8, 16 or 32 bytes of what these words hold, the earliest byte lowest. */
INLINE u64 patterns_hash(u32 prefix, u64 one, u64 two, u64 three, u64 four)
{
    u64 hash = prefix;
    if (prefix < 8) {
        hash = patterns_mixed(hash, one & (((u64)1 << (8 * prefix)) - 1));
    } else {
        hash = patterns_mixed(hash, one);
        if (prefix >= 16) {
            hash = patterns_mixed(hash, two);
        }
        if (prefix >= 32) {
            hash = patterns_mixed(patterns_mixed(hash, three), four);
        }
        hash = patterns_mixed(hash, 0);
    }
    return hash * 0xbf58476d1ce4e5b9;
}

/* Whether all bits of a hash are set in the filter of a class. */
INLINE u32 patterns_pass(GLOBAL const u32 *filter, u32 mask, u64 hash)
{
    u32 one = (u32)hash, two = (u32)(hash >> 32) | 1, time, all = 1;
    for (time = 0; time < 4; time++) {
        u32 bit = (one + two * time) & mask;
        all &= filter[bit >> 5] >> (bit & 31);
    }
    return all & 1;
}

/* As patterns_run, by the filters of an image of its own. */
INLINE u32 patterns_filter(GLOBAL const u32 *image, GLOBAL const u8 *bytes, u32 length, u32 what, u64 *set)
{
    GLOBAL const u32 *patterns = image + image[6];
    u32 classes = image[3], count = 0, best = PATTERNS_NONE, best_end = 0xffffffffu, start, number;
    u64 one = 0, two = 0, three = 0, four = 0;
    for (start = 0; start < 31; start++) {
        one = one >> 8 | two << 56;
        two = two >> 8 | three << 56;
        three = three >> 8 | four << 56;
        four = four >> 8 | (u64)(start < length ? bytes[start] : 0) << 56;
    }
    for (start = 0; start < length && (what != PATTERNS_FIRST || start < best_end); start++) {
        one = one >> 8 | two << 56;
        two = two >> 8 | three << 56;
        three = three >> 8 | four << 56;
        four = four >> 8 | (u64)(length - start > 31 ? bytes[start + 31] : 0) << 56;
        for (number = 0; number < classes; number++) {
            GLOBAL const u32 *kind = image + 8 + 8 * number;
            GLOBAL const u32 *slot, *entry;
            u32 prefix = kind[0], entries;
            u64 hash;
            if (prefix > length - start) {
                continue;
            }
            hash = patterns_hash(prefix, one, two, three, four);
            if (patterns_pass(image + kind[1], kind[2], hash) == 0) {
                continue;
            }
            slot = image + kind[3] + (u32)(hash >> kind[4]);
            entry = image + kind[5] + slot[0] * 3;
            for (entries = slot[1] - slot[0]; entries != 0; entries--, entry += 3) {
                GLOBAL const u32 *pattern = patterns + entry[2] * 8;
                u32 end;
                if (entry[0] != (u32)hash || entry[1] != (u32)(hash >> 32) || pattern[0] > length - start) {
                    continue;
                }
                end = start + pattern[0];
                if (start < pattern[1] || end > pattern[2] || patterns_same(image, pattern, bytes + start) == 0) {
                    continue;
                }
                if (what == PATTERNS_SET) {
                    patterns_mark(set, pattern[3]);
                }
                count = patterns_more(count);
                if (best == PATTERNS_NONE || end < best_end || (end == best_end && entry[2] < best)) {
                    best = entry[2];
                    best_end = end;
                }
            }
        }
    }
    return what == PATTERNS_FIRST ? best : what == PATTERNS_ALL ? count : 0;
}

/* As patterns_first, over an image of filters. */
INLINE u32 patterns_first_bloom(GLOBAL const u32 *image, GLOBAL const u8 *bytes, u32 length)
{
    return patterns_filter(image, bytes, length, PATTERNS_FIRST, (u64 *)0);
}

/* As patterns_all, over an image of filters. */
INLINE u32 patterns_all_bloom(GLOBAL const u32 *image, GLOBAL const u8 *bytes, u32 length)
{
    return patterns_filter(image, bytes, length, PATTERNS_ALL, (u64 *)0);
}

/* As patterns_set, over an image of filters. */
INLINE void patterns_set_bloom(GLOBAL const u32 *image, GLOBAL const u8 *bytes, u32 length, u64 *set)
{
    patterns_filter(image, bytes, length, PATTERNS_SET, set);
}
