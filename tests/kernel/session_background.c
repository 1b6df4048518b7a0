// SPDX-License-Identifier: MIT
/* bed: timeout=240 memory=3G param=cus=8 */
/*
 * The driver itself sees when online work comes: offline queues are off the GPU while it is there, and come
 * back after, with no call for a request.
 */
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session.h"
#include "tap.h"

#define MS DBG_MS
#define SECOND DBG_SECOND
#define REQUESTS 30
#define REQUEST_MS 20
#define LONG_MS 100000
#define LONG_ENOUGH_MS 2000
/* With 5 percent of a CPU that would be 200 ms without a look, if it counted as one. */
#define SLOW_SAVE "slow-save 10000000"
#define TOO_LATE (80 * MS)
#define TRIES 5
#define LITTLE 50 /* of 1000: a look, and what is around it */

static struct kfd kfd;
static struct dbg_peer online, offline;

/* 0: the driver's own. */
static int look(int fd, uint32_t enable, uint32_t period_us, uint32_t cpu_percent)
{
	struct kfd_session_args args = { .op = KFD_SESSION_SET_BACKGROUND,
					 .background = { .gpu_id = kfd.gpus[0].gpu_id,
							 .enable = enable,
							 .period_us = period_us,
							 .cpu_percent = cpu_percent } };

	return session_call(fd, &args);
}

static int background(int fd, uint32_t enable)
{
	return look(fd, enable, 0, 50);
}

/* How often the driver has looked, or -1. */
static long long looks(void)
{
	FILE *f = fopen("/sys/kernel/debug/kfd/sched", "r");
	long long n = -1;
	char line[256];

	while (f && n < 0 && fgets(line, sizeof(line), f))
		sscanf(line, " background of %*u: %lld looks", &n);
	if (f)
		fclose(f);
	return n;
}

/* The driver's thread for the first GPU. */
static pid_t thread;

static int is_named(const char *path, const char *wanted)
{
	FILE *f = fopen(path, "r");
	char name[64] = "";
	int found = f && fscanf(f, "%63[^\n]", name) == 1 && !strcmp(name, wanted);

	if (f)
		fclose(f);
	return found;
}

static pid_t find_thread(void)
{
	char wanted[32];
	glob_t names;
	pid_t found = -1;

	snprintf(wanted, sizeof(wanted), "kfd_sched/%u", kfd.gpus[0].gpu_id);
	if (glob("/proc/[0-9]*/comm", 0, NULL, &names))
		return -1;
	for (size_t i = 0; i < names.gl_pathc && found < 0; i++)
		if (is_named(names.gl_pathv[i], wanted))
			sscanf(names.gl_pathv[i], "/proc/%d", &found);
	globfree(&names);
	return found;
}

/* How often it has gone to sleep, or -1. */
static long long sleeps(void)
{
	char path[64], line[128];
	long long n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", thread);
	f = fopen(path, "r");
	while (f && n < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "voluntary_ctxt_switches: %lld", &n);
	if (f)
		fclose(f);
	return n;
}

/* What it has had of CPUs, in ms, or -1. */
static long long had_cpu(void)
{
	long long user, system, ms = -1;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", thread);
	f = fopen(path, "r");
	/* The name has no blank in it. */
	if (f && fscanf(f, "%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%lld%lld", &user, &system) == 2)
		ms = (user + system) * 1000 / sysconf(_SC_CLK_TCK);
	if (f)
		fclose(f);
	return ms;
}

static int state_is(int fd, struct dbg_peer *p, int state, uint64_t timeout_ns)
{
	uint64_t end = kfd_now() + timeout_ns;

	while (session_state(fd, p->pid, 0) != state)
		if (kfd_now() > end)
			return 0;
	return 1;
}

static int64_t offline_had(void)
{
	return kfd_busy(0, kfd_proc_value(offline.pid, "pasid"));
}

