// SPDX-License-Identifier: MIT
#include "backend/kfd/own_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/kfd/kind.h"

#define DRIVER_FILE "/dev/kfd"

static int own_make(gp_ioctl_fn next, void (*wake)(void *arg), void *arg, struct gp_own **ret)
{
	struct gp_own *own =
		mmap(NULL, sizeof(*own), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (own == MAP_FAILED)
		return -ENOMEM;
	own->next = next;
	own->pid = getpid();
	gp_book_init(&own->book, wake, arg);
	gp_driver_file_init(&own->file, "GPREEMPT_KFD", DRIVER_FILE);
	*ret = own;
	return 0;
}

static void own_free(struct gp_own *own)
{
	if (!own)
		return;
	(void)own_resume_all(own, -1); /* nobody is left to tell */
	(void)munmap(own, sizeof(*own));
}

void own_forget(struct gp_own *own)
{
	for (uint32_t i = 0; i < own->top; i++)
		own->queues[i].place = OWN_FREE;
	own->top = own->nstopped = 0;
	own->pid = getpid();
	gp_book_forget(&own->book);
}

int own_open(struct gp_own *own)
{
	int fd = open(own->file.path, O_RDWR | O_CLOEXEC), r = fd < 0 ? -errno : fd, seen;

	if (r >= 0)
		return r;
	/* The program may have given up the right, or gone where the file is not. It has it open. */
	seen = __atomic_load_n(&own->seen_fd, __ATOMIC_RELAXED);
	fd = gp_driver_file_is(&own->file, seen) ? fcntl(seen, F_DUPFD_CLOEXEC, 3) : -1;
	return fd < 0 ? r : fd;
}

struct own_queue *own_find(struct gp_own *own, uint64_t number)
{
	struct own_queue *q = &own->queues[number % GP_OWN_MOST];

	return q->place == OWN_HERE && q->number == number ? q : NULL;
}

struct own_queue *own_find_id(struct gp_own *own, uint32_t queue_id)
{
	for (uint32_t i = 0; i < own->top; i++)
		if (own->queues[i].place == OWN_HERE && !own->queues[i].going &&
		    own->queues[i].set.queue_id == queue_id)
			return &own->queues[i];
	return NULL;
}

static struct own_queue *free_place(struct gp_own *own)
{
	for (uint32_t i = 0; i < own->top; i++)
		if (own->queues[i].place == OWN_FREE)
			return &own->queues[i];
	return own->top < GP_OWN_MOST ? &own->queues[own->top++] : NULL;
}

static void set_free(struct gp_own *own, struct own_queue *q)
{
	q->place = OWN_FREE;
	while (own->top && own->queues[own->top - 1].place == OWN_FREE)
		own->top--;
}

void own_add(struct gp_own *own, const struct kfd_create_queue_args *args)
{
	struct own_queue *q = own_find_id(own, args->queue_id);

	if (q)
		own_remove(own, q); /* went by a way we do not see: the driver has given its id away */
	q = free_place(own);
	if (!q)
		return; /* it runs, unmanaged */
	__atomic_store_n(&own->last_serial, own->last_serial + 1, __ATOMIC_RELEASE);
	*q = (struct own_queue){ .number = own->last_serial * GP_OWN_MOST + (uint64_t)(q - own->queues),
				 .rptr = args->rptr,
				 .wptr = args->wptr,
				 .set = { .ring = args->ring,
					  .queue_id = args->queue_id,
					  .ring_size = args->ring_size,
					  .percent = args->percent,
					  .priority = args->priority },
				 .gpu_id = args->gpu_id,
				 .type = args->type,
				 .place = OWN_HERE };
	gp_book_added(&own->book, &q->news);
}

static void count_change(struct gp_own *own, struct own_queue *q)
{
	q->changed = own->changes + 1;
	__atomic_store_n(&own->changes, q->changed, __ATOMIC_RELEASE);
}

void own_set(struct gp_own *own, struct own_queue *q, const struct kfd_update_queue_args *set)
{
	q->set = *set;
	count_change(own, q);
	gp_book_changed(&own->book, &q->news);
}

void own_set_state(struct gp_own *own, struct own_queue *q, enum own_state state)
{
	uint32_t stopped = own->nstopped - (q->state != OWN_RUNS) + (state != OWN_RUNS);

	__atomic_store_n(&own->nstopped, stopped, __ATOMIC_RELEASE);
	q->state = state;
	count_change(own, q);
}

void own_remove(struct gp_own *own, struct own_queue *q)
{
	own_set_state(own, q, OWN_RUNS);
	if (gp_book_removed(&own->book, &q->news))
		q->place = OWN_GONE;
	else
		set_free(own, q);
}

static struct gp_own_queue describe(const struct own_queue *q)
{
	return (struct gp_own_queue){ .queue = q->number,
				      .ring = q->set.ring,
				      .ring_size = q->set.ring_size,
				      .rptr_address = q->rptr,
				      .wptr_address = q->wptr,
				      .queue_id = q->set.queue_id,
				      .gpu_id = q->gpu_id,
				      .kind = gp_kfd_kind(q->type),
				      .priority = q->set.priority,
				      .percent = q->set.percent & OWN_PERCENT,
				      .stopped = q->state != OWN_RUNS,
				      .way = q->way };
}

static int own_events(struct gp_own *own, struct gp_own_event *events, size_t n)
{
	struct gp_news *news;
	uint32_t kind;
	gp_signals blocked;
	size_t i = 0;

	blocked = gp_book_lock(&own->book);
	for (; i < n && (news = gp_book_next(&own->book, &kind)); i++) {
		struct own_queue *q = gp_container(news, struct own_queue, news);

		events[i] = (struct gp_own_event){ .kind = kind, .queue = describe(q) };
		if (q->place == OWN_GONE)
			set_free(own, q);
	}
	gp_book_unlock(&own->book, blocked);
	return (int)i;
}

static int own_queues(struct gp_own *own, struct gp_own_queue *queues, size_t n)
{
	gp_signals blocked;
	size_t count = 0;

	blocked = gp_book_lock(&own->book);
	for (uint32_t i = 0; i < own->top; i++) {
		if (own->queues[i].place != OWN_HERE)
			continue;
		if (count++ < n)
			queues[count - 1] = describe(&own->queues[i]);
	}
	gp_book_unlock(&own->book, blocked);
	return (int)count;
}

static int own_stopped(struct gp_own *own)
{
	return (int)__atomic_load_n(&own->nstopped, __ATOMIC_ACQUIRE);
}

const struct gp_own_ops gp_kfd_own = {
	.name = "kfd",
	.usual_way = GP_KFD_WAY_UPDATE,
	.ways = GP_KFD_WAY_UPDATE,
	.named_ways = GP_KFD_WAY_PRIVATE, /* to another driver its numbers are other calls */
	.drain_ways = GP_KFD_WAY_PRIVATE,
	.make = own_make,
	.free = own_free,
	.forget = own_forget,
	.wants = own_wants,
	.call = own_call,
	.events = own_events,
	.queues = own_queues,
	.stopped = own_stopped,
	.open = own_open,
	.apply = own_apply,
	.resume_all = own_resume_all,
	.activity = own_activity,
	.finished = own_finished,
};
