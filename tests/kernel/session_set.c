// SPDX-License-Identifier: MIT
/* bed: timeout=240 memory=3G param=cus=8 */
/*
 * What a scheduling session does to queues of other processes, in packets: one preemption and one run list
 * for any number of queues and processes, none where nothing changes, and everything as it was when it ends.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session.h"
#include "tap.h"

#define MS DBG_MS
#define SECOND DBG_SECOND
#define PEERS 3
#define QUEUES 4
#define WORK_MS 2000
#define STILL_MS 300
#define LEASE (6 * SECOND) /* longer than a busy host keeps the machine from running */

static struct kfd kfd;
static struct dbg_peer peers[PEERS];
static int64_t away_before; /* of tests before this one */

static int open_session(void)
{
	return session_open(&kfd, 0);
}

/* An entry for every queue of every peer. */
static uint32_t all_queues(struct kfd_session_queue *queues, uint32_t want)
{
	for (uint32_t i = 0; i < PEERS * QUEUES; i++)
		queues[i] = session_queue(peers[i / QUEUES].pid, i % QUEUES, want);
	return PEERS * QUEUES;
}

static uint32_t with_status(const struct kfd_session_queue *queues, uint32_t n, uint32_t status)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++)
		found += queues[i].status == status;
	return found;
}

static int packets_are(int64_t unmap, int64_t query, int64_t runlist)
{
	struct session_packets p = session_packets();

	note("packets: %lld unmap, %lld query, %lld run list", (long long)p.unmap, (long long)p.query,
	     (long long)p.runlist);
	return p.unmap == unmap && p.query == query && p.runlist == runlist;
}

static int all_work(void)
{
	int r = 0;

	for (int i = 0; i < PEERS && r == 0; i++)
		r = dbg_peer_do(&peers[i], DBG_RUN, WORK_MS);
	return r;
}

static int nothing_runs(void)
{
	int64_t before = kfd_stat(0, "busy_ns");

	kfd_sleep(STILL_MS * MS);
	return kfd_stat(0, "busy_ns") == before;
}

static int all_end(uint64_t ms)
{
	int r = 0;

	for (int i = 0; i < PEERS && r == 0; i++)
		r = dbg_peer_do(&peers[i], DBG_WAIT, ms);
	return r;
}

/* Waves that were saved and have not come back; of processes that ended too. */
static int64_t waves_away(void)
{
	return kfd_stat(0, "waves_saved") - kfd_stat(0, "waves_restored");
}

static int nothing_was_lost(void)
{
	return waves_away() == away_before && kfd_stat(0, "bad_restores") == 0;
}

static void many_queues_are_one_cycle(int fd)
{
	struct kfd_session_queue queues[PEERS * QUEUES];
	struct kfd_session_set set;
	uint32_t n = all_queues(queues, KFD_SESSION_STOP);

	all_work();
	session_packets();
	ok(session_set(fd, queues, n, &set) == 0 && with_status(queues, n, KFD_SESSION_DONE) == n,
	   "twelve queues of three processes are stopped in one call");
	ok(packets_are(1, 1, 0) && set.cycles == 1, "which is one unmap, one fence, and no run list");
	ok(set.latency_ns > 0 && set.seqno == 1, "it says how long that took (%llu ns)",
	   (unsigned long long)set.latency_ns);
	ok(queues[0].state == (KFD_SESSION_STOPPED | KFD_SESSION_OWN), "and what they are now (%#x)",
	   queues[0].state);
	ok(kfd_stat(0, "mapped") == 0 && nothing_runs(), "none goes on");
	n = all_queues(queues, KFD_SESSION_STOP);
	session_packets();
	ok(session_set(fd, queues, n, &set) == 0 && with_status(queues, n, KFD_SESSION_NO_CHANGE) == n &&
		   set.cycles == 0 && packets_are(0, 0, 0),
	   "to stop them again costs nothing");
	n = all_queues(queues, KFD_SESSION_RUN);
	ok(session_set(fd, queues, n, &set) == 0 && with_status(queues, n, KFD_SESSION_DONE) == n,
	   "all of them run again after one call");
	ok(packets_are(0, 0, 1), "which is one run list and waits for nothing");
	ok(all_end(DBG_SOON_MS) == 0, "and end their work");
	ok(nothing_was_lost() && kfd_stat(0, "waves_saved") > 0, "of which nothing was lost (%lld waves)",
	   (long long)kfd_stat(0, "waves_saved"));
}