static void yields_to_each_request(int fd)
{
	int64_t cycles = kfd_stat(0, "cycles"), saves = kfd_stat(0, "saves"), had = offline_had();
	int well = 0;

	for (int i = 0; i < REQUESTS; i++) {
		well += dbg_peer_do(&online, DBG_RUN, REQUEST_MS) == 0 &&
			dbg_peer_do(&online, DBG_WAIT, DBG_SOON_MS) == 0;
		kfd_sleep(30 * MS);
	}
	ok(well == REQUESTS, "%d requests are answered", well);
	note("%lld device cycles, %lld saves", (long long)(kfd_stat(0, "cycles") - cycles),
	     (long long)(kfd_stat(0, "saves") - saves));
	ok(kfd_stat(0, "cycles") - cycles >= REQUESTS / 2, "the device was preempted for them");
	ok(offline_had() > had, "offline work went on between them");
	ok(state_is(fd, &offline, KFD_SESSION_ACTIVE, KFD_SOON), "and goes on after the last");
}

static void stands_while_online_works(int fd)
{
	char line[128];
	int64_t had;

	dbg_peer_do(&online, DBG_RUN, 10000);
	ok(state_is(fd, &offline, KFD_SESSION_YIELDS, KFD_SOON), "offline queues yield to a long request");
	had = offline_had();
	kfd_sleep(200 * MS);
	ok(offline_had() == had, "and do nothing meanwhile");
	session_trace(1);
	dbg_peer_do(&offline, DBG_CREATE, 1);
	session_trace(0);
	ok(session_state(fd, offline.pid, 1) == KFD_SESSION_YIELDS, "nor does one that is made then");
	snprintf(line, sizeof(line), "kfd_queue_suspend: gpu_id=%u pid=%d queue_id=1 reason=background",
		 kfd.gpus[0].gpu_id, offline.pid);
	ok(session_file_says(SESSION_TRACE, line), "which the trace says");
	ok(dbg_peer_do(&online, DBG_WAIT, DBG_SOON_MS) == 0 &&
		   state_is(fd, &offline, KFD_SESSION_ACTIVE, KFD_SOON),
	   "they come back when it has ended");
}

/* The thread sleeps all of that time, and looks at nothing. */
static int sleeps_for(uint64_t ns)
{
	long long slept = sleeps(), cpu = had_cpu(), looked = looks();

	kfd_sleep(ns);
	return slept > 0 && sleeps() == slept && cpu >= 0 && had_cpu() == cpu && looks() == looked;
}

/* Soon: what has changed wakes it once. */
static int falls_asleep(void)
{
	uint64_t end = kfd_now() + KFD_SOON;

	while (!sleeps_for(500 * MS))
		if (kfd_now() > end)
			return 0;
	return 1;
}

static int looks_on(void)
{
	uint64_t end = kfd_now() + KFD_SOON;
	long long before = looks();

	while (looks() < before + 20)
		if (kfd_now() > end)
			return 0;
	return before >= 0;
}

static void does_not_look_for_nothing(int fd)
{
	ok(session_class(fd, online.pid, KFD_SESSION_CLASS_NONE) == 0, "no process is online");
	dbg_peer_do(&online, DBG_RUN, 300);
	ok(falls_asleep(), "then the driver does not look, and its thread sleeps");
	ok(session_state(fd, offline.pid, 0) == KFD_SESSION_ACTIVE, "nobody yields");
	dbg_peer_do(&online, DBG_WAIT, DBG_SOON_MS);
	session_class(fd, online.pid, KFD_SESSION_CLASS_ONLINE);
	ok(looks_on(), "it looks when one is");
	session_class(fd, offline.pid, KFD_SESSION_CLASS_NONE);
	ok(falls_asleep(), "nor does it where nobody is offline");
	session_class(fd, offline.pid, KFD_SESSION_CLASS_OFFLINE);
	ok(looks_on() && dbg_peer_do(&online, DBG_DESTROY, 0) == 0 && falls_asleep(),
	   "nor where online has no queue");
	ok(dbg_peer_do(&online, DBG_CREATE, 1) == 0 && looks_on(), "and again when it has one");
}

