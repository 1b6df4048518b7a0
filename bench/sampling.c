// SPDX-License-Identifier: MIT
/*
 * sampling: how an online process is watched, with 1, 4, 24 and 128 queues.  A look's cost is the agent's
 * thread's CPU time, the time between looks is counted by how often the thread goes to sleep, and detection
 * is from a packet that is written to the message that says so, at random times, in periods.
 */
#include <dirent.h>
#include <inttypes.h>
#include <sys/wait.h>

#include "agent_host.h"

#define TIMES 500
#define QUIET SECOND

struct figures {
	uint64_t looks, cpu_ns, wall_ns; /* the agent's thread's */
};

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
		file = atoi(d->d_name) != getpid() ? fopen(path, "r") : NULL;
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
	uint64_t mine = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	return (struct figures){ sleeps(), clock_ns(CLOCK_PROCESS_CPUTIME_ID) - mine,
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

/* Until the agent says that of some queue; -1: it has gone. */
static int await(int peer, uint32_t activity)
{
	static unsigned char packet[GP_WIRE_MOST_BYTES];
	static struct gp_msg msg;
	ssize_t size;

	do {
		size = recv(peer, packet, sizeof(packet), 0);
		if (size <= 0 || gp_wire_decode(packet, (size_t)size, &msg) < 0)
			return -1;
	} while (msg.type != GP_MSG_ACTIVITY || msg.activity.activity != activity);
	return 0;
}

/* From a packet's being written to its being known, once. 0: the agent has gone. */
static uint64_t detect(int peer, uint32_t i)
{
	uint64_t start, ns;

	__atomic_store_n(&signals[i][1], 1, __ATOMIC_RELEASE);
	start = clock_ns(CLOCK_MONOTONIC);
	__atomic_store_n(&pointers[i][1], pointers[i][1] + 1, __ATOMIC_RELEASE);
	if (await(peer, GP_ACTIVITY_BUSY) < 0)
		return 0;
	ns = clock_ns(CLOCK_MONOTONIC) - start;
	__atomic_store_n(&pointers[i][0], pointers[i][1], __ATOMIC_RELEASE);
	__atomic_store_n(&signals[i][1], 0, __ATOMIC_RELEASE);
	return await(peer, GP_ACTIVITY_IDLE) < 0 ? 0 : ns;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void print_row(uint32_t n, const struct figures *f, uint64_t *delays)
{
	double period = (double)f->wall_ns / (double)f->looks;

	qsort(delays, TIMES, sizeof(delays[0]), by_value);
	printf("%6" PRIu32 " %9.1f us %8.2f ms %10.2f %9.2f %14.2f %%\n", n,
	       (double)f->cpu_ns / (double)f->looks / 1e3, period / 1e6, (double)delays[TIMES / 2] / period,
	       (double)delays[TIMES * 99 / 100] / period, (double)f->cpu_ns / (double)f->wall_ns * 100);
}

static int row(uint32_t n)
{
	static uint64_t delays[TIMES];
	int peer = start_agent(n, GP_CLASS_ONLINE);
	struct figures start, f;

	for (uint32_t i = 0; peer >= 0 && i < n; i++) /* all are idle, and known to be */
		if (await(peer, GP_ACTIVITY_IDLE) < 0)
			peer = -1;
	if (peer < 0)
		return 1;
	sleep_ns(QUIET); /* the cost is known by then */
	start = now();
	for (int i = 0; i < TIMES; i++) {
		f = since(&start);
		sleep_ns(1000000 + (uint64_t)random() % (2 * (f.wall_ns / f.looks) + 1000000));
		delays[i] = detect(peer, (uint32_t)random() % n);
		if (!delays[i])
			return 1;
	}
	f = since(&start);
	print_row(n, &f, delays);
	return 0;
}

int main(void)
{
	static const uint32_t counts[] = { 1, 4, 24, 128 };
	int status, failed = 0;

	printf("queues         look      period   found p50       p99     of a core\n");
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
