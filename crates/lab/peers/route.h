//! A route as the peers read it from a file, and routes that come and go.
//
// Before it is included, `address` is the type of an address. A peer defines `change`.

#ifndef RAVELIN_ROUTE_H
#define RAVELIN_ROUTE_H

#include "peer.h"

// A next hop of all ones withdraws the route.
struct route {
	address address;
	uint32_t length, hop;
};

struct routes {
	const struct route *list;
	size_t count;
};

// Adds or withdraws a route; other than zero, a negative error number.
static inline int change(const struct route *route);

static inline struct routes routes_of(struct bytes bytes)
{
	return (struct routes){(const struct route *)bytes.data, bytes.length / sizeof(struct route)};
}

// For how many routes a table has room, so that more can come later.
static inline size_t room_for(struct routes routes)
{
	return routes.count + routes.count / 4 + 1024;
}

static size_t update(struct bytes bytes)
{
	struct routes changes = routes_of(bytes);
	for (size_t i = 0; i < changes.count; i++) {
		int code = change(&changes.list[i]);
		if (code)
			fail("a route", strerror(-code));
	}
	return changes.count;
}

#endif
