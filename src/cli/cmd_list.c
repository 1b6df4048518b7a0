// SPDX-License-Identifier: MIT
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/json.h"
#include "cli/machine_list.h"
#include "cli/options.h"

static const char usage[] = "usage: gpreempt list [options]\n"
			    "\n"
			    "Lists the devices and queues that a backend knows.\n"
			    "\n"
			    "  --backend NAME     auto (the default) or sim\n"
			    "  --device NAME      for sim: mi308x (the default), mi300x or h200\n"
			    "  --json             as JSON\n"
			    "\n"
			    "examples:\n"
			    "  gpreempt list\n"
			    "  gpreempt list --backend sim --device h200\n";

static const char *const caps[] = { "throttle",  "gate",          "interrupt", "background", "batch",
				    "selective", "cross-process", "reserve",   "activity",   "takes-turns" };

#define NCAPS (sizeof(caps) / sizeof(caps[0]))

static const char *name_of(const char *const *names, uint32_t n, uint32_t i)
{
	return i < n ? names[i] : "unknown";
}

static const char *class_name(uint32_t i)
{
	static const char *const names[] = { "unknown", "offline", "online" };

	return name_of(names, 3, i);
}

static const char *state_name(uint32_t i)
{
	static const char *const names[] = { "running", "suspending", "suspended", "resuming" };

	return name_of(names, 4, i);
}

static const char *activity_name(uint32_t i)
{
	static const char *const names[] = { "unknown", "idle", "busy" };

	return name_of(names, 3, i);
}

static void print_device(const struct gp_device_info *d)
{
	printf("%-6" PRIu32 " %-10s %-8s %5" PRIu32 " %6" PRIu32 "  %-9s", d->device, d->name, d->backend,
	       d->compute_units, d->queue_slots, d->policy[0] ? d->policy : "-");
	for (size_t i = 0; i < NCAPS; i++)
		if (d->caps & (1u << i))
			printf(" %s", caps[i]);
	putchar('\n');
}

static void print_tables(const struct gp_machine_list *l)
{
	printf("%-6s %-10s %-8s %5s %6s  %-9s %s\n", "DEVICE", "NAME", "BACKEND", "CUS", "SLOTS", "POLICY",
	       "CAN");
	for (size_t i = 0; i < l->ndevices; i++)
		print_device(&l->devices[i]);
	printf("\n%-8s %-6s %-16s %-8s %8s  %-10s %s\n", "QUEUE", "DEVICE", "CLIENT", "CLASS", "PRIORITY",
	       "STATE", "ACTIVITY");
	for (size_t i = 0; i < l->nqueues; i++) {
		const struct gp_queue_info *q = &l->queues[i];

		printf("%-8" PRIu64 " %-6" PRIu32 " %-16s %-8s %8" PRIu32 "  %-10s %s\n", q->queue, q->device,
		       q->client_name, class_name(q->client_class), q->priority, state_name(q->state),
		       activity_name(q->activity));
	}
	if (!l->nqueues)
		puts("none");
}

static struct json_object *device_json(const struct gp_device_info *d)
{
	struct json_object *o = json_object_new_object();
	struct json_object *can = json_object_new_array();

	gp_json_add_int(o, "device", d->device);
	gp_json_add_text(o, "name", d->name);
	gp_json_add_text(o, "backend", d->backend);
	gp_json_add_text(o, "policy", d->policy);
	gp_json_add_int(o, "compute_units", d->compute_units);
	gp_json_add_int(o, "queue_slots", d->queue_slots);
	for (size_t i = 0; i < NCAPS; i++)
		if (d->caps & (1u << i))
			json_object_array_add(can, json_object_new_string(caps[i]));
	json_object_object_add(o, "can", can);
	return o;
}

static struct json_object *queue_json(const struct gp_queue_info *q)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_int(o, "queue", q->queue);
	gp_json_add_int(o, "device", q->device);
	gp_json_add_int(o, "client", q->client);
	gp_json_add_text(o, "client_name", q->client_name);
	gp_json_add_text(o, "class", class_name(q->client_class));
	gp_json_add_int(o, "priority", q->priority);
	gp_json_add_text(o, "state", state_name(q->state));
	gp_json_add_text(o, "activity", activity_name(q->activity));
	json_object_object_add(o, "held", json_object_new_boolean(q->held != 0));
	return o;
}

static void print_json(const struct gp_machine_list *l)
{
	struct json_object *o = json_object_new_object();
	struct json_object *devices = json_object_new_array();
	struct json_object *queues = json_object_new_array();

	for (size_t i = 0; i < l->ndevices; i++)
		json_object_array_add(devices, device_json(&l->devices[i]));
	for (size_t i = 0; i < l->nqueues; i++)
		json_object_array_add(queues, queue_json(&l->queues[i]));
	gp_json_add_text(o, "schema", "gpreempt-list-1");
	json_object_object_add(o, "devices", devices);
	json_object_object_add(o, "queues", queues);
	gp_json_print(o);
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_open_opts open = { .size = sizeof(open) };
	struct gp_machine_list list;
	struct gp_options opts;
	struct gp_ctx *ctx;
	int code, r;

	code = gp_options_parse(verb, argc, argv, 0, 0, &opts);
	if (code >= 0)
		return code;
	open.backend = opts.backend;
	open.device = opts.device;
	r = gp_ctx_open(&open, &ctx);
	if (r < 0)
		return gp_fail(
			GP_EXIT_BAD_INPUT,
			"cannot open backend %s, device %s: %s; this version has backend sim with devices "
			"mi308x, mi300x and h200",
			opts.backend ? opts.backend : "auto", opts.device ? opts.device : "(default)",
			gp_strerror(r));
	r = gp_machine_list_read(ctx, &list);
	if (r < 0) {
		code = gp_fail(GP_EXIT_FAILED, "cannot list: %s", gp_strerror(r));
	} else {
		if (opts.json)
			print_json(&list);
		else
			print_tables(&list);
		gp_machine_list_free(&list);
		code = GP_EXIT_OK;
	}
	gp_ctx_close(ctx);
	return code;
}

const struct gp_verb gp_verb_list = {
	.name = "list",
	.summary = "devices and queues",
	.usage = usage,
	.options = "backend device json",
	.run = run,
};
