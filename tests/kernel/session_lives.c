// SPDX-License-Identifier: MIT
/* bed: timeout=300 vm=own memory=3G param=cus=4 param=drain_fix=1 param=queue_preemption_timeout_ms=4000 */
/*
 * Scheduling sessions and everything else that stops, starts, changes and ends queues, in every order and at
 * the same time: a queue runs when nobody stops it any more, nothing is lost, and nothing waits for ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session.h"
#include "tap.h"

#define MS DBG_MS
#define SECOND DBG_SECOND
#define WORK (300 * MS)
#define ENOUGH KFD_SOON
#define STOPPED (KFD_SESSION_STOPPED | KFD_SESSION_OWN)

static struct dbg_client client;
static int session, another;

static int begin(uint32_t queues)
{
	int r = dbg_client_open(&client);

	if (r == 0)
		r = dbg_client_add(&client, queues);
	session = session_open(&client.kfd, 0);
	return r < 0 ? r : session < 0 ? session : 0;
}

static int begins(uint32_t queues)
{
	int r = begin(queues);

	return ok(r == 0, "a process has queues and a session (%d)", r);
}

static int set(uint32_t want)
{
	return session_all(session, 0, want);
}

static int state(void)
{
	return session_state(session, 0, client.queues[0].id);
}

static void run_all(void)
{
	for (uint32_t i = 0; i < client.nqueues; i++)
		dbg_client_run(&client, i, WORK);
}

static int all_end(void)
{
	int r = 0;

	for (uint32_t i = 0; i < client.nqueues && r == 0; i++)
		r = dbg_client_wait(&client, i, ENOUGH);
	return r;
}

/* Waves that were saved and not restored: of processes that ended so, if of any. */
static int64_t waves_away(void)
{
	return kfd_stat(0, "waves_saved") - kfd_stat(0, "waves_restored");
}

/* Another reason why the queues are off the GPU: to stop and to let run for it; the state while it holds. */
struct other {
	const char *name;
	int (*stop)(void), (*run)(void);
	int state;
	int64_t mapped; /* meanwhile, of other processes */
};

static int dbg_stop(void)
{
	return dbg_suspend_all(&client.kfd, getpid()) == (int)client.nqueues ? 0 : -EIO;
}

static int dbg_run(void)
{
	return dbg_resume_all(&client.kfd, getpid()) == (int)client.nqueues ? 0 : -EIO;
}

static int order(const char *what)
{
	char words[64];

	snprintf(words, sizeof(words), "%s %lld", what, (long long)kfd_proc_value(getpid(), "pasid"));
	return kfd_fault(0, words);
}

static int evict(void)
{
	return order("evict");
}

static int restore(void)
{
	return order("restore");
}

static int update_all(uint32_t percent)
{
	int r = 0;

	for (uint32_t i = 0; i < client.nqueues && r == 0; i++)
		r = kfd_queue_update(&client.queues[i], percent, 11);
	return r;
}

static int disable(void)
{
	return update_all(0);
}

static int enable(void)
{
	return update_all(100);
}

static int criu(uint32_t op)
{
	struct kfd_criu_args args = { .op = op };

	return kfd_ioctl(&client.kfd, KFD_IOC_CRIU, &args);
}

static int pause_for_a_checkpoint(void)
{
	return criu(KFD_CRIU_PROCESS_INFO);
}

static int unpause(void)
{
	return criu(KFD_CRIU_UNPAUSE);
}

static int set_gpu(uint32_t want)
{
	struct kfd_session_queue queue = session_queue(0, KFD_SESSION_ALL_QUEUES, want);
	int r;

	queue.pid = KFD_SESSION_ALL_PROCESSES;
	queue.gpu_id = client.gpu->gpu_id;
	r = session_set(another, &queue, 1, NULL);
	return r < 0 ? r : queue.status == KFD_SESSION_DONE ? 0 : -EIO;
}

static int stop_gpu(void)
{
	return set_gpu(KFD_SESSION_STOP);
}

static int run_gpu(void)
{
	return set_gpu(KFD_SESSION_RUN);
}

static int reserve_all(void)
{
	return session_reserve(another, client.gpu->gpu_id, 100, 0, 0, NULL);
}

