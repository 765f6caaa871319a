//! DPDK's rte_hash with its CRC: keys of 8 or 16 bytes, in bulk and one at a time.

#include <stdint.h>

typedef uint32_t found;

#include "lookup.h"

#include <rte_hash.h>
#include <rte_hash_crc.h>

static struct rte_hash *hash;
static unsigned chosen;

static const char *const names[] = {"rte_hash bulk", "rte_hash single", NULL};

static const char *take_method(unsigned method)
{
	chosen = method;
	return NULL;
}

static inline uint32_t answer(uint32_t result)
{
	return result;
}

static inline void look(const unsigned char *from, uint32_t *answers, unsigned count)
{
	if (chosen == 1) {
		for (unsigned i = 0; i < count; i++) {
			void *value;
			int found = rte_hash_lookup_data(hash, from + i * width, &value);
			answers[i] = found < 0 ? NONE : (uint32_t)(uintptr_t)value;
		}
		return;
	}
	for (unsigned first = 0; first < count; first += RTE_HASH_LOOKUP_BULK_MAX) {
		unsigned some = RTE_MIN(count - first, (unsigned)RTE_HASH_LOOKUP_BULK_MAX);
		const void *pointers[RTE_HASH_LOOKUP_BULK_MAX];
		void *values[RTE_HASH_LOOKUP_BULK_MAX];
		uint64_t hits = 0;
		for (unsigned i = 0; i < some; i++)
			pointers[i] = from + (first + i) * width;
		rte_hash_lookup_bulk_data(hash, pointers, some, &hits, values);
		for (unsigned i = 0; i < some; i++)
			answers[first + i] = hits >> i & 1 ? (uint32_t)(uintptr_t)values[i] : NONE;
	}
}

// Records of a key and a value; a value of all ones takes the key away.
static size_t update(struct bytes bytes)
{
	size_t record = width + sizeof(uint32_t), count = bytes.length / record;
	for (size_t i = 0; i < count; i++) {
		const unsigned char *key = bytes.data + i * record;
		uint32_t value;
		memcpy(&value, key + width, sizeof(value));
		if (value == NONE)
			rte_hash_del_key(hash, key);
		else if (rte_hash_add_key_data(hash, key, (void *)(uintptr_t)value))
			fail("rte_hash_add_key_data", "full");
	}
	return count;
}

// A key's value is its place.
static void build(struct bytes keys)
{
	size_t entries = keys.length / width;
	// A quarter more than there are, since buckets do not fill to the last place.
	struct rte_hash_parameters parameters = {
		.name = "hash", .entries = (uint32_t)(entries + entries / 4), .key_len = (uint32_t)width,
		.hash_func = rte_hash_crc, .socket_id = (int)rte_socket_id()};
	hash = rte_hash_create(&parameters);
	if (!hash)
		fail("rte_hash_create", rte_strerror(rte_errno));
	for (size_t i = 0; i < entries; i++)
		if (rte_hash_add_key_data(hash, keys.data + i * width, (void *)(uintptr_t)i))
			fail("rte_hash_add_key_data", "full");
}

int main(int count, char **arguments)
{
	struct bytes keys = dpdk_start(count, arguments, 4, "hash PAGES KEYS WIDTH");
	width = (size_t)atoi(arguments[3]);
	if (width != 8 && width != 16)
		fail("width", "8 or 16 bytes");
	struct peer peer = built(keys, build, names, take_method, update);
	return peer_serve(&peer);
}
