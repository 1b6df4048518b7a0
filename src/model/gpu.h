/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A whole simulated GPU: command queues, and who of them is on the device.
 *
 * Two kinds of device.  Concurrent (AMD): up to queue_slots queues are mapped and
 * share the wave slots; any change of the set is a device cycle (unmap, save, fence,
 * map) that takes every queue off, or, on a selective device, only those that
 * change; more active queues than slots take turns by quantum.  Time slices
 * (NVIDIA): one queue is on the device, for its slice, and switching costs.
 *
 * All memory is the caller's.  Time goes forward by gpm_gpu_step() alone; every
 * call takes the time, which must not be later than the step's last answer.
 */
#ifndef GPM_GPU_H
#define GPM_GPU_H

#include "exec.h"

enum gpm_want { GPM_RUN, GPM_BACKGROUND, GPM_STOP };

/* What stands between a program and its queue. */
enum gpm_shim {
	GPM_SHIM_NONE,
	GPM_SHIM_THROTTLE, /* Lv1: at most depth kernels in the hardware queue */
	GPM_SHIM_GATE,     /* Lv2: each kernel looks at a flag before it starts */
	GPM_SHIM_FLUSH,    /* Lv2: and those behind it are turned away, to be replayed */
};

#define GPM_MAX_DEPTH 16
#define GPM_RING_DEPTH 64 /* kernels in the hardware queue that a flush turns away, at most */

/* Kernels that are alike, one after the other: a request, or a step of training. */
struct gpm_cmd {
	struct gpm_cmd *next; /* the queue's while it holds the command */
	struct gpm_dispatch kernel;
	gpm_u64 count;
	gpm_u64 every;         /* every n-th kernel ... */
	gpm_u64 every_wave_ns; /* ... takes this long; 0: none does */
	gpm_u64 interval_ns;   /* kernel i is launched i intervals after the submission */
	gpm_u64 submitted_ns;
	gpm_u64 first_ns; /* first wave on */
	gpm_u64 done_ns;
	gpm_u64 tag; /* the caller's */
};

struct gpm_queue {
	struct gpm_ctx ctx; /* must be first; the caller sets ctx.priority */
	gpm_u32 offline;    /* the caller's: counts against gpm_gpu_limit_offline() */
	gpm_u32 shim;
	gpm_u32 depth;     /* of a throttle */
	gpm_u32 want;      /* what it is: enum gpm_want */
	gpm_u32 target;    /* what the call in progress makes of it */
	gpm_u32 call;      /* number of that call, 0: none */
	gpm_u32 closed;    /* throttled, gated: nothing new may start ... */
	gpm_u32 credit;    /* ... but so many kernels that are in the hardware queue already */
	gpm_u32 starting;  /* start_ns is set */
	gpm_u32 draining;  /* closed, and not yet empty */
	gpm_u32 listed;    /* its call is done, and gpm_gpu_changed() has not said so yet */
	gpm_u64 start_ns;  /* when its next kernel starts, if starting */
	gpm_u64 open_ns;   /* nothing starts earlier: relaunch after a throttle or flush */
	gpm_u64 slice_ns;  /* 0: the device's */
	gpm_u64 kernel;    /* index in the first command */
	gpm_u64 kernels;   /* ended, ever */
	gpm_u64 waiting;   /* kernels submitted and not ended */
	gpm_u64 replayed;  /* kernels turned away and launched again */
	gpm_u64 called_ns; /* when the last call was made */
	gpm_u64 ended_ns;  /* when it was done */
	gpm_u64 ends[GPM_MAX_DEPTH];
	struct gpm_cmd *first, *last;
	struct gpm_queue *next, *prev;  /* all queues of the device, in a ring */
	struct gpm_queue *next_start;   /* those that are starting */
	struct gpm_queue *next_call;    /* calls that wait for the cycle before them, in order */
	struct gpm_queue *next_changed; /* calls that are done */
	void *owner;                    /* the caller's */
};

enum gpm_phase { GPM_IDLE, GPM_UNMAP, GPM_SAVE, GPM_MAP, GPM_SWITCH };

struct gpm_counters {
	gpm_u64 events;   /* state changes of any kind */
	gpm_u64 cycles;   /* asked for by calls */
	gpm_u64 yields;   /* cycles and switches the device made for a background queue by itself */
	gpm_u64 quanta;   /* turns of an over-subscribed run list */
	gpm_u64 switches; /* of time slices */
	gpm_u64 waves_saved;
	gpm_u64 bytes_saved;
};

