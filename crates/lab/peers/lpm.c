//! DPDK's rte_lpm: DIR-24-8 with entries of 4 bytes, one at a time, four at a time, and in bulk.

#include "dir24_8.h"

typedef uint32_t found;

#include "lookup.h"

#include <rte_lpm.h>

static struct rte_lpm *lpm;
static unsigned chosen;

static const char *const names[] = {"rte_lpm bulk", "rte_lpm x4", "rte_lpm single", NULL};

static const char *take_method(unsigned method)
{
	chosen = method;
	return NULL;
}

// In bulk, entries as rte_lpm has them: the next hop in 24 bits, and one that says whether it is there. Otherwise the next hop.
static inline uint32_t answer(uint32_t entry)
{
	if (chosen > 0)
		return entry;
	return entry & RTE_LPM_LOOKUP_SUCCESS ? entry & 0x00ffffff : NONE;
}

static inline void look(const unsigned char *from, uint32_t *entries, unsigned count)
{
	const uint32_t *addresses = (const uint32_t *)from;
	unsigned i = 0;
	if (chosen == 0) {
		rte_lpm_lookup_bulk(lpm, addresses, entries, count);
		return;
	}
	if (chosen == 1)
		for (; i + 4 <= count; i += 4)
			rte_lpm_lookupx4(lpm, _mm_loadu_si128((const __m128i *)(addresses + i)), entries + i, NONE);
	for (; i < count; i++)
		if (rte_lpm_lookup(lpm, addresses[i], &entries[i]))
			entries[i] = NONE;
}

static inline int change(const struct route *route)
{
	if (route->hop == NONE)
		return rte_lpm_delete(lpm, route->address, (uint8_t)route->length);
	return rte_lpm_add(lpm, route->address, (uint8_t)route->length, route->hop);
}

static void build(struct bytes data)
{
	struct routes routes = routes_of(data);
	struct rte_lpm_config config = {.max_rules = (uint32_t)room_for(routes), .number_tbl8s = tables_of_8(routes)};
	lpm = rte_lpm_create("lpm", (int)rte_socket_id(), &config);
	if (!lpm)
		fail("rte_lpm_create", rte_strerror(rte_errno));
	update(data);
}

int main(int count, char **arguments)
{
	struct bytes routes = dpdk_start(count, arguments, 3, "lpm PAGES ROUTES");
	width = sizeof(uint32_t);
	struct peer peer = built(routes, build, names, take_method, update);
	return peer_serve(&peer);
}
