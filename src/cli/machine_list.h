/* SPDX-License-Identifier: MIT */
/* All devices and queues of a context, in memory of their own. */
#ifndef GP_CLI_MACHINE_LIST_H
#define GP_CLI_MACHINE_LIST_H

#include <gpreempt/gpreempt.h>

#include "cli/options.h"

struct gp_machine_list {
	struct gp_device_info *devices;
	struct gp_queue_info *queues;
	size_t ndevices;
	size_t nqueues;
};

/*
 * The machine's own GPUs; the simulated machine only for who names it (--backend, --device,
 * GPREEMPT_BACKEND). -1 to go on, else the exit code, after a complaint that ends in what may be done instead
 * (or NULL).
 */
int gp_machine_open(const struct gp_options *o, const char *instead, struct gp_ctx **ret);
/* The same without a word: 0, or -errno and why. */
#define GP_WHY 320
int gp_machine_try(const struct gp_options *o, char why[GP_WHY], struct gp_ctx **ret);
/* Whether --root is a folder. -1 to go on, else the exit code, after a complaint. */
int gp_root_check(const char *root);
/* A call on it was refused: the exit code, after a complaint that says how to get the right, if that was it.
 */
int gp_machine_fail(struct gp_ctx *ctx, int r);
/* How to get a right that is missing, for the end of a sentence. */
const char *gp_rights_advice(struct gp_ctx *ctx, char *text, size_t size);
/* For the end of a sentence about a list: in a container, whose pids it has; else empty. */
const char *gp_pids_note(struct gp_ctx *ctx);
void gp_pids_say(struct gp_ctx *ctx); /* the same, below a table */
int gp_machine_list_read(struct gp_ctx *ctx, struct gp_machine_list *ret);
void gp_machine_list_free(struct gp_machine_list *list);

/* How many clients there are, for the caller to free; or -errno. */
int gp_clients_read(struct gp_ctx *ctx, struct gp_client_info **ret);

/* NULL: there is none of that number. */
const struct gp_device_info *gp_device_find(const struct gp_machine_list *list, uint32_t device);
int gp_device_is_simulated(const struct gp_device_info *device);
/* Whether it can be a device at all; before anybody is asked which there are. */
int gp_device_check(const char *verb, const char *word);
/*
 * What a verb was given as a device: a number that the list has. -1 to go on, else the exit code, after a
 * complaint.
 */
int gp_device_choose(const char *verb, const char *word, const struct gp_machine_list *list, uint32_t *ret);
/* On a simulated device, of gpreempt sim-gpu or of the library's own machine. */
int gp_queue_is_simulated(const struct gp_machine_list *list, const struct gp_queue_info *q);
int gp_client_is_simulated(const struct gp_machine_list *list, const struct gp_client_info *c);
/* Of the library's own machine: it has no pid. */
int gp_queue_is_nobodys(const struct gp_queue_info *q);
/* What stands before and behind the colon of its name: PID:QUEUE, or of one that is nobody's the handles. */
uint32_t gp_queue_owner(const struct gp_queue_info *q);
uint32_t gp_queue_number(const struct gp_queue_info *q);

/* What is said for an empty list of devices. */
#define GP_NO_DEVICES "no devices: no GPU's driver is loaded (modprobe amdgpu), and no gpreempt sim-gpu runs"

#endif
