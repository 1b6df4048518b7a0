// SPDX-License-Identifier: MIT
#include "cli/queue_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "cli/columns.h"
#include "cli/place.h"
#include "discover/discover.h"

static const char *const caps[] = { "throttle",  "gate",          "interrupt", "background", "batch",
				    "selective", "cross-process", "reserve",   "activity",   "takes-turns" };

#define NCAPS (sizeof(caps) / sizeof(caps[0]))

static const char *name_of(const char *const *names, uint32_t n, uint32_t i)
{
	return i < n ? names[i] : "unknown";
}

const char *gp_class_text(uint32_t client_class)
{
	static const char *const names[] = { "unknown", "offline", "online" };

	return name_of(names, 3, client_class);
}

const char *gp_state_text(uint32_t state)
{
	static const char *const names[] = { "running", "suspending", "suspended", "resuming" };

	return name_of(names, 4, state);
}

static const char *activity_text(uint32_t activity)
{
	static const char *const names[] = { "unknown", "idle", "busy" };

	return name_of(names, 3, activity);
}

/* A state says more than that the driver may run it. */
static const char *active_text(const struct gp_queue_info *q)
{
	if (q->state != GP_QUEUE_RUNNING)
		return gp_state_text(q->state);
	return !(q->known & GP_KNOWN_ACTIVE) ? "?" : q->active ? "yes" : "no";
}

const char *gp_queue_name(const struct gp_queue_info *q, char text[GP_QUEUE_NAME])
{
	if (q->known & GP_KNOWN_QUEUE_ID || gp_queue_is_nobodys(q))
		snprintf(text, GP_QUEUE_NAME, "%" PRIu32 ":%" PRIu32, gp_queue_owner(q), gp_queue_number(q));
	else
		snprintf(text, GP_QUEUE_NAME, "%" PRIu32 ":?", q->pid);
	return text;
}

static const char *number_text(uint32_t number, int known, char text[12])
{
	if (known)
		snprintf(text, 12, "%" PRIu32, number);
	else
		strcpy(text, "?");
	return text;
}

/* What it is; of a simulated one above all that. */
static const char *kind_text(const struct gp_machine_list *l, const struct gp_queue_info *q)
{
	return gp_queue_is_simulated(l, q) ? "simulated" : gp_kind_name(q->kind);
}

static const char *caps_text(uint32_t has, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < NCAPS && used < size; i++)
		if (has & (1u << i))
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " " : "", caps[i]);
	return text;
}

/* Of NVIDIA's queues alone. */
const char *gp_mps_text(const struct gp_machine_list *l, uint32_t device, uint32_t pid)
{
	const struct gp_device_info *d = gp_device_find(l, device);

	return d && pid && !strcmp(d->backend, "nvrm") ? gp_mps_role(pid) : "";
}

/* Empty: nothing is. */
static const char *reserved_text(const struct gp_device_info *d, char *text, size_t size)
{
	text[0] = '\0';
	if (d->online_percent || d->offline_percent)
		snprintf(text, size, "%" PRIu32 "%% online, %" PRIu32 "%% offline", d->online_percent,
			 d->offline_percent);
	return text;
}

static void print_devices(const struct gp_machine_list *l, FILE *out)
{
	static const char *const headings[] = { "DEVICE", "NAME",  "BACKEND",  "GPU ID", "PCI", "MIG",
						"CUS",    "SLOTS", "RESERVED", "POLICY", "CAN" };
	struct gp_columns table;

	if (!l->ndevices) {
		fprintf(out, "%s\n", GP_NO_DEVICES);
		return;
	}
	gp_columns_begin(&table, headings, sizeof(headings) / sizeof(headings[0]));
	for (size_t i = 0; i < l->ndevices; i++) {
		const struct gp_device_info *d = &l->devices[i];
		char number[12], id[12], mig[12], cus[12], slots[12], reserved[48], can[128];
		const char *const words[] = { number_text(d->device, 1, number),
					      d->name,
					      gp_device_is_simulated(d) ? "simulated" : d->backend,
					      d->gpu_id ? number_text(d->gpu_id, 1, id) : "",
					      d->pci,
					      d->instances ? number_text(d->instances, 1, mig) : "",
					      number_text(d->compute_units, d->compute_units, cus),
					      number_text(d->queue_slots, d->queue_slots, slots),
					      reserved_text(d, reserved, sizeof(reserved)),
					      d->policy,
					      caps_text(d->caps, can, sizeof(can)) };

		gp_columns_add(&table, words);
	}
	gp_columns_print(&table, out);
}

