// Tables of rules: the walk down the trees of an image, and the trial of one rule after the other, 32 at a time.

#define RULES_NONE 0xffffffffu
#define RULES_NO_RULE 0x3fffffffu
/* The element of the flags where there are none. */
#define RULES_NO_FLAGS 0xffffffffu
/* Words of 64 bits of the widest packed key that rules_find and rules_find_linear take. */
#define RULES_WORDS 32

INLINE u32 rules_width(GLOBAL const u32 *widths, u32 column)
{
    return widths[column >> 2] >> (8 * (column & 3)) & 0xff;
}

/* Two elements of a packed key, the first one in the lower side. */
INLINE u32 rules_pair(const u64 *packed, u32 pair)
{
    return (u32)(packed[pair >> 1] >> (32 * (pair & 1)));
}

INLINE u32 rules_element(const u64 *packed, u32 element)
{
    return (u32)(packed[element >> 2] >> (16 * (element & 3))) & 0xffff;
}

/* How many columns of one bit are flags: the first eight, if there are two. */
INLINE u32 rules_flags(GLOBAL const u32 *widths, u32 columns)
{
    u32 count = 0, column;
    for (column = 0; column < columns; column++) {
        count += (u32)(rules_width(widths, column) == 1);
    }
    return count < 2 ? 0 : count < 8 ? count : 8;
}

/* Packs a key: each column as elements of 16 bits, the lowest first, then the flags: a bit for each that is set, and
   eight bits above one for each that is not. The number of elements. */
INLINE u32 rules_pack(GLOBAL const u32 *widths, u32 columns, const u64 *key, u64 *packed, u32 words)
{
    u32 element = 0, word = 0, column, piece, at, flags = rules_flags(widths, columns), flag = 0;
    u64 set = 0;
    for (at = 0; at < words; at++) {
        packed[at] = 0;
    }
    for (column = 0; column < columns; column++) {
        u32 width = rules_width(widths, column);
        if (width == 1 && flag < flags) {
            set |= (key[word] & 1) << flag | (~key[word] & 1) << (flag + 8);
            flag++;
            word++;
            continue;
        }
        word += width > 64 ? 1 : 0;
        for (piece = 0; piece * 16 < width; piece++) {
            u32 left = width - piece * 16;
            u64 bits = key[word - (piece >> 2)] >> (16 * (piece & 3)) & (0xffffu >> (left < 16 ? 16 - left : 0));
            packed[element >> 2] |= bits << (16 * (element & 3));
            element++;
        }
        word++;
    }
    if (flags != 0) {
        packed[element >> 2] |= set << (16 * (element & 3));
        element++;
    }
    return element;
}

/* Whether a packed key passes one check. */
INLINE u32 rules_passes(GLOBAL const u32 *check, const u64 *packed)
{
    u32 first = check[0] & 0xffff, piece;
    u32 differs = 0, above = 0, below = 0;
    /* From the highest piece down, until it is clear on which side of a bound the number lies. */
    for (piece = (check[0] & RULES_NO_RULE) >> 16; piece-- > 0;) {
        u32 value = rules_element(packed, first + piece), shift = 16 * (piece & 1);
        u32 one = check[1 + (piece >> 1)] >> shift & 0xffff;
        u32 two = check[5 + (piece >> 1)] >> shift & 0xffff;
        differs |= (value ^ one) & two;
        if (above == 0) {
            above = value > one ? 1 : value < one ? 2 : 0;
        }
        if (below == 0) {
            below = value < two ? 1 : value > two ? 2 : 0;
        }
    }
    return check[0] >> 31 != 0 ? (u32)(above != 2 && below != 2) : (u32)(differs == 0);
}

/* Whether a packed key passes this check and those behind it, up to the rule's last. */
INLINE u32 rules_confirm(GLOBAL const u32 *check, const u64 *packed)
{
    while (rules_passes(check, packed) != 0) {
        if ((check[0] >> 30 & 1) != 0) {
            return 1;
        }
        check += 9;
    }
    return 0;
}

/* Where a section of an image of trees begins: 0 roots, 1 nodes, 2 children, 3 blocks, 4 ids, 5 rules, 6 checks. */
INLINE GLOBAL const u32 *rules_section(GLOBAL const u32 *image, u32 section)
{
    return image + (image[4 + 4 * section] >> 2 | image[5 + 4 * section] << 30);
}

/* Follows entries down to the first block of a leaf. */
INLINE u32 rules_walk(GLOBAL const u32 *image, u32 entry, const u64 *packed, u32 words)
{
    GLOBAL const u32 *nodes = rules_section(image, 1);
    GLOBAL const u32 *children = rules_section(image, 2);
    while (entry >> 31 != 0) {
        GLOBAL const u32 *node = nodes + (entry & 0x7fffffff) * (((words + 2) & ~1u) * 2);
        u32 place = node[2 * words], shift = 0, word;
        for (word = 0; word < words; word++) {
            u64 mask = node[2 * word] | (u64)node[2 * word + 1] << 32;
            while (mask != 0) {
                u64 rest = mask & (mask - 1);
                place += (u32)((packed[word] & (mask ^ rest)) != 0) << shift;
                shift++;
                mask = rest;
            }
        }
        entry = children[place];
    }
    return entry;
}

/* How far an element of the key, in the lower side, is beyond the least that fits; of the flags, those that are
   missing. */
INLINE u32 rules_beyond(u32 key, u32 least, u32 are_flags)
{
    return (are_flags != 0 ? least & ~key : key - least) & 0xffff;
}

