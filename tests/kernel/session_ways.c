// SPDX-License-Identifier: MIT
/* bed: timeout=240 memory=3G param=cus=8 */
/*
 * The ways in which a session stops: when a queue is empty, all of a GPU at once; and what else can be seen
 * of it, in sysfs, debugfs and the trace.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "session.h"
#include "tap.h"

#define MS DBG_MS
#define SECOND DBG_SECOND
#define QUEUES 3
#define WORK_MS 1000
#define REASON_FORMAT "/sys/kernel/tracing/events/kfd/kfd_queue_suspend/format"

static struct kfd kfd;
static struct dbg_peer peer, other;

static int drain(int fd, uint64_t timeout_ns, struct kfd_session_set *ret_set)
{
	struct kfd_session_queue queue = session_queue(peer.pid, KFD_SESSION_ALL_QUEUES, KFD_SESSION_STOP);
	struct kfd_session_args args = { .op = KFD_SESSION_SET,
					 .set = { .queues = (uintptr_t)&queue,
						  .n = 1,
						  .queue_size = sizeof(queue),
						  .timeout_ns = timeout_ns } };
	int r;

	queue.type = KFD_SESSION_DRAIN;
	r = session_call(fd, &args);
	*ret_set = args.set;
	return r < 0 ? r : (int)queue.status;
}

static void drained(int fd)
{
	struct kfd_session_set set;
	int64_t saved = kfd_stat(0, "waves_saved"), begun;

	dbg_peer_do(&peer, DBG_RUN, WORK_MS);
	ok(drain(fd, 60 * SECOND, &set) == KFD_SESSION_DONE && dbg_peer_do(&peer, DBG_WAIT, 0) == 0,
	   "queues that are drained end their work first");
	ok(session_is_stopped(fd, peer.pid, 0) && kfd_stat(0, "waves_saved") == saved,
	   "and then are stopped, with nothing to save");
	session_all(fd, peer.pid, KFD_SESSION_RUN);
	begun = kfd_stat(0, "dispatches");
	dbg_peer_do(&peer, DBG_RUN, 100 * WORK_MS);
	kfd_wait_stat(0, "dispatches", begun + QUEUES, KFD_SOON);
	ok(drain(fd, 100 * MS, &set) == KFD_SESSION_DONE && session_is_stopped(fd, peer.pid, 0) &&
		   kfd_stat(0, "waves_saved") > saved,
	   "what does not end in time is saved");
	session_all(fd, peer.pid, KFD_SESSION_RUN);
}

static void on_signal(int signal)
{
	(void)signal;
}

static void drain_is_interrupted(int fd)
{
	const struct itimerval every_second = { { 1, 0 }, { 1, 0 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_signal };
	struct kfd_session_set set;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every_second, NULL); /* again, if the first comes before the call */
	ok(drain(fd, 60 * SECOND, &set) == -EINTR && session_state(fd, peer.pid, 0) == KFD_SESSION_ACTIVE,
	   "a signal ends the wait, and nothing is stopped");
	setitimer(ITIMER_REAL, &never, NULL);
}

/* A call that waits for two processes, in a thread. */
static struct kfd_session_queue two[2];
static volatile int has_returned;

static void *drain_two(void *descriptor)
{
	struct kfd_session_args args = { .op = KFD_SESSION_SET,
					 .set = { .queues = (uintptr_t)two,
						  .n = 2,
						  .queue_size = sizeof(two[0]),
						  .timeout_ns = 20 * SECOND } };

	session_call(*(int *)descriptor, &args);
	has_returned = 1;
	return NULL;
}

static void one_ends_while_another_is_drained(int fd)
{
	int64_t active = kfd_stat(0, "active");
	struct dbg_peer late;
	pthread_t thread;
	int is_gone;

	session_peer(&late, 1, 100 * WORK_MS);
	dbg_peer_do(&peer, DBG_RUN, 100 * WORK_MS);
	for (int i = 0; i < 2; i++) {
		two[i] = session_queue(i ? late.pid : peer.pid, KFD_SESSION_ALL_QUEUES, KFD_SESSION_STOP);
		two[i].type = KFD_SESSION_DRAIN;
	}
	pthread_create(&thread, NULL, drain_two, &fd);
	kfd_sleep(100 * MS);
	kill(late.pid, SIGKILL);
	dbg_ends(late.pid, KFD_SOON);
	is_gone = kfd_wait_stat(0, "active", active, KFD_SOON) == 0;
	ok(is_gone && !has_returned, "what ends while another is waited for is off the device meanwhile");
	pthread_join(thread, NULL);
	ok(two[0].status == KFD_SESSION_DONE && two[1].status == KFD_SESSION_NOT_FOUND,
	   "and is not found any more (%u, %u)", two[0].status, two[1].status);
	session_all(fd, peer.pid, KFD_SESSION_RUN);
}

