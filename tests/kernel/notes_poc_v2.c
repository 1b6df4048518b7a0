// SPDX-License-Identifier: MIT
/*
 * Not a test: a program as the notes' second header has it.  notes_poc_v2 TIMES ID... unmaps and remaps these
 * queues; notes_poc_v2 reserve GPU ONLINE OFFLINE reserves, says so, and takes it back at the end of stdin.
 */
#include <gpreempt_poc_v2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64

static int reserve(uint32_t gpu, uint32_t online, uint32_t offline)
{
	if (gpreempt_set_hqd_reservation(gpu, online, offline) < 0)
		return -1;
	printf("reserved\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return gpreempt_set_hqd_reservation(gpu, 0, 0);
}

static int unmap_and_remap(int times, uint32_t *ids, uint32_t n)
{
	gpreempt_queue_info_t *queues;
	uint32_t all;

	if (gpreempt_get_all_queues(&queues, &all) < 0)
		return -1;
	gpreempt_free_queue_info(queues);
	for (int i = 0; i < times; i++)
		if (gpreempt_batch_unmap_queues(ids, n, 100) < 0 || gpreempt_fast_remap_queues(ids, n) < 0)
			return -1;
	printf("found %u, unmapped and remapped %u, %d times\n", all, n, times);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	uint32_t words[MOST], n = 0;
	int r;

	for (int i = 2; i < argc && n < MOST; i++)
		words[n++] = (uint32_t)strtoul(argv[i], NULL, 0);
	r = gpreempt_poc_init();
	if (r == 0 && !strcmp(what, "reserve") && n == 3)
		r = reserve(words[0], words[1], words[2]);
	else if (r == 0)
		r = unmap_and_remap(atoi(what), words, n);
	if (r < 0) {
		perror("notes_poc_v2");
		return 1;
	}
	gpreempt_poc_cleanup();
	return 0;
}
