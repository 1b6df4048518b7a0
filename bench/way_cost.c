// SPDX-License-Identifier: MIT
/*
 * way_cost WAY TIMES PID...: suspends and resumes all queues of these processes through gpreemptd, that
 * often, and prints the calls' p50 and p99 in ns: "suspend P50 P99 resume P50 P99".
 */
#include <gpreempt/gpreempt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "quantiles.h"

#define MOST 1024

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static int fail(struct gp_ctx *ctx, int r, const char *what)
{
	fprintf(stderr, "way_cost: cannot %s: %s (%s)\n", what, gp_strerror(r), gp_ctx_errmsg(ctx));
	return 1;
}

static int is_named(char **pids, uint32_t pid)
{
	for (; *pids; pids++)
		if (strtoul(*pids, NULL, 10) == pid)
			return 1;
	return 0;
}

/* How many queues the processes have, at most MOST of them. */
static int find_queues(struct gp_ctx *ctx, char **pids, uint64_t *queues)
{
	static struct gp_queue_info infos[MOST];
	int n, found = 0;

	infos[0].size = sizeof(infos[0]);
	n = gp_queue_list(ctx, infos, MOST);
	for (int i = 0; i < n && i < MOST; i++)
		if (is_named(pids, infos[i].pid) && infos[i].way[0])
			queues[found++] = infos[i].queue;
	return n < 0 ? n : found;
}

static int measure(struct gp_ctx *ctx, const char *way, size_t times, const uint64_t *queues, size_t n)
{
	const struct gp_suspend_opts opts = { .size = sizeof(opts), .way = way };
	uint64_t *suspends = calloc(times, sizeof(*suspends)), *resumes = calloc(times, sizeof(*resumes));
	int r = suspends && resumes ? 0 : -1;

	for (size_t i = 0; i < times && r == 0; i++) {
		uint64_t begin = now_ns(), middle;

		r = gp_queue_suspend(ctx, queues, n, &opts, NULL);
		middle = now_ns();
		suspends[i] = middle - begin;
		if (r == 0)
			r = gp_queue_resume(ctx, queues, n, NULL);
		resumes[i] = now_ns() - middle;
	}
	if (r == 0) {
		print_quantiles("suspend", suspends, times);
		print_quantiles("resume", resumes, times);
		putchar('\n');
	}
	free(suspends);
	free(resumes);
	return r;
}

int main(int argc, char **argv)
{
	const struct gp_open_opts opts = { .size = sizeof(opts), .backend = "kfd" };
	struct gp_ctx *ctx = NULL;
	uint64_t queues[MOST];
	int n, r;

	if (argc < 4) {
		fprintf(stderr, "usage: way_cost WAY TIMES PID...\n");
		return 2;
	}
	r = gp_ctx_open(&opts, &ctx);
	if (r < 0)
		return fail(ctx, r, "open");
	n = find_queues(ctx, argv + 3, queues);
	if (n <= 0)
		return fail(ctx, n, "find a queue of these processes");
	r = measure(ctx, argv[1], strtoul(argv[2], NULL, 10), queues, (size_t)n);
	if (r < 0)
		fail(ctx, r, "suspend and resume");
	gp_ctx_close(ctx);
	return r < 0;
}
