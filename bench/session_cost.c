// SPDX-License-Identifier: MIT
/*
 * session_cost TIMES PID:QUEUE...: stops and runs these queues by a scheduling session of its own, that
 * often, and prints the bare calls' p50 and p99 in ns, as way_cost does through gpreemptd.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernel/session.h"
#include "quantiles.h"

#define MOST 1024

/* PID:QUEUE words. */
static void name_queues(struct kfd_session_queue *entries, char **words, uint32_t n, uint32_t want)
{
	for (uint32_t i = 0; i < n; i++) {
		char *id;
		pid_t pid = (pid_t)strtol(words[i], &id, 10);

		entries[i] = session_queue(pid, *id == ':' ? (uint32_t)strtoul(id + 1, NULL, 10) : 0, want);
	}
}

/* ns, or 0: it failed. */
static uint64_t set_all(int session, char **words, uint32_t n, uint32_t want)
{
	static struct kfd_session_queue entries[MOST];
	uint64_t begin;
	int r;

	name_queues(entries, words, n, want);
	begin = kfd_now();
	r = session_set(session, entries, n, NULL);
	begin = kfd_now() - begin;
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = entries[i].status == KFD_SESSION_DONE ? 0 : (int)entries[i].status;
	if (r)
		fprintf(stderr, "session_cost: a call for %u queues came to %d\n", n, r);
	return r == 0 ? begin : 0;
}

int main(int argc, char **argv)
{
	size_t times = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
	uint64_t *stops = calloc(times + 1, sizeof(*stops)), *runs = calloc(times + 1, sizeof(*runs));
	uint32_t n = (uint32_t)argc - 2;
	int session, is_done = times && stops && runs && argc - 2 <= MOST;
	struct kfd kfd;

	if (!is_done || kfd_open(&kfd) < 0 || (session = session_open(&kfd, 0)) < 0) {
		fprintf(stderr, "usage: session_cost TIMES PID:QUEUE..., on the driver with the series\n");
		return 2;
	}
	for (size_t i = 0; i < times && is_done; i++) {
		stops[i] = set_all(session, argv + 2, n, KFD_SESSION_STOP);
		runs[i] = set_all(session, argv + 2, n, KFD_SESSION_RUN);
		is_done = stops[i] && runs[i];
	}
	if (is_done) {
		print_quantiles("suspend", stops, times);
		print_quantiles("resume", runs, times);
		putchar('\n');
	}
	free(stops);
	free(runs);
	return !is_done;
}
