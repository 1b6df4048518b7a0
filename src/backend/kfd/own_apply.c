// SPDX-License-Identifier: MIT
/* Stops and resumes. */
#include "backend/kfd/own_internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define MS 1000000ull
#define SECOND (1000 * MS)
#define MOST_TRIES 100 /* of a call that was interrupted; signals are blocked, so it hardly ever is */

int own_drive(struct gp_own *own, int fd, unsigned long request, void *args)
{
	int r, tries = 0;

	do
		r = own->next(fd, request, args);
	while (r < 0 && (errno == EINTR || errno == EAGAIN) && ++tries < MOST_TRIES);
	return r < 0 ? -errno : 0;
}

/* The queue stays, with its id, until as many have left; a destroy waits. */
static void enter(struct gp_own *own, struct own_queue *q)
{
	q->calls++;
	gp_guard_give(&own->book.guard);
}

static void leave(struct gp_own *own, struct own_queue *q)
{
	gp_guard_take(&own->book.guard);
	q->ended = own->changes + 1;
	__atomic_store_n(&own->changes, q->ended, __ATOMIC_RELEASE);
	q->calls--;
	if (q->going)
		gp_guard_wake(&q->calls);
}

int own_settle(struct gp_own *own, struct own_queue *q, int fd)
{
	struct kfd_update_queue_args args;
	uint64_t changed;
	int r;

	do {
		changed = q->changed;
		args = q->set;
		if (q->state == OWN_STOPPED) {
			args.percent &= ~OWN_PERCENT;
			q->zeroed = 1;
		}
		enter(own, q);
		r = own_drive(own, fd, KFD_IOC_UPDATE_QUEUE, &args);
		leave(own, q);
	} while (changed != q->changed && !q->going);
	return r;
}

int own_private_resume(struct gp_own *own, uint32_t queue_id, int fd)
{
	struct kfd_private_resume_args args = { .queue_id = queue_id };

	return own_drive(own, fd, KFD_IOC_PRIVATE_RESUME, &args);
}

static int private_preempt(struct gp_own *own, struct own_queue *q, int fd, const struct gp_apply_opts *opts)
{
	uint64_t ms = (opts->timeout_ns + MS - 1) / MS;
	struct kfd_private_preempt_args args = {
		.queue_id = q->set.queue_id,
		.type = opts->type == GP_PREEMPT_DRAIN ? KFD_PRIVATE_DRAIN : KFD_PRIVATE_SAVE,
		.timeout_ms = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX,
	};
	int r;

	enter(own, q);
	r = own_drive(own, fd, KFD_IOC_PRIVATE_PREEMPT, &args);
	leave(own, q);
	return r == -ETIME ? -ETIMEDOUT : r; /* drivers have both, and mean the same */
}

static int run(struct gp_own *own, struct own_queue *q, int fd)
{
	int r = 0;

	if (q->state == OWN_RUNS)
		return 0;
	own_set_state(own, q, OWN_RUNS);
	if (q->going)
		return 0; /* if it does not go, who wants to destroy it tells the driver */
	if (q->way == GP_KFD_WAY_PRIVATE) {
		enter(own, q);
		r = own_private_resume(own, q->set.queue_id, fd);
		leave(own, q);
	}
	if (r == 0 && q->zeroed)
		r = own_settle(own, q, fd);
	if (r < 0)
		own_set_state(own, q, OWN_OWED);
	else
		q->zeroed = 0;
	return r;
}

/* A stop failed. The driver may have done half of it, but not if it refused the call itself. */
static void undo(struct gp_own *own, struct own_queue *q, int fd, int error)
{
	int refused = error == -EFAULT || error == -EINVAL || error == -EBADF;

	if (q->way == GP_KFD_WAY_PRIVATE) {
		enter(own, q);
		(void)own_private_resume(own, q->set.queue_id, fd);
		leave(own, q);
	}
	own_set_state(own, q, OWN_RUNS);
	if (q->going || !q->zeroed)
		return;
	if (own_settle(own, q, fd) < 0 && !refused)
		own_set_state(own, q, OWN_OWED);
	else
		q->zeroed = 0;
}