static int told[2];

static void leave_to_a_thread(void)
{
	struct dbg_client c;

	if (dbg_client_open(&c) < 0 || dbg_client_add(&c, 1) < 0)
		_exit(1);
	dbg_client_run(&c, 0, 3 * SECOND);
	dbg_leave_to_a_thread(told[1]);
}

static void drained_without_its_first_thread(int fd)
{
	struct dbg_peer was = peer;
	struct kfd_session_set set;
	int64_t saved;
	char byte = 0;

	session_all(fd, peer.pid, KFD_SESSION_STOP); /* what it does is saved already */
	if (pipe(told) < 0)
		return;
	peer.pid = fork();
	if (peer.pid == 0)
		leave_to_a_thread();
	ok(read(told[0], &byte, 1) == 1, "a process has work, and its first thread has exited");
	saved = kfd_stat(0, "waves_saved");
	ok(drain(fd, 60 * SECOND, &set) == KFD_SESSION_DONE && kfd_stat(0, "waves_saved") == saved,
	   "its queue is drained all the same");
	kill(peer.pid, SIGKILL);
	waitpid(peer.pid, NULL, 0);
	peer = was;
	session_all(fd, peer.pid, KFD_SESSION_RUN);
}

static void wrong_ways(int fd)
{
	struct kfd_session_queue queue = session_queue(peer.pid, 0, KFD_SESSION_STOP);
	struct kfd_session_set set;

	queue.type = KFD_SESSION_KILL;
	ok(session_set(fd, &queue, 1, NULL) == -EOPNOTSUPP, "work is not thrown away");
	queue.type = KFD_SESSION_KILL + 1;
	ok(session_set(fd, &queue, 1, NULL) == -EINVAL, "there is no other way");
	ok(drain(fd, KFD_SESSION_MAX_DRAIN_NS + 1, &set) == -EINVAL, "nor a longer wait");
	queue = session_queue(-1, KFD_SESSION_ALL_QUEUES, KFD_SESSION_STOP);
	ok(session_set(fd, &queue, 1, NULL) == -EINVAL, "a whole GPU has to be named");
	queue.gpu_id = kfd.gpus[0].gpu_id;
	queue.type = KFD_SESSION_DRAIN;
	ok(session_set(fd, &queue, 1, NULL) == -EINVAL, "and is not drained");
}

static int set_gpu(int fd, uint32_t want)
{
	struct kfd_session_queue queue = session_queue(-1, KFD_SESSION_ALL_QUEUES, want);
	int r;

	queue.gpu_id = kfd.gpus[0].gpu_id;
	r = session_set(fd, &queue, 1, NULL);
	return r < 0 ? r : (int)queue.status;
}

static void empty_gpu(void)
{
	int fd = session_open(&kfd, 0);

	ok(set_gpu(fd, KFD_SESSION_STOP) == KFD_SESSION_DONE &&
		   set_gpu(fd, KFD_SESSION_STOP) == KFD_SESSION_NO_CHANGE &&
		   set_gpu(fd, KFD_SESSION_RUN) == KFD_SESSION_DONE,
	   "a GPU without queues is stopped and let run, and once each");
	close(fd);
}

static void whole_gpu(int fd)
{
	struct dbg_peer late;

	session_packets();
	ok(set_gpu(fd, KFD_SESSION_STOP) == KFD_SESSION_DONE && kfd_stat(0, "active") == 0 &&
		   session_packets().unmap == 1,
	   "all of a GPU is stopped at once");
	session_peer(&late, 1, 1);
	ok(session_is_stopped(fd, late.pid, 0) && kfd_stat(0, "active") == 0,
	   "a process that comes then waits as well");
	ok(set_gpu(fd, KFD_SESSION_RUN) == KFD_SESSION_DONE &&
		   dbg_peer_do(&late, DBG_WAIT, DBG_SOON_MS) == 0 && kfd_stat(0, "active") == 2 * QUEUES + 1,
	   "all of it goes on at once");
	ok(set_gpu(fd, KFD_SESSION_STOP) == KFD_SESSION_DONE, "it is stopped once more");
	dbg_peer_tell(&late, DBG_EXIT, 0);
	dbg_ends(late.pid, KFD_SOON);
}

