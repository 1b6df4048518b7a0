// SPDX-License-Identifier: MIT
/*
 * A process that debugs itself: what each call of the debugger's interface answers, what
 * it costs the device, and what it does to the queues.
 *
 * bed: timeout=180 xccs=2 param=cus=4 param=drain_fix=1
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "dbg.h"
#include "tap.h"

#define NO_FD 999
#define NO_QUEUE 99
#define LENGTH (1000 * DBG_MS) /* of work that is to be suspended meanwhile */

static struct dbg_client me;
static struct dbg_peer other; /* busy all the time, and none of this is about it */
static int wake[2];

static int suspend(uint32_t *ids, uint32_t n)
{
	return dbg_suspend(&me.kfd, getpid(), ids, n, KFD_DBG_DEFAULT_GRACE, 0);
}

static int resume(uint32_t *ids, uint32_t n)
{
	return dbg_resume(&me.kfd, getpid(), ids, n);
}

static int snapshot(uint64_t clear, struct kfd_dbg_queue *queues, uint32_t n)
{
	return dbg_snapshot(&me.kfd, getpid(), clear, queues, n);
}

static int enable(int fd, uint64_t exceptions)
{
	struct kfd_runtime_info info = { 0 };
	int r = dbg_enable(&me.kfd, getpid(), fd, exceptions, &info);

	return r == 0 && info.state != KFD_RUNTIME_STATE_ENABLED ? -EPROTO : r;
}

/* As a debugger does it: nothing is new any more. */
static int know_all_queues(void)
{
	struct kfd_dbg_queue queues[DBG_QUEUES];

	return snapshot(KFD_EC_QUEUE_NEW, queues, DBG_QUEUES);
}

static uint32_t *ids_of(uint32_t first, uint32_t n)
{
	static uint32_t ids[DBG_QUEUES];

	for (uint32_t i = 0; i < n; i++)
		ids[i] = me.queues[first + i].id;
	return ids;
}

/* Returns when the device has begun. */
static void run_all(uint64_t ns)
{
	int64_t begun = kfd_stat(0, "dispatches");

	for (uint32_t i = 0; i < me.nqueues; i++)
		dbg_client_run(&me, i, ns);
	kfd_wait_stat(0, "dispatches", begun + me.nqueues, KFD_SOON);
}

static void nothing_goes_before_enable(void)
{
	uint32_t id = 0;
	uint64_t raised;
	struct kfd_dbg_queue queue;

	ok(dbg_disable(&me.kfd, getpid()) == -EINVAL, "DISABLE before ENABLE is refused");
	ok(suspend(&id, 1) == -EINVAL && resume(&id, 1) == -EINVAL, "SUSPEND and RESUME before it too");
	ok(snapshot(0, &queue, 1) == -EINVAL, "and a snapshot");
	ok(dbg_query_event(&me.kfd, getpid(), 0, &raised) == -EINVAL, "and a look at events");
}

static void queues_are_not_touched_before_runtime_enable(void)
{
	struct kfd_runtime_info info = { .state = NO_QUEUE };
	uint32_t id = 0;
	struct kfd_dbg_queue queue;

	ok(dbg_enable(&me.kfd, getpid(), wake[1], 0, &info) == 0, "ENABLE goes without a runtime");
	ok(info.state == KFD_RUNTIME_STATE_DISABLED, "and says that there is none");
	ok(suspend(&id, 1) == -EPERM && resume(&id, 1) == -EPERM, "SUSPEND and RESUME do not");
	ok(snapshot(0, &queue, 1) == 0, "a snapshot does, and is empty");
	ok(dbg_disable(&me.kfd, getpid()) == 0, "DISABLE");
}

static void runtime_enable_goes_before_the_first_queue(void)
{
	ok(dbg_client_add(&me, 1) == 0, "a queue is created");
	ok(dbg_runtime(&me.kfd, KFD_RUNTIME_ENABLE) == -EEXIST,
	   "RUNTIME_ENABLE after the first queue is refused");
	ok(dbg_client_end(&me, 0) == 0, "the queue is destroyed");
	ok(dbg_runtime(&me.kfd, KFD_RUNTIME_ENABLE) == 0, "RUNTIME_ENABLE goes without queues");
	ok(dbg_runtime(&me.kfd, KFD_RUNTIME_ENABLE) == -EBUSY, "a second one is refused");
}

