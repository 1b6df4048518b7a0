// SPDX-License-Identifier: MIT
/* The application's calls. Each is passed on once, as it is or with 0 percent; its result and errno are the
 * driver's. */
#include "backend/kfd/own_internal.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define MOST_ARGS 256u /* bytes of a request: no driver has had one as large */

enum {
	NR_CREATE = _IOC_NR(KFD_IOC_CREATE_QUEUE),
	NR_DESTROY = _IOC_NR(KFD_IOC_DESTROY_QUEUE),
	NR_UPDATE = _IOC_NR(KFD_IOC_UPDATE_QUEUE)
};

/* Where what we need of each ends: older drivers' structs are shorter than ours, newer ones may be longer. */
#define CREATE_BYTES offsetof(struct kfd_create_queue_args, eop)
#define DESTROY_BYTES offsetof(struct kfd_destroy_queue_args, pad)
#define UPDATE_BYTES sizeof(struct kfd_update_queue_args)

uint32_t own_wants(unsigned long request)
{
	unsigned int cmd = (unsigned int)request, size = _IOC_SIZE(cmd);

	if (_IOC_TYPE(cmd) != 'K' || size > MOST_ARGS)
		return GP_OWN_NOTHING;
	switch (_IOC_NR(cmd)) {
	case NR_CREATE:
		return size >= CREATE_BYTES ? GP_OWN_CREATE : GP_OWN_NOTHING;
	case NR_DESTROY:
		return size >= DESTROY_BYTES ? GP_OWN_CALL : GP_OWN_NOTHING;
	case NR_UPDATE:
		return size >= UPDATE_BYTES ? GP_OWN_CALL : GP_OWN_NOTHING;
	default:
		return GP_OWN_NOTHING;
	}
}

/* True if it is in the caller's struct now, where its own was *ret_old. */
static int lend_priority(void *args, uint32_t priority, uint32_t *ret_old)
{
	char *at = (char *)args + offsetof(struct kfd_create_queue_args, priority);

	return args && gp_caller_peek(at, ret_old, sizeof(*ret_old)) &&
	       gp_caller_poke(at, &priority, sizeof(priority));
}

