// SPDX-License-Identifier: MIT
/*
 * OpenCL's door: a layer of the ICD loader, OPENCL_LAYERS.  It has Lv1 alone.  The runtime waits itself: a
 * launch that may not begin yet has an event of ours in its wait list, which is set when enough of those
 * before it have ended.  The program's thread is never kept.  A queue out of order is left alone: its
 * launches may wait for each other in ways that the program alone knows.
 */
#include <stdlib.h>
#include <string.h>

#include "level/doors.h"
#include "level/internal.h"
#include "level/opencl_table.h"

#define EXPORT __attribute__((visibility("default")))
#define MOST_ENTRIES 512u
#define NAME "gpreempt"

int32_t clGetLayerInfo(uint32_t what, size_t size, void *value, size_t *ret_size) EXPORT;
int32_t clInitLayer(uint32_t n, void *const *target, uint32_t *ret_n, void *const **ret_layer) EXPORT;

/* A launch that was made, until it has ended. */
struct launch {
	struct gp_list link;  /* while its event is not set */
	struct gp_list order; /* while it is not known to be over */
	struct cl_queue *queue;
	uint64_t number;
	gp_cl gate; /* NULL: it has none */
};

struct cl_queue {
	struct gp_list link;
	gp_cl queue, context;
	struct gp_level_queue *level; /* NULL: the program has let the queue go */
	uint32_t references;          /* the program's */

	pthread_mutex_t order; /* launches are numbered as they are made */
	uint64_t begun;

	/* Under lock. */
	struct gp_list waiting, flying; /* launches, oldest first */
	uint64_t released;
	uint32_t users; /* the program, and launches that have not ended */

	uint64_t ended;
	uint32_t sleepers;
};

static struct {
	gp_cl_create_queue *create_queue;
	gp_cl_create_queue_with *create_queue_with;
	gp_cl_count *retain_queue, *release_queue, *retain_event, *release_event;
	gp_cl_launch *launch;
	gp_cl_user_event *user_event;
	gp_cl_set_status *set_status;
	gp_cl_set_callback *set_callback;
} cl;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gp_list queues = { &queues, &queues };
static void *layer[MOST_ENTRIES];

/* The table for the engine */

static uint64_t opencl_ended(void *door)
{
	return __atomic_load_n(&((struct cl_queue *)door)->ended, __ATOMIC_SEQ_CST);
}

static void opencl_wait(void *door, uint64_t ended, uint64_t timeout_ns)
{
	struct cl_queue *q = door;
	uint32_t changes = __atomic_load_n(&gp_engine.changes, __ATOMIC_SEQ_CST);

	__atomic_add_fetch(&q->sleepers, 1, __ATOMIC_SEQ_CST);
	if (opencl_ended(q) < ended)
		gp_engine_sleep(changes, timeout_ns);
	__atomic_sub_fetch(&q->sleepers, 1, __ATOMIC_SEQ_CST);
}

static void set_gate(gp_cl gate)
{
	(void)cl.set_status(gate, GP_CL_COMPLETE); /* nobody else sets it */
	(void)cl.release_event(gate);
}

/* Of the oldest launch, if it may begin now; NULL: none. */
static gp_cl take_released(struct cl_queue *q, uint64_t launches)
{
	struct launch *l;

	if (gp_list_empty(&q->waiting))
		return NULL;
	if (q->level && __atomic_load_n(&q->level->held, __ATOMIC_SEQ_CST))
		return NULL; /* since this release was decided */
	l = gp_container(q->waiting.next, struct launch, link);
	if (l->number >= launches)
		return NULL;
	gp_list_remove(&l->link);
	return l->gate;
}

static void opencl_release(void *door, uint64_t launches)
{
	struct cl_queue *q = door;
	gp_cl gate;

	do {
		pthread_mutex_lock(&lock);
		if (launches > q->released)
			q->released = launches;
		gate = take_released(q, launches);
		pthread_mutex_unlock(&lock);
		if (gate)
			set_gate(gate);
	} while (gate);
}

/* Alone, though others before it wait. */
static void let_begin(struct launch *l)
{
	int waits;

	pthread_mutex_lock(&lock);
	waits = !gp_list_empty(&l->link);
	gp_list_remove(&l->link);
	pthread_mutex_unlock(&lock);
	if (waits)
		set_gate(l->gate);
}

