// SPDX-License-Identifier: MIT
/* The application's calls. Each is passed on once, as it is or with our slice; its result, errno and status
 * are the driver's. */
#include "backend/nvrm/own_internal.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* Of a slice that the driver is known to take: one that it would refuse, it shall see. */
#define LONGEST_US 100000u

/* Other sizes are other calls, or of a driver that we do not know. */
uint32_t rm_wants(unsigned long request)
{
	switch ((unsigned int)request) {
	case NVRM_IOC_ALLOC:
	case NVRM_IOC_ALLOC_RIGHTS:
		return GP_OWN_CREATE;
	case NVRM_IOC_FREE:
	case NVRM_IOC_DUP:
	case NVRM_IOC_CONTROL:
		return GP_OWN_CALL;
	default:
		return GP_OWN_NOTHING;
	}
}

/* A child that came about without fork() has a copy of its parent's book. */
static void forget_parent(struct gp_own *own)
{
	int pid = getpid(), seen = __atomic_load_n(&own->pid, __ATOMIC_RELAXED);

	if (seen != pid &&
	    __atomic_compare_exchange_n(&own->pid, &seen, pid, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		rm_forget(own);
}

/* What is allocated */

static uint32_t is_engine(uint32_t object_class)
{
	uint32_t kind = NVRM_KIND(object_class);

	return object_class >= NVRM_FIRST_KIND && (kind == NVRM_KIND_COMPUTE || kind == NVRM_KIND_COPY);
}

static enum rm_kind kind_of(uint32_t object_class)
{
	switch (object_class) {
	case NVRM_ROOT:
	case NVRM_ROOT_NON_PRIV:
	case NVRM_ROOT_CLIENT:
		return RM_CLIENT;
	case NVRM_DEVICE:
		return RM_DEVICE;
	case NVRM_SUBDEVICE:
		return RM_SUBDEVICE;
	case NVRM_GROUP:
		return RM_GROUP;
	default:
		return object_class >= NVRM_FIRST_KIND && NVRM_KIND(object_class) == NVRM_KIND_CHANNEL
			       ? RM_CHANNEL
			       : RM_FREE;
	}
}

/* Which GPU a subdevice is of; 0: the driver does not say. */
static uint32_t ask_gpu(struct gp_own *own, int fd, uint32_t client, uint32_t subdevice)
{
	struct nvrm_id id = { 0 };
	struct nvrm_control control = { .client = client,
					.object = subdevice,
					.command = NVRM_GET_ID,
					.params = (uintptr_t)&id,
					.params_size = sizeof(id) };

	return rm_control(own, fd, &control) == 0 ? id.gpu : 0;
}

static uint32_t engine_of(const struct nvrm_alloc *a)
{
	struct nvrm_group_params params = { 0 };

	if (a->params && gp_caller_peek((const void *)(uintptr_t)a->params, &params, sizeof(params)))
		return params.engine;
	return 0;
}

/* One that is added to a stopped group must not run. */
static void note_channel(struct gp_own *own, const struct nvrm_alloc *a)
{
	struct rm_queue *q = rm_note_channel(own, a->client, a->parent, a->object);

	if (q && q->want == GP_STOP)
		(void)rm_settle(own, q); /* it is tried again with the next want */
}

/* A group that turns out to be for compute has a slice to change. */
static void note_engine(struct gp_own *own, const struct nvrm_alloc *a)
{
	uint32_t is_compute = NVRM_KIND(a->object_class) == NVRM_KIND_COMPUTE;
	struct rm_queue *q;

	rm_note_engine(own, a->client, a->parent, is_compute ? GP_KIND_COMPUTE : GP_KIND_SDMA);
	q = rm_find_queue(own, a->client, a->parent);
	if (q && q->want == GP_BACKGROUND)
		(void)rm_settle(own, q);
}

/* found: of a group its engine, of a subdevice its GPU. */
static void note(struct gp_own *own, int fd, const struct nvrm_alloc *a, enum rm_kind kind, uint32_t found)
{
	struct rm_object *before = rm_object(own, a->object, a->object);

	if (kind == RM_CLIENT && before)
		rm_remove(own, before); /* its file was closed, and another has its handle */
	rm_note_client(own, kind == RM_CLIENT ? a->object : a->client, fd);
	if (kind == RM_DEVICE)
		rm_note_device(own, a->client, a->object, 0);
	else if (kind == RM_SUBDEVICE)
		rm_note_subdevice(own, a->client, a->parent, a->object, found);
	else if (kind == RM_GROUP)
		rm_note_group(own, a->client, a->parent, a->object, found);
	else if (kind == RM_CHANNEL)
		note_channel(own, a);
	else if (kind == RM_FREE)
		note_engine(own, a);
}

static void after_alloc(struct gp_own *own, int fd, const struct nvrm_alloc *a)
{
	enum rm_kind kind = kind_of(a->object_class);
	gp_signals blocked;
	uint32_t found = 0;

	if (a->status != NVRM_OK || (kind == RM_FREE && !is_engine(a->object_class)))
		return;
	if (kind == RM_SUBDEVICE)
		found = ask_gpu(own, fd, a->client, a->object);
	else if (kind == RM_GROUP)
		found = engine_of(a);
	forget_parent(own);
	blocked = gp_book_lock(&own->book);
	note(own, fd, a, kind, found);
	gp_book_unlock(&own->book, blocked);
}

static int alloc(struct gp_own *own, int fd, unsigned long request, void *args)
{
	struct nvrm_alloc_rights longer;
	struct nvrm_alloc a;
	int r = own->next(fd, request, args), error = errno;

	if (r >= 0) { /* the driver has just written there */
		memcpy(&a, args, sizeof(a));
		if ((unsigned int)request == NVRM_IOC_ALLOC_RIGHTS) {
			memcpy(&longer, args, sizeof(longer));
			a.status = longer.status;
		}
		after_alloc(own, fd, &a);
	}
	errno = error;
	return r;
}

/* A channel cannot be duplicated, and one that is in a group twice is freed with the first. */
static void after_dup(struct gp_own *own, int fd, const struct nvrm_dup *d)
{
	gp_signals blocked = gp_book_lock(&own->book);
	const struct rm_object *from = rm_object(own, d->client_from, d->object_from);
	uint32_t kind = from ? from->kind : RM_FREE, gpu_id = from ? from->gpu_id : 0;

	if (kind == RM_DEVICE || kind == RM_SUBDEVICE)
		rm_note_client(own, d->client, fd);
	if (kind == RM_DEVICE)
		rm_note_device(own, d->client, d->object, gpu_id);
	if (kind == RM_SUBDEVICE)
		rm_note_subdevice(own, d->client, d->parent, d->object, gpu_id);
	gp_book_unlock(&own->book, blocked);
}

static int dup_object(struct gp_own *own, int fd, unsigned long request, void *args)
{
	struct nvrm_dup d;
	int r = own->next(fd, request, args), error = errno;

	if (r >= 0) {
		memcpy(&d, args, sizeof(d));
		if (d.status == NVRM_OK)
			after_dup(own, fd, &d);
	}
	errno = error;
	return r;
}

/* What is freed */

static struct rm_queue *busy_queue(struct gp_own *own, uint32_t client)
{
	for (uint32_t i = 0; i < own->top; i++)
		if (own->queues[i].place == RM_HERE && own->queues[i].client == client &&
		    own->queues[i].calls)
			return &own->queues[i];
	return NULL;
}

/* With the lock held, which it lets go of meanwhile. */
static void await_calls(struct gp_own *own, uint32_t client, gp_signals *blocked)
{
	struct rm_queue *q;
	uint32_t calls;

	while ((q = busy_queue(own, client))) {
		calls = q->calls;
		gp_book_unlock(&own->book, *blocked);
		gp_guard_wait(&q->calls, calls);
		*blocked = gp_book_lock(&own->book);
	}
}

/* From here on nobody is in a call of ours about the object or what is below it, and nobody begins one. 0: it
 * is not in the book. */
static int before_free(struct gp_own *own, const struct nvrm_free *f)
{
	gp_signals blocked = gp_book_lock(&own->book);
	const struct rm_object *o = rm_object(own, f->client, f->object);

	if (o) {
		rm_mark(own, o, 1);
		await_calls(own, f->client, &blocked);
	}
	gp_book_unlock(&own->book, blocked);
	return o != NULL;
}

/* With the lock held. Nobody hears of it here: a resume that failed is owed, and a stop is tried again with
 * the next want. */
static void settle(struct gp_own *own, struct rm_queue *q)
{
	if (rm_settle(own, q) < 0 && q->place == RM_HERE && q->want == GP_RUN)
		rm_set_want(own, q, GP_RUN, 1);
}

/* What was wanted meanwhile of what stays after all. */
static void settle_client(struct gp_own *own, uint32_t client)
{
	for (uint32_t i = 0; i < own->top; i++)
		if (own->queues[i].place == RM_HERE && own->queues[i].client == client)
			settle(own, &own->queues[i]);
}

static void after_free(struct gp_own *own, const struct nvrm_free *f, int is_gone)
{
	gp_signals blocked = gp_book_lock(&own->book);
	struct rm_object *o = rm_object(own, f->client, f->object);

	if (o && o->going && is_gone) { /* else another has its handle by now */
		rm_remove(own, o);
	} else if (o && o->going) {
		rm_mark(own, o, -1);
		settle_client(own, f->client);
	}
	gp_book_unlock(&own->book, blocked);
}

/* Whoever has begun to free comes back: until then nobody could resume what stays. */
static int free_object(struct gp_own *own, int fd, unsigned long request, void *args)
{
	struct nvrm_free f, after;
	gp_signals blocked;
	int r, error, is_known;

	if (!gp_caller_peek(args, &f, sizeof(f)))
		return own->next(fd, request, args);
	blocked = gp_guard_stay();
	is_known = before_free(own, &f);
	r = own->next(fd, request, args);
	error = errno;
	if (is_known) {
		memcpy(&after, r >= 0 ? args : &f, sizeof(after));
		after_free(own, &f, r >= 0 && after.status == NVRM_OK);
	}
	gp_guard_unblock(blocked);
	errno = error;
	return r;
}

/* Slices */

/* The driver took a slice for the group; ours: in the place of the application's. */
static void after_slice(struct gp_own *own, const struct nvrm_control *c, uint64_t us, int ours)
{
	gp_signals blocked = gp_book_lock(&own->book);
	struct rm_queue *q = rm_find_queue(own, c->client, c->object);

	if (q) {
		q->slice_us = us;
		q->yields = (uint32_t)ours;
		settle(own, q); /* something else may be wanted by now */
	}
	gp_book_unlock(&own->book, blocked);
}

static int is_background(struct gp_own *own, const struct nvrm_control *c)
{
	gp_signals blocked = gp_book_lock(&own->book);
	const struct rm_queue *q = rm_find_queue(own, c->client, c->object);
	int is = q && q->yields;

	gp_book_unlock(&own->book, blocked);
	return is;
}

static int set_slice(struct gp_own *own, int fd, unsigned long request, void *args, struct nvrm_control *c)
{
	struct nvrm_timeslice theirs, ours = { RM_YIELD_US };
	int r, error, lent;

	if (c->params_size != sizeof(theirs) ||
	    !gp_caller_peek((const void *)(uintptr_t)c->params, &theirs, sizeof(theirs)))
		return own->next(fd, request, args);
	lent = theirs.us && theirs.us <= LONGEST_US && is_background(own, c);
	if (lent)
		c->params = (uintptr_t)&ours;
	r = own->next(fd, request, lent ? (void *)c : args);
	error = errno;
	if (r >= 0 && lent)
		(void)gp_caller_poke((char *)args + offsetof(struct nvrm_control, status), &c->status,
				     sizeof(c->status));
	if (r >= 0 && !lent)
		memcpy(c, args, sizeof(*c));
	if (r >= 0 && c->status == NVRM_OK)
		after_slice(own, c, theirs.us, lent);
	errno = error;
	return r;
}

/*
 * Channels.  Runtimes disable and enable their own too, while they make some or have done with them, and go
 * on as if it held: what the application has disabled is not enabled by us, and what it enables while it is
 * to stand still is disabled again.
 */

static struct rm_object *channel_of(struct gp_own *own, const struct nvrm_disable_channels *d, uint32_t i)
{
	struct rm_object *o = rm_object(own, d->client[i], d->channel[i]);

	return o && o->kind == RM_CHANNEL ? o : NULL;
}

/* As before_free(), of these channels alone. 0: none of them is in the book. */
static int before_switch(struct gp_own *own, const struct nvrm_disable_channels *d)
{
	gp_signals blocked = gp_book_lock(&own->book);
	int is_known = 0;

	for (uint32_t i = 0; i < d->n; i++) {
		struct rm_object *o = channel_of(own, d, i);

		if (!o)
			continue;
		o->going++;
		is_known = 1;
	}
	for (uint32_t i = 0; is_known && i < d->n; i++)
		await_calls(own, d->client[i], &blocked);
	gp_book_unlock(&own->book, blocked);
	return is_known;
}

/* The driver has done it, or has not; or it says that it has not, and has. */
static void note_switch(struct rm_object *o, uint8_t disable, int is_done)
{
	if (is_done)
		o->is_theirs = disable != 0;
	if (is_done && !disable)
		o->off = RM_ON;
	else if (!disable && o->off == RM_OFF)
		o->off = RM_PERHAPS;
}

static void after_switch(struct gp_own *own, const struct nvrm_disable_channels *d, int is_done)
{
	gp_signals blocked = gp_book_lock(&own->book);
	uint32_t last = RM_NO_QUEUE; /* once each: what fails would be tried for every channel */
	struct rm_object *o;

	for (uint32_t i = 0; i < d->n; i++) {
		o = channel_of(own, d, i);
		if (!o || !o->going) /* it went, or another has its handle by now */
			continue;
		o->going--;
		note_switch(o, d->disable, is_done);
	}
	for (uint32_t i = 0; i < d->n; i++) {
		o = channel_of(own, d, i);
		if (!o || o->queue == RM_NO_QUEUE || o->queue == last)
			continue;
		last = o->queue;
		settle(own, &own->queues[last]);
	}
	gp_book_unlock(&own->book, blocked);
}

/* Whoever has begun comes back, as from free_object(): until then nobody resumes these channels. */
static int switch_theirs(struct gp_own *own, int fd, unsigned long request, void *args,
			 struct nvrm_control *c)
{
	struct nvrm_disable_channels d;
	gp_signals blocked;
	int r, error, is_known;

	if (c->params_size != sizeof(d) ||
	    !gp_caller_peek((const void *)(uintptr_t)c->params, &d, sizeof(d)) || d.n > NVRM_MOST_CHANNELS)
		return own->next(fd, request, args);
	blocked = gp_guard_stay();
	is_known = before_switch(own, &d);
	r = own->next(fd, request, args);
	error = errno;
	if (r >= 0)
		memcpy(c, args, sizeof(*c));
	if (is_known)
		after_switch(own, &d, r >= 0 && c->status == NVRM_OK);
	gp_guard_unblock(blocked);
	errno = error;
	return r;
}

static int control(struct gp_own *own, int fd, unsigned long request, void *args)
{
	struct nvrm_control c;

	if (!gp_caller_peek(args, &c, sizeof(c)))
		return own->next(fd, request, args);
	if (c.command == NVRM_SET_TIMESLICE)
		return set_slice(own, fd, request, args, &c);
	if (c.command == NVRM_DISABLE_CHANNELS)
		return switch_theirs(own, fd, request, args, &c);
	return own->next(fd, request, args);
}

static int dispatch(struct gp_own *own, int fd, unsigned long request, void *args)
{
	unsigned int nr = _IOC_NR((unsigned int)request);

	if (!gp_driver_file_is(&own->file, fd))
		return own->next(fd, request, args);
	if (nr == NVRM_NR_ALLOC)
		return alloc(own, fd, request, args);
	if (own->pid != getpid())
		return own->next(fd, request, args); /* a child's: it has no object yet */
	if (nr == NVRM_NR_DUP)
		return dup_object(own, fd, request, args);
	return nr == NVRM_NR_FREE ? free_object(own, fd, request, args) : control(own, fd, request, args);
}

int rm_call(struct gp_own *own, int fd, unsigned long request, void *args, int priority)
{
	int before = errno, r = dispatch(own, fd, request, args);

	(void)priority; /* a group has none */
	if (r >= 0)
		errno = before;
	return r;
}
