// SPDX-License-Identifier: MIT
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/machine_list.h"
#include "study/json.h"
#include "base/units.h"

static const char usage[] =
	"usage: gpreempt hint begin|end --client CLIENT [options]\n"
	"\n"
	"Says in the place of an online client that a request is on its way, or done: its device is\n"
	"made free before the work is there. A begin that is not ended ends by itself.\n"
	"\n"
	"  --client CLIENT    its process, as gpreempt ps shows it in the column PID\n"
	"  --number N         pairs an end with its begin; without one the oldest ends first\n"
	"  --device N         for this device alone\n"
	"  --for TIME         when a begin ends by itself (1s)\n"
	"  --socket PATH      gpreemptd's\n"
	"  --backend sim      a simulated machine instead, which ends with this call\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt hint begin --client 4711 --for 5s\n"
	"  gpreempt hint end --client 4711\n";

/* By the number that ps shows: a pid, or the handle of what is no process. */
static const struct gp_client_info *find(const struct gp_client_info *clients, size_t n, uint64_t number)
{
	for (size_t i = 0; i < n; i++)
		if (number == (clients[i].pid ? clients[i].pid : clients[i].client))
			return &clients[i];
	return NULL;
}

static int find_client(struct gp_ctx *ctx, const char *word, struct gp_client_info *ret)
{
	const struct gp_client_info *found;
	struct gp_client_info *clients;
	uint64_t number = 0;
	int n = gp_clients_read(ctx, &clients);

	(void)gp_count_parse(word, &number); /* which was checked */
	if (n < 0)
		return gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx));
	found = find(clients, (size_t)n, number);
	if (found)
		*ret = *found;
	free(clients);
	return found ? -1
		     : gp_fail(GP_EXIT_FAILED, "there is no client %s; gpreempt ps has them%s", word,
			       gp_pids_note(ctx));
}

static int find_device(const struct gp_verb *verb, struct gp_ctx *ctx, const char *word, struct gp_hint *hint)
{
	struct gp_machine_list list;
	int code;

	if (gp_machine_list_read(ctx, &list) < 0)
		return gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx));
	code = gp_device_choose(verb->name, word, &list, &hint->device);
	hint->flags |= GP_HINT_DEVICE;
	gp_machine_list_free(&list);
	return code;
}

static int is_simulated(struct gp_ctx *ctx, const struct gp_client_info *c)
{
	struct gp_machine_list list;
	int yes;

	if (gp_machine_list_read(ctx, &list) < 0)
		return !c->pid;
	yes = gp_client_is_simulated(&list, c);
	gp_machine_list_free(&list);
	return yes;
}

static void print_json(struct gp_ctx *ctx, const struct gp_client_info *c, const struct gp_hint *hint,
		       int is_begin)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_text(o, "schema", "gpreempt-hint-1");
	json_object_object_add(o, "simulated", json_object_new_boolean(is_simulated(ctx, c)));
	gp_json_add_text(o, "what", is_begin ? "begin" : "end");
	gp_json_add_int(o, "client", c->client);
	gp_json_add_int(o, "pid", c->pid);
	gp_json_add_text(o, "name", c->name);
	gp_json_add_int(o, "number", hint->number);
	json_object_object_add(o, "device",
			       hint->flags & GP_HINT_DEVICE ? json_object_new_uint64(hint->device) : NULL);
	gp_json_print(o);
}

static void print(struct gp_ctx *ctx, const struct gp_client_info *c, const struct gp_hint *hint,
		  int is_begin)
{
	char text[GP_TIME_TEXT];

	printf("%s%s %" PRIu64 ": a request is %s", c->name, is_simulated(ctx, c) ? " (simulated)" : "",
	       c->pid ? c->pid : c->client, is_begin ? "on its way" : "done");
	if (is_begin && hint->expiry_ns)
		printf(", for %s at most", gp_time_text(hint->expiry_ns, text));
	puts(".");
}

static int give(struct gp_ctx *ctx, const struct gp_options *o, const struct gp_client_info *c,
		const struct gp_hint *hint, int is_begin)
{
	int r = is_begin ? gp_hint_begin(ctx, hint) : gp_hint_end(ctx, hint);

	if (r == -EALREADY)
		return gp_fail(GP_EXIT_FAILED, "%s; it may be over by itself: --for makes it last longer",
			       gp_ctx_errmsg(ctx));
	if (r == -EPERM && c->client_class != GP_CLASS_ONLINE)
		return gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx)); /* more rights would not help */
	if (r < 0)
		return gp_machine_fail(ctx, r);
	if (o->json)
		print_json(ctx, c, hint, is_begin);
	else
		print(ctx, c, hint, is_begin);
	return GP_EXIT_OK;
}

static int check(const struct gp_options *o, int *ret_is_begin)
{
	uint64_t number;

	*ret_is_begin = !strcmp(o->argv[0], "begin");
	if (!*ret_is_begin && strcmp(o->argv[0], "end") != 0)
		return gp_fail(GP_EXIT_BAD_INPUT, "hint: \"%s\" is neither begin nor end", o->argv[0]);
	if (!o->client)
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "hint: say whose request it is, as in: gpreempt hint %s --client 4711",
			       o->argv[0]);
	if (gp_count_parse(o->client, &number) < 0 || !number)
		return gp_fail(GP_EXIT_BAD_INPUT, "--client: \"%s\" is no process; gpreempt ps has them",
			       o->client);
	if (!*ret_is_begin && o->for_ns)
		return gp_fail(GP_EXIT_BAD_INPUT, "hint: --for is for begin alone");
	return o->device ? gp_device_check("hint", o->device) : -1;
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_hint hint = { .size = sizeof(hint), .flags = GP_HINT_ANSWER };
	struct gp_client_info client;
	struct gp_options opts;
	struct gp_ctx *ctx;
	const char *device;
	int is_begin, code = gp_options_parse(verb, argc, argv, 1, 1, &opts);

	if (code < 0)
		code = check(&opts, &is_begin);
	device = opts.device;
	opts.device = NULL; /* not a simulated machine's */
	if (code < 0)
		code = gp_machine_open(&opts, NULL, &ctx);
	if (code >= 0)
		return code;
	code = find_client(ctx, opts.client, &client);
	if (code < 0 && device)
		code = find_device(verb, ctx, device, &hint);
	if (code < 0) {
		hint.client = client.client;
		hint.number = opts.number;
		hint.expiry_ns = opts.for_ns;
		code = give(ctx, &opts, &client, &hint, is_begin);
	}
	gp_ctx_close(ctx);
	return code;
}

const struct gp_verb gp_verb_hint = {
	.name = "hint",
	.summary = "say that a client's request is on its way",
	.usage = usage,
	.options = "client number device for backend socket json",
	.run = run,
};
