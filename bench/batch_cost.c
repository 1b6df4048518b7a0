// SPDX-License-Identifier: MIT
/* bed: timeout=2400 memory=3G instruction_ns=1 param=cus=4 */
/*
 * batch_cost [TIMES]: what it costs to stop and to run so many queues of so many processes: by UPDATE_QUEUE,
 * a call for each queue, in its own process; by the debugger's SUSPEND_QUEUES, a call for each process; by a
 * scheduling session, one call.  Prints a line of JSON for each; bench/batch_cost.py makes a table of them.
 * All times are software cost, under emulation.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/session.h"
#include "kernel/tap.h"

#define MOST_PEERS 8
#define MOST_TIMES 1000
#define LONG_MS 1000000

struct setting {
	uint32_t queues, processes;
	int is_busy;
};

struct counts {
	int64_t unmap, query, runlist, cycles, waves;
};

static struct kfd kfd;
static struct dbg_peer peers[MOST_PEERS];
static int session, events[2];

static uint32_t queues_of(const struct setting *s, uint32_t peer)
{
	return s->queues / s->processes + (peer < s->queues % s->processes);
}

static struct counts count(void)
{
	return (struct counts){ .unmap = kfd_stat(0, "unmap"),
				.query = kfd_stat(0, "query_status"),
				.runlist = kfd_stat(0, "runlist"),
				.cycles = kfd_stat(0, "cycles"),
				.waves = kfd_stat(0, "waves_saved") };
}

/* Each of these returns ns, or -errno. */
static int64_t by_update(const struct setting *s, int stop)
{
	int64_t total = 0;

	for (uint32_t i = 0; i < s->processes && total >= 0; i++) {
		int ns = dbg_peer_do(&peers[i], DBG_UPDATE, stop ? 0 : 100);

		total = ns < 0 ? ns : total + ns;
	}
	return total;
}

static int64_t by_debugger(const struct setting *s, int stop)
{
	uint32_t ids[DBG_QUEUES];
	uint64_t begin = kfd_now();

	for (uint32_t i = 0; i < s->processes; i++) {
		uint32_t n = queues_of(s, i);
		int r;

		for (uint32_t id = 0; id < n; id++)
			ids[id] = id;
		r = stop ? dbg_suspend(&kfd, peers[i].pid, ids, n, KFD_DBG_DEFAULT_GRACE, 0)
			 : dbg_resume(&kfd, peers[i].pid, ids, n);
		if (r != (int)n)
			return r < 0 ? r : -EBUSY;
	}
	return (int64_t)(kfd_now() - begin);
}

