//! DPDK's rte_lpm: DIR-24-8 with entries of 4 bytes, one at a time, four at a time, and in bulk.

#include "dpdk.h"
#include "route.h"

#include <rte_lpm.h>

static struct rte_lpm *lpm;
static unsigned method;

static const char *const names[] = {"rte_lpm bulk", "rte_lpm x4", "rte_lpm single", NULL};

static const uint32_t *keys;
static size_t key_count;

static size_t take_queries(struct bytes bytes)
{
	keys = (const uint32_t *)bytes.data;
	key_count = bytes.length / sizeof(*keys);
	return key_count;
}

static const char *take_method(const char *name)
{
	for (method = 0; names[method]; method++)
		if (!strcmp(names[method], name))
			return NULL;
	return "no such method";
}

// In bulk, entries as rte_lpm has them: the next hop in 24 bits, and one that says whether it is there. Otherwise the next hop.
static inline uint32_t answer(uint32_t entry)
{
	if (method > 0)
		return entry;
	return entry & RTE_LPM_LOOKUP_SUCCESS ? entry & 0x00ffffff : NONE;
}

static inline void look(const uint32_t *from, uint32_t *entries, unsigned count)
{
	unsigned i = 0;
	if (method == 0) {
		rte_lpm_lookup_bulk(lpm, from, entries, count);
		return;
	}
	if (method == 1)
		for (; i + 4 <= count; i += 4)
			rte_lpm_lookupx4(lpm, _mm_loadu_si128((const __m128i *)(from + i)), entries + i, NONE);
	for (; i < count; i++)
		if (rte_lpm_lookup(lpm, from[i], &entries[i]))
			entries[i] = NONE;
}

static uint64_t pass(unsigned batch)
{
	static uint32_t entries[BATCH_MAX] __rte_cache_aligned;
	uint64_t sum = 0;
	for (size_t first = 0; first < key_count; first += batch) {
		unsigned count = key_count - first < batch ? (unsigned)(key_count - first) : batch;
		look(keys + first, entries, count);
		__asm__ volatile("" : : "r"(entries) : "memory");
		sum += (uint64_t)answer(entries[0]) + answer(entries[count - 1]);
	}
	return sum;
}

static void answers(FILE *to)
{
	uint32_t entries[4];
	for (size_t first = 0; first < key_count; first += 4) {
		unsigned count = key_count - first < 4 ? (unsigned)(key_count - first) : 4;
		look(keys + first, entries, count);
		for (unsigned i = 0; i < count; i++)
			write_answer(to, answer(entries[i]));
	}
}

static size_t update(struct bytes bytes)
{
	const struct route *changes = (const struct route *)bytes.data;
	size_t count = bytes.length / sizeof(*changes);
	for (size_t i = 0; i < count; i++) {
		int code = 0;
		if (changes[i].hop == NONE)
			code = rte_lpm_delete(lpm, changes[i].address, (uint8_t)changes[i].length);
		else
			code = rte_lpm_add(lpm, changes[i].address, (uint8_t)changes[i].length, changes[i].hop);
		if (code)
			fail("a change", strerror(-code));
	}
	return count;
}

int main(int count, char **arguments)
{
	if (count != 3)
		fail("usage", "lpm PAGES ROUTES");
	struct bytes bytes = whole_file(arguments[2]);
	const struct route *routes = (const struct route *)bytes.data;
	size_t route_count = bytes.length / sizeof(*routes);
	dpdk_start(arguments[1]);
	struct peer peer = {
		.version = rte_version(), .methods = names, .select = take_method, .queries = take_queries,
		.pass = pass, .answers = answers, .update = update};
	uint64_t heap = dpdk_heap(), start = thread_ns();
	struct rte_lpm_config config = {
		.max_rules = (uint32_t)(route_count + route_count / 4 + 1024),
		.number_tbl8s = tables_of_8(routes, route_count)};
	lpm = rte_lpm_create("lpm", (int)rte_socket_id(), &config);
	if (!lpm)
		fail("rte_lpm_create", rte_strerror(rte_errno));
	for (size_t i = 0; i < route_count; i++) {
		int code = rte_lpm_add(lpm, routes[i].address, (uint8_t)routes[i].length, routes[i].hop);
		if (code)
			fail("rte_lpm_add", strerror(-code));
	}
	peer.build_ns = thread_ns() - start;
	peer.bytes = dpdk_heap() - heap;
	return peer_serve(&peer);
}
