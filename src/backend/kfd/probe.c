// SPDX-License-Identifier: MIT
#include "backend/kfd/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/kfd/packets.h"
#include "backend/kfd/trap.h"

#define MS 1000000ull
#define PACKET_NS (20000 * MS)   /* long enough for a packet on a GPU that others use, or a busy CPU */
#define STILL_NS (50 * MS)       /* a stopped queue is watched for so long */
#define DEBUGGER_NS (60000 * MS) /* all that is tried with the debugger's interface */
#define KILLED_NS (20000 * MS)   /* for a process to end by SIGKILL */
#define RUN_NS (20 * MS)         /* each part of a round */
#define DEPTH 16                 /* packets under way */
#define DEBUGGER_SINCE 13        /* minor version of the interface that DBG_TRAP came with, kfd_ioctl.h */
#define NO_OPERATION UINT32_MAX  /* of DBG_TRAP: refused by any driver that knows the call */

_Static_assert(DEPTH <= GP_PACKETS_MOST, "a signal for each");

/* One stop */

static int see_stopped(struct gp_packets *p, struct gp_trial *ret, volatile int64_t **ret_waiting)
{
	ret->step = "see a packet wait while the queue is stopped";
	*ret_waiting = gp_packets_put(p);
	return gp_packets_ended(*ret_waiting, STILL_NS) ? -EIO : 0;
}

static int stop_and_resume(struct gp_packets *p, struct gp_trial *ret)
{
	volatile int64_t *value = gp_packets_put(p);
	int r;

	ret->step = "see a packet run";
	if (!gp_packets_ended(value, PACKET_NS))
		return -EIO;
	ret->step = "stop the queue (UPDATE_QUEUE, 0 percent)";
	r = gp_packets_update(p, 0, &ret->stop_ns);
	if (r < 0)
		return r;
	r = see_stopped(p, ret, &value);
	if (r < 0)
		return r;
	ret->step = "resume the queue (UPDATE_QUEUE, 100 percent)";
	r = gp_packets_update(p, 100, &ret->resume_ns);
	if (r < 0)
		return r;
	ret->step = "see the waiting packet run";
	return gp_packets_ended(value, PACKET_NS) ? 0 : -EIO;
}

int gp_kfd_try(struct gp_trial *ret)
{
	return gp_packets_try(stop_and_resume, 0, ret);
}

/* A running queue */

struct feeder {
	struct gp_packets *packets;
	volatile int64_t *value[DEPTH];
	uint64_t begun, ended;
};

static void collect(struct feeder *f)
{
	while (f->ended < f->begun && *f->value[f->ended % DEPTH] <= 0)
		f->ended++;
}

/* Keeps the queue busy for a time, and for longer until packets end, if that is expected. How many did. */
static uint64_t feed(void *arg, int is_running)
{
	struct feeder *f = arg;
	uint64_t begin = gp_packets_now(), before, ns;

	collect(f);
	before = f->ended;
	do {
		while (f->begun < f->ended + DEPTH)
			f->value[f->begun++ % DEPTH] = gp_packets_put(f->packets);
		collect(f);
		ns = gp_packets_now() - begin;
	} while (ns < RUN_NS || (is_running && f->ended == before && ns < PACKET_NS));
	return f->ended - before;
}

static int stop(void *arg, uint64_t *ret_ns)
{
	return gp_packets_update(((struct feeder *)arg)->packets, 0, ret_ns);
}

static int resume(void *arg, uint64_t *ret_ns)
{
	return gp_packets_update(((struct feeder *)arg)->packets, 100, ret_ns);
}

static const struct gp_trial_ops ops = { .progress = feed,
					 .stop = stop,
					 .resume = resume,
					 .stop_step =
						 "stop the queue while it runs (UPDATE_QUEUE, 0 percent)",
					 .resume_step = "resume the queue (UPDATE_QUEUE, 100 percent)" };

static int run_rounds(struct gp_packets *p, struct gp_trial *ret)
{
	struct feeder f = { .packets = p };
	int r;

	ret->step = "see a packet run";
	if (!gp_packets_ended(gp_packets_put(p), PACKET_NS))
		return -EIO;
	r = gp_trial_go(&ops, &f, ret);
	if (r < 0)
		return r;
	ret->step = "see every packet end";
	while (f.ended < f.begun)
		if (!gp_packets_ended(f.value[f.ended++ % DEPTH], PACKET_NS))
			return -EIO;
	return 0;
}

int gp_kfd_try_running(struct gp_trial *ret)
{
	return gp_packets_try(run_rounds, 0, ret);
}

/* The debugger's interface */

/* Of one queue: the driver marks the ids that it could do nothing with. */
static int status_of(int r, uint32_t id)
{
	return r < 0 ? r : id & (KFD_DBG_ID_ERROR | KFD_DBG_ID_INVALID) ? -EIO : 0;
}

