// SPDX-License-Identifier: MIT
/*
 * ROCr's door: HSA_TOOLS_LIB.  Every queue of the program is made as one whose packets pass through our
 * handler, in the thread that rings its doorbell.  What cannot be had is not had: the program's queue is the
 * runtime's own then.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/old_glibc.h"
#include "level/aql.h"
#include "level/doors.h"
#include "level/internal.h"
#include "level/ring.h"
#include "level/rocr_tables.h"

#define EXPORT __attribute__((visibility("default")))
#define SUCCESS 0 /* HSA_STATUS_SUCCESS */

bool OnLoad(struct gp_hsa_tables *tables, uint64_t version, uint64_t nfailed,
	    const char *const *failed) EXPORT;
void OnUnload(void) EXPORT;

struct rocr_queue {
	struct gp_list link;
	struct gp_hsa_queue *hsa;
	struct gp_level_queue *level;
	gp_hsa_signal gate;              /* 0: open */
	gp_hsa_signal count;             /* one less for each launch that has ended */
	uint32_t client_class, priority; /* as it was made; as it was set last */

	/* Of the handler alone, which ROCr calls once at a time for a queue. */
	void *packets;
	uint64_t room; /* in packets */

	/* The same: what is in the ring below, where ROCr does not see to that. */
	struct gp_ring ring;
	gp_hsa_signal mark; /* one less for each mark that has ended */
	uint64_t stuck;
};

/* What the tables had before us. */
static struct {
	gp_hsa_queue_create *queue_create, *intercept_create;
	gp_hsa_queue_destroy *queue_destroy;
	gp_hsa_queue_index *write_index;
	gp_hsa_register *intercept_register;
	gp_hsa_set_priority *set_priority;
	gp_hsa_signal_create *signal_create;
	gp_hsa_signal_destroy *signal_destroy;
	gp_hsa_signal_load *signal_load;
	gp_hsa_signal_store *signal_store;
	gp_hsa_signal_wait *signal_wait;
	gp_hsa_copy *copy;
	gp_hsa_copy_on *copy_on;
	int is_strict;
} hsa;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gp_list queues = { &queues, &queues };
static __thread uint32_t is_ours; /* this thread is in one of our calls that make a queue */

/* The table for the engine */

static void rocr_gate(void *door, int is_closed)
{
	hsa.signal_store(((struct rocr_queue *)door)->gate, is_closed);
}

static uint64_t rocr_ended(void *door)
{
	return (uint64_t)-hsa.signal_load(((struct rocr_queue *)door)->count);
}

static void rocr_wait(void *door, uint64_t ended, uint64_t timeout_ns)
{
	/* ROCr's clock counts nanoseconds. */
	(void)hsa.signal_wait(((struct rocr_queue *)door)->count, GP_HSA_LT, 1 - (int64_t)ended, timeout_ns,
			      GP_HSA_BLOCKED);
}

static struct gp_door_ops ops = { .name = "rocr", .gate = rocr_gate, .ended = rocr_ended, .wait = rocr_wait };

/* Packets */

static int make_room(struct rocr_queue *q, uint64_t n)
{
	void *larger;

	if (n <= q->room)
		return 1;
	larger = realloc(q->packets, n * GP_AQL_PACKET);
	if (!larger)
		return 0;
	q->packets = larger;
	q->room = n;
	return 1;
}

/*
 * Room in the ring
 *
 * ROCr 5.2 moves packets from the ring that the program sees into a second one, of the same size.  What
 * finds no place there it keeps, packets of one call of the writer; but it goes on with the next packet, and
 * if that finds no place either an assertion ends the process.  A program that is told by the first ring
 * that there are places does not know of the second.  So nothing is written here that may not fit, and
 * whoever rings waits.  Where that may last for ever, because the queue waits for the thread that we keep, a
 * packet that is the last for now can go: ROCr keeps it, and the program is told that its ring is full.
 */
enum room { NONE, ALL, BARE, KEPT, GONE };

#define MOST(n) (3 * (n) + 1) /* of n packets, with all that we add and a mark */

static enum room find_room(struct rocr_queue *q, uint64_t n, uint64_t index, uint64_t since_ns)
{
	uint64_t progress;

