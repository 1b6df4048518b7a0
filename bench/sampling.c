// SPDX-License-Identifier: MIT
/*
 * sampling: how an online process is watched, with 1, 4, 24 and 128 queues.  A look's cost is the agent's
 * thread's CPU time, the time between looks is counted by how often the thread goes to sleep, and detection
 * is from a packet that is written to the message that says so, at random times, in periods.
 *
 * Beside it a bare loop sleeps for the same period and looks for the same packets: what it takes is the
 * machine's lateness and not the agent's.  The bar is on the two's 99th percentiles.
 */
#include <dirent.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "agent_host.h"

#define TIMES 500
#define QUIET SECOND
#define MOST_TIMES 1.5 /* the bare loop's 99th percentile */

struct figures {
	uint64_t looks, cpu_ns, wall_ns; /* the agent's thread's */
};

static struct {
	pthread_t thread;
	int found; /* readable when it has found a packet */
	uint32_t tid;
	uint64_t period_ns; /* the agent's, as it is known */
	uint64_t written;   /* packets */
} bare;

static uint64_t clock_of(pthread_t thread)
{
	clockid_t clock;

	return pthread_getcpuclockid(thread, &clock) == 0 ? clock_ns(clock) : 0;
}

static void *look_barely(void *unused)
{
	uint64_t next = clock_ns(CLOCK_MONOTONIC), seen = 0, written, one = 1;

	(void)unused;
	__atomic_store_n(&bare.tid, (uint32_t)gettid(), __ATOMIC_RELEASE);
	prctl(PR_SET_TIMERSLACK, 1ul);
	for (;;) {
		uint64_t period = __atomic_load_n(&bare.period_ns, __ATOMIC_RELAXED);
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
		struct timespec t;

		next = next + period > now_ns ? next + period : now_ns + period;
		t = (struct timespec){ .tv_sec = (time_t)(next / SECOND), .tv_nsec = (long)(next % SECOND) };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		written = __atomic_load_n(&bare.written, __ATOMIC_ACQUIRE);
		if (written != seen)
			(void)!write(bare.found, &one, sizeof(one));
		seen = written;
	}
	return NULL;
}

static int start_bare(void)
{
	bare.period_ns = 1000000;
	bare.found = eventfd(0, EFD_CLOEXEC);
	return bare.found < 0 ? -1 : -pthread_create(&bare.thread, NULL, look_barely, NULL);
}

/* How often the agent's thread has gone to sleep. */
static uint64_t sleeps(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;
	uint64_t n = 0;

	while (dir && (d = readdir(dir))) {
		char path[300], line[128];
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", d->d_name);
		file = atoi(d->d_name) != getpid() && (uint32_t)atoi(d->d_name) != bare.tid ? fopen(path, "r")
											    : NULL;
		while (file && fgets(line, sizeof(line), file))
			(void)sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &n);
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
	return n;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND) };

	nanosleep(&t, NULL);
}

static struct figures now(void)
{
	uint64_t others = clock_ns(CLOCK_THREAD_CPUTIME_ID) + clock_of(bare.thread);

	return (struct figures){ sleeps(), clock_ns(CLOCK_PROCESS_CPUTIME_ID) - others,
				 clock_ns(CLOCK_MONOTONIC) };
}

static struct figures since(const struct figures *start)
{
	struct figures f = now();

	f.looks = f.looks > start->looks ? f.looks - start->looks : 1;
	f.cpu_ns -= start->cpu_ns;
	f.wall_ns -= start->wall_ns;
	return f;
}

/* The agent's next message: 1 if it says that of some queue; -1: it has gone. */
static int hear(int peer, uint32_t activity)
{
	static unsigned char packet[GP_WIRE_MOST_BYTES];
	static struct gp_msg msg;
	ssize_t size = recv(peer, packet, sizeof(packet), 0);

	if (size <= 0 || gp_wire_decode(packet, (size_t)size, &msg) < 0)
		return -1;
	return msg.type == GP_MSG_ACTIVITY && msg.activity.activity == activity;
}

static int await(int peer, uint32_t activity)
{
	int r;

	do
		r = hear(peer, activity);
	while (r == 0);
	return r < 0 ? -1 : 0;
}

struct found {
	uint64_t agent_ns, bare_ns; /* 0: not yet */
};

