// SPDX-License-Identifier: MIT
/* bed: timeout=180 memory=4G devices=4 param=cus=4 */
/*
 * One call for queues on four GPUs: each GPU whose queues change is preempted once and the others are left
 * alone, all at the same time, and who names a GPU waits for no other.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session.h"
#include "tap.h"

#define GPUS 4
#define PEERS 3
#define EACH 3 /* queues of a process on a GPU */
#define PER_PEER (GPUS * EACH)
#define WORK_MS 1000
#define SECOND DBG_SECOND
#define SAVE (2 * SECOND)
#define LONG_SAVE (6 * SECOND)
#define ENOUGH KFD_SOON
#define STOPPED (KFD_SESSION_STOPPED | KFD_SESSION_OWN)

static struct kfd kfd;
static struct kfd_queue queues[GPUS];
static struct kfd_signal *signals[GPUS];
static struct session_packets counted[GPUS];
static int taken, places[GPUS]; /* of the software's GPUs, in the driver's order */

/* The device that has a first queue now. */
static int find_place(void)
{
	uint64_t end = kfd_now() + ENOUGH;

	while (kfd_now() < end)
		for (int place = 0; place < GPUS; place++)
			if (kfd_stat(place, "mapped") == 1 && !(taken & 1 << place)) {
				taken |= 1 << place;
				return place;
			}
	return -ENODEV;
}

static int64_t stat_of(int gpu, const char *name)
{
	return kfd_stat(places[gpu], name);
}

static int begin(uint32_t i)
{
	struct kfd_mem mem;
	int r = kfd_alloc(&kfd, &kfd.gpus[i], sizeof(*signals[i]), &mem);

	signals[i] = mem.addr;
	if (r == 0)
		r = kfd_queue_create(&kfd, &kfd.gpus[i], KFD_TYPE_AQL, 7, &queues[i]);
	places[i] = r < 0 ? r : find_place();
	return places[i] < 0 ? places[i] : 0;
}

static int begin_all(void)
{
	int r = kfd_open(&kfd);

	for (uint32_t i = 0; i < GPUS && r == 0; i++)
		r = begin(i);
	return r < 0 ? r : session_open(&kfd, 0);
}

static struct kfd_session_queue on_gpu(uint32_t i, uint32_t queue_id, uint32_t want)
{
	struct kfd_session_queue queue = session_queue(0, queue_id, want);

	queue.gpu_id = kfd.gpus[i].gpu_id;
	return queue;
}

static struct session_packets packets_of(int gpu)
{
	return (struct session_packets){ stat_of(gpu, "unmap"), stat_of(gpu, "query_status"),
					 stat_of(gpu, "runlist") };
}

static void count_packets(void)
{
	for (int i = 0; i < GPUS; i++) {
		kfd_settle(places[i]);
		counted[i] = packets_of(i);
	}
}

/* Bit i: device i had so many since they were counted, and a fence for each unmap; -1: one had others. */
static int find_devices(int64_t unmap, int64_t runlist)
{
	int found = 0;

	for (int i = 0; i < GPUS && found >= 0; i++) {
		struct session_packets now = packets_of(i), had = counted[i];
		int64_t u = now.unmap - had.unmap, q = now.query - had.query, l = now.runlist - had.runlist;

		if (u == unmap && q == unmap && l == runlist) {
			found |= 1 << i;
		} else if (u || q || l) {
			note("GPU %d: %lld unmap, %lld query, %lld run list", i, (long long)u, (long long)q,
			     (long long)l);
			found = -1;
		}
	}
	return found;
}

/* These and no others. */
static int devices_with(int64_t unmap, int64_t runlist, int devices)
{
	int found;

	for (int i = 0; i < GPUS; i++)
		kfd_settle(places[i]);
	found = find_devices(unmap, runlist);
	count_packets();
	return found == devices;
}