static void enable_is_particular(void)
{
	struct kfd_runtime_info info = { 0 }, *nowhere = (void *)8;

	ok(dbg_enable(&me.kfd, getpid(), NO_FD, 0, &info) == -EBADF, "ENABLE without a file is refused");
	ok(dbg_enable(&me.kfd, getpid(), wake[1], 0, nowhere) == -EFAULT,
	   "and with a bad place for its answer");
	ok(dbg_enable(&me.kfd, 0x3ffffe, wake[1], 0, &info) == -ESRCH, "and of no process");
	ok(dbg_enable(&me.kfd, 1, wake[1], 0, &info) == -ESRCH, "and of a process without the driver");
	ok(enable(wake[1], 0) == 0, "ENABLE with a pipe, and the runtime is there");
	ok(enable(wake[1], 0) == -EALREADY, "a second one is refused");
}

/* What the file is told when a queue is created; the queue goes again. */
static ssize_t bytes_for_a_new_queue(int write_to, int read_from, char *buffer)
{
	ssize_t n;

	ok(enable(write_to, KFD_EC_QUEUE_NEW) == 0, "ENABLE with an ear for new queues");
	ok(dbg_client_add(&me, 1) == 0, "a queue is created");
	n = read(read_from, buffer, 8);
	ok(dbg_client_end(&me, 0) == 0, "and destroyed");
	return n;
}

static void a_pipe_is_written_to_and_an_eventfd_is_not(void)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	char buffer[8];

	ok(dbg_disable(&me.kfd, getpid()) == 0, "DISABLE");
	ok(bytes_for_a_new_queue(fd, fd, buffer) < 0, "an eventfd is accepted and never signals");
	ok(dbg_disable(&me.kfd, getpid()) == 0, "DISABLE");
	ok(bytes_for_a_new_queue(wake[1], wake[0], buffer) == 1 && buffer[0] == '.', "a pipe gets a dot");
	close(fd);
}

static void events_are_asked_for_until_there_are_none(void)
{
	uint64_t raised = 0;

	ok(dbg_client_add(&me, 1) == 0, "a queue is created");
	ok(dbg_query_event(&me.kfd, getpid(), KFD_EC_QUEUE_NEW, &raised) == 0 && (raised & KFD_EC_QUEUE_NEW),
	   "there is an event, and it is that");
	while (dbg_query_event(&me.kfd, getpid(), ~0ull, &raised) == 0)
		;
	ok(dbg_query_event(&me.kfd, getpid(), 0, &raised) == -EAGAIN, "there are no more");
	ok(suspend(ids_of(0, 1), 1) == 1, "whose newness was cleared by that can be suspended");
	ok(resume(ids_of(0, 1), 1) == 1 && dbg_client_end(&me, 0) == 0, "and resumed, and destroyed");
}

static void a_new_queue_is_not_suspended(void)
{
	uint32_t ids[2] = { me.queues[0].id, me.queues[1].id };
	int64_t unmaps = kfd_stat(0, "unmap");

	ok(suspend(ids, 2) == 0, "SUSPEND of new queues suspends none");
	ok(ids[0] == (me.queues[0].id | KFD_DBG_ID_INVALID) &&
		   ids[1] == (me.queues[1].id | KFD_DBG_ID_INVALID),
	   "and says so of each");
	ok(dbg_suspend(&me.kfd, getpid(), ids, 2, KFD_DBG_DEFAULT_GRACE, KFD_EC_QUEUE_NEW) == 0 &&
		   suspend(ids, 2) == 0,
	   "its own exception mask does not help");
	ok(kfd_stat(0, "unmap") == unmaps, "the device saw nothing of it");
}