/* The first rule of the leaf at a block that fits. The flags are element number flags. */
INLINE u32 rules_scan(GLOBAL const u32 *image, u32 block, const u64 *packed, u32 words, u32 elements, u32 flags)
{
    u32 stride = words * 4, slots = stride < 32 ? 32 / stride : 1, side = stride < 32 ? 16 : stride / 2, slot, pair;
    GLOBAL const u32 *lows = rules_section(image, 3) + block * (2 * side);
    GLOBAL const u32 *ids = rules_section(image, 4) + block * slots;
    for (;;) {
        for (slot = 0; slot < slots; slot++) {
            GLOBAL const u32 *low = lows + slot * (stride / 2);
            u32 id = ids[slot], fits = 1;
            if ((id & RULES_NO_RULE) == RULES_NO_RULE) {
                break;
            }
            /* Most rules do not fit in their first pair. */
            for (pair = 0; fits != 0 && pair < (elements + 1) / 2; pair++) {
                u32 key = rules_pair(packed, pair), least = low[pair], span = low[pair + side];
                u32 one = (u32)(2 * pair == flags), other = (u32)(2 * pair + 1 == flags);
                fits &= (u32)(rules_beyond(key, least, one) <= (span & 0xffff));
                fits &= (u32)(rules_beyond(key >> 16, least >> 16, other) <= span >> 16);
            }
            if (fits != 0) {
                u32 rule = id & RULES_NO_RULE;
                u32 first = rules_section(image, 5)[rule * 4 + 3];
                if ((id >> 30 & 1) == 0 || rules_confirm(rules_section(image, 6) + first * 9, packed) != 0) {
                    return rule;
                }
            }
        }
        if (ids[0] >> 31 == 0) {
            return RULES_NO_RULE;
        }
        lows += 2 * side;
        ids += slots;
    }
}

/* The value of the first rule that fits a packed key of so many words and elements, of which one is the flags. */
INLINE u32 rules_find_packed(GLOBAL const u32 *image, const u64 *packed, u32 words, u32 elements, u32 flags)
{
    GLOBAL const u32 *roots = rules_section(image, 0);
    GLOBAL const u32 *rules = rules_section(image, 5);
    u32 count = image[6], tree, best = RULES_NONE;
    u64 least = 0;
    for (tree = 0; tree < count; tree++) {
        u32 rule = rules_scan(image, rules_walk(image, roots[tree], packed, words), packed, words, elements, flags);
        if (rule != RULES_NO_RULE) {
            u64 order = rules[rule * 4] | (u64)rules[rule * 4 + 1] << 32;
            if (best == RULES_NONE || order < least) {
                best = rule;
                least = order;
            }
        }
    }
    return best == RULES_NONE ? RULES_NONE : rules[best * 4 + 2];
}

/* The value of the first rule that fits the key, or RULES_NONE, over an image of trees. */
INLINE u32 rules_find(GLOBAL const u32 *image, const u64 *key)
{
    u64 packed[RULES_WORDS];
    u32 words = image[3] / 4;
    u32 elements = rules_pack(image + 32, image[2], key, packed, words);
    u32 flags = rules_flags(image + 32, image[2]) != 0 ? elements - 1 : RULES_NO_FLAGS;
    return rules_find_packed(image, packed, words, elements, flags);
}

INLINE u32 rules_lowest_bit(u32 word)
{
    u32 place = 0, step;
    for (step = 16; step != 0; step >>= 1) {
        if ((word & ((1u << step) - 1)) == 0) {
            word >>= step;
            place += step;
        }
    }
    return place;
}

/* Of the rules of a chunk that hits says, the first that passes its checks, or 32; values are the chunk's. */
INLINE u32 rules_settle(GLOBAL const u32 *image, GLOBAL const u32 *values, u32 hits, const u64 *packed)
{
    while (hits != 0) {
        u32 at = rules_lowest_bit(hits), check = values[32 + at];
        if (check == 0 || rules_confirm(image + image[6] + (check - 1) * 9, packed) != 0) {
            return at;
        }
        hits &= hits - 1;
    }
    return 32;
}

/* The value of the first rule that fits the key, or RULES_NONE, over an image of rules in order of trial. */
INLINE u32 rules_find_linear(GLOBAL const u32 *image, const u64 *key)
{
    u64 packed[RULES_WORDS];
    u32 chunks = image[4], pairs = image[7], ranges = image[8], chunk, field, rule;
    GLOBAL const u32 *fields = image + image[9];
    GLOBAL const u32 *rules = image + image[5];
    rules_pack(image + 16, image[2], key, packed, image[3] / 4);
    for (chunk = 0; chunk < chunks; chunk++) {
        u32 hits = 0xffffffffu, at;
        for (field = 0; field < pairs; field++, rules += 64) {
            u32 pair = rules_pair(packed, fields[field]);
            for (rule = 0; rule < 32; rule++) {
                hits &= ~((u32)(((pair ^ rules[rule]) & rules[32 + rule]) != 0) << rule);
            }
        }
        for (field = 0; field < ranges; field++, rules += 32) {
            u32 element = rules_element(packed, fields[pairs + field]);
            for (rule = 0; rule < 32; rule++) {
                hits &= ~((u32)(element - (rules[rule] & 0xffff) > rules[rule] >> 16) << rule);
            }
        }
        at = rules_settle(image, rules, hits, packed);
        if (at < 32) {
            return rules[at];
        }
        rules += 64;
    }
    return RULES_NONE;
}
