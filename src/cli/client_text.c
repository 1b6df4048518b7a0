// SPDX-License-Identifier: MIT
#include "cli/client_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "base/units.h"
#include "cli/names.h"
#include "cli/queue_text.h"
#include "study/json.h"

#define TEXT 48
#define NAME 2 /* columns */
#define SHARE 8

/* What should run and does not is told whatever the client does with its other queues. */
static const char *state_text(const struct gp_client_info *c)
{
	static const char *const names[] = { "idle", "running", "waiting", "held" };
	uint32_t state = c->state;

	if (c->resuming)
		return "resuming";
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

void gp_clients_sort(struct gp_client_info *clients, size_t n)
{
	if (n)
		qsort(clients, n, sizeof(*clients), by_importance);
}

uint64_t gp_client_number(const struct gp_client_info *c)
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

int gp_client_is_measured(const struct gp_client_info *c)
{
	return c->pid != 0;
}

const char *gp_share_text(uint32_t permille, char text[GP_SHARE_TEXT])
{
	snprintf(text, GP_SHARE_TEXT, "%" PRIu32 ".%" PRIu32 "%%", permille / 10, permille % 10);
	return text;
}

static void add_row(struct gp_columns *table, const struct gp_machine_list *l, const struct gp_client_info *c,
		    int wide)
{
	char pid[TEXT], user[TEXT], weight[TEXT], slo[GP_TIME_TEXT], device[TEXT], share[GP_SHARE_TEXT];
	char hinted[TEXT], sampled[TEXT];
	const char *const words[] = { number_text(gp_client_number(c), pid),
				      user_text(c, user),
				      c->name,
				      gp_class_text(c->client_class),
				      number_text(c->weight, weight),
				      c->slo_ns ? gp_time_text(c->slo_ns, slo) : "",
				      device_text(l, c, device),
				      state_text(c),
				      gp_client_is_measured(c) ? gp_share_text(c->share_permille, share) : "",
				      wide && gp_client_is_measured(c) ? number_text(c->hinted, hinted) : "",
				      wide && gp_client_is_measured(c) ? number_text(c->sampled, sampled)
								       : "",
				      gp_mps_text(l, c->device, c->pid),
				      c->rule };

	gp_columns_add(table, words);
}

/* A column without a word is not shown: that is how those of --wide are left out. */
void gp_clients_table(struct gp_columns *table, const struct gp_machine_list *l,
		      const struct gp_client_info *clients, size_t n, int wide)
{
	static const char *const headings[] = { "PID",     "USER",   "NAME",  "CLASS", "WEIGHT",
						"SLO",     "DEVICE", "STATE", "SHARE", "HINTS",
						"SAMPLES", "MPS",    "WHY" };

	gp_columns_begin(table, headings, sizeof(headings) / sizeof(headings[0]));
	gp_columns_cut(table, NAME, SHARE + 1);
	for (size_t i = 0; i < n; i++)
		add_row(table, l, &clients[i], wide);
}

static void add_measured(struct json_object *o, const char *key, const struct gp_client_info *c,
			 uint64_t value)
{
	json_object_object_add(o, key, gp_client_is_measured(c) ? json_object_new_uint64(value) : NULL);
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
	gp_json_add_text(o, "state", state_text(c));
	gp_json_add_int(o, "queues", c->queues);
	gp_json_add_int(o, "stopped", c->stopped);
	gp_json_add_int(o, "resuming", c->resuming);
	add_measured(o, "share_permille", c, c->share_permille);
	add_measured(o, "hints", c, c->hints);
	add_measured(o, "hinted", c, c->hinted);
	add_measured(o, "sampled", c, c->sampled);
	return o;
}

struct json_object *gp_clients_json(const struct gp_machine_list *l, const struct gp_client_info *clients,
				    size_t n)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_object_array_add(list, client_json(l, &clients[i]));
	return list;
}