static int reserve_nothing(void)
{
	return session_reserve(another, client.gpu->gpu_id, 0, 0, 0, NULL);
}

static int background(uint32_t enable)
{
	struct kfd_session_args args = {
		.op = KFD_SESSION_SET_BACKGROUND,
		.background = { .gpu_id = client.gpu->gpu_id, .enable = enable, .cpu_percent = 50 }
	};

	return session_call(another, &args);
}

/* 0 when that is in the state of a queue, or -ETIMEDOUT. */
static int soon_is(pid_t pid, uint32_t queue, int bit)
{
	uint64_t end = kfd_now() + ENOUGH;

	while (!(session_state(session, pid, queue) & bit))
		if (kfd_now() > end)
			return -ETIMEDOUT;
	return 0;
}

/* A process online has work all the time. */
static int look(void)
{
	int r = background(1);

	return r < 0 ? r : soon_is(0, client.queues[0].id, KFD_SESSION_YIELDS);
}

static int look_no_more(void)
{
	return background(0);
}

static const struct other others[] = {
	{ "the debugger", dbg_stop, dbg_run, KFD_SESSION_DEBUG, 0 },
	{ "an eviction", evict, restore, KFD_SESSION_EVICTED, 0 },
	{ "the process itself", disable, enable, KFD_SESSION_DISABLED, 0 },
	{ "a checkpoint", pause_for_a_checkpoint, unpause, KFD_SESSION_EVICTED, 0 },
	{ "a stop of the GPU", stop_gpu, run_gpu, KFD_SESSION_STOPPED, 0 },
	{ "a reservation", reserve_all, reserve_nothing, KFD_SESSION_WAITS, 0 },
};

static const struct other looking = { "looking in the background", look, look_no_more, KFD_SESSION_YIELDS,
				      1 };

static int64_t mapped_meanwhile;

static int is_still(int expected)
{
	int found = state();

	if (found != expected)
		note("state %#x, not %#x", found, expected);
	return found == expected && kfd_wait_stat(0, "mapped", mapped_meanwhile, ENOUGH) == 0;
}

static int stop_both(const struct other *o, int session_first)
{
	if (session_first)
		return set(KFD_SESSION_STOP) == KFD_SESSION_DONE && o->stop() == 0;
	return o->stop() == 0 && set(KFD_SESSION_STOP) == KFD_SESSION_DONE;
}

/* Stopped by both, and let go by both: it runs when both have done so. */
static int nests(const struct other *o, int session_stops_first, int session_runs_first)
{
	int well;

	mapped_meanwhile = o->mapped;
	run_all();
	well = stop_both(o, session_stops_first) && is_still(STOPPED | o->state);
	if (session_runs_first)
		well = well && set(KFD_SESSION_RUN) == KFD_SESSION_DONE && is_still(o->state) &&
		       o->run() == 0;
	else
		well = well && o->run() == 0 && is_still(STOPPED) && set(KFD_SESSION_RUN) == KFD_SESSION_DONE;
	return well && state() == KFD_SESSION_ACTIVE && all_end() == 0;
}

static void a_session_nests_with(const struct other *o)
{
	int well = 0;

	for (int i = 0; i < 4; i++)
		well += nests(o, i & 1, i & 2);
	ok(well == 4, "%s and a session stop and let run in each order, and none undoes the other's",
	   o->name);
}

/* With a runtime, so that the process can debug itself. */
static int begin_debugged(int *wake)
{
	struct kfd_runtime_info info = { 0 };
	int r = dbg_client_open(&client);

	if (r == 0)
		r = dbg_runtime(&client.kfd, KFD_RUNTIME_ENABLE);
	if (r == 0)
		r = dbg_client_add(&client, 2);
	if (r == 0)
		r = pipe2(wake, O_NONBLOCK | O_CLOEXEC) < 0 ? -errno : 0;
	if (r == 0)
		r = dbg_enable(&client.kfd, getpid(), wake[1], 0, &info);
	session = session_open(&client.kfd, 0);
	return r < 0 ? r : session < 0 ? session : 0;
}

static void the_debugger_goes(void)
{
	run_all();
	ok(set(KFD_SESSION_STOP) == KFD_SESSION_DONE && dbg_stop() == 0 &&
		   dbg_disable(&client.kfd, getpid()) == 0 && is_still(STOPPED),
	   "what a session stopped stays so when the debugger goes");
	ok(set(KFD_SESSION_RUN) == KFD_SESSION_DONE && all_end() == 0, "and runs when it says so");
}