	gp_ring_ended(&q->ring, (uint64_t)-hsa.signal_load(q->mark));
	if (gp_ring_room(&q->ring) >= MOST(n))
		return ALL;
	progress = q->ring.out + rocr_ended(q);
	if (!gp_engine_is_stuck(&q->stuck, progress, since_ns))
		return NONE;
	if (gp_ring_room_at_rest(&q->ring) >= n + (uint64_t)gp_ring_is_due(&q->ring))
		return BARE;
	return hsa.write_index(q->hsa) <= index + 1 ? KEPT : NONE;
}

/* By one who lets go in time; the program may be waiting here for itself. */
static int is_held(const struct gp_level_queue *level)
{
	return (__atomic_load_n(&level->held, __ATOMIC_SEQ_CST) & ~(1u << GP_HOLDER_PROGRAM)) != 0;
}

static enum room wait_while_there(struct rocr_queue *q, struct gp_level_queue *level, uint64_t n,
				  uint64_t index)
{
	uint64_t since = gp_level_now(), seen = 0, progress;
	enum room room;

	while ((room = find_room(q, n, index, since)) == NONE) {
		if (__atomic_load_n(&level->is_gone, __ATOMIC_SEQ_CST))
			return GONE;
		(void)hsa.signal_wait(q->mark, GP_HSA_LT, -(int64_t)q->ring.ended, GP_LEVEL_CHUNK_NS,
				      GP_HSA_BLOCKED);
		progress = q->ring.out + rocr_ended(q);
		if (progress != seen || is_held(level))
			since = gp_level_now();
		seen = progress;
	}
	return room;
}

/* The queue's end waits for us, so this thread is not cancelled here. */
static enum room wait_for_room(struct rocr_queue *q, struct gp_level_queue *level, uint64_t n, uint64_t index)
{
	enum room room;
	int r, before;

	gp_engine_lock();
	r = gp_engine_enter(level);
	gp_engine_unlock();
	if (r < 0)
		return gp_engine.is_foreign ? BARE : GONE;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	room = wait_while_there(q, level, n, index);
	gp_engine_leave(level);
	(void)pthread_setcancelstate(before, &before);
	return room;
}

static enum room get_room(struct rocr_queue *q, struct gp_level_queue *level, uint64_t n, uint64_t index)
{
	if (!q->ring.size || gp_ring_room(&q->ring) >= MOST(n))
		return ALL;
	return level ? wait_for_room(q, level, n, index) : GONE; /* it is being destroyed */
}

/* Which there is room for. Returns them, of which there are *n then. */
static const void *put_in_ring(struct rocr_queue *q, const void *packets, uint64_t *n, enum room room)
{
	int has_mark = gp_ring_is_due(&q->ring) && make_room(q, *n + 1);

	if (has_mark) {
		if (packets != q->packets)
			memcpy(q->packets, packets, *n * GP_AQL_PACKET);
		*n = gp_aql_mark(q->packets, *n, q->mark.handle);
		packets = q->packets;
	}
	gp_ring_put(&q->ring, *n, has_mark);
	if (room == KEPT) /* a packet of ROCr's that wakes it */
		gp_ring_put(&q->ring, 1, 0);
	return packets;
}

/* ROCr 5.2's writer may be called once. */
static void handle(const void *packets, uint64_t n, uint64_t index, void *data, gp_hsa_writer writer)
{
	const struct gp_aql_signals signals = { .gate = ((struct rocr_queue *)data)->gate.handle,
						.count = ((struct rocr_queue *)data)->count.handle };
	struct rocr_queue *q = data;
	struct gp_level_queue *level = __atomic_load_n(&q->level, __ATOMIC_SEQ_CST);
	uint32_t launches = gp_aql_launches(packets, n), adds = 0;
	enum room room = get_room(q, level, n, index);

	if (room == GONE)
		return; /* with all that its ring holds */
	if (room == ALL && level && launches && make_room(q, MOST(n)))
		adds = gp_level_launch(level, launches);
	if (adds) {
		n = gp_aql_rewrite(packets, n, adds, &signals, q->packets);
		packets = q->packets;
	}
	if (q->ring.size)
		packets = put_in_ring(q, packets, &n, room);
	writer(packets, n);
	gp_doors_rang();
}

