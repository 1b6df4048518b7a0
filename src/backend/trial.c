// SPDX-License-Identifier: MIT
#include "backend/trial.h"

#include <errno.h>

#define ROUNDS 10

static void keep_longest(uint64_t *longest, uint64_t ns)
{
	if (ns > *longest)
		*longest = ns;
}

static int go_round(const struct gp_trial_ops *ops, void *arg, struct gp_trial *ret)
{
	uint64_t before = ops->progress(arg, 1), still, after, ns = 0;
	int r;

	ret->step = ops->stop_step;
	r = ops->stop(arg, &ns);
	if (r < 0)
		return r;
	keep_longest(&ret->stop_ns, ns);
	still = ops->progress(arg, 0);
	ret->step = ops->resume_step;
	r = ops->resume(arg, &ns);
	if (r < 0)
		return r;
	keep_longest(&ret->resume_ns, ns);
	after = ops->progress(arg, 1);
	ret->before += before;
	ret->still += still;
	ret->after += after;
	ret->step = !before ? "see the queue run"
		    : still ? "see the queue stand still while it is stopped"
			    : "see the queue go on";
	return before && !still && after ? 0 : -EIO;
}

int gp_trial_go(const struct gp_trial_ops *ops, void *arg, struct gp_trial *ret)
{
	int r = 0;

	for (; r == 0 && ret->rounds < ROUNDS; ret->rounds++)
		r = go_round(ops, arg, ret);
	return r;
}
