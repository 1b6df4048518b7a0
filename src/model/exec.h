/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * How dispatches make progress on the wave slots of one device.
 *
 * A dispatch is a number of workgroups, each of so many waves, each of which runs
 * for so long once it has a slot.  Waves that got their slots together are one
 * cohort: the unit that is kept, saved and restored, so cost follows cohorts and
 * not waves.  Slots that come free go to the waiting context of the highest
 * priority; equals take turns.  A running wave gives its slot up only when it ends
 * or is saved: that is what makes a long kernel hurt.
 *
 * No work is lost or made: ctx->done_wave_ns grows by exactly
 * workgroups * waves_per_wg * wave_ns over the life of a dispatch, however often
 * it is taken off the device.
 */
#ifndef GPM_EXEC_H
#define GPM_EXEC_H

#include "device.h"

/*
 * A dispatch in more pieces than this takes no further slots until a piece ends.
 * Pieces come from competing for slots, and the bound keeps memory and time fixed.
 */
#define GPM_COHORTS 8

struct gpm_dispatch {
	gpm_u64 wave_ns;
	gpm_u32 workgroups;
	gpm_u32 waves_per_wg;
};

struct gpm_cohort {
	gpm_u64 begin_ns; /* running: from ... */
	gpm_u64 end_ns;   /* ... to; saved: begin 0, end what is left to run */
	gpm_u32 waves;
	gpm_u32 running;
};

/* One queue, as the shader engines see it. The caller's memory: zero it, set priority and denied. */
struct gpm_ctx {
	gpm_u32 priority;
	gpm_u32 denied; /* wave slots it may not use, as by a mask of compute units */
	gpm_u32 mapped;
	gpm_u32 busy;    /* a dispatch is in it */
	gpm_u32 pending; /* workgroups that never ran */
	gpm_u32 held;    /* wave slots */
	gpm_u32 saved;   /* waves waiting to be restored */
	gpm_u32 ncohorts;
	gpm_u32 linked;
	gpm_u64 next_end_ns;
	gpm_u64 restored_ns; /* saved waves run no earlier than this */
	gpm_u64 first_ns;    /* when the dispatch's first wave began, GPM_NEVER before */
	gpm_u64 ended_ns;    /* when its last wave ended */
	gpm_u64 done_wave_ns;
	struct gpm_dispatch dispatch;
	struct gpm_ctx *next, *prev; /* mapped and busy, in a ring */
	struct gpm_ctx *next_ended;
	struct gpm_cohort cohorts[GPM_COHORTS];
};

struct gpm_exec {
	const struct gpm_device *dev;
	gpm_u32 free;  /* wave slots ... */
	gpm_u32 slots; /* ... of so many */
	gpm_u32 nring;
	struct gpm_ctx *ring; /* whose turn it is */
	struct gpm_ctx *ended;
	gpm_u64 next_ns;
	gpm_u64 events; /* cohorts begun and ended */
};

void gpm_exec_init(struct gpm_exec *e, const struct gpm_device *dev);

/* 0; -1: the context is busy, the dispatch is empty, or a workgroup is larger than the device. */
int gpm_exec_dispatch(struct gpm_exec *e, struct gpm_ctx *c, const struct gpm_dispatch *d, gpm_u64 now);

/*
 * The context may use wave slots from now on; its saved waves run from restored_ns on.
 * Like a dispatch and a release, it takes effect in the next step, which must be at now too.
 */
void gpm_exec_map(struct gpm_exec *e, struct gpm_ctx *c, gpm_u64 now, gpm_u64 restored_ns);
/* Its waves stop where they are, but hold their slots until released. Returns how many there are. */
gpm_u64 gpm_exec_stop(struct gpm_exec *e, struct gpm_ctx *c, gpm_u64 now);
/*
 * Puts a dispatch that was stopped elsewhere into an idle, unmapped context: what never ran,
 * and n saved cohorts.  -1: these cannot be parts of that dispatch.
 */
int gpm_exec_load(struct gpm_exec *e, struct gpm_ctx *c, const struct gpm_dispatch *d, gpm_u32 pending,
		  const struct gpm_cohort *cohorts, gpm_u32 n);
/* They are saved: the slots are free again. */
void gpm_exec_release(struct gpm_exec *e, struct gpm_ctx *c, gpm_u64 now);

/*
 * Brings the device to now, which must not be later than the time returned last.
 * Returns when to call again.  Contexts whose dispatch ended are handed out by
 * gpm_exec_ended(), in the order they ended.
 */
gpm_u64 gpm_exec_step(struct gpm_exec *e, gpm_u64 now);
struct gpm_ctx *gpm_exec_ended(struct gpm_exec *e);

/* Wave-ns done up to now, waves that still run included. */
gpm_u64 gpm_exec_work(const struct gpm_ctx *c, gpm_u64 now);
/* Wave-ns that the dispatch in it has still to do. */
gpm_u64 gpm_exec_left(const struct gpm_ctx *c, gpm_u64 now);

#endif
