/* SPDX-License-Identifier: MIT */
#ifndef GP_LIB_CTX_H
#define GP_LIB_CTX_H

#include <gpreempt/gpreempt.h>

/*
 * What stands behind a context: the simulated machine, or the AMD driver's queues.
 * The public calls have checked their arguments before one of these is reached; sizes
 * are ours here.  Sentences go to gp_ctx_fail().
 */
struct gp_lib_ops {
	const char *name;
	int (*open)(struct gp_ctx *ctx, const struct gp_open_opts *opts);
	void (*close)(struct gp_ctx *ctx);
	int (*rights)(struct gp_ctx *ctx, uint32_t *ret);
	/* Notes what has been said meanwhile, if anything was; waits for nothing. */
	void (*look)(struct gp_ctx *ctx);
	/* All there are, for the caller to free; how many. */
	int (*devices)(struct gp_ctx *ctx, struct gp_device_info **ret);
	int (*queues)(struct gp_ctx *ctx, struct gp_queue_info **ret);
	int (*clients)(struct gp_ctx *ctx, struct gp_client_info **ret);
	/* status may be NULL. */
	int (*suspend)(struct gp_ctx *ctx, const uint64_t *queues, size_t n,
		       const struct gp_suspend_opts *opts, int32_t *status);
	int (*resume)(struct gp_ctx *ctx, const uint64_t *queues, size_t n, int32_t *status);
	int (*reserve)(struct gp_ctx *ctx, uint32_t device, uint32_t online_percent,
		       uint32_t offline_percent);
	int (*stats)(struct gp_ctx *ctx, uint32_t device, struct gp_stats *ret);
	int (*set_policy)(struct gp_ctx *ctx, uint32_t device, const char *name);
	int (*hint)(struct gp_ctx *ctx, const struct gp_hint *hint, uint32_t what); /* enum gp_hint_what */
	int (*event_open)(struct gp_ctx *ctx, const struct gp_event_opts *opts);
	int (*event_next)(struct gp_ctx *ctx, uint64_t timeout_ns, struct gp_event *ret);
	int (*attach)(struct gp_ctx *ctx, uint32_t pid, uint64_t start, uint32_t client_class);
	int (*declare)(struct gp_ctx *ctx, const struct gp_job *job);
	int (*jobs)(struct gp_ctx *ctx, struct gp_job_info **ret);
	int (*set_class)(struct gp_ctx *ctx, uint64_t client, uint32_t client_class);
};

extern const struct gp_lib_ops gp_lib_sim, gp_lib_kfd;

struct gp_ctx {
	const struct gp_lib_ops *ops;
	void *data; /* theirs */
	char error[320];
	char notice[320];
};

/* Keeps the sentence for gp_ctx_errmsg() and returns r. */
__attribute__((format(printf, 3, 4))) int gp_ctx_fail(struct gp_ctx *ctx, int r, const char *format, ...);
/* The same for gp_ctx_notice(), in place of what was there. */
__attribute__((format(printf, 2, 3))) void gp_ctx_note(struct gp_ctx *ctx, const char *format, ...);

#endif
