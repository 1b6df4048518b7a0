// SPDX-License-Identifier: MIT
#include "cli/inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/machine_list.h"

#define WHY \
	"find: pids here are those of a pid namespace, and the driver's files in sysfs have the host's; " \
	"gpreemptd knows both, but"
#define INSTEAD "on the host, gpreempt find --container NAME finds them"

/* The source that "queue_id=sysfs ring=mqds ..." names for a field. */
static uint8_t source_of(const char *from, const char *field)
{
	const char *at = strstr(from, field);
	size_t len = strlen(field);

	while (at && ((at > from && at[-1] != ' ') || at[len] != '='))
		at = strstr(at + 1, field);
	for (uint8_t i = GP_SOURCE_SYSFS; at && i < GP_SOURCE_COUNT; i++) {
		const char *name = gp_source_name(i), *space = strrchr(name, ' ');

		name = space ? space + 1 : name;
		if (!strncmp(at + len + 1, name, strlen(name)))
			return i;
	}
	return GP_SOURCE_UNKNOWN;
}

static struct gp_found_queue found_of(const struct gp_queue_info *q)
{
	struct gp_found_queue f = { .pid = q->pid,
				    .queue_id = q->queue_id,
				    .gpu_id = q->gpu_id,
				    .kind = q->kind,
				    .priority = q->priority,
				    .active = q->active,
				    .ring = q->ring };

	f.from[GP_FIELD_ID] = source_of(q->from, "queue_id");
	f.from[GP_FIELD_GPU] = source_of(q->from, "gpu_id");
	f.from[GP_FIELD_KIND] = source_of(q->from, "kind");
	f.from[GP_FIELD_PRIORITY] = source_of(q->from, "priority");
	f.from[GP_FIELD_ACTIVE] = source_of(q->from, "active");
	f.from[GP_FIELD_RING] = source_of(q->from, "ring");
	return f;
}

static int take(const struct gp_machine_list *l, uint32_t pid, struct gp_found **ret)
{
	struct gp_found *found = calloc(1, sizeof(*found));

	if (found)
		found->queues = calloc(l->nqueues + 1, sizeof(*found->queues));
	if (!found || !found->queues) {
		free(found);
		return gp_fail(GP_EXIT_FAILED, "out of memory");
	}
	for (int i = 0; i < GP_SOURCE_COUNT; i++)
		found->sources[i].status = -ENODATA;
	for (size_t i = 0; i < l->nqueues; i++)
		if (l->queues[i].local_pid == pid)
			found->queues[found->nqueues++] = found_of(&l->queues[i]);
	if (found->nqueues) {
		*ret = found;
		return -1;
	}
	gp_found_free(found);
	return gp_fail(GP_EXIT_FAILED, WHY " has no queue of process %" PRIu32 " here; " INSTEAD, pid);
}

int gp_inside_find(uint32_t pid, struct gp_found **ret)
{
	char why[320] = "";
	const struct gp_open_opts opts = {
		.size = sizeof(opts), .backend = "kfd", .errmsg = why, .errmsg_size = sizeof(why)
	};
	struct gp_machine_list list;
	struct gp_ctx *ctx;
	int code, r = gp_ctx_open(&opts, &ctx);

	if (r < 0)
		return gp_fail(GP_EXIT_FAILED, WHY " %s; " INSTEAD, why);
	if (gp_ctx_notice(ctx)[0]) /* what the driver's files tell */
		code = gp_fail(GP_EXIT_FAILED, WHY " %s; " INSTEAD, gp_ctx_notice(ctx));
	else if (gp_machine_list_read(ctx, &list) < 0)
		code = gp_fail(GP_EXIT_FAILED, WHY " %s; " INSTEAD, gp_ctx_errmsg(ctx));
	else {
		code = take(&list, pid, ret);
		gp_machine_list_free(&list);
	}
	gp_ctx_close(ctx);
	return code;
}
