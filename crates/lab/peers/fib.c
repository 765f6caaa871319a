//! DPDK's rte_fib: DIR-24-8 with next hops of 2 and of 4 bytes, by every way to look up that it has.

#include "dir24_8.h"

typedef uint64_t found;

#include "lookup.h"

#include <rte_fib.h>

static struct rte_fib *fibs[2];
static struct rte_fib *fib;
static uint64_t missing;
static unsigned singly;

static const char *const names[] = {
	"rte_fib 2B scalar macro", "rte_fib 2B scalar inline", "rte_fib 2B scalar uni", "rte_fib 2B avx512",
	"rte_fib 4B scalar macro", "rte_fib 4B scalar inline", "rte_fib 4B scalar uni", "rte_fib 4B avx512",
	"rte_fib 2B single", "rte_fib 4B single", NULL};

static void take_width(unsigned wide)
{
	fib = fibs[wide];
	missing = wide ? 0x7fffffff : 0x7fff;
}

static const char *take_method(unsigned method)
{
	static const enum rte_fib_lookup_type types[] = {
		RTE_FIB_LOOKUP_DIR24_8_SCALAR_MACRO, RTE_FIB_LOOKUP_DIR24_8_SCALAR_INLINE,
		RTE_FIB_LOOKUP_DIR24_8_SCALAR_UNI, RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512};
	singly = method >= 8;
	take_width(singly ? method - 8 : method / 4);
	// One at a time, a vector of one has no use.
	return rte_fib_select_lookup(fib, types[singly ? 1 : method % 4]) ? "this machine or build lacks it" : NULL;
}

static inline uint32_t answer(uint64_t hop)
{
	return hop == missing ? NONE : (uint32_t)hop;
}

static inline void look(const unsigned char *from, uint64_t *hops, unsigned count)
{
	uint32_t *addresses = (uint32_t *)(uintptr_t)from;
	if (singly)
		for (unsigned i = 0; i < count; i++)
			rte_fib_lookup_bulk(fib, addresses + i, hops + i, 1);
	else
		rte_fib_lookup_bulk(fib, addresses, hops, (int)count);
}

static inline int change(const struct route *route)
{
	if (route->hop == NONE)
		return rte_fib_delete(fib, route->address, (uint8_t)route->length);
	return rte_fib_add(fib, route->address, (uint8_t)route->length, route->hop);
}

static void build_width(struct bytes data, unsigned wide)
{
	struct routes routes = routes_of(data);
	struct rte_fib_conf conf = {.type = RTE_FIB_DIR24_8, .max_routes = (int)room_for(routes)};
	conf.dir24_8.nh_sz = wide ? RTE_FIB_DIR24_8_4B : RTE_FIB_DIR24_8_2B;
	conf.dir24_8.num_tbl8 = tables_of_8(routes);
	take_width(wide);
	conf.default_nh = missing;
	fib = fibs[wide] = rte_fib_create(wide ? "fib4" : "fib2", (int)rte_socket_id(), &conf);
	if (!fib)
		fail("rte_fib_create", rte_strerror(rte_errno));
	update(data);
}

static void build(struct bytes data)
{
	build_width(data, 0);
}

int main(int count, char **arguments)
{
	struct bytes routes = dpdk_start(count, arguments, 3, "fib PAGES ROUTES");
	width = sizeof(uint32_t);
	// What is told is the smaller one.
	struct peer peer = built(routes, build, names, take_method, update);
	build_width(routes, 1);
	return peer_serve(&peer);
}
