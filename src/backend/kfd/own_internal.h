/* SPDX-License-Identifier: MIT */
/* What the files of own.h share. */
#ifndef GP_BACKEND_KFD_OWN_INTERNAL_H
#define GP_BACKEND_KFD_OWN_INTERNAL_H

#include "backend/book.h"
#include "backend/caller.h"
#include "backend/kfd/own.h"
#include "backend/kfd/uapi.h"

#define OWN_PERCENT 0xffu /* of kfd_update_queue_args.percent; the bits above choose an XCC */
#define OWN_MOST_PERCENT 100u

enum own_place {
	OWN_FREE,
	OWN_HERE,
	OWN_GONE /* the driver has it no more; own_events() has yet to say so */
};

enum own_state {
	OWN_RUNS,
	OWN_STOPPED,
	OWN_OWED /* should run, but the driver refused: the next RUN tries again */
};

struct own_queue {
	struct gp_news news;
	uint64_t number, rptr, wptr;
	struct kfd_update_queue_args set; /* what the application last asked for */
	uint32_t gpu_id, type;            /* KFD_TYPE_ */
	uint32_t place;                   /* enum own_place */
	uint32_t state, way;              /* enum own_state; GP_KFD_WAY_ it was last stopped in */
	uint32_t zeroed;  /* stopped in the private way, and the driver has got 0 percent besides */
	uint64_t changed; /* gp_own.changes when set or state last did */
	uint64_t ended;   /* gp_own.changes when the last of our calls had */
	uint32_t going;   /* the application destroys it: nobody begins a call about it */
	uint32_t calls;   /* of ours that are under way: a destroy waits for them, because the id may
			   * be another queue's a moment later */
};

struct gp_own {
	struct gp_book book;
	int pid;
	gp_ioctl_fn next;
	uint32_t top;         /* queues from here on are free */
	uint64_t last_serial; /* of a number; the rest of it is the place in queues */
	uint64_t changes;     /* of what is wanted of any queue, and ends of our calls */
	uint32_t nstopped;    /* state is not OWN_RUNS; read without the lock too */
	int seen_fd;          /* on which the application called last; 0 may be one that never did */
	struct gp_driver_file file;
	struct own_queue queues[GP_OWN_MOST];
};

/* The table's members, those that are not in own.c or that others call. */
void own_forget(struct gp_own *own);
uint32_t own_wants(unsigned long request);
int own_call(struct gp_own *own, int fd, unsigned long request, void *args, int priority);
int own_open(struct gp_own *own);
int own_apply(struct gp_own *own, int fd, struct gp_want *wants, size_t n, const struct gp_apply_opts *opts);
int own_resume_all(struct gp_own *own, int fd);
int own_activity(struct gp_own *own, const uint64_t *queues, size_t n, struct gp_activity *ret);
int own_finished(struct gp_own *own, const uint64_t *queues, size_t n, struct gp_activity *ret);

/* The rest is called with the lock held. */
struct own_queue *own_find(struct gp_own *own, uint64_t number); /* NULL: none, or gone */
struct own_queue *own_find_id(struct gp_own *own, uint32_t queue_id);
void own_add(struct gp_own *own, const struct kfd_create_queue_args *args);
void own_remove(struct gp_own *own, struct own_queue *q);
void own_set(struct gp_own *own, struct own_queue *q, const struct kfd_update_queue_args *set);
void own_set_state(struct gp_own *own, struct own_queue *q, enum own_state state);

/*
 * Brings the driver to what is wanted of the queue now, as often as that changes meanwhile.  Lets go of the
 * lock while the driver works; the queue stays.  The last call's 0 or -errno.
 */
int own_settle(struct gp_own *own, struct own_queue *q, int fd);
/* One call to the driver, repeated if it was interrupted; 0 or -errno. Takes no lock and needs none. */
int own_drive(struct gp_own *own, int fd, unsigned long request, void *args);
int own_private_resume(struct gp_own *own, uint32_t queue_id, int fd);

#endif
