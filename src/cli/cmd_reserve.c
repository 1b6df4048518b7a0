// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/share.h"
#include "cli/machine_list.h"
#include "study/json.h"
#include "ini/units.h"

static const char usage[] =
	"usage: gpreempt reserve GPU ONLINE [OFFLINE] [options]\n"
	"\n"
	"Keeps a share of a GPU's hardware queue slots for online work, in percent: of the offline\n"
	"queues no more are active at a time than OFFLINE (100 less ONLINE, if it is not given) of\n"
	"the slots, and they take turns; with 0 none runs. Both 0 end it. GPU is a number that\n"
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

static int parse(const struct gp_options *o, uint32_t *device, uint32_t *online, uint32_t *offline)
{
	uint64_t number;

	if (gp_count_parse(o->argv[0], &number) < 0 || number > UINT16_MAX)
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "reserve: \"%s\" is no device; gpreempt list has their numbers", o->argv[0]);
	*device = (uint32_t)number;
	if (parse_share(o->argv[1], online) < 0 || (o->argc > 2 && parse_share(o->argv[2], offline) < 0))
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "reserve: a share is a percentage from 0%% to 100%%, as in: "
			       "gpreempt reserve 0 75%%");
	if (o->argc < 3)
		*offline = 100 - *online;
	if (*online + *offline > 100)
		return gp_fail(GP_EXIT_BAD_INPUT, "reserve: online and offline are more than 100%% together");
	return -1;
}

/* What the percentage comes to. */
static const char *limit_text(struct gp_ctx *ctx, uint32_t device, uint32_t online, uint32_t offline,
			      char *text, size_t size)
{
	struct gp_machine_list list;
	uint32_t slots, limit;

	snprintf(text, size, "offline queues take turns");
	if (gp_machine_list_read(ctx, &list) < 0)
		return text;
	slots = device < list.ndevices ? list.devices[device].queue_slots : 0;
	gp_machine_list_free(&list);
	if (gp_share_limit(slots, online, offline, &limit) < 0)
		return text;
	if (limit)
		snprintf(text, size, "at most %" PRIu32 " of its %" PRIu32 " slots at a time", limit, slots);
	else
		snprintf(text, size, "no offline queue runs");
	return text;
}

static void print_text(uint32_t device, int simulated, uint32_t online, uint32_t offline, const char *text)
{
	printf("Device %" PRIu32 "%s: ", device, simulated ? " (simulated)" : "");
	if (!online && !offline)
		puts("nothing is reserved any more.");
	else
		printf("%" PRIu32 "%% of the queue slots are for online work, %" PRIu32
		       "%% for offline work: %s.\n",
		       online, offline, text);
}

static void print(const struct gp_options *o, struct gp_ctx *ctx, uint32_t device, uint32_t online,
		  uint32_t offline)
{
	int simulated = gp_machine_is_simulated(ctx);
	struct json_object *json;
	char text[64];

	if (!o->json) {
		print_text(device, simulated, online, offline,
			   limit_text(ctx, device, online, offline, text, sizeof(text)));
		return;
	}
	json = json_object_new_object();
	gp_json_add_text(json, "schema", "gpreempt-reserve-1");
	json_object_object_add(json, "simulated", json_object_new_boolean(simulated));
	gp_json_add_int(json, "device", device);
	gp_json_add_int(json, "online_percent", online);
	gp_json_add_int(json, "offline_percent", offline);
	gp_json_print(json);
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	uint32_t device = 0, online = 0, offline = 0;
	struct gp_options opts;
	struct gp_ctx *ctx;
	int code = gp_options_parse(verb, argc, argv, 2, 3, &opts);

	if (code < 0)
		code = parse(&opts, &device, &online, &offline);
	if (code < 0)
		code = gp_machine_open(&opts, NULL, &ctx);
	if (code >= 0)
		return code;
	if (gp_device_reserve(ctx, device, online, offline) < 0) {
		code = gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx));
	} else {
		print(&opts, ctx, device, online, offline);
		code = GP_EXIT_OK;
	}
	gp_ctx_close(ctx);
	return code;
}

const struct gp_verb gp_verb_reserve = {
	.name = "reserve",
	.summary = "keep queue slots for online work",
	.usage = usage,
	.options = "backend socket json",
	.run = run,
};
