//! A route to an IPv4 network as the peers read it from a file.

#ifndef RAVELIN_ROUTE_H
#define RAVELIN_ROUTE_H

#include <stdint.h>
#include <stdlib.h>

// In a file of changes, a next hop of all ones withdraws the route.
struct route {
	uint32_t address, length, hop;
};

static inline int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

// How many groups of 256 a DIR-24-8 table needs behind its first level, with room for routes that come later.
static inline uint32_t tables_of_8(const struct route *routes, size_t count)
{
	uint32_t *seen = malloc((count + 1) * sizeof(*seen)), distinct = 0;
	size_t longer = 0;
	for (size_t i = 0; i < count; i++)
		if (routes[i].length > 24)
			seen[longer++] = routes[i].address >> 8;
	qsort(seen, longer, sizeof(*seen), by_number);
	for (size_t i = 0; i < longer; i++)
		distinct += i == 0 || seen[i] != seen[i - 1];
	free(seen);
	return distinct + distinct / 4 + 256;
}

#endif
