// SPDX-License-Identifier: MIT
/*
 * The driver's dump of its queues, on a GPU of many XCCs: each has a part of a compute queue, and one
 * of them an SDMA queue.  The stock driver is known to dump as many parts of an SDMA queue as the
 * compute queue before it has, of memory that is not the queue's.
 *
 * bed: xccs=8 param=cus=4
 */
#include <stdio.h>
#include <string.h>

#include "kfd.h"
#include "tap.h"

#define MQDS "/sys/kernel/debug/kfd/mqds"
#define COMPUTE "  Compute queue"
#define SDMA "  SDMA queue"
#define PART "    00000000:" /* its first line */

/* Parts of the queues of that kind, or -1: it cannot be read. */
static int parts_of(const char *kind)
{
	FILE *f = fopen(MQDS, "r");
	int parts = 0, is_inside = 0;
	char line[256];

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (strstr(line, " queue on device "))
			is_inside = strncmp(line, kind, strlen(kind)) == 0;
		parts += is_inside && strncmp(line, PART, strlen(PART)) == 0;
	}
	fclose(f);
	return parts;
}

static void an_sdma_queue_has_one_part(int parts)
{
	if (kfd_is_patched())
		ok(parts == 1, "one of the SDMA queue (%d)", parts);
	else
		ok(parts == 8, "and of the SDMA queue on the stock driver, as is known (%d)", parts);
}

int main(void)
{
	struct kfd_queue sdma, aql;
	struct kfd kfd;

	if (!ok(kfd_open(&kfd) == 0 && kfd.ngpus == 1 && kfd.gpus[0].num_xcc == 8, "a GPU of eight XCCs"))
		return tap_done();
	/* Dumped the last one first. */
	ok(kfd_queue_create(&kfd, &kfd.gpus[0], KFD_TYPE_SDMA, 7, &sdma) == 0 &&
		   kfd_queue_create(&kfd, &kfd.gpus[0], KFD_TYPE_AQL, 7, &aql) == 0,
	   "an SDMA queue, and then a compute queue");
	ok(parts_of(COMPUTE) == 8, "eight parts of the compute queue are dumped");
	an_sdma_queue_has_one_part(parts_of(SDMA));
	ok(kfd_queue_destroy(&aql) == 0 && kfd_queue_destroy(&sdma) == 0, "the queues are destroyed");
	kfd_close(&kfd);
	return tap_done();
}
