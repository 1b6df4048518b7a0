// SPDX-License-Identifier: MIT
#include "discover/describe.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	enum gp_field field;
	uint32_t known; /* GP_KNOWN_*, 0: always told */
} told[] = {
	{ "queue_id", GP_FIELD_ID, GP_KNOWN_QUEUE_ID },
	{ "gpu_id", GP_FIELD_GPU, 0 },
	{ "kind", GP_FIELD_KIND, 0 },
	{ "ring", GP_FIELD_RING, GP_KNOWN_RING },
	{ "priority", GP_FIELD_PRIORITY, GP_KNOWN_PRIORITY },
	{ "active", GP_FIELD_ACTIVE, GP_KNOWN_ACTIVE },
};

#define NTOLD (sizeof(told) / sizeof(told[0]))

/* "debugfs mqds" is "mqds" here: each source is one word. */
static const char *source(uint32_t from)
{
	const char *name = gp_source_name(from), *space = strrchr(name, ' ');

	return space ? space + 1 : name;
}

static void tell_sources(const struct gp_found_queue *q, int with_ring, struct gp_queue_info *ret)
{
	size_t used = 0;

	ret->known = 0;
	ret->from[0] = '\0';
	for (size_t i = 0; i < NTOLD && used < sizeof(ret->from); i++) {
		uint32_t from = q->from[told[i].field];

		if (!from || (told[i].field == GP_FIELD_RING && !with_ring))
			continue;
		ret->known |= told[i].known;
		used += (size_t)snprintf(ret->from + used, sizeof(ret->from) - used, "%s%s=%s",
					 used ? " " : "", told[i].name, source(from));
	}
}

void gp_describe_place(const struct gp_found_client *c, char *ret, size_t size)
{
	const char *label = !c ? "" : c->container_name[0] ? c->container_name : c->pod;
	int is_cut = strlen(label) > GP_PLACE_LABEL;

	ret[0] = '\0';
	if (label[0])
		(void)snprintf(ret, size, "%s %.*s%s%s%.*s", c->pod[0] ? "pod" : "container",
			       is_cut ? GP_PLACE_LABEL - (int)strlen(GP_PLACE_CUT) : GP_PLACE_LABEL, label,
			       is_cut ? GP_PLACE_CUT : "", c->container[0] ? " " : "", GP_PLACE_ID,
			       c->container);
	else if (c && c->container[0])
		(void)snprintf(ret, size, "container %s", c->container);
}

void gp_describe_queue(const struct gp_found_queue *queue, const struct gp_found_client *client,
		       int with_ring, struct gp_queue_info *ret)
{
	ret->pid = queue->pid;
	ret->queue_id = queue->queue_id;
	ret->gpu_id = queue->gpu_id;
	ret->kind = queue->kind;
	ret->priority = queue->priority;
	ret->ring = with_ring ? queue->ring : 0;
	ret->active = queue->active != 0;
	tell_sources(queue, with_ring, ret);
	gp_describe_place(client, ret->place, sizeof(ret->place));
}

/*
 * location_id is bus, device and function (drivers/gpu/drm/amd/amdkfd/kfd_topology.c,
 * kfd_topology_add_device(), Linux 6.12): all zero of one that is on no bus.
 */
static void tell_address(const struct gp_found_device *d, char *ret, size_t size)
{
	if (d->domain || d->location)
		(void)snprintf(ret, size, "%04x:%02x:%02x.%x", d->domain, d->location >> 8 & 0xff,
			       d->location >> 3 & 0x1f, d->location & 7);
}

uint32_t gp_describe_caps(const struct gp_found_device *device)
{
	return device->vendor == GP_VENDOR_NVIDIA ? GP_CAP_BACKGROUND | GP_CAP_TAKES_TURNS : GP_CAP_ACTIVITY;
}

void gp_describe_device(const struct gp_found_device *device, uint32_t number, struct gp_device_info *ret)
{
	int is_nvidia = device->vendor == GP_VENDOR_NVIDIA;

	*ret = (struct gp_device_info){ .size = sizeof(*ret),
					.device = number,
					.compute_units = device->compute_units,
					.queue_slots = device->queue_slots,
					.gpu_id = device->gpu_id,
					.instances = device->instances };
	(void)snprintf(ret->backend, sizeof(ret->backend), "%s", is_nvidia ? "nvrm" : "kfd");
	(void)snprintf(ret->name, sizeof(ret->name), "%s", device->name);
	tell_address(device, ret->pci, sizeof(ret->pci));
}

uint32_t gp_found_device_number(const struct gp_found *found, uint32_t gpu_id)
{
	for (size_t i = 0; i < found->ndevices; i++)
		if (found->devices[i].gpu_id == gpu_id)
			return (uint32_t)i;
	return UINT32_MAX;
}
