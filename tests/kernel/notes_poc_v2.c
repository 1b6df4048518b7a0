// SPDX-License-Identifier: MIT
/* Not a test: notes_poc_v2 TIMES ID..., a program as the notes' second header has it: unmaps and remaps these
 * queues. */
#include <gpreempt_poc_v2.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 64

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 0;
	gpreempt_queue_info_t *queues;
	uint32_t ids[MOST], n = 0, all;

	for (int i = 2; i < argc && n < MOST; i++)
		ids[n++] = (uint32_t)atoi(argv[i]);
	if (gpreempt_poc_init() < 0 || gpreempt_get_all_queues(&queues, &all) < 0) {
		perror("notes_poc_v2");
		return 1;
	}
	gpreempt_free_queue_info(queues);
	for (int i = 0; i < times; i++) {
		if (gpreempt_batch_unmap_queues(ids, n, 100) < 0 || gpreempt_fast_remap_queues(ids, n) < 0) {
			perror("notes_poc_v2");
			return 1;
		}
	}
	printf("found %u, unmapped and remapped %u, %d times\n", all, n, times);
	gpreempt_poc_cleanup();
	return 0;
}
