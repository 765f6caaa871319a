//! Hyperscan, or Vectorscan where that is installed: literals, some without regard to case, in blocks; every occurrence is reported.

#include "peer.h"

#include <hs.h>

static hs_database_t *database;
static hs_scratch_t *scratch;

static const char *const names[] = {"hyperscan block", NULL};

// A file of pieces is, for each, its length and its kind in 32 bits, and its bytes.
struct pieces {
	size_t count;
	const char **data;
	size_t *lengths;
	uint32_t *kinds;
};

static struct pieces payloads;

static struct pieces pieces_of(struct bytes bytes)
{
	struct pieces pieces = {0};
	for (size_t at = 0, room = 0; at + 8 <= bytes.length;) {
		uint32_t head[2];
		memcpy(head, bytes.data + at, sizeof(head));
		if (pieces.count == room) {
			room = room * 2 + 1024;
			pieces.data = realloc(pieces.data, room * sizeof(*pieces.data));
			pieces.lengths = realloc(pieces.lengths, room * sizeof(*pieces.lengths));
			pieces.kinds = realloc(pieces.kinds, room * sizeof(*pieces.kinds));
		}
		pieces.data[pieces.count] = (const char *)bytes.data + at + 8;
		pieces.lengths[pieces.count] = head[0];
		pieces.kinds[pieces.count++] = head[1];
		at += 8 + head[0];
	}
	return pieces;
}

static size_t take_queries(struct bytes bytes)
{
	payloads = pieces_of(bytes);
	return payloads.count;
}

static const char *take_method(unsigned method)
{
	(void)method;
	return NULL;
}

// What is summed of each occurrence, so that all contenders can be held against each other.
static int found(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *sum)
{
	(void)from, (void)flags;
	*(uint64_t *)sum += ((uint64_t)id + 1) * (to + 1);
	return 0;
}

static int counted(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *count)
{
	(void)id, (void)from, (void)to, (void)flags;
	++*(uint32_t *)count;
	return 0;
}

static uint64_t pass(unsigned batch)
{
	(void)batch;
	uint64_t sum = 0;
	for (size_t i = 0; i < payloads.count; i++)
		hs_scan(database, payloads.data[i], (unsigned)payloads.lengths[i], 0, scratch, found, &sum);
	return sum;
}

// For each payload, how often something occurs in it.
static void answers(FILE *to)
{
	for (size_t i = 0; i < payloads.count; i++) {
		uint32_t count = 0;
		hs_scan(database, payloads.data[i], (unsigned)payloads.lengths[i], 0, scratch, counted, &count);
		write_answer(to, count);
	}
}

int main(int count, char **arguments)
{
	if (count != 3)
		fail("usage", "hyperscan PAGES PATTERNS");
	struct pieces patterns = pieces_of(whole_file(arguments[2]));
	unsigned *flags = malloc((patterns.count + 1) * sizeof(*flags)), *ids = malloc((patterns.count + 1) * sizeof(*ids));
	for (size_t i = 0; i < patterns.count; i++) {
		flags[i] = patterns.kinds[i] ? HS_FLAG_CASELESS : 0;
		ids[i] = (unsigned)i;
	}
	struct peer peer = {
		.version = hs_version(), .methods = names, .select = take_method, .queries = take_queries,
		.pass = pass, .answers = answers};
	hs_compile_error_t *error = NULL;
	uint64_t start = thread_ns();
	if (hs_compile_lit_multi(patterns.data, flags, ids, patterns.lengths, (unsigned)patterns.count, HS_MODE_BLOCK,
			NULL, &database, &error) != HS_SUCCESS)
		fail("hs_compile_lit_multi", error->message);
	peer.build_ns = thread_ns() - start;
	if (hs_alloc_scratch(database, &scratch) != HS_SUCCESS)
		fail("hs_alloc_scratch", "no memory");
	size_t size = 0, more = 0;
	hs_database_size(database, &size);
	hs_scratch_size(scratch, &more);
	peer.bytes = size + more;
	return peer_serve(&peer);
}