static const struct gp_door_ops ops = { .name = "opencl",
					.levels = 1u << GP_LEVEL_THROTTLE,
					.most = 2,
					.ended = opencl_ended,
					.wait = opencl_wait,
					.release = opencl_release };

/* Launches */

static void put_queue(struct cl_queue *q)
{
	uint32_t users;

	pthread_mutex_lock(&lock);
	users = --q->users;
	pthread_mutex_unlock(&lock);
	if (users)
		return;
	pthread_mutex_destroy(&q->order);
	free(q);
}

/* level is read under the lock: whoever lets the queue go takes it from there first. */
static void tell_engine(struct cl_queue *q)
{
	struct gp_level_queue *level;

	pthread_mutex_lock(&lock);
	level = q->level ? gp_level_find(q->queue, 0) : NULL;
	pthread_mutex_unlock(&lock);
	if (!level)
		return;
	gp_level_ended(level);
	gp_level_put(level);
}

/* The queue is in order: those before it are over too, though nobody said so. PoCL does not of a launch whose
 * wait list fails. */
static void take_ended(struct cl_queue *q, struct launch *l)
{
	uint64_t n = 0;

	pthread_mutex_lock(&lock);
	while (!gp_list_empty(&l->order)) {
		gp_list_remove(q->flying.next);
		n++;
	}
	__atomic_add_fetch(&q->ended, n, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&lock);
}

/* It was never made: of those before it this says nothing. */
static void take_failed(struct cl_queue *q, struct launch *l)
{
	pthread_mutex_lock(&lock);
	gp_list_remove(&l->order);
	pthread_mutex_unlock(&lock);
	__atomic_add_fetch(&q->ended, 1, __ATOMIC_SEQ_CST);
}

/* What follows is released here, in a callback of the runtime: waking a thread for it takes a fifth of 100
 * us. */
static void end(struct launch *l)
{
	struct cl_queue *q = l->queue;

	free(l);
	if (__atomic_load_n(&q->sleepers, __ATOMIC_SEQ_CST))
		gp_engine_changed();
	tell_engine(q);
	put_queue(q);
}

static void has_ended(gp_cl event, int32_t status, void *data)
{
	struct launch *l = data;

	(void)status; /* or failed: it is over */
	take_ended(l->queue, l);
	end(l);
	(void)cl.release_event(event);
}

/* Whoever waits has an event, unless it may begin at once. The runtime is called without the lock: it has its
 * own. */
static void count(struct cl_queue *q, struct launch *l, uint32_t adds)
{
	int32_t error;
	int waits;

	gp_list_init(&l->link);
	l->queue = q;
	l->number = q->begun++;
	pthread_mutex_lock(&lock);
	q->users++;
	gp_list_append(&q->flying, &l->order);
	waits = adds & GP_ADD_HELD || (adds & GP_ADD_WAIT && l->number >= q->released);
	pthread_mutex_unlock(&lock);
	if (waits)
		l->gate = cl.user_event(q->context, &error);
	if (!l->gate)
		return;
	(void)cl.retain_event(l->gate); /* it may be set, and released, before the launch is made */
	pthread_mutex_lock(&lock);
	gp_list_append(&q->waiting, &l->link);
	pthread_mutex_unlock(&lock);
}

/* The program's wait list, and the gate. */
static int32_t enqueue(struct launch *l, gp_cl kernel, uint32_t dimensions, const size_t *const sizes[3],
		       uint32_t nwaits, const gp_cl *waits, gp_cl *ret_event)
{
	gp_cl few[16], *all = nwaits < 16 ? few : malloc(((size_t)nwaits + 1) * sizeof(*all));
	int32_t r;

	if (!all || !l->gate || (nwaits && !waits)) {
		if (all != few)
			free(all);
		let_begin(l);
		return cl.launch(l->queue->queue, kernel, dimensions, sizes[0], sizes[1], sizes[2], nwaits,
				 waits, ret_event);
	}
	if (nwaits)
		memcpy(all, waits, nwaits * sizeof(*all));
	all[nwaits] = l->gate;
	r = cl.launch(l->queue->queue, kernel, dimensions, sizes[0], sizes[1], sizes[2], nwaits + 1, all,
		      ret_event);
	if (all != few)
		free(all);
	return r;
}

static void watch(struct launch *l, gp_cl event, gp_cl *ret_event)
{
	if (ret_event) {
		(void)cl.retain_event(event);
		*ret_event = event;
	}
	if (cl.set_callback(event, GP_CL_COMPLETE, has_ended, l) != GP_CL_SUCCESS) {
		let_begin(l); /* nobody would tell: it counts as over */
		has_ended(event, 0, l);
	}
}

