//! DPDK's rte_hash with its CRC: keys of 8 or 16 bytes, in bulk and one at a time.

#include "dpdk.h"

#include <rte_hash.h>
#include <rte_hash_crc.h>

static struct rte_hash *hash;
static unsigned method, width;

static const char *const names[] = {"rte_hash bulk", "rte_hash single", NULL};

static const unsigned char *keys;
static size_t key_count;

static size_t take_queries(struct bytes bytes)
{
	keys = bytes.data;
	key_count = bytes.length / width;
	return key_count;
}

static const char *take_method(const char *name)
{
	for (method = 0; names[method]; method++)
		if (!strcmp(names[method], name))
			return NULL;
	return "no such method";
}

static inline void look(const unsigned char *from, uint32_t *answers, unsigned count)
{
	if (method == 1) {
		for (unsigned i = 0; i < count; i++) {
			void *value;
			int found = rte_hash_lookup_data(hash, from + (size_t)i * width, &value);
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
			pointers[i] = from + (size_t)(first + i) * width;
		rte_hash_lookup_bulk_data(hash, pointers, some, &hits, values);
		for (unsigned i = 0; i < some; i++)
			answers[first + i] = hits >> i & 1 ? (uint32_t)(uintptr_t)values[i] : NONE;
	}
}

static uint64_t pass(unsigned batch)
{
	static uint32_t answers[BATCH_MAX] __rte_cache_aligned;
	uint64_t sum = 0;
	for (size_t first = 0; first < key_count; first += batch) {
		unsigned count = key_count - first < batch ? (unsigned)(key_count - first) : batch;
		look(keys + first * width, answers, count);
		__asm__ volatile("" : : "r"(answers) : "memory");
		sum += (uint64_t)answers[0] + answers[count - 1];
	}
	return sum;
}

static void answers(FILE *to)
{
	for (size_t first = 0; first < key_count; first++) {
		uint32_t answer;
		look(keys + first * width, &answer, 1);
		write_answer(to, answer);
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

int main(int count, char **arguments)
{
	if (count != 4)
		fail("usage", "hash PAGES KEYS WIDTH");
	struct bytes bytes = whole_file(arguments[2]);
	width = (unsigned)atoi(arguments[3]);
	if (width != 8 && width != 16)
		fail("width", "8 or 16 bytes");
	size_t entries = bytes.length / width;
	dpdk_start(arguments[1]);
	struct peer peer = {
		.version = rte_version(), .methods = names, .select = take_method, .queries = take_queries,
		.pass = pass, .answers = answers, .update = update};
	// A quarter more than there are, since buckets do not fill to the last place.
	struct rte_hash_parameters parameters = {
		.name = "hash", .entries = (uint32_t)(entries + entries / 4), .key_len = width,
		.hash_func = rte_hash_crc, .socket_id = (int)rte_socket_id()};
	uint64_t heap = dpdk_heap(), start = thread_ns();
	hash = rte_hash_create(&parameters);
	if (!hash)
		fail("rte_hash_create", rte_strerror(rte_errno));
	for (size_t i = 0; i < entries; i++)
		if (rte_hash_add_key_data(hash, bytes.data + i * width, (void *)(uintptr_t)i))
			fail("rte_hash_add_key_data", "full");
	peer.build_ns = thread_ns() - start;
	peer.bytes = dpdk_heap() - heap;
	return peer_serve(&peer);
}