static int is_told_of(const struct kfd_dbg_queue *e, const struct kfd_queue *q)
{
	return e->ring == (uintptr_t)q->ring.addr && e->ring_size == q->ring_size &&
	       e->wptr == (uintptr_t)q->wptr && e->rptr == (uintptr_t)q->rptr &&
	       e->cwsr == (uintptr_t)q->cwsr.addr && e->cwsr_size == q->gpu->cwsr_size &&
	       e->queue_id == q->id && e->gpu_id == q->gpu->gpu_id && e->type == KFD_TYPE_AQL;
}

static const struct kfd_dbg_queue *entry_of(const struct kfd_dbg_queue *entries, uint32_t n, uint32_t id)
{
	for (uint32_t i = 0; i < n; i++)
		if (entries[i].queue_id == id)
			return &entries[i];
	return NULL;
}

static uint32_t told_of(const struct kfd_dbg_queue *entries, uint32_t n)
{
	uint32_t good = 0;

	for (uint32_t i = 0; i < me.nqueues; i++) {
		const struct kfd_dbg_queue *e = entry_of(entries, n, me.queues[i].id);

		good += e && is_told_of(e, &me.queues[i]);
	}
	return good;
}

static uint32_t new_ones(const struct kfd_dbg_queue *entries, uint32_t n)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++)
		found += (entries[i].exceptions & KFD_EC_QUEUE_NEW) != 0;
	return found;
}

static void a_snapshot_shows_queues_and_ends_their_newness(void)
{
	struct kfd_dbg_queue entries[DBG_QUEUES] = { 0 };
	int64_t unmaps = kfd_stat(0, "unmap");

	ok(snapshot(0, NULL, DBG_QUEUES) == -EINVAL, "a snapshot with entries of no size is refused");
	ok(snapshot(0, entries, 2) == (int)me.nqueues && entries[1].ring && !entries[2].ring,
	   "with room for two it gives two, and says how many there are");
	ok(snapshot(KFD_EC_QUEUE_NEW, entries, DBG_QUEUES) == (int)me.nqueues,
	   "with room enough it gives all");
	ok(told_of(entries, me.nqueues) == me.nqueues,
	   "ring, pointers, save area, ids, type and sizes are right");
	ok(new_ones(entries, me.nqueues) == me.nqueues, "they were new");
	ok(snapshot(0, entries, DBG_QUEUES) == (int)me.nqueues && new_ones(entries, me.nqueues) == 0,
	   "and are no more");
	ok(kfd_stat(0, "unmap") == unmaps, "the device saw nothing of it");
}

static void ids_that_name_nothing_are_marked(void)
{
	uint32_t ids[3] = { me.queues[0].id, NO_QUEUE, me.queues[1].id };

	ok(suspend(ids, 3) == 2, "SUSPEND of two queues and a number suspends two");
	ok(ids[0] == me.queues[0].id && ids[1] == (NO_QUEUE | KFD_DBG_ID_INVALID) &&
		   ids[2] == me.queues[1].id,
	   "and marks the number");
	ok(resume(ids, 3) == 2 && ids[1] == (NO_QUEUE | KFD_DBG_ID_INVALID),
	   "RESUME takes the same array as it is");
	ids[0] |= KFD_DBG_ID_ERROR;
	ok(suspend(ids, 1) == 0, "but an id with the error bit left in it names nothing");
}

static void the_array_has_a_limit(void)
{
	static uint32_t ids[KFD_DBG_MOST_IDS + 1];

	memset(ids, 0x0f, sizeof(ids));
	ids[KFD_DBG_MOST_IDS - 1] = me.queues[0].id;
	ok(suspend(ids, KFD_DBG_MOST_IDS + 1) == -EINVAL, "more than %d ids are refused", KFD_DBG_MOST_IDS);
	ok(suspend(ids, KFD_DBG_MOST_IDS) == 1, "so many are not, and the last one counts");
	ok(suspend(NULL, 1) == -EINVAL, "SUSPEND of no array is refused");
	ok(suspend((void *)8, 1) == -EFAULT, "and of a bad one");
	ok(resume(ids, KFD_DBG_MOST_IDS + 1) == -EINVAL, "RESUME has the same limit");
	ok(resume(NULL, 1) == (int)me.nqueues, "RESUME of no array resumes everything");
}