static int stop(struct gp_own *own, struct own_queue *q, int fd, const struct gp_apply_opts *opts)
{
	int r;

	if (q->going)
		return -ENOENT;
	if (q->state == OWN_STOPPED)
		return 0;
	own_set_state(own, q, OWN_STOPPED);
	q->way = opts->way;
	r = opts->way == GP_KFD_WAY_PRIVATE ? private_preempt(own, q, fd, opts) : own_settle(own, q, fd);
	if (r < 0)
		undo(own, q, fd, r);
	return r;
}

static int check(const struct gp_want *want, const struct gp_apply_opts *opts)
{
	if (want->want > GP_STOP || opts->type > GP_PREEMPT_RESET)
		return -EINVAL;
	if (want->want == GP_BACKGROUND)
		return -ENOTSUP;
	if (want->want == GP_RUN)
		return 0;                   /* goes the way its stop went */
	if (opts->type == GP_PREEMPT_RESET) /* loses work */
		return -ENOTSUP;
	if (opts->type == GP_PREEMPT_DRAIN && opts->way == GP_KFD_WAY_UPDATE)
		return -ENOTSUP; /* it takes the queue off at once */
	return opts->way == GP_KFD_WAY_UPDATE || opts->way == GP_KFD_WAY_PRIVATE ? 0 : -ENOTSUP;
}

static int apply_one(struct gp_own *own, int fd, const struct gp_want *want, const struct gp_apply_opts *opts)
{
	struct own_queue *q;
	gp_signals blocked;
	int r = check(want, opts);

	if (r < 0)
		return r;
	blocked = gp_book_lock(&own->book);
	q = own_find(own, want->queue);
	if (!q)
		r = -ENOENT;
	else
		r = want->want == GP_STOP ? stop(own, q, fd, opts) : run(own, q, fd);
	gp_book_unlock(&own->book, blocked);
	return r;
}

int own_apply(struct gp_own *own, int fd, struct gp_want *wants, size_t n, const struct gp_apply_opts *opts)
{
	struct gp_apply_opts o = { .way = opts && opts->way ? opts->way : GP_KFD_WAY_UPDATE,
				   .type = opts ? opts->type : GP_PREEMPT_SAVE,
				   .timeout_ns = opts && opts->timeout_ns ? opts->timeout_ns : SECOND };
	int driver = fd < 0 && n ? own_open(own) : fd, r = 0;

	for (size_t i = 0; i < n; i++) {
		wants[i].status = driver < 0 ? driver : apply_one(own, driver, &wants[i], &o);
		if (!r)
			r = wants[i].status;
	}
	if (driver >= 0 && fd < 0)
		(void)close(driver);
	return r;
}

/* The number of a queue at or after place *at that is stopped; 0: there is none. */
static uint64_t next_stopped(struct gp_own *own, uint32_t *at)
{
	uint64_t number = 0;
	gp_signals blocked;

	blocked = gp_book_lock(&own->book);
	for (; *at < own->top && !number; (*at)++)
		if (own->queues[*at].place == OWN_HERE && own->queues[*at].state != OWN_RUNS)
			number = own->queues[*at].number;
	gp_book_unlock(&own->book, blocked);
	return number;
}

int own_resume_all(struct gp_own *own, int fd)
{
	int driver = fd, r = 0, one;
	struct gp_want want = { .want = GP_RUN };
	uint32_t at = 0;

	while ((want.queue = next_stopped(own, &at))) {
		if (driver < 0)
			driver = own_open(own);
		if (driver < 0)
			return r ? r : driver;
		one = own_apply(own, driver, &want, 1, NULL);
		if (!r && one != -ENOENT)
			r = one;
	}
	if (driver >= 0 && fd < 0)
		(void)close(driver);
	return r;
}