static void one_cycle_each(int fd)
{
	struct kfd_session_queue some[] = { on_gpu(1, queues[1].id, KFD_SESSION_STOP),
					    on_gpu(3, queues[3].id, KFD_SESSION_STOP) };
	struct kfd_session_queue all = session_queue(0, KFD_SESSION_ALL_QUEUES, KFD_SESSION_STOP);
	struct kfd_session_set set;

	count_packets();
	ok(session_set(fd, some, 2, &set) == 0 && set.cycles == 2 && some[0].status == KFD_SESSION_DONE &&
		   some[1].status == KFD_SESSION_DONE && devices_with(1, 0, 0xa),
	   "queues on two of four GPUs are stopped: one preemption on each, none elsewhere");
	ok(session_set(fd, &all, 1, &set) == 0 && set.cycles == 2 && devices_with(1, 0, 0x5),
	   "then all: the other two");
	all = session_queue(0, KFD_SESSION_ALL_QUEUES, KFD_SESSION_RUN);
	ok(session_set(fd, &all, 1, &set) == 0 && set.cycles == 4 && devices_with(0, 1, 0xf),
	   "all run again: a run list for each");
}

static struct dbg_peer peers[PEERS];

/* A process with queues on every GPU, all of them at work. */
static int start_peer(struct dbg_peer *p)
{
	int r = dbg_peer_start(p);

	if (r == 0)
		r = dbg_peer_do(p, DBG_OPEN, 0);
	for (uint32_t i = 0; i < GPUS && r == 0; i++) {
		r = dbg_peer_do(p, DBG_GPU, i);
		if (r == 0)
			r = dbg_peer_do(p, DBG_CREATE, EACH);
	}
	return r < 0 ? r : dbg_peer_do(p, DBG_RUN, WORK_MS);
}

static int start_peers(void)
{
	int r = 0;

	for (int i = 0; i < PEERS && r == 0; i++)
		r = start_peer(&peers[i]);
	return r;
}

static int peers_end(void)
{
	int r = 0;

	for (int i = 0; i < PEERS && r == 0; i++)
		r = dbg_peer_do(&peers[i], DBG_WAIT, DBG_SOON_MS);
	for (int i = 0; i < PEERS; i++)
		dbg_peer_tell(&peers[i], DBG_EXIT, 0);
	for (int i = 0; i < PEERS && r == 0; i++)
		r = dbg_ends(peers[i].pid, ENOUGH);
	for (int i = 0; i < GPUS && r == 0; i++) /* the driver clears up later */
		r = kfd_wait_stat(places[i], "active", 1, ENOUGH);
	return r;
}

/* One call with an entry for each queue of the peers: how many had this status, or -1. */
static int set_each(int fd, uint32_t want, uint32_t status, uint32_t *ret_cycles)
{
	static struct kfd_session_queue entries[PEERS * PER_PEER];
	struct kfd_session_set set;
	int found = 0;

	for (uint32_t i = 0; i < PEERS * PER_PEER; i++)
		entries[i] = session_queue(peers[i / PER_PEER].pid, i % PER_PEER, want);
	if (session_set(fd, entries, PEERS * PER_PEER, &set) < 0)
		return -1;
	for (uint32_t i = 0; i < PEERS * PER_PEER; i++)
		found += entries[i].status == status;
	*ret_cycles = set.cycles;
	return found;
}

/* One call for whole processes; whether each did it. */
static int set_processes(int fd, const uint32_t *wants)
{
	struct kfd_session_queue entries[PEERS];
	int well = 0;

	for (int i = 0; i < PEERS; i++)
		entries[i] = session_queue(peers[i].pid, KFD_SESSION_ALL_QUEUES, wants[i]);
	if (session_set(fd, entries, PEERS, NULL) < 0)
		return 0;
	for (int i = 0; i < PEERS; i++)
		well += entries[i].status == KFD_SESSION_DONE || entries[i].status == KFD_SESSION_NO_CHANGE;
	return well == PEERS;
}

/* A queue of each process on each of two GPUs. */
static int set_some(int fd, uint32_t want)
{
	struct kfd_session_queue entries[2 * PEERS];
	int done = 0;

	for (uint32_t i = 0; i < 2 * PEERS; i++)
		entries[i] = session_queue(peers[i / 2].pid, (i % 2 ? 3 : 1) * EACH, want);
	if (session_set(fd, entries, 2 * PEERS, NULL) < 0)
		return 0;
	for (uint32_t i = 0; i < 2 * PEERS; i++)
		done += entries[i].status == KFD_SESSION_DONE;
	return done == 2 * PEERS;
}

