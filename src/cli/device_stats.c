// SPDX-License-Identifier: MIT
#include "cli/device_stats.h"

#include "study/json.h"

int gp_devices_run(const struct gp_verb *verb, const struct gp_options *o, const char *word,
		   gp_devices_fn *fn, void *arg)
{
	uint32_t device = GP_ALL_DEVICES;
	struct gp_machine_list list;
	struct gp_ctx *ctx;
	int code = word ? gp_device_check(verb->name, word) : -1;

	if (code < 0)
		code = gp_machine_open(o, NULL, &ctx);
	if (code >= 0)
		return code;
	if (gp_machine_list_read(ctx, &list) < 0) {
		code = gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx));
	} else {
		if (word)
			code = gp_device_choose(verb->name, word, &list, &device);
		if (code < 0)
			code = fn(arg, o, ctx, &list, device);
		gp_machine_list_free(&list);
	}
	gp_ctx_close(ctx);
	return code;
}

int gp_stats_each(struct gp_ctx *ctx, const struct gp_machine_list *l, uint32_t device, gp_stats_fn *fn,
		  void *arg)
{
	struct gp_stats stats = { .size = sizeof(stats) };

	for (size_t i = 0; i < l->ndevices; i++) {
		if (device != GP_ALL_DEVICES && l->devices[i].device != device)
			continue;
		if (gp_device_stats(ctx, l->devices[i].device, &stats) < 0)
			return gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx));
		fn(arg, &l->devices[i], &stats);
	}
	return -1;
}

struct json_object *gp_stats_json(const struct gp_device_info *d, const struct gp_stats *s)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_int(o, "device", d->device);
	gp_json_add_text(o, "name", d->name);
	json_object_object_add(o, "simulated", json_object_new_boolean(gp_device_is_simulated(d)));
	gp_json_add_text(o, "policy", s->policy);
	return o;
}

void gp_stats_json_print(const char *schema, struct json_object *devices)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_text(o, "schema", schema);
	json_object_object_add(o, "devices", devices);
	gp_json_print(o);
}
