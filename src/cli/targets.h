/* SPDX-License-Identifier: MIT */
/*
 * Queues as people name them: PID for all queues of a process, PID:QUEUE for one, and -
 * for more of them on standard input.  What is wrong with one is said of it, and the
 * others go on.
 */
#ifndef GP_CLI_TARGETS_H
#define GP_CLI_TARGETS_H

#include <gpreempt/gpreempt.h>

#include "cli/options.h"
#include "study/json.h"

/* What a queue was when it was named; the last: a policy had stopped it. */
enum gp_target_was { GP_WAS_HELD, GP_WAS_RUNNING, GP_WAS_WAITING };

/* A queue that was named. */
struct gp_target {
	uint64_t queue; /* its handle */
	uint32_t pid, queue_id;
	enum gp_target_was was;
	int whole; /* its process was */
	int simulated;
	int32_t status; /* of what was done with it */
};

struct gp_targets {
	struct gp_target *items; /* those of whole processes first */
	size_t n, nwhole;
	size_t wrong;  /* names that mean nothing, each complained about */
	int simulated; /* all of them are */
};

/* What is to be done with them; its result is the exit code. */
typedef int (*gp_targets_fn)(struct gp_targets *t, struct gp_ctx *ctx, const struct gp_options *opts);

/* Opens them, finds those that the arguments name, and does it. The exit code. */
int gp_targets_run(const struct gp_verb *verb, const struct gp_options *opts, gp_targets_fn fn);

/* In one call, or two: whole processes' new queues belong to them. Each failure is complained about. */
void gp_targets_suspend(struct gp_targets *t, struct gp_ctx *ctx, const struct gp_suspend_opts *opts);
void gp_targets_resume(struct gp_targets *t, struct gp_ctx *ctx);
/*
 * Leaves those that are still held, and says what became of the others: they have gone, or somebody
 * resumed them. How many are left, or -errno with what there is to say in the context.
 */
int gp_targets_look(struct gp_targets *t, struct gp_ctx *ctx);

size_t gp_targets_done(const struct gp_targets *t); /* how many went well */
/* "3 queues of 2 processes", of those. */
const char *gp_targets_text(const struct gp_targets *t, char *text, size_t size);
/* The same of those of them that were so; how many there are. */
size_t gp_targets_that_were(const struct gp_targets *t, enum gp_target_was was, char *text, size_t size);
void gp_targets_print_json(const struct gp_targets *t, const char *schema, const char *notice);
int gp_targets_exit(const struct gp_targets *t);

#endif
