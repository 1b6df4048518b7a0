// SPDX-License-Identifier: MIT
/* Stops, resumes and slices. */
#include "backend/nvrm/own_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_TRIES 100        /* of a call that was interrupted, or that the driver has no time for */
#define OUT_OF_THE_WAY 256    /* of programs that count their descriptors */
#define MOST_DESCRIPTORS 1024 /* that are looked at for one that reaches a client */

/* Calls */

static int error_of(uint32_t status)
{
	switch (status) {
	case NVRM_OK:
		return 0;
	case NVRM_BUSY_RETRY:
	case NVRM_TIMEOUT_RETRY:
		return -EBUSY;
	case NVRM_GPU_IS_LOST:
		return -ENODEV;
	case NVRM_INSUFFICIENT_PERMISSIONS:
		return -EPERM;
	case NVRM_INVALID_ARGUMENT:
		return -EINVAL;
	case NVRM_INVALID_CLIENT:
		return -ESTALE;
	case NVRM_INVALID_CHANNEL:
	case NVRM_INVALID_OBJECT:
	case NVRM_INVALID_OBJECT_HANDLE:
	case NVRM_OBJECT_NOT_FOUND:
		return -ENOENT;
	case NVRM_INVALID_COMMAND:
	case NVRM_NOT_SUPPORTED:
		return -ENOTSUP;
	case NVRM_TIMEOUT:
		return -ETIME;
	default:
		return -EIO;
	}
}

/* Not -EAGAIN, which here means that it is done: whoever heard that would call again without end. */
static int error_of_call(void)
{
	return errno == EAGAIN || errno == EINTR ? -EBUSY : -errno;
}

int rm_control(struct gp_own *own, int fd, struct nvrm_control *c)
{
	int r, tries = 0;

	do {
		c->status = NVRM_INVALID_STATE; /* in case nobody writes there */
		r = own->next(fd, NVRM_IOC_CONTROL, c) < 0 ? error_of_call() : error_of(c->status);
	} while (r == -EBUSY && ++tries < MOST_TRIES);
	return r;
}

/* -EBADF: it is not the driver's by now. No point here at which the application's thread can be cancelled. */
static int control_by(struct gp_own *own, int fd, struct nvrm_control *c)
{
	long copy = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
	int by = copy >= 0 ? (int)copy : fd; /* there may be no number left */
	int r = gp_driver_file_is(&own->file, by) ? rm_control(own, by, c) : -EBADF;

	if (copy >= 0)
		(void)syscall(SYS_close, copy);
	return r;
}

/* The application may have duplicated its descriptor, and closed the one that we know. RM takes a client's
 * calls by its own file alone, so a wrong one does nothing. */
static int control_by_any(struct gp_own *own, int *fd, struct nvrm_control *c)
{
	int r = control_by(own, *fd, c), other;

	for (int i = 0; (r == -ESTALE || r == -EBADF) && i < MOST_DESCRIPTORS; i++) {
		if (i == *fd || !gp_driver_file_is(&own->file, i))
			continue;
		other = control_by(own, i, c);
		if (other != -ESTALE && other != -EBADF) {
			*fd = i;
			return other;
		}
	}
	return r == -EBADF ? -ESTALE : r;
}

/* The queue stays, with all handles, until as many have left; who frees one waits. */
static void enter(struct gp_own *own, struct rm_queue *q)
{
	q->calls++;
	gp_guard_give(&own->book.guard);
}

static void leave(struct gp_own *own, struct rm_queue *q)
{
	gp_guard_take(&own->book.guard);
	q->calls--;
	gp_guard_wake(&q->calls);
}

/* With the lock held, which it lets go of. -ESTALE: the client is not there any more. */
static int call(struct gp_own *own, struct rm_queue *q, uint32_t object, uint32_t command, void *params,
		uint32_t size)
{
	struct nvrm_control c = { .client = q->client,
				  .object = object,
				  .command = command,
				  .params = (uintptr_t)params,
				  .params_size = size };
	struct rm_object *client = rm_object(own, q->client, q->client);
	int fd = client ? client->fd : -1, r;

	enter(own, q);
	r = control_by_any(own, &fd, &c);
	leave(own, q);
	client = rm_object(own, q->client, q->client);
	if (client && r != -ESTALE)
		client->fd = fd;
	return r;
}

