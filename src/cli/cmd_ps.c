// SPDX-License-Identifier: MIT
#include <gpreempt/gpreempt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client_text.h"
#include "cli/machine_list.h"
#include "cli/place.h"
#include "study/json.h"

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

static void print(const struct gp_machine_list *l, const struct gp_client_info *clients, size_t n, int wide)
{
	struct gp_columns table;

	if (!n) {
		puts("no clients");
		return;
	}
	gp_clients_table(&table, l, clients, n, wide);
	gp_columns_print(&table, stdout);
}

static void print_json(const struct gp_machine_list *l, const struct gp_client_info *clients, size_t n)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_text(o, "schema", "gpreempt-ps-1");
	json_object_object_add(o, "clients", gp_clients_json(l, clients, n));
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
	gp_clients_sort(clients, n);
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
