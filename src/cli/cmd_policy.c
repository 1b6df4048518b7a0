// SPDX-License-Identifier: MIT
#include <ctype.h>
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/columns.h"
#include "cli/machine_list.h"
#include "study/json.h"

static const char usage[] =
	"usage: gpreempt policy [DEVICE] [NAME] [options]\n"
	"\n"
	"Shows what schedules each device, and why a policy was ejected; with NAME, lets that policy\n"
	"schedule it from now on. DEVICE is a number that gpreempt list shows; without one, all are\n"
	"meant. Only root and members of group gpreempt may choose.\n"
	"\n"
	"  --socket PATH      gpreemptd's\n"
	"  --backend sim      a simulated machine instead, which ends with this call\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt policy\n"
	"  gpreempt policy fair\n"
	"  gpreempt policy 0 deadline\n";

/* What was asked for: one device or all, and a policy or none. */
struct request {
	const char *device; /* NULL: all */
	const char *name;   /* NULL: show */
};

/* A lone word is a device if it is a number. */
static struct request parse(const struct gp_options *o)
{
	struct request q = { 0 };

	if (o->argc == 2)
		q = (struct request){ o->argv[0], o->argv[1] };
	else if (o->argc && isdigit((unsigned char)o->argv[0][0]))
		q.device = o->argv[0];
	else if (o->argc)
		q.name = o->argv[0];
	return q;
}

static struct json_object *device_json(const struct gp_device_info *d, const struct gp_stats *s)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_int(o, "device", d->device);
	gp_json_add_text(o, "name", d->name);
	json_object_object_add(o, "simulated", json_object_new_boolean(gp_device_is_simulated(d)));
	gp_json_add_text(o, "policy", s->policy);
	gp_json_add_int(o, "ejected", s->policy_ejected);
	gp_json_add_text(o, "ejection", s->ejection);
	return o;
}

static void add_row(struct gp_columns *table, const struct gp_device_info *d, const struct gp_stats *s)
{
	char number[12];
	const char *const words[] = { number, d->name, gp_device_is_simulated(d) ? "simulated" : d->backend,
				      s->policy, s->ejection };

	snprintf(number, sizeof(number), "%" PRIu32, d->device);
	gp_columns_add(table, words);
}

static void print_json(struct json_object *devices)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_text(o, "schema", "gpreempt-policy-1");
	json_object_object_add(o, "devices", devices);
	gp_json_print(o);
}

/* device: GP_ALL_DEVICES or one of the list. */
static int show(const struct gp_options *o, struct gp_ctx *ctx, const struct gp_machine_list *l,
		uint32_t device)
{
	static const char *const headings[] = { "DEVICE", "NAME", "BACKEND", "POLICY", "EJECTED" };
	struct json_object *devices = json_object_new_array();
	struct gp_stats stats = { .size = sizeof(stats) };
	struct gp_columns table;
	int r = 0;

	gp_columns_begin(&table, headings, sizeof(headings) / sizeof(headings[0]));
	for (size_t i = 0; i < l->ndevices && r == 0; i++) {
		const struct gp_device_info *d = &l->devices[i];

		if (device != GP_ALL_DEVICES && d->device != device)
			continue;
		r = gp_device_stats(ctx, d->device, &stats);
		if (r == 0)
			add_row(&table, d, &stats);
		if (r == 0)
			json_object_array_add(devices, device_json(d, &stats));
	}
	if (r == 0 && o->json) {
		print_json(json_object_get(devices));
	} else if (r == 0 && !l->ndevices) {
		puts("no devices");
	} else if (r == 0) {
		gp_columns_print(&table, stdout);
	}
	gp_columns_free(&table);
	json_object_put(devices);
	return r < 0 ? gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx)) : GP_EXIT_OK;
}

/* Both who answer name the policies that there are. */
static int complain(struct gp_ctx *ctx, int r)
{
	if (r == -EPERM)
		return gp_fail(GP_EXIT_FAILED, "%s: use sudo, or become a member", gp_ctx_errmsg(ctx));
	return gp_fail(r == -ENOENT ? GP_EXIT_BAD_INPUT : GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx));
}

static int choose(const struct gp_options *o, struct gp_ctx *ctx, const struct gp_machine_list *l,
		  uint32_t device, const char *name)
{
	int r = gp_device_set_policy(ctx, device, name);
	const char *which = l->ndevices && gp_device_is_simulated(&l->devices[0]) ? " (simulated)" : "";

	if (r < 0)
		return complain(ctx, r);
	if (o->json)
		return show(o, ctx, l, device);
	if (device == GP_ALL_DEVICES)
		printf("All devices%s: %s schedules from now on.\n", which, name);
	else
		printf("Device %" PRIu32 "%s: %s schedules it from now on.\n", device, which, name);
	return GP_EXIT_OK;
}

static int serve(const struct gp_verb *verb, const struct gp_options *o, struct gp_ctx *ctx)
{
	const struct request q = parse(o);
	struct gp_machine_list list;
	uint32_t device = GP_ALL_DEVICES;
	int code = -1;

	if (gp_machine_list_read(ctx, &list) < 0)
		return gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx));
	if (q.device)
		code = gp_device_choose(verb->name, q.device, &list, &device);
	if (code < 0 && q.name)
		code = choose(o, ctx, &list, device, q.name);
	else if (code < 0)
		code = show(o, ctx, &list, device);
	gp_machine_list_free(&list);
	return code;
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	struct gp_ctx *ctx;
	int code = gp_options_parse(verb, argc, argv, 0, 2, &opts);

	if (code < 0)
		code = gp_machine_open(&opts, NULL, &ctx);
	if (code >= 0)
		return code;
	code = serve(verb, &opts, ctx);
	gp_ctx_close(ctx);
	return code;
}

const struct gp_verb gp_verb_policy = {
	.name = "policy",
	.summary = "what schedules each device",
	.usage = usage,
	.options = "backend socket json",
	.run = run,
};