/* Each XCC's part of the save area begins with where its waves lie. */
static uint32_t good_headers(const struct kfd_queue *q)
{
	uint32_t good = 0;

	for (uint32_t i = 0; i < q->gpu->num_xcc; i++) {
		const struct kfd_save_header *h =
			(const void *)((const char *)q->cwsr.addr + (size_t)i * q->gpu->cwsr_size);

		good += h->control_stack_offset + h->control_stack_size == q->gpu->ctl_stack_size &&
			h->wave_state_offset - h->wave_state_size == q->gpu->ctl_stack_size &&
			h->control_stack_size > 0 && h->wave_state_size > 0 &&
			h->wave_state_offset <= q->gpu->cwsr_size;
	}
	return good;
}

/* The waves that the control stacks hold, as the software GPU writes them: a word of its own, and their
 * number. */
static uint32_t waves_on_the_control_stacks(const struct kfd_queue *q)
{
	uint32_t waves = 0;

	if (good_headers(q) != q->gpu->num_xcc)
		return 0;
	for (uint32_t i = 0; i < q->gpu->num_xcc; i++) {
		const char *part = (const char *)q->cwsr.addr + (size_t)i * q->gpu->cwsr_size;
		const struct kfd_save_header *h = (const void *)part;

		for (uint32_t at = 0; at < h->control_stack_size; at += 8)
			waves += *(const uint32_t *)(part + h->control_stack_offset + at + 4);
	}
	return waves;
}

static void suspended_queues_stand_still_and_go_on_where_they_were(void)
{
	int64_t saves, restores = kfd_stat(0, "restores"), bad = kfd_stat(0, "bad_restores");
	int64_t pasid = kfd_proc_value(getpid(), "pasid"), had = kfd_busy(0, pasid);

	run_all(LENGTH);
	saves = kfd_stat(0, "saves");
	memset(me.queues[0].cwsr.addr, 0xff, sizeof(struct kfd_save_header));
	ok(suspend(ids_of(0, me.nqueues), me.nqueues) == (int)me.nqueues, "SUSPEND of all queues at work");
	ok(kfd_stat(0, "saves") - saves == me.nqueues, "their waves were saved");
	ok(good_headers(&me.queues[0]) == me.gpu->num_xcc, "each XCC's save area says where they lie");
	ok(waves_on_the_control_stacks(&me.queues[0]) == 4 * DBG_WORKGROUPS, "and has them all");
	ok(dbg_client_stands_still(&me, 2 * LENGTH), "the queues stand still");
	ok(resume(ids_of(0, me.nqueues), me.nqueues) == (int)me.nqueues, "RESUME");
	for (uint32_t i = 0; i < me.nqueues; i++)
		dbg_client_wait(&me, i, KFD_SOON);
	had = kfd_busy(0, pasid) - had;
	ok(had == (int64_t)(me.nqueues * 4 * DBG_WORKGROUPS * LENGTH),
	   "they go on where they were: %lld wave-ns in all", (long long)had);
	ok(kfd_stat(0, "restores") - restores == me.nqueues && kfd_stat(0, "bad_restores") == bad,
	   "their waves were restored");
}

static void twice_is_as_good_as_once(void)
{
	int64_t unmaps;

	run_all(LENGTH);
	ok(suspend(ids_of(0, 1), 1) == 1, "SUSPEND");
	unmaps = kfd_stat(0, "unmap");
	ok(suspend(ids_of(0, 1), 1) == 1, "SUSPEND of a suspended queue counts it again");
	ok(kfd_stat(0, "unmap") == unmaps + 1, "and preempts the device for it again");
	ok(dbg_client_wait(&me, 0, 2 * LENGTH) == -ETIMEDOUT, "it stands still");
	ok(resume(ids_of(0, 1), 1) == 1, "one RESUME is enough");
	ok(dbg_client_wait(&me, 0, KFD_SOON) == 0, "it goes on");
	ok(resume(ids_of(0, 1), 1) == 1, "RESUME of a queue that runs counts it again");
}

