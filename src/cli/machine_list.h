/* SPDX-License-Identifier: MIT */
/* All devices and queues of a context, in memory of their own. */
#ifndef GP_CLI_MACHINE_LIST_H
#define GP_CLI_MACHINE_LIST_H

#include <gpreempt/gpreempt.h>

struct gp_machine_list {
	struct gp_device_info *devices;
	struct gp_queue_info *queues;
	size_t ndevices;
	size_t nqueues;
};

int gp_machine_list_read(struct gp_ctx *ctx, struct gp_machine_list *ret);
void gp_machine_list_free(struct gp_machine_list *list);

#endif