static void the_session_goes(void)
{
	run_all();
	set(KFD_SESSION_STOP);
	dbg_stop();
	close(session);
	session = session_open(&client.kfd, 0);
	ok(is_still(KFD_SESSION_DEBUG), "what the debugger stopped stays so when a session is closed");
	ok(dbg_run() == 0 && state() == KFD_SESSION_ACTIVE && all_end() == 0, "and runs when it says so");
}

static void every_order(void)
{
	int wake[2], r = begin_debugged(wake);

	if (!ok(r == 0, "a process has queues, a session and a debugger (%d)", r))
		return;
	another = session_open(&client.kfd, 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		a_session_nests_with(&others[i]);
	close(another);
	the_session_goes();
	the_debugger_goes();
	ok(waves_away() == 0 && kfd_stat(0, "bad_restores") == 0, "no wave was lost (%lld)",
	   (long long)kfd_stat(0, "waves_saved"));
}

/* Of a process whose queues are off the GPU for that reason one queue goes, and then the process. */
static int goes_while(const struct other *o)
{
	struct dbg_peer p;
	int r = session_peer(&p, 2, 1000 * SECOND / MS);

	if (r == 0 && o == &looking)
		r = session_class(another, p.pid, KFD_SESSION_CLASS_OFFLINE);
	if (r == 0)
		r = o->stop();
	if (r == 0)
		r = soon_is(p.pid, 0, o->state);
	if (r == 0)
		r = dbg_peer_do(&p, DBG_DESTROY, 0);
	kill(p.pid, SIGKILL);
	if (r == 0)
		r = dbg_ends(p.pid, ENOUGH);
	return o->run() < 0 ? -EIO : r;
}

static void goes_and_ends_while(const struct other *o)
{
	int r = goes_while(o);

	ok(r == 0 && state() == KFD_SESSION_ACTIVE,
	   "%s: a queue that is stopped so is destroyed, and its process ends (%d)", o->name, r);
}

static void others_go(void)
{
	if (!begins(1))
		return;
	another = session_open(&client.kfd, 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i].state == KFD_SESSION_STOPPED || others[i].state == KFD_SESSION_WAITS)
			goes_and_ends_while(&others[i]);
}

/* Beside a process that is online and has work. */
static void beside_online_work(void)
{
	struct dbg_peer online;
	int r = session_peer(&online, 1, 1000 * SECOND / MS);

	if (!ok(r == 0, "a process is to be online, and has work (%d)", r) || !begins(2))
		return;
	another = session_open(&client.kfd, 0);
	ok(session_class(another, online.pid, KFD_SESSION_CLASS_ONLINE) == 0 &&
		   session_class(another, getpid(), KFD_SESSION_CLASS_OFFLINE) == 0,
	   "and another is offline");
	a_session_nests_with(&looking);
	goes_and_ends_while(&looking);
	kill(online.pid, SIGKILL);
	ok(dbg_ends(online.pid, ENOUGH) == 0, "what was online ends");
}

static int told[2];

static void leave_work_to_a_thread(void)
{
	if (begin(1) < 0)
		_exit(1);
	dbg_client_run(&client, 0, 1000 * SECOND);
	dbg_leave_to_a_thread(told[1]);
}

static pid_t start_without_first_thread(void)
{
	char byte = 0;
	pid_t pid = pipe(told) < 0 ? -1 : fork();

	if (pid == 0)
		leave_work_to_a_thread();
	close(told[1]);
	ok(pid > 0 && read(told[0], &byte, 1) == 1, "a process has work, and its first thread has exited");
	close(told[0]);
	return pid;
}

static void online_without_its_first_thread(void)
{
	pid_t online = start_without_first_thread();

	if (!begins(1))
		return;
	another = session_open(&client.kfd, 0);
	ok(session_class(another, online, KFD_SESSION_CLASS_ONLINE) == 0 &&
		   session_class(another, getpid(), KFD_SESSION_CLASS_OFFLINE) == 0 && look() == 0,
	   "its work is seen, and another's queue yields to it");
	kill(online, SIGKILL);
	ok(dbg_ends(online, ENOUGH) == 0 && soon_is(0, client.queues[0].id, KFD_SESSION_ACTIVE) == 0,
	   "until it ends");
}

