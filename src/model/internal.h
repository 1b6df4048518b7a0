/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the files of the simulated GPU say to each other. */
#ifndef GPM_INTERNAL_H
#define GPM_INTERNAL_H

#include "gpu.h"

#define gpm_each_queue(q, g, i) for (i = 0, q = (g)->ring; i < (g)->nqueues; i++, q = q->next)

/* Around every change of a queue's work or want: keeps the device's counts of them. */
void gpm_uncount(struct gpm_gpu *g, const struct gpm_queue *q);
void gpm_recount(struct gpm_gpu *g, const struct gpm_queue *q, gpm_u64 now);
gpm_u32 gpm_new_call(struct gpm_gpu *g); /* its number, never 0 */
/* The queue's call is done. */
void gpm_call_done(struct gpm_gpu *g, struct gpm_queue *q, gpm_u64 now);

/* queue.c */
void gpm_queue_kernel_ended(struct gpm_gpu *g, struct gpm_queue *q, gpm_u64 now);
void gpm_cancel_start(struct gpm_gpu *g, struct gpm_queue *q);
gpm_u64 gpm_next_start(const struct gpm_gpu *g);
void gpm_start_due(struct gpm_gpu *g, gpm_u64 now);

/* runlist.c and slice.c: bring it to now, and say when next */
gpm_u64 gpm_runlist_step(struct gpm_gpu *g, gpm_u64 now);
gpm_u64 gpm_slice_step(struct gpm_gpu *g, gpm_u64 now);

#endif
