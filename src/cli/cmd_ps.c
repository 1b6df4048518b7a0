// SPDX-License-Identifier: MIT
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "cli/columns.h"
#include "cli/machine_list.h"
#include "cli/names.h"
#include "cli/place.h"
#include "cli/queue_text.h"
#include "study/json.h"
#include "base/units.h"

static const char usage[] =
	"usage: gpreempt ps [options]\n"
	"\n"
	"Lists the clients that gpreemptd schedules, one line for each device that one uses: its class\n"
	"and why it has it, what it does now, and its share of the device in the last 10 seconds.\n"
	"\n"
	"  --wide             also how often each became active, by hints and by what its queues showed\n"
	"  --container NAME   only those in this container, by its name or the first digits of its id\n"
	"  --socket PATH      gpreemptd's\n"
	"  --backend sim      a simulated machine instead, which ends with this call\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt ps\n"
	"  gpreempt ps --wide\n";

#define TEXT 48
#define NAME 2 /* columns */
#define SHARE 8

static const char *state_text(uint32_t state)
{
	static const char *const names[] = { "idle", "running", "waiting", "held" };

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

/* By device; those who go first, first. */
static int by_importance(const void *a, const void *b)
{
	const struct gp_client_info *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->client_class != y->client_class)
		return x->client_class > y->client_class ? -1 : 1;
	if (x->share_permille != y->share_permille)
		return x->share_permille > y->share_permille ? -1 : 1;
	return x->client < y->client ? -1 : x->client > y->client;
}

/* A client of the simulated machine is nobody's process: the handle stands for it. */
static uint64_t number_of(const struct gp_client_info *c)
{
	return c->pid ? c->pid : c->client;
}

static const char *user_text(const struct gp_client_info *c, char text[TEXT])
{
	char name[GP_ACCOUNT_NAME];

	snprintf(text, TEXT, "%.*s", TEXT - 1, c->pid ? gp_user_name(c->uid, name) : "");
	return text;
}

static const char *device_text(const struct gp_machine_list *l, const struct gp_client_info *c,
			       char text[TEXT])
{
	if (c->device == GP_ALL_DEVICES)
		snprintf(text, TEXT, "?");
	else
		snprintf(text, TEXT, "%" PRIu32 "%s", c->device,
			 gp_client_is_simulated(l, c) ? " simulated" : "");
	return text;
}

static const char *number_text(uint64_t number, char text[TEXT])
{
	snprintf(text, TEXT, "%" PRIu64, number);
	return text;
}

/* The library's simulated machine does not keep what gpreemptd does. */
static int is_measured(const struct gp_client_info *c)
{
	return c->pid != 0;
}

static const char *share_text(const struct gp_client_info *c, char text[TEXT])
{
	if (is_measured(c))
		snprintf(text, TEXT, "%" PRIu32 ".%" PRIu32 "%%", c->share_permille / 10,
			 c->share_permille % 10);
	else
		text[0] = '\0';
	return text;
}

static void add_row(struct gp_columns *table, const struct gp_machine_list *l, const struct gp_client_info *c,
		    int wide)
{
	char pid[TEXT], user[TEXT], weight[TEXT], slo[GP_TIME_TEXT], device[TEXT], share[TEXT];
	char hinted[TEXT], sampled[TEXT];
	const char *const words[] = { number_text(number_of(c), pid),
				      user_text(c, user),
				      c->name,
				      gp_class_text(c->client_class),
				      number_text(c->weight, weight),
				      c->slo_ns ? gp_time_text(c->slo_ns, slo) : "",
				      device_text(l, c, device),
				      state_text(c->state),
				      share_text(c, share),
				      wide && is_measured(c) ? number_text(c->hinted, hinted) : "",
				      wide && is_measured(c) ? number_text(c->sampled, sampled) : "",
				      gp_mps_text(l, c->device, c->pid),
				      c->rule };

	gp_columns_add(table, words);
}

/* A column without a word is not shown: that is how those of --wide are left out. */
static void print(const struct gp_machine_list *l, const struct gp_client_info *clients, size_t n, int wide)
{
	static const char *const headings[] = { "PID",     "USER",   "NAME",  "CLASS", "WEIGHT",
						"SLO",     "DEVICE", "STATE", "SHARE", "HINTS",
						"SAMPLES", "MPS",    "WHY" };
	struct gp_columns table;

	if (!n) {
		puts("no clients");
		return;
	}
	gp_columns_begin(&table, headings, sizeof(headings) / sizeof(headings[0]));
	gp_columns_cut(&table, NAME, SHARE + 1);
	for (size_t i = 0; i < n; i++)
		add_row(&table, l, &clients[i], wide);
	gp_columns_print(&table, stdout);
}