static void offline_without_its_first_thread(void)
{
	struct dbg_peer online;
	pid_t offline = start_without_first_thread();
	int r = session_peer(&online, 1, 1000 * SECOND / MS);

	if (!begins(0))
		return;
	another = session_open(&client.kfd, 0);
	ok(r == 0 && session_class(another, offline, KFD_SESSION_CLASS_OFFLINE) == 0 &&
		   session_class(another, online.pid, KFD_SESSION_CLASS_ONLINE) == 0 && background(1) == 0 &&
		   soon_is(offline, 0, KFD_SESSION_YIELDS) == 0,
	   "its queue yields to another's work");
	kill(offline, SIGKILL);
	kill(online.pid, SIGKILL);
	ok(dbg_ends(offline, ENOUGH) == 0 && dbg_ends(online.pid, ENOUGH) == 0, "both end");
}

static int start_debugged(struct dbg_peer *p)
{
	int r = dbg_peer_start(p), wake[2];

	if (r == 0)
		r = dbg_peer_do(p, DBG_OPEN, 0);
	if (r == 0)
		r = dbg_peer_do(p, DBG_RUNTIME_ENABLE, 0);
	if (r == 0)
		r = dbg_peer_do(p, DBG_CREATE, 2);
	if (r == 0)
		r = pipe2(wake, O_NONBLOCK | O_CLOEXEC) < 0 ? -errno : 0;
	return r < 0 ? r : dbg_attach(&client.kfd, p->pid, wake[1], 0);
}

static void destroy_waits_for_the_debugger(void)
{
	struct dbg_peer p;

	if (!begins(0))
		return;
	ok(start_debugged(&p) == KFD_RUNTIME_STATE_ENABLED && dbg_suspend_all(&client.kfd, p.pid) == 2 &&
		   session_one(session, p.pid, 0, KFD_SESSION_STOP) == KFD_SESSION_DONE,
	   "a debugger suspends a process, and a session a queue of it");
	dbg_peer_tell(&p, DBG_DESTROY, 0);
	ok(dbg_sits_in(p.pid, "destroy_queue", ENOUGH), "to destroy a queue waits for the debugger");
	ok(session_one(session, p.pid, 1, KFD_SESSION_STOP) == KFD_SESSION_DESTROYED,
	   "a session is told that the queue is about to go");
	ok(session_one(session, p.pid, 0, KFD_SESSION_RUN) == KFD_SESSION_DONE &&
		   dbg_peer_result(&p, 200 * MS) == -ETIMEDOUT,
	   "what it does does not let it go");
	session_one(session, p.pid, 0, KFD_SESSION_STOP);
	ok(dbg_resume_all(&client.kfd, p.pid) >= 1 && dbg_peer_result(&p, ENOUGH) == 0, "the debugger does");
	ok(dbg_peer_do(&p, DBG_DESTROY, 0) == 0, "the other queue, that a session stopped, goes at once");
	ok(dbg_disable(&client.kfd, p.pid) == 0, "the debugger ends");
	kill(p.pid, SIGKILL);
	ok(dbg_ends(p.pid, ENOUGH) == 0, "and the process");
}

static int set_cu_mask(void)
{
	uint32_t mask = 1;
	struct kfd_set_cu_mask_args args = { .queue_id = client.queues[0].id,
					     .nbits = 32,
					     .mask = (uintptr_t)&mask };

	return kfd_ioctl(&client.kfd, KFD_IOC_SET_CU_MASK, &args);
}

static void changes_while_stopped(void)
{
	if (!begins(1))
		return;
	run_all();
	set(KFD_SESSION_STOP);
	ok(kfd_queue_update(&client.queues[0], 100, 11) == 0 && is_still(STOPPED),
	   "a queue has another priority while it is stopped, and is stopped");
	ok(set_cu_mask() == 0 && is_still(STOPPED), "and other compute units");
	ok(set(KFD_SESSION_RUN) == KFD_SESSION_DONE && all_end() == 0, "it goes on with them");
}

static volatile uint32_t *word;

