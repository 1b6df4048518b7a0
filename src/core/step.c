// SPDX-License-Identifier: MIT
/* One step of a host's loop, the same for a real machine and a simulated one. */
#include <errno.h>

#include "core/core.h"

static void tell(struct gp_core *core, const struct gp_core_host *host, const struct gp_done *done,
		 uint64_t now)
{
	if (host->done)
		host->done(host->arg, done);
	(void)gp_core_done(core, done, now); /* of a queue that went meanwhile, nobody cares */
}

/* Whether there was anything. */
static int take_in(struct gp_core *core, const struct gp_core_host *host, uint64_t now)
{
	struct gp_done done;
	int any = 0;

	for (; host->ops->complete(host->backend, &done, 1) == 1; any = 1)
		tell(core, host, &done, now);
	return any;
}

/* Whether some of it has ended at once. */
static int carry_out(struct gp_core *core, const struct gp_core_host *host, const struct gp_action *action,
		     uint64_t now)
{
	int ended = 0;

	if (host->acts)
		host->acts(host->arg, action);
	for (size_t i = 0; i < action->nwants; i++)
		action->wants[i].status = -EPROTO; /* unless the backend says what became of it */
	(void)host->ops->apply(host->backend, action->wants, action->nwants, &action->opts);
	for (size_t i = 0; i < action->nwants; i++) {
		const struct gp_done done = { .want = action->wants[i] };

		if (done.want.status == -EINPROGRESS)
			continue;
		tell(core, host, &done, now);
		ended = 1;
	}
	return ended;
}

uint64_t gp_core_step(struct gp_core *core, const struct gp_core_host *host, uint64_t now)
{
	struct gp_action action;
	uint64_t next;
	int again;

	(void)take_in(core, host, now);
	do {
		again = 0;
		next = gp_core_run(core, now);
		while (gp_core_take(core, &action, now))
			again |= carry_out(core, host, &action, now);
		again |= take_in(core, host, now);
	} while (again || next <= now);
	return next;
}
