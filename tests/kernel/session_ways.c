// SPDX-License-Identifier: MIT
/* bed: timeout=240 memory=3G param=cus=8 */
/*
 * The ways in which a session stops: when a queue is empty, all of a GPU at once; and what else can be seen
 * of it, in sysfs, debugfs and the trace.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session.h"
#include "tap.h"

#define MS DBG_MS
#define SECOND DBG_SECOND
#define QUEUES 3
#define WORK_MS 1000
#define TRACE "/sys/kernel/tracing/"

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
	int64_t saved = kfd_stat(0, "waves_saved");

	dbg_peer_do(&peer, DBG_RUN, WORK_MS);
	ok(drain(fd, 60 * SECOND, &set) == KFD_SESSION_DONE && dbg_peer_do(&peer, DBG_WAIT, 0) == 0,
	   "queues that are drained end their work first");
	ok(session_is_stopped(fd, peer.pid, 0) && kfd_stat(0, "waves_saved") == saved,
	   "and then are stopped, with nothing to save");
	session_all(fd, peer.pid, KFD_SESSION_RUN);
	dbg_peer_do(&peer, DBG_RUN, 20 * WORK_MS);
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
	struct sigaction action = { .sa_handler = on_signal };
	struct kfd_session_set set;

	sigaction(SIGALRM, &action, NULL);
	alarm(1);
	ok(drain(fd, 60 * SECOND, &set) == -EINTR && session_state(fd, peer.pid, 0) == KFD_SESSION_ACTIVE,
	   "a signal ends the wait, and nothing is stopped");
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
	ok(set_gpu(fd, KFD_SESSION_RUN) == KFD_SESSION_DONE && dbg_peer_do(&late, DBG_WAIT, 20000) == 0 &&
		   kfd_stat(0, "active") == 2 * QUEUES + 1,
	   "all of it goes on at once");
	ok(set_gpu(fd, KFD_SESSION_STOP) == KFD_SESSION_DONE, "it is stopped once more");
	dbg_peer_tell(&late, DBG_EXIT, 0);
	dbg_ends(late.pid, 20 * SECOND);
}

static void only_an_administrator(void)
{
	if (kfd_open(&kfd) < 0 || setuid(65534) < 0)
		_exit(1);
	ok(set_gpu(session_open(&kfd, 0), KFD_SESSION_STOP) == KFD_SESSION_DENIED,
	   "who is no administrator cannot stop a whole GPU");
}

static int file_says(const char *path, const char *text)
{
	char buffer[65536];
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(buffer, 1, sizeof(buffer) - 1, f) : 0;

	buffer[n] = '\0';
	if (f)
		fclose(f);
	if (strstr(buffer, text))
		return 1;
	note("%s has no \"%s\": %.400s", path, text, buffer);
	return 0;
}

static int tell(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	int r = f ? fputs(text, f) : -1;

	return f && fclose(f) == 0 ? r : -1;
}

static void is_seen(int fd)
{
	char path[128], line[128];

	ok(tell(TRACE "events/kfd/enable", "1") >= 0, "there are trace events");
	session_one(fd, peer.pid, 1, KFD_SESSION_STOP);
	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d/queues/1/state", peer.pid);
	ok(file_says(path, "inactive stopped\n"), "sysfs says that a queue is stopped");
	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d/queues/1/priority", peer.pid);
	ok(file_says(path, "7\n"), "and its priority");
	snprintf(line, sizeof(line), "process %d class none\n", peer.pid);
	ok(file_says("/sys/kernel/debug/kfd/sched", line) &&
		   file_says("/sys/kernel/debug/kfd/sched", "queue 1 inactive reasons 0x2 stopped by "),
	   "debugfs says who did it");
	session_one(fd, peer.pid, 1, KFD_SESSION_RUN);
	tell(TRACE "events/kfd/enable", "0");
	snprintf(line, sizeof(line),
		 "kfd_queue_suspend: gpu_id=%u pid=%d queue_id=1 reason=sched seqno=", kfd.gpus[0].gpu_id,
		 peer.pid);
	ok(file_says(TRACE "trace", line), "the trace says so");
	ok(file_says(TRACE "trace", "kfd_unmap_begin: ") && file_says(TRACE "trace", "kfd_unmap_end: ") &&
		   file_says(TRACE "trace", "kfd_runlist: ") &&
		   file_says(TRACE "trace", "kfd_queue_resume: "),
	   "and what was done on the device");
}

int main(void)
{
	int fd, r;

	if (session_missing())
		return 0;
	r = kfd_open(&kfd);
	if (r == 0)
		r = session_peer(&peer, QUEUES, 0);
	if (r == 0)
		r = session_peer(&other, QUEUES, 0);
	fd = session_open(&kfd, 0); /* after them: a child has its parent's descriptors */
	if (!ok(r == 0 && fd >= 0, "there are a session and two processes (%d, %d)", r, fd))
		return tap_done();
	drained(fd);
	drain_is_interrupted(fd);
	wrong_ways(fd);
	is_seen(fd);
	whole_gpu(fd);
	tap_in_child(only_an_administrator);
	close(fd);
	ok(kfd_wait_stat(0, "active", 2 * QUEUES, 20 * SECOND) == 0,
	   "when the session ends everything goes on");
	return tap_done();
}