/* Empty: nobody holds it, or gpreemptd is older than that it says who. */
static const char *holder_text(const struct gp_queue_info *q)
{
	const char *from = q->held ? strstr(q->from, "held=") : NULL;

	return from ? from + strlen("held=") : "";
}

static void print_queues(const struct gp_machine_list *l, FILE *out)
{
	static const char *const headings[] = { "QUEUE", "DEVICE",  "KIND",   "CLASS", "PRIO",  "ACTIVE",
						"WAY",   "HELD BY", "CLIENT", "MPS",   "PLACE", "RULE" };
	struct gp_columns table;

	gp_columns_begin(&table, headings, sizeof(headings) / sizeof(headings[0]));
	for (size_t i = 0; i < l->nqueues; i++) {
		const struct gp_queue_info *q = &l->queues[i];
		char name[GP_QUEUE_NAME], gpu[12], priority[12], place[GP_PLACE_TEXT];
		const char *const words[] = {
			gp_queue_name(q, name),
			number_text(q->device, q->device != UINT32_MAX, gpu),
			kind_text(l, q),
			gp_class_text(q->client_class),
			number_text(q->priority, q->known & GP_KNOWN_PRIORITY, priority),
			active_text(q),
			q->way,
			holder_text(q),
			q->client_name,
			gp_mps_text(l, q->device, q->pid),
			gp_place_text(q->place, place),
			q->rule,
		};

		gp_columns_add(&table, words);
	}
	gp_columns_print(&table, out);
}

void gp_machine_print(const struct gp_machine_list *l, FILE *out)
{
	print_devices(l, out);
	fputs("\n", out);
	if (!l->nqueues)
		fputs("no queues\n", out);
	else
		print_queues(l, out);
}

void gp_queue_print(const struct gp_machine_list *l, const struct gp_queue_info *q, FILE *out)
{
	char name[GP_QUEUE_NAME], place[GP_PLACE_TEXT], line[512];

	snprintf(line, sizeof(line), "%s  %s  %s  %s%s%s%s%s%s", gp_queue_name(q, name), kind_text(l, q),
		 gp_class_text(q->client_class), q->client_name[0] ? q->client_name : "?",
		 q->place[0] ? "  " : "", gp_place_text(q->place, place), q->rule[0] ? "  (" : "", q->rule,
		 q->rule[0] ? ")" : "");
	gp_text_clean(line);
	fputs(line, out);
}

static void add_known(struct json_object *o, const char *key, uint32_t value, uint32_t known)
{
	json_object_object_add(o, key, known ? json_object_new_uint64(value) : NULL);
}

static struct json_object *device_json(const struct gp_device_info *d)
{
	struct json_object *o = json_object_new_object();
	struct json_object *can = json_object_new_array();