/* Channels */

/* Whether it is a channel that is not as it should be. */
static int is_due(const struct gp_own *own, const struct rm_object *o)
{
	const struct rm_queue *q =
		o->kind == RM_CHANNEL && o->queue != RM_NO_QUEUE ? &own->queues[o->queue] : NULL;

	return q && !q->going && !o->going && !o->is_theirs &&
	       o->off != (q->want == GP_STOP ? RM_OFF : RM_ON);
}

/* Of the queue, and of others on its device that want the same: one call does for all. */
static void collect(const struct gp_own *own, const struct rm_queue *q, struct nvrm_disable_channels *ret)
{
	ret->disable = q->want == GP_STOP;
	for (uint32_t i = 0; i < own->top_object && ret->n < NVRM_MOST_CHANNELS; i++) {
		const struct rm_object *o = &own->objects[i];

		if (!is_due(own, o) || o->client != q->client ||
		    (own->queues[o->queue].want == GP_STOP) != ret->disable ||
		    own->queues[o->queue].device != q->device)
			continue;
		ret->client[ret->n] = o->client;
		ret->channel[ret->n++] = o->handle;
	}
}

static int has_due(const struct gp_own *own, const struct rm_queue *q)
{
	for (uint32_t i = 0; i < own->top_object; i++)
		if (own->objects[i].queue == (uint32_t)(q - own->queues) && is_due(own, &own->objects[i]))
			return 1;
	return 0;
}

static void note_channels(struct gp_own *own, const struct nvrm_disable_channels *done, uint8_t off)
{
	for (uint32_t i = 0; i < done->n; i++) {
		struct rm_object *o = rm_object(own, done->client[i], done->channel[i]);

		if (o)
			o->off = off;
	}
}

/* Whether the driver did not even begin. */
static int is_refused(int error)
{
	return error == -ENOTSUP || error == -EPERM || error == -EINVAL || error == -ENOENT ||
	       error == -ENODEV || error == -ESTALE;
}

/* -EAGAIN: it is done, and something else may be wanted by now. */
static int switch_these(struct gp_own *own, struct rm_queue *q, struct nvrm_disable_channels *args)
{
	const struct rm_object *subdevice = rm_subdevice(own, q);
	int r;

	if (!subdevice)
		return -ENODEV;
	r = call(own, q, subdevice->handle, NVRM_DISABLE_CHANNELS, args, sizeof(*args));
	if (r == 0)
		note_channels(own, args, args->disable ? RM_OFF : RM_ON);
	else if (args->disable && !is_refused(r))
		note_channels(own, args, RM_PERHAPS);
	return r == 0 ? -EAGAIN : r;
}

/* One that the driver does not know, or cannot enable, shall not keep the others from running. */
static int enable_each(struct gp_own *own, struct rm_queue *q)
{
	int r = -EAGAIN, one;

	for (uint32_t i = 0; i < own->top_object && q->want != GP_STOP; i++) {
		struct nvrm_disable_channels args = { .n = 1, .client = { own->objects[i].client } };

		if (own->objects[i].queue != (uint32_t)(q - own->queues) || !is_due(own, &own->objects[i]))
			continue;
		args.channel[0] = own->objects[i].handle;
		one = switch_these(own, q, &args);
		if (one == -ENOENT) { /* it went by a way that we do not see */
			note_channels(own, &args, RM_ON);
			one = -EAGAIN;
		}
		if (r == -EAGAIN)
			r = one;
	}
	return r;
}