static int fence_comes(struct kfd_queue *q, uint32_t value, uint64_t ns)
{
	if (value)
		kfd_put(q, kfd_sdma_fence(word, value));
	return kfd_wait_value(word, value ? value : 1, ns) == 0;
}

static int set_compute_only(uint32_t want)
{
	struct kfd_session_queue queue = session_queue(0, KFD_SESSION_ALL_QUEUES, want);

	queue.flags = KFD_SESSION_COMPUTE_ONLY;
	return session_set(session, &queue, 1, NULL) < 0 ? -1 : (int)queue.status;
}

static void copies(void)
{
	struct kfd_queue sdma, later;
	struct kfd_mem mem;

	if (!begins(1) || kfd_alloc(&client.kfd, client.gpu, 4096, &mem) < 0)
		return;
	word = mem.addr;
	ok(kfd_queue_create(&client.kfd, client.gpu, KFD_TYPE_SDMA, 7, &sdma) == 0, "it copies, too");
	ok(set(KFD_SESSION_STOP) == KFD_SESSION_DONE && !fence_comes(&sdma, 1, 300 * MS),
	   "all queues are stopped: it does not copy");
	ok(set(KFD_SESSION_RUN) == KFD_SESSION_DONE && kfd_wait_value(word, 1, ENOUGH) == 0,
	   "until they run");
	run_all();
	ok(set_compute_only(KFD_SESSION_STOP) == KFD_SESSION_DONE && state() == STOPPED &&
		   fence_comes(&sdma, 2, ENOUGH),
	   "all compute queues are stopped: it copies");
	ok(kfd_queue_create(&client.kfd, client.gpu, KFD_TYPE_SDMA, 7, &later) == 0 &&
		   fence_comes(&later, 3, ENOUGH) && dbg_client_add(&client, 1) == 0 &&
		   session_state(session, 0, client.queues[1].id) == STOPPED,
	   "and by a queue made later, where a compute queue is stopped");
	client.signals[1].value = 0;
	ok(set_compute_only(KFD_SESSION_RUN) == KFD_SESSION_DONE && all_end() == 0, "until they run");
}

/* Work of a process that comes after a fault. */
static void do_work(void)
{
	uint64_t end = kfd_now() + ENOUGH;
	int r = begin(1);

	while (r == -EINVAL && kfd_now() < end) { /* a GPU that resets is locked */
		kfd_sleep(50 * MS);
		r = begin(1);
	}
	ok(r == 0, "a new process has a queue (%d)", r);
	run_all();
	ok(set(KFD_SESSION_STOP) == KFD_SESSION_DONE && set(KFD_SESSION_RUN) == KFD_SESSION_DONE &&
		   all_end() == 0,
	   "which is stopped, runs, and works");
}

static void reset_while_stopped(void)
{
	int64_t resets = kfd_stat(0, "resets");
	char path[128];

	if (!begins(2))
		return;
	run_all();
	set(KFD_SESSION_STOP);
	ok(kfd_fault(0, "reset") == 0 && kfd_wait_stat(0, "resets", resets + 1, ENOUGH) == 0,
	   "the GPU is reset while queues are stopped");
	kfd_sleep(100 * MS);
	ok(set(KFD_SESSION_RUN) == KFD_SESSION_RESET && state() & KFD_SESSION_WAS_RESET &&
		   !(state() & KFD_SESSION_ACTIVE),
	   "they do not run when they are let, and it is said why (%#x)", state());
	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d/queues/%u/state", getpid(),
		 client.queues[0].id);
	ok(session_file_says(path, " reset\n"), "which sysfs says too");
	ok(set(KFD_SESSION_STOP) >= KFD_SESSION_DONE && close(session) == 0, "the session can be closed");
}

/* A process in whose time the GPU takes nothing from the driver. */
static pid_t hold_reset(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		close(session);
		_exit(kfd_fault(0, "hold-reset 1000") != 0);
	}
	return pid;
}

static void closed_while_the_gpu_resets(void)
{
	pid_t holder;

	if (!begins(2))
		return;
	run_all();
	session_one(session, 0, client.queues[1].id, KFD_SESSION_STOP);
	holder = hold_reset();
	ok(dbg_sits_in(holder, "sg_hold_reset", ENOUGH) && close(session) == 0,
	   "a session is closed while its GPU takes nothing from the driver");
	waitpid(holder, NULL, 0);
	ok(all_end() == 0, "what it stopped runs all the same");
}