static int64_t by_session(const struct setting *s, int stop)
{
	struct kfd_session_queue queues[DBG_QUEUES];
	uint32_t n = 0;
	uint64_t begin;
	int r;

	for (uint32_t i = 0; i < s->processes; i++)
		for (uint32_t id = 0; id < queues_of(s, i); id++)
			queues[n++] =
				session_queue(peers[i].pid, id, stop ? KFD_SESSION_STOP : KFD_SESSION_RUN);
	begin = kfd_now();
	r = session_set(session, queues, n, NULL);
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = queues[i].status == KFD_SESSION_DONE ? 0 : -EBUSY;
	return r < 0 ? r : (int64_t)(kfd_now() - begin);
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void print_times(const char *what, int64_t *ns, int n)
{
	qsort(ns, (size_t)n, sizeof(*ns), by_value);
	printf("\"%s\": {\"p50_ns\": %" PRId64 ", \"p99_ns\": %" PRId64 "}, ", what, ns[n / 2],
	       ns[(n * 99 - 1) / 100]);
}

static void print_counts(const char *what, const struct counts *c, int n)
{
	printf("\"%s\": {\"unmap\": %.2f, \"query\": %.2f, \"runlist\": %.2f, \"cycles\": %.2f, \"waves_saved\": %.1f}",
	       what, (double)c->unmap / n, (double)c->query / n, (double)c->runlist / n,
	       (double)c->cycles / n, (double)c->waves / n);
}

static void add(struct counts *to, const struct counts *from, const struct counts *before)
{
	to->unmap += from->unmap - before->unmap;
	to->query += from->query - before->query;
	to->runlist += from->runlist - before->runlist;
	to->cycles += from->cycles - before->cycles;
	to->waves += from->waves - before->waves;
}

static int measure(const char *name, int64_t (*way)(const struct setting *, int), const struct setting *s,
		   int times)
{
	static int64_t stops[MOST_TIMES], runs[MOST_TIMES];
	struct counts a, b, c, stop = { 0 }, run = { 0 };

	for (int i = 0; i < times; i++) {
		a = count();
		stops[i] = way(s, 1);
		b = count();
		runs[i] = way(s, 0);
		c = count();
		if (stops[i] < 0 || runs[i] < 0)
			return (int)(stops[i] < 0 ? stops[i] : runs[i]);
		add(&stop, &b, &a);
		add(&run, &c, &b);
		/* Waves that were restored run for a while: those of a queue without any are not saved. */
		kfd_sleep(2 * DBG_MS);
	}
	printf("row: {\"way\": \"%s\", \"queues\": %u, \"processes\": %u, \"busy\": %s, ", name, s->queues,
	       s->processes, s->is_busy ? "true" : "false");
	print_times("stop", stops, times);
	print_times("run", runs, times);
	print_counts("stop_packets", &stop, times);
	printf(", ");
	print_counts("run_packets", &run, times);
	printf("}\n");
	fflush(stdout);
	return 0;
}

static int start(const struct setting *s)
{
	int r = 0;

	for (uint32_t i = 0; i < s->processes && r == 0; i++) {
		r = dbg_peer_start(&peers[i]);
		if (r == 0)
			r = dbg_peer_do(&peers[i], DBG_OPEN, 0);
		if (r == 0)
			r = dbg_peer_do(&peers[i], DBG_RUNTIME_ENABLE, 0);
		if (r == 0)
			r = dbg_peer_do(&peers[i], DBG_CREATE, queues_of(s, i));
		if (r == 0 && s->is_busy)
			r = dbg_peer_do(&peers[i], DBG_RUN, LONG_MS);
	}
	kfd_sleep(100 * DBG_MS);
	return r;
}

static void end(const struct setting *s)
{
	for (uint32_t i = 0; i < s->processes; i++) {
		kill(peers[i].pid, SIGKILL);
		waitpid(peers[i].pid, NULL, 0);
	}
	/* Their memory goes a little later. */
	kfd_wait_stat(0, "active", 0, 20 * DBG_SECOND);
}

static int attach(const struct setting *s)
{
	struct kfd_dbg_queue queues[DBG_QUEUES];
	int r = 0;

	for (uint32_t i = 0; i < s->processes && r >= 0; i++) {
		r = dbg_attach(&kfd, peers[i].pid, events[1], 0);
		if (r >= 0)
			r = dbg_snapshot(&kfd, peers[i].pid, KFD_EC_QUEUE_NEW, queues, DBG_QUEUES);
	}
	return r < 0 ? r : 0;
}

static void detach(const struct setting *s)
{
	for (uint32_t i = 0; i < s->processes; i++)
		dbg_disable(&kfd, peers[i].pid);
}

static int compare(const struct setting *s, int times)
{
	int r = start(s);

	if (r == 0)
		r = measure("update", by_update, s, times);
	if (r == 0)
		r = measure("session", by_session, s, times);
	if (r == 0)
		r = attach(s);
	if (r == 0) {
		r = measure("debugger", by_debugger, s, times);
		detach(s);
	}
	end(s);
	return r;
}

int main(int argc, char **argv)
{
	static const uint32_t counts[] = { 1, 2, 4, 8, 12, 16, 24 }, processes[] = { 1, 4, 8 };
	int times = argc > 1 ? atoi(argv[1]) : 50, r;

	if (session_missing())
		return 0;
	times = times < 1 || times > MOST_TIMES ? 50 : times;
	r = kfd_open(&kfd);
	if (r == 0)
		r = pipe2(events, O_NONBLOCK | O_CLOEXEC) < 0 ? -errno : 0;
	session = session_open(&kfd, 0);
	for (int busy = 0; busy < 2; busy++)
		for (uint32_t p = 0; p < 3; p++)
			for (uint32_t i = 0; i < 7 && r == 0; i++)
				if (counts[i] >= processes[p])
					r = compare(&(struct setting){ counts[i], processes[p], busy },
						    times);
	ok(r == 0 && session >= 0, "all of it was measured (%d)", r);
	return tap_done();
}
