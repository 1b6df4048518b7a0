/* SPDX-License-Identifier: MIT */
/* What the files of own.h share. */
#ifndef GP_BACKEND_NVRM_OWN_INTERNAL_H
#define GP_BACKEND_NVRM_OWN_INTERNAL_H

#include "backend/book.h"
#include "backend/caller.h"
#include "backend/nvrm/own.h"
#include "backend/nvrm/uapi.h"

#define RM_MOST_OBJECTS 8192u /* of a process. What is more is not in the book */
#define RM_YIELD_US 1u        /* the slice of a group in the background */
#define RM_NO_QUEUE UINT32_MAX

enum rm_kind { RM_FREE, RM_CLIENT, RM_DEVICE, RM_SUBDEVICE, RM_GROUP, RM_CHANNEL };

/* PERHAPS: the call that was to disable it failed, and may have done it all the same. */
enum rm_off { RM_ON, RM_OFF, RM_PERHAPS };

struct rm_object {
	uint32_t client, handle, parent;
	uint8_t kind;      /* enum rm_kind */
	uint8_t off;       /* of a channel, what we have done that still holds: enum rm_off */
	uint8_t is_theirs; /* of a channel: the application has disabled it, and enables it itself */
	uint8_t reserved;
	uint32_t going; /* so many calls of the application's free or switch it: nobody begins one about it */
	uint32_t queue; /* of a group and a channel: its place in queues, or RM_NO_QUEUE */
	uint32_t gpu_id; /* of a device and a subdevice; 0: unknown */
	int fd;          /* of a client: on which the application used it last */
};

enum rm_place {
	RM_EMPTY,
	RM_HERE,
	RM_GONE /* the driver has it no more; events() has yet to say so */
};

struct rm_queue {
	struct gp_news news;
	uint64_t number;
	uint64_t slice_us;               /* what the application set, or the driver's own; 0: not known */
	uint32_t client, handle, device; /* handle: of the group, or of the channel that is in none */
	uint32_t gpu_id, kind;           /* enum gp_queue_kind */
	uint32_t place;                  /* enum rm_place */
	uint32_t want, before;           /* enum gp_want_kind; before: if what is wanted now fails */
	uint32_t is_owed;                /* should run, but the driver refused: the next RUN tries again */
	uint32_t yields;                 /* the driver has our slice, or perhaps */
	uint32_t is_partial;             /* some of its channels are not in the book: it cannot be stopped */
	uint32_t going;                  /* as of an object */
	uint32_t calls;                  /* of ours that are under way: who frees any of it waits for them */
};

struct gp_own {
	struct gp_book book;
	int pid;
	gp_ioctl_fn next;
	uint32_t top;         /* queues from here on are empty */
	uint32_t top_object;  /* and objects free */
	uint32_t nstopped;    /* queues that are not as the application has them; read without the lock too */
	uint64_t last_serial; /* of a number; the rest of it is the place in queues */
	struct gp_driver_file file;
	struct rm_queue queues[GP_OWN_MOST];
	struct rm_object objects[RM_MOST_OBJECTS];
};

/* The table's members that are not in own.c. */
void rm_forget(struct gp_own *own);
uint32_t rm_wants(unsigned long request);
int rm_call(struct gp_own *own, int fd, unsigned long request, void *args, int priority);
int rm_apply(struct gp_own *own, int fd, struct gp_want *wants, size_t n, const struct gp_apply_opts *opts);
int rm_resume_all(struct gp_own *own, int fd);

/* The rest is called with the lock held. */
struct rm_queue *rm_find(struct gp_own *own, uint64_t number); /* NULL: none, or gone */
struct rm_queue *rm_find_queue(struct gp_own *own, uint32_t client, uint32_t handle); /* the same */
struct rm_queue *rm_add_queue(struct gp_own *own, const struct rm_queue *like); /* NULL: no place is left */
void rm_remove_queue(struct gp_own *own, struct rm_queue *q);
void rm_changed(struct gp_own *own, struct rm_queue *q); /* something that events() tells of */
void rm_set_want(struct gp_own *own, struct rm_queue *q, uint32_t want, uint32_t is_owed);

/* objects.c */
struct rm_object *rm_object(struct gp_own *own, uint32_t client, uint32_t handle); /* NULL: not in the book */
/* A client that was not seen to be made is added too; no place left: it is not in the book. */
void rm_note_client(struct gp_own *own, uint32_t client, int fd);
/* What had the handle before went by a way that we do not see. */
struct rm_object *rm_note_device(struct gp_own *own, uint32_t client, uint32_t handle, uint32_t gpu_id);
void rm_note_subdevice(struct gp_own *own, uint32_t client, uint32_t device, uint32_t handle,
		       uint32_t gpu_id);
void rm_note_group(struct gp_own *own, uint32_t client, uint32_t device, uint32_t handle, uint32_t engine);
struct rm_queue *rm_note_channel(struct gp_own *own, uint32_t client, uint32_t parent, uint32_t handle);
void rm_note_engine(struct gp_own *own, uint32_t client, uint32_t channel, uint32_t kind);
/* The object and all below it. */
void rm_mark(struct gp_own *own, const struct rm_object *top, int by); /* 1, and after it -1 */
void rm_remove(struct gp_own *own, struct rm_object *top);
struct rm_object *rm_subdevice(struct gp_own *own, const struct rm_queue *q); /* NULL: there is none */

/*
 * Brings the driver to what is wanted of the queue now, as often as that changes meanwhile.  Lets go of the
 * lock while the driver works; the queue stays.  The last call's 0 or -errno.
 */
int rm_settle(struct gp_own *own, struct rm_queue *q);
/* One control by a descriptor of the application's, or a duplicate, repeated where the driver says so; 0 or
 * -errno: -ENOENT, there is no such object; -ESTALE, no such client on this file; -EBUSY, it has no time for
 * us now. Needs no lock. */
int rm_control(struct gp_own *own, int fd, struct nvrm_control *control);

#endif
