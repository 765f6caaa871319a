//! DPDK's rte_fib6: a trie of groups of 256 behind a first level of 24 bits, with next hops of 4 bytes, by every way to look up.

#include <stdint.h>

typedef uint8_t address[16];

#include "route.h"

typedef uint64_t found;

#include "lookup.h"

#include <rte_fib6.h>

// What is found where no route leads.
#define MISSING 0x7fffffff

static struct rte_fib6 *fib;
static unsigned singly;

static const char *const names[] = {
	"rte_fib6 trie 4B scalar", "rte_fib6 trie 4B avx512", "rte_fib6 trie 4B single", NULL};

static const char *take_method(unsigned method)
{
	static const enum rte_fib6_lookup_type types[] = {
		RTE_FIB6_LOOKUP_TRIE_SCALAR, RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512, RTE_FIB6_LOOKUP_TRIE_SCALAR};
	singly = method == 2;
	return rte_fib6_select_lookup(fib, types[method]) ? "this machine or build lacks it" : NULL;
}

static inline uint32_t answer(uint64_t hop)
{
	return hop == MISSING ? NONE : (uint32_t)hop;
}

static inline void look(const unsigned char *from, uint64_t *hops, unsigned count)
{
	uint8_t (*addresses)[16] = (uint8_t (*)[16])(uintptr_t)from;
	if (singly)
		for (unsigned i = 0; i < count; i++)
			rte_fib6_lookup_bulk(fib, addresses + i, hops + i, 1);
	else
		rte_fib6_lookup_bulk(fib, addresses, hops, (int)count);
}

static inline int change(const struct route *route)
{
	if (route->hop == NONE)
		return rte_fib6_delete(fib, route->address, (uint8_t)route->length);
	return rte_fib6_add(fib, route->address, (uint8_t)route->length, route->hop);
}

// How many groups of 256 are set aside: rte_fib6 reserves one for every byte of a route behind the third, also where routes share
// them, and loses some of what it reserved when routes come and go.
static uint32_t tables_of_8(struct routes routes)
{
	uint32_t groups = 0;
	for (size_t i = 0; i < routes.count; i++)
		groups += routes.list[i].length > 24 ? (routes.list[i].length - 24 + 7) / 8 : 0;
	return groups + groups / 8 + 65536;
}

static void build(struct bytes data)
{
	struct routes routes = routes_of(data);
	struct rte_fib6_conf conf = {
		.type = RTE_FIB6_TRIE, .default_nh = MISSING, .max_routes = (int)room_for(routes)};
	conf.trie.nh_sz = RTE_FIB6_TRIE_4B;
	conf.trie.num_tbl8 = tables_of_8(routes);
	fib = rte_fib6_create("fib6", (int)rte_socket_id(), &conf);
	if (!fib)
		fail("rte_fib6_create", rte_strerror(rte_errno));
	update(data);
}

int main(int count, char **arguments)
{
	struct bytes routes = dpdk_start(count, arguments, 3, "fib6 PAGES ROUTES");
	width = sizeof(address);
	struct peer peer = built(routes, build, names, take_method, update);
	return peer_serve(&peer);
}