static void both_ways_are_one_cycle(int fd)
{
	struct kfd_session_queue queues[2];
	struct kfd_session_set set;

	session_one(fd, peers[0].pid, 0, KFD_SESSION_STOP);
	queues[0] = session_queue(peers[0].pid, 0, KFD_SESSION_RUN);
	queues[1] = session_queue(peers[1].pid, KFD_SESSION_ALL_QUEUES, KFD_SESSION_STOP);
	session_packets();
	ok(session_set(fd, queues, 2, &set) == 0 && queues[0].status == KFD_SESSION_DONE &&
		   queues[1].status == KFD_SESSION_DONE && packets_are(1, 1, 1) && set.cycles == 1,
	   "one process comes back as another one goes, in one cycle");
	queues[0] = session_queue(peers[2].pid, 1, KFD_SESSION_STOP);
	queues[1] = session_queue(peers[2].pid, 1, KFD_SESSION_RUN);
	ok(session_set(fd, queues, 2, &set) == 0 && packets_are(0, 0, 0) &&
		   session_state(fd, peers[2].pid, 1) == KFD_SESSION_ACTIVE,
	   "the last word on a queue counts, and costs nothing if nothing changes");
	ok(session_all(fd, peers[1].pid, KFD_SESSION_RUN) == KFD_SESSION_DONE, "the other one comes back");
}

static void new_queues_are_stopped(int fd)
{
	ok(session_all(fd, peers[0].pid, KFD_SESSION_STOP) == KFD_SESSION_DONE, "a process is stopped");
	session_packets();
	ok(dbg_peer_do(&peers[0], DBG_CREATE, 1) == 0 && packets_are(0, 0, 0) &&
		   session_is_stopped(fd, peers[0].pid, QUEUES),
	   "a queue that it makes meanwhile is stopped as well");
	ok(dbg_peer_do(&peers[0], DBG_RUN, 1) == 0 && dbg_peer_do(&peers[0], DBG_WAIT, 300) == -ETIMEDOUT,
	   "and does no work");
	ok(session_all(fd, peers[0].pid, KFD_SESSION_RUN) == KFD_SESSION_DONE &&
		   dbg_peer_do(&peers[0], DBG_WAIT, DBG_SOON_MS) == 0,
	   "until all of the process runs");
	ok(dbg_peer_do(&peers[0], DBG_CREATE, 1) == 0 &&
		   session_state(fd, peers[0].pid, QUEUES + 1) == KFD_SESSION_ACTIVE,
	   "the next one runs from the beginning");
}

static void wrong_names(int fd)
{
	struct kfd_session_queue queue = session_queue(peers[0].pid, 0, KFD_SESSION_STOP);

	ok(session_one(fd, peers[0].pid, 77, KFD_SESSION_STOP) == KFD_SESSION_NOT_FOUND,
	   "a queue that is not there is not found");
	ok(session_one(fd, getppid(), 0, KFD_SESSION_STOP) == KFD_SESSION_NOT_FOUND &&
		   session_one(fd, 4000000, 0, KFD_SESSION_STOP) == KFD_SESSION_NOT_FOUND,
	   "nor is a process without queues, or none");
	queue.start_time = 1;
	ok(session_set(fd, &queue, 1, NULL) == 0 && queue.status == KFD_SESSION_NOT_FOUND,
	   "nor one that began at another time");
	queue = session_queue(peers[0].pid, 0, KFD_SESSION_STOP);
	queue.gpu_id = 1;
	ok(session_set(fd, &queue, 1, NULL) == 0 && queue.status == KFD_SESSION_NOT_FOUND,
	   "nor one on another GPU");
}

static void ends_when_closed(void)
{
	int fd = open_session(), copy = dup(fd);

	all_work();
	ok(session_all(fd, peers[0].pid, KFD_SESSION_STOP) == KFD_SESSION_DONE &&
		   session_one(fd, peers[1].pid, 1, KFD_SESSION_STOP) == KFD_SESSION_DONE,
	   "a session stops a process and a queue");
	close(fd);
	ok(session_is_stopped(copy, peers[0].pid, 0) && session_is_stopped(copy, peers[1].pid, 1),
	   "with one of its descriptors closed they are stopped");
	session_packets();
	close(copy);
	ok(packets_are(1, 1, 1), "when the last one is closed, all of it runs again at once");
	ok(all_end(DBG_SOON_MS) == 0, "and ends");
}

static void kill_the_holder(int sig)
{
	int ready[2], status;
	pid_t pid;
	char c;

	if (pipe(ready) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		struct kfd own;
		int fd;

		kfd_open(&own);
		fd = session_open(&own, 0);
		session_all(fd, peers[2].pid, KFD_SESSION_STOP);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		if (!sig)
			_exit(0);
		pause();
	}
	if (read(ready[0], &c, 1) == 1 && sig)
		kill(pid, sig);
	waitpid(pid, &status, 0);
	close(ready[0]);
	close(ready[1]);
}

