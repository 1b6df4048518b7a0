// SPDX-License-Identifier: MIT
#include "cli/machine_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/names.h"
#include "discover/discover.h"
#include "ini/words.h"

int gp_machine_try(const struct gp_options *o, char why[GP_WHY], struct gp_ctx **ret)
{
	const struct gp_open_opts open = { .size = sizeof(open),
					   .backend = o->backend,
					   .device = o->device,
					   .socket = o->socket,
					   .errmsg = why,
					   .errmsg_size = GP_WHY };

	why[0] = '\0';
	return gp_ctx_open(&open, ret);
}

int gp_machine_open(const struct gp_options *o, const char *instead, struct gp_ctx **ret)
{
	char why[GP_WHY];
	int r = gp_machine_try(o, why, ret);

	if (r == 0)
		return -1;
	if (r == -ENOENT || r == -ENAMETOOLONG)
		return gp_fail(GP_EXIT_BAD_INPUT, "%s", why);
	if (r == -ENODEV)
		instead = gp_word_find(o->verb->options, "backend") >= 0
				  ? "--backend sim shows a simulated one"
				  : "gpreempt sim-gpu is a simulated one";
	return gp_fail(GP_EXIT_FAILED, "%s%s%s", why, instead ? "; " : "", instead ? instead : "");
}

int gp_root_check(const char *root)
{
	struct stat st;
	int r = stat(root, &st) < 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;

	return r ? gp_fail(GP_EXIT_BAD_INPUT, "--root %s: %s", root, strerror(r)) : -1;
}

const char *gp_rights_advice(struct gp_ctx *ctx, char *text, size_t size)
{
	uint32_t rights;

	if (gp_ctx_rights(ctx, &rights) < 0)
		rights = 0;
	if (rights & GP_IN_CONTAINER)
		snprintf(text, size, "this is a container: do it on the host");
	else if (geteuid() == 0 && !(rights & GP_RIGHT_OTHERS))
		snprintf(text, size, "root needs CAP_SYS_ADMIN for it");
	else
		snprintf(text, size, "use sudo, or: %s", gp_group_advice());
	return text;
}

int gp_machine_fail(struct gp_ctx *ctx, int r)
{
	char why[320], how[256];

	snprintf(why, sizeof(why), "%s", gp_ctx_errmsg(ctx));
	if (r == -EPERM)
		return gp_fail(GP_EXIT_FAILED, "%s: %s", why, gp_rights_advice(ctx, how, sizeof(how)));
	return gp_fail(GP_EXIT_FAILED, "%s", why);
}

const char *gp_pids_note(struct gp_ctx *ctx)
{
	uint32_t rights;

	if (gp_ctx_rights(ctx, &rights) < 0 || !(rights & GP_IN_CONTAINER) || gp_sees_host_pids())
		return "";
	return "; its pids are the host's, not this container's";
}

void gp_pids_say(struct gp_ctx *ctx)
{
	if (gp_pids_note(ctx)[0])
		puts("\nThe pids are the host's. suspend and its like also take those of this container.");
}

const struct gp_device_info *gp_device_find(const struct gp_machine_list *list, uint32_t device)
{
	for (size_t i = 0; i < list->ndevices; i++)
		if (list->devices[i].device == device)
			return &list->devices[i];
	return NULL;
}

int gp_device_is_simulated(const struct gp_device_info *device)
{
	return !strcmp(device->backend, "sim");
}

int gp_device_check(const char *verb, const char *word)
{
	uint64_t number;

	return gp_count_parse(word, &number) == 0
		       ? -1
		       : gp_fail(GP_EXIT_BAD_INPUT,
				 "%s: \"%s\" is no device; gpreempt list has their numbers", verb, word);
}

int gp_device_choose(const char *verb, const char *word, const struct gp_machine_list *list, uint32_t *ret)
{
	uint64_t number = UINT64_MAX;

	(void)gp_count_parse(word, &number); /* or it stays none */
	if (number > UINT32_MAX || !gp_device_find(list, (uint32_t)number))
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "%s: there is no device %s; gpreempt list has their numbers", verb, word);
	*ret = (uint32_t)number;
	return -1;
}

int gp_queue_is_simulated(const struct gp_machine_list *list, const struct gp_queue_info *q)
{
	const struct gp_device_info *device = gp_device_find(list, q->device);

	return device && gp_device_is_simulated(device);
}

int gp_client_is_simulated(const struct gp_machine_list *list, const struct gp_client_info *c)
{
	const struct gp_device_info *device = gp_device_find(list, c->device);

	return !c->pid || (device && gp_device_is_simulated(device));
}

int gp_queue_is_nobodys(const struct gp_queue_info *q)
{
	return q->pid == 0;
}

uint32_t gp_queue_owner(const struct gp_queue_info *q)
{
	return gp_queue_is_nobodys(q) ? (uint32_t)q->client : q->pid;
}

uint32_t gp_queue_number(const struct gp_queue_info *q)
{
	return gp_queue_is_nobodys(q) ? (uint32_t)q->queue : q->queue_id;
}

static int read_devices(struct gp_ctx *ctx, struct gp_machine_list *list)
{
	int n = gp_device_list(ctx, NULL, 0);

	if (n < 0)
		return n;
	list->devices = calloc((size_t)n + 1, sizeof(*list->devices));
	if (!list->devices)
		return -ENOMEM;
	list->devices[0].size = sizeof(*list->devices);
	list->ndevices = (size_t)n;
	n = gp_device_list(ctx, list->devices, list->ndevices);
	if (n >= 0 && (size_t)n < list->ndevices)
		list->ndevices = (size_t)n;
	return n < 0 ? n : 0;
}

/* Queues come and go between the two calls: what came is not shown, what went is not there. */
static int read_queues(struct gp_ctx *ctx, struct gp_machine_list *list)
{
	int n = gp_queue_list(ctx, NULL, 0);

	if (n < 0)
		return n;
	list->queues = calloc((size_t)n + 1, sizeof(*list->queues));
	if (!list->queues)
		return -ENOMEM;
	list->queues[0].size = sizeof(*list->queues);
	list->nqueues = (size_t)n;
	n = gp_queue_list(ctx, list->queues, list->nqueues);
	if (n >= 0 && (size_t)n < list->nqueues)
		list->nqueues = (size_t)n;
	return n < 0 ? n : 0;
}

int gp_clients_read(struct gp_ctx *ctx, struct gp_client_info **ret)
{
	struct gp_client_info *all;
	int n, room = gp_client_list(ctx, NULL, 0);

	if (room < 0)
		return room;
	all = calloc((size_t)room + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	all[0].size = sizeof(*all);
	n = gp_client_list(ctx, all, (size_t)room);
	if (n < 0)
		free(all);
	else
		*ret = all;
	return n < room ? n : room;
}

int gp_machine_list_read(struct gp_ctx *ctx, struct gp_machine_list *ret)
{
	struct gp_machine_list list = { 0 };
	int r;

	r = read_devices(ctx, &list);
	if (r == 0)
		r = read_queues(ctx, &list);
	if (r < 0) {
		gp_machine_list_free(&list);
		return r;
	}
	*ret = list;
	return 0;
}

void gp_machine_list_free(struct gp_machine_list *list)
{
	free(list->devices);
	free(list->queues);
	*list = (struct gp_machine_list){ 0 };
}
