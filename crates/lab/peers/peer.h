//! What all peers share: commands on standard input, answers on standard output, the time of this thread, whole files.
//
// A peer is started as `PEER PAGES DATA …`, builds its table, and says
//     ready BUILD_NANOSECONDS BYTES VERSION
//     methods NAME|NAME|…
// Then it answers each line of its input with one line:
//     queries FILE        ok COUNT             what is looked up from now on
//     select METHOD       ok, or absent WHY    how it is looked up from now on
//     answers FILE        ok                   every answer, 32 bits each (none is all ones), in order
//     pass BATCH PASSES   NANOSECONDS SUM      that many passes over all queries after one that does not count
//     update FILE         NANOSECONDS COUNT    changes of the table
// The sum is that of the first and the last answer of every batch of every pass, so that whoever asks can see that all
// contenders did the same work. Numbers in files are little-endian.

#ifndef RAVELIN_PEER_H
#define RAVELIN_PEER_H

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NONE UINT32_MAX
#define BATCH_MAX 1024

// A whole file in memory.
struct bytes {
	unsigned char *data;
	size_t length;
};

// What a peer gives to `peer_serve`.
struct peer {
	const char *version;
	const char *const *methods;                    // ends with a null pointer
	uint64_t build_ns, bytes;
	const char *(*select)(unsigned method);        // by its place; null if it can be had here, or why not
	size_t (*queries)(struct bytes queries);       // how many there are
	uint64_t (*pass)(unsigned batch);              // the sum
	void (*answers)(FILE *to);
	size_t (*update)(struct bytes changes);        // how many there were; null where a table cannot be changed
};

static inline uint64_t thread_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void fail(const char *what, const char *why)
{
	printf("failed %s: %s\n", what, why);
	exit(1);
}

static inline void write_answer(FILE *to, uint32_t answer)
{
	fwrite(&answer, sizeof(answer), 1, to);
}

static inline struct bytes whole_file(const char *path)
{
	struct bytes bytes = {0};
	FILE *file = fopen(path, "rb");
	if (!file || fseek(file, 0, SEEK_END))
		fail(path, strerror(errno));
	bytes.length = (size_t)ftell(file);
	rewind(file);
	bytes.data = aligned_alloc(64, (bytes.length + 64 + 63) / 64 * 64);
	if (!bytes.data || fread(bytes.data, 1, bytes.length, file) != bytes.length)
		fail(path, "cannot be read whole");
	fclose(file);
	return bytes;
}

static inline int peer_serve(const struct peer *peer)
{
	char line[4096];
	printf("ready %" PRIu64 " %" PRIu64 " %s\nmethods ", peer->build_ns, peer->bytes, peer->version);
	for (const char *const *method = peer->methods; *method; method++)
		printf("%s%s", method == peer->methods ? "" : "|", *method);
	printf("\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		char *argument = strchr(line, ' ');
		if (argument)
			*argument++ = 0;
		else
			argument = line + strlen(line);
		if (!strcmp(line, "queries")) {
			printf("ok %zu\n", peer->queries(whole_file(argument)));
		} else if (!strcmp(line, "select")) {
			unsigned method = 0;
			while (peer->methods[method] && strcmp(peer->methods[method], argument))
				method++;
			const char *why = peer->methods[method] ? peer->select(method) : "no such method";
			printf(why ? "absent %s\n" : "ok\n", why);
		} else if (!strcmp(line, "answers")) {
			FILE *to = fopen(argument, "wb");
			if (!to)
				fail(argument, strerror(errno));
			peer->answers(to);
			if (fclose(to))
				fail(argument, strerror(errno));
			printf("ok\n");
		} else if (!strcmp(line, "pass")) {
			unsigned batch = 0, passes = 0;
			uint64_t sum = 0;
			if (sscanf(argument, "%u %u", &batch, &passes) != 2 || batch < 1 || batch > BATCH_MAX)
				fail("pass", argument);
			peer->pass(batch);
			uint64_t start = thread_ns();
			for (unsigned pass = 0; pass < passes; pass++)
				sum += peer->pass(batch);
			printf("%" PRIu64 " %" PRIu64 "\n", thread_ns() - start, sum);
		} else if (!strcmp(line, "update") && peer->update) {
			struct bytes changes = whole_file(argument);
			uint64_t start = thread_ns();
			size_t count = peer->update(changes);
			printf("%" PRIu64 " %zu\n", thread_ns() - start, count);
			free(changes.data);
		} else {
			fail("unknown command", line);
		}
		fflush(stdout);
	}
	return 0;
}

#endif