static int suspend_and_resume(struct gp_packets *p, struct gp_trap *trap, struct gp_trial *ret)
{
	uint32_t id = gp_packets_queue_id(p);
	uint64_t begin = gp_packets_now();
	volatile int64_t *value;
	int r;

	ret->step = "suspend the queue (DBG_TRAP, SUSPEND_QUEUES)";
	r = gp_trap_suspend(trap, &id, 1);
	r = status_of(r, id);
	if (r < 0)
		return r;
	ret->stop_ns = gp_packets_now() - begin;
	r = see_stopped(p, ret, &value);
	if (r < 0)
		return r;
	ret->step = "resume the queue (DBG_TRAP, RESUME_QUEUES)";
	id = gp_packets_queue_id(p);
	begin = gp_packets_now();
	r = gp_trap_resume(trap, &id, 1);
	r = status_of(r, id);
	if (r < 0)
		return r;
	ret->resume_ns = gp_packets_now() - begin;
	ret->step = "see the waiting packet run";
	return gp_packets_ended(value, PACKET_NS) ? 0 : -EIO;
}

/* The first error wins, and what was enabled is disabled all the same. */
static int debug_ourselves(struct gp_packets *p, struct gp_trial *ret)
{
	const char *failed = NULL;
	struct kfd_dbg_queue queues[4];
	struct gp_trap trap;
	uint32_t state;
	uint64_t begin;
	int r, end;

	ret->step = "be our own debugger (DBG_TRAP, ENABLE)";
	r = gp_trap_open(&trap, (uint32_t)getpid());
	if (r == 0)
		r = gp_trap_enable(&trap, &state);
	if (r < 0)
		return r;
	ret->step = "see our queue (DBG_TRAP, GET_QUEUE_SNAPSHOT)";
	r = gp_trap_snapshot(&trap, queues, 4);
	if (r >= 0)
		r = suspend_and_resume(p, &trap, ret);
	if (r < 0)
		failed = ret->step;
	ret->step = "let go (DBG_TRAP, DISABLE)";
	begin = gp_packets_now();
	end = gp_trap_disable(&trap);
	ret->end_ns = gp_packets_now() - begin;
	ret->hung = ret->end_ns >= GP_TRAP_SIGNAL_US * 1000ull;
	ret->step = failed ? failed : ret->step;
	return r < 0 ? r : end;
}

struct shared {
	struct gp_trial trial;
	int r, is_done;
};

/* Our debugger must not end by itself: the driver may then wait for ever.  SIGKILL ends that wait. */
static void be_debugger(struct shared *shared, pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		shared->r = gp_packets_try(debug_ourselves, 1, &shared->trial);
	__atomic_store_n(&shared->is_done, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

static void doze(void)
{
	const struct timespec ms = { .tv_nsec = MS };

	(void)nanosleep(&ms, NULL);
}

/* Whether it has ended. */
static int kill_child(pid_t pid)
{
	uint64_t end = gp_packets_now() + KILLED_NS;
	pid_t done;

	(void)kill(pid, SIGKILL);
	while ((done = waitpid(pid, NULL, WNOHANG)) == 0 && gp_packets_now() < end)
		doze();
	return done == pid;
}

static int watch_child(pid_t pid, struct shared *shared, struct gp_trial *ret)
{
	uint64_t end = gp_packets_now() + DEBUGGER_NS;
	int is_done;

	while (!(is_done = __atomic_load_n(&shared->is_done, __ATOMIC_ACQUIRE)) && gp_packets_now() < end)
		doze();
	*ret = shared->trial;
	if (!kill_child(pid))
		return -EDEADLK;
	return is_done ? shared->r : -ETIMEDOUT;
}

int gp_kfd_try_debugger(struct gp_trial *ret)
{
	struct shared *shared =
		mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid, parent = getpid();
	int r;

	*ret = (struct gp_trial){ .step = "start a process" };
	if (shared == MAP_FAILED)
		return -errno;
	shared->trial = *ret;
	pid = fork();
	if (pid == 0)
		be_debugger(shared, parent);
	r = pid < 0 ? -errno : watch_child(pid, shared, ret);
	(void)munmap(shared, sizeof(*shared));
	return r;
}

/* Questions */

/* To another driver the private numbers are other calls: nobody calls them to find out. */
static bool has_private_names(void)
{
	static const char *const functions[] = { "kfd_ioctl_preempt_queue", "kfd_ioctl_resume_queue" };
	const uint32_t n = sizeof(functions) / sizeof(functions[0]), all = (1u << n) - 1;
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[512], name[256];
	uint32_t found = 0;

	while (f && found != all && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %*s %255s", name) != 1)
			continue;
		for (uint32_t i = 0; i < n; i++)
			found |= (uint32_t)!strcmp(name, functions[i]) << i;
	}
	if (f)
		fclose(f);
	return found == all;
}

int gp_kfd_ask(struct gp_kfd_answers *ret)
{
	struct kfd_version_args version = { 0 };
	struct kfd_dbg_args debugger = { .pid = (uint32_t)getpid(), .op = NO_OPERATION };
	int r, kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

	if (kfd < 0)
		return -errno;
	r = gp_kfd_call(kfd, KFD_IOC_VERSION, &version);
	if (r == 0) {
		*ret = (struct gp_kfd_answers){ .major = version.major,
						.minor = version.minor,
						.private_names = has_private_names() };
		if (gp_kfd_call(kfd, KFD_IOC_DBG_TRAP, &debugger) == -ENOTTY ||
		    version.minor < DEBUGGER_SINCE)
			ret->debugger = -ENOTTY;
	}
	close(kfd);
	return r;
}