static void a_percentage_does_not_start_a_suspended_queue(void)
{
	run_all(LENGTH);
	ok(suspend(ids_of(0, 1), 1) == 1, "SUSPEND");
	ok(kfd_queue_update(&me.queues[0], 100, 7) == 0, "UPDATE_QUEUE to 100 percent");
	ok(dbg_client_wait(&me, 0, 2 * LENGTH) == -ETIMEDOUT, "does not start it");
	ok(kfd_queue_update(&me.queues[0], 0, 7) == 0 && resume(ids_of(0, 1), 1) == 1,
	   "0 percent, and RESUME");
	ok(dbg_client_wait(&me, 0, 2 * LENGTH) == -ETIMEDOUT, "does not start it either");
	ok(kfd_queue_update(&me.queues[0], 100, 7) == 0, "100 percent");
	ok(dbg_client_wait(&me, 0, KFD_SOON) == 0, "does");
}

static void a_queue_created_meanwhile_runs(void)
{
	uint32_t n = me.nqueues;

	run_all(LENGTH);
	ok(suspend(ids_of(0, n), n) == (int)n, "all queues are suspended");
	ok(dbg_client_add(&me, 1) == 0, "a queue is created meanwhile");
	dbg_client_run(&me, n, 50 * DBG_MS);
	ok(dbg_client_wait(&me, n, KFD_SOON) == 0, "it runs");
	ok(dbg_client_stands_still(&me, 2 * LENGTH), "the others stand still");
	ok(kfd_queue_destroy(&me.queues[--me.nqueues]) == 0, "it can be destroyed meanwhile");
	ok(resume(ids_of(0, n), n) == (int)n && dbg_client_wait(&me, 0, KFD_SOON) == 0, "the others go on");
}

static int64_t settled(const char *name)
{
	kfd_settle(0);
	return kfd_stat(0, name);
}

static int64_t writes_of_a_suspend(uint32_t grace)
{
	int64_t before = settled("write_data");
	uint32_t id = me.queues[0].id;

	if (dbg_suspend(&me.kfd, getpid(), &id, 1, grace, 0) != 1 || resume(&id, 1) != 1)
		return -1;
	return settled("write_data") - before;
}

static void a_grace_period_costs_two_packets(void)
{
	ok(writes_of_a_suspend(KFD_DBG_DEFAULT_GRACE) == 0, "the default grace period costs no packet");
	ok(writes_of_a_suspend(5) == 2, "a grace period of 5 costs two WRITE_DATA packets");
	ok(writes_of_a_suspend(0) == 2, "and so does 0");
}

static const char *const packets[] = { "unmap", "query_status", "runlist", "cycles" };

static void count_packets(int64_t *counts)
{
	for (int i = 0; i < 4; i++)
		counts[i] = settled(packets[i]);
}

static int packets_since(const int64_t *counts, int unmaps, int queries, int runlists, int cycles)
{
	return settled("unmap") - counts[0] == unmaps && kfd_stat(0, "query_status") - counts[1] == queries &&
	       kfd_stat(0, "runlist") - counts[2] == runlists && kfd_stat(0, "cycles") - counts[3] == cycles;
}

/* The other process has two queues at work. */
static void one_call_is_one_cycle_and_takes_every_queue_of_the_device(void)
{
	int64_t counts[4], saves, restores;

	for (uint32_t n = 1; n <= me.nqueues; n++) {
		run_all(LENGTH);
		count_packets(counts);
		saves = kfd_stat(0, "saves");
		restores = kfd_stat(0, "restores");
		ok(suspend(ids_of(0, n), n) == (int)n, "SUSPEND of %u queues at work of %u", n, me.nqueues);
		ok(packets_since(counts, 1, 1, 1, 1), "is one unmap, one wait, one run list");
		ok(kfd_stat(0, "saves") - saves == me.nqueues + 2,
		   "saves the waves of every queue of every process");
		ok(kfd_stat(0, "restores") - restores == me.nqueues + 2 - n,
		   "and restores those of all but the %u", n);
		count_packets(counts);
		ok(resume(ids_of(0, n), n) == (int)n, "RESUME");
		ok(packets_since(counts, 1, 1, 1, 1), "is such a cycle, too");
		for (uint32_t i = 0; i < me.nqueues; i++)
			dbg_client_wait(&me, i, KFD_SOON);
	}
}

