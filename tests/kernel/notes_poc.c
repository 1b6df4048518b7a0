// SPDX-License-Identifier: MIT
/* Not a test: notes_poc PID, a program as the design notes' first header has it written. Waits for a line
 * before it resumes. */
#include <gpreempt_poc.h>
#include <stdio.h>

#define MOST 64

static uint32_t ids[MOST];

static int find(pid_t pid, uint32_t *ret_n)
{
	gpreempt_queue_info_t *queues;
	uint32_t n;

	if (gpreempt_find_queues_by_process(pid, &queues, &n) < 0)
		return -1;
	for (uint32_t i = 0; i < n && i < MOST; i++)
		ids[i] = queues[i].queue_id;
	gpreempt_free_queue_info(queues);
	*ret_n = n < MOST ? n : MOST;
	return 0;
}

static int count_active(uint32_t n)
{
	gpreempt_queue_info_t info;
	int active = 0;

	for (uint32_t i = 0; i < n; i++)
		active += gpreempt_get_queue_status(ids[i], &info) == 0 && info.is_active;
	return active;
}

int main(int argc, char **argv)
{
	unsigned int pid;
	uint32_t n;

	if (argc < 2 || sscanf(argv[1], "%u", &pid) != 1 || gpreempt_poc_init() < 0 ||
	    find((pid_t)pid, &n) < 0 || gpreempt_suspend_queues(ids, n, 1000) < 0) {
		perror("notes_poc");
		return 1;
	}
	printf("suspended %u active %d\n", n, count_active(n));
	fflush(stdout);
	getchar();
	if (gpreempt_resume_queues(ids, n) < 0) {
		perror("notes_poc");
		return 1;
	}
	printf("resumed %u active %d\n", n, count_active(n));
	gpreempt_poc_cleanup();
	return 0;
}