#define GPM_LEAP_QUEUES 16

/* A queue, as it was when it was last looked at: leap.c. Times of what runs are relative to then. */
struct gpm_seen {
	struct gpm_queue *queue;
	gpm_u64 kernel, kernels, done_wave_ns;
	gpm_u64 start_ns;
	gpm_u32 pending, ncohorts;
	struct gpm_cohort cohorts[GPM_COHORTS];
};

struct gpm_leap {
	struct gpm_queue *anchor; /* NULL: nothing is remembered */
	gpm_u64 anchor_kernels;
	gpm_u64 now, events, exec_events;
	gpm_u32 phase, free, nring, n;
	gpm_u32 tries, span;
	struct gpm_seen seen[GPM_LEAP_QUEUES]; /* nring that have waves to run, then those that start */
};

struct gpm_gpu {
	const struct gpm_device *dev;
	struct gpm_exec exec;
	struct gpm_queue *ring;     /* where the run list's next turn begins */
	struct gpm_queue *current;  /* time slices: on the device, or on its way there */
	struct gpm_queue *resident; /* time slices: whose state is on the device */
	struct gpm_queue *starting;
	struct gpm_queue *calls, *last_call;
	struct gpm_queue *changed, *last_changed;
	struct gpm_cmd *finished, *last_finished;
	gpm_u32 nqueues;
	gpm_u32 phase;
	gpm_u32 serving; /* the call the cycle is for; 0: the device's own */
	gpm_u32 next_call_id;
	gpm_u32 offline_limit; /* mapped offline queues */
	gpm_u32 held_back;     /* background queues are off, for the others' work */
	gpm_u32 turn_due;
	gpm_u32 added;      /* queues were, and are not yet mapped */
	gpm_u32 foreground; /* queues with work that are to run, and not in the background */
	gpm_u32 background; /* queues that are background */
	gpm_u32 eligible;   /* queues with work that are not stopped */
	gpm_u64 phase_end_ns;
	gpm_u64 notice_ns; /* when the device acts on foreground work, or on its end */
	gpm_u64 turn_ns;   /* when the run list turns, or the slice ends */
	gpm_u64 slice_begin_ns;
	struct gpm_counters count;
	struct gpm_leap leap;
};

void gpm_gpu_init(struct gpm_gpu *g, const struct gpm_device *dev);
void gpm_gpu_add(struct gpm_gpu *g, struct gpm_queue *q); /* zeroed but for the caller's fields */
/* Its commands, finished or not, are the caller's again. -1: it is not stopped, or in a call. */
int gpm_gpu_remove(struct gpm_gpu *g, struct gpm_queue *q);

/* 0, or -1: it has no kernels, or one of them cannot run on this device. */
int gpm_gpu_submit(struct gpm_gpu *g, struct gpm_queue *q, struct gpm_cmd *cmd, gpm_u64 now);
/* Commands whose last wave ended, in order; NULL: no more. */
struct gpm_cmd *gpm_gpu_finished(struct gpm_gpu *g);

/*
 * One driver call: the first n of queues become what wants says.  Calls are done
 * one after the other.  -1: a queue is in a call already.
 */
int gpm_gpu_call(struct gpm_gpu *g, struct gpm_queue **queues, const gpm_u32 *wants, gpm_u32 n, gpm_u64 now);
/* The same by the queue's shim: no driver, no cycle. -1 also if it is stopped with a kernel in it. */
int gpm_gpu_close_shim(struct gpm_gpu *g, struct gpm_queue *q, gpm_u32 closed, gpm_u64 now);
/* Queues whose call is done (ended_ns says when), in order; NULL: no more. */
struct gpm_queue *gpm_gpu_changed(struct gpm_gpu *g);

/* At most n offline queues are mapped at a time; the others take turns. */
void gpm_gpu_limit_offline(struct gpm_gpu *g, gpm_u32 n);

gpm_u64 gpm_gpu_step(struct gpm_gpu *g, gpm_u64 now);
/*
 * Steps from next, which the last step returned, on: to the first instant before limit at which a command has
 * finished or a call is done, and returns that; else when to call again.  As many steps would do, at less
 * cost.
 */
gpm_u64 gpm_gpu_run(struct gpm_gpu *g, gpm_u64 next, gpm_u64 limit);

/* What a closed shim holds back has not reached the device: no work of its. */
static inline int gpm_queue_has_work(const struct gpm_queue *q)
{
	return q->waiting && (!q->closed || q->draining || q->starting);
}

#endif
