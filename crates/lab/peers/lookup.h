//! What the peers that look up keys share: the queries, passes over them in batches, every answer, and the table with what it cost.
//
// Before it is included, `found` is the type of what the library writes for a query. A peer sets `width` before it serves, and defines
// `look` and `answer`.

#ifndef RAVELIN_LOOKUP_H
#define RAVELIN_LOOKUP_H

#include "dpdk.h"

// Bytes of a query.
static size_t width;
static unsigned char *keys;
static size_t key_count;

// Looks up the queries from `from` on.
static inline void look(const unsigned char *from, found *results, unsigned count);
// What the library wrote as an answer.
static inline uint32_t answer(found result);

static size_t take_queries(struct bytes bytes)
{
	free(keys);
	keys = bytes.data;
	key_count = bytes.length / width;
	return key_count;
}

static inline unsigned look_batch(size_t first, unsigned batch, found *results)
{
	unsigned count = key_count - first < batch ? (unsigned)(key_count - first) : batch;
	look(keys + first * width, results, count);
	// Without it, what is looked up in place could be left out where it is not summed.
	__asm__ volatile("" : : "r"(results) : "memory");
	return count;
}

static uint64_t pass(unsigned batch)
{
	static found results[BATCH_MAX] __rte_cache_aligned;
	uint64_t sum = 0;
	for (size_t first = 0; first < key_count; first += batch) {
		unsigned count = look_batch(first, batch, results);
		sum += (uint64_t)answer(results[0]) + answer(results[count - 1]);
	}
	return sum;
}

// In batches, since vectors are used for many at once only.
static void answers(FILE *to)
{
	static found results[BATCH_MAX] __rte_cache_aligned;
	for (size_t first = 0; first < key_count; first += BATCH_MAX) {
		unsigned count = look_batch(first, BATCH_MAX, results);
		for (unsigned i = 0; i < count; i++)
			write_answer(to, answer(results[i]));
	}
}

// The peer whose table `build` makes of the data.
static inline struct peer built(
	struct bytes data, void (*build)(struct bytes data), const char *const *methods, const char *(*select)(unsigned method),
	size_t (*update)(struct bytes changes))
{
	uint64_t heap = dpdk_heap(), start = thread_ns();
	build(data);
	return (struct peer){
		.version = rte_version(), .build_ns = thread_ns() - start, .bytes = dpdk_heap() - heap,
		.methods = methods, .select = select, .update = update,
		.queries = take_queries, .pass = pass, .answers = answers};
}

#endif