	gp_json_add_int(o, "device", d->device);
	gp_json_add_text(o, "name", d->name);
	gp_json_add_text(o, "backend", d->backend);
	json_object_object_add(o, "simulated", json_object_new_boolean(gp_device_is_simulated(d)));
	gp_json_add_text(o, "policy", d->policy);
	gp_json_add_int(o, "compute_units", d->compute_units);
	add_known(o, "queue_slots", d->queue_slots, d->queue_slots);
	gp_json_add_int(o, "mig_instances", d->instances);
	gp_json_add_int(o, "online_percent", d->online_percent);
	gp_json_add_int(o, "offline_percent", d->offline_percent);
	add_known(o, "gpu_id", d->gpu_id, d->gpu_id);
	json_object_object_add(o, "pci", d->pci[0] ? json_object_new_string(d->pci) : NULL);
	for (size_t i = 0; i < NCAPS; i++)
		if (d->caps & (1u << i))
			json_object_array_add(can, json_object_new_string(caps[i]));
	json_object_object_add(o, "can", can);
	return o;
}

void gp_mps_json(struct json_object *o, const struct gp_machine_list *l, uint32_t device, uint32_t pid)
{
	const char *role = gp_mps_text(l, device, pid);

	json_object_object_add(o, "mps", role[0] ? json_object_new_string(role) : NULL);
}

/* What the AMD driver and its processes know beyond the rest; null where nobody told. */
static void add_driver_fields(struct json_object *o, const struct gp_queue_info *q)
{
	char ring[24];

	gp_json_add_int(o, "pid", q->pid);
	json_object_object_add(o, "local_pid", q->local_pid ? json_object_new_uint64(q->local_pid) : NULL);
	add_known(o, "queue_id", q->queue_id, q->known & GP_KNOWN_QUEUE_ID);
	gp_json_add_int(o, "gpu_id", q->gpu_id);
	gp_json_add_text(o, "kind", gp_kind_name(q->kind));
	snprintf(ring, sizeof(ring), "0x%016" PRIx64, q->ring);
	json_object_object_add(o, "ring", q->known & GP_KNOWN_RING ? json_object_new_string(ring) : NULL);
	json_object_object_add(o, "active",
			       q->known & GP_KNOWN_ACTIVE ? json_object_new_boolean(q->active != 0) : NULL);
	gp_json_add_text(o, "way", q->way);
	gp_json_add_text(o, "rule", q->rule);
	gp_json_add_text(o, "place", q->place);
	gp_json_add_text(o, "from", q->from);
}

struct json_object *gp_queue_json(const struct gp_machine_list *l, const struct gp_queue_info *q)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_int(o, "queue", q->queue);
	json_object_object_add(o, "simulated", json_object_new_boolean(gp_queue_is_simulated(l, q)));
	add_known(o, "device", q->device, q->device != UINT32_MAX);
	gp_json_add_int(o, "client", q->client);
	gp_json_add_text(o, "client_name", q->client_name);
	gp_json_add_text(o, "class", gp_class_text(q->client_class));
	add_known(o, "priority", q->priority, q->known & GP_KNOWN_PRIORITY);
	gp_json_add_text(o, "state", gp_state_text(q->state));
	gp_json_add_text(o, "activity", activity_text(q->activity));
	json_object_object_add(o, "held", json_object_new_boolean(q->held != 0));
	json_object_object_add(o, "held_by",
			       holder_text(q)[0] ? json_object_new_string(holder_text(q)) : NULL);
	if (!gp_queue_is_nobodys(q)) {
		add_driver_fields(o, q);
		gp_mps_json(o, l, q->device, q->pid);
	}
	return o;
}

struct json_object *gp_machine_json(const struct gp_machine_list *l)
{
	struct json_object *o = json_object_new_object();
	struct json_object *devices = json_object_new_array();
	struct json_object *queues = json_object_new_array();

	for (size_t i = 0; i < l->ndevices; i++)
		json_object_array_add(devices, device_json(&l->devices[i]));
	for (size_t i = 0; i < l->nqueues; i++)
		json_object_array_add(queues, gp_queue_json(l, &l->queues[i]));
	gp_json_add_text(o, "schema", "gpreempt-list-1");
	json_object_object_add(o, "devices", devices);
	json_object_object_add(o, "queues", queues);
	return o;
}