static void does_not_look_for_who_is_stopped(int fd)
{
	ok(session_all(fd, online.pid, KFD_SESSION_STOP) == KFD_SESSION_DONE && falls_asleep() &&
		   session_state(fd, offline.pid, 0) == KFD_SESSION_ACTIVE,
	   "nor where all of online is stopped");
	dbg_peer_do(&online, DBG_RUN, LONG_ENOUGH_MS);
	ok(session_all(fd, online.pid, KFD_SESSION_RUN) == KFD_SESSION_DONE &&
		   state_is(fd, &offline, KFD_SESSION_YIELDS, KFD_SOON),
	   "what waited meanwhile is seen as soon as online runs");
	dbg_peer_do(&online, DBG_WAIT, DBG_SOON_MS);
	ok(state_is(fd, &offline, KFD_SESSION_ACTIVE, KFD_SOON) && looks_on(), "and it looks on after that");
}

static void does_not_look_for_who_has_ended(int fd)
{
	struct dbg_peer late;

	session_class(fd, online.pid, KFD_SESSION_CLASS_NONE);
	ok(session_peer(&late, 1, 0) == 0 && session_class(fd, late.pid, KFD_SESSION_CLASS_ONLINE) == 0 &&
		   looks_on(),
	   "it looks for a process that comes later");
	kill(late.pid, SIGKILL);
	ok(dbg_ends(late.pid, KFD_SOON) == 0 && falls_asleep(), "and not when that has ended");
	session_class(fd, online.pid, KFD_SESSION_CLASS_ONLINE);
}

/* In parts of 1000 of one CPU, of the first second in which it is as little, or of the last. */
static long long share(long long enough)
{
	long long cpu, part = 1000;

	for (int i = 0; i < TRIES && part > enough; i++) { /* the host may be why a look takes long */
		uint64_t begin = kfd_now();

		cpu = had_cpu();
		kfd_sleep(SECOND);
		part = (had_cpu() - cpu) * 1000 / (long long)((kfd_now() - begin) / MS);
	}
	return part;
}

static void has_its_part_of_a_cpu(int fd)
{
	long long part;

	ok(look(fd, 1, 50, 100) == 0 && share(0) > 2 * LITTLE, "told to, the driver looks all the time");
	ok(look(fd, 1, 50, 1) == 0, "and then it has one percent of a CPU");
	part = share(LITTLE);
	ok(part <= LITTLE, "its thread has little more than that (%lld of 1000)", part);
	background(fd, 1);
}

/* On the GPU's clock, from a request to the end of the preemption for it. */
static uint64_t time_to_yield(int fd)
{
	uint64_t begin = kfd_gpu_now(0), took;

	dbg_peer_do(&online, DBG_RUN, 200);
	took = state_is(fd, &offline, KFD_SESSION_YIELDS, KFD_SOON) ? kfd_gpu_now(0) - begin : UINT64_MAX;
	dbg_peer_do(&online, DBG_WAIT, DBG_SOON_MS);
	return state_is(fd, &offline, KFD_SESSION_ACTIVE, KFD_SOON) ? took : UINT64_MAX;
}

/* Each request comes just after offline queues came back, for which another's queue was saved. */
static void looks_again_soon_after_a_preemption(int fd)
{
	uint64_t shortest = UINT64_MAX, took;
	struct dbg_peer other;

	ok(session_peer(&other, 1, LONG_MS) == 0 && look(fd, 1, 0, 0) == 0 && kfd_fault(0, SLOW_SAVE) == 0,
	   "with the driver's own settings, and preemptions that take 10 ms");
	time_to_yield(fd);
	for (int i = 0; i < TRIES; i++) { /* the host may be why one takes long */
		took = time_to_yield(fd);
		if (took < shortest)
			shortest = took;
	}
	ok(shortest < TOO_LATE, "a request just after a preemption is seen, and offline is off in %llu ms",
	   (unsigned long long)(shortest / MS));
	dbg_peer_tell(&other, DBG_EXIT, 0);
	ok(kfd_fault(0, "none") == 0 && dbg_ends(other.pid, KFD_SOON) == 0, "preemptions are as usual again");
}