/* One that RM does not know is out of the book after it. */
static int knows_subdevice(struct gp_own *own, struct rm_queue *q)
{
	struct rm_object *subdevice = rm_subdevice(own, q);
	uint32_t handle = subdevice ? subdevice->handle : 0;
	struct nvrm_id id;

	if (!subdevice)
		return 0;
	if (call(own, q, handle, NVRM_GET_ID, &id, sizeof(id)) != -ENOENT)
		return 1;
	subdevice = rm_object(own, q->client, handle);
	if (subdevice && !subdevice->going)
		rm_remove(own, subdevice);
	return 0;
}

/*
 * RM frees a channel with what it was made of too, its address space or its error notifier, and we follow
 * neither.  One that it does not know fails the call for all: each is enabled, which it is, and what RM
 * says of it tells, if it is not the subdevice that went.  -EAGAIN: some are out of the book now.
 */
static int forget_unknown(struct gp_own *own, struct rm_queue *q, const struct nvrm_disable_channels *tried)
{
	int r = knows_subdevice(own, q) ? -ENOENT : -ENODEV;

	for (uint32_t i = 0; i < tried->n && q->place == RM_HERE && r != -ENODEV; i++) {
		struct nvrm_disable_channels one = { .n = 1,
						     .client = { tried->client[i] },
						     .channel = { tried->channel[i] } };
		struct rm_object *o;

		if (switch_these(own, q, &one) != -ENOENT)
			continue;
		o = rm_object(own, tried->client[i], tried->channel[i]);
		if (o && !o->going)
			rm_remove(own, o);
		r = -EAGAIN;
	}
	return r;
}

static int switch_channels(struct gp_own *own, struct rm_queue *q)
{
	struct nvrm_disable_channels args = { 0 };
	int r;

	if (q->place != RM_HERE || q->going || !has_due(own, q))
		return 0;
	collect(own, q, &args);
	r = switch_these(own, q, &args);
	if (r == -ENOENT && args.disable)
		return forget_unknown(own, q, &args);
	if (r != -EAGAIN && r != -ESTALE && r != -ENODEV && q->want != GP_STOP && q->place == RM_HERE)
		r = enable_each(own, q);
	return r;
}

/* Slices */

/* Copies are short, and nobody waits long for them. */
static uint32_t is_yielding(const struct rm_queue *q)
{
	return q->want == GP_BACKGROUND && q->kind == GP_KIND_COMPUTE;
}

static int get_slice(struct gp_own *own, struct rm_queue *q)
{
	struct nvrm_timeslice slice = { 0 };
	int r = call(own, q, q->handle, NVRM_GET_TIMESLICE, &slice, sizeof(slice));

	if (r == 0 && !slice.us)
		r = -ENODATA;
	if (r == 0 && !q->slice_us) /* else the application has set one meanwhile */
		q->slice_us = slice.us;
	return r;
}

/* -EAGAIN: it is done, and something else may be wanted by now. */
static int switch_slice(struct gp_own *own, struct rm_queue *q)
{
	uint32_t yields = is_yielding(q);
	struct nvrm_timeslice slice;
	int r;

	if (q->place != RM_HERE || q->going || q->want == GP_STOP || yields == q->yields)
		return 0;
	if (!q->slice_us) { /* or nobody could give it back */
		r = get_slice(own, q);
		return r < 0 ? r : -EAGAIN;
	}
	slice.us = yields ? RM_YIELD_US : q->slice_us;
	r = call(own, q, q->handle, NVRM_SET_TIMESLICE, &slice, sizeof(slice));
	if (r == 0 || (yields && !is_refused(r)))
		q->yields = yields;
	return r == 0 ? -EAGAIN : r;
}

/* A slice that the driver refuses keeps no channel from being enabled. */
int rm_settle(struct gp_own *own, struct rm_queue *q)
{
	int slice, r;

	do {
		slice = switch_slice(own, q);
		r = slice == -EAGAIN ? slice : switch_channels(own, q);
	} while (r == -EAGAIN);
	return slice < 0 ? slice : r;
}

/* Wants */

static int begin(struct gp_own *own, struct rm_queue *q, uint32_t want)
{
	if (want == GP_STOP && q->is_partial)
		return -ENOSPC;
	if (q->going && want != GP_RUN)
		return -ENOENT;
	q->before = q->want;
	rm_set_want(own, q, want, 0);
	return 0;
}