static void an_empty_device_takes_half_a_cycle(void)
{
	int64_t counts[4];

	count_packets(counts);
	ok(suspend(ids_of(0, me.nqueues), me.nqueues) == (int)me.nqueues, "SUSPEND of all there is");
	ok(packets_since(counts, 1, 1, 0, 1), "needs no run list");
	count_packets(counts);
	ok(resume(ids_of(0, me.nqueues), me.nqueues) == (int)me.nqueues, "RESUME of all");
	ok(packets_since(counts, 0, 0, 1, 0), "needs a run list alone");
}

struct destroy {
	pthread_t thread;
	uint32_t id;
	volatile int is_done, result;
};

static void *destroy_thread(void *arg)
{
	struct destroy *d = arg;
	struct kfd_destroy_queue_args args = { .queue_id = d->id };

	d->result = ioctl(me.kfd.fd, KFD_IOC_DESTROY_QUEUE, &args) < 0 ? -errno : 0;
	d->is_done = 1;
	return NULL;
}

static void destroy_begin(struct destroy *d, uint32_t id)
{
	*d = (struct destroy){ .id = id };
	pthread_create(&d->thread, NULL, destroy_thread, d);
}

static int destroy_ends(struct destroy *d, uint64_t timeout_ns)
{
	uint64_t end = kfd_now() + timeout_ns;

	while (!d->is_done) {
		if (kfd_now() > end)
			return 0;
		kfd_sleep(DBG_MS);
	}
	pthread_join(d->thread, NULL);
	return 1;
}

static void do_nothing(int number)
{
	(void)number;
}

/* The stock driver is known to let go of them first, and then to try. */
static void a_queue_that_was_not_destroyed_keeps_its_buffers(const struct kfd_queue *q)
{
	int r = kfd_map(&me.kfd, me.gpu, KFD_IOC_UNMAP, &q->ring);

	if (kfd_is_patched())
		ok(r == -EBUSY, "its ring cannot be unmapped (%d)", r);
	else
		ok(r == 0 && kfd_map(&me.kfd, me.gpu, KFD_IOC_MAP, &q->ring) == 0,
		   "its ring can be unmapped on the stock driver, as is known (%d); it is mapped again", r);
}

static void a_suspended_queue_is_not_destroyed(void)
{
	struct sigaction action = { .sa_handler = do_nothing };
	struct kfd_queue *q = &me.queues[me.nqueues - 1];
	uint32_t id = q->id;
	struct destroy first, second;

	sigaction(SIGUSR1, &action, NULL);
	ok(suspend(&id, 1) == 1, "SUSPEND");
	destroy_begin(&first, q->id);
	ok(!destroy_ends(&first, 500 * DBG_MS), "DESTROY_QUEUE of a suspended queue blocks");
	ok(dbg_sits_in(getpid(), "destroy_queue_cpsch", KFD_SOON), "in the driver");
	destroy_begin(&second, q->id);
	ok(destroy_ends(&second, KFD_SOON) && second.result == -EBUSY, "a second one is refused");
	pthread_kill(first.thread, SIGUSR1);
	ok(destroy_ends(&first, KFD_SOON) && first.result == -EINTR, "a signal ends it with EINTR");
	ok(know_all_queues() == (int)me.nqueues, "the queue is still there");
	a_queue_that_was_not_destroyed_keeps_its_buffers(q);
	destroy_begin(&first, q->id);
	ok(!destroy_ends(&first, 500 * DBG_MS), "DESTROY_QUEUE again");
	ok(resume(&id, 1) == 1, "RESUME");
	ok(destroy_ends(&first, KFD_SOON) && first.result == 0, "lets it go on, and the queue is gone");
	me.nqueues--;
	ok(know_all_queues() == (int)me.nqueues, "the snapshot says so");
}