/* A child that came about without fork() has a copy of its parent's book. */
static void forget_parent(struct gp_own *own)
{
	int pid = getpid(), seen = __atomic_load_n(&own->pid, __ATOMIC_RELAXED);

	if (seen != pid &&
	    __atomic_compare_exchange_n(&own->pid, &seen, pid, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		own_forget(own);
}

static int create(struct gp_own *own, int fd, unsigned long request, void *args, int priority)
{
	struct kfd_create_queue_args a = { 0 };
	uint32_t old;
	int lent = priority >= 0 && lend_priority(args, (uint32_t)priority, &old), r, error;
	gp_signals blocked;

	r = own->next(fd, request, args);
	error = errno;
	if (r >= 0)
		memcpy(&a, args, CREATE_BYTES); /* the driver has just written there */
	if (lent)
		(void)gp_caller_poke((char *)args + offsetof(struct kfd_create_queue_args, priority), &old,
				     sizeof(old));
	if (r >= 0) {
		forget_parent(own);
		blocked = gp_book_lock(&own->book);
		own_add(own, &a);
		gp_book_unlock(&own->book, blocked);
		gp_own_ring = a.ring;
	}
	errno = error;
	return r;
}

/* What a call is passed on with. */
struct pass {
	uint64_t number;       /* destroy: 0 is no queue that we know */
	uint64_t serial;       /* update: of the newest queue then */
	uint64_t changes;      /* gp_own.changes then */
	uint32_t is_zero;      /* update: with 0 percent */
	uint32_t is_preempted; /* destroy: in the private way */
};

/* Whether the driver must not see the share. One that it would refuse, it shall see. */
static uint32_t is_withheld(struct gp_own *own, const struct kfd_update_queue_args *set)
{
	struct own_queue *q;
	gp_signals blocked;
	uint32_t withheld;

	if (!__atomic_load_n(&own->nstopped, __ATOMIC_ACQUIRE) ||
	    (set->percent & OWN_PERCENT) > OWN_MOST_PERCENT)
		return 0;
	blocked = gp_book_lock(&own->book);
	q = own_find_id(own, set->queue_id);
	withheld = q && q->state == OWN_STOPPED;
	if (withheld)
		q->zeroed = 1;
	gp_book_unlock(&own->book, blocked);
	return withheld;
}

/*
 * The driver has taken the update, or not.  If something else was wanted of the queue meanwhile, the
 * program's may have been the last call; if a call of ours ended meanwhile, ours may have been, with what was
 * wanted before.
 */
static void after_update(struct gp_own *own, int fd, const struct pass *pass,
			 const struct kfd_update_queue_args *set, int is_taken)
{
	gp_signals blocked = gp_book_lock(&own->book);
	struct own_queue *q = own_find_id(own, set->queue_id);
	int again;

	/* Not a newer one, with the id of one that went meanwhile. */
	if (q && q->number / GP_OWN_MOST <= pass->serial) {
		again = q->changed > pass->changes || q->ended > pass->changes ||
			(is_taken && q->state == OWN_STOPPED && !pass->is_zero);
		if (is_taken)
			own_set(own, q, set);
		if (again)
			(void)own_settle(own, q, fd);
	}
	gp_book_unlock(&own->book, blocked);
}

static int update(struct gp_own *own, int fd, unsigned long request, void *args)
{
	union {
		struct kfd_update_queue_args set;
		unsigned char bytes[MOST_ARGS];
	} sent;
	struct kfd_update_queue_args set;
	struct pass pass = { .serial = __atomic_load_n(&own->last_serial, __ATOMIC_ACQUIRE),
			     .changes = __atomic_load_n(&own->changes, __ATOMIC_ACQUIRE) };
	int r, error;

	if (!gp_caller_peek(args, sent.bytes, _IOC_SIZE((unsigned int)request)))
		return own->next(fd, request, args);
	set = sent.set;
	pass.is_zero = is_withheld(own, &set);
	if (pass.is_zero)
		sent.set.percent &= ~OWN_PERCENT;
	r = own->next(fd, request, &sent);
	error = errno;
	after_update(own, fd, &pass, &set, r >= 0);
	errno = error;
	return r;
}

/* From here on nobody is in a call of ours about the queue, and nobody begins one. */
static void before_destroy(struct gp_own *own, uint32_t queue_id, struct pass *ret)
{
	struct own_queue *q;
	uint32_t calls;
	gp_signals blocked;

	*ret = (struct pass){ 0 };
	blocked = gp_book_lock(&own->book);
	q = own_find_id(own, queue_id);
	if (q) {
		q->going = 1;
		while ((calls = q->calls)) {
			gp_book_unlock(&own->book, blocked);
			gp_guard_wait(&q->calls, calls);
			blocked = gp_book_lock(&own->book);
		}
		ret->number = q->number;
		ret->changes = q->changed;
		ret->is_preempted = q->state != OWN_RUNS && q->way == GP_KFD_WAY_PRIVATE;
	}
	gp_book_unlock(&own->book, blocked);
}

static void after_destroy(struct gp_own *own, int fd, const struct pass *pass, int is_gone)
{
	struct own_queue *q;
	gp_signals blocked;
	int is_changed;

	blocked = gp_book_lock(&own->book);
	q = own_find(own, pass->number);
	if (q && is_gone) {
		own_remove(own, q);
	} else if (q) {
		is_changed = q->changed != pass->changes;
		q->going = 0;
		if (pass->is_preempted)
			own_set_state(own, q, OWN_RUNS); /* we resumed it */
		if (is_changed || (pass->is_preempted && q->zeroed))
			(void)own_settle(own, q, fd);
	}
	gp_book_unlock(&own->book, blocked);
}

/* Whoever has begun to destroy a queue comes back: until then nobody could resume it. */
static int destroy(struct gp_own *own, int fd, unsigned long request, void *args)
{
	gp_signals blocked;
	struct pass pass;
	uint32_t queue_id;
	int r, error;

	if (!gp_caller_peek(args, &queue_id, sizeof(queue_id)))
		return own->next(fd, request, args);
	blocked = gp_guard_stay();
	before_destroy(own, queue_id, &pass);
	if (pass.is_preempted)
		(void)own_private_resume(own, queue_id, fd); /* else the driver may make us wait for it */
	r = own->next(fd, request, args);
	error = errno;
	/* After these two errors the driver has let go of it all the same. */
	if (pass.number)
		after_destroy(own, fd, &pass, r >= 0 || error == ETIME || error == EIO);
	gp_guard_unblock(blocked);
	errno = error;
	return r;
}

static int dispatch(struct gp_own *own, int fd, unsigned long request, void *args, int priority)
{
	unsigned int nr = _IOC_NR((unsigned int)request);

	if (!gp_driver_file_is(&own->file, fd))
		return own->next(fd, request, args);
	__atomic_store_n(&own->seen_fd, fd, __ATOMIC_RELAXED);
	if (nr == NR_CREATE)
		return create(own, fd, request, args, priority);
	if (own->pid != getpid())
		return own->next(fd, request, args); /* a child's: it has no queue yet */
	return nr == NR_UPDATE ? update(own, fd, request, args) : destroy(own, fd, request, args);
}

int own_call(struct gp_own *own, int fd, unsigned long request, void *args, int priority)
{
	int before = errno, r = dispatch(own, fd, request, args, priority);

	if (r >= 0)
		errno = before;
	return r;
}