/* Until both have found what was written at start. */
static int await_both(int peer, uint64_t start, struct found *ret)
{
	struct pollfd p[] = { { .fd = peer, .events = POLLIN }, { .fd = bare.found, .events = POLLIN } };
	uint64_t n, ns;

	*ret = (struct found){ 0 };
	while (!ret->agent_ns || !ret->bare_ns) {
		if (poll(p, 2, -1) < 0)
			return -1;
		ns = clock_ns(CLOCK_MONOTONIC) - start;
		if (p[1].revents && read(bare.found, &n, sizeof(n)) == sizeof(n))
			ret->bare_ns = ns;
		if (!p[0].revents)
			continue;
		switch (hear(peer, GP_ACTIVITY_BUSY)) {
		case -1:
			return -1;
		case 1:
			ret->agent_ns = ns;
		}
	}
	return 0;
}

/* From a packet's being written to its being known, once. -1: the agent has gone. */
static int detect(int peer, uint32_t i, struct found *ret)
{
	uint64_t start;

	__atomic_store_n(&signals[i][1], 1, __ATOMIC_RELEASE);
	start = clock_ns(CLOCK_MONOTONIC);
	__atomic_store_n(&pointers[i][1], pointers[i][1] + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&bare.written, bare.written + 1, __ATOMIC_RELEASE);
	if (await_both(peer, start, ret) < 0)
		return -1;
	__atomic_store_n(&pointers[i][0], pointers[i][1], __ATOMIC_RELEASE);
	__atomic_store_n(&signals[i][1], 0, __ATOMIC_RELEASE);
	return await(peer, GP_ACTIVITY_IDLE);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

struct delays {
	uint64_t agent[TIMES], bare[TIMES];
};

/* Whether the bar is met. */
static int print_row(uint32_t n, const struct figures *f, struct delays *d)
{
	double period = (double)f->wall_ns / (double)f->looks, times;

	qsort(d->agent, TIMES, sizeof(d->agent[0]), by_value);
	qsort(d->bare, TIMES, sizeof(d->bare[0]), by_value);
	times = (double)d->agent[TIMES * 99 / 100] / (double)d->bare[TIMES * 99 / 100];
	printf("%6" PRIu32 " %9.1f us %8.2f ms %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %%%s\n", n,
	       (double)f->cpu_ns / (double)f->looks / 1e3, period / 1e6, (double)d->agent[TIMES / 2] / period,
	       (double)d->agent[TIMES * 99 / 100] / period, (double)d->bare[TIMES / 2] / period,
	       (double)d->bare[TIMES * 99 / 100] / period, times,
	       (double)f->cpu_ns / (double)f->wall_ns * 100, times <= MOST_TIMES ? "" : "  MISSED");
	return times <= MOST_TIMES;
}

/* The daemon's end, when all queues are idle, and known to be. */
static int start_watch(uint32_t n)
{
	int peer = start_agent(n, GP_CLASS_ONLINE);

	for (uint32_t i = 0; peer >= 0 && i < n; i++)
		if (await(peer, GP_ACTIVITY_IDLE) < 0)
			peer = -1;
	return peer;
}

static int row(uint32_t n)
{
	static struct delays delays;
	struct figures start, f;
	struct found found;
	int peer = start_bare() < 0 ? -1 : start_watch(n);

	if (peer < 0)
		return 1;
	sleep_ns(QUIET); /* the cost is known by then */
	start = now();
	for (int i = 0; i < TIMES; i++) {
		f = since(&start);
		if (i)
			__atomic_store_n(&bare.period_ns, f.wall_ns / f.looks, __ATOMIC_RELAXED);
		sleep_ns(1000000 + (uint64_t)random() % (2 * (f.wall_ns / f.looks) + 1000000));
		if (detect(peer, (uint32_t)random() % n, &found) < 0)
			return 1;
		delays.agent[i] = found.agent_ns;
		delays.bare[i] = found.bare_ns;
	}
	f = since(&start);
	return !print_row(n, &f, &delays);
}

int main(void)
{
	static const uint32_t counts[] = { 1, 4, 24, 128 };
	int status, failed = 0;

	printf("queues         look      period found p50       p99  bare p50       p99     times of a core\n");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		pid_t child;

		fflush(stdout);
		child = fork();
		if (child == 0)
			exit(row(counts[i])); /* a process has one agent */
		waitpid(child, &status, 0);
		failed |= status;
	}
	return failed != 0;
}
