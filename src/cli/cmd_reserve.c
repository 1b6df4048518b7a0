// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/share.h"
#include "cli/device_stats.h"
#include "study/json.h"
#include "base/units.h"

static const char usage[] =
	"usage: gpreempt reserve DEVICE ONLINE [OFFLINE] [options]\n"
	"\n"
	"Keeps a share of a GPU's hardware queue slots for online work, in percent: of the offline\n"
	"queues no more are active at a time than OFFLINE (100 less ONLINE, if it is not given) of\n"
	"the slots, and they take turns; with 0 none runs. Both 0 end it. DEVICE is a number that\n"
	"gpreempt list shows.\n"
	"\n"
	"  --socket PATH      gpreemptd's\n"
	"  --backend sim      a simulated machine instead, which ends with this call\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt reserve 0 75%\n"
	"  gpreempt reserve 0 60% 20%\n"
	"  gpreempt reserve 0 0 0\n";

/* "75%" or "75". */
static int parse_share(const char *text, uint32_t *ret)
{
	char digits[16];
	size_t len = strlen(text);
	uint64_t value;

	if (len && text[len - 1] == '%')
		len--;
	if (!len || len >= sizeof(digits))
		return -1;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (gp_count_parse(digits, &value) < 0 || value > 100)
		return -1;
	*ret = (uint32_t)value;
	return 0;
}

struct shares {
	uint32_t online, offline; /* percent */
};

static int parse(const struct gp_options *o, struct shares *ret)
{
	if (parse_share(o->argv[1], &ret->online) < 0 ||
	    (o->argc > 2 && parse_share(o->argv[2], &ret->offline) < 0))
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "reserve: a share is a percentage from 0%% to 100%%, as in: "
			       "gpreempt reserve 0 75%%");
	if (o->argc < 3)
		ret->offline = 100 - ret->online;
	if (ret->online + ret->offline > 100)
		return gp_fail(GP_EXIT_BAD_INPUT, "reserve: online and offline are more than 100%% together");
	return -1;
}

/* What the percentage comes to. */
static const char *limit_text(const struct gp_device_info *d, uint32_t online, uint32_t offline, char *text,
			      size_t size)
{
	uint32_t limit;

	if (gp_share_limit(d->queue_slots, online, offline, &limit) < 0)
		snprintf(text, size, "offline queues take turns");
	else if (limit)
		snprintf(text, size, "at most %" PRIu32 " of its %" PRIu32 " slots at a time", limit,
			 d->queue_slots);
	else
		snprintf(text, size, "no offline queue runs");
	return text;
}

static void print_text(const struct gp_device_info *d, uint32_t online, uint32_t offline)
{
	char text[64];

	printf("Device %" PRIu32 "%s: ", d->device, gp_device_is_simulated(d) ? " (simulated)" : "");
	if (!online && !offline)
		puts("nothing is reserved any more.");
	else
		printf("%" PRIu32 "%% of the queue slots are for online work, %" PRIu32
		       "%% for offline work: %s.\n",
		       online, offline, limit_text(d, online, offline, text, sizeof(text)));
}

static void print_json(const struct gp_device_info *d, uint32_t online, uint32_t offline)
{
	struct json_object *json = json_object_new_object();

	gp_json_add_text(json, "schema", "gpreempt-reserve-1");
	json_object_object_add(json, "simulated", json_object_new_boolean(gp_device_is_simulated(d)));
	gp_json_add_int(json, "device", d->device);
	gp_json_add_int(json, "online_percent", online);
	gp_json_add_int(json, "offline_percent", offline);
	gp_json_print(json);
}

static int reserve(void *arg, const struct gp_options *o, struct gp_ctx *ctx, const struct gp_machine_list *l,
		   uint32_t device)
{
	const struct gp_device_info *d = gp_device_find(l, device);
	const struct shares *s = arg;
	int r = gp_device_reserve(ctx, device, s->online, s->offline);

	if (r < 0)
		return gp_machine_fail(ctx, r);
	if (o->json)
		print_json(d, s->online, s->offline);
	else
		print_text(d, s->online, s->offline);
	return GP_EXIT_OK;
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct shares shares = { 0 };
	struct gp_options opts;
	int code = gp_options_parse(verb, argc, argv, 2, 3, &opts);

	if (code < 0)
		code = parse(&opts, &shares);
	return code >= 0 ? code : gp_devices_run(verb, &opts, opts.argv[0], reserve, &shares);
}

const struct gp_verb gp_verb_reserve = {
	.name = "reserve",
	.summary = "keep queue slots for online work",
	.usage = usage,
	.options = "backend socket json",
	.run = run,
};
