//! DPDK's rte_fib6: a trie of groups of 256 behind a first level of 24 bits, with next hops of 4 bytes, by every way to look up.

#include "dpdk.h"

#include <rte_fib6.h>

// In a file of changes, a next hop of all ones withdraws the route.
struct route6 {
	uint8_t address[16];
	uint32_t length, hop;
};

// What is found where no route leads.
#define MISSING 0x7fffffff

static struct rte_fib6 *fib;
static unsigned singly;

static const char *const names[] = {
	"rte_fib6 trie 4B scalar", "rte_fib6 trie 4B avx512", "rte_fib6 trie 4B single", NULL};

static uint8_t (*keys)[16];
static size_t key_count;

static size_t take_queries(struct bytes bytes)
{
	keys = (uint8_t (*)[16])bytes.data;
	key_count = bytes.length / sizeof(*keys);
	return key_count;
}

static const char *take_method(const char *name)
{
	static const enum rte_fib6_lookup_type types[] = {
		RTE_FIB6_LOOKUP_TRIE_SCALAR, RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512, RTE_FIB6_LOOKUP_TRIE_SCALAR};
	unsigned number = 0;
	while (names[number] && strcmp(names[number], name))
		number++;
	if (!names[number])
		return "no such method";
	singly = number == 2;
	return rte_fib6_select_lookup(fib, types[number]) ? "this machine or build lacks it" : NULL;
}

static inline uint32_t answer(uint64_t hop)
{
	return hop == MISSING ? NONE : (uint32_t)hop;
}

static inline void look(uint8_t (*from)[16], uint64_t *hops, unsigned count)
{
	if (singly)
		for (unsigned i = 0; i < count; i++)
			rte_fib6_lookup_bulk(fib, from + i, hops + i, 1);
	else
		rte_fib6_lookup_bulk(fib, from, hops, (int)count);
}

static uint64_t pass(unsigned batch)
{
	static uint64_t hops[BATCH_MAX] __rte_cache_aligned;
	uint64_t sum = 0;
	for (size_t first = 0; first < key_count; first += batch) {
		unsigned count = key_count - first < batch ? (unsigned)(key_count - first) : batch;
		look(keys + first, hops, count);
		sum += (uint64_t)answer(hops[0]) + answer(hops[count - 1]);
	}
	return sum;
}

static void answers(FILE *to)
{
	for (size_t first = 0; first < key_count; first++) {
		uint64_t hop;
		look(keys + first, &hop, 1);
		write_answer(to, answer(hop));
	}
}

static size_t update(struct bytes bytes)
{
	const struct route6 *changes = (const struct route6 *)bytes.data;
	size_t count = bytes.length / sizeof(*changes);
	for (size_t i = 0; i < count; i++) {
		int code = 0;
		if (changes[i].hop == NONE)
			code = rte_fib6_delete(fib, changes[i].address, (uint8_t)changes[i].length);
		else
			code = rte_fib6_add(fib, changes[i].address, (uint8_t)changes[i].length, changes[i].hop);
		if (code)
			fail("a change", strerror(-code));
	}
	return count;
}

// How many groups of 256 are set aside: rte_fib6 reserves one for every byte of a route behind the third, also where routes share
// them, and loses some of what it reserved when routes come and go.
static uint32_t tables_of_8(const struct route6 *routes, size_t count)
{
	uint32_t groups = 0;
	for (size_t i = 0; i < count; i++)
		groups += routes[i].length > 24 ? (routes[i].length - 24 + 7) / 8 : 0;
	return groups + groups / 8 + 65536;
}

int main(int count, char **arguments)
{
	if (count != 3)
		fail("usage", "fib6 PAGES ROUTES");
	struct bytes bytes = whole_file(arguments[2]);
	const struct route6 *routes = (const struct route6 *)bytes.data;
	size_t route_count = bytes.length / sizeof(*routes);
	dpdk_start(arguments[1]);
	struct peer peer = {
		.version = rte_version(), .methods = names, .select = take_method, .queries = take_queries,
		.pass = pass, .answers = answers, .update = update};
	struct rte_fib6_conf conf = {
		.type = RTE_FIB6_TRIE, .default_nh = MISSING, .max_routes = (int)(route_count + route_count / 4 + 1024)};
	conf.trie.nh_sz = RTE_FIB6_TRIE_4B;
	conf.trie.num_tbl8 = tables_of_8(routes, route_count);
	uint64_t heap = dpdk_heap(), start = thread_ns();
	fib = rte_fib6_create("fib6", (int)rte_socket_id(), &conf);
	if (!fib)
		fail("rte_fib6_create", rte_strerror(rte_errno));
	for (size_t i = 0; i < route_count; i++) {
		int code = rte_fib6_add(fib, routes[i].address, (uint8_t)routes[i].length, routes[i].hop);
		if (code)
			fail("rte_fib6_add", strerror(-code));
	}
	peer.build_ns = thread_ns() - start;
	peer.bytes = dpdk_heap() - heap;
	return peer_serve(&peer);
}