static int32_t launch(struct cl_queue *q, gp_cl kernel, uint32_t dimensions, const size_t *const sizes[3],
		      uint32_t nwaits, const gp_cl *waits, gp_cl *ret_event)
{
	struct launch *l = calloc(1, sizeof(*l));
	gp_cl event = NULL, gate;
	uint32_t adds;
	int32_t r;

	pthread_mutex_lock(&q->order);
	adds = l ? gp_level_launch(q->level, 1) : 0;
	if (!(adds & GP_ADD_COUNT)) {
		pthread_mutex_unlock(&q->order);
		free(l);
		return cl.launch(q->queue, kernel, dimensions, sizes[0], sizes[1], sizes[2], nwaits, waits,
				 ret_event);
	}
	count(q, l, adds);
	gate = l->gate;
	r = enqueue(l, kernel, dimensions, sizes, nwaits, waits, &event);
	pthread_mutex_unlock(&q->order);
	if (gate)
		(void)cl.release_event(gate);
	if (r == GP_CL_SUCCESS) {
		watch(l, event, ret_event);
	} else {
		let_begin(l);
		take_failed(q, l);
		end(l);
	}
	if (adds & GP_ADD_WAIT)
		gp_level_ended(q->level); /* it may be that nothing is in flight whose end would do that */
	return r;
}

/* Queues */

static int is_in_order(const uint64_t *properties)
{
	for (; properties && properties[0]; properties += 2)
		if (properties[0] == GP_CL_QUEUE_PROPERTIES && properties[1] & GP_CL_OUT_OF_ORDER)
			return 0;
	return 1;
}

static uint32_t class_of(const uint64_t *properties)
{
	for (; properties && properties[0]; properties += 2) {
		if (properties[0] != GP_CL_QUEUE_PRIORITY)
			continue;
		if (properties[1] == GP_CL_PRIORITY_LOW)
			return GP_CLASS_OFFLINE;
		if (properties[1] == GP_CL_PRIORITY_HIGH)
			return GP_CLASS_ONLINE;
	}
	return gp_doors_class();
}

static void look_after(gp_cl queue, gp_cl context, gp_cl device, const uint64_t *properties)
{
	const struct gp_door_queue is = { .stream = queue,
					  .device = (uintptr_t)device,
					  .client_class = class_of(properties) };
	struct cl_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return;
	q->queue = queue;
	q->context = context;
	q->references = q->users = 1;
	gp_list_init(&q->waiting);
	gp_list_init(&q->flying);
	(void)pthread_mutex_init(&q->order, NULL);
	q->level = gp_level_add(&ops, q, &is);
	if (!q->level) {
		put_queue(q);
		return;
	}
	pthread_mutex_lock(&lock);
	gp_list_append(&queues, &q->link);
	pthread_mutex_unlock(&lock);
}

static struct cl_queue *find(gp_cl queue, int32_t add)
{
	struct cl_queue *found = NULL;

	pthread_mutex_lock(&lock);
	gp_list_each(at, &queues) {
		struct cl_queue *q = gp_container(at, struct cl_queue, link);

		if (q->queue == queue)
			found = q;
	}
	if (found)
		found->references += (uint32_t)add;
	pthread_mutex_unlock(&lock);
	return found;
}

static gp_cl create_queue(gp_cl context, gp_cl device, uint64_t properties, int32_t *ret_error)
{
	gp_cl queue = cl.create_queue(context, device, properties, ret_error);

	if (queue && !(properties & GP_CL_OUT_OF_ORDER))
		look_after(queue, context, device, NULL);
	return queue;
}

static gp_cl create_queue_with(gp_cl context, gp_cl device, const uint64_t *properties, int32_t *ret_error)
{
	gp_cl queue = cl.create_queue_with(context, device, properties, ret_error);

	if (queue && is_in_order(properties))
		look_after(queue, context, device, properties);
	return queue;
}

static int32_t retain_queue(gp_cl queue)
{
	int32_t r = cl.retain_queue(queue);

	if (r == GP_CL_SUCCESS)
		(void)find(queue, 1);
	return r;
}