static void a_device_that_does_not_answer(const char *fault)
{
	int status;

	if (!begins(2))
		return;
	dbg_client_run(&client, 0, 1000 * SECOND);
	kfd_sleep(50 * MS);
	kfd_fault(0, fault);
	status = set(KFD_SESSION_STOP);
	ok(status == KFD_SESSION_FAILED || status == KFD_SESSION_RESET || status == KFD_SESSION_DONE,
	   "with %s, STOP returns (status %d, state %#x)", fault, status, state());
	status = set(KFD_SESSION_RUN);
	ok(status >= 0 && !(state() & KFD_SESSION_ACTIVE), "RUN does, too, and lets nothing run (%d, %#x)",
	   status, state());
	ok(close(session) == 0, "the session can be closed");
}

static void hung_hiq(void)
{
	a_device_that_does_not_answer("hung-hiq");
}

static void no_preempt(void)
{
	a_device_that_does_not_answer("no-preempt");
}

static volatile int stop_threads;

static void *make_queues(void *count)
{
	volatile int *made = count;
	struct kfd_queue q;

	for (; !stop_threads; (*made)++)
		if (kfd_queue_create(&client.kfd, client.gpu, KFD_TYPE_AQL, 7, &q) < 0 ||
		    kfd_queue_destroy(&q) < 0)
			break;
	return NULL;
}

static void new_queues_against_stop_all(void)
{
	volatile int made = 0;
	int active = 0;
	pthread_t thread;

	if (!begins(1))
		return;
	stop_threads = 0;
	pthread_create(&thread, NULL, make_queues, (void *)&made);
	for (int i = 0; i < 20 || (made < 10 && i < 1000); i++) {
		set(KFD_SESSION_STOP);
		for (int looks = 0; looks < 5; looks++)
			active += session_state(session, 0, KFD_SESSION_ALL_QUEUES) & KFD_SESSION_ACTIVE;
		set(KFD_SESSION_RUN);
	}
	stop_threads = 1;
	pthread_join(thread, NULL);
	ok(active == 0 && made > 0, "of %d queues that were made meanwhile none ran while all were stopped",
	   made);
	ok(state() == KFD_SESSION_ACTIVE, "what was there before runs");
}

static void lease_against_calls(void)
{
	int stale = 0;

	if (!begins(1))
		return;
	for (int i = 0; i < 20; i++) {
		int fd = session_open(&client.kfd, 4 * MS), r = 0;

		for (int calls = 0; r >= 0 && calls < 1000; calls++) {
			r = session_all(fd, 0, calls & 1 ? KFD_SESSION_RUN : KFD_SESSION_STOP);
			kfd_sleep((uint64_t)(calls % 7) * MS);
		}
		stale += r == -ESTALE && session_all(fd, 0, KFD_SESSION_STOP) == -ESTALE &&
			 state() == KFD_SESSION_ACTIVE;
		close(fd);
	}
	ok(stale == 20, "a lease ends between calls: 20 of %d sessions end, and nothing is stopped", stale);
}

static void *call_until_closed(void *descriptor)
{
	int fd = *(int *)descriptor, r = 0;

	for (uint32_t i = 0; r >= 0; i++)
		r = session_all(fd, 0, i & 1 ? KFD_SESSION_RUN : KFD_SESSION_STOP);
	return NULL;
}

static void close_against_calls(void)
{
	int well = 0;

	if (!begins(1))
		return;
	for (int i = 0; i < 20; i++) {
		int fd = session_open(&client.kfd, 0);
		pthread_t thread;

		pthread_create(&thread, NULL, call_until_closed, &fd);
		kfd_sleep((uint64_t)(i + 1) * MS);
		close(fd);
		pthread_join(thread, NULL);
		well += state() == KFD_SESSION_ACTIVE;
	}
	ok(well == 20, "a session is closed while it is called: nothing is left stopped (%d)", well);
}