static void add_measured(struct json_object *o, const char *key, const struct gp_client_info *c,
			 uint64_t value)
{
	json_object_object_add(o, key, is_measured(c) ? json_object_new_uint64(value) : NULL);
}

static struct json_object *client_json(const struct gp_machine_list *l, const struct gp_client_info *c)
{
	struct json_object *o = json_object_new_object();
	char user[TEXT];

	gp_json_add_int(o, "client", c->client);
	json_object_object_add(o, "simulated", json_object_new_boolean(gp_client_is_simulated(l, c)));
	gp_json_add_int(o, "pid", c->pid);
	gp_json_add_int(o, "uid", c->uid);
	gp_json_add_text(o, "user", user_text(c, user));
	gp_json_add_text(o, "name", c->name);
	gp_json_add_text(o, "class", gp_class_text(c->client_class));
	gp_json_add_text(o, "rule", c->rule);
	gp_json_add_text(o, "place", c->place);
	gp_mps_json(o, l, c->device, c->pid);
	gp_json_add_int(o, "weight", c->weight);
	json_object_object_add(o, "slo_ns", c->slo_ns ? json_object_new_uint64(c->slo_ns) : NULL);
	json_object_object_add(o, "device",
			       c->device == GP_ALL_DEVICES ? NULL : json_object_new_uint64(c->device));
	gp_json_add_text(o, "state", state_text(c->state));
	gp_json_add_int(o, "queues", c->queues);
	gp_json_add_int(o, "stopped", c->stopped);
	add_measured(o, "share_permille", c, c->share_permille);
	add_measured(o, "hints", c, c->hints);
	add_measured(o, "hinted", c, c->hinted);
	add_measured(o, "sampled", c, c->sampled);
	return o;
}

static void print_json(const struct gp_machine_list *l, const struct gp_client_info *clients, size_t n)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_object_array_add(list, client_json(l, &clients[i]));
	gp_json_add_text(o, "schema", "gpreempt-ps-1");
	json_object_object_add(o, "clients", list);
	gp_json_print(o);
}

/* Those in the container that was asked for, in place. -1 to go on, else the exit code. */
static int keep_container(const char *container, struct gp_client_info *clients, size_t *n)
{
	char place[GP_PLACE];
	size_t kept = 0;
	int code = gp_place_choose(container, gp_places_of(clients, *n), place);

	for (size_t i = 0; code < 0 && i < *n; i++)
		if (!strcmp(clients[i].place, place))
			clients[kept++] = clients[i];
	*n = kept;
	return code;
}

static int show_clients(const struct gp_options *o, const struct gp_machine_list *list,
			struct gp_client_info *clients, size_t n)
{
	int code = o->container ? keep_container(o->container, clients, &n) : -1;

	if (code >= 0)
		return code;
	if (n)
		qsort(clients, n, sizeof(*clients), by_importance);
	if (o->json)
		print_json(list, clients, n);
	else
		print(list, clients, n, o->wide);
	return GP_EXIT_OK;
}

static int show(const struct gp_options *o, struct gp_ctx *ctx)
{
	struct gp_machine_list list;
	struct gp_client_info *clients;
	int n, code, r = gp_machine_list_read(ctx, &list);

	if (r < 0)
		return gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx));
	n = gp_clients_read(ctx, &clients);
	code = n < 0 ? gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx))
		     : show_clients(o, &list, clients, (size_t)n);
	if (n > 0 && code == GP_EXIT_OK && !o->json)
		gp_pids_say(ctx);
	if (n >= 0)
		free(clients);
	gp_machine_list_free(&list);
	return code;
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	struct gp_ctx *ctx;
	int code = gp_options_parse(verb, argc, argv, 0, 0, &opts);

	if (code < 0)
		code = gp_machine_open(&opts, NULL, &ctx);
	if (code >= 0)
		return code;
	code = show(&opts, ctx);
	gp_ctx_close(ctx);
	return code;
}

const struct gp_verb gp_verb_ps = {
	.name = "ps",
	.summary = "clients: class, state, share of the GPU",
	.usage = usage,
	.options = "wide container backend socket json",
	.run = run,
};
