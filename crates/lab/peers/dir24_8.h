//! Routes of IPv4, and how large a DIR-24-8 table for them is.

#ifndef RAVELIN_DIR24_8_H
#define RAVELIN_DIR24_8_H

#include <stdint.h>

typedef uint32_t address;

#include "route.h"

static inline int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

// How many groups of 256 the table needs behind its first level, with room for routes that come later.
static inline uint32_t tables_of_8(struct routes routes)
{
	uint32_t *seen = malloc((routes.count + 1) * sizeof(*seen)), distinct = 0;
	size_t longer = 0;
	for (size_t i = 0; i < routes.count; i++)
		if (routes.list[i].length > 24)
			seen[longer++] = routes.list[i].address >> 8;
	qsort(seen, longer, sizeof(*seen), by_number);
	for (size_t i = 0; i < longer; i++)
		distinct += i == 0 || seen[i] != seen[i - 1];
	free(seen);
	return distinct + distinct / 4 + 256;
}

#endif