static void whole_gpu_beside_queues(int fd)
{
	int another = session_open(&kfd, 0);

	session_one(fd, peer.pid, 0, KFD_SESSION_STOP);
	session_one(another, other.pid, 0, KFD_SESSION_STOP);
	ok(set_gpu(fd, KFD_SESSION_STOP) == KFD_SESSION_DONE && kfd_stat(0, "active") == 0,
	   "a GPU is stopped where two sessions have stopped a queue each");
	ok(set_gpu(fd, KFD_SESSION_RUN) == KFD_SESSION_DONE && session_is_stopped(fd, peer.pid, 0) &&
		   session_is_stopped(another, other.pid, 0) &&
		   kfd_wait_stat(0, "active", 2 * QUEUES - 2, KFD_SOON) == 0,
	   "it runs, but for these queues");
	set_gpu(fd, KFD_SESSION_STOP);
	ok(session_one(fd, peer.pid, 0, KFD_SESSION_RUN) == KFD_SESSION_DONE &&
		   session_is_stopped(fd, peer.pid, 0) && kfd_stat(0, "active") == 0,
	   "a queue that is let run waits for the GPU");
	ok(set_gpu(another, KFD_SESSION_RUN) == KFD_SESSION_BUSY, "which is not another session's to let go");
	set_gpu(fd, KFD_SESSION_RUN);
	close(another);
	ok(kfd_wait_stat(0, "active", 2 * QUEUES, KFD_SOON) == 0, "then all run");
}

static void only_an_administrator(void)
{
	if (kfd_open(&kfd) < 0 || setuid(65534) < 0)
		_exit(1);
	ok(set_gpu(session_open(&kfd, 0), KFD_SESSION_STOP) == KFD_SESSION_DENIED,
	   "who is no administrator cannot stop a whole GPU");
}

static void is_seen(int fd)
{
	char path[128], line[128];

	ok(session_trace(1), "there are trace events");
	session_one(fd, peer.pid, 1, KFD_SESSION_STOP);
	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d/queues/1/state", peer.pid);
	ok(session_file_says(path, "inactive stopped\n"), "sysfs says that a queue is stopped");
	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d/queues/1/priority", peer.pid);
	ok(session_file_says(path, "7\n"), "and its priority");
	snprintf(line, sizeof(line), "process %d class none\n", peer.pid);
	ok(session_file_says("/sys/kernel/debug/kfd/sched", line) &&
		   session_file_says("/sys/kernel/debug/kfd/sched",
				     "queue 1 inactive reasons 0x2 stopped by "),
	   "debugfs says who did it");
	session_one(fd, peer.pid, 1, KFD_SESSION_RUN);
	session_trace(0);
	snprintf(line, sizeof(line),
		 "kfd_queue_suspend: gpu_id=%u pid=%d queue_id=1 reason=sched seqno=", kfd.gpus[0].gpu_id,
		 peer.pid);
	ok(session_file_says(SESSION_TRACE, line), "the trace says so");
	ok(session_file_says(SESSION_TRACE, "kfd_unmap_begin: ") &&
		   session_file_says(SESSION_TRACE, "kfd_unmap_end: ") &&
		   session_file_says(SESSION_TRACE, "kfd_runlist: ") &&
		   session_file_says(SESSION_TRACE, "kfd_queue_resume: "),
	   "and what was done on the device");
	ok(session_file_says(REASON_FORMAT, "{ 2, \"sched\" }"),
	   "a program that reads the trace as it is has numbers for the reasons");
}

static void new_queues_are_seen(int fd)
{
	struct dbg_peer late;
	char line[128];

	session_trace(1);
	session_reserve(fd, kfd.gpus[0].gpu_id, 100, 0, 0, NULL);
	session_peer(&late, 1, 0);
	session_trace(0);
	session_reserve(fd, kfd.gpus[0].gpu_id, 0, 0, 0, NULL);
	snprintf(line, sizeof(line),
		 "kfd_queue_suspend: gpu_id=%u pid=%d queue_id=0 reason=reserve seqno=", kfd.gpus[0].gpu_id,
		 late.pid);
	ok(session_file_says(SESSION_TRACE, line), "and that a new queue waits beside a reservation");
	dbg_peer_tell(&late, DBG_EXIT, 0);
	dbg_ends(late.pid, KFD_SOON);
	kfd_wait_stat(0, "active", 2 * QUEUES, KFD_SOON);
}

int main(void)
{
	int fd, r;

	if (session_missing())
		return 0;
	r = kfd_open(&kfd);
	empty_gpu();
	if (r == 0)
		r = session_peer(&peer, QUEUES, 0);
	if (r == 0)
		r = session_peer(&other, QUEUES, 0);
	fd = session_open(&kfd, 0); /* after them: a child has its parent's descriptors */
	if (!ok(r == 0 && fd >= 0, "there are a session and two processes (%d, %d)", r, fd))
		return tap_done();
	drained(fd);
	drain_is_interrupted(fd);
	one_ends_while_another_is_drained(fd);
	drained_without_its_first_thread(fd);
	wrong_ways(fd);
	is_seen(fd);
	new_queues_are_seen(fd);
	whole_gpu_beside_queues(fd);
	whole_gpu(fd);
	tap_in_child(only_an_administrator);
	close(fd);
	ok(kfd_wait_stat(0, "active", 2 * QUEUES, KFD_SOON) == 0, "when the session ends everything goes on");
	return tap_done();
}