/* Queues */

static void free_queue(struct rocr_queue *q)
{
	if (q->gate.handle)
		(void)hsa.signal_destroy(q->gate);
	if (q->count.handle)
		(void)hsa.signal_destroy(q->count);
	if (q->mark.handle)
		(void)hsa.signal_destroy(q->mark);
	free(q->packets);
	free(q);
}

/* 0: it is looked after. Whatever fails, the queue passes its packets on. */
static int look_after(struct gp_hsa_queue *queue, gp_hsa_agent agent)
{
	const struct gp_door_queue is = { .stream = queue,
					  .device = agent.handle,
					  .ring = gp_doors_ring(),
					  .client_class = gp_doors_class() };
	struct rocr_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return -1;
	q->hsa = queue;
	q->client_class = is.client_class;
	q->priority = GP_HSA_PRIORITY_NORMAL;
	q->ring.size = hsa.is_strict ? queue->size : 0;
	if (hsa.signal_create(0, 0, NULL, &q->gate) == SUCCESS &&
	    hsa.signal_create(0, 0, NULL, &q->count) == SUCCESS &&
	    (!q->ring.size || hsa.signal_create(0, 0, NULL, &q->mark) == SUCCESS))
		q->level = gp_level_add(&ops, q, &is);
	if (q->level && hsa.intercept_register(queue, handle, q) == SUCCESS) {
		pthread_mutex_lock(&lock);
		gp_list_append(&queues, &q->link);
		pthread_mutex_unlock(&lock);
		return 0;
	}
	if (q->level)
		gp_level_remove(q->level);
	free_queue(q);
	return -1;
}

static struct rocr_queue *find(const struct gp_hsa_queue *queue, int takes)
{
	struct rocr_queue *found = NULL;

	pthread_mutex_lock(&lock);
	gp_list_each(at, &queues) {
		struct rocr_queue *q = gp_container(at, struct rocr_queue, link);

		if (q->hsa == queue)
			found = q;
	}
	if (found && takes)
		gp_list_remove(&found->link);
	pthread_mutex_unlock(&lock);
	return found;
}

/* Another tool's, which makes its own queues in this way. */
static int intercept_create(gp_hsa_agent agent, uint32_t size, uint32_t type, gp_hsa_error error, void *data,
			    uint32_t private_size, uint32_t group_size, struct gp_hsa_queue **ret)
{
	int r = hsa.intercept_create(agent, size, type, error, data, private_size, group_size, ret);

	if (r == SUCCESS && ret && !is_ours)
		(void)look_after(*ret, agent);
	return r;
}

/* Whether another tool came before us, and makes queues itself. */
static int is_followed(void)
{
	Dl_info create, intercept;

	return !dladdr((void *)hsa.queue_create, &create) ||
	       !dladdr((void *)hsa.intercept_create, &intercept) || create.dli_fbase != intercept.dli_fbase;
}

static int queue_create(gp_hsa_agent agent, uint32_t size, uint32_t type, gp_hsa_error error, void *data,
			uint32_t private_size, uint32_t group_size, struct gp_hsa_queue **ret)
{
	int is_another_tools = is_followed(), r;

	is_ours++;
	r = (is_another_tools ? hsa.queue_create : hsa.intercept_create)(agent, size, type, error, data,
									 private_size, group_size, ret);
	if (r == SUCCESS && ret && look_after(*ret, agent) < 0 && !is_another_tools &&
	    hsa.queue_destroy(*ret) == SUCCESS)
		r = -1; /* the program has a plain one */
	if (r != SUCCESS && !is_another_tools)
		r = hsa.queue_create(agent, size, type, error, data, private_size, group_size, ret);
	is_ours--;
	return r;
}

static int queue_destroy(struct gp_hsa_queue *queue)
{
	struct rocr_queue *q = find(queue, 1);
	int r;

	if (!q)
		return hsa.queue_destroy(queue);
	gp_level_remove(__atomic_exchange_n(&q->level, NULL, __ATOMIC_SEQ_CST));
	r = hsa.queue_destroy(queue);
	if (r == SUCCESS) /* else its handler may still come */
		free_queue(q);
	return r;
}