/* A stop that failed leaves it running, in the background if it was; a resume is tried again. */
static int finish(struct gp_own *own, struct rm_queue *q, uint32_t want)
{
	int r = rm_settle(own, q);

	if (r == 0 || q->place != RM_HERE)
		return r;
	if (want != GP_RUN) {
		rm_set_want(own, q, q->before == GP_BACKGROUND && want == GP_STOP ? GP_BACKGROUND : GP_RUN,
			    0);
		if (rm_settle(own, q) == 0)
			return r;
	}
	rm_set_want(own, q, GP_RUN, 1);
	return r;
}

static int check(const struct gp_want *want, const struct gp_apply_opts *opts)
{
	if (want->want > GP_STOP || (opts && opts->type > GP_PREEMPT_RESET))
		return -EINVAL;
	if (want->want != GP_STOP || !opts)
		return 0;
	if (opts->type != GP_PREEMPT_SAVE) /* a reset loses work, and nobody knows when a group is empty */
		return -ENOTSUP;
	return !opts->way || opts->way == GP_NVRM_WAY_PARK ? 0 : -ENOTSUP;
}

static int begin_one(struct gp_own *own, const struct gp_want *want, const struct gp_apply_opts *opts)
{
	struct rm_queue *q = rm_find(own, want->queue);
	int r = check(want, opts);

	if (r == 0)
		r = q ? begin(own, q, want->want) : -ENOENT;
	return r;
}

static int finish_one(struct gp_own *own, const struct gp_want *want)
{
	struct rm_queue *q = rm_find(own, want->queue);
	int r = q ? finish(own, q, want->want) : -ENOENT;
	struct rm_object *client;

	if (r != -ESTALE)
		return r;
	client = rm_object(own, q->client, q->client);
	if (client) /* no file reaches it: its own was closed */
		rm_remove(own, client);
	return -ENOENT;
}

/* First what is wanted of all, so that the first call does it. */
int rm_apply(struct gp_own *own, int fd, struct gp_want *wants, size_t n, const struct gp_apply_opts *opts)
{
	gp_signals blocked = gp_book_lock(&own->book);
	int r = 0;

	(void)fd; /* each client has its own */
	for (size_t i = 0; i < n; i++)
		wants[i].status = begin_one(own, &wants[i], opts);
	for (size_t i = 0; i < n; i++) {
		if (wants[i].status == 0)
			wants[i].status = finish_one(own, &wants[i]);
		if (!r)
			r = wants[i].status;
	}
	gp_book_unlock(&own->book, blocked);
	return r;
}

/* So that the first call does it. */
static void owe_all(struct gp_own *own)
{
	gp_signals blocked = gp_book_lock(&own->book);

	for (uint32_t i = 0; i < own->top; i++)
		if (own->queues[i].place == RM_HERE && own->queues[i].want != GP_RUN)
			rm_set_want(own, &own->queues[i], GP_RUN, 1);
	gp_book_unlock(&own->book, blocked);
}

/* The number of a queue at or after place *at that is owed a resume; 0: there is none. */
static uint64_t next_owed(struct gp_own *own, uint32_t *at)
{
	gp_signals blocked = gp_book_lock(&own->book);
	uint64_t number = 0;

	for (; *at < own->top && !number; (*at)++)
		if (own->queues[*at].place == RM_HERE && own->queues[*at].is_owed)
			number = own->queues[*at].number;
	gp_book_unlock(&own->book, blocked);
	return number;
}

int rm_resume_all(struct gp_own *own, int fd)
{
	struct gp_want want = { .want = GP_RUN };
	uint32_t at = 0;
	int r = 0, one;

	owe_all(own);
	while ((want.queue = next_owed(own, &at))) {
		one = rm_apply(own, fd, &want, 1, NULL);
		if (!r && one != -ENOENT)
			r = one;
	}
	return r;
}
