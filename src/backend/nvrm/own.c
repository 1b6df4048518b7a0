// SPDX-License-Identifier: MIT
#include "backend/nvrm/own_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define DRIVER_FILE "/dev/nvidiactl"

static int rm_make(gp_ioctl_fn next, void (*wake)(void *arg), void *arg, struct gp_own **ret)
{
	struct gp_own *own =
		mmap(NULL, sizeof(*own), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (own == MAP_FAILED)
		return -ENOMEM;
	own->next = next;
	own->pid = getpid();
	gp_book_init(&own->book, wake, arg);
	gp_driver_file_init(&own->file, "GPREEMPT_NVIDIACTL", DRIVER_FILE);
	*ret = own;
	return 0;
}

static void rm_free(struct gp_own *own)
{
	if (!own)
		return;
	(void)rm_resume_all(own, -1); /* nobody is left to tell */
	(void)munmap(own, sizeof(*own));
}

void rm_forget(struct gp_own *own)
{
	for (uint32_t i = 0; i < own->top; i++)
		own->queues[i].place = RM_EMPTY;
	for (uint32_t i = 0; i < own->top_object; i++)
		own->objects[i].kind = RM_FREE;
	own->top = own->top_object = own->nstopped = 0;
	own->pid = getpid();
	gp_book_forget(&own->book);
}

/*
 * Nothing is called by it: only the file that made a client does for that client.  So the driver is not even
 * asked to open it; and where the program has gone to a place without it, any folder does.
 */
static int rm_open(struct gp_own *own)
{
	int fd = open(own->file.path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		fd = open("/", O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

struct rm_queue *rm_find(struct gp_own *own, uint64_t number)
{
	struct rm_queue *q = &own->queues[number % GP_OWN_MOST];

	return q->place == RM_HERE && q->number == number ? q : NULL;
}

struct rm_queue *rm_find_queue(struct gp_own *own, uint32_t client, uint32_t handle)
{
	const struct rm_object *o = rm_object(own, client, handle);

	return o && (o->kind == RM_GROUP || o->kind == RM_CHANNEL) && o->queue != RM_NO_QUEUE
		       ? &own->queues[o->queue]
		       : NULL;
}

void rm_changed(struct gp_own *own, struct rm_queue *q)
{
	gp_book_changed(&own->book, &q->news);
}

/* Not one of which somebody is still in a call. */
static struct rm_queue *empty_place(struct gp_own *own)
{
	for (uint32_t i = 0; i < own->top; i++)
		if (own->queues[i].place == RM_EMPTY && !own->queues[i].calls)
			return &own->queues[i];
	return own->top < GP_OWN_MOST ? &own->queues[own->top++] : NULL;
}

static void set_empty(struct gp_own *own, struct rm_queue *q)
{
	q->place = RM_EMPTY;
	while (own->top && own->queues[own->top - 1].place == RM_EMPTY && !own->queues[own->top - 1].calls)
		own->top--;
}

struct rm_queue *rm_add_queue(struct gp_own *own, const struct rm_queue *like)
{
	struct rm_queue *q = empty_place(own);

	if (!q)
		return NULL;
	*q = *like;
	q->number = ++own->last_serial * GP_OWN_MOST + (uint64_t)(q - own->queues);
	q->place = RM_HERE;
	q->want = GP_RUN;
	gp_book_added(&own->book, &q->news);
	return q;
}

static uint32_t is_touched(const struct rm_queue *q)
{
	return q->want != GP_RUN || q->is_owed;
}

void rm_set_want(struct gp_own *own, struct rm_queue *q, uint32_t want, uint32_t is_owed)
{
	uint32_t before = is_touched(q);

	q->want = want;
	q->is_owed = is_owed;
	__atomic_store_n(&own->nstopped, own->nstopped - before + is_touched(q), __ATOMIC_RELEASE);
}

void rm_remove_queue(struct gp_own *own, struct rm_queue *q)
{
	rm_set_want(own, q, GP_RUN, 0);
	if (gp_book_removed(&own->book, &q->news))
		q->place = RM_GONE;
	else
		set_empty(own, q);
}

static struct gp_own_queue describe(const struct gp_own *own, const struct rm_queue *q)
{
	return (struct gp_own_queue){ .queue = q->number,
				      .queue_id = (uint32_t)(q - own->queues),
				      .gpu_id = q->gpu_id,
				      .kind = q->kind,
				      .percent = 100,
				      .stopped = q->want == GP_STOP || q->is_owed,
				      .way = GP_NVRM_WAY_PARK };
}

static int rm_events(struct gp_own *own, struct gp_own_event *events, size_t n)
{
	struct gp_news *news;
	uint32_t kind;
	gp_signals blocked;
	size_t i = 0;

	blocked = gp_book_lock(&own->book);
	for (; i < n && (news = gp_book_next(&own->book, &kind)); i++) {
		struct rm_queue *q = gp_container(news, struct rm_queue, news);

		events[i] = (struct gp_own_event){ .kind = kind, .queue = describe(own, q) };
		if (q->place == RM_GONE)
			set_empty(own, q);
	}
	gp_book_unlock(&own->book, blocked);
	return (int)i;
}

static int rm_queues(struct gp_own *own, struct gp_own_queue *queues, size_t n)
{
	gp_signals blocked;
	size_t count = 0;

	blocked = gp_book_lock(&own->book);
	for (uint32_t i = 0; i < own->top; i++) {
		if (own->queues[i].place != RM_HERE)
			continue;
		if (count++ < n)
			queues[count - 1] = describe(own, &own->queues[i]);
	}
	gp_book_unlock(&own->book, blocked);
	return (int)count;
}

static int rm_stopped(struct gp_own *own)
{
	return (int)__atomic_load_n(&own->nstopped, __ATOMIC_ACQUIRE);
}

/* Work goes to the GPU by memory of its own, and nothing in it says how far the GPU has come. */
static int rm_activity(struct gp_own *own, const uint64_t *queues, size_t n, struct gp_activity *ret)
{
	gp_signals blocked;
	int r = 0;

	blocked = gp_book_lock(&own->book);
	for (size_t i = 0; i < n; i++) {
		ret[i] = (struct gp_activity){ .activity = GP_ACTIVITY_UNKNOWN };
		if (!rm_find(own, queues[i]))
			r = -ENOENT;
	}
	gp_book_unlock(&own->book, blocked);
	return r;
}

const struct gp_own_ops gp_nvrm_own = {
	.name = "nvrm",
	.usual_way = GP_NVRM_WAY_PARK,
	.ways = GP_NVRM_WAY_PARK,
	.batches = 1,
	.make = rm_make,
	.free = rm_free,
	.forget = rm_forget,
	.wants = rm_wants,
	.call = rm_call,
	.events = rm_events,
	.queues = rm_queues,
	.stopped = rm_stopped,
	.open = rm_open,
	.apply = rm_apply,
	.resume_all = rm_resume_all,
	.activity = rm_activity,
	.finished = rm_activity,
};
