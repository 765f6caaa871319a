//! What the peers built on DPDK share: starting its environment on the processor this thread is held on, and counting its heap.

#ifndef RAVELIN_DPDK_H
#define RAVELIN_DPDK_H

#include <sched.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_version.h>

#include "peer.h"

// Starts DPDK with `huge` (2 MiB) or `small` (4 KiB) pages, which the first argument names, and with vectors as wide as the machine has
// them; gives the file that the second one names.
static inline struct bytes dpdk_start(int given, char **words, int wanted, const char *usage)
{
	if (given != wanted)
		fail("usage", usage);
	struct bytes data = whole_file(words[2]);
	static char core[16];
	static char *arguments[] = {
		"peer", "--no-pci", "--no-telemetry", "--log-level=error",
		"--force-max-simd-bitwidth=512", "-l", core, NULL, NULL, NULL, NULL};
	int count = 7;
	snprintf(core, sizeof(core), "%d", sched_getcpu());
	if (!strcmp(words[1], "small")) {
		arguments[count++] = "--no-huge";
		arguments[count++] = "--no-shconf";
		arguments[count++] = "-m";
		arguments[count++] = "2048";
	} else {
		arguments[count++] = "--in-memory";
	}
	if (rte_eal_init(count, arguments) < 0)
		fail("rte_eal_init", rte_strerror(rte_errno));
	return data;
}

// Bytes that DPDK's heap has given out.
static inline uint64_t dpdk_heap(void)
{
	struct rte_malloc_socket_stats stats;
	if (rte_malloc_get_socket_stats((int)rte_socket_id(), &stats))
		return 0;
	return stats.heap_allocsz_bytes;
}

#endif