static void disable_resumes_everything(void)
{
	run_all(LENGTH);
	ok(suspend(ids_of(0, me.nqueues), me.nqueues) == (int)me.nqueues, "SUSPEND of all queues at work");
	ok(dbg_client_stands_still(&me, 2 * LENGTH), "they stand still");
	ok(dbg_disable(&me.kfd, getpid()) == 0, "DISABLE");
	ok(dbg_client_end(&me, KFD_SOON) == 0, "they all go on, end, and can be destroyed");
	ok(dbg_disable(&me.kfd, getpid()) == -EINVAL, "a second DISABLE is refused");
}

static void exceptions_that_trapped_before_are_told(void)
{
	uint32_t all = KFD_DBG_MASK_FP_INVALID | KFD_DBG_MASK_FP_DIVIDE_BY_ZERO, before = ~0u;

	int r = dbg_set_traps(&me.kfd, getpid(), KFD_DBG_MASK_FP_INVALID, all, &before);

	ok(r == 0 && before == 0, "one exception is to trap; before, none did (%d, %#x)", r, before);
	r = dbg_set_traps(&me.kfd, getpid(), all, KFD_DBG_MASK_FP_DIVIDE_BY_ZERO, &before);
	ok(r == 0 && before == KFD_DBG_MASK_FP_INVALID, "another, too; before, the one did (%d, %#x)", r,
	   before);
	r = dbg_set_traps(&me.kfd, getpid(), 0, all, &before);
	ok(r == 0 && before == all, "none; before, both did (%d, %#x)", r, before);
}

static int start(void)
{
	/* The other one first: it must not inherit our driver. */
	if (!ok(dbg_peer_start(&other) == 0 && dbg_peer_do(&other, DBG_OPEN, 0) == 0,
		"another process opens the driver"))
		return -ENODEV;
	if (!ok(dbg_client_open(&me) == 0 && pipe2(wake, O_NONBLOCK | O_CLOEXEC) == 0, "so do we"))
		return -ENODEV;
	return 0;
}

static void what_is_refused(void)
{
	nothing_goes_before_enable();
	queues_are_not_touched_before_runtime_enable();
	runtime_enable_goes_before_the_first_queue();
	nothing_goes_before_enable();
	enable_is_particular();
	a_pipe_is_written_to_and_an_eventfd_is_not();
	events_are_asked_for_until_there_are_none();
}

static void what_it_does_to_queues(void)
{
	a_new_queue_is_not_suspended();
	a_snapshot_shows_queues_and_ends_their_newness();
	an_empty_device_takes_half_a_cycle();
	ids_that_name_nothing_are_marked();
	the_array_has_a_limit();
	suspended_queues_stand_still_and_go_on_where_they_were();
	twice_is_as_good_as_once();
	a_percentage_does_not_start_a_suspended_queue();
	a_queue_created_meanwhile_runs();
	a_grace_period_costs_two_packets();
	exceptions_that_trapped_before_are_told();
}

/* Begun, or run_all() would take their dispatches for two of its own. */
static void the_other_process_works(void)
{
	int64_t begun = kfd_stat(0, "dispatches");

	ok(dbg_peer_do(&other, DBG_CREATE, 2) == 0 && dbg_peer_do(&other, DBG_RUN, 60000) == 0 &&
		   kfd_wait_stat(0, "dispatches", begun + 2, KFD_SOON) == 0,
	   "the other process has two queues at work");
}

int main(void)
{
	if (start() < 0)
		return tap_done();
	what_is_refused();
	ok(dbg_client_add(&me, 4) == 0, "four queues are created");
	what_it_does_to_queues();
	the_other_process_works();
	one_call_is_one_cycle_and_takes_every_queue_of_the_device();
	a_suspended_queue_is_not_destroyed();
	disable_resumes_everything();
	dbg_peer_tell(&other, DBG_EXIT, 0);
	ok(dbg_ends(other.pid, KFD_SOON) == 0, "the other process ends, its queues at work");
	ok(kfd_stat(0, "bad_addresses") == 0 && kfd_stat(0, "bad_restores") == 0, "nothing was mixed up");
	kfd_close(&me.kfd);
	return tap_done();
}