static void same_again_costs_nothing(int fd, uint32_t want)
{
	struct kfd_session_queue all = session_queue(peers[0].pid, KFD_SESSION_ALL_QUEUES, 0);
	struct kfd_session_args look = { .op = KFD_SESSION_QUERY,
					 .set = { (uintptr_t)&all, 1, sizeof(all), 0, 0, 0, 0, 0 } };
	uint32_t cycles = 1;

	ok(set_each(fd, want, KFD_SESSION_NO_CHANGE, &cycles) == PEERS * PER_PEER && cycles == 0 &&
		   session_call(fd, &look) == 0 && devices_with(1, 0, 0),
	   "the same once more, or to ask, costs no packet");
}

static void many_queues_of_processes(int fd)
{
	const uint32_t two[] = { KFD_SESSION_STOP, KFD_SESSION_STOP, KFD_SESSION_RUN },
		       other_two[] = { KFD_SESSION_RUN, KFD_SESSION_STOP, KFD_SESSION_STOP };
	uint32_t cycles = 0;
	int r = start_peers();

	if (!ok(r == 0, "three processes work on three queues each on each of four GPUs (%d)", r))
		return;
	session_all(fd, 0, KFD_SESSION_RUN);
	count_packets();
	ok(set_each(fd, KFD_SESSION_STOP, KFD_SESSION_DONE, &cycles) == PEERS * PER_PEER && cycles == GPUS &&
		   devices_with(1, 1, 0xf),
	   "all %d are stopped by one call: one unmap, one fence and one run list on each GPU",
	   PEERS * PER_PEER);
	same_again_costs_nothing(fd, KFD_SESSION_STOP);
	ok(session_all(fd, 0, KFD_SESSION_STOP) == KFD_SESSION_DONE && devices_with(1, 0, 0xf),
	   "with the last queue of a GPU there is no run list");
	ok(set_each(fd, KFD_SESSION_RUN, KFD_SESSION_DONE, &cycles) == PEERS * PER_PEER && cycles == GPUS &&
		   devices_with(0, 1, 0xf),
	   "all run again: one run list for each GPU, and no fence");
	same_again_costs_nothing(fd, KFD_SESSION_RUN);
	ok(set_some(fd, KFD_SESSION_STOP) && devices_with(1, 1, 0xa) && set_some(fd, KFD_SESSION_RUN) &&
		   devices_with(1, 1, 0xa),
	   "queues of all three on two of the GPUs: the others have no packet");
	ok(set_processes(fd, two) && devices_with(1, 1, 0xf) && set_processes(fd, other_two) &&
		   devices_with(1, 1, 0xf),
	   "one process comes back as another one goes: one of each for both");
	session_all(fd, 0, KFD_SESSION_RUN);
	ok(set_each(fd, KFD_SESSION_RUN, KFD_SESSION_DONE, &cycles) >= 0 && peers_end() == 0,
	   "all of their work ends, and so do they");
}

static void names_of_gpus(int fd)
{
	struct kfd_session_queue one = on_gpu(2, KFD_SESSION_ALL_QUEUES, KFD_SESSION_STOP),
				 wrong = on_gpu(0, queues[1].id, KFD_SESSION_STOP);

	count_packets();
	ok(session_set(fd, &wrong, 1, NULL) == 0 && wrong.status == KFD_SESSION_NOT_FOUND &&
		   devices_with(1, 0, 0),
	   "a queue is not found on a GPU that is not its own");
	ok(session_set(fd, &one, 1, NULL) == 0 && one.status == KFD_SESSION_DONE && devices_with(1, 0, 0x4) &&
		   session_state(fd, 0, queues[2].id) == STOPPED &&
		   session_state(fd, 0, queues[1].id) == KFD_SESSION_ACTIVE,
	   "all queues on one GPU are those there");
	ok(session_all(fd, 0, KFD_SESSION_RUN) == KFD_SESSION_DONE, "and run again with the others");
}

static void work_everywhere(uint64_t ns)
{
	for (int i = 0; i < GPUS; i++) {
		int64_t begun = stat_of(i, "dispatches");

		signals[i]->value = 1;
		kfd_dispatch(&queues[i], 4, ns, signals[i]);
		kfd_wait_stat(places[i], "dispatches", begun + 1, ENOUGH);
	}
}

static int work_ends(void)
{
	int r = 0;

	for (int i = 0; i < GPUS && r == 0; i++)
		r = kfd_wait(signals[i], ENOUGH);
	return r;
}

