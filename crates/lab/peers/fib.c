//! DPDK's rte_fib: DIR-24-8 with next hops of 2 and of 4 bytes, by every way to look up that it has.

#include "dpdk.h"
#include "route.h"

#include <rte_fib.h>

static struct rte_fib *fibs[2];
static struct rte_fib *fib;
static uint64_t missing;
static unsigned singly;

static const char *const names[] = {
	"rte_fib 2B scalar macro", "rte_fib 2B scalar inline", "rte_fib 2B scalar uni", "rte_fib 2B avx512",
	"rte_fib 4B scalar macro", "rte_fib 4B scalar inline", "rte_fib 4B scalar uni", "rte_fib 4B avx512",
	"rte_fib 2B single", "rte_fib 4B single", NULL};

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
	static const enum rte_fib_lookup_type types[] = {
		RTE_FIB_LOOKUP_DIR24_8_SCALAR_MACRO, RTE_FIB_LOOKUP_DIR24_8_SCALAR_INLINE,
		RTE_FIB_LOOKUP_DIR24_8_SCALAR_UNI, RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512};
	unsigned number = 0;
	while (names[number] && strcmp(names[number], name))
		number++;
	if (!names[number])
		return "no such method";
	singly = number >= 8;
	unsigned wide = singly ? number - 8 : number / 4;
	fib = fibs[wide];
	missing = wide ? 0x7fffffff : 0x7fff;
	// One at a time, a vector of one has no use.
	if (rte_fib_select_lookup(fib, types[singly ? 1 : number % 4]))
		return "this machine or build lacks it";
	return NULL;
}

static inline uint32_t answer(uint64_t hop)
{
	return hop == missing ? NONE : (uint32_t)hop;
}

static inline void look(const uint32_t *from, uint64_t *hops, unsigned count)
{
	if (singly)
		for (unsigned i = 0; i < count; i++)
			rte_fib_lookup_bulk(fib, (uint32_t *)(uintptr_t)(from + i), hops + i, 1);
	else
		rte_fib_lookup_bulk(fib, (uint32_t *)(uintptr_t)from, hops, (int)count);
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
	const struct route *changes = (const struct route *)bytes.data;
	size_t count = bytes.length / sizeof(*changes);
	for (size_t i = 0; i < count; i++) {
		int code = 0;
		if (changes[i].hop == NONE)
			code = rte_fib_delete(fib, changes[i].address, (uint8_t)changes[i].length);
		else
			code = rte_fib_add(fib, changes[i].address, (uint8_t)changes[i].length, changes[i].hop);
		if (code)
			fail("a change", strerror(-code));
	}
	return count;
}

int main(int count, char **arguments)
{
	if (count != 3)
		fail("usage", "fib PAGES ROUTES");
	struct bytes bytes = whole_file(arguments[2]);
	const struct route *routes = (const struct route *)bytes.data;
	size_t route_count = bytes.length / sizeof(*routes);
	dpdk_start(arguments[1]);
	struct peer peer = {
		.version = rte_version(), .methods = names, .select = take_method, .queries = take_queries,
		.pass = pass, .answers = answers, .update = update};
	for (unsigned wide = 0; wide < 2; wide++) {
		uint64_t heap = dpdk_heap(), start = thread_ns();
		struct rte_fib_conf conf = {
			.type = RTE_FIB_DIR24_8, .default_nh = wide ? 0x7fffffff : 0x7fff,
			.max_routes = (int)(route_count + route_count / 4 + 1024)};
		conf.dir24_8.nh_sz = wide ? RTE_FIB_DIR24_8_4B : RTE_FIB_DIR24_8_2B;
		conf.dir24_8.num_tbl8 = tables_of_8(routes, route_count);
		fibs[wide] = rte_fib_create(wide ? "fib4" : "fib2", (int)rte_socket_id(), &conf);
		if (!fibs[wide])
			fail("rte_fib_create", rte_strerror(rte_errno));
		for (size_t i = 0; i < route_count; i++) {
			int code = rte_fib_add(fibs[wide], routes[i].address, (uint8_t)routes[i].length, routes[i].hop);
			if (code)
				fail("rte_fib_add", strerror(-code));
		}
		// What is told is the smaller one.
		if (!wide) {
			peer.build_ns = thread_ns() - start;
			peer.bytes = dpdk_heap() - heap;
		}
	}
	return peer_serve(&peer);
}