static void ends_with_its_process(void)
{
	all_work();
	kill_the_holder(SIGKILL);
	ok(all_end(DBG_SOON_MS) == 0, "what a process stopped that was killed runs again");
	all_work();
	kill_the_holder(0);
	ok(all_end(DBG_SOON_MS) == 0, "and what one stopped that has ended");
}

static void ends_with_its_lease(void)
{
	int fd = session_open(&kfd, LEASE);

	all_work();
	for (int i = 0; i < 8; i++) {
		session_all(fd, peers[0].pid, KFD_SESSION_STOP);
		kfd_sleep(LEASE / 6);
	}
	ok(session_is_stopped(fd, peers[0].pid, 0), "a session of which something is asked keeps its lease");
	ok(all_end(DBG_SOON_MS) == 0, "what it stopped runs again when nothing is");
	ok(session_all(fd, peers[0].pid, KFD_SESSION_STOP) == -ESTALE, "and it has ended");
	close(fd);
	fd = open_session();
	ok(session_state(fd, peers[0].pid, 0) == KFD_SESSION_ACTIVE, "nothing is left of it");
	close(fd);
}

static void two_sessions(void)
{
	int one = open_session(), two = open_session();

	ok(session_all(one, peers[0].pid, KFD_SESSION_STOP) == KFD_SESSION_DONE &&
		   session_one(two, peers[0].pid, 0, KFD_SESSION_STOP) == KFD_SESSION_BUSY &&
		   session_all(two, peers[0].pid, KFD_SESSION_RUN) == KFD_SESSION_BUSY,
	   "what one session stopped is not another one's");
	ok(session_state(two, peers[0].pid, 0) == KFD_SESSION_STOPPED, "who can see it");
	close(one);
	ok(session_one(two, peers[0].pid, 0, KFD_SESSION_STOP) == KFD_SESSION_DONE, "until that has ended");
	close(two);
}

static void destroyed_while_stopped(void)
{
	struct dbg_peer p;
	int fd = open_session();

	session_peer(&p, 2, WORK_MS);
	ok(session_all(fd, p.pid, KFD_SESSION_STOP) == KFD_SESSION_DONE &&
		   dbg_peer_do(&p, DBG_DESTROY, 0) == 0,
	   "a queue can be destroyed while it is stopped");
	dbg_peer_tell(&p, DBG_EXIT, 0);
	ok(dbg_ends(p.pid, KFD_SOON) == 0, "and its process can exit");
	ok(session_one(fd, p.pid, 1, KFD_SESSION_RUN) == KFD_SESSION_NOT_FOUND, "then it is not found");
	close(fd);
}

/* The grace period that was used, or -errno. */
static int stop_with_grace(int fd, uint32_t us)
{
	struct kfd_session_queue queue = session_queue(peers[0].pid, 0, KFD_SESSION_STOP);
	struct kfd_session_args args = {
		.op = KFD_SESSION_SET,
		.set = { .queues = (uintptr_t)&queue, .n = 1, .queue_size = sizeof(queue), .grace_us = us }
	};
	int r = session_call(fd, &args);

	return r < 0 ? r : (int)args.set.grace_us;
}

static void grace_is_told(int fd)
{
	int used = stop_with_grace(fd, 1000000);

	ok(used > 0 && used < 1000, "of a second in which waves may end the hardware's most is used (%d us)",
	   used);
	used = stop_with_grace(fd, 1000000);
	ok(used == 0, "and none where nothing is preempted (%d)", used);
	session_one(fd, peers[0].pid, 0, KFD_SESSION_RUN);
}

int main(void)
{
	int fd, r;

	if (session_missing())
		return 0;
	away_before = waves_away();
	r = kfd_open(&kfd);
	fd = open_session();
	for (int i = 0; i < PEERS && r == 0; i++)
		r = session_peer(&peers[i], QUEUES, 0);
	if (!ok(r == 0 && fd >= 0, "there are a session and processes with queues (%d, %d)", r, fd))
		return tap_done();
	many_queues_are_one_cycle(fd);
	both_ways_are_one_cycle(fd);
	new_queues_are_stopped(fd);
	wrong_names(fd);
	grace_is_told(fd);
	close(fd);
	ends_when_closed();
	ends_with_its_process();
	ends_with_its_lease();
	two_sessions();
	ok(all_work() == 0 && all_end(DBG_SOON_MS) == 0, "after all of this every process works");
	ok(nothing_was_lost(), "and no wave was lost (%lld)", (long long)kfd_stat(0, "waves_saved"));
	destroyed_while_stopped();
	return tap_done();
}
