// SPDX-License-Identifier: MIT
#include <ctype.h>
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/columns.h"
#include "cli/device_stats.h"
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

/* Where the devices go. */
struct page {
	struct gp_columns table;
	struct json_object *devices;
};

static void add(void *arg, const struct gp_device_info *d, const struct gp_stats *s)
{
	struct json_object *o = gp_stats_json(d, s);
	struct page *page = arg;
	char number[12];
	const char *const words[] = { number, d->name, gp_device_is_simulated(d) ? "simulated" : d->backend,
				      s->policy, s->ejection };

	snprintf(number, sizeof(number), "%" PRIu32, d->device);
	gp_columns_add(&page->table, words);
	gp_json_add_int(o, "ejected", s->policy_ejected);
	gp_json_add_text(o, "ejection", s->ejection);
	json_object_array_add(page->devices, o);
}

static int show(void *arg, const struct gp_options *o, struct gp_ctx *ctx, const struct gp_machine_list *l,
		uint32_t device)
{
	static const char *const headings[] = { "DEVICE", "NAME", "BACKEND", "POLICY", "EJECTED" };
	struct page page = { .devices = json_object_new_array() };
	int code;

	(void)arg;
	gp_columns_begin(&page.table, headings, sizeof(headings) / sizeof(headings[0]));
	code = gp_stats_each(ctx, l, device, add, &page);
	if (code < 0 && o->json)
		gp_stats_json_print("gpreempt-policy-1", json_object_get(page.devices));
	else if (code < 0 && !l->ndevices)
		puts(GP_NO_DEVICES);
	else if (code < 0)
		gp_columns_print(&page.table, stdout);
	gp_columns_free(&page.table);
	json_object_put(page.devices);
	return code < 0 ? GP_EXIT_OK : code;
}

/* Both who answer name the policies that there are. */
static int complain(struct gp_ctx *ctx, int r)
{
	int code = gp_machine_fail(ctx, r);

	return r == -ENOENT ? GP_EXIT_BAD_INPUT : code;
}

static int is_simulated(const struct gp_machine_list *l, uint32_t device)
{
	size_t n = 0;

	for (size_t i = 0; i < l->ndevices; i++)
		if (device == GP_ALL_DEVICES || device == l->devices[i].device) {
			n++;
			if (!gp_device_is_simulated(&l->devices[i]))
				return 0;
		}
	return n > 0;
}

static int choose(void *arg, const struct gp_options *o, struct gp_ctx *ctx, const struct gp_machine_list *l,
		  uint32_t device)
{
	const struct request *q = arg;
	const char *which = is_simulated(l, device) ? " (simulated)" : "";
	int r = gp_device_set_policy(ctx, device, q->name);

	if (r < 0)
		return complain(ctx, r);
	if (o->json)
		return show(arg, o, ctx, l, device);
	if (device == GP_ALL_DEVICES)
		printf("All devices%s: %s schedules from now on.\n", which, q->name);
	else
		printf("Device %" PRIu32 "%s: %s schedules it from now on.\n", device, which, q->name);
	return GP_EXIT_OK;
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	struct request q;
	int code = gp_options_parse(verb, argc, argv, 0, 2, &opts);

	if (code >= 0)
		return code;
	q = parse(&opts);
	return gp_devices_run(verb, &opts, q.device, q.name ? choose : show, &q);
}

const struct gp_verb gp_verb_policy = {
	.name = "policy",
	.summary = "what schedules each device",
	.usage = usage,
	.options = "backend socket json",
	.run = run,
};