/* What it launched before it let the queue go begins now. */
static void let_go(struct cl_queue *q)
{
	struct gp_level_queue *level;

	pthread_mutex_lock(&lock);
	gp_list_remove(&q->link);
	level = q->level;
	q->level = NULL;
	pthread_mutex_unlock(&lock);
	gp_level_remove(level);
	opencl_release(q, UINT64_MAX);
	put_queue(q);
}

static int32_t release_queue(gp_cl queue)
{
	struct cl_queue *q = find(queue, -1);

	if (q && !q->references)
		let_go(q);
	return cl.release_queue(queue);
}

static int32_t enqueue_kernel(gp_cl queue, gp_cl kernel, uint32_t dimensions, const size_t *offset,
			      const size_t *global, const size_t *local, uint32_t nwaits, const gp_cl *waits,
			      gp_cl *ret_event)
{
	const size_t *const sizes[3] = { offset, global, local };
	struct cl_queue *q = find(queue, 0);

	if (!q)
		return cl.launch(queue, kernel, dimensions, offset, global, local, nwaits, waits, ret_event);
	return launch(q, kernel, dimensions, sizes, nwaits, waits, ret_event);
}

/* The door */

int32_t clGetLayerInfo(uint32_t what, size_t size, void *value, size_t *ret_size)
{
	const uint32_t version = GP_CL_LAYER_API_VERSION_100;
	const void *is = what == GP_CL_LAYER_NAME ? (const void *)NAME : &version;
	size_t needed = what == GP_CL_LAYER_NAME ? sizeof(NAME) : sizeof(version);

	if ((what != GP_CL_LAYER_API_VERSION && what != GP_CL_LAYER_NAME) || (value && size < needed))
		return GP_CL_INVALID_VALUE;
	if (value)
		memcpy(value, is, needed);
	if (ret_size)
		*ret_size = needed;
	return GP_CL_SUCCESS;
}

/* What an entry holds has some other type. */
#define TAKE(entry, place) memcpy(&(entry), &target[place], sizeof(void *))
#define PUT(place, function) (layer[place] = (void *)(function))

static int take(uint32_t n, void *const *target)
{
	if (n <= GP_CL_CREATE_QUEUE_WITH || n > MOST_ENTRIES)
		return 0;
	TAKE(cl.create_queue, GP_CL_CREATE_QUEUE);
	TAKE(cl.create_queue_with, GP_CL_CREATE_QUEUE_WITH);
	TAKE(cl.retain_queue, GP_CL_RETAIN_QUEUE);
	TAKE(cl.release_queue, GP_CL_RELEASE_QUEUE);
	TAKE(cl.retain_event, GP_CL_RETAIN_EVENT);
	TAKE(cl.release_event, GP_CL_RELEASE_EVENT);
	TAKE(cl.launch, GP_CL_LAUNCH);
	TAKE(cl.user_event, GP_CL_USER_EVENT);
	TAKE(cl.set_status, GP_CL_SET_STATUS);
	TAKE(cl.set_callback, GP_CL_SET_CALLBACK);
	return cl.create_queue && cl.create_queue_with && cl.retain_queue && cl.release_queue &&
	       cl.retain_event && cl.release_event && cl.launch && cl.user_event && cl.set_status &&
	       cl.set_callback;
}

/* A layer that fails ends the loader's start: one that is shut passes everything on. */
int32_t clInitLayer(uint32_t n, void *const *target, uint32_t *ret_n, void *const **ret_layer)
{
	if (!target || !ret_n || !ret_layer)
		return GP_CL_INVALID_VALUE;
	*ret_n = n;
	*ret_layer = target;
	if (cl.launch) /* it is named twice: it would call itself */
		return GP_CL_SUCCESS;
	if (gp_doors_are_off()) {
		gp_doors_say(GP_DOOR_OPENCL, "GPREEMPT_LEVEL is off");
	} else if (!take(n, target)) {
		gp_doors_say(GP_DOOR_OPENCL, "the loader's table is of another size, or an entry is empty");
	} else {
		memcpy(layer, target, n * sizeof(*layer));
		PUT(GP_CL_CREATE_QUEUE, create_queue);
		PUT(GP_CL_CREATE_QUEUE_WITH, create_queue_with);
		PUT(GP_CL_RETAIN_QUEUE, retain_queue);
		PUT(GP_CL_RELEASE_QUEUE, release_queue);
		PUT(GP_CL_LAUNCH, enqueue_kernel);
		*ret_layer = layer;
		gp_doors_say(GP_DOOR_OPENCL, NULL);
	}
	return GP_CL_SUCCESS;
}
