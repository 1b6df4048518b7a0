/* SPDX-License-Identifier: MIT */
/* What the verbs about devices share: one device or all of them, and what was done on each. */
#ifndef GP_CLI_DEVICE_STATS_H
#define GP_CLI_DEVICE_STATS_H

#include "cli/machine_list.h"

struct json_object;

/* device: GP_ALL_DEVICES, or one of the list. Returns the exit code. */
typedef int gp_devices_fn(void *arg, const struct gp_options *o, struct gp_ctx *ctx,
			  const struct gp_machine_list *l, uint32_t device);
/* Opens the machine and calls fn for what word says: a device, or NULL: all. Returns the exit code. */
int gp_devices_run(const struct gp_verb *verb, const struct gp_options *o, const char *word,
		   gp_devices_fn *fn, void *arg);

typedef void gp_stats_fn(void *arg, const struct gp_device_info *d, const struct gp_stats *s);
/* Calls fn for each of these devices. -1 to go on, else the exit code, after a complaint. */
int gp_stats_each(struct gp_ctx *ctx, const struct gp_machine_list *l, uint32_t device, gp_stats_fn *fn,
		  void *arg);

#define GP_REASON_TEXT 192
/* What is or was wrong, and how long ago that was: "3min ago: train 4711 was not resumed: ...". */
const char *gp_reason_text(const struct gp_stats *s, char text[GP_REASON_TEXT]);

/* What every device's entry begins with. */
struct json_object *gp_stats_json(const struct gp_device_info *d, const struct gp_stats *s);
/* And all that was counted. */
struct json_object *gp_stats_all_json(const struct gp_device_info *d, const struct gp_stats *s);
/* Takes the entries. */
void gp_stats_json_print(const char *schema, struct json_object *devices);

#endif