static uint32_t class_of(const struct rocr_queue *q)
{
	if (q->priority == GP_HSA_PRIORITY_NORMAL)
		return q->client_class;
	return q->priority == GP_HSA_PRIORITY_LOW ? GP_CLASS_OFFLINE : GP_CLASS_ONLINE;
}

static int set_priority(struct gp_hsa_queue *queue, uint32_t priority)
{
	struct rocr_queue *q = find(queue, 0);
	int r = hsa.set_priority(queue, priority);

	if (r != SUCCESS || !q || priority == q->priority)
		return r;
	q->priority = priority;
	gp_level_set_class(q->level, class_of(q));
	return r;
}

/* Copies go by queues of the runtime's own: they only ring. */

static int copy(void *to, gp_hsa_agent to_agent, const void *from, gp_hsa_agent from_agent, size_t size,
		uint32_t n, const gp_hsa_signal *waits, gp_hsa_signal signal)
{
	int r = hsa.copy(to, to_agent, from, from_agent, size, n, waits, signal);

	gp_doors_rang();
	return r;
}

static int copy_on(void *to, gp_hsa_agent to_agent, const void *from, gp_hsa_agent from_agent, size_t size,
		   uint32_t n, const gp_hsa_signal *waits, gp_hsa_signal signal, uint32_t engine,
		   _Bool is_forced)
{
	int r = hsa.copy_on(to, to_agent, from, from_agent, size, n, waits, signal, engine, is_forced);

	gp_doors_rang();
	return r;
}

/* The door */

static void keep(const struct gp_rocr_entries *e)
{
	hsa.queue_create = *e->queue_create;
	hsa.intercept_create = *e->intercept_create;
	hsa.queue_destroy = *e->queue_destroy;
	hsa.write_index = *e->write_index;
	hsa.intercept_register = *e->intercept_register;
	hsa.set_priority = *e->set_priority;
	hsa.signal_create = *e->signal_create;
	hsa.signal_destroy = *e->signal_destroy;
	hsa.signal_load = *e->signal_load;
	hsa.signal_store = *e->signal_store;
	hsa.signal_wait = *e->signal_wait;
	hsa.copy = *e->copy;
	hsa.copy_on = e->copy_on ? *e->copy_on : NULL;
	hsa.is_strict = e->is_strict;
}

bool OnLoad(struct gp_hsa_tables *tables, uint64_t version, uint64_t nfailed, const char *const *failed)
{
	struct gp_rocr_entries e;
	char why[256];

	(void)version;
	(void)nfailed;
	(void)failed;
	if (gp_doors_are_off()) {
		gp_doors_say(GP_DOOR_ROCR, "GPREEMPT_LEVEL is off");
		return true;
	}
	if (gp_rocr_entries(tables, &e, why, sizeof(why)) < 0) {
		gp_doors_say(GP_DOOR_ROCR, why);
		return true; /* the program has its runtime as it is */
	}
	if (*e.queue_create == queue_create) /* it is named twice: it would call itself */
		return true;
	ops.levels = gp_doors_levels(1u << GP_LEVEL_THROTTLE | 1u << GP_LEVEL_GATE);
	gp_doors_set_wait();
	keep(&e);
	*e.queue_create = queue_create;
	*e.intercept_create = intercept_create;
	*e.queue_destroy = queue_destroy;
	*e.set_priority = set_priority;
	*e.copy = copy;
	if (e.copy_on)
		*e.copy_on = copy_on;
	gp_doors_say(GP_DOOR_ROCR, NULL);
	return true;
}

/* The runtime goes, and with it its queues: nobody here may call it any more. */
void OnUnload(void)
{
	if (gp_engine.is_foreign)
		return; /* and the lock may be another thread's, of the parent */
	pthread_mutex_lock(&lock);
	gp_list_each_safe(at, &queues) {
		struct rocr_queue *q = gp_container(at, struct rocr_queue, link);

		gp_list_remove(&q->link);
		/* It stays: a thread of the program's may be in the handler. */
		(void)gp_level_find(q->hsa, 0);
		gp_level_remove(q->level);
	}
	pthread_mutex_unlock(&lock);
}