static void *fight(void *odd)
{
	int fd = session_open(&client.kfd, 0);

	for (uint32_t i = 0; !stop_threads; i++) {
		int r = session_all(fd, 0, i & 1 ? KFD_SESSION_RUN : KFD_SESSION_STOP);

		if (r != KFD_SESSION_DONE && r != KFD_SESSION_BUSY && r != KFD_SESSION_NO_CHANGE)
			*(int *)odd = r;
	}
	close(fd);
	return NULL;
}

static void two_sessions_fight(void)
{
	int64_t away = waves_away();
	pthread_t threads[2];
	int odd = 0;

	if (!begins(2))
		return;
	stop_threads = 0;
	run_all();
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, fight, &odd);
	kfd_sleep(SECOND);
	stop_threads = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ok(odd == 0 && state() == KFD_SESSION_ACTIVE && all_end() == 0,
	   "two sessions fight for a queue: it is stopped by one, by the other, or runs (%d)", odd);
	ok(waves_away() == away && kfd_stat(0, "bad_restores") == 0, "and loses nothing");
}

static void *toggle(void *pid)
{
	for (uint32_t i = 0; !stop_threads; i++)
		session_all(session, *(pid_t *)pid, i & 1 ? KFD_SESSION_RUN : KFD_SESSION_STOP);
	return NULL;
}

/* How a process ends that is stopped, or about to be. */
static int ends_while_stopped(int by_exit, int toggled)
{
	pthread_t thread;
	struct dbg_peer p;
	int r = session_peer(&p, 2, 60000);

	if (r < 0 || session_all(session, p.pid, KFD_SESSION_STOP) != KFD_SESSION_DONE)
		return -EIO;
	stop_threads = 0;
	if (toggled)
		pthread_create(&thread, NULL, toggle, &p.pid);
	kfd_sleep(5 * MS);
	if (by_exit)
		dbg_peer_tell(&p, DBG_EXIT, 0);
	else
		kill(p.pid, SIGKILL);
	r = dbg_ends(p.pid, ENOUGH);
	stop_threads = 1;
	if (toggled)
		pthread_join(thread, NULL);
	return r < 0 ? r : session_all(session, p.pid, KFD_SESSION_RUN);
}

static void targets_end(void)
{
	int well = 0;

	if (!begins(0))
		return;
	for (int i = 0; i < 8; i++)
		well += ends_while_stopped(i & 1, i & 2) == KFD_SESSION_NOT_FOUND;
	ok(well == 8, "a process exits or is killed, stopped or in the midst of it (%d of 8)", well);
	ok(kfd_wait_stat(0, "mapped", 0, ENOUGH) == 0, "nothing of it is left on the device");
}

static void target_forks(void)
{
	int pipes[2];
	pid_t pid;

	if (!begins(1) || pipe(pipes) < 0)
		return;
	set(KFD_SESSION_STOP);
	pid = fork();
	if (pid == 0) {
		char byte;

		_exit(read(pipes[0], &byte, 1) == 1 ? 0 : 1);
	}
	ok(session_all(session, pid, KFD_SESSION_STOP) == KFD_SESSION_NOT_FOUND,
	   "a child of a process that is stopped has no queues");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(pipes[0]);
	close(pipes[1]);
	ok(state() == STOPPED && set(KFD_SESSION_RUN) == KFD_SESSION_DONE, "and changes nothing of it");
}

int main(void)
{
	if (session_missing())
		return 0;
	tap_in_child(every_order);
	tap_in_child(others_go);
	tap_in_child(beside_online_work);
	tap_in_child(online_without_its_first_thread);
	tap_in_child(offline_without_its_first_thread);
	tap_in_child(destroy_waits_for_the_debugger);
	tap_in_child(changes_while_stopped);
	tap_in_child(copies);
	tap_in_child(targets_end);
	tap_in_child(target_forks);
	tap_in_child(new_queues_against_stop_all);
	tap_in_child(lease_against_calls);
	tap_in_child(close_against_calls);
	tap_in_child(two_sessions_fight);
	tap_in_child(closed_while_the_gpu_resets);
	tap_in_child(reset_while_stopped);
	tap_in_child(do_work);
	tap_in_child(hung_hiq);
	tap_in_child(do_work);
	tap_in_child(no_preempt);
	tap_in_child(do_work);
	ok(kfd_wait_stat(0, "mapped", 0, ENOUGH) == 0, "nothing is left on the device");
	return tap_done();
}