static void looks_as_seldom_as_it_is_told(int fd)
{
	uint64_t begin = kfd_now(), time;
	long long before, grew;

	ok(look(fd, 1, 1000000, 0) == 0, "the driver is told to look once a second");
	before = looks();
	kfd_sleep(3 * SECOND);
	grew = looks() - before;
	time = (kfd_now() - begin) / SECOND;
	ok(before > 0 && grew >= 0 && grew <= (long long)time + 1, "%lld looks in %llu s", grew,
	   (unsigned long long)time);
	ok(background(fd, 1) == 0, "and then to look as before");
	ok(looks_on(), "which it does");
}

static void ends_when_it_is_turned_off(int fd)
{
	dbg_peer_do(&online, DBG_RUN, 5000);
	ok(state_is(fd, &offline, KFD_SESSION_YIELDS, KFD_SOON), "offline queues yield");
	ok(background(fd, 0) == 0 && session_state(fd, offline.pid, 0) == KFD_SESSION_ACTIVE,
	   "they go on when the driver is told not to look, at once");
	dbg_peer_do(&online, DBG_WAIT, DBG_SOON_MS);
	ok(background(fd, 1) == 0, "and it is told to look again");
}

static void ends_with_its_session(int fd)
{
	int two = session_open(&kfd, 0);

	ok(background(two, 1) == -EBUSY, "one session does it for a GPU");
	dbg_peer_do(&online, DBG_RUN, 5000);
	ok(state_is(two, &offline, KFD_SESSION_YIELDS, KFD_SOON), "offline queues yield");
	close(fd);
	ok(session_state(two, offline.pid, 0) == KFD_SESSION_ACTIVE,
	   "they go on when the session ends, whatever online does");
	dbg_peer_do(&online, DBG_WAIT, DBG_SOON_MS);
	close(two);
}

static void needs_the_right(void)
{
	if (kfd_open(&kfd) < 0 || setuid(65534) < 0)
		_exit(1);
	ok(background(session_open(&kfd, 0), 1) == -EPERM, "who may not stop others cannot have it done");
}

int main(void)
{
	int fd, r;

	if (session_missing())
		return 0;
	r = kfd_open(&kfd);
	if (r == 0)
		r = session_peer(&online, 1, 0);
	if (r == 0)
		r = session_peer(&offline, 1, LONG_MS);
	fd = session_open(&kfd, 0); /* after them: a child has its parent's descriptors */
	if (!ok(r == 0 && fd >= 0, "there are a session and two processes (%d, %d)", r, fd))
		return tap_done();
	ok(session_class(fd, online.pid, KFD_SESSION_CLASS_ONLINE) == 0 &&
		   session_class(fd, offline.pid, KFD_SESSION_CLASS_OFFLINE) == 0 && background(fd, 1) == 0,
	   "one is online, one offline, and the driver looks");
	thread = find_thread();
	ok(thread > 0, "with a thread of its own (%d)", thread);
	yields_to_each_request(fd);
	stands_while_online_works(fd);
	does_not_look_for_nothing(fd);
	does_not_look_for_who_is_stopped(fd);
	does_not_look_for_who_has_ended(fd);
	has_its_part_of_a_cpu(fd);
	looks_again_soon_after_a_preemption(fd);
	looks_as_seldom_as_it_is_told(fd);
	tap_in_child(needs_the_right);
	ends_when_it_is_turned_off(fd);
	ends_with_its_session(fd);
	ok(kfd_stat(0, "bad_restores") == 0, "no save area was spoilt");
	return tap_done();
}