static void slow_saves(int gpu, uint64_t ns)
{
	char words[64];

	snprintf(words, sizeof(words), "slow-save %llu", (unsigned long long)ns);
	kfd_fault(places[gpu], ns ? words : "none");
}

static void side_by_side(int fd)
{
	uint64_t took;

	work_everywhere(20 * SECOND);
	for (int i = 0; i < GPUS; i++)
		slow_saves(i, SAVE);
	took = kfd_gpu_now(0);
	ok(session_all(fd, 0, KFD_SESSION_STOP) == KFD_SESSION_DONE,
	   "four GPUs that each save for two seconds");
	took = kfd_gpu_now(0) - took;
	ok(took >= SAVE && took < (GPUS - 1) * SAVE, "do so at the same time: %llu ms",
	   (unsigned long long)(took / DBG_MS));
	for (int i = 0; i < GPUS; i++)
		slow_saves(i, 0);
}

static volatile int has_returned;

static void *stop_the_last(void *descriptor)
{
	struct kfd_session_queue queue = on_gpu(GPUS - 1, KFD_SESSION_ALL_QUEUES, KFD_SESSION_STOP);

	session_set(*(int *)descriptor, &queue, 1, NULL);
	has_returned = 1;
	return NULL;
}

static void none_waits_for_another(int fd)
{
	struct kfd_session_queue queue = on_gpu(0, queues[0].id, KFD_SESSION_STOP);
	int other = session_open(&kfd, 0), too_late;
	pthread_t thread;

	session_all(fd, 0, KFD_SESSION_RUN);
	kfd_wait_stat(places[GPUS - 1], "mapped", 1, ENOUGH);
	slow_saves(GPUS - 1, LONG_SAVE);
	pthread_create(&thread, NULL, stop_the_last, &other);
	kfd_sleep(200 * DBG_MS);
	ok(session_set(fd, &queue, 1, NULL) == 0 && queue.status == KFD_SESSION_DONE,
	   "while one GPU takes long to save, a queue on another is stopped");
	too_late = has_returned;
	pthread_join(thread, NULL);
	slow_saves(GPUS - 1, 0);
	ok(!too_late, "and the call returns before the first");
	close(other);
}

static pthread_barrier_t both;

struct sayer {
	int session, error;
};

static void *say_what_it_is(void *sayer)
{
	struct sayer *s = sayer;

	pthread_barrier_wait(&both);
	s->error = session_class(s->session, 0, KFD_SESSION_CLASS_OFFLINE);
	return NULL;
}

/* At the same time: one of them is heard, on all GPUs. */
static int two_say_what_it_is(void)
{
	struct sayer sayers[2];
	pthread_t threads[2];
	int well;

	for (int i = 0; i < 2; i++) {
		sayers[i].session = session_open(&kfd, 0);
		pthread_create(&threads[i], NULL, say_what_it_is, &sayers[i]);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	well = (sayers[0].error == 0 && sayers[1].error == -EBUSY) ||
	       (sayers[1].error == 0 && sayers[0].error == -EBUSY);
	for (int i = 0; i < 2; i++)
		close(sayers[i].session);
	return well;
}

static void one_class(void)
{
	int well = 0;

	pthread_barrier_init(&both, NULL, 2);
	for (int i = 0; i < 100; i++)
		well += two_say_what_it_is();
	ok(well == 100,
	   "of two sessions that say at the same time what a process is one is heard (%d of 100)", well);
}

int main(void)
{
	int fd, well = 0;

	if (session_missing())
		return 0;
	fd = begin_all();
	if (!ok(fd >= 0 && kfd.ngpus == GPUS, "a process has a queue on each of four GPUs (%d)", fd))
		return tap_done();
	one_cycle_each(fd);
	many_queues_of_processes(fd);
	names_of_gpus(fd);
	side_by_side(fd);
	none_waits_for_another(fd);
	one_class();
	session_all(fd, 0, KFD_SESSION_STOP);
	close(fd);
	ok(work_ends() == 0, "when the session is closed, the work of all ends");
	for (int i = 0; i < GPUS; i++)
		well += stat_of(i, "waves_saved") == stat_of(i, "waves_restored") &&
			stat_of(i, "waves_saved") > 0 && stat_of(i, "bad_restores") == 0;
	ok(well == GPUS, "no wave was lost on any");
	return tap_done();
}
