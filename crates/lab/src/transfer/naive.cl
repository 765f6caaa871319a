/* What the original's authors ran, for one packet a thread: a walk through a binary trie, bit by bit, and a loop over rules. */
#ifdef __OPENCL_VERSION__
typedef uchar u8;
typedef uint u32;
typedef ulong u64;
#define GLOBAL __global
#define INLINE static inline
#define ENTRY __kernel
#define PLACE ((u32)get_global_id(0))
#else
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long u64;
#define GLOBAL
#define INLINE static __device__ __forceinline__
#define ENTRY extern "C" __global__
#define PLACE (blockIdx.x * blockDim.x + threadIdx.x)
#endif

/* Four bytes in the order of the network. */
INLINE u32 word_at(GLOBAL const u8 *bytes)
{
    return (u32)bytes[0] << 24 | (u32)bytes[1] << 16 | (u32)bytes[2] << 8 | (u32)bytes[3];
}

/* Nodes of three words: where zeros and ones go on, or 0, and what is said here, or 0. */
INLINE u32 trie_find(GLOBAL const u32 *nodes, u32 address)
{
    u32 node = 0, found = NO_ROUTE, bit = 32;
    for (;;) {
        u32 here = nodes[node * 3 + 2];
        if (here != 0) found = here;
        if (bit == 0) return found;
        bit--;
        node = nodes[node * 3 + (address >> bit & 1)];
        if (node == 0) return found;
    }
}

/* The number of rules, then eight words each: address and mask of source and destination, lowest | highest << 16 of both
   ports, protocol or 256, and what is said. */
INLINE u32 rules_find(GLOBAL const u32 *rules, u32 src, u32 dst, u32 ports, u32 proto)
{
    u32 count = rules[0], number, sport = ports >> 16, dport = ports & 0xffff;
    for (number = 0; number < count; number++) {
        GLOBAL const u32 *rule = rules + 1 + number * 8;
        if (((src ^ rule[0]) & rule[1]) != 0 || ((dst ^ rule[2]) & rule[3]) != 0) continue;
        if (sport < (rule[4] & 0xffff) || sport > rule[4] >> 16) continue;
        if (dport < (rule[5] & 0xffff) || dport > rule[5] >> 16) continue;
        if (rule[6] == 256 || rule[6] == proto) return rule[7];
    }
    return NO_RULE;
}

ENTRY void run_packets(GLOBAL const u8 *bytes, GLOBAL const u32 *columns, GLOBAL u32 *verdicts,
                          GLOBAL u32 *records, const u32 packets TABLES)
{
    const u32 packet = PLACE;
    if (packet < packets) {
        GLOBAL const u8 *frame = bytes + (u64)packet * STRIDE;
        u32 dst = word_at(frame + 30), said = NO_RULE;
#ifdef RULES
        u32 proto = frame[23], ports = proto == 6 || proto == 17 ? word_at(frame + 34) : 0;
        said = rules_find(RULES, word_at(frame + 26), dst, ports, proto);
#endif
#ifdef TRIE
        if (said == NO_RULE) said = trie_find(TRIE, dst);
#endif
        verdicts[packet] = said;
    }
}
