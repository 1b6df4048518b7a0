// SPDX-License-Identifier: MIT
#include "cli/attached.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/places.h"
#include "cli/columns.h"
#include "cli/machine_list.h"
#include "cli/place.h"
#include "discover/describe.h"
#include "study/json.h"

struct attached {
	uint32_t pid;
	uint64_t start;
	char name[8]; /* of its class */
	struct gp_found_client found;
};

/* The next that still runs. */
static int next(FILE *file, struct attached *ret)
{
	char line[64];

	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%" SCNu32 " %" SCNu64 " %7s", &ret->pid, &ret->start, ret->name) == 3 &&
		    gp_proc_start("", ret->pid) == ret->start) {
			ret->found = (struct gp_found_client){ .pid = ret->pid };
			gp_discover_processes(NULL, &ret->found, 1);
			return 1;
		}
	return 0;
}

static void print_text(FILE *file)
{
	static const char *const headings[] = { "PID", "CLASS", "PLACE" };
	struct gp_columns table;
	struct attached one;
	size_t n = 0;

	gp_columns_begin(&table, headings, sizeof(headings) / sizeof(headings[0]));
	for (; file && next(file, &one); n++) {
		char pid[12], place[GP_PLACE], text[GP_PLACE_TEXT];
		const char *const words[] = { pid, one.name, text };

		snprintf(pid, sizeof(pid), "%" PRIu32, one.pid);
		gp_describe_place(&one.found, place, sizeof(place));
		gp_place_text(place, text);
		gp_columns_add(&table, words);
	}
	if (n)
		gp_columns_print(&table, stdout);
	else
		puts("nothing is attached");
	gp_columns_free(&table);
}

static void print_json(FILE *file)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	struct attached one;

	while (file && next(file, &one)) {
		struct json_object *item = json_object_new_object();

		gp_json_add_int(item, "pid", one.pid);
		gp_json_add_text(item, "class", one.name);
		gp_json_add_text(item, "container", one.found.container);
		gp_json_add_text(item, "name", one.found.container_name);
		json_object_array_add(list, item);
	}
	gp_json_add_text(o, "schema", "gpreempt-attached-1");
	json_object_object_add(o, "attached", list);
	gp_json_print(o);
}

/* -1 to go on, else the exit code. */
static int check_daemon(const struct gp_options *o)
{
	struct gp_ctx *ctx;
	uint32_t rights;
	int r, code = gp_machine_open(o, NULL, &ctx);

	if (code >= 0)
		return code;
	r = gp_ctx_rights(ctx, &rights);
	if (r < 0)
		code = gp_machine_fail(ctx, r);
	gp_ctx_close(ctx);
	return code;
}

int gp_attached_print(const struct gp_options *o)
{
	const char *named = o->socket ? o->socket : getenv("GPREEMPT_SOCKET");
	char path[160];
	FILE *file;
	int code = check_daemon(o);

	if (code >= 0)
		return code;
	snprintf(path, sizeof(path), "%s.attached", named ? named : GP_RUN_FOLDER "/" GP_SOCKET_NAME);
	file = fopen(path, "re");
	if (!file && errno != ENOENT)
		return gp_fail(GP_EXIT_FAILED, "%s: %s", path, strerror(errno));
	if (o->json)
		print_json(file);
	else
		print_text(file);
	if (file)
		fclose(file);
	return GP_EXIT_OK;
}
